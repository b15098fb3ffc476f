"""Slates for requests and for parts of the items: what they weigh, what is kept and sent of them, under which terms."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.curator import Curator, Route
from tacit.curator.private_slates.draw import REQUESTED
from tacit.errors import (
    Conflict,
    InvalidParameter,
    LedgerBehind,
    LedgerMissing,
    UnknownName,
)
from tacit.guarantees import ONE_PROFILE, Guarantee, Loss, LossKind, Relation
from tacit.ledger import Budget, PrivacyLedger
from tacit.mechanisms import NaturalSlate
from tacit.messages.private_slates import Slate
from tests.releases import release_of
from tests.unit.curator.slates_charged import OPTIONS, charges
from tests.unit.curator.slates_world import FILMS, curator, ratings, some_ratings


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
        weights = holder._slates.likes.weights([5.0, -1.0, np.nan, np.inf, 0.25] + [0.0] * (FILMS - 5))
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
        assert len(holder._slates._ready) == 2


def test_a_release_that_promises_less_than_was_charged_does_not_leave(tmp_path: Path) -> None:
    with curator(tmp_path) as holder:
        rows, charged = holder._slates.likes.rows, NaturalSlate(FILMS, 3, 0.5).guarantee
        weaker = NaturalSlate(FILMS, 3, 0.75).release(rows)
        with pytest.raises(InvalidParameter, match="promises less"):
            holder._account.restate(weaker, charged)
        other = NaturalSlate(FILMS, 3, 0.5, relation=Relation.REPLACE).release(rows)
        with pytest.raises(InvalidParameter, match="promises less"):
            holder._account.restate(other, charged)
        loose = Guarantee(0.5, charged.protects, loss=Loss(LossKind.BOUNDED_RANGE, 1.0))  # costs twice by its range
        with pytest.raises(InvalidParameter, match="promises less"):
            holder._account.restate(release_of(None, loose), charged)
        assert holder._account.restate(NaturalSlate(FILMS, 3, 0.25).release(rows), charged).guarantee == charged


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
