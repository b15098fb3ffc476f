"""Similarities are what the definitions say, whichever way they are summed."""

from importlib.util import find_spec

import numpy as np
import pytest
from scipy import sparse

from tacit.errors import InvalidInput, InvalidParameter
from tacit.models.cross_domain.edges import Edges
from tacit.models.cross_domain.similarities import edges_of
from tests.unit.models.cross_domain.slow_similarities import EXAMPLE, Profiles, random_profiles, slow_edges, table

WAYS = [
    "plain",
    "dense",
    pytest.param(
        "compiled", marks=pytest.mark.skipif(find_spec("numba") is None, reason="the extra `fast` is not installed")
    ),
]
everyway = pytest.mark.parametrize("way", WAYS)


def as_dict(edges: Edges) -> dict[tuple[int, int], tuple[float, int, float]]:
    columns = zip(edges.rows.tolist(), edges.items.tolist(), edges.cosine, edges.significance, edges.share, strict=True)
    return {(row, item): (float(s), int(agreed), float(share)) for row, item, s, agreed, share in columns}


def assert_same(edges: Edges, profiles: Profiles, shrink: int) -> None:
    found, expected = as_dict(edges), slow_edges(profiles, edges.n_items, shrink)
    assert list(found) == sorted(expected)  # nothing missing, nothing more, in order
    for pair, (cosine, agreed, share) in expected.items():
        assert found[pair][0] == pytest.approx(cosine, abs=1e-13)
        assert found[pair][1:] == (agreed, pytest.approx(share, abs=1e-15))


@everyway
def test_the_small_example(way: str) -> None:
    edges = as_dict(edges_of(table(EXAMPLE, 6), shrink=0, method=way))
    cosines = {
        (0, 1): 0.487660,
        (1, 3): 0.070796,
        (1, 4): -0.348613,
        (3, 4): -0.842032,
        (3, 5): 0.211779,
        (4, 5): -0.511199,
    }
    significances = {(0, 1): 2, (1, 3): 3, (1, 4): 1, (3, 4): 1, (3, 5): 2, (4, 5): 1}
    shares = {(0, 1): 0.4, (1, 3): 0.375, (1, 4): 0.125, (3, 4): 1 / 6, (3, 5): 1 / 3, (4, 5): 1 / 6}
    assert {pair for pair in edges if pair[0] < pair[1]} == cosines.keys()  # 0-2 and 1-2 agree nowhere: no edges
    for (i, j), cosine in cosines.items():
        assert edges[i, j] == edges[j, i] == (pytest.approx(cosine, abs=5e-7), significances[i, j], shares[i, j])


@everyway
@pytest.mark.parametrize("shrink", [0, 1, 3, 50])
def test_random_ratings_with_zeros_constant_raters_and_silent_users(way: str, shrink: int) -> None:
    profiles = random_profiles(np.random.default_rng(11), 40, 12, 7)
    assert any(0 in profile.values() for profile in profiles)
    assert any(not profile for profile in profiles)
    assert_same(
        edges_of(table(profiles, 13), shrink=shrink, method=way), profiles, shrink
    )  # nobody rated the last item


@everyway
def test_norms_run_over_all_raters(way: str) -> None:
    profiles: Profiles = [{0: 4, 1: 4, 2: 1}, {0: 1, 1: 1, 2: 4}, {0: 5, 2: 1}]
    found = as_dict(edges_of(table(profiles, 3), shrink=0, method=way))
    # z of items 0 and 1: (1, -1, 2) and (1, -1): 2 / sqrt(6 * 2), not 1
    assert found[0, 1][0] == pytest.approx(2 / np.sqrt(12), abs=1e-15)


@everyway
def test_a_rating_at_the_users_mean_counts_in_the_significance(way: str) -> None:
    # the last user's z is 0 for both items, yet she likes both: S counts her, the cosine does not
    profiles: Profiles = [{0: 5, 1: 4, 2: 0}, {0: 1, 1: 2, 2: 3}, {0: 4, 1: 4}]
    found = as_dict(edges_of(table(profiles, 3), shrink=0, method=way))
    assert found[0, 1][1:] == (3, 1.0)


@everyway
def test_a_rating_of_zero_is_a_rating(way: str) -> None:
    profiles: Profiles = [{0: 0, 1: 0, 2: 3}, {0: 5, 1: 5, 2: 2}]
    found = as_dict(edges_of(table(profiles, 3), shrink=0, method=way))
    assert found[0, 1] == (pytest.approx(1.0), 2, 1.0)


@everyway
def test_an_item_of_constant_raters_has_no_edges_even_where_their_means_are_rounded(way: str) -> None:
    constant = [dict.fromkeys(range(3), 0.1) for _ in range(3)]  # the mean of three 0.1 is not 0.1 in floats
    assert sum([0.1] * 3) / 3 != 0.1
    rows = [*constant, {3: 1.0, 4: 2.0}, {3: 2.0, 4: 4.0}, {3: 1.0, 4: 0.0, 5: 0.5}]
    found = as_dict(edges_of(table(rows, 6), shrink=0, method=way))  # type: ignore[arg-type]
    assert not any(item in pair for pair in found for item in range(3))


@everyway
def test_a_sum_that_cancels_but_for_rounding_is_no_edge(way: str) -> None:
    profiles: Profiles = [
        {0: 4, 1: 5, 2: 1},
        {0: 2, 1: 4, 2: 1},
        {0: 3, 1: 2, 2: 4},
        {0: 4, 1: 4, 2: 2},
        {0: 3, 1: 5, 2: 4},
    ]
    means = [sum(profile.values()) / 3 for profile in profiles]
    products = [(profile[0] - mean) * (profile[1] - mean) for profile, mean in zip(profiles, means, strict=True)]
    assert 0 < abs(sum(products)) < 1e-15  # in thirds it is 0
    assert (0, 1) not in slow_edges(profiles, 3, 0)
    assert_same(edges_of(table(profiles, 3), shrink=0, method=way), profiles, 0)


@everyway
def test_a_cap_keeps_a_users_latest_ratings(way: str) -> None:
    profiles = random_profiles(np.random.default_rng(5), 30, 10, 9)
    ratings = table(profiles, 10)
    times = np.random.default_rng(6).integers(0, 4, ratings.nnz)  # many ties: to the lower item
    latest: Profiles = []
    for user, profile in enumerate(profiles):
        own = range(ratings.indptr[user], ratings.indptr[user + 1])
        kept = sorted(own, key=lambda place: (-times[place], ratings.indices[place]))[:4]
        latest.append({int(ratings.indices[place]): profile[int(ratings.indices[place])] for place in kept})
    assert_same(edges_of(ratings, shrink=3, most_each=4, times=times, method=way), latest, 3)


@everyway
def test_without_times_the_mixed_codes_decide_what_a_cap_keeps(way: str) -> None:
    profiles = random_profiles(np.random.default_rng(7), 30, 10, 9)
    kept = [
        {item: profile[item] for item in sorted(profile, key=lambda item: item * 2654435761 % 2**32)[:4]}
        for profile in profiles
    ]
    assert_same(edges_of(table(profiles, 10), shrink=3, most_each=4, method=way), kept, 3)


@everyway
@pytest.mark.parametrize("shape", [(0, 0), (0, 4), (3, 0), (3, 4)])
def test_tables_without_ratings_have_no_edges(way: str, shape: tuple[int, int]) -> None:
    edges = edges_of(sparse.csr_array(shape), method=way)
    assert (edges.n_items, edges.items.size) == (shape[1], 0)


@everyway
def test_unsorted_rows_and_other_formats_are_put_in_order_and_the_callers_table_is_left_alone(way: str) -> None:
    ratings = table(EXAMPLE, 6)
    shuffled = ratings.copy()
    shuffled.indices[:3], shuffled.data[:3] = [2, 0, 1], [1.0, 5.0, 4.0]
    shuffled.has_sorted_indices = False
    shuffled.has_canonical_format = False
    before = shuffled.indices.copy()
    expected = as_dict(edges_of(ratings, method=way))
    assert as_dict(edges_of(shuffled, method=way)) == as_dict(edges_of(ratings.tocoo(), method=way)) == expected
    assert (shuffled.indices == before).all()


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    loops = pytest.importorskip("tacit.models.cross_domain.loops_compiled", exc_type=ImportError)
    ratings = table(random_profiles(np.random.default_rng(2), 60, 20, 9), 20)
    one = edges_of(ratings, method="compiled")
    monkeypatch.setattr(loops, "_ROOM", 40)  # blocks of two rows
    for threads in (1, 3):
        other = edges_of(ratings, method="compiled", threads=threads)
        for name in ("starts", "items", "cosine", "significance", "share"):
            assert (getattr(one, name) == getattr(other, name)).all()


def test_blocks_of_rows_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from tacit.models.cross_domain import loops_plain

    profiles = random_profiles(np.random.default_rng(2), 30, 11, 9)
    monkeypatch.setattr(loops_plain, "_CELLS", 33)
    monkeypatch.setattr(loops_plain, "_USERS", 7)
    for way in ("plain", "dense"):
        assert_same(edges_of(table(profiles, 11), method=way), profiles, 50)


@pytest.mark.parametrize("gain", [0.0, 4.0, 1e9])
@pytest.mark.parametrize("bits", [3, 17])
def test_dense_products_are_exact_however_much_of_the_table_is_dense(
    gain: float, bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From no item to all of them; 7 users at a time, or all."""
    from tacit.models.cross_domain import loops_plain
    from tacit.models.cross_domain.edges import centred

    profiles = random_profiles(np.random.default_rng(5), 40, 17, 9)
    ratings = table(profiles, 17)
    monkeypatch.setattr(loops_plain, "_DENSE_GAIN", gain)
    monkeypatch.setattr(loops_plain, "_PACK_BITS", bits)
    monkeypatch.setattr(loops_plain, "_PACK", 1 << bits)
    share = loops_plain._most_rated(centred(ratings)).size / 17
    assert (share == 0.0, 0.0 < share < 1.0, share == 1.0) == (gain == 0.0, gain == 4.0, gain == 1e9)
    assert_same(edges_of(ratings, method="dense"), profiles, 50)
    left, right = centred(ratings[:, :8]), centred(ratings[:, 8:])
    for dense, plain in zip(*(loops_plain.blocks(left, right, dense=one) for one in (True, False)), strict=True):
        assert dense.dots == pytest.approx(plain.dots, abs=1e-12)
        assert np.array_equal(dense.agreed, plain.agreed)
        assert np.array_equal(dense.together, plain.together)


def test_bad_input_is_refused_with_what_to_do() -> None:
    ratings = table(EXAMPLE, 6)
    twice = sparse.csr_array((np.ones(2), np.array([1, 1]), np.array([0, 2])), shape=(1, 3))
    with pytest.raises(InvalidInput, match="Keep one rating"):
        edges_of(twice)
    broken = ratings.copy()
    broken.data[3] = np.nan
    with pytest.raises(InvalidInput, match="finite"):
        edges_of(broken)
    with pytest.raises(InvalidInput, match="sparse"):
        edges_of(ratings.toarray())
    with pytest.raises(InvalidInput, match="one entry for every rating"):
        edges_of(ratings, most_each=2, times=np.zeros(3, dtype=np.int64))
    for wrong in ({"shrink": -1}, {"most_each": 0}, {"method": "fast"}, {"threads": 0}):
        with pytest.raises(InvalidParameter):
            edges_of(ratings, **wrong)


def test_counts_come_apart_again_up_to_the_largest() -> None:
    """Two counts share one float: who rated both, and who agree less who differ."""
    kernels = pytest.importorskip("tacit.models.cross_domain.loops_compiled", exc_type=ImportError)
    most = (1 << 26) - 1
    for together, agreed in ((1, 0), (1, 1), (2, 1), (7, 3), (most, 0), (most, most), (most, most // 2), (most, 1)):
        packed = together + kernels.PACK * (2 * agreed - together)
        assert kernels.counts.py_func(packed) == (agreed, together)


def test_auto_is_compiled_where_it_can_be_and_else_what_takes_fewer_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    from tacit.models import loops
    from tacit.models.cross_domain import loops_plain, similarities
    from tacit.models.cross_domain.edges import centred

    full = centred(sparse.csr_array(np.arange(1.0, 61.0).reshape(10, 6)))
    few = centred(sparse.csr_array(np.eye(40)))
    monkeypatch.setattr(loops, "find_spec", lambda name: None)
    assert similarities.choose_loops("auto", full) == (loops_plain, True)
    assert similarities.choose_loops("auto", few) == (loops_plain, False)
    monkeypatch.setattr(similarities, "_MOST_DENSE", 5)
    assert similarities.choose_loops("auto", full) == (loops_plain, False)
    if find_spec("numba"):
        monkeypatch.setattr(loops, "find_spec", lambda name: name)
        assert similarities.choose_loops("auto", full)[0].__name__.endswith("compiled")
