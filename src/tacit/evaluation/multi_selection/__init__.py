"""Multi-selection put to the test: the paper's tables and figures on other data, with errors, beside the paper's own."""

from tacit.evaluation.effort import Effort
from tacit.evaluation.multi_selection.experiment import evaluate

__all__ = ["Effort", "evaluate"]
