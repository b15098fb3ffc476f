"""Mistakes that a newcomer makes: each is told in one sentence that says what is allowed, and none is Python's own error."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.errors import InvalidParameter, LedgerMissing, TacitError
from tacit.messages.federated_prototypes import public_of
from tacit.server import MultiSelection
from tests.unit.server.small_store import small_store

STORE = small_store()
RATINGS = tacit.data.load("synthetic", users=30, items=20)
KEY = b"k" * 32
GENERATOR = np.random.default_rng(1)
BUDGET = tacit.Budget(epsilon=10, per="month")


def device(**own: Any) -> tacit.Device:
    return tacit.Device("me.db", STORE, **{"budget": BUDGET, **own})


def curator(**own: Any) -> tacit.Curator:
    return tacit.Curator(RATINGS, **{"ledger": "curator.db", "budget": tacit.Budget(epsilon=5), **own})


def entity(**own: Any) -> tacit.Entity:
    settings = {"name": "a", "key": KEY, "coordinator": public_of(KEY), "catalogue": range(5), "budget": BUDGET}
    return tacit.Entity(np.ones((3, 5)), "entity.db", **{**settings, **own})


def federate(**own: Any) -> object:
    return tacit.systems.federated_prototypes.simulate(
        {name: np.ones((3, 5)) for name in "abc"}, range(5), epsilon=1, users=3, **own
    )


MISTAKES: dict[str, tuple[Callable[[], object], str]] = {
    "a data set by number": (lambda: tacit.data.load(3), "load\\('movielens-small'\\)"),  # type: ignore[call-overload]
    "a data set that is not there": (lambda: tacit.data.load("movielens"), "Ready: movielens-small, synthetic"),
    "a budget of nothing": (lambda: tacit.Budget(0), "above 0"),
    "a budget as text": (lambda: tacit.Budget("1"), "a finite number"),  # type: ignore[arg-type]
    "a budget by week": (lambda: tacit.Budget(1, per="week"), "'day', 'month', 'lifetime'"),
    "a store of a name": (lambda: tacit.fit("movielens-small"), "not to str: fit\\("),  # type: ignore[arg-type]
    "a device without a store": (lambda: tacit.Device("me.db", RATINGS), "Device\\('me.db'"),  # type: ignore[arg-type]
    "store and file changed over": (lambda: tacit.Device(STORE, "me.db"), "in this order"),  # type: ignore[arg-type]
    "a device's budget by number": (lambda: device(budget=10), "Budget\\(epsilon=10"),
    "a device with numpy's noise": (lambda: device(noise=GENERATOR), "leave `noise` out"),
    "a curator with numpy's noise": (lambda: curator(noise=GENERATOR), "leave `noise` out"),
    "an entity with numpy's noise": (lambda: entity(noise=GENERATOR), "leave `noise` out"),
    "ratings in a list": (lambda: device().rate([("Heat", 5)]), "rate\\(\\{"),  # type: ignore[arg-type]
    "a misspelt title": (lambda: device().rate({"Haet": 5}), "device.items.code"),
    "a rating that is no number": (lambda: device().rate({1: float("nan")}), "finite number"),
    "an eta of nothing": (lambda: device().ask(0), "from 0.001 to 10"),
    "picking from nothing": (lambda: device().pick(None), "server.answer"),  # type: ignore[arg-type]
    "titles of one": (lambda: device().titles(3), "a list or a tuple"),  # type: ignore[arg-type]
    "showing no fill": (lambda: device().shown(None), "show nothing"),  # type: ignore[arg-type]
    "settling nothing": (lambda: device().settled(None, "ok"), "a Choice, an Impression"),  # type: ignore[arg-type]
    "a server without a store": (lambda: MultiSelection(None), "tacit.fit"),  # type: ignore[arg-type]
    "an unknown setting": (lambda: MultiSelection(STORE, magic=3), "the settings are draws"),
    "no items": (lambda: MultiSelection(STORE).answer(device().ask(), k=0), "k must be a whole number from 1"),
    "a curator without a ledger": (lambda: tacit.Curator(RATINGS), "ledger='curator.db'"),
    "a curator's budget by number": (lambda: curator(budget=1), "Budget\\(epsilon="),
    "a slate larger than the catalogue": (lambda: curator().slate(k=21), "from 1 to 20, not 21"),
    "an epsilon as text": (lambda: curator().slate(k=2, epsilon="1"), "above 0, not '1'"),  # type: ignore[arg-type]
    "one item to choose among": (lambda: curator().slate(k=2, among=5), "`among` must be a collection"),  # type: ignore[arg-type]
    "an unknown option": (lambda: curator().slate(k=2, colour=3), "further options: candidates"),
    "titles of a text": (lambda: curator().titles("Heat"), "a list or a tuple, not str"),
    "a release of one domain": (lambda: curator().release(), "curator.slate\\(\\)"),
    "domains that are none": (lambda: tacit.data.TwoDomains.align(RATINGS, 3), "two sets of Ratings"),  # type: ignore[arg-type]
    "a mask of numbers": (lambda: tacit.data.TwoDomains.by_items(RATINGS, [1, 2]), "20 true-or-false values"),
    "a scale by number": (lambda: tacit.data.from_arrays([1], [1], [3.0], scale=5), "STARS"),  # type: ignore[arg-type]
    "writing what is no ratings": (lambda: tacit.data.write(3, "x"), "write\\(ratings, path\\)"),  # type: ignore[arg-type]
    "a catalogue of one": (lambda: entity(catalogue=5), "a catalogue must be a collection"),
    "a short key": (lambda: entity(key=b"short"), "32 bytes"),
    "bytes that are no message": (lambda: entity().answer(b"x"), "not a message of the protocol"),
    "a constant that no manifest has": (lambda: federate(colour=3), "it has catalogue, items, epsilon"),
    "room for no reports": (lambda: tacit.shuffler.Shuffler("mail.db", most=0), "at least 1"),
    "a server without https": (lambda: tacit.Client("films.example", "me.db"), "https://host"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_with_what_is_allowed(mistake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    call, told = MISTAKES[mistake]
    with pytest.raises(TacitError, match=told) as caught:
        call()
    assert str(caught.value).startswith(f"{caught.value.code}: ")
    assert str(caught.value).endswith((".", ")"))


def test_what_was_closed_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for closed, call in (
        (device(), lambda one: one.ask()),
        (curator(), lambda one: one.slate(k=2)),
        (entity(), lambda one: one.statement()),
    ):
        closed.close()
        with pytest.raises(TacitError, match="Open it again"):
            call(closed)


def test_an_entity_begins_its_ledger_with_a_budget_and_refuses_a_lost_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LedgerMissing, match="state the budget"):
        entity(budget=None)
    with entity() as first:
        noted = first.head()
    with entity(budget=None, head=noted) as again:
        assert again.head() == noted
    Path("entity.db").unlink()
    with pytest.raises(LedgerMissing):
        entity(head=noted)
    with (
        tacit.ledger.PrivacyLedger.create("shared.db") as shared,
        pytest.raises(InvalidParameter, match="open already"),
    ):
        tacit.Entity(
            [], shared, name="a", key=KEY, coordinator=public_of(KEY), catalogue=[1], journal="runs", head=noted
        )


def test_parties_share_their_habits() -> None:
    """Whoever has a ledger closes it, is a context manager, and says in a word what it is; raw data give statements and heads."""
    holders = (tacit.Device, tacit.Curator, tacit.Entity)
    for party in (*holders, tacit.server.PrivateSelection, tacit.shuffler.Shuffler, tacit.Client):
        assert {"close", "__enter__", "__exit__"} <= {name for name in dir(party) if callable(getattr(party, name))}
        assert party.__repr__ is not object.__repr__
        assert "ledger" in party.__init__.__annotations__
    for party in holders:
        assert callable(party.statement)
        assert callable(party.head)
        assert {"budget", "head", "noise", "clock"} <= set(party.__init__.__annotations__)
