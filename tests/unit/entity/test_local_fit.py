"""An entity's fit of its users by each kind of items' factors, and what it predicts where the factors say nothing."""

import numpy as np
import pytest
from scipy import sparse

from tacit.entity.fit import FitKind, FitSettings, LocalFit, clean, fit_local, user_means
from tacit.errors import InvalidInput, InvalidParameter
from tacit.models.nonnegative import adapt, factorise, fit_users

STARS = FitSettings(value_bound=5.0)


def rows(seed: int = 0, users: int = 20, items: int = 10, share: float = 0.5) -> sparse.csr_array:
    rng = np.random.default_rng(seed)
    return sparse.csr_array(
        np.where(rng.random((users, items)) < share, rng.integers(1, 6, (users, items)), 0).astype(float)
    )


ITEMS = np.random.default_rng(9).random((10, 3))


def fit(kind: FitKind, table: object = None, settings: FitSettings = STARS, items: np.ndarray = ITEMS) -> LocalFit:
    return fit_local(rows() if table is None else table, items, kind, settings, rng=np.random.default_rng(2))


def test_each_kind_uses_the_factors_that_it_names() -> None:
    table = rows()
    shared, blend, own = fit(FitKind.GLOBAL), fit(FitKind.BLEND), fit(FitKind.LOCAL)
    assert np.array_equal(shared.items, ITEMS)
    np.testing.assert_allclose(shared.users, fit_users(table, ITEMS))
    near = adapt(table, ITEMS, STARS.pull)
    np.testing.assert_allclose(blend.items, near.items)
    np.testing.assert_allclose(blend.users, near.users)
    alone = factorise(table, 3, rng=np.random.default_rng(2))
    np.testing.assert_allclose(own.items, alone.items)
    np.testing.assert_allclose(own.users, fit_users(table, alone.items))
    for one, kind in ((shared, FitKind.GLOBAL), (blend, FitKind.BLEND), (own, FitKind.LOCAL)):
        assert one.kind is kind


def test_settings_reach_the_fit() -> None:
    other = FitSettings(value_bound=5.0, ridge=2.0, regulariser="sum", pull=0.5, epochs=3)
    np.testing.assert_allclose(fit(FitKind.GLOBAL, None, other).users, fit_users(rows(), ITEMS, 2.0, regulariser="sum"))
    near = adapt(rows(), ITEMS, 0.5, ridge=2.0, regulariser="sum", epochs=3)
    np.testing.assert_allclose(fit(FitKind.BLEND, None, other).items, near.items)
    alone = factorise(rows(), 3, ridge=2.0, regulariser="sum", epochs=3, rng=np.random.default_rng(2))
    np.testing.assert_allclose(fit(FitKind.LOCAL, None, other).items, alone.items)
    clicks = FitSettings(value_bound=5.0, zeros_observed=True)
    np.testing.assert_allclose(fit(FitKind.GLOBAL, None, clicks).users, fit_users(rows().toarray(), ITEMS))


def test_scores_are_products_within_the_bounds() -> None:
    one = LocalFit(
        FitKind.GLOBAL,
        np.array([[1.0, 0.0], [9.0, 1.0]]),
        np.array([[2.0, 1.0], [0.0, 3.0]]),
        np.array([1.0, 2.0]),
        5.0,
    )
    assert one.scores().tolist() == [[2.0, 0.0], [5.0, 3.0]]
    assert one.scores(slice(1, 2)).tolist() == [[5.0, 3.0]]


def test_what_the_factors_say_nothing_of_is_predicted_by_the_users_mean() -> None:
    items = ITEMS.copy()
    items[[2, 7]] = 0.0
    table = rows().tolil()
    table[4] = 0.0  # a user without cells
    table[5] = 0.0
    table[5, 2] = 4.0  # one who knows only an item that the factors do not know
    table = table.tocsr()
    fitted = fit(FitKind.GLOBAL, table, items=items)
    scores, everybody = fitted.scores(), table.data.mean()
    for user in range(20):
        own = table.data[table.indptr[user] : table.indptr[user + 1]]
        expected = own.mean() if own.size else everybody
        np.testing.assert_allclose(scores[user, [2, 7]], expected)
    np.testing.assert_allclose(scores[4], everybody)
    np.testing.assert_allclose(scores[5], 4.0)
    assert len(np.unique(scores[0])) > 5  # the rest is not all means
    users, places = np.nonzero(np.ones((20, 10)))
    np.testing.assert_allclose(fitted.at(users, places).reshape(20, 10), scores)
    for part in (slice(3, 9), slice(15, None)):
        np.testing.assert_allclose(fitted.scores(part), scores[part])


def test_means_count_zeros_where_these_are_observed() -> None:
    table = sparse.csr_array(np.array([[4.0, 0.0, 2.0, 0.0], [0.0] * 4]))
    assert user_means(table, STARS).tolist() == [3.0, 3.0]
    assert user_means(table, FitSettings(value_bound=5.0, zeros_observed=True)).tolist() == [1.5, 0.0]
    assert user_means(sparse.csr_array((2, 4)), STARS).tolist() == [0.0, 0.0]


def test_rows_are_cleaned_and_the_entitys_own_table_stays() -> None:
    raw = sparse.csr_array(
        (np.array([3.0, 1.0, np.nan, 9.0, -2.0, np.inf]), np.array([0, 0, 1, 2, 3, 1]), np.array([0, 5, 6])),
        shape=(2, 4),
    )
    cleaned = clean(raw, 5.0, 4)
    assert cleaned.toarray().tolist() == [[4.0, 0.0, 5.0, 0.0], [0.0] * 4]
    assert cleaned.nnz == 3  # what is no number is unknown; what is below 0 is a known 0
    assert raw.nnz == 6
    with pytest.raises(InvalidInput):
        clean(raw, 5.0, 5)


def test_an_entity_without_users_or_without_cells_is_fitted_too() -> None:
    for kind in FitKind:
        for empty in (sparse.csr_array((0, 10)), sparse.csr_array((3, 10))):
            fitted = fit(kind, empty)
            assert fitted.scores().shape == empty.shape
            assert not fitted.scores().any()


def test_nothing_private_is_shown() -> None:
    for kind in FitKind:
        assert repr(fit(kind)) == "LocalFit(private: stays inside the entity)"


def test_bad_settings_are_refused() -> None:
    for bad in (
        {"value_bound": 0.0},
        {"value_bound": np.nan},
        {"value_bound": 5.0, "pull": 0.0},
        {"value_bound": 5.0, "epochs": 0},
    ):
        with pytest.raises(InvalidParameter):
            FitSettings(**bad)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        fit(FitKind.GLOBAL, items=-ITEMS)
