"""k-means of weighted points: centres of groups, weights that count, and the same answer for the same seed."""

import numpy as np

from tacit.models.prototypes import weighted_k_means


def loss(points: np.ndarray, weights: np.ndarray, centres: np.ndarray, near: np.ndarray) -> float:
    return float((weights * ((points - centres[near]) ** 2).sum(axis=1)).sum())


def test_groups_that_lie_apart_are_found() -> None:
    rng = np.random.default_rng(1)
    groups = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0], [10.0, 10.0]])
    points = np.repeat(groups, 30, axis=0) + rng.normal(scale=0.2, size=(120, 2))
    centres, near = weighted_k_means(points, np.ones(120), 4, seed=0)
    order = np.lexsort((centres[:, 1].round(), centres[:, 0].round()))
    assert np.abs(centres[order] - groups[[0, 2, 1, 3]]).max() < 0.2
    assert sorted(np.bincount(near)) == [30] * 4
    gaps = ((points[:, None] - centres) ** 2).sum(axis=2)
    assert (near == gaps.argmin(axis=1)).all()


def test_a_weight_counts_as_so_many_points() -> None:
    rng = np.random.default_rng(2)
    points, weights = rng.normal(size=(40, 3)), rng.integers(1, 9, size=40)
    centres, near = weighted_k_means(points, weights.astype(np.float64), 3, seed=0, starts=60)
    many = np.repeat(points, weights, axis=0)
    repeated, there = weighted_k_means(many, np.ones(len(many)), 3, seed=0, starts=60)
    ours = loss(points, weights, centres, near)
    assert abs(ours / loss(many, np.ones(len(many)), repeated, there) - 1.0) < 1e-9
    for place in range(3):
        inside = near == place
        assert np.allclose(centres[place], np.average(points[inside], axis=0, weights=weights[inside]))


def test_the_seed_alone_decides_and_more_starts_lose_no_more() -> None:
    rng = np.random.default_rng(3)
    points, weights = rng.random((200, 5)), rng.random(200) + 0.1
    first, again = (weighted_k_means(points, weights, 12, seed=7) for _ in range(2))
    assert (first[0] == again[0]).all()
    few, many = (loss(points, weights, *weighted_k_means(points, weights, 12, seed=7, starts=n)) for n in (1, 20))
    assert many <= few


def test_few_points_are_their_own_centres_and_equal_points_share_one() -> None:
    points = np.arange(6.0).reshape(3, 2)
    centres, near = weighted_k_means(points, np.ones(3), 5, seed=0)
    assert (centres == points).all()
    assert near.tolist() == [0, 1, 2]
    same, _ = weighted_k_means(np.ones((9, 2)), np.ones(9), 4, seed=0)
    assert same.shape == (4, 2)
    assert (same == 1.0).all()
