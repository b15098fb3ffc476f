"""Audits: what the mechanisms claim against what they lose, by exact enumeration, by their draws, and from outside.

An audit refutes and never proves; the proofs are in docs/proofs. To audit a mechanism of your own see docs/audit.md.
"""

from tacit.audit.check import exactly, from_below, sampled
from tacit.audit.empirical import LowerBound, lower_bound_by_label, lower_bound_by_threshold
from tacit.audit.findings import AuditReport, By, Finding, Measure, TwinFinding

__all__ = [
    "AuditReport",
    "By",
    "Finding",
    "LowerBound",
    "Measure",
    "TwinFinding",
    "exactly",
    "from_below",
    "lower_bound_by_label",
    "lower_bound_by_threshold",
    "sampled",
]
