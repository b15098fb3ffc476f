"""Alter egos: which item replaces which, and what becomes of values and times."""

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from tacit.errors import InvalidParameter
from tacit.models.cross_domain.alter_egos import AlterEgos, alter_egos, replacements, several_replacements
from tacit.models.cross_domain.similarities import layers, pruned
from tacit.models.cross_domain.x_sim import XSim, x_sim
from tests.unit.models.cross_domain.slow_paths import EXAMPLE, drawn_ratings, edges_by_pairs, matrix, profiles_of


def x_of(rows: list[dict[int, float]], n_target: int) -> XSim:
    values = matrix(rows, n_target)
    return XSim(values, values)


def times_of(profiles: Any) -> np.ndarray:
    """The place of each rating in its profile, from 1, in the order of the matrix."""
    return np.array([1 + list(profile).index(item) for profile in profiles for item in sorted(profile)])


def test_the_worked_example() -> None:
    edges = edges_by_pairs(matrix(EXAMPLE, 6))
    chosen = replacements(x_sim(pruned(edges, layers(edges, 3), 3)))
    assert chosen.tolist() == [0, 0, -1]  # target items count from 0: item 3, item 3, none
    source = [{item: value for item, value in one.items() if item < 3} for one in EXAMPLE]
    egos = alter_egos(matrix(source, 3), chosen, 3, times=times_of(source))
    assert egos.times is not None
    assert profiles_of(egos.values)[0] == {0: 4.5}
    assert egos.times[0] == 2
    assert profiles_of(egos.values)[4] == {}


def test_replacement_is_the_most_similar_if_similar_at_all() -> None:
    x = x_of([{0: 0.1, 2: 0.4, 3: 0.2}, {1: -0.2, 3: -0.1}, {}, {2: 0.0}, {0: 0.3, 1: 0.3 + 1e-15, 2: 0.3}], 4)
    assert replacements(x).tolist() == [2, -1, -1, -1, 0]  # ties go to the lower item, and rounding makes no winner
    assert replacements(x_of([], 4)).tolist() == []


def test_a_similarity_that_is_0_but_for_rounding_replaces_nothing() -> None:
    x = x_of([{0: 1.2e-17, 1: -0.1}, {0: 4e-13}, {1: 6e-13}], 2)  # 0 to twelve decimals, or not
    assert replacements(x).tolist() == [-1, -1, 1]
    assert profiles_of(several_replacements(x, 2)) == [{}, {}, {1: 6e-13}]


def test_a_sum_that_cancels_replaces_nothing_whichever_way_it_is_taken() -> None:
    profiles = [
        {6: 2},
        {0: 1, 1: 5, 2: 2},
        {0: 2, 2: 1, 4: 1, 5: 2},
        {0: 4, 6: 2},
        {0: 1, 4: 1},
        {0: 1, 3: 1, 5: 1, 7: 1},
    ]
    edges = edges_by_pairs(matrix([{item: float(value) for item, value in one.items()} for one in profiles], 8))
    legs = pruned(edges, layers(edges, 6), 6, 2)
    for way in ("enumerate", "quadrature", "auto"):
        found = x_sim(legs, way)
        assert found.values.toarray()[5] == pytest.approx([0.0, 0.0], abs=1e-15)
        assert replacements(found).tolist() == [-1] * 6


def test_several_replacements_are_the_best_of_those_above_0() -> None:
    x = x_of([{0: 0.1, 2: 0.4, 3: 0.2}, {1: -0.2, 3: 0.1}, {}, {0: 0.2, 1: 0.2, 2: 0.2}], 4)
    assert profiles_of(several_replacements(x, 2)) == [{2: 0.4, 3: 0.2}, {3: 0.1}, {}, {0: 0.2, 1: 0.2}]
    one = several_replacements(x, 1)
    assert [list(row) for row in profiles_of(one)] == [[2], [3], [], [0]]
    for count in (0, -1, 1.5):
        with pytest.raises(InvalidParameter, match="count"):
            several_replacements(x, count)  # type: ignore[arg-type]


def test_images_of_several_items_have_the_mean_value_and_the_latest_time() -> None:
    source = matrix([{0: 5.0, 1: 2.0, 2: 4.0, 3: 0.0}, {3: 3.0}, {}], 4)
    egos = alter_egos(source, np.array([1, 1, -1, 0]), 3, times=np.array([7, 9, 20, 1, 4]))
    assert egos.times is not None
    assert profiles_of(egos.values) == [{0: 0.0, 1: 3.5}, {0: 3.0}, {}]  # a rating of 0 stays one
    assert egos.times.tolist() == [1, 9, 4]
    assert "0.0" not in repr(egos)
    assert repr(egos) == "AlterEgos(3 users, 3 ratings)"


def test_own_ratings_in_the_target_win() -> None:
    source, target = matrix([{0: 5.0, 1: 2.0}, {0: 1.0}], 2), matrix([{1: 1.0, 2: 4.0}, {}], 3)
    mapped = np.array([1, 0])
    egos = alter_egos(source, mapped, 3, target=target)
    assert profiles_of(egos.values) == [{0: 2.0, 1: 1.0, 2: 4.0}, {1: 1.0}]
    assert egos.times is None
    timed = alter_egos(source, mapped, 3, times=np.array([5, 6, 7]), target=target, target_times=np.array([8, 9]))
    assert timed.times is not None
    assert timed.times.tolist() == [6, 8, 9, 7]
    unknown = alter_egos(source, mapped, 3, times=np.array([5, 6, 7]), target=target)
    assert unknown.times is not None
    assert unknown.times.tolist() == [6, np.iinfo(np.int64).min, np.iinfo(np.int64).min, 7]


@pytest.mark.parametrize("centred", [False, True])
def test_weighted_replacements_against_loops(centred: bool) -> None:
    rng = np.random.default_rng(5)
    source = drawn_ratings(rng, 12, 9, 0.5)
    weights = csr_array(rng.random((9, 7)) * (rng.random((9, 7)) < 0.4))
    centres = (rng.random(9), rng.random(7)) if centred else None
    times = rng.integers(0, 50, source.nnz)
    egos = alter_egos(source, weights, times=times, centres=centres)
    assert egos.times is not None
    place = 0
    for user, profile in enumerate(profiles_of(source)):
        top: dict[int, float] = defaultdict(float)
        bottom: dict[int, float] = defaultdict(float)
        latest: dict[int, int] = {}
        for item, value in profile.items():
            for image, weight in profiles_of(weights)[item].items():
                moved = value if centres is None else value - centres[0][item] + centres[1][image]
                top[image] += weight * moved
                bottom[image] += weight
                latest[image] = max(latest.get(image, -1), int(times[place]))
            place += 1
        assert profiles_of(egos.values)[user] == pytest.approx({image: top[image] / bottom[image] for image in top})
        own = slice(egos.values.indptr[user], egos.values.indptr[user + 1])
        assert egos.times[own].tolist() == [latest[image] for image in sorted(latest)]


def test_wrong_shapes_and_codes_are_refused() -> None:
    source = matrix([{0: 5.0, 1: 2.0}], 2)
    for replacement, n_target in (
        (np.array([0]), 3),
        (np.array([0, 3]), 3),
        (np.array([0, -2]), 3),
        (np.array([0, 1]), None),
    ):
        with pytest.raises(InvalidParameter, match="replacement"):
            alter_egos(source, replacement, n_target)
    with pytest.raises(InvalidParameter, match="replacement"):
        alter_egos(source, csr_array(np.ones((3, 2))))
    with pytest.raises(InvalidParameter, match="target"):
        alter_egos(source, np.array([0, 1]), 3, target=matrix([{}], 2))
    with pytest.raises(InvalidParameter, match="times"):
        AlterEgos(source, np.array([1]))
