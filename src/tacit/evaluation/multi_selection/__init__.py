"""Multi-selection put to the test: the paper's tables and figures on other data, with errors, beside the paper's own."""

from tacit.evaluation.multi_selection.experiment import evaluate
from tacit.evaluation.multi_selection.plan import Effort

__all__ = ["Effort", "evaluate"]
