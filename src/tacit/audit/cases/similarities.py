"""Noisy similarities: users who agree, few raters among many, two pairs at once, one more user of every kind, and the two laws
that stand furthest apart."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.audit import check, distribution, empirical, laplace_forms
from tacit.audit.cases import Case, Draws, FromOutside, Twin
from tacit.audit.findings import By, Finding
from tacit.audit.twins.similarities import (
    DeltaForEachPair,
    EpsilonForEachPair,
    LargerNorm,
    NoRoomForRounding,
    NotSmoothed,
    RatingsNotCut,
    SmoothedTwiceAsFast,
)
from tacit.guarantees import Guarantee
from tacit.mechanisms import SmoothSimilarity
from tacit.mechanisms.noise import Noise
from tacit.mechanisms.samplers import discrete_laplace
from tacit.mechanisms.smooth_similarity import NoisyLaw

_NAME = SmoothSimilarity.name
_BOUND = 2.0
_PAIR, _TWO_PAIRS = ((0, 1),), ((0, 1), (2, 3))
_MOST = 8  # users who agree
_MANY = 400  # of so many users the norm, and no database further away, sets the scale
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
        self.name, self.guarantee = mechanism.name, mechanism.guarantee
        end = mechanism.grid + math.ceil(_REACH * widest)
        self._outputs = np.arange(-end, end + 1)

    def pmf(self, laws: Sequence[NoisyLaw]) -> NDArray[np.float64]:
        """Of all pairs at once, drawn one apart from the other."""
        each = [discrete_laplace.pmf(self._outputs - law.centre, law.scale) for law in laws]
        return np.asarray(reduce(np.multiply.outer, each)).reshape(-1)


class OneOfMany:
    """One pair of a mechanism with many, against its share of what is claimed of all: epsilons and deltas add up."""

    def __init__(self, mechanism: Any) -> None:
        claim, count = mechanism.guarantee, len(mechanism.pairs)
        self.name, self._mechanism = mechanism.name, mechanism
        self.guarantee: Guarantee = replace(claim, epsilon=claim.epsilon / count, delta=claim.delta / count)

    def laws(self, rows: Any) -> Any:
        return self._mechanism.laws(rows)[:1]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._mechanism, name)


def cases() -> list[Case]:
    looks = [
        _tables(_small(), agree(range(_MOST + 1)), f"{_MOST} users who agree"),
        _tables(_near(), agree(range(1, 25)), "24 users who agree"),
        _tables(_coarse(), agree([_MANY]), f"{_MANY} users who agree, on a coarse grid"),
        _tables(_unequal(), few_of_many(), "one of 200 rated both items"),
        _tables(_two_pairs(), agree([2, 4], items=4), "two pairs, 4 users who agree", _COMING[:2]),
        *(
            _furthest(SmoothSimilarity(2, _PAIR, epsilon, delta, grid=8 * _MANY), f"delta = {delta:g}")
            for epsilon, delta in ((1.0, 1e-3), (4.0, 1e-6))
        ),
        _furthest(_many_pairs(), "one of 64 pairs"),
    ]
    return [
        *(Case(_NAME, By.EXACT, look) for look in looks),
        Case(_NAME, By.DISTRIBUTION, _sampler),
        *(look.case() for look in from_outside()),
    ]


def twins() -> list[Twin]:
    few, spread = agree(range(_MOST + 1)), agree([2, 4], items=4)
    found: list[tuple[Any, str, Any]] = [
        (
            NotSmoothed(_small()),
            "noise scaled to what this very database can change by, which is right and not enough",
            (few, "users who agree"),
        ),
        (
            SmoothedTwiceAsFast(_near()),
            "databases further away are discounted twice as fast as they may be",
            (agree(range(1, 25)), "users who agree"),
        ),
        (
            RatingsNotCut(_small()),
            "ratings are taken as they are, with noise for those within the bound",
            (few, "users who agree"),
        ),
        (
            NoRoomForRounding(_coarse()),
            "the scale leaves out the step by which rounding moves a similarity",
            (agree([_MANY]), "users who agree"),
        ),
        (
            LargerNorm(_unequal()),
            "the item that more users rated sets the noise",
            (few_of_many(), "few of many"),
        ),
        (
            EpsilonForEachPair(_two_pairs()),
            "each of two pairs is given all of epsilon",
            (spread, "two pairs", _COMING[:2]),
        ),
    ]
    shares = DeltaForEachPair(_many_pairs())
    return [
        *(Twin(twin.name, _NAME, fault, _tables(twin, *look)) for twin, fault, look in found),
        Twin(shares.name, _NAME, "each of 64 pairs is given all of delta", _furthest(shares, "one of 64 pairs")),
        *(look.twin() for look in from_outside()),
    ]


def from_outside() -> list[FromOutside]:
    return [FromOutside(SmoothSimilarity(2, _PAIR, 2.0, 0.01), _empirical)]


def _small() -> SmoothSimilarity:
    return SmoothSimilarity(2, _PAIR, 1.0, 0.01, bound=_BOUND, grid=8)


def _near() -> SmoothSimilarity:
    """From a few to twenty users their scale and their cosine both change by much."""
    return SmoothSimilarity(2, _PAIR, 4.0, 1e-6, grid=64)


def _coarse() -> SmoothSimilarity:
    """One more of 400 users moves a cosine by 1/200 and, rounded, by all of 1."""
    return SmoothSimilarity(2, _PAIR, 1.0, 0.01, grid=1)


def _unequal() -> SmoothSimilarity:
    return SmoothSimilarity(2, _PAIR, 4.0, 1e-6, grid=256)


def _two_pairs() -> SmoothSimilarity:
    return SmoothSimilarity(4, _TWO_PAIRS, 16.0, 1e-3, grid=16)


def _many_pairs() -> SmoothSimilarity:
    """The bound on delta is a bound: the laws furthest apart miss a sixth of it. Of so many pairs even that tells what each got."""
    return SmoothSimilarity(2, _PAIR * _TOGETHER, 0.5 * _TOGETHER, 1e-6 * _TOGETHER, grid=8 * _MANY)


def agree(sizes: Iterable[int], items: int = 2) -> list[NDArray[np.float64]]:
    return [np.full((users, items), _BOUND) for users in sizes]


def few_of_many() -> list[NDArray[np.float64]]:
    """Of 200 who rated one item a single one rated the other, the second or the first: its norm is much the smaller one."""
    rows = np.full((200, 2), _BOUND)
    rows[1:, 1] = 0.0
    return [rows, rows[:, ::-1]]


def with_one_more(
    tables: Sequence[NDArray[np.float64]], coming: Sequence[tuple[float, float]]
) -> tuple[list[NDArray[np.float64]], NDArray[np.int64]]:
    """Each table, each with one more user of every kind (the same of every pair of items), and which of them are neighbours."""
    found: list[NDArray[np.float64]] = []
    pairs = []
    for table in tables:
        here = len(found)
        found.append(table)
        for user in coming:
            pairs.append((here, len(found)))
            found.append(np.concatenate([table, [np.tile(user, table.shape[1] // 2)]]))
    return found, np.array(pairs)


def _tables(mechanism: Any, *look: Any) -> Any:
    return lambda noise, draws: tables_exactly(mechanism, *look)


def tables_exactly(
    mechanism: _NoisyLike,
    tables: Sequence[NDArray[np.float64]] | None = None,
    case: str = "users who agree",
    coming: Sequence[tuple[float, float]] = _COMING,
) -> Finding:
    """Users, with and without one more, at the claimed delta; beside it the same by geometric sums."""
    found, pairs = with_one_more(agree(range(_MOST + 1)) if tables is None else tables, coming)
    return _judged(mechanism, [mechanism.laws(table) for table in found], pairs, f"{case}, one more")


def _furthest(mechanism: Any, what: str) -> Any:
    """Scales that differ by all of e^beta, centres by all that the smaller scale, that of many users, is made for."""

    def run(noise: Noise, draws: Draws) -> Finding:
        one = OneOfMany(mechanism)
        narrow = one.laws(agree([_MANY])[0])[0].scale
        apart = 2 * mechanism.grid // _MANY + 1
        laws = [[NoisyLaw(0, narrow * (1 + Fraction(mechanism.growth)))], [NoisyLaw(apart, narrow)]]
        return _judged(one, laws, np.array([(0, 1)]), f"laws as far apart as they may be, {what}")

    return run


def _judged(mechanism: _NoisyLike, laws: Sequence[Sequence[NoisyLaw]], pairs: NDArray[np.int64], case: str) -> Finding:
    widest = max(float(law.scale) for table in laws for law in table)
    reference = max(_epsilon(laws[i], laws[j], mechanism.guarantee.delta) for i, j in pairs)
    return check.exactly(_Windowed(mechanism, widest), laws, pairs, case=case, reference=reference, note=_WHY)


def _epsilon(here: Sequence[NoisyLaw], there: Sequence[NoisyLaw], delta: float) -> float:
    """By geometric sums: of one pair, or of two, whose noise is drawn one apart from the other."""
    (one, *rest), (other, *other_rest) = ([(law.centre, float(law.scale)) for law in laws] for laws in (here, there))
    if not rest:
        return laplace_forms.epsilon_of_laplaces(one, other, delta)
    (second,), (other_second,) = rest, other_rest
    forwards, backwards = laplace_forms.chances_and_losses(one, other), laplace_forms.chances_and_losses(other, one)

    def missed(epsilon: float) -> float:
        return max(
            laplace_forms.delta_together(
                forwards, lambda left: laplace_forms.delta_of_laplaces(second, other_second, left), epsilon
            ),
            laplace_forms.delta_together(
                backwards, lambda left: laplace_forms.delta_of_laplaces(other_second, second, left), epsilon
            ),
        )

    return laplace_forms.smallest_epsilon(missed, delta)


def _sampler(noise: Noise, draws: Draws) -> Finding:
    """So many pairs of the same two items at once: each of them is drawn as one alone would be. A scale that is off by a tenth
    shows in a quarter of the draws: it is 16 deviations of their mean size away."""
    count = draws.batched // 4
    rows = np.tile([[2.0, 1.0], [-1.0, -2.0]], (40, 1))
    one = SmoothSimilarity(2, _PAIR, 2.0, 1e-6, grid=1 << 10)
    many = SmoothSimilarity(2, _PAIR * count, 2.0 * count, 1e-6 * count, grid=1 << 10)
    steps = np.rint(many.release(rows, noise).value * many.grid).astype(np.int64)

    def fit(mechanism: SmoothSimilarity) -> float:
        law = mechanism.laws(rows)[0]

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
    (rows,) = agree([29])
    tables = rows, np.concatenate([rows, [[_BOUND, -_BOUND]]])
    first, second = (drawn(mechanism, table, noise, draws.single) for table in tables)
    guarantee: Guarantee = mechanism.guarantee
    bound = empirical.lower_bound_by_threshold(first, second, delta=guarantee.delta)
    return check.from_below(mechanism, bound, case="29 users who agree, one who does not added")
