"""Determinantal point processes: laws by enumeration and samplers, in floats and without privacy noise of their own."""

from typing import TYPE_CHECKING

from tacit.loading import on_demand

if TYPE_CHECKING:
    from tacit.models.dpp.dense import DenseSampler
    from tacit.models.dpp.greedy import greedy_map
    from tacit.models.dpp.split import SplitSampler
    from tacit.models.dpp.tempered import TemperedSampler
    from tacit.models.dpp.unconstrained import UnconstrainedSampler

_HOMES = {
    "dense": ["DenseSampler"],
    "greedy": ["greedy_map"],
    "split": ["SplitSampler"],
    "tempered": ["TemperedSampler"],
    "unconstrained": ["UnconstrainedSampler"],
}

__all__ = [
    "DenseSampler",
    "SplitSampler",
    "TemperedSampler",
    "UnconstrainedSampler",
    "greedy_map",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = on_demand(__name__, _HOMES)
