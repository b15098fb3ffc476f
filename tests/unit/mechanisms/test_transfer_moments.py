"""Moments of ratings over two domains: whole sums with exact bounds, noise that fits them, parts that add up."""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, combinations_with_replacement
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from tacit.errors import InvalidInput, InvalidParameter
from tacit.guarantees import ONE_USER, LossKind, rho_for
from tacit.guarantees.gaussian import epsilon_of_gaussian, mu_for
from tacit.mechanisms import (
    SYSTEM_NOISE,
    NoisyOffsets,
    OffsetSums,
    PairMoments,
    RatingBounds,
    RatingMoments,
    ReplayedNoise,
    TotalsOnDemand,
    TransferMoments,
    products,
    totals,
)
from tacit.mechanisms.rating_bounds import CLIP, COARSE
from tacit.mechanisms.samplers import rounded_gaussian
from tests.contracts.mechanism import SECRET
from tests.unit.mechanisms.test_rating_bounds import as_csr, odd_cells, slow_cut, slow_row

OWN, FIXED = RatingBounds(1.0, 5.0), RatingBounds(1.0, 5.0, centre=3.0)
ITEMS, SOURCE, HEAD = 6, 2, (4, 0, 5, 1)
MU, DELTA = 0.8, 1e-6
OFFSETS = OffsetSums(ITEMS, OWN, MU, DELTA)
PAIRS = PairMoments(ITEMS, HEAD, OWN, MU, DELTA)
MOMENTS = RatingMoments(ITEMS, SOURCE, OWN, MU, DELTA, most_items=4)
TRANSFER = TransferMoments(ITEMS, SOURCE, OWN, MU, DELTA, head_size=3)
PARTS = [
    OFFSETS,
    PAIRS,
    MOMENTS,
    replace(OFFSETS, bounds=FIXED),
    replace(PAIRS, bounds=FIXED),
    replace(MOMENTS, bounds=FIXED),
]


def slow_offsets(users: Any, mechanism: OffsetSums) -> list[int]:
    total = [0] * (2 * mechanism.items)
    for cells in users:
        row = slow_row(cells, mechanism.bounds)
        bound, mask = (int(Fraction(length) / mechanism.bounds.step) for length in (mechanism.norm, mechanism.mask))
        cut, marked = slow_cut(row, bound, mask)
        for item, steps in cut.items():
            total[item] += steps
            total[mechanism.items + item] += marked
    return total


def slow_pairs(users: Any, mechanism: PairMoments) -> list[int]:
    bound = int(Fraction(mechanism.norm) / mechanism.bounds.step) // COARSE
    total = []
    rows = []
    for cells in users:
        row = {item: steps for item, steps in slow_row(cells, mechanism.bounds).items() if item in mechanism.head}
        rows.append(slow_cut(row, bound, coarse=COARSE)[0])
    for one, other in combinations(mechanism.head, 2):
        total.append(sum(row.get(one, 0) * row.get(other, 0) for row in rows))
    return total


def slow_moments(users: Any, mechanism: RatingMoments) -> list[int]:
    """Of users with few ratings, of whom none is drawn."""
    bound = int(Fraction(mechanism.norm) / mechanism.bounds.step) // COARSE
    rows = [slow_cut(slow_row(cells, mechanism.bounds), bound, coarse=COARSE)[0] for cells in users]
    pairs = combinations_with_replacement(range(mechanism.items), 2)
    sides = [({item < mechanism.n_source for item in row}) for row in rows]
    return [
        *(sum(row.get(one, 0) * row.get(other, 0) for row in rows) for one, other in pairs),
        *(sum(row.get(item, 0) for row in rows) for item in range(mechanism.items)),
        *(sum(item in row for row in rows) for item in range(mechanism.items)),
        *(sum(side == wanted for side in sides) for wanted in ({True}, {False}, {True, False})),
    ]


def few_odd_cells(rng: np.random.Generator, users: int) -> Any:
    return [[cells[i] for i in range(min(4, len(cells)))] for cells in odd_cells(rng, users, ITEMS)]


def costs(mechanism: Any, change: NDArray[np.int64]) -> Fraction:
    """What a change of the sums costs, as a share of mu^2: its squares over the variance of each number's noise."""
    if isinstance(mechanism, RatingMoments):
        triangle = mechanism.items * (mechanism.items + 1) // 2
        parts = np.split(change, np.cumsum([triangle, mechanism.items, mechanism.items]))
        variances = mechanism.variances_in_steps
    else:
        parts, variances = [change], (mechanism.variance_in_steps,)
    squares = [sum(x * x for x in part.tolist()) for part in parts]
    spent = sum((square / variance for square, variance in zip(squares, variances, strict=True)), Fraction(0))
    return spent / Fraction(mechanism.mu) ** 2


def hostile(rng: np.random.Generator) -> list[NDArray[np.float64]]:
    """Single users, dense: at both ends of the scale, all rated, few rated, beyond the scale, not numbers."""
    rows = [np.array(row, dtype=np.float64) for row in np.ndindex(*([2] * ITEMS))]
    rows = [np.where(row == 0, 1.0, 5.0) for row in rows]
    rows += [np.where(rng.random(ITEMS) < 0.4, math.nan, row) for row in rows]
    rows += [rng.uniform(-3, 9, ITEMS) for _ in range(30)]
    rows += [np.where(rng.random(ITEMS) < 0.3, rng.choice([math.inf, -math.inf, 1e308, 0.0]), 4.0) for _ in range(20)]
    return rows


# --- what is added up


def test_sums_are_those_of_the_slow_reading(rng: np.random.Generator) -> None:
    users = odd_cells(rng, 80, ITEMS)
    few = few_odd_cells(rng, 80)
    for mechanism in (OFFSETS, replace(OFFSETS, bounds=FIXED, norm=1.5, mask=1.7), replace(OFFSETS, norm=100.0)):
        assert mechanism.totals(as_csr(users, ITEMS)).tolist() == slow_offsets(users, mechanism)
    for pairs in (PAIRS, replace(PAIRS, bounds=FIXED, norm=1.3), replace(PAIRS, head=(2, 3))):
        assert pairs.totals(as_csr(users, ITEMS)).tolist() == slow_pairs(users, pairs)
    for moments in (MOMENTS, replace(MOMENTS, bounds=FIXED, norm=1.3, n_source=5)):
        assert moments.totals(as_csr(few, ITEMS)).tolist() == slow_moments(few, moments)


@pytest.mark.parametrize("mechanism", PARTS, ids=lambda m: f"{m.name} {m.bounds.centre}")
def test_sums_add_up_over_users_in_any_order(mechanism: Any, rng: np.random.Generator) -> None:
    users = few_odd_cells(rng, 30)
    whole = mechanism.totals(as_csr(users, ITEMS))
    np.testing.assert_array_equal(mechanism.totals(as_csr(users[::-1], ITEMS)), whole)
    parts = sum(mechanism.totals(as_csr(users[i : i + 7], ITEMS)) for i in range(0, 30, 7))
    np.testing.assert_array_equal(parts, whole)
    assert mechanism.totals(as_csr([], ITEMS)).tolist() == [0] * mechanism.length
    assert whole.shape == (mechanism.length,)


@pytest.mark.parametrize("mechanism", PARTS, ids=lambda m: f"{m.name} {m.bounds.centre}")
def test_stretches_of_a_long_table_give_the_same_sums(
    mechanism: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = few_odd_cells(rng, 40)
    table = as_csr(users, ITEMS)
    dense = np.where(rng.random((40, ITEMS)) < 0.5, 3.3, math.nan)
    dense[:, 0] = np.arange(40) / 10
    wanted = mechanism.totals(table), replace(mechanism, mu=MU).totals(dense, ReplayedNoise(0))
    monkeypatch.setattr(totals, "_CELLS", 13)
    assert len(list(totals.stretches(table, ITEMS))) > 5
    np.testing.assert_array_equal(mechanism.totals(table), wanted[0])
    if not isinstance(mechanism, RatingMoments):  # whose dense rows are drawn from
        np.testing.assert_array_equal(mechanism.totals(dense), wanted[1])


@pytest.mark.parametrize("diagonal", [True, False])
def test_dense_and_sparse_products_are_the_same_whole_numbers(
    diagonal: bool, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = rng.integers(-products.LARGEST, products.LARGEST + 1, (500, 140)) * (rng.random((500, 140)) < 0.3)
    cells[:, 7] = products.LARGEST
    table = sparse.csr_array(cells)
    exact = (cells.T @ cells)[np.triu_indices(140, 0 if diagonal else 1)]
    monkeypatch.setattr(products, "_CELLS", 140 * 64)
    monkeypatch.setattr(products, "_USERS", 200)  # several sums of floats, added up as whole numbers
    np.testing.assert_array_equal(products.dense_sums(table, diagonal=diagonal), exact)
    np.testing.assert_array_equal(products.sparse_sums(table, diagonal=diagonal), exact)
    np.testing.assert_array_equal(products.product_sums(table, diagonal=diagonal), exact)
    matrix = products.as_matrix(exact.astype(np.float64), 140, diagonal=diagonal)
    np.testing.assert_array_equal(matrix, cells.T @ cells - (0 if diagonal else np.diag(np.diag(cells.T @ cells))))


def test_floats_hold_the_largest_sum_of_products() -> None:
    assert products._USERS * products.LARGEST**2 <= 1 << 53
    assert CLIP // COARSE == products.LARGEST


def test_sparse_products_are_taken_where_they_are_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "dense_sums", lambda rows, diagonal: "dense")
    monkeypatch.setattr(products, "sparse_sums", lambda rows, diagonal: "sparse")
    one_each = sparse.csr_array(np.eye(100, dtype=np.int64))
    assert products.product_sums(one_each, diagonal=True) == "sparse"
    assert products.product_sums(sparse.csr_array(np.ones((100, 100), dtype=np.int64)), diagonal=True) == "dense"


# --- what one user moves


@pytest.mark.parametrize("mechanism", PARTS, ids=lambda m: f"{m.name} {m.bounds.centre}")
@pytest.mark.parametrize("norm", [0.5, 2.0, 4.0, 40.0])
def test_no_user_costs_more_than_mu(mechanism: Any, norm: float, rng: np.random.Generator) -> None:
    narrowed = replace(mechanism, norm=norm)
    assert max(costs(narrowed, narrowed.totals(row[None, :], SYSTEM_NOISE)) for row in hostile(rng)[::2]) <= 1


def test_the_bounds_are_attained(rng: np.random.Generator) -> None:
    """But for rounding: less noise than this would be too little."""
    ends = np.array([[1.0, 5.0, 1.0, 5.0, 1.0, 5.0]])
    assert costs(OFFSETS, OFFSETS.totals(ends)) > 0.9999
    assert costs(replace(PAIRS, norm=2.0), replace(PAIRS, norm=2.0).totals(ends)) > 0.9995
    assert costs(PAIRS, PAIRS.totals(ends)) == 1  # four items at the clip: norm 4
    assert costs(replace(PAIRS, norm=40.0), replace(PAIRS, norm=40.0).totals(ends)) == 1  # no more than clip for each
    moments = replace(MOMENTS, bounds=FIXED)
    assert costs(moments, moments.totals(ends, ReplayedNoise(0))) == 1
    few = replace(moments, most_items=3, norm=40.0)
    assert costs(few, few.totals(ends, ReplayedNoise(0))) == 1
    # a norm below the clip: one item takes it all
    one = replace(moments, norm=1.0, most_items=1)
    assert costs(one, one.totals(ends, ReplayedNoise(0))) == 1


def test_known_lengths_of_one_users_products() -> None:
    """z = (2, 2, 2, 2): the upper triangle of z z^T, and what stands above the diagonal alone."""
    rows = np.array([[5.0, 5.0, 5.0, 5.0]])
    pairs = PairMoments(4, (0, 1, 2, 3), FIXED, 1.0, DELTA)
    off = math.sqrt(sum(int(x) ** 2 for x in pairs.totals(rows))) * float(pairs.step)
    assert off == pytest.approx(9.797959, abs=1e-6)
    assert pairs.sd == pytest.approx(9.797959, abs=1e-6)
    moments = RatingMoments(4, 2, FIXED, 1.0, DELTA, most_items=4, shares=(1.0, 1e-9, 1e-9, 1e-9))
    upper = math.sqrt(sum(int(x) ** 2 for x in moments.totals(rows)[:10])) * float(moments.step**2)
    assert upper == pytest.approx(12.649111, abs=1e-6)
    assert moments.sds[0] == pytest.approx(12.649111, abs=1e-6)


def test_deviations_are_those_of_the_formulas() -> None:
    many = tuple(range(1000))
    assert PairMoments(1000, many, OWN, 0.5, DELTA).sd == pytest.approx(16.0 / math.sqrt(2.0) / 0.5, rel=1e-3)
    offsets = OffsetSums(9, OWN, 0.5, DELTA, norm=8.0, mask=0.25).release(as_csr([], 9)).value
    assert (offsets.value_sd, offsets.count_sd) == (pytest.approx(16.0), pytest.approx(64.0))
    moments = RatingMoments(1000, 500, OWN, 0.5, DELTA)
    wanted = [4.0 * math.sqrt(10.0), 4.0, math.sqrt(50.0), 1.0]
    for sd, length, share in zip(moments.sds, wanted, (0.75, 0.10, 0.13, 0.02), strict=True):
        assert sd == pytest.approx(length / (0.5 * math.sqrt(share)))


def test_known_losses_at_one_in_a_million() -> None:
    assert mu_for(1.0, 1e-6) == pytest.approx(0.236704, abs=1e-6)
    assert mu_for(8.0, 1e-6) == pytest.approx(1.531545, abs=1e-6)
    for epsilon, simple in ((1.0, 0.017469), (8.0, 0.909707)):
        assert rho_for(epsilon, 1e-6, "simple") == pytest.approx(simple, abs=5e-7)
        # the default allows more, and never as much as an exactly Gaussian loss, which is of mu^2 / 2
        assert 1.1 * simple < rho_for(epsilon, 1e-6) < mu_for(epsilon, 1e-6) ** 2 / 2.0
        assert replace(TRANSFER, mu=mu_for(epsilon, 1e-6)).guarantee.epsilon == pytest.approx(epsilon, rel=1e-9)


# --- the release


@pytest.mark.parametrize("mechanism", [*PARTS, TRANSFER], ids=lambda m: f"{m.name} {m.bounds.centre}")
def test_the_guarantee_is_the_gaussian_loss_of_the_whole_release(mechanism: Any) -> None:
    guarantee = mechanism.release(np.full((1, ITEMS), 3.0)).guarantee
    assert guarantee == mechanism.guarantee
    assert guarantee.protects == ONE_USER
    assert (guarantee.loss.kind, guarantee.loss.value) == (LossKind.GAUSSIAN, MU)
    assert (guarantee.epsilon, guarantee.delta) == (epsilon_of_gaussian(MU, DELTA), DELTA)
    assert guarantee.proof == mechanism.name
    assert mechanism.release(np.full((1, ITEMS), 3.0), ReplayedNoise(0)).guarantee.promises_nothing


@pytest.mark.parametrize("mechanism", PARTS[:3], ids=lambda m: m.name)
def test_every_number_gets_fresh_noise_of_its_variance(mechanism: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Fraction, int]] = []

    def noted(variance: Fraction, count: int, noise: Any) -> NDArray[np.int64]:
        asked.append((variance, count))
        return np.full(count, 1000 * len(asked), dtype=np.int64)

    monkeypatch.setattr(rounded_gaussian, "sample", noted)
    rows = np.array([[1.0, 5.0, math.nan, 2.0, math.nan, 4.0]])
    seen = mechanism.release(rows).value.steps - mechanism.totals(rows)
    if isinstance(mechanism, RatingMoments):
        assert asked == list(zip(mechanism.variances_in_steps, (21, 6, 6, 3), strict=True))
        assert seen.tolist() == [1000] * 21 + [2000] * 6 + [3000] * 6 + [4000] * 3
    else:
        assert asked == [(mechanism.variance_in_steps, mechanism.length)]
        assert seen.tolist() == [1000] * mechanism.length


def test_noisy_numbers_are_read_in_the_units_of_the_ratings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounded_gaussian, "sample", lambda variance, count, noise: np.zeros(count, dtype=np.int64))
    rows = np.array([[1.0, 3.0, math.nan, math.nan, math.nan, math.nan], [math.nan, 4.0, 5.0, 3.0, math.nan, math.nan]])
    offsets = OFFSETS.release(rows).value
    np.testing.assert_allclose(offsets.values, [-1.0, 1.0, 1.0, -1.0, 0.0, 0.0])
    np.testing.assert_allclose(offsets.counts, [1.0, 2.0, 1.0, 1.0, 0.0, 0.0])
    pairs = replace(PAIRS, head=(1, 0)).release(rows).value
    np.testing.assert_allclose(pairs.matrix(), [[0.0, -1.0], [-1.0, 0.0]])
    assert pairs.head.tolist() == [1, 0]
    moments = MOMENTS.release(rows).value
    np.testing.assert_allclose(np.diag(moments.matrix()), [1.0, 1.0, 1.0, 1.0, 0.0, 0.0])
    assert (moments.matrix()[2, 3], moments.matrix()[3, 2], moments.matrix()[0, 1]) == (-1.0, -1.0, -1.0)
    np.testing.assert_allclose(moments.values, [-1.0, 1.0, 1.0, -1.0, 0.0, 0.0])
    np.testing.assert_allclose(moments.counts, [1.0, 2.0, 1.0, 1.0, 0.0, 0.0])
    assert moments.users == (1.0, 0.0, 1.0)
    transfer = TRANSFER.release(rows).value
    np.testing.assert_allclose(transfer.offsets.values, offsets.values)
    assert transfer.head.tolist() == [0, 1, 2]
    np.testing.assert_allclose(transfer.matrix(), [[0.0, -1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    assert transfer.n_source == SOURCE


class Elsewhere:
    """A table in parts, of which only sums are told."""

    def __init__(self, parts: list[Any]) -> None:
        self.parts = parts
        self.asked: list[Any] = []

    def totals(self, of: Any) -> NDArray[np.int64]:
        self.asked.append(of)
        return np.sum([of.totals(part) for part in self.parts], axis=0)


@pytest.mark.parametrize("mechanism", [*PARTS[:3], TRANSFER], ids=lambda m: m.name)
def test_sums_computed_elsewhere_give_the_same_release(mechanism: Any, rng: np.random.Generator) -> None:
    users = few_odd_cells(rng, 20)
    source = Elsewhere([as_csr(users[:9], ITEMS), as_csr(users[9:], ITEMS)])
    assert isinstance(source, TotalsOnDemand)
    assert not isinstance(as_csr(users, ITEMS), TotalsOnDemand)
    here = mechanism.release(as_csr(users, ITEMS), ReplayedNoise(5)).value
    there = mechanism.release(source, ReplayedNoise(5)).value
    if mechanism is TRANSFER:
        np.testing.assert_array_equal(here.offsets.steps, there.offsets.steps)
        here, there = here.pairs, there.pairs
        assert [part.name for part in source.asked] == ["offset-sums", "pair-moments"]
    np.testing.assert_array_equal(here.steps, there.steps)


@pytest.mark.parametrize("mechanism", PARTS[:3], ids=lambda m: m.name)
def test_sums_that_are_kept_elsewhere_stay_without_noise(mechanism: Any) -> None:
    kept = np.zeros(mechanism.length, dtype=np.int64)

    class Kept:
        def totals(self, of: Any) -> Any:
            return kept

    assert mechanism.release(Kept()).value.steps.any()
    assert not kept.any()


@pytest.mark.parametrize("bad", [np.zeros(3, dtype=np.int64), np.zeros(12), np.zeros((2, 6), dtype=np.int64)], ids=str)
def test_totals_of_another_shape_or_kind_are_refused(bad: Any) -> None:
    class Wrong:
        def totals(self, of: Any) -> Any:
            return bad

    with pytest.raises(InvalidInput):
        OFFSETS.release(Wrong())


def test_which_ratings_count_is_drawn_by_the_noise_that_was_given() -> None:
    rows = np.array([[1.0, 2.0, 3.0, 4.0, 5.0, 1.5]] * 20)
    drawn = [replace(MOMENTS, most_items=2).totals(rows, ReplayedNoise(seed)) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert (drawn[0] != drawn[2]).any()
    whole = [replace(MOMENTS, most_items=2).release(rows, ReplayedNoise(seed)).value.steps for seed in (1, 1)]
    np.testing.assert_array_equal(*whole)


@pytest.mark.parametrize("mechanism", [*PARTS[:3], TRANSFER], ids=lambda m: m.name)
def test_a_caller_who_has_numpy_raise_gets_the_same_release(mechanism: Any, rng: np.random.Generator) -> None:
    table = as_csr(odd_cells(rng, 50, ITEMS), ITEMS)

    def steps() -> Any:
        value = mechanism.release(table, ReplayedNoise(9)).value
        return value.pairs.steps if mechanism is TRANSFER else value.steps

    quiet = steps()
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(steps(), quiet)


# --- two steps in one


def test_the_losses_of_both_steps_add_up_to_mu() -> None:
    for share in (0.2, 0.7, 1e-9, 0.999):
        mechanism = replace(TRANSFER, mu=1.2345, offset_share=share)
        first, second = mechanism.mus
        assert Fraction(first) ** 2 + Fraction(second) ** 2 <= Fraction(1.2345) ** 2
        assert math.hypot(first, second) == pytest.approx(1.2345, rel=1e-12)
        assert first**2 == pytest.approx(share * 1.2345**2, rel=1e-12)
        assert (mechanism.offsets.mu, mechanism.pairs(range(3)).mu) == (first, second)


def test_settings_reach_the_step_they_are_meant_for() -> None:
    mechanism = replace(TRANSFER, offset_norm=8.0, mask=0.25, pair_norm=3.0, bounds=FIXED)
    assert (mechanism.offsets.norm, mechanism.offsets.mask, mechanism.pairs(range(2)).norm) == (8.0, 0.25, 3.0)
    assert mechanism.offsets.bounds is mechanism.pairs(range(2)).bounds is FIXED


def noisy(counts: list[int]) -> NoisyOffsets:
    return NoisyOffsets(np.array([10**9 - i for i in range(6)] + counts), OFFSETS.step, Fraction(1, 2), 1.0)


@pytest.mark.parametrize(
    ("counts", "head"),
    [
        ([5, 9, 1, 7, 3, 2], [0, 1, 3]),
        ([-5, -9, -1, -7, -3, -2], [2, 4, 5]),
        ([4, 4, 4, 4, 4, 4], [0, 1, 2]),
        ([0, 4, 9, 4, 4, 1], [1, 2, 3]),
    ],
)
def test_the_head_has_the_largest_noisy_counts(counts: list[int], head: list[int]) -> None:
    assert TRANSFER.head_of(noisy(counts)).tolist() == head


def test_the_head_is_chosen_from_what_was_released(rng: np.random.Generator) -> None:
    """With so much noise true counts would choose another head in nearly all releases."""
    rows = np.where(np.arange(ITEMS) < 3, 4.0, math.nan)[None, :].repeat(30, axis=0)
    loud = replace(TRANSFER, mu=0.01)
    heads = set()
    for seed in range(12):
        value = loud.release(rows, ReplayedNoise(seed)).value
        assert value.head.tolist() == loud.head_of(value.offsets).tolist()
        heads.add(tuple(value.head.tolist()))
    assert len(heads) > 4


def test_without_a_head_the_offsets_have_it_all() -> None:
    mechanism = replace(TRANSFER, head_size=0)
    assert mechanism.offsets.mu == MU
    value = mechanism.release(np.full((2, ITEMS), 3.0)).value
    assert (value.pairs, value.head.size, value.matrix().shape, value.pair_sd) == (None, 0, (0, 0), 0.0)
    assert mechanism.guarantee == TRANSFER.guarantee


def test_a_head_larger_than_the_catalogue_is_the_catalogue() -> None:
    value = replace(TRANSFER, head_size=4096).release(np.full((2, ITEMS), 3.0)).value
    assert value.head.tolist() == list(range(ITEMS))


def test_both_steps_draw_noise_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Fraction, int]] = []

    def noted(variance: Fraction, count: int, noise: Any) -> NDArray[np.int64]:
        asked.append((variance, count))
        return np.zeros(count, dtype=np.int64)

    monkeypatch.setattr(rounded_gaussian, "sample", noted)
    value = TRANSFER.release(np.full((2, ITEMS), 3.0)).value
    assert asked == [
        (TRANSFER.offsets.variance_in_steps, 2 * ITEMS),
        (TRANSFER.pairs(range(3)).variance_in_steps, 3),
    ]
    assert value.pair_sd == TRANSFER.pairs(range(3)).sd
    assert value.offsets.sd == TRANSFER.offsets.sd


def test_the_steps_cost_at_most_mu_together_for_every_head(rng: np.random.Generator) -> None:
    for row in hostile(rng)[::9]:
        first = costs(TRANSFER.offsets, TRANSFER.offsets.totals(row[None, :])) * Fraction(TRANSFER.mus[0]) ** 2
        for head in combinations(range(ITEMS), 3):
            pairs = TRANSFER.pairs(np.array(head))
            second = costs(pairs, pairs.totals(row[None, :])) * Fraction(TRANSFER.mus[1]) ** 2
            assert first + second <= Fraction(MU) ** 2


# --- at the limits


def test_the_largest_lengths_and_marks_are_exact(rng: np.random.Generator) -> None:
    """1,024 clips are the longest norm and, for up to 64 items, the heaviest mark."""
    users = [[(item, value) for item in range(64)] for value in (1.0, 3.0, 5.0)] + odd_cells(rng, 9, 64)
    users.append([(item, 1.0 + 4.0 * (item % 2)) for item in range(64)])
    for bounds in (OWN, FIXED):
        long = {"norm": 1024 * bounds.clip, "bounds": bounds}
        offsets = OffsetSums(64, mu=MU, delta=DELTA, mask=1024 * bounds.clip, **long)  # type: ignore[arg-type]
        assert offsets.totals(as_csr(users, 64)).tolist() == slow_offsets(users, offsets)
        for user in users:
            assert costs(offsets, offsets.totals(as_csr([user], 64))) <= 1
        pairs = PairMoments(64, tuple(range(64)), mu=MU, delta=DELTA, **long)  # type: ignore[arg-type]
        assert pairs.totals(as_csr(users, 64)).tolist() == slow_pairs(users, pairs)
        moments = RatingMoments(64, 9, mu=MU, delta=DELTA, most_items=64, **long)  # type: ignore[arg-type]
        assert moments.totals(as_csr(users, 64)).tolist() == slow_moments(users, moments)


@pytest.mark.parametrize(("items", "clips"), [(64, 1024), (1 << 20, 8), (1 << 22, 4)])
def test_a_mark_whose_squares_would_not_fit_is_refused(items: int, clips: int) -> None:
    assert OffsetSums(items, OWN, MU, DELTA, mask=OWN.clip * clips).mask_in_steps == clips * CLIP
    for more_items, heavier in ((items + 1, 0), (items, 1)):
        if more_items <= 1 << 22 and clips + heavier <= 1024:
            with pytest.raises(InvalidParameter, match=f"at most .* for {more_items} items"):
                OffsetSums(more_items, OWN, MU, DELTA, mask=OWN.clip * (clips + heavier))
    with pytest.raises(InvalidParameter, match="mask"):
        replace(TRANSFER, items=65, mask=1024 * OWN.clip)


# --- what is refused


REFUSED: list[tuple[str, Callable[[], Any]]] = [
    ("no items", lambda: replace(OFFSETS, items=0)),
    ("bounds from the data", lambda: replace(OFFSETS, bounds=None)),
    ("mu 0", lambda: replace(OFFSETS, mu=0.0)),
    ("delta 0", lambda: replace(PAIRS, delta=0.0)),
    ("delta 1", lambda: replace(MOMENTS, delta=1.0)),
    ("norm nan", lambda: replace(PAIRS, norm=math.nan)),
    ("norm too short", lambda: replace(PAIRS, norm=1e-4)),
    ("norm too long", lambda: replace(OFFSETS, norm=1e9)),
    ("mask 0", lambda: replace(OFFSETS, mask=0.0)),
    ("too much noise", lambda: replace(PAIRS, mu=1e-4)),
    ("too much noise of moments", lambda: replace(MOMENTS, mu=1e-4)),
    ("too much noise of a step", lambda: replace(TRANSFER, mu=0.02, offset_share=1.0 - 1e-9)),
    ("head of one", lambda: replace(PAIRS, head=(1,))),
    ("head twice", lambda: replace(PAIRS, head=(1, 1))),
    ("head beyond", lambda: replace(PAIRS, head=(1, 6))),
    ("head below", lambda: replace(PAIRS, head=(1, -1))),
    ("head size 1", lambda: replace(TRANSFER, head_size=1)),
    ("head size 5000", lambda: replace(TRANSFER, head_size=5000)),
    ("share 1", lambda: replace(TRANSFER, offset_share=1.0)),
    ("no target", lambda: replace(TRANSFER, n_source=6)),
    ("no source", lambda: replace(MOMENTS, n_source=0)),
    ("most items 0", lambda: replace(MOMENTS, most_items=0)),
    ("too many items", lambda: replace(MOMENTS, items=4097)),
    ("three shares", lambda: replace(MOMENTS, shares=(0.5, 0.3, 0.2))),  # type: ignore[arg-type]
    ("a share of 0", lambda: replace(MOMENTS, shares=(0.5, 0.3, 0.2, 0.0))),
    ("no shares", lambda: replace(MOMENTS, shares=None)),  # type: ignore[arg-type]
    ("bounds of nothing", lambda: replace(TRANSFER, bounds="1 to 5")),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("make", [make for _, make in REFUSED], ids=[what for what, _ in REFUSED])
def test_parameters_are_refused_when_a_mechanism_is_built(make: Callable[[], Any]) -> None:
    with pytest.raises(InvalidParameter):
        make()


@pytest.mark.parametrize("mechanism", [*PARTS[:3], TRANSFER], ids=lambda m: m.name)
@pytest.mark.parametrize("rows", [[[SECRET] * ITEMS], np.full((1, 5), SECRET), np.full(6, SECRET), None], ids=str)
def test_other_tables_are_refused_and_never_shown(mechanism: Any, rows: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        mechanism.release(rows)
    assert "4242" not in str(refused.value)


@pytest.mark.parametrize("mechanism", [*PARTS[:3], TRANSFER], ids=lambda m: m.name)
def test_too_many_users_are_refused_before_a_row_is_read(mechanism: Any) -> None:
    with pytest.raises(InvalidInput, match="fewer than"):
        mechanism.release(np.broadcast_to(np.float64(3.0), (1 << 30, ITEMS)))


@pytest.mark.parametrize("mechanism", [*PARTS[:3], TRANSFER], ids=lambda m: m.name)
def test_a_table_of_blocks_is_refused(mechanism: Any) -> None:
    table = np.zeros((4, ITEMS))
    table[0] = SECRET  # fills all blocks
    with pytest.raises(InvalidInput, match="csr_array") as refused:
        mechanism.release(sparse.bsr_array(table, blocksize=(4, 2)))
    assert "4242" not in str(refused.value)


def test_nothing_is_drawn_before_the_table_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounded_gaussian, "sample", lambda *_: pytest.fail("noise was drawn"))
    with pytest.raises(InvalidInput):
        TRANSFER.release(np.full((1, 5), 1.0))


def test_the_law_of_a_number_is_stated() -> None:
    total = 12_345
    for mechanism in (OFFSETS, PAIRS):
        sd = math.sqrt(mechanism.variance_in_steps)
        assert float(mechanism.pmf(total, total)) == pytest.approx(1.0 / sd / math.sqrt(2 * math.pi), rel=1e-9)
        assert float(mechanism.pmf(total + round(sd), total)) == pytest.approx(
            math.exp(-0.5) / sd / math.sqrt(2 * math.pi), rel=1e-3
        )
    sd = math.sqrt(MOMENTS.variances_in_steps[3])
    assert float(MOMENTS.pmf(5, 5, 3)) == pytest.approx(math.erf(0.5 / sd / math.sqrt(2.0)), rel=1e-9)
