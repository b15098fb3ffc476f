"""Steps of private training: hostile rows, every small table on coarse lattices, both directions, several Renyi orders.

A step claims a Renyi divergence for every whole order. On a lattice of a few steps the whole law can be written down, so its true
divergences can be summed and compared; where one user's row is as long as it may be they must be equal to the claim.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.audit import check, distribution, domains, empirical, exact, lattice
from tacit.audit.cases import Case, Draws, FromOutside, Twin
from tacit.audit.findings import By, Finding, Measure
from tacit.audit.twins.training import (
    BoundTakenOnTrust,
    ClippedAfterTheSum,
    ClippedPerCoordinate,
    FixedBatch,
    OneSampleForAllSteps,
    TwoSteps,
)
from tacit.mechanisms import SampledGaussian
from tacit.mechanisms.noise import Noise
from tacit.mechanisms.samplers.integers import GridNoise

_NAME = SampledGaussian.name
_MOST = 1 << 20
_ROWS = (
    (0, 0, 0),
    (_MOST, 0, 0),
    (-_MOST, 0, 0),
    (0, -_MOST - 1, 1),
    (_MOST, _MOST, _MOST),
    (-_MOST, _MOST, -_MOST),
    (629_145, 0, 838_860),
    (1, -1, 1),
    (1 << 62, -(1 << 62), 1 << 62),
    (-(1 << 63), 5, 1 << 40),
)
_QUARTER, _ORDERS = Fraction(1, 4), tuple(range(2, 13))


class _Step(check.Claims, Protocol):
    @property
    def noise_law(self) -> GridNoise: ...

    def renyi(self, order: int, /) -> float: ...

    def pmf(self, steps: ArrayLike, rows: ArrayLike, /) -> NDArray[np.float64]: ...


class _Summing(lattice.Additive, Protocol):
    @property
    def noise_law(self) -> GridNoise: ...

    def renyi(self, order: int, /) -> float: ...


def cases() -> list[Case]:
    return [
        Case(_NAME, By.EXACT, lambda noise, draws: rows_exactly(_all_users())),
        Case(_NAME, By.EXACT, lambda noise, draws: law_exactly(_on_a_line(), 1, 2)),
        Case(_NAME, By.EXACT, lambda noise, draws: law_exactly(_on_a_line(Fraction(1, 2), 8.0), 1, 2)),
        Case(
            _NAME,
            By.EXACT,
            lambda noise, draws: law_exactly(SampledGaussian(2, 1.0, 1e-3, _QUARTER, 1, grid_bits=1), 2, 1),
        ),
        Case(_NAME, By.EXACT, lambda noise, draws: law_exactly(_two_steps(TwoSteps), 1, 1, outputs=2)),
        Case(_NAME, By.EXACT, _one_step_at_delta),
        Case(_NAME, By.DISTRIBUTION, _noise),
        Case(_NAME, By.DISTRIBUTION, _sample),
        *(look.case() for look in from_outside()),
    ]


def twins() -> list[Twin]:
    return [
        *(
            Twin(kind.name, _NAME, fault, lambda noise, draws, kind=kind: rows_exactly(kind(_all_users())))  # type: ignore[misc]
            for kind, fault in (
                (ClippedAfterTheSum, "cuts the sum, not each user's row"),
                (ClippedPerCoordinate, "cuts every coordinate to the bound of the whole row"),
                (BoundTakenOnTrust, "does not cut at all"),
            )
        ),
        Twin(
            FixedBatch.name,
            _NAME,
            "draws a batch of fixed size and pays for coins",
            lambda noise, draws: law_exactly(FixedBatch(_on_a_line(Fraction(1, 2), 8.0)), 1, 2),
        ),
        Twin(
            OneSampleForAllSteps.name,
            _NAME,
            "keeps its sample and pays for fresh ones",
            lambda noise, draws: law_exactly(_two_steps(OneSampleForAllSteps), 1, 1, outputs=2),
        ),
        *(look.twin() for look in from_outside()),
    ]


def from_outside() -> list[FromOutside]:
    return [FromOutside(SampledGaussian(3, 2.0, 0.01, Fraction(1, 2), 1), _empirical)]


def rows_exactly(mechanism: _Summing) -> Finding:
    """With everybody in the sample: the largest squared L2 shift between neighbours, in whole numbers, over the variance."""
    tables = domains.tables(_ROWS, 2)
    pairs = domains.added_or_removed(tables)
    case = "hostile rows, all users, order 2"
    centre = lattice.centres(mechanism, [table.astype(np.int64) for table in tables])
    claimed = mechanism.renyi(2)
    if centre is None:
        return check.judged(
            mechanism, case, Measure.RENYI, math.inf, claimed=claimed, note="the noise depends on the data"
        )
    squares = lattice.largest_squares(lattice.shifts(centre, pairs))
    return check.judged(mechanism, case, Measure.RENYI, float(squares / mechanism.noise_law.width), claimed=claimed)


def law_exactly(mechanism: _Step, dimension: int, bits: int, *, outputs: int | None = None) -> Finding:
    """Every table of up to two users around a bound of 2^bits steps, with one of them added or removed, in both directions."""
    most = 1 << bits
    line = sorted({-most, 0, 1, most, 25 * most})
    tables = domains.tables(list(product(line, repeat=dimension)), 2 if dimension == 1 else 1)
    pairs = domains.added_or_removed(tables)
    reach = (_ORDERS[-1] + 2) * most + math.ceil(
        9.0 * math.sqrt(mechanism.noise_law.width)
    )  # beyond it: 1e-18 of any sum
    outputs = dimension if outputs is None else outputs
    window = np.array(list(product(range(-reach, reach + 1), repeat=outputs)))
    laws = np.stack([mechanism.pmf(window, table.astype(np.int64)) for table in tables])
    found = [
        (float(exact.renyi(laws[first], laws[second], float(order)).max()), mechanism.renyi(order), order)
        for first, second in (exact.both_ways(len(tables), pairs).T,)
        for order in _ORDERS
    ]
    loss, claimed, order = max(found, key=lambda one: (max(one[0] - one[1], exact.TOLERANCE), one[2]))
    case = (
        f"{len(pairs)} pairs of tables, bound {most}, {outputs} outputs, order {order} of {_ORDERS[0]} to {_ORDERS[-1]}"
    )
    return check.judged(mechanism, case, Measure.RENYI, loss, claimed=claimed)


def one_step_epsilon(mechanism: SampledGaussian) -> float:
    """The true epsilon at delta of one step on one coordinate, by sums over the lattice; the worse of the two directions."""
    variance, most, rate = mechanism.noise_law.width, mechanism.bound_in_steps, float(mechanism.rate)

    def tail(n: int) -> float:
        return float(lattice.gaussian_tail(n, variance))

    def threshold(ratio: float) -> Fraction:  # where e^((2 n most - most^2) / 2 variance) is ``ratio``
        return Fraction(math.log(ratio)) * variance / most + Fraction(most, 2)

    def delta(epsilon: float) -> float:
        first = math.floor(threshold((math.expm1(epsilon) + rate) / rate)) + 1
        added = rate * tail(first - most) - (math.expm1(epsilon) + rate) * tail(first)
        ratio = (math.expm1(-epsilon) + rate) / rate
        if ratio <= 0.0:
            return added
        first = math.ceil(threshold(ratio))  # below it the output speaks for the user's absence
        removed = (1.0 - math.exp(epsilon) * (1.0 - rate)) * (1.0 - tail(first))
        return max(added, removed - math.exp(epsilon) * rate * (1.0 - tail(first - most)))

    return _smallest(delta, mechanism.delta)


def one_step_epsilon_of_normal_laws(multiplier: float, rate: float, delta: float) -> float:
    """The same for a continuous law, in closed form; a user added is the worse direction."""
    from scipy.special import ndtr

    def delta_at(epsilon: float) -> float:
        odds = math.expm1(epsilon) + rate
        edge = multiplier**2 * math.log(odds / rate) + 0.5
        return float(rate * ndtr((1.0 - edge) / multiplier) - odds * ndtr(-edge / multiplier))

    return _smallest(delta_at, delta)


def _smallest(delta_at: Callable[[float], float], delta: float) -> float:
    low, high = 0.0, 1.0
    while delta_at(high) > delta:
        high *= 2.0
    for _ in range(80):
        middle = (low + high) / 2.0
        low, high = (low, middle) if delta_at(middle) <= delta else (middle, high)
    return high


def _all_users() -> SampledGaussian:
    """Everybody is in the sample, so that two releases under the same bytes differ by their centres alone."""
    return SampledGaussian(3, 1.0, 1e-6, Fraction(1), 1)


def _on_a_line(rate: Fraction = _QUARTER, epsilon: float = 1.0) -> SampledGaussian:
    return SampledGaussian(1, epsilon, 1e-6, rate, 1, grid_bits=2)


def _two_steps(kind: type[TwoSteps]) -> TwoSteps:
    return kind(SampledGaussian(1, 2.0, 1e-3, _QUARTER, 2, grid_bits=1))


def _one_step_at_delta(noise: Noise, draws: Draws) -> Finding:
    mechanism = SampledGaussian(1, 1.0, 1e-6, _QUARTER, 1)
    return check.judged(
        mechanism,
        "one step, the epsilon at delta = 1e-06",
        Measure.EPSILON,
        one_step_epsilon(mechanism),
        reference=one_step_epsilon_of_normal_laws(mechanism.noise_multiplier, 0.25, mechanism.delta),
        note="what converting Renyi divergences to (epsilon, delta) gives away",
    )


def _noise(noise: Noise, draws: Draws) -> Finding:
    mechanism = SampledGaussian(draws.batched, 2.0, 1e-6, _QUARTER, 1)
    drawn = mechanism.release(np.zeros((1, draws.batched), dtype=np.int64), noise).value.steps

    def fit(law: SampledGaussian) -> float:
        variance = law.noise_law.width
        return distribution.lattice_p_value(drawn, lambda n: lattice.gaussian_tail(-n, variance))

    return check.sampled(
        mechanism,
        fit(mechanism),
        fit(distribution.off_by(mechanism)),
        loss=one_step_epsilon(mechanism),
        draws=draws.batched,
        case="the noise of one step, 2^20 steps",
    )


def _sample(noise: Noise, draws: Draws) -> Finding:
    mechanism = SampledGaussian(1, 2.0, 1e-6, _QUARTER, 1)
    chosen = mechanism.sample(draws.batched, noise).size
    counts = np.array([draws.batched - chosen, chosen])

    def fit(rate: float) -> float:
        return distribution.p_value(counts, [1.0 - rate, rate])

    loss = one_step_epsilon(mechanism)
    return check.sampled(
        mechanism, fit(0.25), fit(0.275), loss=loss, draws=draws.batched, case="who is in a sample (rate off by 10 %)"
    )


def _empirical(mechanism: Any, noise: Noise, draws: Draws) -> Finding:
    """A table with and without a user whose row is as long as it may be; she is in the sample every other time."""
    rest = np.array([[1_000, 2_000, 3_000], [0, -_MOST, 0]])
    row = np.array([[_MOST, 0, 0]])

    def drawn(rows: NDArray[np.int64]) -> NDArray[np.float64]:
        return check.many(lambda: mechanism.release(rows, noise).value.to_floats()[0], draws.single)

    bound = empirical.lower_bound_by_threshold(
        drawn(rest), drawn(np.vstack([rest, row])), delta=mechanism.guarantee.delta
    )
    return check.from_below(mechanism, bound, case="3 coordinates, a full row added")
