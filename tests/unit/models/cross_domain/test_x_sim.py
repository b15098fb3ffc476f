"""X-SIM by lists of paths and by integrals, against a walk along every path."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from tacit.errors import InvalidParameter
from tacit.models.cross_domain import x_sim as module
from tacit.models.cross_domain.similarities import Leg, Legs, layers, pruned
from tacit.models.cross_domain.x_sim import XSim, longest, thirds, x_sim
from tests.unit.models.cross_domain.slow_paths import (
    EXAMPLE,
    drawn_ratings,
    edges_by_pairs,
    matrix,
    x_sim_by_recursion,
)

WAYS = ["auto", "enumerate", "quadrature"]
TOLERANCES = {"auto": 1e-12, "enumerate": 1e-12, "quadrature": 1e-9}
NOTHING = Leg(*(np.zeros(0, dtype=kind) for kind in (np.int32, np.int32, np.float64, np.int64, np.float64)))


def drawn_leg(rng: np.random.Generator, outer: range, inner: range, k: int, most: int) -> Leg:
    """Each outer item with up to k edges, some with none."""
    found = [
        (first, int(second))
        for first in outer
        for second in np.sort(rng.choice(inner, size=min(k, len(inner), int(rng.integers(0, k + 2))), replace=False))
    ]
    first, second = (np.array([edge[place] for edge in found], dtype=np.int32) for place in (0, 1))
    n = len(found)
    return Leg(first, second, rng.uniform(-1, 1, n), rng.integers(1, most + 1, n), rng.uniform(0.05, 1.0, n))


def drawn_legs(seed: int, *, most: int = 12, k: int = 3) -> Legs:
    """Layers of 6, 7 and 5 items in the source, 4, 6 and 8 in the target; last in each domain an unreachable item."""
    rng = np.random.default_rng(seed)
    source, target = (range(6), range(6, 13), range(13, 18)), (range(19, 23), range(23, 29), range(29, 37))

    def leg(outer: range, inner: range) -> Leg:
        return drawn_leg(rng, outer, inner, k, most)

    return Legs(
        38,
        19,
        leg(source[2], source[1]),
        leg(source[1], source[0]),
        leg(source[0], target[0]),
        leg(target[1], target[0]),
        leg(target[2], target[1]),
    )


def as_pairs(x: XSim) -> dict[tuple[int, int], tuple[float, float]]:
    np.testing.assert_array_equal(x.values.indptr, x.certainty.indptr)
    np.testing.assert_array_equal(x.values.indices, x.certainty.indices)
    rows = np.repeat(np.arange(x.n_source), np.diff(x.values.indptr))
    return {
        (int(row), int(column)): (float(value), float(certainty))
        for row, column, value, certainty in zip(rows, x.values.indices, x.values.data, x.certainty.data, strict=True)
    }


def assert_same(found: XSim, expected: dict[tuple[int, int], tuple[float, float]], tolerance: float = 1e-12) -> None:
    pairs = as_pairs(found)
    assert sorted(pairs) == sorted(expected)
    for key, (value, certainty) in expected.items():
        assert pairs[key] == pytest.approx((value, certainty), rel=0.0, abs=tolerance)


@pytest.mark.parametrize("way", WAYS)
def test_the_worked_example(way: str) -> None:
    edges = edges_by_pairs(matrix(EXAMPLE, 6))
    found = x_sim(pruned(edges, layers(edges, 3), 3), way)
    values, certainties = found.values.toarray(), found.certainty.toarray()
    expected = [[0.237541, 0.208902, 0.201423], [0.070796, -0.348613, 0.047604]]
    np.testing.assert_allclose(values[:2], expected, atol=5e-7)
    np.testing.assert_allclose(certainties[:2], [[0.15, 0.05, 0.058333], [0.375, 0.125, 0.145833]], atol=5e-7)
    assert found.values.shape == (3, 3)
    assert found.values.nnz == 6  # item 2 reaches nothing
    one_edge = x_sim(pruned(edges, layers(edges, 3), 3, k=1), way)
    assert as_pairs(one_edge)[0, 0][0] == pytest.approx(0.237541, abs=5e-7)
    assert as_pairs(one_edge)[0, 2][0] == pytest.approx(0.230181, abs=5e-7)
    assert (0, 1) not in as_pairs(one_edge)  # undefined, which is not 0


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(4))
def test_every_path_of_all_five_legs_counts_once(way: str, seed: int) -> None:
    legs = drawn_legs(seed)
    expected = x_sim_by_recursion(legs)
    assert any(source >= 13 and target >= 10 for source, target in expected)  # from far items to far items
    assert_same(x_sim(legs, way), expected, TOLERANCES[way])


@pytest.mark.parametrize("way", WAYS)
def test_ratings_drawn_at_random(way: str) -> None:
    ratings = drawn_ratings(np.random.default_rng(3), 25, 16, 0.2)
    edges = edges_by_pairs(ratings)
    legs = pruned(edges, layers(edges, 8), 8, k=2)
    assert_same(x_sim(legs, way), x_sim_by_recursion(legs), TOLERANCES[way])


@pytest.mark.parametrize(("paths", "cells", "sparse"), [(1, 1, 0), (7, 40, 16), (1 << 20, 19, 0), (40, 1 << 20, 9999)])
def test_small_blocks_give_the_same(paths: int, cells: int, sparse: int, monkeypatch: pytest.MonkeyPatch) -> None:
    legs = drawn_legs(1)
    expected = x_sim_by_recursion(legs)
    monkeypatch.setattr(module, "_PATHS", paths)
    monkeypatch.setattr(module, "_CELLS", cells)
    monkeypatch.setattr(module, "_SPARSE", sparse)
    for way in WAYS:
        assert_same(x_sim(legs, way), expected, TOLERANCES[way])


def test_no_more_paths_are_listed_at_a_time_than_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    legs, held = drawn_legs(1), []
    summed = module._sum_paths

    def noted(paths: Any, n_source: int, n_target: int) -> Any:
        held.append(len(paths))
        return summed(paths, n_source, n_target)

    monkeypatch.setattr(module, "_sum_paths", noted)
    x_sim(legs, "enumerate")
    assert len(held) == 1
    whole = held.pop()
    monkeypatch.setattr(module, "_PATHS", 30)  # more than any partial path has to go on with, fewer than one item has
    x_sim(legs, "enumerate")
    assert sum(held) == whole > 30
    assert max(held) <= 30


@pytest.mark.parametrize("most", [1, 60, 900])
def test_large_significances_are_integrated_with_more_nodes(most: int) -> None:
    legs = drawn_legs(2, most=most)
    assert_same(x_sim(legs, "quadrature"), x_sim_by_recursion(legs), 1e-9)


def test_paths_that_cancel_are_defined_and_0() -> None:
    bridge = Leg(
        np.array([0, 1], dtype=np.int32),
        np.array([3, 3], dtype=np.int32),
        np.array([0.5, -0.5]),
        np.array([2, 2]),
        np.array([0.25, 0.25]),
    )
    near = Leg(
        np.array([2, 2], dtype=np.int32),
        np.array([0, 1], dtype=np.int32),
        np.array([0.5, -0.5]),
        np.array([1, 1]),
        np.array([0.5, 0.5]),
    )
    for way in ("enumerate", "quadrature"):
        found = as_pairs(x_sim(Legs(4, 3, NOTHING, near, bridge, NOTHING, NOTHING), way))
        assert found[2, 0] == pytest.approx((0.0, 0.25), abs=1e-15)


@pytest.mark.parametrize("way", WAYS)
def test_without_users_in_common_nothing_is_defined(way: str) -> None:
    ratings = csr_array(np.array([[5.0, 1, 4, 0, 0], [1, 4, 2, 0, 0], [0, 0, 0, 5, 1], [0, 0, 0, 1, 4]]))
    edges = edges_by_pairs(ratings)
    found = x_sim(pruned(edges, layers(edges, 3), 3), way)
    assert found.values.shape == found.certainty.shape == (3, 2)
    assert found.values.nnz == found.certainty.nnz == 0
    empty = x_sim(Legs(0, 0, *[NOTHING] * 5), way)
    assert empty.values.shape == (0, 0)


def test_longest_is_the_largest_sum_on_a_whole_path() -> None:
    for seed in range(5):
        legs = drawn_legs(seed)
        parts = thirds(legs)
        best = 0
        for a in range(len(parts.out)):
            for b in np.flatnonzero(parts.bridge.start == parts.out.end[a]):
                back = parts.back.weight[parts.back.start == parts.bridge.end[b]]
                best = max(best, int(parts.out.weight[a] + parts.bridge.weight[b] + back.max(initial=-(10**9))))
        assert longest(parts) == best


def test_error_of_a_rule_grows_with_the_sum_and_is_none_up_to_twice_its_nodes() -> None:
    for nodes in (8, 32):
        errors = [module.quadrature_error(nodes, largest) for largest in range(1, 40 * nodes)]
        assert max(errors[: 2 * nodes]) < 1e-13
        assert np.all(np.diff(errors[2 * nodes :]) > -1e-13)
    # measured elsewhere, by another program
    assert module.quadrature_error(32, 200) == pytest.approx(8e-9, rel=0.1)
    assert 1.5e-3 < module.quadrature_error(64, 2000) < 2.5e-3
    assert module.quadrature_error(256, 5000) < 1e-11


@pytest.mark.parametrize("largest", [1, 16, 17, 200, 500, 2000, 5000, 20_000])
def test_nodes_chosen_are_accurate_and_not_more_than_needed(largest: int) -> None:
    nodes = module.nodes_for(largest)
    assert nodes is not None
    assert module.quadrature_error(nodes, largest) <= 1e-9
    assert nodes <= max(8, 8 * np.sqrt(largest))
    fewer = [n for n in module._NODES if n < nodes]
    assert all(module.quadrature_error(n, largest) > 1e-9 for n in fewer)


def test_sums_beyond_all_nodes_are_refused_or_listed() -> None:
    legs = drawn_legs(0, most=10_000_000)
    assert module.nodes_for(longest(thirds(legs))) is None
    with pytest.raises(InvalidParameter, match="enumerate"):
        x_sim(legs, "quadrature")
    assert_same(x_sim(legs, "auto"), x_sim_by_recursion(legs))


def test_too_few_nodes_are_refused_and_enough_are_used() -> None:
    legs = drawn_legs(2, most=900)
    with pytest.raises(InvalidParameter, match="8 nodes do not integrate"):
        x_sim(legs, "quadrature", nodes=8)
    assert_same(x_sim(legs, "quadrature", nodes=300), x_sim_by_recursion(legs), 1e-9)


def test_auto_integrates_where_that_is_less_work(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[int] = []
    integrated = module.integrated

    def noted(legs: Legs, parts: Any, nodes: int, cells: int) -> Any:
        used.append(nodes)
        return integrated(legs, parts, nodes, cells)

    monkeypatch.setattr(module, "integrated", noted)
    legs = drawn_legs(0)
    x_sim(legs)
    assert used == []  # few paths
    monkeypatch.setattr(module, "_FEW_PATHS", 0)
    x_sim(legs)
    assert used == []  # still more work than to list them
    monkeypatch.setattr(module, "_PATH_WORK", 10**9)
    assert_same(x_sim(legs), x_sim_by_recursion(legs), 1e-9)
    assert len(used) == 1
    assert_same(x_sim(drawn_legs(2, most=900), nodes=8), x_sim_by_recursion(drawn_legs(2, most=900)))
    assert len(used) == 1  # too few nodes: listed


@pytest.mark.parametrize(("way", "nodes"), [("fast", None), ("quadrature", 0), ("quadrature", 2.5)])
def test_unknown_ways_and_nodes_are_refused(way: str, nodes: Any) -> None:
    with pytest.raises(InvalidParameter):
        x_sim(drawn_legs(0), way, nodes)
