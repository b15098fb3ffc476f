"""Noisy similarities: users who agree, one more of every kind, and the two laws that stand furthest apart."""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.audit import check, distribution, empirical, laplace_forms
from tacit.audit.cases import Case, Draws, FromOutside, Twin
from tacit.audit.findings import By, Finding
from tacit.audit.twins.similarities import NotSmoothed, RatingsNotCut
from tacit.guarantees import Guarantee
from tacit.mechanisms import SmoothSimilarity
from tacit.mechanisms.noise import Noise
from tacit.mechanisms.samplers import discrete_laplace
from tacit.mechanisms.smooth_similarity import NoisyLaw

_NAME = SmoothSimilarity.name
_BOUND = 2.0
_MOST = 8  # users who agree
_COMING = ((2.0, -2.0), (2.0, 0.0), (1.0, -1.0), (math.nan, 2.0), (50.0, -50.0))
_WHY = "scales of neighbours differ by less than they may, and the bound on delta is a bound"
_TOGETHER = 64  # draws in one release; a power of 2, so that the parts of epsilon and delta are exact
_REACH = 40.0  # scales to either side that are enumerated: e^-40 lies beyond


class _NoisyLike(check.Claims, Protocol):
    @property
    def grid(self) -> int: ...

    def laws(self, rows: Any, /) -> Sequence[NoisyLaw]: ...


class _Windowed:
    """A noisy similarity as a finite law: its outputs up to so far out that e^-40 is left."""

    def __init__(self, mechanism: _NoisyLike, widest: float) -> None:
        self.name, self.guarantee, self._mechanism = mechanism.name, mechanism.guarantee, mechanism
        end = mechanism.grid + math.ceil(_REACH * widest)
        self._outputs = np.arange(-end, end + 1)

    def pmf(self, law: NoisyLaw) -> NDArray[np.float64]:
        return discrete_laplace.pmf(self._outputs - law.centre, law.scale)


def cases() -> list[Case]:
    return [
        Case(_NAME, By.EXACT, lambda noise, draws: tables_exactly(_small())),
        *(Case(_NAME, By.EXACT, _furthest(epsilon, delta)) for epsilon, delta in ((1.0, 1e-3), (4.0, 1e-6))),
        Case(_NAME, By.DISTRIBUTION, _sampler),
        *(look.case() for look in from_outside()),
    ]


def twins() -> list[Twin]:
    faults: dict[type[NotSmoothed] | type[RatingsNotCut], str] = {
        NotSmoothed: "noise scaled to what this very database can change by, which is right and not enough",
        RatingsNotCut: "ratings are taken as they are, with noise for those within the bound",
    }
    return [
        *(
            Twin(kind.name, _NAME, fault, lambda noise, draws, kind=kind: tables_exactly(kind(_small())))  # type: ignore[misc]
            for kind, fault in faults.items()
        ),
        *(look.twin() for look in from_outside()),
    ]


def from_outside() -> list[FromOutside]:
    return [FromOutside(SmoothSimilarity(2, ((0, 1),), 2.0, 0.01), _empirical)]


def _small() -> SmoothSimilarity:
    return SmoothSimilarity(2, ((0, 1),), 1.0, 0.01, bound=_BOUND, grid=8)


def tables_exactly(mechanism: _NoisyLike) -> Finding:
    """Up to eight users who agree, with and without one more, at the claimed delta; beside it the same by geometric sums."""
    tables: list[NDArray[np.float64]] = []
    pairs = []
    for users in range(_MOST + 1):
        agree = np.full((users, 2), _BOUND)
        tables.append(agree)
        here = len(tables) - 1
        for coming in _COMING:
            pairs.append((here, len(tables)))
            tables.append(np.concatenate([agree, [coming]]))
    return _judged(
        mechanism, [mechanism.laws(table)[0] for table in tables], pairs, f"{_MOST} users who agree, one more"
    )


def _furthest(epsilon: float, delta: float) -> Any:
    """Scales that differ by all of e^beta, centres by all that the smaller scale allows."""

    def run(noise: Noise, draws: Draws) -> Finding:
        mechanism = SmoothSimilarity(2, ((0, 1),), epsilon, delta, grid=8)
        wide, apart = Fraction(16.0 * (1.0 + mechanism.growth)), math.floor(epsilon * 16.0 / 2.0)
        laws = [NoisyLaw(0, wide), NoisyLaw(apart, Fraction(16))]
        return _judged(mechanism, laws, [(0, 1)], f"laws as far apart as they may be, delta = {delta:g}")

    return run


def _judged(mechanism: _NoisyLike, laws: Sequence[NoisyLaw], pairs: Sequence[tuple[int, int]], case: str) -> Finding:
    plain = [(law.centre, float(law.scale)) for law in laws]
    delta = mechanism.guarantee.delta
    reference = max(laplace_forms.epsilon_of_laplaces(plain[i], plain[j], delta) for i, j in pairs)
    windowed = _Windowed(mechanism, max(scale for _, scale in plain))
    return check.exactly(windowed, laws, np.array(pairs), case=case, reference=reference, note=_WHY)


def _sampler(noise: Noise, draws: Draws) -> Finding:
    """So many pairs of the same two items at once: each of them is drawn as one alone would be. A scale that is off by a tenth
    shows in a quarter of the draws: it is 16 deviations of their mean size away."""
    count = draws.batched // 4
    agree = np.tile([[2.0, 1.0], [-1.0, -2.0]], (40, 1))
    one = SmoothSimilarity(2, ((0, 1),), 2.0, 1e-6, grid=1 << 10)
    many = SmoothSimilarity(2, ((0, 1),) * count, 2.0 * count, 1e-6 * count, grid=1 << 10)
    steps = np.rint(many.release(agree, noise).value * many.grid).astype(np.int64)

    def fit(mechanism: SmoothSimilarity) -> float:
        law = mechanism.laws(agree)[0]

        def cdf(n: NDArray[np.int64]) -> NDArray[np.float64]:  # what lies beyond the ends is put there
            below = discrete_laplace.cdf(np.asarray(n) - law.centre, law.scale)
            return np.where(np.asarray(n) >= many.grid, 1.0, np.where(np.asarray(n) < -many.grid, 0.0, below))

        return distribution.lattice_p_value(steps, cdf)

    return check.sampled(
        one,
        fit(one),
        fit(distribution.off_by(one)),
        loss=one.epsilon / 2.0,
        draws=count,
        case="80 users who agree",
    )


def drawn(mechanism: Any, table: NDArray[np.float64], noise: Noise, count: int) -> NDArray[np.float64]:
    """So many draws of the one pair of a mechanism, or of what a twin runs: the pair is listed many times in one release, with as
    many times the epsilon and the delta, so that each is drawn as one alone would be."""
    real = getattr(mechanism, "runs", mechanism)
    each = {"epsilon": real.epsilon * _TOGETHER, "delta": real.delta * _TOGETHER}
    many = replace(real, pairs=real.pairs * _TOGETHER, **each)
    times = -(-count // _TOGETHER)
    return np.concatenate([many.release(table, noise).value for _ in range(times)])[:count]


def _empirical(mechanism: Any, noise: Noise, draws: Draws) -> Finding:
    agree = np.full((29, 2), _BOUND)
    tables = agree, np.concatenate([agree, [[_BOUND, -_BOUND]]])
    first, second = (drawn(mechanism, table, noise, draws.single) for table in tables)
    guarantee: Guarantee = mechanism.guarantee
    bound = empirical.lower_bound_by_threshold(first, second, delta=guarantee.delta)
    return check.from_below(mechanism, bound, case="29 users who agree, one who does not added")
