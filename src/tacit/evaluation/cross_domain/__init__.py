"""Recommendation across domains put to the test: every mode and baseline, beside reference figures, and the cost of honesty."""

from tacit.evaluation.cross_domain.experiment import evaluate
from tacit.evaluation.cross_domain.worlds import NAMES
from tacit.evaluation.effort import Effort

__all__ = ["NAMES", "Effort", "evaluate"]
