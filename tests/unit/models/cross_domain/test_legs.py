"""Pruning keeps the best edges of each item towards the other domain."""

import numpy as np
import pytest

from tacit.errors import InvalidParameter
from tacit.models.cross_domain.edges import Edges
from tacit.models.cross_domain.similarities import Leg, edges_of, layers, pruned
from tests.unit.models.cross_domain.slow_similarities import (
    EXAMPLE,
    slow_best,
    slow_edges,
    slow_layers,
    table,
    two_domains,
)


def pairs(leg: Leg) -> list[tuple[int, int]]:
    return list(zip(leg.first.tolist(), leg.second.tolist(), strict=True))


def test_the_small_example() -> None:
    edges = edges_of(table(EXAMPLE, 6), shrink=0)
    legs = pruned(edges, layers(edges, 3), 3)
    assert pairs(legs.near_source) == [(0, 1)]
    assert pairs(legs.bridge) == [(1, 3), (1, 4)]
    assert pairs(legs.near_target) == [(5, 3), (5, 4)]
    assert pairs(legs.far_source) == pairs(legs.far_target) == []
    assert legs.near_target.cosine == pytest.approx([0.211779, -0.511199], abs=5e-7)
    assert legs.near_target.significance.tolist() == [2, 1]
    assert legs.near_target.share == pytest.approx([1 / 3, 1 / 6])
    assert (legs.n_items, legs.n_source) == (6, 3)


def test_one_edge_each_signed_and_absolute() -> None:
    edges = edges_of(table(EXAMPLE, 6), shrink=0)
    signed, absolute = (pruned(edges, layers(edges, 3), 3, 1, by) for by in ("signed", "absolute"))
    assert (pairs(signed.bridge), pairs(signed.near_target)) == ([(1, 3)], [(5, 3)])
    assert (pairs(absolute.bridge), pairs(absolute.near_target)) == ([(1, 4)], [(5, 4)])


@pytest.mark.parametrize("by", ["signed", "absolute"])
@pytest.mark.parametrize("k", [1, 2, 10])
def test_every_leg_is_what_the_definitions_say(k: int, by: str) -> None:
    lengths = np.zeros(5, dtype=int)
    for seed in range(4):
        profiles = two_domains(np.random.default_rng(seed), 70, 15, 14, 0.1)
        edges, slow = edges_of(table(profiles, 29)), slow_edges(profiles, 29, 50)
        layer = np.array(slow_layers(slow, 29, 15))
        legs = pruned(edges, layers(edges, 15), 15, k, by)  # type: ignore[arg-type]
        source = np.arange(29) < 15
        kinds = {
            "far_source": (source & (layer == 3), source & (layer == 2)),
            "near_source": (source & (layer == 2), source & (layer == 1)),
            "bridge": (source & (layer == 1), ~source & (layer == 1)),
            "near_target": (~source & (layer == 2), ~source & (layer == 1)),
            "far_target": (~source & (layer == 3), ~source & (layer == 2)),
        }
        for place, (name, (outer, inner)) in enumerate(kinds.items()):
            among = set(np.flatnonzero(inner).tolist())
            expected = [
                (row, item)
                for row in np.flatnonzero(outer).tolist()
                for item in sorted(slow_best(slow, row, among, k, by))
            ]
            leg = getattr(legs, name)
            assert pairs(leg) == expected
            assert leg.cosine == pytest.approx([slow[pair][0] for pair in expected], abs=1e-13)
            assert leg.significance.tolist() == [slow[pair][1] for pair in expected]
            assert leg.share == pytest.approx([slow[pair][2] for pair in expected])
            lengths[place] += len(expected)
    assert lengths.all()  # no kind of edge went untested


def test_equal_cosines_go_to_the_lower_item() -> None:
    starts, items = np.array([0, 2, 3, 4]), np.array([1, 2, 0, 0], dtype=np.int32)
    cosine = np.array([0.5, 0.5 + 1e-15, 0.5, 0.5 + 1e-15])
    edges = Edges(starts, items, cosine, np.ones(4, dtype=np.int64), np.ones(4))
    assert pairs(pruned(edges, layers(edges, 1), 1, 1).bridge) == [(0, 1)]


def test_bad_parameters_are_refused() -> None:
    edges = edges_of(table(EXAMPLE, 6))
    found = layers(edges, 3)
    with pytest.raises(InvalidParameter, match="k must"):
        pruned(edges, found, 3, 0)
    with pytest.raises(InvalidParameter, match="signed"):
        pruned(edges, found, 3, 1, "largest")  # type: ignore[arg-type]
