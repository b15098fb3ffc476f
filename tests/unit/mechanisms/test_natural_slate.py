"""Natural slates: known laws, the bound and where it is attained, cutting of records, requests, candidates, and odd tables."""

import math
from collections import Counter
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from tacit.audit.exact import loss_range
from tacit.errors import InvalidInput, InvalidParameter
from tacit.guarantees import Guarantee, LossKind, Relation, compose, repeat, tight
from tacit.mechanisms import NaturalSlate, ReplayedNoise
from tacit.mechanisms import slates as grid_rows
from tacit.mechanisms import slates as slate_draws
from tacit.mechanisms.slates import (
    MOST_USERS,
    SQUARE,
    STEPS,
    natural_epsilon,
    published_sigma_for,
    selected_rows,
    sigma_for,
    whole_rows,
)
from tacit.models.dpp.samplers import DenseSampler, SplitSampler
from tests.contracts.mechanism import chi_square, log_ratio

ETA = math.log(3.0)  # bound 1, sigma .5
NAN, INF = math.nan, math.inf
TABLE = np.array([[1.0, 1, 0, 0, 1, 0, 0], [0, 1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 0, 0, 0], [0, 1, 0, 0, 0, 0, 1]])


def seen(mechanism: NaturalSlate, slates: NDArray[np.int64]) -> NDArray[np.int64]:
    found = Counter(map(tuple, slates.tolist()))
    outcomes = mechanism.outcomes()
    assert set(found) <= set(outcomes)
    return np.array([found[slate] for slate in outcomes])


def test_the_law_of_two_users_is_the_known_one() -> None:
    """The rows 1100 and 0010 with sigma = .5: e_2 = 8. A bound of 4 cuts neither, and the grid holds them exactly."""
    mechanism = NaturalSlate(4, 2, math.log(9.0), bound=4.0)
    assert mechanism.sigma == pytest.approx(0.5, rel=1e-9)
    users = np.array([[1.0, 1, 0, 0], [0, 0, 1, 0]])
    before = mechanism.pmf(users)
    np.testing.assert_allclose(before, [0.15625, 0.28125, 0.09375, 0.28125, 0.09375, 0.09375], atol=1e-8)
    after = mechanism.pmf(np.concatenate([users, [[0.0, 0, 0, 1]]]))
    np.testing.assert_allclose(after, [0.1, 0.18, 0.18, 0.18, 0.18, 0.18], atol=1e-8)
    assert log_ratio(before, after) == pytest.approx(0.652325, abs=1e-6)
    assert log_ratio(before, after) <= ETA


def test_replacing_one_item_by_another_attains_the_bound() -> None:
    mechanism = NaturalSlate(4, 2, ETA, relation=Relation.REPLACE)
    here, there = (mechanism.pmf([row]) for row in ([0.0, 1, 0, 0], [1.0, 0, 0, 0]))
    assert log_ratio(here, there) == pytest.approx(1.098612, abs=1e-6)
    assert log_ratio(here, there) <= ETA


@pytest.mark.parametrize("k", [1, 2, 3])
def test_adding_a_user_comes_as_near_to_the_bound_as_others_are_many(k: int) -> None:
    mechanism = NaturalSlate(4, k, 1.0)
    others = np.repeat(np.eye(4)[1:], 20_000, axis=0)
    loss = log_ratio(mechanism.pmf(others), mechanism.pmf(np.concatenate([others, np.eye(4)[:1]])))
    assert 0.999 < loss <= 1.0


def worlds(rng: np.random.Generator) -> list[tuple[Any, Any, Any]]:
    """Tables of others beside one user's row and another one, of all sizes and signs, good and bad."""
    rows: list[Any] = [np.array(row) for row in product((0.0, 1.0), repeat=4)]
    rows += [rng.normal(size=4) * 10.0 ** rng.integers(-4, 5) for _ in range(30)]
    rows += [np.array(row) for row in ([1e300] * 4, [NAN, 1, INF, -1], [-1e308, 1e308, 0, 1], [5e-324, 0, 0, 0])]
    found = []
    for _ in range(60):
        others = [rows[i] for i in rng.integers(0, len(rows), rng.integers(0, 6))]
        found.append((np.array(others).reshape(-1, 4), *(rows[i] for i in rng.integers(0, len(rows), 2))))
    return found


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("bound", [1.0, 0.37])
def test_no_pair_of_tables_exceeds_the_claim_or_its_range(
    k: int, epsilon: float, bound: float, rng: np.random.Generator
) -> None:
    add, swap = (NaturalSlate(4, k, epsilon, bound, relation) for relation in Relation)
    assert add.guarantee.loss is not None
    assert swap.guarantee.loss is not None
    for others, one, other in worlds(rng)[: 60 if k == 2 else 25]:
        laws = [add.pmf(table) for table in (others, *(np.concatenate([others, [row]]) for row in (one, other)))]
        for pair, mechanism in (([0, 1], add), ([0, 2], add), ([1, 2], swap)):
            assert log_ratio(laws[pair[0]], laws[pair[1]]) <= epsilon + 1e-12
            assert loss_range(laws, [pair]) <= mechanism.guarantee.loss.value + 1e-12


def test_the_range_of_a_replaced_user_is_beyond_epsilon() -> None:
    mechanism = NaturalSlate(4, 1, 1.0, relation=Relation.REPLACE)
    others = np.repeat(np.eye(4)[2:], 5_000, axis=0)
    laws = [mechanism.pmf(np.concatenate([others, np.eye(4)[[i]]])) for i in (0, 1)]
    assert 1.99 < loss_range(laws) <= 2.0
    assert mechanism.guarantee.loss is not None
    assert mechanism.guarantee.loss.value == 2.0


def redrawn_loss(mechanism: NaturalSlate) -> float:
    """Slates are shown only if they are {0, 1} or {2, 3}; user 0's item becomes item 2, and item 3 is popular."""
    allowed = [mechanism.outcomes().index(slate) for slate in ((0, 1), (2, 3))]
    others = np.repeat(np.eye(4)[3:], 60_000, axis=0)
    laws = [mechanism.pmf(np.concatenate([others, np.eye(4)[[i]]]))[allowed] for i in (0, 2)]
    return log_ratio(*(law / law.sum() for law in laws))


def test_redrawing_by_a_public_rule_costs_twice_when_users_are_replaced_and_the_flag_pays_for_it() -> None:
    plain = NaturalSlate(4, 2, 1.0, relation=Relation.REPLACE)
    assert 1.9 < redrawn_loss(plain) <= 2.0
    honest = NaturalSlate(4, 2, 1.0, relation=Relation.REPLACE, redrawn=True)
    assert 0.95 < redrawn_loss(honest) <= 1.0
    assert honest.guarantee == Guarantee(
        1.0, plain.guarantee.protects, proof="natural-slate", loss=honest.guarantee.loss
    )
    assert honest.guarantee.loss is not None
    assert honest.guarantee.loss.value == 1.0
    assert honest.sigma == pytest.approx(sigma_for(0.5), rel=1e-9)
    added, flagged = NaturalSlate(4, 2, 1.0), NaturalSlate(4, 2, 1.0, redrawn=True)
    assert (added.guarantee, added.sigma) == (flagged.guarantee, flagged.sigma)


def test_redrawing_costs_nothing_more_when_users_are_added(rng: np.random.Generator) -> None:
    mechanism = NaturalSlate(4, 2, 1.0, redrawn=True)
    for others, one, _ in worlds(rng)[:60]:
        laws = [mechanism.pmf(table) for table in (others, np.concatenate([others, [one]]))]
        for allowed in ([0, 5], [1, 2, 3], [0, 1]):
            assert log_ratio(*(law[allowed] / law[allowed].sum() for law in laws)) <= 1.0 + 1e-12


@pytest.mark.parametrize("epsilon", [1e-12, 1e-6, 0.1, 1.0, 5.0, 22.0, 100.0, 1e300])
def test_the_jitter_in_whole_numbers_costs_at_most_epsilon(epsilon: float) -> None:
    mechanism = NaturalSlate(5, 2, epsilon)
    assert mechanism.sigma_in_squares >= 1
    assert natural_epsilon(SQUARE, mechanism.sigma_in_squares) <= epsilon * (1 + 1e-15)
    assert NaturalSlate(5, 2, epsilon, bound=7.5).sigma_in_squares == mechanism.sigma_in_squares
    if epsilon <= 5.0:
        assert mechanism.sigma == pytest.approx(sigma_for(epsilon), rel=1e-7)


@pytest.mark.parametrize("sampler", ["exact", "hybrid", "split", "dense"])
def test_draws_have_the_stated_law_and_the_test_tells_ten_percent_of_epsilon(sampler: Any) -> None:
    mechanism, draws = NaturalSlate(7, 3, 2.0, sampler=sampler), 60_000 if sampler == "exact" else 20_000
    counts = seen(mechanism, mechanism.prepare(TABLE).release_many(draws, ReplayedNoise(11)).value)
    assert chi_square(counts, mechanism.pmf(TABLE)) > 1e-9
    if sampler == "exact":
        for factor in (0.9, 1.1):
            assert chi_square(counts, NaturalSlate(7, 3, 2.0 * factor).pmf(TABLE)) < 1e-9


def test_single_releases_have_the_stated_law() -> None:
    mechanism, noise = NaturalSlate(4, 2, 2.0), ReplayedNoise(3)
    prepared = mechanism.prepare(TABLE[:, :4])
    slates = [prepared.release(noise).value for _ in range(2000)]
    slates = np.array(slates + [mechanism.release(TABLE[:, :4], noise).value for _ in range(200)])
    assert chi_square(seen(mechanism, slates), mechanism.pmf(TABLE[:, :4])) > 1e-9


def test_a_record_is_cut_by_itself_to_the_bound_exactly(rng: np.random.Generator) -> None:
    table = np.concatenate([rng.normal(size=(200, 9)) * 10.0 ** rng.integers(-9, 9, (200, 1)), [[1e300] * 9]])
    steps = whole_rows(table, 9, 2.5).toarray().astype(object)
    assert max((row**2).sum() for row in steps) <= SQUARE
    assert (steps[-1] ** 2).sum() > 0.999 * SQUARE
    for i in (0, 7, 200):
        assert whole_rows(table[i : i + 1], 9, 2.5).toarray().tolist() == [steps[i].tolist()]


@pytest.mark.parametrize("more", [1, 2, 100, 362])
def test_a_record_that_is_hardly_too_long_is_cut_too(more: int) -> None:
    """Squares of 2^32 + more^2, whose root is less than a step beyond 2^16."""
    row = whole_rows([[1.0, more / STEPS]], 2, 1.0).toarray()[0].tolist()
    assert sum(cell * cell for cell in row) <= SQUARE
    assert row[0] == STEPS - 1


def test_likes_count_one_over_the_root_of_their_number() -> None:
    steps = whole_rows([[1.0, 0, 0, 0], [1, 1, 1, 1], [1, 1, 0, 0], [0.25, 0, 0, 0]], 4, 1.0).toarray()
    assert steps[:, 0].tolist() == [STEPS, STEPS // 2, math.isqrt(SQUARE // 2), STEPS // 4]


@pytest.mark.parametrize("sampler", ["exact", "hybrid", "split", "dense"])
@pytest.mark.parametrize(
    "rows",
    [
        [],
        np.zeros((0, 4)),
        np.zeros((3, 4)),
        [[NAN, INF, -INF, NAN]],
        [[1e308] * 4, [-1e308] * 4],
        [[1.0, NAN, None, "text"]],
        [[10**400, 1, 0, 0]],
        np.eye(4)[:1],
        np.ones((500, 4)),
        sparse.csr_array((2, 4)),
        sparse.coo_array((np.array([1e308, 1e308, 1.0]), ([0, 0, 0], [1, 1, 2])), shape=(1, 4)),
    ],
    ids=repr,
)
def test_no_record_is_ever_refused(sampler: Any, rows: Any) -> None:
    mechanism = NaturalSlate(4, 2, 1.0, sampler=sampler)
    slate = mechanism.release(rows).value
    assert slate.dtype == np.int64
    assert 0 <= slate[0] < slate[1] < 4
    assert mechanism.pmf(rows).sum() == pytest.approx(1.0)
    assert mechanism.prepare(rows).release_many(5).value.shape == (5, 2)


def test_a_bad_cell_counts_as_0_and_the_rest_of_the_row_stays() -> None:
    mechanism = NaturalSlate(4, 2, 1.0)
    np.testing.assert_array_equal(mechanism.pmf([[NAN, 1.0, INF, 1.0]]), mechanism.pmf([[0.0, 1.0, 0.0, 1.0]]))


def test_duplicates_of_a_sparse_table_are_added_before_the_row_is_cut() -> None:
    mechanism = NaturalSlate(4, 2, 1.0)
    twice = sparse.coo_array((np.array([0.2, 0.2, 0.3]), ([0, 0, 0], [1, 1, 2])), shape=(1, 4))
    np.testing.assert_array_equal(mechanism.pmf(twice), mechanism.pmf([[0.0, 0.4, 0.3, 0.0]]))


def test_sparse_and_dense_tables_have_one_law() -> None:
    mechanism = NaturalSlate(7, 3, 1.0)
    for kind in (sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.csr_matrix):
        np.testing.assert_array_equal(mechanism.pmf(kind(TABLE)), mechanism.pmf(TABLE))


def test_the_order_of_users_does_not_matter() -> None:
    mechanism = NaturalSlate(7, 3, 1.0)
    np.testing.assert_array_equal(mechanism.pmf(TABLE[::-1]), mechanism.pmf(TABLE))


def test_all_items_in_the_slate_cost_nothing_and_are_released_all_the_same() -> None:
    for sampler in ("exact", "split", "dense"):
        mechanism = NaturalSlate(3, 3, 1.0, sampler=sampler)  # type: ignore[arg-type]
        release = mechanism.release([[1.0, 0, 1]])
        assert release.value.tolist() == [0, 1, 2]
        assert release.guarantee.epsilon == 0.0
        assert not release.guarantee.assumes
        assert mechanism.pmf([[1.0, 0, 1]]).tolist() == [1.0]


def test_the_guarantee_says_what_the_sampler_assumes() -> None:
    exact, split, dense, hybrid = (
        NaturalSlate(5, 2, 1.0, sampler=s).guarantee  # type: ignore[arg-type]
        for s in ("exact", "split", "dense", "hybrid")
    )
    assert not exact.assumes
    assert hybrid.assumes == {"real arithmetic in the sampler, where 16,384 exact proposals in a row are rejected"}
    assert split.assumes == dense.assumes == {"real arithmetic in the sampler"}
    assert exact.loss is not None
    assert (exact.loss.kind, exact.loss.value) == (LossKind.BOUNDED_RANGE, 1.0)


def test_the_hybrid_sampler_draws_in_floats_only_where_exact_proposals_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    class Watched(SplitSampler):
        def draw_many(self, count: int, coins: Any) -> Any:
            asked.append(count)
            return super().draw_many(count, coins)

    monkeypatch.setattr(slate_draws, "SplitSampler", Watched)
    mechanism = NaturalSlate(7, 3, 2.0, sampler="hybrid")
    mechanism.prepare(TABLE).release_many(1_000)
    assert asked == []
    alike = np.zeros((3_000, 40))
    alike[:, :5] = (
        1.0  # everybody likes the same five items: det L_Y / prod L_ii is about 1e-12 where four of them are in Y
    )
    contrived = NaturalSlate(40, 5, 1.0, sampler="hybrid").prepare(alike)
    slates = contrived.release_many(4, ReplayedNoise(4)).value
    assert asked
    assert (np.diff(slates, axis=1) > 0).all()
    with pytest.raises(InvalidParameter, match="at most 10000 items"):
        NaturalSlate(10_001, 3, 2.0, sampler="hybrid")


class Refusing:
    """An exact sampler of which every proposal is rejected: what it was given is all there is of it."""

    kernels: ClassVar[list[Any]] = []

    def __init__(self, kernel: Any, k: int, *, most: int = 0, instead: Any = None) -> None:
        self.kernels.append(kernel)
        self.draw_many = instead


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.7])
@pytest.mark.parametrize("sampler", ["split", "dense", "hybrid"])
def test_floats_draw_from_the_whole_numbers_and_with_all_of_the_jitter(
    sampler: Any, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []

    def noted(kind: Any) -> Any:
        return lambda *what: given.append(what) or kind(*what)

    for kind in (SplitSampler, DenseSampler):
        monkeypatch.setattr(slate_draws, kind.__name__, noted(kind))
    monkeypatch.setattr(slate_draws, "SlateSampler", Refusing)
    monkeypatch.setattr(Refusing, "kernels", [])
    mechanism = NaturalSlate(7, 3, epsilon, bound=1.7, sampler=sampler)
    assert mechanism.prepare(TABLE).release_many(2).value.shape == (2, 3)
    ((*what, k),) = given
    assert k == 3
    whole, sigma = whole_rows(TABLE, 7, 1.7).toarray(), mechanism.sigma_in_squares
    assert Fraction(sigma, SQUARE) >= Fraction(sigma_for(epsilon))
    if sampler == "dense":  # whole numbers below 2^53 over a power of two: no float of it is rounded
        np.testing.assert_array_equal(what[0] * SQUARE, whole.T @ whole + sigma * np.eye(7, dtype=int))
    else:
        signal, jitter = what
        np.testing.assert_array_equal(signal.toarray() * STEPS, whole.T)
        assert Fraction(jitter) == Fraction(sigma, SQUARE)
    if sampler == "hybrid":
        (kernel,) = Refusing.kernels
        assert kernel.sigma == sigma
        np.testing.assert_array_equal(kernel.products(np.arange(7)[None, :])[0], whole.T @ whole)


def test_many_slates_are_composed() -> None:
    mechanism = NaturalSlate(7, 3, 0.1)
    many = mechanism.prepare(TABLE).release_many(100)
    assert many.value.shape == (100, 3)
    assert many.guarantee == repeat(mechanism.guarantee, 100) == compose([mechanism.guarantee] * 100)
    assert tight([many.guarantee], 1e-6).epsilon == pytest.approx(2.419093, abs=1e-3)
    replayed = mechanism.prepare(TABLE).release_many(100, ReplayedNoise(1)).guarantee
    assert replayed.promises_nothing
    for bad in (0, -1, 1.5, True, None):
        with pytest.raises(InvalidParameter):
            mechanism.prepare(TABLE).release_many(bad)  # type: ignore[arg-type]


def test_the_prepared_object_shows_public_sizes_only() -> None:
    prepared = NaturalSlate(7, 3, 0.1).prepare(np.concatenate([TABLE, TABLE * 42.0]))
    assert repr(prepared) == str(prepared) == "PreparedSlates(slates of 3 from 7 items)"


def test_the_papers_bound_promises_nothing_and_says_what_it_costs() -> None:
    mechanism = NaturalSlate.published(3883, 10, 1.0)
    assert mechanism.guarantee.promises_nothing
    assert any("subset" in reason for reason in mechanism.guarantee.assumes)
    assert mechanism.sigma == pytest.approx(published_sigma_for(1.0, 3883), rel=1e-9)
    assert mechanism.sigma == pytest.approx(124.6, abs=0.05)
    assert mechanism.proved.epsilon == pytest.approx(math.log1p(1.0 / mechanism.sigma), rel=1e-9)
    assert mechanism.proved.epsilon >= math.log1p(1.0 / mechanism.sigma)
    assert NaturalSlate(3883, 10, 1.0).proved == NaturalSlate(3883, 10, 1.0).guarantee
    assert NaturalSlate.published(5, 2, 1.0).release(TABLE[:, :5]).guarantee.promises_nothing
    wide = NaturalSlate.published(5, 2, 1.0, bound=4.0)
    assert wide.sigma == pytest.approx(published_sigma_for(1.0, 5, 4.0), rel=1e-9)


def request_law(mechanism: NaturalSlate, rows: Any, request: Any) -> NDArray[np.float64]:
    """The law under a request, by the kernel of the weighed rows."""
    table, _ = selected_rows(rows, mechanism.items, mechanism.bound, least=1, request=request)
    return mechanism.pmf(table.toarray() / STEPS)


def test_a_request_weighs_columns_rounds_towards_0_and_never_lengthens_a_row(rng: np.random.Generator) -> None:
    rows = rng.normal(size=(40, 6))
    plain = whole_rows(rows, 6, 1.0).toarray()
    for request in (rng.random(6), [0, 0.5, 1, 2, -3, NAN], [INF, -INF, 1e-9, 1.0, 0.999, 0.0]):
        weighed, items = selected_rows(rows, 6, 1.0, least=1, request=request)
        assert items.tolist() == list(range(6))
        cut = np.clip(np.nan_to_num(np.array(request, dtype=float), nan=0.0, posinf=1.0, neginf=0.0), 0.0, 1.0)
        whole = np.floor(cut * STEPS).astype(int)
        assert weighed.toarray().tolist() == (np.sign(plain) * (np.abs(plain) * whole // STEPS)).tolist()
        assert (np.abs(weighed.toarray()) <= np.abs(plain)).all()


def test_a_request_keeps_the_claim_and_moves_the_slate(rng: np.random.Generator) -> None:
    mechanism, request = NaturalSlate(4, 2, 1.0), [1.0, 0.3, 0.0, 0.7]
    for others, one, _ in worlds(rng)[:40]:
        here, there = (request_law(mechanism, table, request) for table in (others, np.concatenate([others, [one]])))
        assert log_ratio(here, there) <= 1.0 + 1e-12
    rows = np.tile(TABLE[:, :4], (50, 1))
    slates = mechanism.prepare(rows, request=request).release_many(5000, ReplayedNoise(2)).value
    assert chi_square(seen(mechanism, slates), request_law(mechanism, rows, request)) > 1e-9
    assert chi_square(seen(mechanism, slates), mechanism.pmf(rows)) < 1e-9


def test_candidates_are_the_only_items_shown_and_records_are_cut_among_them() -> None:
    mechanism, among = NaturalSlate(7, 2, 1.0), [6, 1, 4]
    slates = mechanism.prepare(TABLE, among=among).release_many(5000, ReplayedNoise(4)).value
    assert set(slates.ravel().tolist()) == {1, 4, 6}
    small = NaturalSlate(3, 2, 1.0)
    law = small.pmf(
        TABLE[:, [1, 4, 6]]
    )  # not the image of the whole record: user 2 has one like left, which counts in full
    counts = Counter(map(tuple, slates.tolist()))
    assert chi_square(np.array([counts[pair] for pair in ((1, 4), (1, 6), (4, 6))]), law) > 1e-9
    table, chosen = selected_rows(TABLE, 7, 1.0, least=2, among=among, request=np.arange(7) / 7)
    assert chosen.tolist() == [1, 4, 6]
    assert table.toarray()[1].tolist() == [math.floor(STEPS / 7), 0, 0]
    assert repr(mechanism.prepare(TABLE, among=among)) == "PreparedSlates(slates of 2 from 3 items)"
    both = mechanism.prepare(TABLE, among=[2, 5]).release()
    assert both.value.tolist() == [2, 5]
    assert both.guarantee.epsilon == 0.0


@pytest.mark.parametrize("sampler", ["exact", "hybrid", "split", "dense"])
def test_a_slate_is_free_only_where_it_holds_every_candidate(sampler: Any) -> None:
    for k in (1, 2, 4):
        mechanism = NaturalSlate(7, k, 0.8, sampler=sampler)
        others = mechanism.prepare(TABLE, among=np.arange(k + 1)).release()
        assert others.guarantee == mechanism.guarantee
        assert others.guarantee.epsilon == 0.8
        every = mechanism.prepare(TABLE, among=np.arange(k)).release()
        assert every.guarantee.epsilon == 0.0
        assert every.guarantee.loss is not None
        assert every.guarantee.loss.value == 0.0
        assert every.value.tolist() == list(range(k))
    assert NaturalSlate(4, 3, 0.8, sampler=sampler).guarantee.epsilon == 0.8
    assert NaturalSlate.published(7, 2, 0.8).prepare(TABLE, among=[0, 1, 2]).guarantee.promises_nothing


def test_requests_and_candidates_of_the_wrong_kind_are_refused() -> None:
    mechanism = NaturalSlate(7, 2, 1.0)
    for among in ([1], [1, 1], [0, 7], [-1, 2], [0.5, 1.0], [[1, 2]], [], ["a", "b"], 3):
        with pytest.raises(InvalidParameter):
            mechanism.prepare(TABLE, among=among)
    for request in ([1.0] * 6, 1.0, [[1.0] * 7], ["x"] * 7):
        with pytest.raises(InvalidInput):
            mechanism.prepare(TABLE, request=request)
        with pytest.raises(InvalidInput):
            mechanism.prepare(TABLE, request=request, among=[1, 2, 3])
    with pytest.raises(InvalidInput):
        mechanism.prepare(TABLE[:, :6], among=[1, 2, 3])


def test_no_sum_can_overflow() -> None:
    """The largest table there may be, and the widest jitter: by arithmetic, and on a table with every like on one item."""
    assert (MOST_USERS - 1) * SQUARE < 1 << 62
    alike = sparse.csr_array(
        (np.ones(1 << 18), np.zeros(1 << 18, dtype=int), np.arange((1 << 18) + 1)), shape=(1 << 18, 4)
    )
    mechanism = NaturalSlate(4, 1, 20.0)
    law = mechanism.pmf(alike)
    sigma, signal = mechanism.sigma_in_squares, SQUARE << 18
    assert law[0] == (signal + sigma) / (signal + 4 * sigma)
    for epsilon in (1e-12, 1e-6):
        quiet = NaturalSlate(1000, 3, epsilon)
        assert quiet.sigma_in_squares * 1000 > 1 << 60
        slates = quiet.prepare(np.ones((5, 1000))).release_many(300, ReplayedNoise(1)).value
        assert (np.diff(slates, axis=1) > 0).all()
        assert 400 < slates.mean() < 600


def test_a_table_too_long_for_whole_numbers_is_refused_by_its_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid_rows, "MOST_USERS", 3)
    mechanism = NaturalSlate(3, 1, 1.0)
    mechanism.release(np.zeros((2, 3)))
    with pytest.raises(InvalidInput, match="fewer than 3 rows"):
        mechanism.release(np.zeros((3, 3)))
