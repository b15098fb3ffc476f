"""What the id of a slate or of counts stands for, the slates of one release, and what they promise."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.curator import Curator
from tacit.curator.fit import RATED_AT_ALL
from tacit.curator.private_slates.draw import REQUESTED, draw_from_counts
from tacit.errors import Conflict, InvalidParameter
from tacit.guarantees import ONE_USER, Guarantee
from tacit.ledger import Budget, PrivacyLedger
from tacit.mechanisms import GaussianKernel, NaturalSlate
from tacit.models.dpp.laws import RngCoins
from tacit.systems.private_slates import simulate
from tests.releases import release_of
from tests.unit.curator.slates_charged import DELTA, charges
from tests.unit.curator.slates_world import FILMS, GENRES, CountedNoise, curator, ratings, some_ratings

EVERY = tuple(range(FILMS))  # without a list of films: all are known by ratings alone


# ---- what an id stands for


@pytest.mark.parametrize("accounting", ["basic", "zcdp"])
def test_counts_are_charged_once_whoever_asks_first(tmp_path: Path, accounting: str) -> None:
    noise = CountedNoise()
    with curator(tmp_path, budget=Budget(1.0, 1e-6), accounting=accounting, noise=noise) as holder:
        counts = holder.popularity(0.5)
        drawn = noise.draws
        slate = holder.slate(3, 0.5, slates=None)
        assert slate.guarantee == counts.guarantee
        assert holder.slate(4, 0.5, slates=None, request_id="monday").guarantee == counts.guarantee
        assert noise.draws == drawn
        assert charges(holder) == 1
        assert counts.guarantee.epsilon == holder.plan(3, 0.5, None).epsilon
        if accounting == "basic":  # counts have no delta: with another one they are the same
            assert holder.popularity(0.5, delta=1e-7) == counts
            assert holder.slate(3, 0.5, slates=None, delta=1e-7) == slate
            assert charges(holder) == 1


def test_counts_cost_what_is_asked_for_by_the_budgets_own_accounting(tmp_path: Path) -> None:
    with curator(tmp_path, budget=Budget(1.0, 1e-6)) as holder:
        counts = holder.popularity(1.0)
        assert counts.guarantee.delta == 0.0
        assert counts.guarantee.epsilon == pytest.approx(0.2207, abs=1e-4)
        assert 0.99 < holder.statement().promised.epsilon <= 1.0
        assert holder.statement().promised.delta == 1e-6
    with curator(tmp_path, budget=Budget(1.0, 1e-6), accounting="basic", ledger=tmp_path / "basic.db") as holder:
        assert holder.popularity(1.0).guarantee.epsilon == 1.0


def test_another_like_is_another_release(tmp_path: Path) -> None:
    with curator(tmp_path) as holder:
        holder.slate(3, 0.5, route="natural", request_id="monday")
        counts = holder.popularity(50.0)
    with curator(tmp_path, like=1.0) as holder:
        with pytest.raises(Conflict):
            holder.slate(3, 0.5, route="natural", request_id="monday")
        assert charges(holder) == 2
        assert holder.popularity(25.0).counts().sum() > 1.3 * counts.counts().sum()
        with pytest.raises(Conflict):
            holder.popularity(50.0, request_id=_id_of(holder, "popularity"))
        assert charges(holder) == 3


def _id_of(holder: Curator, kind: str) -> str:
    """The id of the first release of a kind, as a request_id."""
    return [one.release_id for one in holder.ledger.stored("users of films") if one.release_id.startswith(kind)][
        -1
    ].split(" ")[1]


def test_other_features_are_another_slate_and_the_same_counts(tmp_path: Path) -> None:
    with curator(tmp_path) as holder:
        holder.slate(3, 0.5, route="feature", request_id="monday")
        counts = holder.popularity(0.5)
    for features in (np.eye(FILMS), np.eye(FILMS)[::-1].copy(), np.ones((FILMS, len(GENRES)))):
        with curator(tmp_path, features=features) as holder:
            with pytest.raises(Conflict):
                holder.slate(3, 0.5, route="feature", request_id="monday")
            assert holder.popularity(0.5) == counts  # features play no part in them
            assert charges(holder) == 2


def test_every_option_is_a_part_of_what_an_id_stands_for(tmp_path: Path) -> None:
    options: list[dict[str, Any]] = [
        {"route": "tempered", "most_likes": 20},
        {"route": "two-stage", "candidates": 6},
        {"route": "sparse", "threshold": 10},
        {"route": "natural", "sampler": "split"},
    ]
    other: list[dict[str, Any]] = [{"most_likes": 21}, {"candidates": 7}, {"threshold": 11}, {"sampler": "exact"}]
    with curator(tmp_path) as holder:
        for first, second in zip(options, other, strict=True):
            asked = {"k": 3, "epsilon": 0.5, "request_id": first["route"], **first}
            slate = holder.slate(**asked)
            with pytest.raises(Conflict):
                holder.slate(**{**asked, **second})
            assert holder.slate(**asked) == slate
        assert charges(holder) == 4


def test_releases_of_other_items_and_other_epsilons_are_told_apart(tmp_path: Path) -> None:
    with curator(tmp_path) as holder:
        released = [holder.popularity(0.5 + step / 64) for step in range(20)]  # 16 digits to begin a digest with
        assert len({one.guarantee.epsilon for one in released}) == 20
        parts = [holder.popularity(0.5, among=[film, film + 1]) for film in range(1, 6)]
        assert [one.items for one in parts] == [(film, film + 1) for film in range(1, 6)]
        holder.popularity(0.5, likes_each=3.0)
        assert charges(holder) == 26
        holder.popularity(0.5, among=[1, 2], request_id="x")
        with pytest.raises(Conflict):
            holder.popularity(0.5, among=[1, 3], request_id="x")
        with pytest.raises(Conflict):
            holder.popularity(0.5, among=[1, 2], request_id="x", likes_each=3.0)


def test_kernels_of_other_deltas_are_told_apart(tmp_path: Path) -> None:
    with curator(tmp_path, budget=DELTA) as holder:
        assert holder.similarity(0.5, 1e-7) != holder.similarity(0.5, 1e-8)
        assert charges(holder) == 2


# ---- slates of their own from one release


def test_each_id_has_its_own_slate_from_the_counts(tmp_path: Path) -> None:
    noise = CountedNoise()
    with curator(tmp_path, noise=noise) as holder:
        greedy = holder.slate(4, 50.0, slates=None)
        drawn = noise.draws
        slates = {week: holder.slate(4, 50.0, slates=None, request_id=f"week {week}") for week in range(40)}
        assert len({slate.items for slate in slates.values()}) > 20
        assert all(len(set(slate.items)) == 4 and slate.guarantee == greedy.guarantee for slate in slates.values())
        assert all(list(slate.items) == sorted(slate.items) and slate.route == "counts" for slate in slates.values())
        assert holder.slate(4, 50.0, slates=None) == greedy
        assert noise.draws == drawn
        assert charges(holder) == 1
    with curator(tmp_path) as holder:  # another process, the same slates
        assert all(
            holder.slate(4, 50.0, slates=None, request_id=f"week {week}") == slate for week, slate in slates.items()
        )
    films = Counter(film for slate in slates.values() for film in slate.items)
    assert sum(films[film] for film in range(1, 5)) > 2 * sum(films[film] for film in range(FILMS - 3, FILMS + 1))


def test_each_id_has_its_own_slate_from_a_kernel(tmp_path: Path) -> None:
    with curator(tmp_path, budget=DELTA) as holder:
        asked: dict[str, Any] = {"k": 4, "epsilon": 10.0, "slates": None, "similarity": "private"}
        slates = [holder.slate(**asked, request_id=f"week {week}") for week in range(20)]
        assert len({slate.items for slate in slates}) > 5
        assert slates[3] == holder.slate(**asked, request_id="week 3")
        assert all(len(set(slate.items)) == 4 for slate in slates)
        assert charges(holder) == 1


def test_slates_of_an_id_may_have_more_items_than_features_have_directions(tmp_path: Path) -> None:
    with curator(tmp_path) as holder:
        assert holder._slates.likes.rank < 9
        slates = [holder.slate(9, 5.0, slates=None, request_id=f"week {week}") for week in range(20)]
        assert all(len(set(slate.items)) == 9 for slate in slates)
        assert len({slate.items for slate in slates}) > 5
        assert len(holder.slate(FILMS, 5.0, slates=None, request_id="all")) == FILMS


def test_without_features_items_are_drawn_by_their_quality(tmp_path: Path) -> None:
    data = ratings(np.full((2, 20), 5))
    bare = replace(data, catalogue=replace(data.catalogue, genres=None, vocabulary=()))
    with curator(tmp_path, bare) as holder:
        counts, coins = np.array([10.0, 5.0, *[-3.0] * 18]), RngCoins(np.random.default_rng(1))
        drawn = Counter(draw_from_counts(counts, holder._slates.likes, 1, coins).item() for _ in range(4_000))
        expected = np.exp([3.0, 1.5, *[0.0] * 18])
        assert [drawn[item] / 4_000 for item in range(20)] == pytest.approx(expected / expected.sum(), abs=0.03)
        assert len(holder.slate(2, 1.0, route="counts", request_id="monday")) == 2


def test_the_slate_of_an_id_hangs_on_the_release_too(tmp_path: Path) -> None:
    with curator(tmp_path) as holder:
        seeds = {
            holder._slates.seed(holder.plan(3, epsilon, None, among=among), holder._slates.part(among), week)
            for epsilon in (0.5, 1.0)
            for among in (None, [1, 2, 3, 4, 5, 6])
            for week in ("week 1", "week 2")
        }
        assert len(seeds) == 8
        assert holder._slates.seed(holder.plan(3, 0.5, None), holder._slates.likes, None) is None


# ---- what is promised


def test_what_is_assumed_of_the_list_of_items_is_said_by_every_release(tmp_path: Path) -> None:
    with curator(tmp_path, some_ratings(unlisted=EVERY), budget=DELTA) as holder:
        part = [2, 4, 6, 8, 10]
        wishes = dict.fromkeys(range(2, FILMS + 1), 1.0)
        for among in (None, part):
            for guarantee in (
                holder.slate(3, 0.5, route="natural", among=among).guarantee,
                holder.popularity(0.5, among=among).guarantee,
                holder.similarity(0.5, 1e-7, among=among).guarantee,
                holder.slate(3, 0.5, slates=None, among=among).guarantee,
            ):
                assert RATED_AT_ALL in guarantee.assumes
                assert REQUESTED not in guarantee.assumes
            asked = holder.slate(3, 0.5, route="natural", among=among, request=wishes).guarantee
            assert {RATED_AT_ALL, REQUESTED} <= asked.assumes


def test_a_request_among_a_part_weighs_the_items_of_that_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    prepare = NaturalSlate.prepare

    def noted(self: NaturalSlate, rows: Any, **options: Any) -> Any:
        seen.append(options.get("request"))
        return prepare(self, rows, **options)

    monkeypatch.setattr(NaturalSlate, "prepare", noted)
    with curator(tmp_path) as holder:
        wishes = {1: 0.9, 5: 0.25, 9: 0.5, 12: 1.0}
        holder.slate(2, 0.5, route="natural", request=wishes, among=[12, 5, 9, 7])
    assert seen[0].tolist() == [0.25, 0.0, 0.5, 1.0]


def test_a_release_with_a_larger_delta_than_was_charged_does_not_leave(tmp_path: Path) -> None:
    charged = GaussianKernel(3, 0.5, 1e-7).guarantee
    with curator(tmp_path, budget=DELTA) as holder:
        plain = Guarantee(0.5, ONE_USER, delta=1e-7)
        for promised in (charged, plain):
            with pytest.raises(InvalidParameter, match="promises less"):
                holder._account.restate(release_of(None, replace(promised, delta=2e-7)), promised)
        assert holder._account.restate(release_of(None, Guarantee(0.5, ONE_USER, delta=1e-8)), plain).guarantee == plain


def test_the_delta_of_several_budgets_is_the_least(tmp_path: Path) -> None:
    budgets = [Budget(1.0, 1e-4), Budget(0.5, 1e-7, per="day"), Budget(0.7, 1e-5, per="month")]
    with curator(tmp_path, budget=budgets) as holder:
        assert holder._account.delta == 1e-7
        assert holder.plan(3, 0.5, 10, similarity="private").delta == 1e-7


def test_slates_are_not_counted_by_pld(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="not by 'pld'"):
        curator(tmp_path, budget=Budget(1.0, 1e-6), accounting="pld")
    with PrivacyLedger.create(tmp_path / "ledger.db") as ledger:
        each = NaturalSlate(FILMS, 3, 0.1).guarantee
        ledger.enrol("users of films", Budget(1.0, 1e-6), protects=ONE_USER, accounting="pld", each=each)
        with pytest.raises(InvalidParameter, match="not by 'pld'"):
            curator(tmp_path, ledger=ledger, budget=None)


def test_only_so_many_set_ups_are_kept(tmp_path: Path) -> None:
    with curator(tmp_path) as holder:
        for step in range(40):
            holder.slate(3, 0.5 + step / 64, route="natural")
            assert 1 <= len(holder._slates._ready) <= 16
            holder.plan(2, 0.5, among=[1 + step % FILMS, 1 + (step * 5 + 2) % FILMS, 1 + (step // 2 + 6) % FILMS])
            assert 1 <= len(holder._slates._parts) <= 16


def test_a_server_gets_the_counts_that_were_planned(tmp_path: Path) -> None:
    for delta in (None, 1e-7):
        with curator(tmp_path, budget=Budget(1.0, 1e-6), ledger=tmp_path / f"{delta}.db") as holder:
            options = {} if delta is None else {"delta": delta}
            outcome = simulate(holder, 3, 0.5, None, **options)
            assert outcome.guarantee == outcome.plan.each
            assert holder.slate(3, 0.5, slates=None, **options).guarantee == outcome.guarantee
            assert charges(holder) == 1
