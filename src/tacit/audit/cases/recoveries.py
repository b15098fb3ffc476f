"""Sparse recovery: the three steps added up, over hostile rows of few items; then the law of their noise."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.audit import check, distribution, domains, empirical, lattice
from tacit.audit.cases import Case, Draws, FromOutside, Twin
from tacit.audit.findings import By, Finding, Measure
from tacit.audit.twins.mislabelled import Mislabelled
from tacit.audit.twins.prototypes import NoiseOnMeans
from tacit.guarantees import Guarantee, Release
from tacit.mechanisms import GumbelTopK, ProfileBounds, Prototypes, SparseRecovery
from tacit.mechanisms.inputs import VALUE_STEPS as STEPS
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise
from tacit.mechanisms.samplers import integers

_NAME = SparseRecovery.name
_ROWS = (
    (0.0, 0.0, 0.0),
    (5.0, 0.0, 0.0),
    (9.0, 1e300, -3.0),
    (5.0, 5.0, 5.0),
    (math.nan, math.inf, 2.5),
)
_CLUSTERS = 40
_WIDE = 2.0**40  # so many users at least: means are then far from being cut, and show the noise to the last step


@dataclass(frozen=True)
class _OfClusters:
    """Rows and the clusters they are in, as one input."""

    rule: SparseRecovery

    @property
    def name(self) -> str:
        return self.rule.name

    @property
    def guarantee(self) -> Guarantee:
        return self.rule.guarantee

    def release(self, raw: tuple[NDArray[np.float64], NDArray[np.int64]], noise: Noise) -> Release[Prototypes]:
        return self.rule.release(*raw, noise)


def cases() -> list[Case]:
    return [
        Case(_NAME, By.EXACT, lambda noise, draws: _steps(_made(items_each=3, picked=3))),
        Case(_NAME, By.EXACT, lambda noise, draws: _steps(_made(items_each=2, picked=1))),
        Case(_NAME, By.DISTRIBUTION, _sampler),
        *(look.case() for look in from_outside()),
    ]


def twins() -> list[Twin]:
    one_shot = _made(items_each=3, picked=2, select=2.0)
    return [
        Twin(
            NoiseOnMeans.name,
            _NAME,
            "noise on means as published: its scale tells how many users there are",
            lambda noise, draws: _at_the_mean(NoiseOnMeans(values=165, epsilon=0.1), users=12),
        ),
        Twin(
            "picks-paid-once",
            _NAME,
            "each of several picks spends the epsilon that is claimed for all, as published",
            lambda noise, draws: _picks(one_shot),
        ),
        *(look.twin() for look in from_outside()),
    ]


def from_outside() -> list[FromOutside]:
    bounds = ProfileBounds(1, 1, 5.0)
    return [FromOutside(_OfClusters(SparseRecovery(bounds, _CLUSTERS, 1, 0.2, 0.2, 1.6, _WIDE)), _empirical)]


def _made(*, items_each: int, picked: int, select: float = 0.4) -> SparseRecovery:
    return SparseRecovery(ProfileBounds(3, items_each, 5.0), 1, picked, 0.1, select, 0.5)


def _steps(mechanism: SparseRecovery) -> Finding:
    """Size, choice and values: the worst sum of the three losses, over all choices of items and both directions.

    Given the choice, a size moves by 1 and the sums of the chosen items by the user's own numbers; a Laplace law loses the L1
    norm of that over its scale.
    """
    tables = domains.tables(_ROWS, 2)
    sums = [np.asarray(mechanism.bounds.bounded(table, SYSTEM_NOISE).sum(axis=0)).ravel() for table in tables]
    if (
        mechanism.bounds.items_each < 3
    ):  # which numbers of a row stay is drawn; rows of no more than that many are looked at
        few = [
            i for i, table in enumerate(tables) if all((np.nan_to_num(row, posinf=0) > 0).sum() < 3 for row in table)
        ]
        tables, sums = [tables[i] for i in few], [sums[i] for i in few]
    size = float(1 / mechanism.count_scale)
    choices, laws, slow = _choices(mechanism, sums)
    loss = reference = 0.0
    for first, second in domains.added_or_removed(tables):
        moved = np.abs(sums[first] - sums[second])
        values = np.array([float(Fraction(int(moved[list(one)].sum())) / mechanism.value_scale) for one in choices])
        for law, kind in ((laws, 0), (slow, 1)):
            ratio = float((np.abs(np.log(law[first]) - np.log(law[second])) + values).max()) + size
            loss, reference = (max(loss, ratio), reference) if kind == 0 else (loss, max(reference, ratio))
    case = f"{mechanism.picked} of 3 items, hostile rows, one added or removed"
    note = "the normaliser of the choice moves along"
    return check.judged(mechanism, case, Measure.EPSILON, loss, reference=reference, note=note)


def _choices(
    mechanism: SparseRecovery, sums: list[NDArray[np.int64]]
) -> tuple[list[tuple[int, ...]], list[NDArray[np.float64]], list[NDArray[np.float64]]]:
    """Every choice of items, its law for each sum, and the same law by hand: one item, proportional to e^(rate * sum)."""
    if not mechanism.selects:
        sure = [np.ones(1)] * len(sums)
        return [tuple(range(3))], sure, sure
    by_hand = [np.exp(mechanism.select * (total - total.max()) / STEPS) for total in sums]
    return (
        [tuple(one) for one in mechanism.selection.outcomes(3)],
        [mechanism.selection.pmf(total) for total in sums],
        [weight / weight.sum() for weight in by_hand],
    )


def _picks(mechanism: SparseRecovery) -> Finding:
    """The choice alone, at the epsilon of all picks for each: one-shot Gumbel noise whose scale does not carry their number."""
    real = mechanism.selection
    runs = GumbelTopK(real.scores, real.k, real.epsilon * real.k)
    sums = [np.array(total) * STEPS for total in ((0, 0, 0), (0, 0, 1), (1, 1, 0), (0, 6, 0), (0, 6, 1), (1, 6, 1))]
    pairs = [(0, 1), (0, 2), (3, 4), (3, 5)]
    twin = Mislabelled("picks-paid-once", runs, real.guarantee)
    return check.exactly(twin, sums, pairs, case="2 of 3 items, a full row added")


def _at_the_mean(twin: NoiseOnMeans, users: int) -> Finding:
    loss = twin.log_pmf(0, users + 1) - twin.log_pmf(0, users)
    return check.judged(twin, f"{users} users, one more whose row is the mean", Measure.EPSILON, loss)


def _sampler(noise: Noise, draws: Draws) -> Finding:
    """Clusters of nobody: sizes and sums are their noise alone, each against its law; both must tell ten percent."""
    clusters, items = 250, 20
    bounds = ProfileBounds(items, items, 5.0, l1_bound=20.0, signed=True)
    mechanism = SparseRecovery(bounds, clusters, items, 0.4, 0.1, 0.5, _WIDE)
    sizes, sums = [], []
    for _ in range(-(-draws.batched // (4 * clusters * items))):
        found = mechanism.release(np.zeros((0, items)), np.zeros(0, dtype=np.int64), noise).value
        sizes.append(found.sizes)
        sums.append(np.rint(found.centres * (_WIDE / float(bounds.step))).ravel())
    while sum(map(len, sizes)) < draws.batched // 10:
        few = SparseRecovery(ProfileBounds(1, 1, 5.0), 1 << 12, 1, 0.4, 0.1, 0.5, _WIDE)
        sizes.append(few.release(np.zeros((0, 1)), np.zeros(0, dtype=np.int64), noise).value.sizes)
    drawn = [np.concatenate(one).astype(np.int64) for one in (sizes, sums)]

    def fit(numbers: NDArray[np.int64], scale: Fraction) -> float:
        return distribution.lattice_p_value(numbers, lambda n: integers.discrete_laplace_cdf(n, scale))

    laws = list(zip(drawn, (mechanism.count_scale, mechanism.value_scale), strict=True))
    losses = lattice.laplace_loss(mechanism.size_pmf, 1), lattice.laplace_loss(mechanism.value_pmf, bounds.l1_steps)
    return check.sampled(
        mechanism,
        min(1.0, 2.0 * min(fit(numbers, scale) for numbers, scale in laws)),
        max(fit(numbers, scale / Fraction(11, 10)) for numbers, scale in laws),
        loss=sum(losses),
        draws=sum(one.size for one in drawn),
        case="sizes, and sums of 20 items",
    )


def _empirical(mechanism: Any, noise: Noise, draws: Draws) -> Finding:
    """Four full rows in each of forty clusters, or five: a user moves her own cluster alone, so each is a trial."""

    def drawn(users: int) -> NDArray[np.float64]:
        raw = np.full((users * _CLUSTERS, 1), 5.0), np.arange(users * _CLUSTERS) % _CLUSTERS
        times = -(-draws.single // _CLUSTERS)
        return np.concatenate([mechanism.release(raw, noise).value.centres[:, 0] * _WIDE for _ in range(times)])

    return check.from_below(mechanism, empirical.lower_bound_by_threshold(drawn(4), drawn(5)), case="a full row added")
