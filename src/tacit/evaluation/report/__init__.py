"""One report: what was shown, what was measured, what is promised, and how it was made, in one file that needs no network."""

from tacit.evaluation.report.page import require_report, write_html
from tacit.evaluation.report.report import Report

__all__ = ["Report", "require_report", "write_html"]
