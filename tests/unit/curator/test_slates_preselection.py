"""Two stages: candidates first. Too few of them are filled up, and rows are cut anew on those that are left."""

from collections import Counter
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from tacit.curator.private_slates.routes import Options, above_then_public, shuffle_items, top_then_natural, two_stages
from tacit.mechanisms import SYSTEM_NOISE, NaturalSlate, ReplayedNoise
from tests.unit.curator.slates_world import FILMS, catalogue

FEATURES = catalogue().genres.astype(float)  # type: ignore[union-attr]


def votes(counts: list[int]) -> sparse.csr_array:
    """Likes with these totals, one user for each."""
    items = np.repeat(np.arange(len(counts)), counts)
    return sparse.csr_array((np.ones(items.size), (np.arange(items.size), items)), shape=(items.size, len(counts)))


def test_where_none_is_found_the_slate_is_uniform() -> None:
    options, noise = Options(FILMS, 4, threshold=10**9), ReplayedNoise(3)
    found = Counter[int]()
    for _ in range(600):
        slate = above_then_public(votes([30] * FILMS), options, 1.0, FEATURES, noise).value
        assert len(set(slate.tolist())) == 4
        found.update(slate.tolist())
    # 200 each on average, with a deviation of 11.5: seven of them are beyond all chance
    assert all(abs(found[item] - 200) < 81 for item in range(FILMS))


def test_what_is_found_stays_and_the_rest_is_filled() -> None:
    counts = [0] * FILMS
    counts[4] = counts[9] = 10_000
    options = Options(FILMS, 5, threshold=5_000)
    others = Counter[int]()
    for _ in range(60):
        slate = above_then_public(votes(counts), options, 50.0, FEATURES, SYSTEM_NOISE).value.tolist()
        assert {4, 9} <= set(slate)
        assert len(set(slate)) == 5
        assert slate == sorted(slate)
        others.update(set(slate) - {4, 9})
    assert len(others) == FILMS - 2


def test_more_than_enough_are_chosen_from_by_public_features() -> None:
    counts = [10_000] * 8 + [0] * 4
    same = np.ones((FILMS, 1))  # no two of them differ: jitter alone makes slates of five possible
    for features in (FEATURES, same):
        slate = above_then_public(votes(counts), Options(FILMS, 5, threshold=5_000), 50.0, features, SYSTEM_NOISE)
        assert set(slate.value.tolist()) <= set(range(8))
        assert len(set(slate.value.tolist())) == 5
        assert slate.guarantee.epsilon == 50.0


def test_hits_go_to_any_item_and_not_to_the_first_ones() -> None:
    found = Counter[int]()
    for _ in range(120):  # an item is missed by all of them with a chance of (10/12)^120
        options = Options(FILMS, 2, threshold=100, candidates=2)
        found.update(above_then_public(votes([200] * FILMS), options, 50.0, FEATURES, SYSTEM_NOISE).value.tolist())
    assert len(found) == FILMS  # with the first two of a fixed order it would be two


def test_the_top_is_kept_and_rows_are_cut_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    prepare = NaturalSlate.prepare

    def noted(self: NaturalSlate, rows: Any, **options: Any) -> Any:
        seen.append((self.items, rows.toarray()))
        return prepare(self, rows, **options)

    monkeypatch.setattr(NaturalSlate, "prepare", noted)
    counts = [0, 900, 0, 800, 0, 700, 0, 600, 0, 0, 0, 0]
    everything = sparse.vstack([votes(counts), sparse.csr_array(np.ones((5, FILMS)))], format="csr")
    release = top_then_natural(everything, Options(FILMS, 3, candidates=4), 100.0, None, SYSTEM_NOISE)
    assert set(release.value.tolist()) <= {1, 3, 5, 7}
    ((items, rows),) = seen
    assert items == 4
    assert rows.shape == (3_005, 4)
    # whole likes on the candidates: the mechanism cuts them to length 1 there, not on all twelve items
    assert set(np.unique(rows)) == {0.0, 1.0}
    assert (rows[-5:] == 1.0).all()
    assert release.guarantee.epsilon == 100.0


def test_a_request_reaches_the_second_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    prepare = NaturalSlate.prepare

    def noted(self: NaturalSlate, rows: Any, **options: Any) -> Any:
        seen.append(options["request"])
        return prepare(self, rows, **options)

    monkeypatch.setattr(NaturalSlate, "prepare", noted)
    counts = [0, 900, 0, 800, 0, 700, 0, 600, 0, 0, 0, 0]
    weights = np.arange(FILMS) / FILMS
    top_then_natural(votes(counts), Options(FILMS, 3, candidates=4), 100.0, weights, SYSTEM_NOISE)
    assert seen[0].tolist() == [1 / 12, 3 / 12, 5 / 12, 7 / 12]


def test_half_of_epsilon_goes_to_each_stage() -> None:
    first, second, both = two_stages(Options(FILMS, 3, candidates=4), 0.7)
    assert first.epsilon == second.epsilon == 0.35
    assert (first.k, second.items, second.k) == (4, 4, 3)
    assert both.epsilon == 0.7


def test_every_order_is_equally_likely() -> None:
    noise, found = ReplayedNoise(5), Counter[tuple[int, ...]]()
    for _ in range(6_000):
        found[tuple(shuffle_items(4, noise).tolist())] += 1
    assert set(found) == set(permutations(range(4)))
    squares = sum((count - 250) ** 2 / 250 for count in found.values())
    assert squares < 64.0  # chi-square with 23 degrees of freedom: p = 1e-5 at 64
    assert shuffle_items(0, noise).tolist() == []
    assert shuffle_items(1, noise).tolist() == [0]
