"""Determinantal point processes: laws by enumeration, and samplers in floats. They add no privacy noise of their own."""

from typing import TYPE_CHECKING

from tacit.loading import lazy

if TYPE_CHECKING:
    from tacit.models.dpp.samplers import DenseSampler, SplitSampler, UnconstrainedSampler
    from tacit.models.dpp.tempered import TemperedSampler, greedy_map
else:
    __getattr__, __dir__ = lazy(
        __name__, samplers="DenseSampler SplitSampler UnconstrainedSampler", tempered="TemperedSampler greedy_map"
    )

__all__ = [
    "DenseSampler",
    "SplitSampler",
    "TemperedSampler",
    "UnconstrainedSampler",
    "greedy_map",
]
