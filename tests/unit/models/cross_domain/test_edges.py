"""Ranking edges: larger first, ties to the lower item, rounding is no difference."""

import numpy as np

from tacit.models.cross_domain.edges import Edges, best_of_groups, goodness


def test_cosines_that_differ_by_rounding_are_equally_good() -> None:
    good = goodness(np.array([1.0, 1.0 - 1e-15, 0.5, 0.5 + 1e-11]))
    assert good[0] == good[1]
    assert good[2] < good[3]


def test_absolute_goodness_ignores_the_sign() -> None:
    assert goodness(np.array([-0.9]), "absolute") > goodness(np.array([0.8]), "absolute")
    assert goodness(np.array([-0.9])) < goodness(np.array([0.8]))


def test_the_best_of_each_are_as_sorting_says() -> None:
    rng = np.random.default_rng(3)
    cells = np.sort(rng.permutation(200)[:120])
    first, second = cells // 20, cells % 20
    good = rng.integers(0, 4, 120).astype(float)  # many ties
    for k in (1, 3, 50):
        kept = best_of_groups(first, good, k)
        expected = []
        for row in range(10):
            mine = [place for place in range(120) if first[place] == row]
            best = sorted(mine, key=lambda place: (-good[place], second[place]))[:k]
            expected += sorted(best, key=lambda place: second[place])
        assert kept.tolist() == expected


def test_no_edges_have_no_best() -> None:
    none = np.empty(0, dtype=np.int32)
    assert best_of_groups(none, np.empty(0), 3).size == 0


def test_rows_name_the_item_of_every_entry_and_the_repr_shows_sizes_only() -> None:
    edges = Edges(
        np.array([0, 1, 1, 2]), np.array([2, 0], dtype=np.int32), np.array([0.5, 0.5]), np.array([1, 1]), np.ones(2)
    )
    assert edges.rows.tolist() == [0, 2]
    assert repr(edges) == "Edges(3 items, 1 edges)"
