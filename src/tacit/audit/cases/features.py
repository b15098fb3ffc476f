"""Noisy features: every pair of inputs around a coarse grid, and all outputs that matter; the loss is per distance.

Beyond the outermost inputs the ratio of two Laplace laws no longer changes, so a window of one step around the domain holds
the largest one.
"""

import math
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.audit import check, distribution, empirical, exact
from tacit.audit.cases import Case, Draws, FromOutside, Twin
from tacit.audit.findings import By, Finding, Measure
from tacit.audit.twins.features import (
    ClampedNoise,
    FloatNoise,
    FreshOnRetry,
    RedrawnUntilInside,
    SeededNoise,
    last_bit,
)
from tacit.guarantees import Guarantee
from tacit.mechanisms import VectorLaplace
from tacit.mechanisms.noise import Noise
from tacit.mechanisms.samplers import integers

_NAME = VectorLaplace.name


class _OnGrid(check.Claims, Protocol):
    def log_pmf(self, steps: NDArray[np.int64], features: ArrayLike, /) -> NDArray[np.float64]: ...


@dataclass(frozen=True, slots=True)
class SentTwice:
    """Sound: a signal is kept and sent again as it was. Outputs are both messages, one after the other."""

    name: ClassVar[str] = VectorLaplace.name
    real: VectorLaplace

    @property
    def guarantee(self) -> Guarantee:
        return self.real.guarantee

    def log_pmf(self, steps: NDArray[np.int64], features: ArrayLike) -> NDArray[np.float64]:
        first, again = np.split(steps, 2, axis=-1)
        return np.where((first == again).all(axis=-1), self.real.log_pmf(first, features), -np.inf)


def cases() -> list[Case]:
    return [
        Case(_NAME, By.EXACT, lambda noise, draws: on_the_grid(VectorLaplace(1, 0.25, grid_bits=5), 1, 5)),
        Case(_NAME, By.EXACT, lambda noise, draws: on_the_grid(VectorLaplace(2, 0.5, grid_bits=2), 2, 2)),
        Case(_NAME, By.EXACT, lambda noise, draws: between_the_grid(VectorLaplace(1, 0.5, grid_bits=2), 1, 2)),
        Case(_NAME, By.EXACT, lambda noise, draws: between_the_grid(VectorLaplace(2, 0.5, grid_bits=1), 2, 1)),
        Case(_NAME, By.EXACT, lambda noise, draws: sent_twice(SentTwice(VectorLaplace(1, 0.25, grid_bits=3)), 3)),
        Case(_NAME, By.DISTRIBUTION, _sampler),
        *(look.case() for look in from_outside()),
    ]


def twins() -> list[Twin]:
    return [
        Twin(
            RedrawnUntilInside.name,
            _NAME,
            "redraws until the value lies in the domain; the normaliser tells the features",
            lambda noise, draws: on_the_grid(RedrawnUntilInside(VectorLaplace(1, 0.25, grid_bits=5)), 1, 5),
        ),
        Twin(
            ClampedNoise.name,
            _NAME,
            "cuts the density of the noise; which outputs are possible tells the features",
            lambda noise, draws: on_the_grid(ClampedNoise(VectorLaplace(1, 0.125, grid_bits=5)), 1, 5),
        ),
        Twin(
            FreshOnRetry.name,
            _NAME,
            "draws fresh noise to send a signal again; two signals tell twice as much as the one that was charged",
            lambda noise, draws: sent_twice(FreshOnRetry(VectorLaplace(1, 0.25, grid_bits=3)), 3),
        ),
        Twin(
            FloatNoise.name,
            _NAME,
            "adds noise to floats; the last bits tell the features",
            lambda noise, draws: _last_bits(FloatNoise(VectorLaplace(1, 1.0)), noise, draws.fewer),
            By.EMPIRICAL,
        ),
        Twin(
            SeededNoise.name,
            _NAME,
            "draws its noise from a seed and claims to protect",
            lambda noise, draws: _empirical(SeededNoise(VectorLaplace(1, 0.5)), noise, draws.fewer),
            By.EMPIRICAL,
        ),
        *(look.twin() for look in from_outside()),
    ]


def from_outside() -> list[FromOutside]:
    return [FromOutside(VectorLaplace(1, 0.5), _empirical)]


def on_the_grid(mechanism: _OnGrid, dimension: int, bits: int) -> Finding:
    """All pairs of grid points of [0, 1]^dimension, where rounding adds nothing: the claim without it must be attained."""
    points = [np.array(point) / 2**bits for point in product(range(2**bits + 1), repeat=dimension)]
    return _per_distance(mechanism, points, dimension, bits, rounding=0.0, case=f"{len(points)} grid points")


def between_the_grid(mechanism: _OnGrid, dimension: int, bits: int) -> Finding:
    """All pairs of points on and between grid points, at the very edges of rounding, and outside the domain."""
    step = 2.0**-bits
    line = {-3.0, 7.0}
    for place in range(2**bits + 1):
        middle = (place + 0.5) * step
        line |= {place * step, (place + 0.25) * step, middle, math.nextafter(middle, 0.0), math.nextafter(middle, 9.0)}
    points = [np.array(point) for point in product(sorted(line), repeat=dimension)]
    rounding = mechanism.guarantee.rounding
    return _per_distance(
        mechanism, points, dimension, bits, rounding=rounding, case=f"{len(points)} points off the grid"
    )


def sent_twice(mechanism: _OnGrid, bits: int) -> Finding:
    """One feature whose signal is sent, and sent again after a failure: all pairs of inputs, all pairs of messages."""
    points = [np.array([place / 2**bits]) for place in range(2**bits + 1)]
    return _per_distance(mechanism, points, 2, bits, rounding=0.0, case="a signal and its retry")


def _per_distance(
    mechanism: _OnGrid, points: list[NDArray[np.float64]], outputs: int, bits: int, *, rounding: float, case: str
) -> Finding:
    window = np.array(list(product(range(-1, 2**bits + 2), repeat=outputs)))
    logs = np.stack([mechanism.log_pmf(window, point) for point in points])
    pairs = exact.all_pairs(len(points))
    places = np.stack(points)
    distance = np.abs(places[pairs[:, 0]] - places[pairs[:, 1]]).sum(axis=1)
    loss = float((exact.pair_losses(logs, pairs) / (distance + rounding)).max())
    return check.judged(mechanism, case, Measure.PER_DISTANCE, loss)


def _sampler(noise: Noise, draws: Draws) -> Finding:
    mechanism = VectorLaplace(draws.batched, 0.1)
    drawn = mechanism.release(np.zeros(draws.batched), noise).value.steps

    def fit(law: VectorLaplace) -> float:
        return distribution.lattice_p_value(drawn, lambda n: integers.discrete_laplace_cdf(n, law.noise_law.width))

    outputs = np.array([[-1], [0], [1], [2]])
    alone = VectorLaplace(1, mechanism.scale)
    ratio = alone.log_pmf(outputs, [0.0]) - alone.log_pmf(outputs, [float(alone.noise_law.step)])
    return check.sampled(
        mechanism,
        fit(mechanism),
        fit(distribution.off_by(mechanism)),
        loss=float(np.abs(ratio).max()) / float(alone.noise_law.step),
        draws=draws.batched,
        measure=Measure.PER_DISTANCE,
        case="2^20 steps",
    )


def _empirical(mechanism: Any, noise: Noise, draws: Draws) -> Finding:
    """Zero against one. One feature: the loss is then all in one number, and half of the draws lie where it is largest."""

    def drawn(feature: float) -> NDArray[np.float64]:
        return check.many(lambda: mechanism.release([feature], noise).value.to_floats()[0], draws.single)

    bound = empirical.lower_bound_by_threshold(drawn(0.0), drawn(1.0))
    return check.from_below(mechanism, bound, distance=1.0, case="1 feature at distance 1")


def _last_bits(mechanism: FloatNoise, noise: Noise, draws: Draws) -> Finding:
    def drawn(feature: float) -> NDArray[np.int64]:
        return np.array([last_bit(float(mechanism.release([feature], noise).value[0])) for _ in range(draws.single)])

    bound = empirical.lower_bound_by_label(drawn(0.0), drawn(1.0))
    return check.from_below(mechanism, bound, distance=1.0, case="the last bits, at distance 1")
