"""Layers and legs without edges are those of the edges."""

import numpy as np
import pytest

from tacit.errors import InvalidParameter
from tacit.models.cross_domain.similarities import Legs, edges_of, layers, pruned, streamed
from tests.unit.models.cross_domain.slow_similarities import EXAMPLE, table, two_domains
from tests.unit.models.cross_domain.test_similarities import everyway

KINDS = ("far_source", "near_source", "bridge", "near_target", "far_target")


def assert_equal(legs: Legs, expected: Legs, *, exact: bool) -> None:
    assert (legs.n_items, legs.n_source) == (expected.n_items, expected.n_source)
    for kind in KINDS:
        leg, other = getattr(legs, kind), getattr(expected, kind)
        for name in ("first", "second", "significance", "share"):
            assert getattr(leg, name).dtype == getattr(other, name).dtype
            assert getattr(leg, name).tolist() == getattr(other, name).tolist()
        assert leg.cosine.tolist() == (other.cosine.tolist() if exact else pytest.approx(other.cosine, abs=1e-14))


@everyway
@pytest.mark.parametrize(("k", "by", "most_each"), [(1, "signed", None), (3, "absolute", None), (10, "signed", 2)])
def test_they_equal_the_pruned_edges(way: str, k: int, by: str, most_each: int | None) -> None:
    lengths = np.zeros(len(KINDS), dtype=int)
    for seed in range(4):
        ratings = table(two_domains(np.random.default_rng(seed), 70, 15, 14, 0.1), 29)
        edges = edges_of(ratings, most_each=most_each, method=way)
        found, legs = streamed(ratings, 15, k, by=by, most_each=most_each, method=way)  # type: ignore[arg-type]
        assert found.tolist() == layers(edges, 15).tolist()
        # BLAS sums blocks of another shape in another order
        assert_equal(legs, pruned(edges, layers(edges, 15), 15, k, by), exact=way != "dense")  # type: ignore[arg-type]
        lengths += [getattr(legs, kind).first.size for kind in KINDS]
    assert most_each is not None or lengths.all()


@everyway
@pytest.mark.parametrize("n_source", [0, 6])
def test_one_domain_alone_has_no_legs(way: str, n_source: int) -> None:
    found, legs = streamed(table(EXAMPLE, 6), n_source, method=way)
    assert not found.any()
    assert not any(getattr(legs, kind).first.size for kind in KINDS)


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    loops = pytest.importorskip("tacit.models.cross_domain.loops_compiled", exc_type=ImportError)
    ratings = table(two_domains(np.random.default_rng(1), 70, 15, 14, 0.1), 29)
    found, one = streamed(ratings, 15, method="compiled")
    monkeypatch.setattr(loops, "_ROOM", 30)
    again, other = streamed(ratings, 15, method="compiled", threads=3)
    assert found.tolist() == again.tolist()
    assert_equal(one, other, exact=True)


def test_bad_parameters_are_refused() -> None:
    ratings = table(EXAMPLE, 6)
    for wrong in ({"n_source": 7}, {"n_source": 3, "k": 0}, {"n_source": 3, "by": "x"}, {"n_source": 3, "threads": 0}):
        with pytest.raises(InvalidParameter):
            streamed(ratings, **wrong)
