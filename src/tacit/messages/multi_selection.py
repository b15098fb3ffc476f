"""The messages of multi-selection: a device sends a request that carries its signal, the server answers with a reply."""

from tacit.messages.multi_selection_reply import LocalModel, ModelKind, Reply
from tacit.messages.multi_selection_request import MOST_K, Request
from tacit.messages.multi_selection_signal import (
    LEAST_ETA,
    MOST_DIMENSION,
    MOST_ETA,
    MOST_STEPS,
    Eta,
    GridSteps,
    Signal,
    exact_eta,
)

__all__ = [
    "LEAST_ETA",
    "MOST_DIMENSION",
    "MOST_ETA",
    "MOST_K",
    "MOST_STEPS",
    "Eta",
    "GridSteps",
    "LocalModel",
    "ModelKind",
    "Reply",
    "Request",
    "Signal",
    "exact_eta",
]
