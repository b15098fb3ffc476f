"""Kernels: what is refused, each with a matrix that is only just too bad and one that is only just good enough."""

import numpy as np
import pytest
from scipy import sparse

from tacit.errors import InvalidParameter
from tacit.models.dpp import laws

GOOD = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 1.0]])


def moved(row: int, column: int, by: float) -> np.ndarray:
    changed = GOOD.copy()
    changed[row, column] += by
    return changed


def with_eigenvalue(value: float) -> np.ndarray:
    """A kernel with eigenvalues 4, 1 and ``value`` that is not diagonal."""
    turn, _ = np.linalg.qr(np.arange(9.0).reshape(3, 3) ** 2 + np.eye(3))
    made: np.ndarray = (turn * [4.0, 1.0, value]) @ turn.T
    return (made + made.T) / 2.0


def test_a_kernel_comes_back_as_it_is() -> None:
    assert np.array_equal(laws.checked_kernel(GOOD.tolist()), GOOD)
    assert np.array_equal(laws.checked_kernel(sparse.csr_array(GOOD)), GOOD)
    assert np.array_equal(laws.checked_kernel([[0.0]]), [[0.0]])


@pytest.mark.parametrize(
    ("matrix", "told"),
    [
        (GOOD[:2], "square"),
        (GOOD[:, :2], "square"),
        (GOOD[0], "table"),
        (np.empty((0, 0)), "at least one row"),
        ([["a"]], "numbers"),
        ([[1.0], [1.0, 2.0]], "numbers"),
        (moved(0, 2, np.nan), "finite"),
        (moved(2, 2, np.inf), "finite"),
        (moved(0, 1, 2.1e-8), "symmetric"),
        (moved(1, 0, 0.5), "symmetric"),
        (with_eigenvalue(-4.2e-10), "semidefinite"),
        (-np.eye(2), "semidefinite"),
        ([[1.0, 2.0], [2.0, 1.0]], "semidefinite"),
    ],
)
def test_a_matrix_that_is_no_kernel_is_refused(matrix: object, told: str) -> None:
    with pytest.raises(InvalidParameter, match=told):
        laws.checked_kernel(matrix)  # type: ignore[arg-type]


def test_rounding_is_forgiven_and_mended() -> None:
    mended = laws.checked_kernel(moved(0, 1, 1.9e-8))
    assert np.array_equal(mended, mended.T)
    laws.checked_kernel(with_eigenvalue(-3.8e-10))
    laws.checked_kernel(GOOD * 1e-300)  # the tolerances are relative
    laws.checked_kernel(GOOD * 4e307)
    with pytest.raises(InvalidParameter, match="semidefinite"):
        laws.checked_kernel(with_eigenvalue(-0.1) * 1e-200)


@pytest.mark.parametrize("k", [0, -1, 4, 2.0, True, None])
def test_a_slate_has_from_one_to_all_items(k: object) -> None:
    with pytest.raises(InvalidParameter, match="k must be a whole number from 1 to 3"):
        laws.checked_size(k, 3)  # type: ignore[arg-type]
    assert laws.checked_size(3, 3) == 3


def test_more_items_than_the_rank_are_refused() -> None:
    features = np.array(
        [[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 2.0], [2.0, 0.0, 2.0]]
    )  # third column: sum of the others
    assert laws.require_rank(features, 2) == laws.rank_of(features) == laws.rank_of(features.T) == 2
    with pytest.raises(InvalidParameter, match=r"rank 3 or more, and these have rank 2"):
        laws.require_rank(features, 3)
    assert laws.rank_of(np.zeros((3, 2))) == 0
    assert laws.rank_of([[1.0, 0.0], [0.0, 1e-12]]) == 2  # small is not nothing


@pytest.mark.parametrize("features", [np.zeros(3), np.empty((0, 2)), [[np.nan]], [[np.inf]], "ab"])
def test_features_are_a_finite_table(features: object) -> None:
    with pytest.raises(InvalidParameter, match="features"):
        laws.checked_features(features)  # type: ignore[arg-type]


def test_weighted_rows_leave_out_a_scale_and_say_which() -> None:
    features, scores = np.array([[1.0, 1.0], [0.0, 2.0], [1.0, 0.0]]), np.array([3.0, 2.0, 0.0])
    rows, scale = laws.weighted_rows(features, 0.5 * scores)
    weight = np.exp(0.25 * scores)[:, None]
    assert np.allclose(np.exp(scale) * rows @ rows.T, (weight * features) @ (weight * features).T, rtol=1e-14)
    assert np.array_equal(rows[0], features[0])  # the best one as it is
    rows, scale = laws.weighted_rows(features, scores + 1e5)
    assert np.isfinite(rows).all()
    assert scale == 1e5 + 3.0
