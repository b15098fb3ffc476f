"""Non-negative factors against a slow, obvious version, against optimality itself, and against cases solved by hand."""

from importlib.util import find_spec

import numpy as np
import pytest
from scipy import sparse

from tacit.errors import InvalidInput, InvalidParameter
from tacit.models.loops import plain as nonnegative_plain
from tacit.models.nonnegative import Penalty, adapt, cells_of, factorise, fit_users

COMPILED = [False, True] if find_spec("numba") else [False]
EXACT = {"epochs": 300, "ridge": 0.1, "regulariser": "sum"}


def seen(n: int, m: int, share: float, seed: int) -> tuple[np.ndarray, np.ndarray, sparse.csr_array]:
    """Random ratings, some of them 0: which cells are known, their values, and the sparse table that stores just those."""
    rng = np.random.default_rng(seed)
    known, values = rng.random((n, m)) < share, rng.integers(0, 6, (n, m)).astype(float)
    rows, columns = np.nonzero(known)
    return known, values, sparse.csr_array((values[known], (rows, columns)), shape=(n, m))


def objective(known, values, users, items, ridge, kind, weights):  # type: ignore[no-untyped-def]
    """The sum that is minimised, cell by cell."""
    total = 0.0
    for i in range(len(users)):
        for j in range(len(items)):
            if known[i, j]:
                total += weights[i] * (values[i, j] - users[i] @ items[j]) ** 2
    cells = (known * weights[:, None]).sum()
    for i, u in enumerate(users):
        total += ridge * weights[i] * {"weighted": known[i].sum(), "sum": 1.0, "literal": cells}[kind] * (u @ u)
    for j, v in enumerate(items):
        total += ridge * {"weighted": known[:, j] @ weights, "sum": 1.0, "literal": cells}[kind] * (v @ v)
    return total


def slow(known, values, users, items, ridge, kind, weights, epochs, sweeps):  # type: ignore[no-untyped-def]
    """Coordinate after coordinate: its parabola through three values of the objective, the vertex cut off at 0."""
    users, items = users.copy(), items.copy()
    for row in range(len(users)):
        if not known[row].any():
            users[row] = 0.0
    for column in range(len(items)):
        if not known[:, column].any():
            items[column] = 0.0
    for _ in range(epochs):
        for side in (users, items):
            for _ in range(sweeps):
                for row in side:
                    for c in range(row.size):
                        heights = []
                        for at in (0.0, 1.0, 2.0):
                            row[c] = at
                            heights.append(objective(known, values, users, items, ridge, kind, weights))
                        bend = heights[2] - 2.0 * heights[1] + heights[0]
                        slope = heights[1] - heights[0] - bend / 2.0
                        row[c] = max(0.0, -slope / bend) if bend > 1e-12 else 0.0
    return users, items


@pytest.mark.parametrize("compiled", COMPILED)
@pytest.mark.parametrize("kind", ["weighted", "sum", "literal"])
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("heavy", [False, True])
def test_the_fast_version_equals_the_slow_one(compiled: bool, kind: str, full: bool, heavy: bool) -> None:
    known, values, cells = seen(5, 4, 0.6, 3)
    known[2] = False  # a user and an item of whom nothing is known
    known[:, 1] = False
    values[~known] = 0.0
    rows, columns = np.nonzero(known)
    cells = sparse.csr_array((values[known], (rows, columns)), shape=known.shape)
    known = np.ones_like(known) if full else known
    weights = np.array([1.0, 2.5, 1.0, 0.5, 3.0]) if heavy else np.ones(5)
    rng = np.random.default_rng(9)
    mean = values.sum() / known.sum()
    start = [np.sqrt(mean / 2) * (0.5 + rng.random((size, 2))) for size in (5, 4)]
    expected = slow(known, values, *start, 0.07, kind, weights, 4, 2)
    fitted = factorise(
        cells, 2, regulariser=kind, ridge=0.07, epochs=4, sweeps=2, rng=np.random.default_rng(9),
        row_weights=weights if heavy else None, zeros_observed=full, compiled=compiled,
    )  # fmt: skip
    np.testing.assert_allclose(fitted.users, expected[0], atol=1e-7)
    np.testing.assert_allclose(fitted.items, expected[1], atol=1e-7)
    last = objective(known, values, fitted.users, fitted.items, 0.07, kind, weights)
    assert fitted.objectives[-1] == pytest.approx(last, rel=1e-10)


@pytest.mark.skipif(len(COMPILED) == 1, reason="numba is not installed")
@pytest.mark.parametrize("full", [False, True])
def test_compiled_parallel_and_plain_agree(full: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, cells = seen(60, 40, 0.2, 4)
    monkeypatch.setattr(nonnegative_plain, "_VALUES", 100)  # four rows at a time
    how = {"rank": 5, "zeros_observed": full, "row_weights": np.linspace(0.0, 2.0, 60)}
    plain = factorise(cells, rng=np.random.default_rng(1), compiled=False, **how)  # type: ignore[arg-type]
    fast = factorise(cells, rng=np.random.default_rng(1), compiled=True, **how)  # type: ignore[arg-type]
    many = factorise(cells, rng=np.random.default_rng(1), compiled=True, parallel=True, **how)  # type: ignore[arg-type]
    for one, other in ((plain.users, fast.users), (plain.items, fast.items), (plain.objectives, fast.objectives)):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    assert np.array_equal(many.items, fast.items)
    assert np.array_equal(many.users, fast.users)


@pytest.mark.parametrize("compiled", COMPILED)
def test_cases_that_are_solved_by_hand(compiled: bool) -> None:
    def product(values: list[list[float]], **how: object) -> np.ndarray:
        fitted = factorise(values, 1, rng=np.random.default_rng(0), compiled=compiled, **{**EXACT, **how})  # type: ignore[arg-type]
        return fitted.users @ fitted.items.T

    assert product([[4.0]]).item() == pytest.approx(3.9, abs=1e-9)
    ones = [[1.0, 1.0], [1.0, 1.0]]
    np.testing.assert_allclose(product(ones), 0.95, atol=1e-9)
    np.testing.assert_allclose(product(ones, regulariser="literal"), 0.8, atol=1e-9)
    np.testing.assert_allclose(product(ones, regulariser="literal", ridge=0.6), 0.0, atol=1e-9)
    # weighted with two cells in every row and column is a sum with twice the ridge: 2 - 0.2 over two
    np.testing.assert_allclose(product(ones, regulariser="weighted"), 0.9, atol=1e-9)


@pytest.mark.parametrize("compiled", COMPILED)
@pytest.mark.parametrize("kind", list(Penalty))
@pytest.mark.parametrize("full", [False, True])
def test_the_objective_never_rises(compiled: bool, kind: Penalty, full: bool) -> None:
    for seed in range(4):
        _, _, cells = seen(30, 25, 0.3, seed)
        ridge = 0.02 if kind is not Penalty.LITERAL else 1e-4
        fitted = factorise(
            cells, 4, regulariser=kind, ridge=ridge, epochs=40, rng=np.random.default_rng(seed), zeros_observed=full,
            row_weights=np.random.default_rng(seed).random(30), compiled=compiled,
        )  # fmt: skip
        falls = -np.diff(fitted.objectives)
        assert (falls >= -1e-9 * fitted.objectives[0]).all()
        assert fitted.objectives[-1] < 0.9 * fitted.objectives[0]  # and there was something to gain


@pytest.mark.parametrize("compiled", COMPILED)
def test_users_are_optimal_given_the_items(compiled: bool) -> None:
    known, values, cells = seen(40, 30, 0.4, 5)
    items = np.random.default_rng(2).random((30, 4)) * np.array([1.0, 0.2, 3.0, 1.0])
    users = fit_users(cells, items, 0.3, regulariser="sum", sweeps=3000, compiled=compiled)
    errors = np.where(known, users @ items.T - values, 0.0)
    gradient = 2.0 * errors @ items + 2.0 * 0.3 * users
    assert (users >= 0.0).all()
    assert (users == 0.0).any()
    assert np.abs(gradient[users > 0.0]).max() < 1e-9
    assert gradient[users == 0.0].min() > -1e-9
    weighted = fit_users(cells, items, 0.3, sweeps=3000, compiled=compiled)
    gradient = 2.0 * np.where(known, weighted @ items.T - values, 0.0) @ items
    gradient += 2.0 * 0.3 * known.sum(axis=1)[:, None] * weighted
    assert np.abs(gradient[weighted > 0.0]).max() < 1e-9


@pytest.mark.parametrize("compiled", COMPILED)
def test_thirty_sweeps_are_nearly_the_optimum(compiled: bool) -> None:
    _, _, cells = seen(40, 30, 0.4, 5)
    items = np.random.default_rng(2).random((30, 4))
    few, many = (fit_users(cells, items, sweeps=sweeps, compiled=compiled) for sweeps in (30, 3000))
    assert np.abs((few - many) @ items.T).max() < 0.1
    assert np.abs(few - many).max() > 0.0


@pytest.mark.parametrize("compiled", COMPILED)
def test_a_user_is_fitted_alone(compiled: bool) -> None:
    _, _, cells = seen(20, 15, 0.4, 6)
    items = np.random.default_rng(3).random((15, 3))
    together = fit_users(cells, items, compiled=compiled)
    for user in range(20):
        np.testing.assert_allclose(fit_users(cells[[user]], items, compiled=compiled)[0], together[user], atol=1e-12)


@pytest.mark.parametrize("compiled", COMPILED)
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("kind", ["sum", "weighted"])
def test_a_row_of_weight_two_counts_as_two_rows(compiled: bool, full: bool, kind: str) -> None:
    _, _, cells = seen(6, 5, 0.8, 7)
    twice = sparse.vstack([cells, cells[[0]], cells[[3]], cells[[3]]], format="csr")
    how = {
        "rank": 1,
        "regulariser": kind,
        "ridge": {"sum": 3.0, "weighted": 0.3}[kind],
        "epochs": 150,
        "zeros_observed": full,
        "compiled": compiled,
    }
    one = factorise(cells, rng=np.random.default_rng(0), row_weights=[2, 1, 1, 3, 1, 1], **how)  # type: ignore[arg-type]
    other = factorise(twice, rng=np.random.default_rng(1), **how)  # type: ignore[arg-type]
    np.testing.assert_allclose(one.items, other.items, rtol=1e-6)
    np.testing.assert_allclose(one.users, other.users[:6], rtol=1e-6)
    assert one.objectives[-1] == pytest.approx(other.objectives[-1], rel=1e-9)


@pytest.mark.parametrize("compiled", COMPILED)
def test_a_row_of_weight_nothing_teaches_nothing(compiled: bool) -> None:
    _, _, cells = seen(6, 5, 0.8, 7)
    other = cells.copy()
    other.data[other.indptr[2] : other.indptr[3]] = 5.0
    # The mean of all cells sets the start, and it differs: run to the optimum, which is one for rank 1.
    first, second = (
        factorise(
            x, 1, rng=np.random.default_rng(0), row_weights=[1, 1, 0, 1, 1, 1], ridge=0.3, epochs=150, compiled=compiled
        )
        for x in (cells, other)
    )
    np.testing.assert_allclose(first.items, second.items, rtol=1e-6)


@pytest.mark.parametrize("compiled", COMPILED)
@pytest.mark.parametrize("full", [False, True])
def test_a_stronger_pull_keeps_items_nearer_to_the_given_ones(compiled: bool, full: bool) -> None:
    known, values, cells = seen(30, 12, 0.5, 8)
    known[:, 4] = False
    rows, columns = np.nonzero(known)
    cells = sparse.csr_array((values[known], (rows, columns)), shape=known.shape)
    given = np.random.default_rng(4).random((12, 3))
    gaps = []
    for pull in (1e-3, 1.0, 30.0, 1e9):
        fitted = adapt(cells, given, pull, epochs=50, zeros_observed=full, compiled=compiled)
        assert (np.diff(fitted.objectives) <= 1e-9 * fitted.objectives[0]).all()
        gaps.append(np.abs(fitted.items - given).max())
        if not full:
            np.testing.assert_allclose(fitted.items[4], given[4], atol=1e-12)  # nobody here knows that item
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[0] > 0.5
    assert gaps[-1] < 1e-5


@pytest.mark.parametrize("compiled", COMPILED)
def test_adapted_items_are_optimal_given_the_users(compiled: bool) -> None:
    known, values, cells = seen(30, 12, 0.5, 8)
    given = np.random.default_rng(4).random((12, 3))
    fitted = adapt(cells, given, 7.0, ridge=2.0, regulariser="sum", epochs=400, compiled=compiled)
    errors = np.where(known, fitted.users @ fitted.items.T - values, 0.0)
    gradient = 2.0 * errors.T @ fitted.users + 2.0 * 7.0 * (fitted.items - given)
    assert np.abs(gradient[fitted.items > 0.0]).max() < 1e-6
    assert gradient[fitted.items == 0.0].min(initial=0.0) > -1e-6
    total = (errors**2).sum() + 2.0 * (fitted.users**2).sum() + 7.0 * ((fitted.items - given) ** 2).sum()
    assert fitted.objectives[-1] == pytest.approx(total, rel=1e-10)


def test_a_stored_zero_is_known_and_a_missing_cell_is_not() -> None:
    stored = sparse.csr_array((np.array([0.0, 4.0]), np.array([0, 1]), np.array([0, 2])), shape=(1, 3))
    items = np.ones((3, 1))
    assert fit_users(stored, items, 0.0).item() == pytest.approx(2.0)
    assert fit_users(stored.toarray(), items, 0.0).item() == pytest.approx(4.0 / 3.0)
    assert fit_users(stored, items, 0.0, zeros_observed=True).item() == pytest.approx(4.0 / 3.0)


def test_repeated_cells_are_added_up_and_the_table_of_the_caller_stays() -> None:
    rows = sparse.csr_array((np.array([1.0, 2.0]), np.array([1, 1]), np.array([0, 2])), shape=(1, 2))
    assert fit_users(rows, np.ones((2, 1)), 0.0).item() == pytest.approx(3.0)
    assert rows.nnz == 2


def test_dense_tables_with_many_and_with_few_zeros_take_the_same_way() -> None:
    _, values, _ = seen(12, 9, 1.0, 2)
    thin = np.where(np.random.default_rng(1).random(values.shape) < 0.1, values, 0.0)
    assert isinstance(cells_of(values).by_row, np.ndarray)
    assert sparse.issparse(cells_of(thin).by_row)
    assert cells_of(thin).full
    for one in (values, thin):
        dense = factorise(one, 2, rng=np.random.default_rng(5))
        held = factorise(sparse.csr_array(one), 2, rng=np.random.default_rng(5), zeros_observed=True)
        np.testing.assert_allclose(dense.items, held.items, rtol=1e-9, atol=1e-12)


def test_what_nobody_knows_gets_zeros_and_an_empty_table_is_no_error() -> None:
    cells = sparse.csr_array((np.array([3.0]), np.array([1]), np.array([0, 1, 1])), shape=(2, 3))
    fitted = factorise(cells, 2, rng=np.random.default_rng(0))
    assert fitted.items[[0, 2]].tolist() == [[0.0, 0.0]] * 2
    assert fitted.users[1].tolist() == [0.0, 0.0]
    assert fitted.items[1].min() > 0.0
    for empty in (sparse.csr_array((0, 4)), sparse.csr_array((3, 4)), np.zeros((3, 4)), np.zeros((0, 4))):
        nothing = factorise(empty, 2, rng=np.random.default_rng(0), epochs=2)
        assert nothing.items.tolist() == np.zeros((4, 2)).tolist()
        assert fit_users(empty, np.ones((4, 2))).tolist() == np.zeros((empty.shape[0], 2)).tolist()


def test_a_table_of_low_rank_is_recovered_where_nobody_rated() -> None:
    rng = np.random.default_rng(11)
    truth = rng.random((80, 2)) @ rng.random((2, 50)) * 4.0
    cells = sparse.csr_array(np.where(rng.random(truth.shape) < 0.4, truth, 0.0))
    two, one = (factorise(cells, rank, ridge=1e-4, epochs=200, rng=np.random.default_rng(1)) for rank in (2, 1))
    assert np.abs(two.users @ two.items.T - truth).max() < 0.1
    assert np.abs(one.users @ one.items.T - truth).max() > 0.5  # so the test can fail


def test_a_given_start_takes_the_place_of_a_drawn_one() -> None:
    _, _, cells = seen(12, 9, 0.6, 2)
    far = factorise(cells, 2, rng=np.random.default_rng(1), epochs=400)
    on = factorise(cells, 2, rng=np.random.default_rng(2), epochs=2, start=far.items)
    np.testing.assert_allclose(on.items, far.items, atol=1e-3)
    assert np.abs(factorise(cells, 2, rng=np.random.default_rng(2), epochs=2).items - far.items).max() > 0.01
    for start in (np.ones((9, 3)), np.ones((8, 2)), -np.ones((9, 2))):
        with pytest.raises(InvalidInput):
            factorise(cells, 2, rng=np.random.default_rng(1), start=start)


def test_bad_parameters_are_refused() -> None:
    rng, good = np.random.default_rng(0), np.ones((2, 3))
    for how in ({"rank": 0}, {"rank": 1, "epochs": 0}, {"rank": 1, "sweeps": 0}, {"rank": 1, "ridge": -1.0},
                {"rank": 1, "ridge": np.nan}, {"rank": 1, "regulariser": "none"}):  # fmt: skip
        with pytest.raises(InvalidParameter):
            factorise(good, rng=rng, **how)  # type: ignore[arg-type]
    for values in (np.ones(3), np.array([[np.nan, 1.0]]), sparse.csr_array(np.array([[np.inf, 1.0]]))):
        with pytest.raises(InvalidInput):
            factorise(values, 1, rng=rng)
    for weights in ([1.0], [1.0, -1.0], [1.0, np.nan]):
        with pytest.raises(InvalidInput):
            factorise(good, 1, rng=rng, row_weights=weights)
    for items in (np.ones((2, 1)), np.ones(3), -np.ones((3, 1)), np.full((3, 1), np.nan), np.ones((3, 0))):
        with pytest.raises(InvalidInput):
            fit_users(good, items)
        with pytest.raises(InvalidInput):
            adapt(good, items, 1.0)
    for pull in (0.0, -1.0, np.nan):
        with pytest.raises(InvalidParameter):
            adapt(good, np.ones((3, 1)), pull)
