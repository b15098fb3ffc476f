"""The curator: charged before anything is drawn, drawn once for each id, never beyond the budget, never an unlisted item."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.curator import Curator, Route
from tacit.curator.curator import REQUESTED
from tacit.curator.fit import RATED_AT_ALL
from tacit.errors import (
    BudgetExhausted,
    Conflict,
    GuaranteeRefused,
    InvalidParameter,
    LedgerBehind,
    LedgerMissing,
    UnknownName,
)
from tacit.guarantees import ONE_PROFILE, ONE_USER, Guarantee, Loss, LossKind, Relation, Release
from tacit.ledger import Budget, PrivacyLedger, price
from tacit.mechanisms import NaturalSlate, ReplayedNoise, TemperedSlate
from tacit.messages.private_slates import Slate
from tests.unit.curator.slates_world import FILMS, CountedNoise, FailingNoise, curator, ratings, some_ratings

DRAWN = [one for one in Route if one not in (Route.COUNTS, Route.KERNEL, Route.PUBLISHED)]
OPTIONS: dict[Route, dict[str, Any]] = {Route.TWO_STAGE: {"candidates": 6}, Route.SPARSE: {"threshold": 10}}


def charges(holder: Curator) -> int:
    return holder.statement().charges


def test_the_line_of_the_front_page_works_as_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    films = tacit.data.load("movielens-small")
    slate = tacit.Curator(films, ledger="curator.db", budget=tacit.Budget(epsilon=1)).slate(k=10, epsilon=0.1)
    assert len(set(slate.items)) == 10
    assert set(slate.items) <= set(films.catalogue.ids.tolist())
    assert slate.guarantee.epsilon == 0.1
    assert slate.guarantee.protects == ONE_USER
    assert RATED_AT_ALL in slate.guarantee.assumes  # these ratings came without a list of films
    assert slate.route == "tempered"


@pytest.mark.parametrize("route", DRAWN)
def test_every_route_draws_a_slate_of_listed_items_and_charges_what_it_promises(tmp_path: Path, route: Route) -> None:
    options = OPTIONS.get(route, {})
    with curator(tmp_path) as holder:
        made = holder.plan(5, 1.0, route=route, **options)
        slate = holder.slate(5, 1.0, route=route, **options)
        assert slate.guarantee == made.each
        assert slate.route == route.value
        assert list(slate.items) == sorted(set(slate.items))  # in the order of the catalogue, which says nothing
        assert set(slate.items) <= set(range(1, FILMS + 1))
        if route is not Route.SUBSET:
            assert len(slate) == 5
        statement = holder.statement()
        assert statement.charges == 1
        assert statement.spent == price(made.each, statement.terms)
        assert statement.promised.protects == ONE_USER


@pytest.mark.parametrize("route", [*DRAWN, Route.COUNTS, Route.KERNEL])
def test_an_item_that_is_known_only_by_a_rating_is_in_no_slate(tmp_path: Path, route: Route) -> None:
    table = np.full((60, FILMS), 5)  # everybody likes all, the unlisted ones too
    with curator(tmp_path, ratings(table, unlisted=(0, 3)), budget=Budget(1000, 1e-3), accounting="basic") as holder:
        options = {**OPTIONS.get(route, {}), "delta": 1e-6} if route is Route.KERNEL else OPTIONS.get(route, {})
        assert holder.items.tolist() == [2, 3, *range(5, FILMS + 1)]
        for _ in range(5):
            slate = holder.slate(5, 0.5, route=route, **options)
            assert not set(slate.items) & {1, 4}
        assert RATED_AT_ALL not in slate.guarantee.assumes


def test_who_rates_an_unlisted_item_changes_nothing_that_is_public(tmp_path: Path) -> None:
    table = np.full((3, FILMS), 5)
    without = ratings(table * (np.arange(FILMS) != 3), unlisted=(3,))
    with (
        curator(tmp_path, ratings(table, unlisted=(3,)), ledger=tmp_path / "a.db") as one,
        curator(tmp_path, without, ledger=tmp_path / "b.db") as other,
    ):
        assert one.plan() == other.plan()
        assert one.items.tolist() == other.items.tolist()
        assert one.features is not None
        assert other.features is not None
        assert np.array_equal(one.features, other.features)
        assert np.array_equal(one._likes.rows.toarray(), other._likes.rows.toarray())


def test_a_crash_between_charge_and_slate_loses_budget_and_nothing_else(tmp_path: Path) -> None:
    with curator(tmp_path, noise=FailingNoise()) as holder:
        with pytest.raises(KeyboardInterrupt):
            holder.slate(3, 0.5, request_id="monday")
        assert holder.statement().spent.amount == 500_000_000  # the charge is there, and nothing was kept
        assert list(holder.ledger.stored("users of films")) == []
    with curator(tmp_path) as holder:
        first = holder.slate(3, 0.5, request_id="monday")
        assert charges(holder) == 1
        assert holder.slate(3, 0.5, request_id="monday") == first


def test_the_same_request_gets_the_same_slate_for_one_charge(tmp_path: Path) -> None:
    noise = CountedNoise()
    with curator(tmp_path, noise=noise) as holder:
        first = holder.slate(3, 0.01, request_id="monday")
        drawn = noise.draws
        assert [holder.slate(3, 0.01, request_id="monday") for _ in range(20)] == [first] * 20
        assert noise.draws == drawn
        assert charges(holder) == 1
        others = {holder.slate(3, 0.01, request_id=f"day {day}").items for day in range(20)}
        assert charges(holder) == 21
        assert len(others) > 1
        holder.slate(3, 0.01)
        holder.slate(3, 0.01)
        assert charges(holder) == 23  # without an id every call is a new slate


def test_another_process_gets_the_same_slate(tmp_path: Path) -> None:
    with curator(tmp_path) as holder:
        first = holder.slate(4, 0.01, request_id="monday")
    program = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[2])\n"
        "from slates_world import curator; holder = curator(Path(sys.argv[1]))\n"
        "print(*holder.slate(4, 0.01, request_id='monday').items, holder.statement().charges)\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path), str(Path(__file__).parent)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.split() == [*map(str, first.items), "1"]


def test_beyond_the_budget_nothing_is_drawn_and_no_rating_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise = CountedNoise()
    with curator(tmp_path, noise=noise, budget=Budget(1.0)) as holder:
        for _ in range(2):
            holder.slate(3, 0.5)
        drawn = noise.draws
        read: list[object] = []
        monkeypatch.setattr(TemperedSlate, "prepare", lambda self, rows: read.append(rows))
        with pytest.raises(BudgetExhausted):
            holder.slate(3, 0.25)
        with pytest.raises(BudgetExhausted):
            holder.popularity(0.25)
        assert noise.draws == drawn
        assert read == []
        assert charges(holder) == 2


def test_many_slates_are_charged_by_the_range_of_their_losses(tmp_path: Path) -> None:
    budget = Budget(2.41909, 1e-6)
    with curator(tmp_path, budget=budget) as holder:
        assert holder.statement().terms.accounting == "zcdp"
        made = holder.plan(3, budget.epsilon, 100, similarity="private")
        assert made.epsilon == pytest.approx(0.1, rel=1e-5)
        for _ in range(100):
            holder.slate(3, budget.epsilon, slates=100, similarity="private")
        promised = holder.statement().promised
        assert 2.4190 < promised.epsilon <= 2.4191
        assert promised.delta == 1e-6
        with pytest.raises(BudgetExhausted):
            holder.slate(3, budget.epsilon, slates=100, similarity="private")


def test_slates_of_all_kinds_add_up_in_one_account(tmp_path: Path) -> None:
    with curator(tmp_path, budget=Budget(5.0)) as holder:
        for route in DRAWN:
            holder.slate(3, 0.25, route=route, **OPTIONS.get(route, {}))
        holder.popularity(0.5)
        assert holder.statement().spent.amount == 250_000_000 * len(DRAWN) + 500_000_000
        assert holder.statement().promised.epsilon == pytest.approx(0.25 * len(DRAWN) + 0.5)


def test_an_id_that_stood_for_another_slate_is_refused(tmp_path: Path) -> None:
    with curator(tmp_path) as holder:
        holder.slate(3, 0.5, request_id="monday", route="natural")
        for other in ({"k": 4}, {"route": "feature"}, {"epsilon": 0.25}, {"among": [1, 2, 3, 4, 5]}):
            with pytest.raises(Conflict):
                holder.slate(**{"k": 3, "epsilon": 0.5, "request_id": "monday", "route": "natural", **other})
        with pytest.raises(Conflict):
            holder.slate(3, 0.5, request_id="monday", route="natural", request={1: 1.0})
        assert charges(holder) == 1


def test_replayed_noise_is_refused_unless_it_is_named(tmp_path: Path) -> None:
    with curator(tmp_path, noise=ReplayedNoise(1)) as holder:
        with pytest.raises(GuaranteeRefused):
            holder.slate(3, 0.5)
        with pytest.raises(GuaranteeRefused):
            holder.popularity(0.5)
        assert charges(holder) == 0
    options = {"unprotected": [ReplayedNoise.caveat], "ledger": tmp_path / "simulated.db"}
    with curator(tmp_path, noise=ReplayedNoise(1), **options) as holder:
        slate = holder.slate(3, 0.5)
        assert slate.guarantee.promises_nothing
        assert slate.guarantee.assumes == {ReplayedNoise.caveat}
        assert holder.popularity(0.5).guarantee.promises_nothing


def test_the_published_bound_is_refused_unless_it_is_named(tmp_path: Path) -> None:
    with curator(tmp_path) as holder:
        with pytest.raises(GuaranteeRefused):
            holder.slate(3, 1.0, route="published")
        assert charges(holder) == 0
    with curator(tmp_path, ledger=tmp_path / "named.db", unprotected=["published"]) as holder:
        slate = holder.slate(3, 1.0, route="published")
        assert len(slate) == 3
        assert slate.guarantee.promises_nothing
        assert holder.statement().spent.unprotected == 1
        holder.slate(3, 1.0, route="natural")  # what promises something is charged as ever
        assert holder.statement().spent.amount == 10**9
    with (
        curator(
            tmp_path, some_ratings(), ledger=tmp_path / "replayed.db", unprotected=["published"], noise=ReplayedNoise(1)
        ) as holder,
        pytest.raises(GuaranteeRefused),
    ):
        holder.slate(3, 1.0, route="published")


def test_counts_are_released_once_and_slates_from_them_are_free(tmp_path: Path) -> None:
    noise = CountedNoise()
    with curator(tmp_path, noise=noise, budget=Budget(50.0)) as holder:
        popularity = holder.popularity(50.0)
        drawn = noise.draws
        assert holder.popularity(50.0) == popularity
        assert noise.draws == drawn
        slates = [holder.slate(4, 50.0, slates=None) for _ in range(3)]
        assert slates[0] == slates[1] == slates[2]
        assert slates[0].guarantee == popularity.guarantee
        assert slates[0].route == "counts"
        assert noise.draws == drawn
        assert charges(holder) == 1
        # 12 likes at most of each of 40 people, scale 0.4: the counts are nearly true
        true = np.asarray(holder._likes.rows.sum(axis=0)).ravel()
        assert np.abs(popularity.counts() - true).max() < 12
    with curator(tmp_path, budget=Budget(50.0)) as holder:
        assert holder.popularity(50.0) == popularity
        with pytest.raises(BudgetExhausted):
            holder.popularity(50.0, request_id="next month")


def test_likes_beyond_those_that_count_are_cut_in_equal_shares(tmp_path: Path) -> None:
    table = np.full((1, FILMS), 5)
    with curator(tmp_path, ratings(table), budget=Budget(10**6)) as holder:
        counts = holder.popularity(10**6, likes_each=3.0).counts()
        assert np.abs(counts - 3 / FILMS).max() < 1e-3


def test_a_kernel_is_released_once_too(tmp_path: Path) -> None:
    with curator(tmp_path, budget=Budget(3.0, 1e-5)) as holder:
        similarity = holder.similarity(2.0, 1e-6)
        assert similarity == holder.similarity(2.0, 1e-6)
        assert similarity.guarantee.delta == 1e-6
        assert charges(holder) == 1
        slate = holder.slate(4, 0.5, slates=None, similarity="private")
        assert slate.route == "kernel"
        assert len(slate) == 4
        assert slate.guarantee.delta == 1e-5
        assert charges(holder) == 2


def test_a_request_weighs_items_and_says_whom_that_protects(tmp_path: Path) -> None:
    with curator(tmp_path) as holder:
        wishes = dict.fromkeys(range(5, FILMS + 1), 1.0)
        for route in ("tempered", "natural", "feature", "two-stage", "sparse"):
            options = OPTIONS.get(Route(route), {})
            slate = holder.slate(4, 1.0, route=route, request=wishes, **options)
            assert REQUESTED in slate.guarantee.assumes
            assert slate.guarantee.epsilon == 1.0
        for _ in range(10):  # nothing of an item with weight 0 is left in a tempered kernel
            assert min(holder.slate(4, 1.0, route="tempered", request=wishes).items) >= 5
        for route in ("top-k", "counts", "subset"):
            with pytest.raises(InvalidParameter, match="no request"):
                holder.slate(4, 1.0, route=route, request=wishes)
        with pytest.raises(UnknownName):
            holder.slate(4, 1.0, request={99: 1.0})
        with pytest.raises(InvalidParameter):
            holder.slate(4, 1.0, request=[1.0, 0.5])
        weights = holder._likes.weights([5.0, -1.0, np.nan, np.inf, 0.25] + [0.0] * (FILMS - 5))
        assert weights is not None
        assert weights.tolist() == [1.0, 0.0, 0.0, 0.0, 0.25] + [0.0] * (FILMS - 5)


@pytest.mark.parametrize("route", ["natural", "published"])
def test_a_request_reaches_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, route: str) -> None:
    seen: list[Any] = []
    prepare = NaturalSlate.prepare

    def noted(self: NaturalSlate, rows: Any, **options: Any) -> Any:
        seen.append(options.get("request"))
        return prepare(self, rows, **options)

    monkeypatch.setattr(NaturalSlate, "prepare", noted)
    with curator(tmp_path, unprotected=["published"]) as holder:
        holder.slate(3, 0.5, route=route)
        holder.slate(3, 0.5, route=route, request={2: 0.5, 3: 7.0})
        holder.slate(3, 0.5, route=route, request={2: 0.5, 3: 7.0}, among=[3, 1, 2, 4])
    assert seen[0] is None
    assert seen[1].tolist() == [0.0, 0.5, 1.0] + [0.0] * 9
    assert seen[2].tolist() == [0.0, 0.5, 1.0, 0.0]


def test_a_request_that_leaves_too_few_directions_is_refused_before_anything_is_charged(tmp_path: Path) -> None:
    with curator(tmp_path) as holder:
        with pytest.raises(InvalidParameter):
            holder.slate(4, 1.0, route="tempered", request={1: 1.0})
        assert charges(holder) == 0


def test_a_public_part_of_the_items_may_be_named(tmp_path: Path) -> None:
    with curator(tmp_path) as holder:
        parts = [[1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11, 12]] * 20  # more than are kept in memory, in turn
        for number, part in enumerate(parts):
            part = [*part, 1 + number % FILMS]
            slate = holder.slate(3, 0.5, among=part, route="natural")
            assert set(slate.items) <= set(part)
        assert len(holder.popularity(1.0, among=[3, 1])) == 2
        with pytest.raises(UnknownName):
            holder.slate(3, 0.5, among=[1, 2, 99])
        with pytest.raises(InvalidParameter):
            holder.slate(3, 0.5, among=[])
        with pytest.raises(InvalidParameter):
            holder.slate(3, 0.5, among=[1, 2])


def test_the_set_up_is_done_once_for_each_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared: list[float] = []
    prepare = NaturalSlate.prepare

    def counted(self: NaturalSlate, rows: Any, **options: Any) -> Any:
        prepared.append(self.epsilon)
        return prepare(self, rows, **options)

    monkeypatch.setattr(NaturalSlate, "prepare", counted)
    with curator(tmp_path) as holder:
        for epsilon in (0.5, 0.25, 0.5, 0.5):
            holder.slate(3, epsilon, route="natural")
        assert prepared == [0.5, 0.25]
        holder.slate(3, 0.5, route="natural", request=dict.fromkeys(range(1, 9), 1.0))
        holder.slate(3, 0.5, route="natural")
        assert prepared == [0.5, 0.25, 0.5]  # a request is set up for itself, and not kept
        assert len(holder._ready) == 2


def test_a_release_that_promises_less_than_was_charged_does_not_leave(tmp_path: Path) -> None:
    with curator(tmp_path) as holder:
        rows, charged = holder._likes.rows, NaturalSlate(FILMS, 3, 0.5).guarantee
        weaker = NaturalSlate(FILMS, 3, 0.75).release(rows)
        with pytest.raises(InvalidParameter, match="promises less"):
            holder._account.stated(weaker, charged)
        other = NaturalSlate(FILMS, 3, 0.5, relation=Relation.REPLACE).release(rows)
        with pytest.raises(InvalidParameter, match="promises less"):
            holder._account.stated(other, charged)
        loose = Guarantee(0.5, charged.protects, loss=Loss(LossKind.BOUNDED_RANGE, 1.0))  # costs twice by its range
        with pytest.raises(InvalidParameter, match="promises less"):
            holder._account.stated(Release(None, loose), charged)
        assert holder._account.stated(NaturalSlate(FILMS, 3, 0.25).release(rows), charged).guarantee == charged


def test_natural_slates_may_be_drawn_in_floats_and_say_so(tmp_path: Path) -> None:
    with curator(tmp_path, ratings(np.full((60, FILMS), 5))) as holder:
        for route in ("natural", "two-stage"):
            options = {"epsilon": 6.0, "route": route, "candidates": 6}  # too long for whole numbers
            slate = holder.slate(5, sampler="split", **options)
            assert len(slate) == 5
            assert any("real arithmetic" in reason for reason in slate.guarantee.assumes)
        with pytest.raises(InvalidParameter):
            holder.slate(5, 1.0, route="natural", sampler="quick")


def test_what_is_kept_and_sent_holds_the_items_and_the_promise_alone(tmp_path: Path) -> None:
    with curator(tmp_path) as holder:
        slate = holder.slate(3, 0.5, request_id="monday", route="natural")
        (stored,) = holder.ledger.stored("users of films")
        digest, seal, message = stored.content.split(b"\n", 2)
        assert len(digest) == 64
        assert len(seal) == 32 + 64
        assert json.loads(message) == slate.to_json()
        assert set(slate.to_json()) == {"version", "items", "route", "guarantee"}
        assert Slate.from_json(json.loads(message)) == slate


def test_texts_show_public_sizes_only(tmp_path: Path) -> None:
    with (
        curator(tmp_path) as holder,
        curator(tmp_path, ratings(np.full((1, FILMS), 5)), ledger=tmp_path / "b.db") as other,
    ):
        assert repr(holder) == repr(other) == "Curator('films': 12 items)"
        assert "Film 1" not in repr(holder.slate(3, 0.5))
        assert holder.titles(holder.slate(12, 0.5, route="natural")) == tuple(f"Film {n}" for n in range(1, FILMS + 1))


def test_terms_are_agreed_once(tmp_path: Path) -> None:
    with curator(tmp_path, budget=Budget(2.0)) as holder:
        holder.slate(3, 0.5)
    with pytest.raises(Conflict):
        curator(tmp_path, budget=Budget(3.0))
    with pytest.raises(Conflict):
        curator(tmp_path, budget=Budget(2.0), unprotected=["published"])
    with pytest.raises(Conflict):
        curator(tmp_path, budget=None, unprotected=["published"])
    with curator(tmp_path, budget=None) as holder:  # as it was made
        assert holder.statement().terms.budgets == (Budget(2.0),)
        assert charges(holder) == 1
    with curator(tmp_path, budget=None, subject="others") as holder:
        assert holder.statement().terms.budgets == (Budget(1.0),)


def test_a_ledger_may_be_shared_and_is_then_left_open(tmp_path: Path) -> None:
    with PrivacyLedger.create(tmp_path / "ledger.db") as ledger:
        with curator(tmp_path, ledger=ledger) as holder:
            holder.slate(3, 0.5)
        assert ledger.statement("users of films").charges == 1
        ledger.enrol("people", Budget(1.0), protects=ONE_PROFILE)
        with pytest.raises(Conflict):
            curator(tmp_path, ledger=ledger, budget=None, subject="people")


@pytest.mark.parametrize(
    "wrong",
    [
        {"like": np.nan},
        {"features": [[1.0, 2.0]]},
        {"features": "genres"},
        {"features": np.full((FILMS, 2), np.nan)},
        {"accounting": "pld"},
        {"unprotected": "published"},
        {"subject": ""},
        {"budget": Budget(1.0), "accounting": "zcdp"},
    ],
)
def test_what_is_wrong_is_refused_at_once(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        curator(tmp_path, **wrong)


def test_ratings_are_wanted(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter):
        Curator([[1, 2]], ledger=tmp_path / "curator.db")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="no items"):
        curator(tmp_path, ratings(np.zeros((2, 0))))


def test_features_are_given_for_the_listed_items(tmp_path: Path) -> None:
    features = np.eye(FILMS - 1)
    with curator(tmp_path, some_ratings(unlisted=(1,)), features=features) as holder:
        assert holder.features is not None
        assert np.array_equal(holder.features, features)
        assert holder.plan(10).route is Route.TEMPERED


def test_a_refusal_of_features_does_not_tell_how_many_unlisted_items_were_rated(tmp_path: Path) -> None:
    told = set()
    for unlisted in ((1,), (1, 2)):  # the list has ten films, and one or two more are there because somebody rated them
        films = FILMS - (unlisted == (1,))
        table = np.full((2, FILMS), 5)
        table[:, films:] = 0
        with pytest.raises(InvalidParameter) as refused:
            curator(tmp_path, ratings(table[:, :films], unlisted=unlisted), features=np.eye(3))
        told.add(str(refused.value))
    assert len(told) == 1


def test_an_id_used_again_by_another_requester_does_not_give_away_the_first_ones_slate(tmp_path: Path) -> None:
    with curator(tmp_path) as holder:
        first = holder.slate(3, 0.5, route="natural", request={1: 1.0, 2: 1.0}, request_id="x")
        assert holder.slate(3, 0.5, route="natural", request={2: 1, 1: 1}, request_id="x") == first
        for other in ({9: 1.0}, None):
            with pytest.raises(Conflict):
                holder.slate(3, 0.5, route="natural", request=other, request_id="x")
        assert charges(holder) == 1
        (one,) = holder.ledger.stored("users of films")
    (tmp_path / "b").mkdir()
    with curator(tmp_path / "b") as holder:
        holder.slate(3, 0.5, route="natural", request={1: 1.0, 2: 1.0}, request_id="x")
        (two,) = holder.ledger.stored("users of films")
    assert one.content.split(b"\n")[1] != two.content.split(b"\n")[1]  # salted: equal requests do not look alike


def test_a_stated_budget_begins_a_ledger_and_without_one_it_has_to_be_there(tmp_path: Path) -> None:
    place = tmp_path / "curator.db"
    with pytest.raises(LedgerMissing, match=r"tacit ledger init.*budget=Budget\("):
        Curator(some_ratings(), ledger=place)
    assert not place.exists()
    with Curator(some_ratings(), ledger=place, budget=Budget(epsilon=3)) as holder:
        holder.slate(k=2, epsilon=1, request_id="first")
    with Curator(some_ratings(), ledger=place) as holder:  # under what was agreed
        assert holder.statement().windows[0].budget == Budget(epsilon=3)


def test_a_lost_or_older_ledger_is_refused_by_a_noted_head(tmp_path: Path) -> None:
    place, old = tmp_path / "curator.db", tmp_path / "old.db"
    with curator(tmp_path) as holder:
        holder.slate(k=2, epsilon=1)
        before = place.read_bytes()
        holder.slate(k=2, epsilon=1)
        noted = holder.head()
    old.write_bytes(before)
    with curator(tmp_path, head=noted) as holder:
        assert holder.head() == noted
    with pytest.raises(LedgerMissing):
        curator(tmp_path, ledger=tmp_path / "lost.db", head=noted)
    with pytest.raises(LedgerBehind):
        curator(tmp_path, ledger=old, head=noted)
    with PrivacyLedger.open(place) as opened, pytest.raises(InvalidParameter, match=r"PrivacyLedger\.open"):
        curator(tmp_path, ledger=opened, head=noted)


def test_titles_are_those_of_a_slate_or_of_ids(tmp_path: Path) -> None:
    with curator(tmp_path) as holder:
        slate = holder.slate(k=3, epsilon=1)
        assert holder.titles(slate) == holder.titles(list(slate.items))
        with pytest.raises(UnknownName):
            holder.titles([10_000])
