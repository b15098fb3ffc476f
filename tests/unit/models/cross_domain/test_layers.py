"""Layers are counted from the edges across."""

import numpy as np
import pytest

from tacit.errors import InvalidParameter
from tacit.models.cross_domain.similarities import Layer, edges_of, layers
from tests.unit.models.cross_domain.slow_similarities import EXAMPLE, slow_edges, slow_layers, table, two_domains


def test_the_small_example() -> None:
    found = layers(edges_of(table(EXAMPLE, 6), shrink=0), 3)
    near, bridge = Layer.NEAR, Layer.BRIDGE
    assert found.tolist() == [near, bridge, Layer.UNREACHABLE, bridge, bridge, near]


def test_sparse_domains_have_all_layers_as_the_definitions_say() -> None:
    seen = set()
    for seed in range(5):
        profiles = two_domains(np.random.default_rng(seed), 60, 15, 14, 0.1)
        found = layers(edges_of(table(profiles, 29)), 15)
        assert found.tolist() == slow_layers(slow_edges(profiles, 29, 50), 29, 15)
        seen |= set(found.tolist())
    assert seen == set(Layer)


@pytest.mark.parametrize("n_source", [0, 6])
def test_without_a_second_domain_nothing_is_reachable(n_source: int) -> None:
    assert not layers(edges_of(table(EXAMPLE, 6), shrink=0), n_source).any()


def test_more_source_items_than_items_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="n_source"):
        layers(edges_of(table(EXAMPLE, 6)), 7)
