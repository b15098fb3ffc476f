"""Clusters of look-alikes: their diameters against one person after the other."""

import numpy as np
import pytest

from tacit.errors import InvalidParameter
from tacit.models import multi_selection
from tacit.models.multi_selection import cluster_diameters


def brute_force(people: np.ndarray, person: int, size: int) -> float:
    distances = [float(np.abs(other - people[person]).sum()) for other in people]
    nearest = sorted(range(len(people)), key=distances.__getitem__)[:size]
    return max(float(np.abs(people[a] - people[b]).sum()) for a in nearest for b in nearest)


def test_three_people_on_a_line_by_hand() -> None:
    people = np.array([[0.0], [1.0], [3.0], [10.0]])
    found = cluster_diameters(people, 2, rng=np.random.default_rng(1))
    assert sorted(found) == [1.0, 1.0, 2.0, 7.0]  # 0-1, 1-0, 3-1, 10-3
    assert sorted(cluster_diameters(people, 3, rng=np.random.default_rng(1))) == [3.0, 3.0, 3.0, 9.0]
    assert cluster_diameters(people, 4, rng=np.random.default_rng(1)).tolist() == [10.0] * 4


@pytest.mark.parametrize("size", [2, 5, 9])
def test_everyone_once_equals_brute_force(size: int) -> None:
    people = np.random.default_rng(4).dirichlet(np.ones(5), size=60)
    found = cluster_diameters(people, size, centres=1000, rng=np.random.default_rng(7))
    np.testing.assert_allclose(sorted(found), sorted(brute_force(people, one, size) for one in range(60)), rtol=1e-12)


def test_centres_are_a_sample_without_repeats_that_the_rng_decides() -> None:
    people = np.arange(50.0)[:, None] ** 2  # every cluster of two has a diameter of its own but for one pair
    found = [cluster_diameters(people, 2, centres=20, rng=np.random.default_rng(seed)) for seed in (1, 1, 2)]
    assert len(found[0]) == 20
    assert len(set(found[0].tolist())) >= 19
    assert found[0].tolist() == found[1].tolist() != found[2].tolist()


def test_parts_give_the_same_as_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    people = np.random.default_rng(4).random((40, 3))
    whole = cluster_diameters(people, 5, rng=np.random.default_rng(7))
    for distances in (1, 40 * 3, 40 * 7):
        monkeypatch.setattr(multi_selection, "_DISTANCES", distances)
        assert cluster_diameters(people, 5, rng=np.random.default_rng(7)).tolist() == whole.tolist()


def test_single_precision_and_repeated_people_are_fine() -> None:
    people = np.repeat(np.eye(2, dtype=np.float32), 5, axis=0)
    assert cluster_diameters(people, 5, rng=np.random.default_rng(1)).tolist() == [0.0] * 10
    assert cluster_diameters(people, 6, rng=np.random.default_rng(1)).tolist() == [2.0] * 10


@pytest.mark.parametrize(
    ("people", "size"),
    [
        (np.zeros((4, 2)), 5),
        (np.zeros(10), 5),
        (np.full((9, 2), np.nan), 5),
        (np.zeros((9, 2)), 1),
        (np.zeros((0, 2)), 2),
    ],
)
def test_what_is_no_population_is_refused(people: np.ndarray, size: int) -> None:
    with pytest.raises(InvalidParameter):
        cluster_diameters(people, size, rng=np.random.default_rng(1))
