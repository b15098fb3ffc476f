"""Determinantal point processes: laws by enumeration and samplers, in floats and without privacy noise of their own."""

from typing import TYPE_CHECKING

from tacit.loading import on_demand

if TYPE_CHECKING:
    from tacit.models.dpp.dense import DenseSampler
    from tacit.models.dpp.greedy import greedy_map
    from tacit.models.dpp.kernels import feature_kernel, natural_kernel
    from tacit.models.dpp.split import SplitSampler
    from tacit.models.dpp.tempered import TemperedSampler
    from tacit.models.dpp.unconstrained import UnconstrainedSampler

_HOMES = {
    "dense": ["DenseSampler"],
    "greedy": ["greedy_map"],
    "kernels": ["feature_kernel", "natural_kernel"],
    "split": ["SplitSampler"],
    "tempered": ["TemperedSampler"],
    "unconstrained": ["UnconstrainedSampler"],
}

__all__ = [
    "DenseSampler",
    "SplitSampler",
    "TemperedSampler",
    "UnconstrainedSampler",
    "feature_kernel",
    "greedy_map",
    "natural_kernel",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = on_demand(__name__, _HOMES)
