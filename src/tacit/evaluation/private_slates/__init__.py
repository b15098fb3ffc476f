"""Private slates put to the test: every route on MovieLens, beside reference figures, and the theorems beside the paper's bound."""

from tacit.evaluation.effort import Effort
from tacit.evaluation.private_slates.experiment import evaluate
from tacit.evaluation.private_slates.films import NAMES

__all__ = ["NAMES", "Effort", "evaluate"]
