"""Choosing: consent first; then charge, look, draw, write, show, mark, report, in this order whatever breaks."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.device import Device, private_selection
from tacit.errors import InvalidParameter, UnknownName
from tacit.ledger import DisplayLedger, PrivacyLedger, Settlement
from tacit.messages.private_selection import Bounding, Policy, Rule
from tests.unit.device.choices import NANO, Dies, chosen, rules, spent
from tests.unit.device.offering import ANY, EXPIRES, FAVOURS_LAST, LIKED, RR, Taste, offered, selecting, token
from tests.unit.device.small_world import SHOP, Clock, CountedNoise

# --- consent


def test_without_consent_nothing_private_is_read_and_nothing_charged(place: Path) -> None:
    taste, noise = Taste(FAVOURS_LAST), CountedNoise()
    with Device(place, SHOP, private_scorer=taste, noise=noise, clock=Clock()) as device:
        assert device.consent_state() == (False, None)
        assert not device.offer_request("sport").consent
        for policy in (RR, Policy(Rule.UNIFORM, 4), Policy(Rule.PF, 4, 1.0, bounding=Bounding.SCALED)):
            choice = chosen(device, 10 + len(policy.rule.value), policy)
            assert (choice.items, choice.policy.rule) == (LIKED[:1], Rule.PUBLIC)
        assert (taste.asked, noise.draws, spent(device)) == ([], 0, 0)


def test_consent_is_dated_durable_and_revocable_and_never_resets_the_budget(place: Path) -> None:
    clock = Clock(2026, 11, 16, 12)
    with Device(place, SHOP, private_scorer=Taste(), clock=clock) as device:
        day = device.consent().day
        assert day == clock() // 86_400_000_000
        assert rules(device, range(4)) == "rrrr"
    with Device(place, SHOP, private_scorer=Taste(), clock=clock) as device:
        assert device.offer_request().consent
        assert rules(device, range(4, 8)) == "rrrr"
        device.revoke()
        assert not device.offer_request().consent
        assert rules(device, range(8, 10)) == "pp"
    with Device(place, SHOP, private_scorer=Taste(), clock=clock) as device:
        assert device.consent_state().granted is False
        device.consent()
        assert rules(device, range(10, 14)) == "rrpp"  # ten in all
        assert spent(device) == 10 * NANO


def test_revocation_wipes_the_profile(place: Path) -> None:
    with selecting(place) as device:
        device.rate({2: 5.0, 21: 1.0})
        device.revoke()
        assert len(device._state.profile) == 0
        device.consent()
    seen = []
    with selecting(place, private_scorer=lambda features, items: seen.append(features) or [0.0] * len(items)) as device:
        device.rate({2: 5.0})
        device.revoke()
        device.consent()
        device.choose(offered())
    assert np.concatenate(seen).tolist() == [0.0] * 8


def test_revocation_holds_even_where_it_cannot_be_written(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with selecting(place) as device:
        device.rate({2: 5.0})
        monkeypatch.setattr(DisplayLedger, "consent", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            device.revoke()
        assert len(device._state.profile) == 0


# --- the order: charge, look, draw, write, show, mark, report


def test_the_order_of_section_8(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []

    def noting(kind: type, name: str) -> None:
        real = getattr(kind, name)
        monkeypatch.setattr(kind, name, lambda *given, **more: (steps.append(name), real(*given, **more))[1])

    for kind, name in (
        (DisplayLedger, "find"),
        (DisplayLedger, "consent_state"),
        (PrivacyLedger, "charge"),
        (DisplayLedger, "mark_shown"),
    ):
        noting(kind, name)
    keep = DisplayLedger.choose

    def choose(self: DisplayLedger, server: str, key: str, *rest: Any) -> Any:
        steps.append("claim" if key.startswith("claim") else "choose")
        return keep(self, server, key, *rest)

    monkeypatch.setattr(DisplayLedger, "choose", choose)

    class Noting(CountedNoise):
        def draw(self, count: int) -> bytes:
            steps.append("draw")
            return super().draw(count)

    def taste(features: np.ndarray, items: tuple[str, ...]) -> list[float]:
        steps.append("look")
        return [0.0] * len(items)

    with selecting(place, private_scorer=taste, noise=Noting()) as device:
        device.shown(chosen(device))
    once = list(dict.fromkeys(steps))
    assert once == ["find", "claim", "consent_state", "charge", "look", "draw", "choose", "mark_shown"]


@pytest.mark.parametrize("step", ["claim", "charge", "look", "draw", "choose"])
def test_a_crash_before_the_choice_is_written_loses_budget_and_the_token_is_dropped(
    step: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Fails(CountedNoise):
        def draw(self, count: int) -> bytes:
            raise Dies

    def dies(*_: object, **__: object) -> Any:
        raise KeyboardInterrupt

    taste, noise = Taste(FAVOURS_LAST), CountedNoise()
    if step == "charge":
        real = PrivacyLedger.charge
        monkeypatch.setattr(PrivacyLedger, "charge", lambda *given: (real(*given), dies()))
    elif step == "look":
        monkeypatch.setattr(private_selection, "private_scores", dies)
    elif step in ("claim", "choose"):
        keep = DisplayLedger.choose

        def dies_in(self: DisplayLedger, server: str, key: str, *rest: Any) -> Any:
            claims = key.startswith("claim")
            kept = keep(self, server, key, *rest) if claims else None
            return dies() if claims == (step == "claim") else kept

        monkeypatch.setattr(DisplayLedger, "choose", dies_in)
    options: dict[str, Any] = {"noise": Fails()} if step == "draw" else {}
    lost = 0 if step == "claim" else NANO
    with selecting(place, **options) as device, pytest.raises((Dies, KeyboardInterrupt)):
        device.choose(offered())
    monkeypatch.undo()
    with selecting(place, private_scorer=taste, noise=noise) as device:
        assert spent(device) == lost
        for policy in (RR, Policy(Rule.RR, 4, 0.5), Policy(Rule.PUBLIC, 4), Policy(Rule.UNIFORM, 4)):
            assert device.choose(offered(policy=policy)) is None
        device.revoke()
        assert device.choose(offered()) is None
        device.consent()
        assert (taste.asked, noise.draws, spent(device)) == ([], 0, lost)
        assert device.pending() == []
        assert chosen(device, 2).policy.rule is Rule.RR


def test_after_a_crash_before_it_was_shown_the_same_item_is_shown_and_nothing_is_reported_before(place: Path) -> None:
    seen = set()
    for _ in range(5):
        with selecting(place, limits=ANY) as device:
            choice = chosen(device, 1, Policy(Rule.RR, 4, 0.001))
            seen.add(choice.items)
            assert device.pending() == []
    with selecting(place, limits=ANY) as device:
        impression = device.shown(chosen(device, 1, Policy(Rule.RR, 4, 0.001)))
        assert {impression.items} == seen
    with selecting(place, limits=ANY) as device:
        assert device.pending() == [impression]
        assert device.statement("server").charges == 1


def test_what_cannot_be_marked_is_not_reported(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with selecting(place) as device:
        choice = chosen(device)
        with monkeypatch.context() as patched:
            patched.setattr(DisplayLedger, "mark_shown", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                device.shown(choice)
        assert device.pending() == []
        made_up = dataclasses.replace(choice, token=token(77))
        with pytest.raises(UnknownName):
            device.shown(made_up)
        forged = dataclasses.replace(choice, items=("50",))
        assert device.shown(forged).items == choice.items  # what was written is reported, nothing else


@pytest.mark.parametrize("outcome", [*Settlement, "ok", "conflict"])
def test_every_final_answer_ends_the_reporting(outcome: Any, place: Path) -> None:
    with selecting(place) as device:
        for number in (1, 2):
            device.shown(chosen(device, number))
        first, second = device.pending()
        device.settled(first, outcome)
        assert device.pending() == [second]
    with selecting(place) as device:
        assert device.pending() == [second]
        device.settled(chosen(device, 2), outcome)
        assert device.pending() == []


@pytest.mark.parametrize("outcome", ["timeout", "", None, 500, 200])
def test_what_is_no_final_answer_is_refused_and_the_report_stays_pending(outcome: Any, place: Path) -> None:
    with selecting(place) as device:
        impression = device.shown(chosen(device))
        with pytest.raises(InvalidParameter):
            device.settled(impression, outcome)
        assert device.pending() == [impression]


def test_records_are_forgotten_a_day_after_expiry(place: Path) -> None:
    clock = Clock()
    with selecting(place, clock=clock) as device:
        impression = device.shown(chosen(device))
        clock.at = (EXPIRES + 86_399) * 1_000_000
        assert device.pending() == [impression]
        clock.at = (EXPIRES + 86_402) * 1_000_000
        assert device.pending() == []
        device.settled(impression, "expired")  # too late, and no error
