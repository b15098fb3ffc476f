"""The budget of choices: for each server, from any thread or process, after a loss of the file, beside that of signals."""

import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.device import Device, Limits
from tacit.errors import Conflict, InvalidParameter
from tacit.guarantees import ONE_PROFILE
from tacit.ledger import Budget, DisplayLedger, PrivacyLedger
from tacit.ledger.verification import check
from tacit.mechanisms import ReplayedNoise
from tacit.messages.private_selection import Policy, Rule
from tests.unit.device.choices import NANO, Dies, chosen, rules, spent
from tests.unit.device.offering import EXPIRES, FAVOURS_LAST, Taste, offered, selecting
from tests.unit.device.small_world import BUDGET, SHOP, Clock, opened

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
        with pytest.raises(Conflict, match="never change"):
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
