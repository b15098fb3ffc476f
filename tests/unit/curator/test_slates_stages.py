"""The first of two stages is drawn, too, by its mechanism at its share of epsilon; and no set-up serves another list."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from tacit.curator.private_slates.routes import (
    Options,
    above_then_public,
    shuffle_items,
    sparse_vector,
    top_then_natural,
)
from tacit.errors import Conflict
from tacit.mechanisms import GumbelTopK, NaturalSlate, ReplayedNoise, SparseVector, VoteTotals
from tests.contracts.mechanism import chi_square
from tests.unit.curator.slates_world import FILMS, CountedNoise, curator, ratings

FEW = sparse.csr_array(np.tile(np.arange(FILMS) < 4, (3, 1)).astype(float))  # three users who like the items 0 to 3
FEATURES = np.eye(FILMS)
ALIKE = np.ones((FILMS, 1))  # by which no two lists of one size differ


def watched(monkeypatch: pytest.MonkeyPatch, mechanism: Any) -> list[tuple[Any, Any, Any]]:
    """Every release of a mechanism: itself, the rows and the noise that it was given."""
    seen: list[tuple[Any, Any, Any]] = []
    release = mechanism.release

    def noted(self: Any, rows: Any, noise: Any) -> Any:
        seen.append((self, rows, noise))
        return release(self, rows, noise)

    monkeypatch.setattr(mechanism, "release", noted)
    return seen


def test_at_a_small_epsilon_every_item_may_be_a_candidate() -> None:
    """Four candidates for four places: the slate is what the first stage kept. Without noise it would be the same four always."""
    noise, found = ReplayedNoise(7), Counter[int]()
    for _ in range(150):
        found.update(top_then_natural(FEW, Options(FILMS, 4, candidates=4), 0.1, None, noise).value.tolist())
    assert min(found[item] for item in range(FILMS)) > 20  # 50 each on average, with a deviation below 6


def top_law(counts: list[int], epsilon: float) -> dict[tuple[int, ...], float]:
    """The law of the unordered top two, whole epsilon spent on it."""
    top, law = GumbelTopK(VoteTotals(), 2, epsilon), Counter[tuple[int, ...]]()
    for picks, chance in zip(top.outcomes(len(counts)), top.pmf(votes(counts)).tolist(), strict=True):
        law[tuple(sorted(picks))] += chance
    return law


def votes(counts: list[int]) -> NDArray[np.float64]:
    """Likes with these totals, one user for each."""
    return np.eye(len(counts))[np.repeat(np.arange(len(counts)), counts)]


def test_candidates_have_the_law_of_top_k_at_half_of_epsilon() -> None:
    counts, noise = [4, 2, 1, 0, 0], ReplayedNoise(8)
    rows = sparse.csr_array(votes(counts))
    slates = [top_then_natural(rows, Options(5, 2, candidates=2), 3.0, None, noise).value for _ in range(600)]
    found = Counter(tuple(slate.tolist()) for slate in slates)
    law = top_law(counts, 1.5)
    assert set(found) <= set(law)
    seen = np.array([found[pair] for pair in law])
    assert chi_square(seen, np.array(list(law.values()))) > 1e-9
    for epsilon in (0.5, 3.0):
        assert chi_square(seen, np.array([top_law(counts, epsilon)[pair] for pair in law])) < 1e-9


def test_both_stages_draw_from_the_noise_that_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, noise = watched(monkeypatch, GumbelTopK), CountedNoise()
    second: list[tuple[float, int]] = []
    prepare = NaturalSlate.prepare

    def noted(self: NaturalSlate, rows: Any, **options: Any) -> Any:
        second.append((self.epsilon, noise.draws))
        return prepare(self, rows, **options)

    monkeypatch.setattr(NaturalSlate, "prepare", noted)
    top_then_natural(FEW, Options(FILMS, 3, candidates=5), 0.7, None, noise)
    ((top, rows, given),) = seen
    assert (top.epsilon, top.k) == (0.35, 5)
    assert rows is FEW
    assert given is noise
    ((epsilon, before),) = second
    assert epsilon == 0.35
    assert 0 < before < noise.draws


def test_what_is_above_the_threshold_is_found_by_the_sparse_vector(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, noise = watched(monkeypatch, SparseVector), ReplayedNoise(2)
    above_then_public(FEW, Options(FILMS, 3, threshold=2, candidates=5), 0.7, FEATURES, noise)
    ((mechanism, rows, given),) = seen
    assert (mechanism.epsilon, mechanism.threshold, mechanism.hits) == (0.7, 2, 5)
    assert given is noise
    assert rows.toarray().tolist() == FEW.toarray()[:, shuffle_items(FILMS, ReplayedNoise(2))].tolist()


def sparse_law(counts: list[int], options: Options, epsilon: float) -> NDArray[np.float64]:
    """The chance of either of two items: in both orders, found first, or drawn where none is found."""
    law, mechanism = np.zeros(2), sparse_vector(options, epsilon)
    for order in ([0, 1], [1, 0]):
        answers = mechanism.outcomes(2)
        chances = dict(zip(answers, mechanism.pmf(votes(counts)[:, order]).tolist(), strict=True))
        law[order] += [chances[(True,)] / 2, chances[(False, True)] / 2]
        law += chances[(False, False)] / 4
    return law


def test_items_are_found_by_the_law_of_the_sparse_vector() -> None:
    """Without noise item 0 would be found always: it alone is above the threshold."""
    counts, options, noise = [4, 0], Options(2, 1, threshold=3, candidates=1), ReplayedNoise(9)
    rows = sparse.csr_array(votes(counts))
    slates = [above_then_public(rows, options, 1.0, np.eye(2), noise).value[0] for _ in range(1_000)]
    seen = np.bincount(slates, minlength=2)
    assert sparse_law(counts, options, 1.0).sum() == pytest.approx(1.0)
    assert chi_square(seen, sparse_law(counts, options, 1.0)) > 1e-9
    for epsilon in (0.4, 2.0):
        assert chi_square(seen, sparse_law(counts, options, epsilon)) < 1e-9


@pytest.mark.parametrize("route", ["natural", "top-k"])
def test_lists_of_one_size_do_not_share_a_set_up(tmp_path: Path, route: str) -> None:
    """Liked are the first three films of one list and the last three of the other; epsilon is too large for anything else."""
    user, film = np.meshgrid(np.arange(300), np.arange(1, FILMS + 1), indexing="ij")
    liked = (film % 3 == user % 3) & (
        (film <= 3) | (film >= 10)
    )  # one film of each list for each user: all are different
    with curator(tmp_path, ratings(np.where(liked, 5, 1)), features=ALIKE) as holder:
        for among, best in (([1, 2, 3, 4, 5, 6], (1, 2, 3)), ([7, 8, 9, 10, 11, 12], (10, 11, 12))) * 2:
            slate = holder.slate(3, 20.0, among=among, route=route)
            assert slate.items == best
        assert len(holder._slates._ready) == 2


def test_an_id_does_not_stand_for_the_slate_of_another_list_of_that_size(tmp_path: Path) -> None:
    with curator(tmp_path, features=ALIKE) as holder:
        first = holder.slate(3, 0.5, among=[1, 2, 3, 4], request_id="monday", route="natural")
        with pytest.raises(Conflict):
            holder.slate(3, 0.5, among=[1, 2, 3, 5], request_id="monday", route="natural")
        assert holder.slate(3, 0.5, among=[4, 3, 2, 1], request_id="monday", route="natural") == first
