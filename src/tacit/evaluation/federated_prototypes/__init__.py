"""Federated prototypes put to the test: private prototypes and private moments in six worlds, beside models without privacy."""

from tacit.evaluation.effort import Effort
from tacit.evaluation.federated_prototypes.experiment import evaluate
from tacit.evaluation.federated_prototypes.worlds import NAMES

__all__ = ["NAMES", "Effort", "evaluate"]
