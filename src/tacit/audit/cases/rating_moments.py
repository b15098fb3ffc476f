"""Moments of ratings: hostile rows, every small table of them, every neighbouring pair; then the law of the noise."""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from tacit.audit import check, distribution, domains, empirical, lattice
from tacit.audit.cases import Case, Draws, FromOutside, Twin
from tacit.audit.findings import By, Finding, Measure
from tacit.audit.twins.rating_moments import (
    AllRatings,
    BudgetTwice,
    CommonMean,
    DiagonalForFree,
    HeadOfTrueCounts,
    KeptDiagonal,
    LocalScale,
    NotClipped,
    RowsOfAnyNorm,
    UncountedMask,
)
from tacit.mechanisms import OffsetSums, PairMoments, RatingBounds, RatingMoments, ReplayedNoise, TransferMoments
from tacit.mechanisms.noise import Noise, words64

_MU, _DELTA, _ITEMS = 0.8, 1e-6, 5
_NAN, _INF = math.nan, math.inf
_FIXED, _OWN = RatingBounds(1.0, 5.0, centre=3.0), RatingBounds(1.0, 5.0)
_LOWEST = RatingBounds(1.0, 5.0, centre=1.0)  # a 5 is 4 above it, twice the clip
_ROWS = (  # NaN: not rated
    (_NAN, _NAN, _NAN, _NAN, _NAN),
    (5.0, 1.0, 5.0, 1.0, _NAN),  # four ratings at the clip: the longest row that is not cut
    (5.0, 5.0, 5.0, 5.0, _NAN),
    (5.0, 5.0, 5.0, 5.0, 5.0),
    (1e308, -1e308, 5.0, _INF, 1.0),
    (4.0, 2.7, _NAN, -_INF, 0.0),
    (_NAN, _NAN, 5.0, _NAN, _NAN),
    (3.0, 3.0, 3.0, 3.0, 5e-324),
)
_FEW = tuple(row for row in _ROWS if sum(map(math.isfinite, row)) <= 4)
_HEAD = (3, 0, 2, 1)
_SAMPLES = range(12)  # of which ratings count


def cases() -> list[Case]:
    found = []
    for bounds, what, longest in (
        (_FIXED, "hostile rows less a constant", 2.0),
        (_OWN, "hostile rows less their own means", 2.0),
        (_LOWEST, "hostile rows beyond the clip", 8.0),  # of pairs, too, the clip alone sets how far a user moves them
    ):
        offsets, pairs, moments, transfer = _mechanisms(bounds, longest)
        found += [
            Case(offsets.name, By.EXACT, _rows(offsets, what)),
            Case(pairs.name, By.EXACT, _rows(pairs, what)),
            Case(moments.name, By.EXACT, _rows(moments, f"{what}, at most four ratings each", _FEW)),
            Case(moments.name, By.EXACT, _drawn_rows(moments, f"{what}, four ratings of five")),
            Case(transfer.name, By.EXACT, _steps(transfer, f"{what}, every head")),
        ]
    return [
        *found,
        Case(offsets.name, By.DISTRIBUTION, _sampler(OffsetSums(2_000, _OWN, _MU, _DELTA))),
        Case(pairs.name, By.DISTRIBUTION, _sampler(PairMoments(63, tuple(range(63)), _OWN, _MU, _DELTA))),
        Case(moments.name, By.DISTRIBUTION, _sampler(RatingMoments(60, 30, _OWN, _MU, _DELTA))),
        Case(transfer.name, By.DISTRIBUTION, _sampler(TransferMoments(60, 30, _OWN, _MU, _DELTA, head_size=50))),
        *(look.case() for look in from_outside()),
    ]


def twins() -> list[Twin]:
    offsets, pairs, moments, transfer = _mechanisms(_FIXED)
    _, _, clipped, _ = _mechanisms(_LOWEST)
    found: list[tuple[Any, str, str, Any]] = [
        (UncountedMask(offsets), offsets.name, "counts are released beside the ratings as if they were free", _rows),
        (CommonMean(offsets), offsets.name, "ratings are centred by the mean of all users", _rows),
        (KeptDiagonal(pairs), pairs.name, "the diagonal is released with the noise for pairs", _rows),
        (RowsOfAnyNorm(pairs), pairs.name, "ratings are clipped, rows are not cut", _rows),
        (AllRatings(moments), moments.name, "all ratings count, with the noise for four of them", _drawn_rows),
        (NotClipped(clipped), moments.name, "ratings are not clipped, only rows are cut", _drawn_rows),
        (DiagonalForFree(moments), moments.name, "the noise for pairs on the diagonal too", _drawn_rows),
        (LocalScale(moments), moments.name, "noise for the longest row that is there", _drawn_rows),
        (HeadOfTrueCounts(transfer), transfer.name, "pairs of the items that are truly rated most", _steps),
        (BudgetTwice(transfer), transfer.name, "each of the two steps is given all of mu", _steps),
    ]
    return [
        *(Twin(twin.name, of, fault, look(twin, "hostile rows")) for twin, of, fault, look in found),
        *(look.twin() for look in from_outside()),
    ]


def from_outside() -> list[FromOutside]:
    return [FromOutside(mechanism, _empirical) for mechanism in _looked_at()]


def _mechanisms(
    bounds: RatingBounds, longest: float = 2.0
) -> tuple[OffsetSums, PairMoments, RatingMoments, TransferMoments]:
    """Four ratings at the clip attain every bound: (2^2 + 1.5^2) * 4 = 5^2, 2^2 * 4 = 4^2, and half as long where that is cut.

    ``longest`` is the norm to which pairs are cut: half of 4, or so long that none of four items at the clip is cut.
    """
    return (
        OffsetSums(_ITEMS, bounds, _MU, _DELTA, norm=5.0, mask=1.5),
        PairMoments(_ITEMS, _HEAD, bounds, _MU, _DELTA, norm=longest),
        RatingMoments(_ITEMS, 2, bounds, _MU, _DELTA, most_items=4, norm=4.0),
        TransferMoments(_ITEMS, 2, bounds, _MU, _DELTA, 4, offset_norm=5.0, mask=1.5, pair_norm=longest),
    )


def _rows(mechanism: Any, what: str, rows: Any = _ROWS) -> Any:
    """The rho that is spent: each number's squared shift between neighbours over twice the variance of its noise."""

    def run(noise: Noise, draws: Draws) -> Finding:
        tables = domains.tables(rows, 2)
        case = f"{what}, one added or removed"
        centre = lattice.centres(mechanism, tables)
        if centre is None:
            return check.judged(mechanism, case, Measure.RHO, _INF, note="the noise depends on the data")
        pairs = domains.added_or_removed(tables)
        return _judged(mechanism, case, _most(centre[pairs[:, 0]] - centre[pairs[:, 1]], mechanism))

    return run


def _drawn_rows(mechanism: Any, what: str) -> Any:
    """The same where chance decides which ratings of a user count: one user against nobody, for many samples of her ratings."""

    def run(noise: Noise, draws: Draws) -> Finding:
        nobody = np.zeros((0, _ITEMS))
        case = f"{what}, one added or removed"
        moved = []
        for seed in _SAMPLES:
            without = mechanism.release(nobody, ReplayedNoise(seed)).value.steps
            for row in _ROWS:
                moved.append(mechanism.release(np.array([row]), ReplayedNoise(seed)).value.steps - without)
        return _judged(mechanism, case, _most(np.stack(moved), mechanism))

    return run


def _steps(mechanism: Any, what: str) -> Any:
    """Two steps, the second on a head that must follow from what the first released: both costs, for every head."""

    def run(noise: Noise, draws: Draws) -> Finding:
        # each step by itself is looked at with users in every order; here in one
        chosen = [users for size in range(3) for users in combinations_with_replacement(_ROWS, size)]
        tables = [np.array(users).reshape(-1, _ITEMS) for users in chosen]
        case = f"{what}, one added or removed"
        if not all(_head_follows(mechanism, tables[-1 - seed], seed) for seed in _SAMPLES):
            return check.judged(mechanism, case, Measure.RHO, _INF, note="the head tells more than was released")
        pairs = domains.added_or_removed(tables)
        first = lattice.centres(mechanism.offsets, tables)
        heads = [mechanism.pairs(head) for head in combinations(range(_ITEMS), 4)]
        # every head adds the same noise, which is looked at closely for the first of them
        second = [(part, lattice.centres(part, tables, closely=part is heads[0])) for part in heads]
        if first is None or any(centre is None for _, centre in second):
            return check.judged(mechanism, case, Measure.RHO, _INF, note="the noise depends on the data")
        costs = _costs(first[pairs[:, 0]] - first[pairs[:, 1]], mechanism.offsets)
        later = [
            _costs(centre[pairs[:, 0]] - centre[pairs[:, 1]], part) for part, centre in second if centre is not None
        ]
        return _judged(mechanism, case, max(one + max(two) for one, *two in zip(costs, *later, strict=True)))

    return run


def _head_follows(mechanism: Any, rows: NDArray[np.float64], seed: int) -> bool:
    """Whether the head of a release is that of its noisy counts: the largest first, of equals the lower item."""
    value = mechanism.release(rows, ReplayedNoise(seed)).value
    counts = value.offsets.steps[_ITEMS:].tolist()
    wanted = sorted(range(_ITEMS), key=lambda item: (-counts[item], item))[: value.head.size]
    return bool(sorted(wanted) == value.head.tolist())


def _judged(mechanism: Any, case: str, rho: Fraction) -> Finding:
    return check.judged(mechanism, case, Measure.RHO, float(rho))


def _most(moved: NDArray[np.int64], mechanism: Any) -> Fraction:
    return max(_costs(np.unique(moved, axis=0), mechanism))


def _costs(moved: NDArray[np.int64], mechanism: Any) -> list[Fraction]:
    variances = _variances(mechanism)
    if len(variances) == 1:
        return [Fraction(sum(int(x) ** 2 for x in row)) / (2 * variances[0][0]) for row in moved]
    costs = []
    for row in moved:
        left = iter(row.tolist())
        costs.append(sum((Fraction(next(left)) ** 2 / (2 * v) for v, n in variances for _ in range(n)), Fraction(0)))
    return costs


def _variances(mechanism: Any) -> list[tuple[Fraction, int]]:
    """The variance of the noise on each stretch of numbers, and how many numbers it has."""
    real = getattr(mechanism, "real", mechanism)
    if isinstance(real, RatingMoments):
        lengths = (real.items * (real.items + 1) // 2, real.items, real.items, 3)
        own = tuple(law.width for law in real.noise_laws)
        parts = mechanism.parts(np.array(_ROWS[1:2])) if mechanism is not real else own
        return list(zip(parts, lengths, strict=True))
    if isinstance(real, TransferMoments):
        pairs = real.pairs(range(min(real.items, real.head_size)))
        return [(step.noise_law.width, step.length) for step in (real.offsets, pairs)]
    return [(real.noise_law.width, real.length)]


def _flat(value: Any) -> NDArray[np.int64]:
    return np.asarray(
        value.steps if hasattr(value, "steps") else np.concatenate([value.offsets.steps, value.pairs.steps])
    )


def _sampler(mechanism: Any) -> Any:
    """Releases of nobody's ratings: the noise alone, each number against a normal law rounded to whole steps."""

    def run(noise: Noise, draws: Draws) -> Finding:
        nobody, variances = np.zeros((0, mechanism.items)), _variances(mechanism)
        sd = np.concatenate([np.full(n, math.sqrt(v)) for v, n in variances])
        times = -(-draws.batched // sd.size)
        steps = np.stack([_flat(mechanism.release(nobody, noise).value) for _ in range(times)])
        within = (words64(noise, steps.size).astype(np.float64) * 2.0**-64).reshape(steps.shape)

        def fit(off: float) -> float:
            # a place drawn within the step makes a number's rank under the law uniform
            low, high = ndtr((steps - 0.5) / (sd * off)), ndtr((steps + 0.5) / (sd * off))
            rank = np.clip((low + within * (high - low)) * 100.0, 0, 99).astype(np.int64)
            return distribution.p_value(distribution.counts_of(rank.reshape(-1), 100), np.full(100, 0.01))

        variance = variances[0][0]
        return check.sampled(
            mechanism,
            fit(1.0),
            fit(math.sqrt(10.0 / 11.0)),
            loss=lattice.gaussian_epsilon(math.floor(mechanism.mu * math.sqrt(variance)), variance, mechanism.delta),
            draws=steps.size,
            case="nobody's ratings",
            off="5 % (a variance off by 10 %)",
        )

    return run


_PLACES, _EACH = 80, 4  # items, four of them for each of twenty users


def _looked_at() -> Sequence[Any]:
    mu, delta, half = 1.0, 0.01, _PLACES // 2
    return (
        OffsetSums(_PLACES, _FIXED, mu, delta, norm=2.5),
        PairMoments(_PLACES, tuple(range(_PLACES)), _FIXED, mu, delta, norm=2.5),
        RatingMoments(_PLACES, half, _FIXED, mu, delta, most_items=_EACH, norm=2.5),
        TransferMoments(_PLACES, half, _FIXED, mu, delta, _PLACES, offset_norm=2.5, pair_norm=2.5),
    )


def _empirical(mechanism: Any, noise: Noise, draws: Draws) -> Finding:
    """Every user rated four items of her own, or nobody rated any: a user moves her own numbers alone, so each is a trial."""
    real = {one.name: one for one in _looked_at()}[getattr(mechanism, "runs", mechanism).name]
    rows = np.full((_PLACES // _EACH, _PLACES), _NAN)
    for user in range(len(rows)):
        rows[user, _EACH * user : _EACH * (user + 1)] = 5.0
    nobody = np.zeros((0, _PLACES))
    steps = (real.offsets, real.pairs(range(_PLACES))) if isinstance(real, TransferMoments) else (real,)
    variance = np.concatenate([np.full(n, float(v)) for v, n in _variances(real)])
    alone = np.stack([np.concatenate([step.totals(row[None, :]) for step in steps]) for row in rows])
    if isinstance(real, RatingMoments):
        alone[:, -3:] = 0  # the counts of users are everybody's
    weight = alone / variance  # the likelihood ratio of each user's numbers

    def drawn(table: NDArray[np.float64]) -> NDArray[np.float64]:
        times = -(-draws.single // len(rows))
        return np.concatenate([weight @ _flat(mechanism.release(table, noise).value) for _ in range(times)])

    bound = empirical.lower_bound_by_threshold(drawn(nobody), drawn(rows), delta=mechanism.guarantee.delta)
    return check.from_below(mechanism, bound, case="a user with four ratings added")
