"""Private selection put to the test: the paper's figures on worlds of the same description, and what goes beyond it."""

from tacit.evaluation.effort import Effort
from tacit.evaluation.private_selection.experiment import DATA, evaluate

__all__ = ["DATA", "Effort", "evaluate"]
