"""The greedy slate of a kernel against one that works out every determinant anew."""

import numpy as np
import pytest

from tacit.errors import InvalidParameter
from tacit.models.dpp.tempered import greedy_map

VECTOR_A = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 1.0]])


def slow(kernel: np.ndarray, k: int) -> list[int]:
    """Each time the item with the largest determinant, the lowest of several."""
    chosen: list[int] = []
    for _ in range(k):
        rest = [item for item in range(len(kernel)) if item not in chosen]
        found = {item: np.linalg.det(kernel[np.ix_([*chosen, item], [*chosen, item])]) for item in rest}
        best = max(found.values())
        chosen.append(min(item for item, value in found.items() if value >= best * (1.0 - 1e-9)))
    return chosen


def test_vector_a_with_ties_to_the_lowest_index() -> None:
    assert greedy_map(VECTOR_A, 3).tolist() == [0, 1, 2]
    assert greedy_map(np.eye(4), 4).tolist() == [0, 1, 2, 3]
    assert greedy_map(np.eye(4)[:, ::-1] @ np.eye(4)[:, ::-1], 2).tolist() == [0, 1]


@pytest.mark.parametrize("seed", range(20))
def test_equals_the_slow_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(12, 5)) * rng.lognormal(size=12)[:, None]
    jittered, sigma = rows @ rows.T + 0.3 * np.eye(12), 0.3
    assert greedy_map(jittered, 12).tolist() == greedy_map((rows, sigma), 12).tolist() == slow(jittered, 12)
    assert greedy_map(rows @ rows.T, 5).tolist() == greedy_map((rows, 0.0), 5).tolist() == slow(rows @ rows.T, 5)


@pytest.mark.parametrize("seed", range(10))
def test_weights_stand_for_a_scaled_kernel(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, quality = rng.normal(size=(9, 4)), rng.random(9)
    scaled = np.exp(1.5 * quality)[:, None] * (rows @ rows.T + 0.1 * np.eye(9)) * np.exp(1.5 * quality)
    assert greedy_map((rows, 0.1), 9, log_weights=3.0 * quality).tolist() == slow(scaled, 9)


def test_large_weights_choose_by_quality_and_do_not_overflow() -> None:
    rows, quality = np.random.default_rng(3).normal(size=(8, 8)), np.array([5, 1, 7, 3, 8, 2, 6, 4.0])
    assert greedy_map((rows, 0.0), 8, log_weights=1e6 * quality).tolist() == [4, 2, 6, 0, 7, 3, 5, 1]


def test_slate_ends_where_the_rank_does() -> None:
    rows = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 0.0], [1.0, 1.0]])
    assert greedy_map((rows, 0.0), 5).tolist() == greedy_map(rows @ rows.T, 5).tolist() == [1, 2]
    assert greedy_map(np.zeros((3, 3)), 2).tolist() == []


def test_fill_follows_by_weight_and_size() -> None:
    rows = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 0.0], [1.0, 1.0]])
    assert greedy_map((rows, 0.0), 5, fill=True).tolist() == [1, 2, 4, 0, 3]
    heavier = [1.0, 0.0, 0.0, 9.0, 0.0]
    assert greedy_map((rows, 0.0), 4, log_weights=heavier, fill=True).tolist() == [1, 2, 0, 4]
    assert greedy_map(np.zeros((3, 3)), 2, fill=True).tolist() == [0, 1]


def test_duplicates_stand_together_only_with_jitter() -> None:
    twins = np.array([[3.0, 0.0], [3.0, 0.0], [0.0, 1e-3]])
    assert greedy_map((twins, 0.0), 2).tolist() == [0, 2]
    assert greedy_map((twins, 1.0), 2).tolist() == [0, 1]


def test_small_jitter_beside_large_rows_is_not_mistaken_for_nothing() -> None:
    rows = np.array([[1e7], [2e7], [1e7]])
    assert greedy_map((rows, 1e3), 3).tolist() == [1, 0, 2]
    assert sorted(greedy_map((10.0 * rows, 1e-6), 3).tolist()) == [0, 1, 2]  # less than rounding leaves of the rows


@pytest.mark.parametrize(
    ("kernel", "k"),
    [
        (np.eye(3), 0),
        (np.eye(3), 4),
        (np.ones((2, 3)), 1),
        ([[np.nan]], 1),
        (-np.eye(2), 1),
        ((np.eye(3), -1.0), 1),
        ((np.eye(3), np.nan), 1),
        ((np.full((2, 2), np.inf), 1.0), 1),
    ],
)
def test_bad_kernels_and_sizes_are_refused(kernel: object, k: int) -> None:
    with pytest.raises(InvalidParameter):
        greedy_map(kernel, k)  # type: ignore[arg-type]


@pytest.mark.parametrize("weights", [[1.0], [1.0, np.nan, 1.0], [np.inf, 0.0, 0.0]])
def test_bad_weights_are_refused(weights: list[float]) -> None:
    with pytest.raises(InvalidParameter, match="log_weights"):
        greedy_map(np.eye(3), 1, log_weights=weights)
