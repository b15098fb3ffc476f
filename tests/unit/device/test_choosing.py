"""Choosing from offers: the order that is private and exact, budgets that hold, consent, and every kind of bad offer."""

import dataclasses
import json
import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.device import Choice, Device, Limits, choosing
from tacit.device.choice import MOST_BYTES
from tacit.device.choosing import MOST_AHEAD
from tacit.errors import Conflict, InvalidParameter, UnknownName
from tacit.guarantees import ONE_PROFILE
from tacit.ledger import Budget, DisplayLedger, PrivacyLedger, Settlement
from tacit.ledger.verification.check import check
from tacit.mechanisms import ReplayedNoise
from tacit.messages.private_selection import BatchTerms, Bounding, Policy, Rule
from tests.unit.device.offering import ANY, EXPIRES, FAVOURS_LAST, LIKED, RR, Taste, offered, selecting, token
from tests.unit.device.small_world import BUDGET, SHOP, Clock, CountedNoise, opened

NANO = 10**9


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "me.db"


def chosen(device: Device, *given: Any, **options: Any) -> Choice:
    choice = device.choose(offered(*given, **options))
    assert choice is not None
    return choice


def spent(device: Device, server: str = "server") -> int:
    return device.statement(server).spent.amount


def rules(device: Device, numbers: range, policy: Policy = RR, server: str = "server") -> str:
    """The first letters of the rules that were applied, one after the other."""
    found = [device.choose(offered(number, policy), server) for number in numbers]
    return "".join(one.policy.rule.value[0] for one in found if one is not None)


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
        assert len(device._profile) == 0
        device.consent()
        seen = []
        device._private_scorer = None
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
        assert len(device._profile) == 0


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


class Dies(Exception):
    """The device's battery is empty."""


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
        monkeypatch.setattr(choosing, "private_scores", dies)
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


# --- budgets


def test_the_default_budget_is_ten_a_day_for_each_server(place: Path) -> None:
    clock = Clock(2026, 11, 16, 12)
    with selecting(place, clock=clock) as device:
        assert rules(device, range(12)) == "r" * 10 + "pp"
        clock.set(2026, 11, 17, 11, 59)  # another day of the calendar, and within 24 hours
        later = EXPIRES + 86_400 * 2
        assert chosen(device, 20, expires=later).policy.rule is Rule.PUBLIC
        clock.set(2026, 11, 17, 12, 1)
        assert chosen(device, 21, expires=later).policy.rule is Rule.RR
        assert device.statement("server").terms.protects == ONE_PROFILE
        assert device.statement("server").promised.epsilon == pytest.approx(11.0)


def test_a_lifetime_budget_is_for_ever(place: Path) -> None:
    clock = Clock(2026, 11, 16, 12)
    limits = Limits(budget=Budget(2, per="day", sliding=True), lifetime=5.0)
    with selecting(place, clock=clock, limits=limits) as device:
        found = ""
        for day in range(16, 22):
            clock.set(2026, 11, day, 13)
            found += "".join(
                chosen(device, 10 * day + number, expires=EXPIRES + 10 * 86_400).policy.rule.value[0]
                for number in range(3)
            )
        assert found == "rrp" + "rrp" + "rpp" + "ppp" * 3


def test_servers_do_not_influence_each_other(place: Path, tmp_path: Path) -> None:
    def at(device: Device) -> str:
        return rules(device, range(100, 115), server="shop")

    with selecting(place) as alone, selecting(tmp_path / "other.db") as busy:
        for number in range(30):
            busy.choose(offered(number), "elsewhere")
            busy.shown(busy.choose(offered(number), "elsewhere"))  # type: ignore[arg-type]
        assert at(alone) == at(busy) == "r" * 10 + "p" * 5
        assert spent(busy, "elsewhere") == spent(busy, "shop") == 10 * NANO
        assert busy.pending("shop") == []
        # the same token of two servers is two offers
        assert chosen(alone, 900).token == chosen(busy, 900).token
        assert alone.choose(offered(900), "third") is not None
        assert alone.statement("third").charges == 1


def test_offers_that_cost_nothing_are_not_charged(place: Path) -> None:
    taste = Taste(FAVOURS_LAST)
    with selecting(place, private_scorer=taste) as device:
        for number, policy in enumerate(
            (Policy(Rule.RR, 1, 1.0), Policy(Rule.RR, 4, 1.0, d=4), Policy(Rule.PUBLIC, 4), Policy(Rule.UNIFORM, 4))
        ):
            assert chosen(device, number, policy).policy == policy
        assert (device.statement("server").charges, taste.asked) == (0, [])


def test_without_a_private_model_nothing_is_charged(place: Path) -> None:
    with selecting(place, private_scorer=None) as device:
        assert rules(device, range(3)) == "ppp"
        assert chosen(device, 5, Policy(Rule.UNIFORM, 4)).policy.rule is Rule.UNIFORM
        assert spent(device) == 0


def test_the_stores_model_is_the_private_one_unless_another_is_given(place: Path) -> None:
    class Scorer:
        dimension = 8

        def score(self, features: np.ndarray, items: np.ndarray) -> np.ndarray:
            return (items == SHOP.items.code(5)).astype(np.float32)[None, :]

    with selecting(
        place, private_scorer=None, scorer=Scorer(), limits=Limits(budget=Budget(100), most_epsilon=40.0)
    ) as device:
        assert chosen(device, 1, Policy(Rule.RR, 4, 40.0)).item == "5"


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_parallel_offers_from_threads_cannot_overspend(epsilon: float, place: Path) -> None:
    policy = Policy(Rule.RR, 4, epsilon)
    with selecting(place, limits=Limits(budget=Budget(3))) as device, ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda number: device.choose(offered(number, policy)), range(32)))
        private = sum(one is not None and one.policy.rule is Rule.RR for one in found)
        assert private == min(32, int(round(3 / epsilon, 9)))
        assert spent(device) == private * round(epsilon * NANO)
    assert check(place).sound


def test_one_token_from_many_threads_is_one_choice_and_one_charge(place: Path) -> None:
    taste = Taste()
    with selecting(place, private_scorer=taste) as device, ThreadPoolExecutor(8) as pool:
        for number in range(5):
            found = set(pool.map(lambda _, number=number: device.choose(offered(number)), range(8)))
            assert found - {None} == {device.choose(offered(number))}  # None: while another thread was scoring
        assert len(taste.asked) == 5
        assert device.statement("server").charges == 5


def test_parallel_offers_from_processes_cannot_overspend(place: Path) -> None:
    script = str(Path(__file__).parent / "chooser.py")
    with ExitStack() as stack:
        workers = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, script, str(place), str(100 * number), "8"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for number in range(3)
        ]
        for worker in workers:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "ready\n"
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.write("go\n")
            worker.stdin.flush()
        applied = " ".join(worker.communicate(timeout=60)[0] for worker in workers).split()
    assert sorted(applied) == ["public"] * 14 + ["rr"] * 10
    with selecting(place) as device:
        assert spent(device) == 10 * NANO


def test_the_charge_is_on_the_disk_before_anything_is_shown(place: Path) -> None:
    with selecting(place) as device:
        choice = chosen(device)
        with PrivacyLedger.open(place) as other, DisplayLedger.open(place) as displays:  # as after a crash
            assert other.statement("selection server").spent.amount == NANO
            kept = displays.find("server", choice.token)
            assert kept is not None
            assert kept.items == choice.items


def test_other_limits_are_refused_but_what_is_no_promise_may_change(place: Path) -> None:
    with selecting(place) as device:
        chosen(device)
    for limits in (Limits(budget=Budget(11, per="day", sliding=True)), Limits(lifetime=50.0), Limits(non_private=True)):
        with pytest.raises(Conflict, match="stays promised"):
            selecting(place, limits=limits)
    with pytest.raises(Conflict):
        selecting(place, noise=ReplayedNoise(1))
    with selecting(place, limits=Limits(most_epsilon=2.0, rules={"rr"}, click_epsilon=0.5)) as device:  # type: ignore[arg-type]
        assert chosen(device, 2, Policy(Rule.RR, 4, 2.0)).policy.rule is Rule.RR


def test_another_partys_ledger_is_no_devices_file(place: Path) -> None:
    with PrivacyLedger.create(place) as ledger:
        ledger.enrol("ward-7", Budget(1), protects=ONE_PROFILE)
    for options in ({}, {"budget": BUDGET}):
        with pytest.raises(Conflict):
            Device(place, SHOP, clock=Clock(), **options)  # type: ignore[arg-type]
    with PrivacyLedger.open(place) as ledger:
        assert list(ledger.subjects()) == ["ward-7"]  # and nothing was written into it


def test_a_reinstalled_device_stays_public_until_the_period_is_over(place: Path) -> None:
    clock = Clock(2026, 11, 16, 12)
    later = EXPIRES + 20 * 86_400

    def rule(device: Device, number: int, server: str = "server") -> str:
        choice = device.choose(offered(number, expires=later), server)
        assert choice is not None
        return choice.policy.rule.value

    with selecting(place, clock=clock, reinstalled=True) as device:
        assert (rule(device, 1), rule(device, 2, "other")) == ("public", "public")
        clock.set(2026, 11, 17, 11, 59)
        assert (rule(device, 3), rule(device, 4, "never met")) == ("public", "public")
    with selecting(place, clock=clock) as device:
        assert rule(device, 5) == "public"
        clock.set(2026, 11, 17, 12, 1)
        assert (rule(device, 6), rule(device, 7, "other")) == ("rr", "rr")
    with selecting(place, clock=clock, reinstalled=True) as device:
        assert rule(device, 8) == "public"
    with selecting(place, clock=clock, reinstalled=True) as device:  # again, while it lasts
        clock.set(2026, 11, 18, 13)
        assert rule(device, 9) == "rr"


def test_a_reinstalled_device_is_silent_to_the_last_moment_of_the_period(place: Path) -> None:
    clock = Clock(2026, 11, 16, 12)
    begun, later = clock.at, EXPIRES + 5 * 86_400
    with selecting(place, clock=clock, reinstalled=True) as device:
        clock.at = begun + 86_400_000_000 - 1
        assert chosen(device, 1, expires=later).policy.rule is Rule.PUBLIC
        clock.at += 1
        assert chosen(device, 2, expires=later).policy.rule is Rule.RR


def test_a_crash_between_the_two_steps_of_marking_leaves_the_device_silent(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*_: object, **__: object) -> None:
        raise Dies

    monkeypatch.setattr(PrivacyLedger, "release", dies)
    with pytest.raises(Dies):
        selecting(place, reinstalled=True)
    monkeypatch.undo()
    with selecting(place) as device:
        assert chosen(device).policy.rule is Rule.PUBLIC
        assert spent(device) == 0
    with selecting(place, reinstalled=True) as device:  # said again, as after any crash at the first start
        assert chosen(device, 2).policy.rule is Rule.PUBLIC


def test_a_reinstalled_device_with_a_lifetime_budget_stays_public(place: Path) -> None:
    clock = Clock(2026, 11, 16, 12)
    with selecting(place, clock=clock, reinstalled=True, limits=Limits(lifetime=20.0)) as device:
        clock.set(2036, 11, 16, 12)
        assert chosen(device, 1, expires=clock.at // 1_000_000 + 3600).policy.rule is Rule.PUBLIC


def test_replayed_noise_promises_nothing_and_the_statement_says_so(place: Path) -> None:
    with selecting(place, noise=ReplayedNoise(1)) as device:
        assert chosen(device).policy.rule is Rule.RR
        assert device.statement("server").promised.promises_nothing


# --- both systems in one file


def test_a_device_without_a_budget_for_signals_says_what_is_missing(place: Path) -> None:
    with selecting(place) as device:
        chosen(device)
        for use in (device.ask, device.request, device.statement):
            with pytest.raises(InvalidParameter, match="budget"):
                use()
    with opened(place, private_scorer=Taste()) as device:  # and may have one later
        assert not device.ask().empty
        assert device.statement().charges == 1
        assert device.consent_state().granted
        assert spent(device) == NANO
    with pytest.raises(Conflict, match="other slots"):
        opened(place, per_period=2)
    assert check(place).sound


def test_signals_and_choices_have_budgets_of_their_own(place: Path) -> None:
    with opened(place, private_scorer=Taste()) as device:
        device.consent()
        assert rules(device, range(11)) == "r" * 10 + "p"
        assert not device.ask().empty
        assert device.statement().spent.amount == 10 * NANO


@pytest.mark.parametrize("server", ["", "x" * 61, "a\nb", None, 7])
def test_odd_names_of_servers_are_refused_before_anything_happens(server: Any, place: Path) -> None:
    with selecting(place) as device:
        for use in (
            lambda: device.choose(offered(), server),
            lambda: device.pending(server),
            lambda: device.clicks_due(server),
        ):
            with pytest.raises(InvalidParameter):
                use()


@pytest.mark.parametrize(
    "options",
    [
        {"budget": 10},
        {"budget": Budget(1, delta=1e-6)},
        {"most_epsilon": 0.0},
        {"most_epsilon": math.inf},
        {"most_epsilon": 41.0},
        {"rules": "rr"},
        {"rules": {"best"}},
        {"rules": {"greedy"}},
        {"non_private": 1},
        {"lifetime": -1.0},
        {"lifetime": 3.0, "budget": Budget(1)},
        {"click_epsilon": math.nan},
        {"click_window": -1},
        {"click_window": 86_400},
    ],
    ids=str,
)
def test_odd_limits_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        Limits(**options)


# --- bad offers are no fill, and never an error


def sent(**changes: Any) -> dict[str, Any]:
    return offered().to_json() | changes


def with_candidate(**changes: Any) -> dict[str, Any]:
    rows = offered().to_json()["candidates"]
    return sent(candidates=[rows[0] | changes, *rows[1:]])


def with_policy(**changes: Any) -> dict[str, Any]:
    return sent(policy=RR.to_json() | changes)


BAD: dict[str, Any] = {
    "nothing": None,
    "empty text": "",
    "no JSON": "{",
    "no UTF-8": b"\xff\xfe\x00",
    "a number": 7,
    "a list": [],
    "deep": "[" * 200_000,
    "deep object": '{"a":' * 100_000,
    "oversized": json.dumps(sent()) + " " * MOST_BYTES,
    "many digits": '{"version": ' + "9" * 5000 + "}",
    "a name twice": json.dumps(sent())[:-1] + ', "token": "' + "0" * 32 + '"}',
    "NaN": json.dumps(with_candidate(public_score=math.nan)),
    "infinite public score": with_candidate(public_score=math.inf),
    "negative bid": with_candidate(bid=-1),
    "bid as float": with_candidate(bid=1.0),
    "duplicate item": with_candidate(item=LIKED[1]),
    "not falling": with_candidate(public_score=0.0),
    "price": with_candidate(price=1),
    "no candidates": sent(candidates=[]),
    "one candidate too few": sent(candidates=sent()["candidates"][1:]),
    "other m": with_policy(m=3),
    "m of a fraction": with_policy(m=4.0),
    "epsilon 0": with_policy(epsilon=0),
    "epsilon below 0": with_policy(epsilon=-1),
    "epsilon NaN": with_policy(epsilon=math.nan),
    "epsilon infinite": with_policy(epsilon=math.inf),
    "epsilon beyond": with_policy(epsilon=1e300),
    "unknown rule": with_policy(id="best"),
    "noise without bound": with_policy(id="pf"),
    "d beyond m": with_policy(d=5),
    "slots beyond m": with_policy(slots=5),
    "envelope without floors": with_policy(id="envelope"),
    "non_private in the policy": with_policy(non_private=True),
    "non_private in the offer": sent(non_private=True),
    "other version": sent(version=2),
    "short token": sent(token="00"),
    "expired": sent(expires=EXPIRES - 3600),
    "expired long ago": sent(expires=0),
    "expires too late": sent(expires=EXPIRES - 3600 + MOST_AHEAD + 1),
    "expires in a century": sent(expires=EXPIRES + 100 * 366 * 86_400),
    "too many": sent(candidates=sent()["candidates"] * 2501),
    "unusable boxes": with_policy(id="pf", bounding="clipped", width=1e-300),
    "undrawable noise": with_policy(id="laplace", bounding="scaled", epsilon=1e-300),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_offer_is_no_fill(name: str, place: Path) -> None:
    taste, noise = Taste(FAVOURS_LAST), CountedNoise()
    with selecting(place, private_scorer=taste, noise=noise, limits=Limits(non_private=True)) as device:
        offer = BAD[name]
        assert device.choose(offer) is None
        if isinstance(offer, dict):
            assert device.choose(json.dumps(offer)) is None
        assert (taste.asked, noise.draws, spent(device), device.pending()) == ([], 0, 0, [])


def test_offers_come_as_objects_texts_bytes_or_parsed(place: Path) -> None:
    with selecting(place) as device:
        text = json.dumps(offered().to_json())
        first = device.choose(text)
        assert first is not None
        assert [device.choose(one) for one in (text.encode(), json.loads(text), offered())] == [first] * 3


def test_an_offer_is_good_until_the_second_it_expires(place: Path) -> None:
    clock = Clock()
    with selecting(place, clock=clock) as device:
        clock.at = EXPIRES * 1_000_000 - 1
        first = chosen(device)
        clock.at += 1
        assert device.choose(offered(2)) is None
        assert device.choose(offered()) == first  # it was made in time


def kept_for(place: Path, ahead: int, most: int | None = None) -> int | None:
    """For how many seconds a device keeps what it chose from an offer that expires so far ahead; None: it kept nothing."""
    clock = Clock()
    expires = clock.at // 1_000_000 + ahead
    with pytest.MonkeyPatch.context() as patch, selecting(place, clock=clock) as device:
        if most is not None:
            patch.setattr(choosing, "MOST_AHEAD", most)
        choice = device.choose(offered(expires=expires))
        return None if choice is None else choice.expires - clock.at // 1_000_000


def test_no_server_makes_a_device_keep_rows_for_longer_than_a_month(tmp_path: Path) -> None:
    assert kept_for(tmp_path / "a.db", MOST_AHEAD) == MOST_AHEAD == 31 * 86_400
    assert kept_for(tmp_path / "b.db", MOST_AHEAD + 1) is None
    # and that check has teeth: a device without the bound would keep it for a century
    assert kept_for(tmp_path / "twin.db", 100 * 366 * 86_400, most=10**11) == 100 * 366 * 86_400


def test_a_choice_that_was_made_is_repeated_whatever_the_clock_says_then(place: Path) -> None:
    clock = Clock(2026, 11, 16, 12)
    with selecting(place, clock=clock) as device:
        first = chosen(device)
        clock.set(2026, 9, 1)  # set back: the offer now seems to expire in eleven weeks
        assert device.choose(offered()) == first
        assert device.choose(offered(2)) is None


def test_one_candidate_is_shown_and_costs_nothing(place: Path) -> None:
    with selecting(place) as device:
        assert chosen(device, 1, Policy(Rule.RR, 1, 1.0)).items == LIKED[:1]
        assert spent(device) == 0


# --- shuffled reports


TERMS = BatchTerms("monday", (40, 30, 20, 10), "ab" * 32)
BLIND, OTHER = "5e" * 48, "6f" * 48


def test_a_shuffled_report_names_item_group_and_its_own_token_and_nothing_of_the_offer(place: Path) -> None:
    with selecting(place) as device:
        offer = offered(batch=TERMS)
        choice = device.choose(offer, token=BLIND)
        assert choice is not None
        with pytest.raises(InvalidParameter, match="shuffled"):
            device.shown(choice)
        report = device.shuffled_report(choice)
        assert report.to_json() == {
            "version": 1,
            "batch": "monday",
            "group": offer.group_under(RR),
            "item": choice.item,
            "token": BLIND,
        }
        assert offer.token not in json.dumps(report.to_json())
        assert device.pending() == []  # never with the offer's token
        assert device.pending_reports() == [report]
    with selecting(place) as device:
        assert device.pending_reports() == [report]  # also after a crash
        assert device.shuffled_report(device.choose(offer), OTHER) == report  # type: ignore[arg-type]
        device.settled(report, "ok")
        assert device.pending_reports() == []


def test_the_token_given_with_the_choice_stands_before_any_other(place: Path) -> None:
    offer = offered(batch=TERMS)
    with selecting(place) as device:
        choice = device.choose(offer, token=BLIND)
        assert choice is not None
        assert device.shuffled_report(choice, OTHER).token == BLIND
    with selecting(place) as device:
        assert device.shuffled_report(choice, OTHER).token == BLIND
        again = device.choose(offer, token=OTHER)
        assert again is not None
        assert again.report_token == BLIND


def test_a_report_token_that_comes_late_stands_as_long_as_the_device_runs(place: Path) -> None:
    with selecting(place) as device:
        choice = chosen(device, batch=TERMS)
        assert device.pending_reports() == []
        with pytest.raises(InvalidParameter, match="token"):
            device.shuffled_report(choice)
        report = device.shuffled_report(choice, BLIND)
        assert device.shuffled_report(choice, OTHER) == report
        assert device.pending_reports() == [report]
        assert device.shuffled_report(chosen(device, 2, batch=TERMS), OTHER).token == OTHER
        device.settled(report, "duplicate")
        assert [one.token for one in device.pending_reports()] == [OTHER]


def test_whoever_is_out_of_budget_reports_in_the_group_of_the_public_policy(place: Path) -> None:
    offers = [offered(number, batch=dataclasses.replace(TERMS, id=f"day {number}")) for number in range(4)]
    with selecting(place, limits=Limits(budget=Budget(2))) as device:
        choices = [device.choose(offer) for offer in offers]
    applied = [RR, RR, RR.without_cost(), RR.without_cost()]
    assert [one.policy for one in choices if one is not None] == applied
    groups = [offer.group_under(policy) for offer, policy in zip(offers, applied, strict=True)]
    assert [one.group for one in choices if one is not None] == groups
    assert len(set(groups)) == 4


def test_of_one_batch_one_report_is_randomised_and_the_others_are_public(place: Path) -> None:
    """The bound for shuffled reports is for one report of each user."""
    taste = Taste(FAVOURS_LAST)
    with selecting(place, private_scorer=taste) as device:
        assert [chosen(device, number, batch=TERMS).policy.rule.value for number in range(3)] == [
            "rr",
            "public",
            "public",
        ]
        assert (len(taste.asked), device.statement("server").charges) == (1, 1)
    with selecting(place, private_scorer=taste) as device:
        assert chosen(device, 9, batch=TERMS).policy.rule is Rule.PUBLIC
        assert chosen(device, 10, batch=dataclasses.replace(TERMS, id="tuesday")).policy.rule is Rule.RR
        assert chosen(device, 11).policy.rule is Rule.RR


def test_an_offer_that_is_not_of_a_batch_has_no_shuffled_report(place: Path) -> None:
    with selecting(place) as device:
        choice = chosen(device)
        assert (choice.batch, choice.group) == (None, None)
        with pytest.raises(InvalidParameter):
            device.shuffled_report(choice, BLIND)
