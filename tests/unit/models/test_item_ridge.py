"""Item-item ridge: both forms are the plain formula, and pseudo-rows change nothing but the head."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from tacit.errors import InvalidParameter
from tacit.models.moments import Blend, _inverse, item_ridge, unit_rows


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20_240_229)


def plain_weights(rows: NDArray[np.float64], ridge: float) -> NDArray[np.float64]:
    """EASE as it is written down: I - P / diag P, P = (R^T R + ridge I)^-1."""
    inverse = np.linalg.inv(rows.T @ rows + ridge * np.eye(rows.shape[1]))
    return np.asarray(np.eye(rows.shape[1]) - inverse / np.diagonal(inverse))


def unit(marks: NDArray[np.float64]) -> NDArray[np.float64]:
    return marks / np.maximum(1.0, np.sqrt(marks.sum(axis=1, keepdims=True)))


def marks_of(rng: np.random.Generator, users: int, items: int) -> NDArray[np.float64]:
    marks = (rng.random((users, items)) < 0.3).astype(np.float64)
    marks[0] = 0.0
    return marks


SHAPES = [(7, 12), (12, 7), (1, 5), (30, 30)]


def test_two_items_of_the_worked_example() -> None:
    """G = [[2, 1], [1, 2]] and a ridge of 1 give the weight 1/3: from rows (1, 0), (0, 1) and sqrt 2 times the unit row (1, 1)."""
    assert plain_weights(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), 1.0)[0, 1] == pytest.approx(1 / 3)
    marks = np.array([[1, 0], [0, 1], [1, 1], [1, 1]])
    for dual in (True, False):
        scores = item_ridge(marks, 1.0, dual=dual).scores(np.eye(2))
        assert scores == pytest.approx(np.array([[0, 1 / 3], [1 / 3, 0]]), abs=1e-12)


@pytest.mark.parametrize(("users", "items"), SHAPES)
@pytest.mark.parametrize("ridge", [0.01, 1.0, 50.0])
def test_both_forms_are_the_plain_formula(users: int, items: int, ridge: float, rng: np.random.Generator) -> None:
    marks = marks_of(rng, users, items)
    weights = plain_weights(unit(marks), ridge)
    other = marks_of(rng, 9, items)
    for dual in (True, False, None):
        fit = item_ridge(sparse.csr_array(marks), ridge, dual=dual)
        assert fit.scores() == pytest.approx(marks @ weights, abs=1e-9)
        for given in (other, sparse.csr_array(other)):
            assert np.asarray(fit.scores(given)) == pytest.approx(other @ weights, abs=1e-9)
        for part in (slice(0, 3), slice(2, None), slice(users, None)):
            assert fit.scores(users=part) == pytest.approx((marks @ weights)[part], abs=1e-9)


def test_the_form_with_the_smaller_matrix_is_taken(rng: np.random.Generator) -> None:
    assert item_ridge(marks_of(rng, 4, 9), 1.0).solved.shape == (4, 9)
    assert item_ridge(marks_of(rng, 20, 9), 1.0).solved.shape == (9, 9)


@pytest.mark.parametrize(("users", "items"), SHAPES)
@pytest.mark.parametrize("alpha", [1e-6, 0.1, 3.0])
def test_a_blend_is_the_plain_formula_on_all_rows_within_the_head_and_the_users_own_outside(
    users: int, items: int, alpha: float, rng: np.random.Generator
) -> None:
    marks, head = marks_of(rng, users, items), np.sort(rng.permutation(items)[: items // 2 + 1])
    pseudo = rng.normal(size=(4, head.size)) * 2
    full = np.zeros((4, items))
    full[:, head] = pseudo
    own = plain_weights(unit(marks), 2.0)
    both = plain_weights(np.vstack([unit(marks), np.sqrt(alpha) * full]), 2.0)
    expected = own.copy()
    expected[:, head] = both[:, head]
    other = marks_of(rng, 5, items)
    for dual in (True, False):
        blend = Blend(item_ridge(marks, 2.0, dual=dual), head, pseudo)
        assert blend.scores(alpha) == pytest.approx(marks @ expected, abs=1e-9)
        assert blend.scores(alpha, users=slice(1, 3)) == pytest.approx((marks @ expected)[1:3], abs=1e-9)
        assert np.asarray(blend.scores(alpha, other)) == pytest.approx(other @ expected, abs=1e-9)
        assert np.asarray(blend.scores(alpha, sparse.csr_array(other))) == pytest.approx(other @ expected, abs=1e-9)


def test_a_weight_of_nothing_and_no_pseudo_rows_leave_the_scores_as_they_are(rng: np.random.Generator) -> None:
    fit = item_ridge(marks_of(rng, 6, 10), 1.5)
    for blend, alpha in (
        (Blend(fit, np.arange(3), np.ones((2, 3))), 0.0),
        (Blend(fit, np.arange(3), np.zeros((0, 3))), 1.0),
    ):
        assert (blend.scores(alpha) == fit.scores()).all()


def test_many_weights_need_one_factorisation(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    from tacit.models import moments as module

    inverse = module._inverse
    monkeypatch.setattr(module, "_inverse", lambda matrix: (calls.append(len(matrix)), inverse(matrix))[1])
    blend = Blend(module.item_ridge(marks_of(rng, 6, 10), 1.5), np.arange(4), rng.normal(size=(2, 4)))
    found = [blend.scores(alpha) for alpha in (0.01, 0.1, 1.0)]
    assert calls == [6]
    assert len({one.tobytes() for one in found}) == 3


def test_pseudo_rows_alone_are_a_regression_of_their_own(rng: np.random.Generator) -> None:
    """No users: the release by itself."""
    pseudo, rows = rng.normal(size=(5, 8)), marks_of(rng, 4, 8)
    nobody = item_ridge(sparse.csr_array((0, 8)), 1.0)
    assert nobody.scores().shape == (0, 8)
    assert nobody.scores(rows) == pytest.approx(np.zeros((4, 8)))
    found = Blend(nobody, np.arange(8), pseudo).scores(0.5, rows)
    assert found == pytest.approx(rows @ plain_weights(np.sqrt(0.5) * pseudo, 1.0), abs=1e-10)


def test_marks_are_what_is_above_0_once_for_each_item() -> None:
    table = sparse.coo_array(([2.0, 3.0, -1.0, 5.0, np.nan], ([0, 0, 0, 1, 1], [0, 0, 1, 2, 0])), shape=(3, 3))
    rows, norms = unit_rows(table)
    assert rows.toarray().tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 0]]
    assert norms.tolist() == [1, 1, 0]
    assert np.linalg.norm(unit_rows([[1, 1, 1, 0]])[0].toarray()) == pytest.approx(1.0)


def test_the_diagonal_stays_above_0_where_rounding_would_take_it(rng: np.random.Generator) -> None:
    marks = np.ones((400, 3))
    for dual in (True, False):
        fit = item_ridge(marks, 1e-15, dual=dual)
        assert (fit.diagonal > 0).all()
        assert np.isfinite(fit.scores()).all()
        assert np.isfinite(Blend(fit, np.array([0, 2]), np.full((2, 2), 1e3)).scores(1e6)).all()


def test_pseudo_rows_of_any_weight_leave_the_diagonal_above_0(rng: np.random.Generator) -> None:
    """1 / (2 + 1e20) is far below the rounding of 1 - 1: the least that it can be is known, and taken."""
    for pseudo in (np.eye(6) * 1e10, np.full((1, 6), 1e10), rng.normal(size=(6, 6)) * 1e10):
        for dual in (True, False):
            blend = Blend(item_ridge(np.eye(6), 1.0, dual=dual), np.arange(6), pseudo)
            scores = blend.scores(1.0)  # numpy would warn of a division by 0, and warnings are errors
            assert np.isfinite(scores).all()


@pytest.mark.parametrize("ridge", [0.0, -1.0, np.nan, np.inf])
def test_a_ridge_outside_its_range_is_refused(ridge: float) -> None:
    with pytest.raises(InvalidParameter):
        item_ridge(np.eye(3), ridge)


@pytest.mark.parametrize(
    ("head", "pseudo"), [([0, 9], (1, 2)), ([-1, 0], (1, 2)), ([0, 1], (1, 3)), ([0, 1, 2], (2, 2))]
)
def test_pseudo_rows_of_another_catalogue_are_refused(head: Any, pseudo: Any) -> None:
    with pytest.raises(InvalidParameter):
        Blend(item_ridge(np.eye(3), 1.0), np.array(head), np.zeros(pseudo))


@pytest.mark.parametrize("alpha", [-0.1, np.nan, np.inf])
def test_a_weight_outside_its_range_is_refused(alpha: float) -> None:
    with pytest.raises(InvalidParameter):
        Blend(item_ridge(np.eye(3), 1.0), np.array([0]), np.ones((1, 1))).scores(alpha)


def test_a_fit_does_not_show_how_many_users_there_are() -> None:
    fit = item_ridge(np.tile(np.eye(3), (1234, 1)), 1.0)
    assert "37" not in repr(fit)
    assert repr(fit) == "ItemRidge(3 items)"
    assert repr(Blend(fit, np.array([0]), np.ones((2, 1)))) == "Blend(2 pseudo-rows over 1 items)"


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 127, 128, 129, 200])
def test_small_and_large_matrices_are_inverted_alike(rng: np.random.Generator, size: int) -> None:
    rows = rng.normal(size=(size, size + 3))
    matrix = rows @ rows.T + np.eye(size)
    inverse = _inverse(matrix.copy())
    assert inverse.shape == (size, size)
    assert np.allclose(inverse, np.linalg.inv(matrix), rtol=1e-9, atol=1e-12)
    assert np.allclose(inverse, inverse.T, rtol=0.0, atol=1e-14)
