"""Laws of similarities on any small ratings: all ways agree with the definitions, and streaming with pruning."""

from importlib.util import find_spec

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.models.cross_domain.similarities import edges_of, layers, pruned, streamed
from tests.unit.models.cross_domain.slow_similarities import Profiles, slow_edges, slow_layers, table
from tests.unit.models.cross_domain.test_similarities import as_dict

WAYS = ("plain", "dense", "compiled") if find_spec("numba") else ("plain", "dense")
# small ratings from 0 on: ties, constant raters, single raters and zeros that are ratings all come up
profiles = st.lists(st.dictionaries(st.integers(0, 7), st.integers(0, 3), max_size=6), max_size=9)


@settings(deadline=None, max_examples=40)
@given(profiles, st.sampled_from([0, 1, 2, 50]), st.integers(0, 8), st.integers(1, 4))
def test_all_ways_give_what_the_definitions_say(rated: Profiles, shrink: int, n_source: int, k: int) -> None:
    ratings, slow = table(rated, 8), slow_edges(rated, 8, shrink)
    for way in WAYS:
        edges = edges_of(ratings, shrink=shrink, method=way)
        found = as_dict(edges)
        assert list(found) == sorted(slow)
        for pair, (cosine, agreed, share) in slow.items():
            assert found[pair] == (pytest.approx(cosine, abs=1e-12), agreed, share)
        assert layers(edges, n_source).tolist() == slow_layers(slow, 8, n_source)
        legs, expected = (
            streamed(ratings, n_source, k, shrink=shrink, method=way)[1],
            pruned(edges, layers(edges, n_source), n_source, k),
        )
        for kind in ("far_source", "near_source", "bridge", "near_target", "far_target"):
            one, other = getattr(legs, kind), getattr(expected, kind)
            assert (one.first.tolist(), one.second.tolist()) == (other.first.tolist(), other.second.tolist())
