"""One budget for signals, choices and clicks together: they add up exactly, and when it is spent all of them fall back."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tacit.device import Device, Limits, Overall
from tacit.device.limits import OVERALL, DeviceBudget, Room
from tacit.errors import Conflict, InvalidParameter
from tacit.guarantees import ONE_PROFILE, ONE_USER, Neighbours, approximate, metric, pure, within
from tacit.ledger import Budget
from tacit.ledger.privacy import LONGEST_DRAW
from tacit.ledger.verification import check
from tacit.mechanisms import ReplayedNoise
from tacit.messages.private_selection import Policy, Rule
from tests.unit.device.offering import RR, Taste, offered
from tests.unit.device.small_world import Clock, CountedNoise, opened

NANO = 10**9
RADIUS = 0.25


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "me.db"


def both(place: Path, epsilon: float = 100.0, **options: Any) -> Device:
    given = {"budget": Budget(20, per="month"), "private_scorer": Taste(), "overall": Overall(RADIUS, Budget(epsilon))}
    device = opened(place, **(given | options))
    device.consent()
    return device


def total(device: Device) -> int:
    return device.statement(overall=True).spent.amount


def rule(device: Device, number: int, server: str = "server", policy: Policy = RR) -> str:
    choice = device.choose(offered(number, policy), server)
    assert choice is not None
    return choice.policy.rule.value


def test_signals_choices_and_clicks_add_up_exactly(place: Path) -> None:
    with both(place) as device:
        signal = device.ask(eta=0.1)  # 10 per unit of distance, on a grid of 8 numbers
        read = Fraction(10) * (Fraction(RADIUS) + Fraction(8, 1 << 20))
        one = -(-read * NANO // 1)  # each charge is rounded up to billionths
        assert total(device) == one
        assert rule(device, 1) == rule(device, 1, "other") == "rr"  # one token of two servers is two choices
        assert total(device) == one + 2 * NANO
        choice = device.choose(offered(1), "other")
        assert choice is not None
        device.shown(choice)
        assert device.clicked(choice, True) is not None
        assert total(device) == one + 3 * NANO
        assert device.ask(eta=0.1) == signal  # repeated: no charge
        assert rule(device, 1) == "rr"
        assert device.clicked(choice, True) is not None
        assert total(device) == one + 3 * NANO
        statement = device.statement(overall=True)
        assert statement.charges == 4
        assert statement.terms.protects == Neighbours.features("L1", RADIUS)
        assert statement.promised.epsilon == pytest.approx(float(read) + 3)
        assert statement.promised.epsilon >= float(read) + 3
        # and each of them stands in its own account too
        assert device.statement().spent.amount == 10 * NANO
        assert device.statement("server").spent.amount == NANO
        assert device.statement("other").spent.amount == 2 * NANO
    assert check(place).sound


def test_the_signals_guarantee_is_read_at_the_radius(place: Path) -> None:
    with both(place) as device:
        device.ask(eta=0.1)
        promised = device.statement(overall=True).promised
        assert promised.epsilon == within(metric(10.0, rounding=8 / 2**20), RADIUS).epsilon


def test_when_it_is_spent_choices_are_public_and_signals_are_old_or_empty(place: Path) -> None:
    taste = Taste()
    with both(place, 3.0, private_scorer=taste) as device:
        first = device.ask(eta=0.1)  # 2.5 and a little
        assert not first.empty
        asked = len(taste.asked)
        assert rule(device, 1) == "public"
        assert rule(device, 2, policy=Policy(Rule.RR, 4, 0.4)) == "rr"
        assert len(taste.asked) == asked + 1
        before = device.statement("server").spent.amount, device.statement().spent.amount, total(device)
        assert device.ask(eta=0.1) == first
        assert device.ask(eta=0.125).empty  # would cost 2
        assert rule(device, 3) == "public"
        choice = device.choose(offered(3))
        assert choice is not None
        device.shown(choice)
        assert device.clicked(choice, True) is None
        # nothing was charged for what was not drawn
        assert (device.statement("server").spent.amount, device.statement().spent.amount, total(device)) == before


def test_it_is_charged_before_the_signal_is_drawn(place: Path) -> None:
    class Dies(CountedNoise):
        def draw(self, count: int) -> bytes:
            raise KeyboardInterrupt

    clock = Clock()
    with both(place, noise=Dies(), clock=clock) as device, pytest.raises(KeyboardInterrupt):
        device.ask(eta=0.1)
    clock.at += LONGEST_DRAW  # nobody can still be drawing
    with both(place, clock=clock) as device:
        spent = total(device)
        assert spent > 2.5 * NANO
        assert not device.ask(eta=0.1).empty  # the slot was paid for
        assert total(device) == spent


def test_no_choice_is_drawn_without_its_overall_charge(place: Path) -> None:
    with both(place, 2.5, limits=Limits(budget=Budget(50))) as device:
        rules = [rule(device, number) for number in range(5)]
        assert rules == ["rr", "rr", "public", "public", "public"]
        assert (total(device), device.statement("server").spent.amount) == (2 * NANO, 2 * NANO)


def test_an_eta_that_never_fits_is_refused(place: Path) -> None:
    with both(place, 2.0) as device:
        with pytest.raises(InvalidParameter, match="overall"):
            device.ask(eta=0.1)
        assert total(device) == 0


def test_a_reinstalled_device_spends_nothing_overall(place: Path) -> None:
    with both(place, reinstalled=True, budget=Budget(1000, per="day"), refresh="day") as device:
        assert rule(device, 1) == "public"
        assert device.ask(eta=0.1).empty
        assert total(device) == 0


def test_the_longest_of_the_periods_counts_after_a_reinstallation(place: Path) -> None:
    """The signals' day is over, the overall lifetime never is."""
    clock = Clock(2026, 11, 16, 12)
    options = {"budget": Budget(1000, per="day"), "refresh": "day", "clock": clock}
    with both(place, reinstalled=True, **options) as device:
        clock.set(2026, 11, 18, 12)
        assert device.ask(eta=0.1).empty
        assert (device.statement().windows[0].left.amount, total(device)) == (1000 * NANO, 0)


def test_what_another_process_spends_meanwhile_is_not_spent_twice(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There was room when it was asked for, and none when it was charged."""
    taste = Taste()
    with both(place, 1.0, private_scorer=taste) as device:
        assert rule(device, 1) == "rr"
        monkeypatch.setattr(DeviceBudget, "room", lambda _, charges: [Room.FITS for _ in charges])
        assert rule(device, 2) == "public"
        assert device.ask(eta=0.1).empty
        assert (len(taste.asked), total(device)) == (1, NANO)


def test_room_tells_never_from_not_now_for_each_account(place: Path) -> None:
    signals, overall = metric(10.0, rounding=8 / (1 << 20)), Overall(RADIUS, Budget(1.0))
    with both(place, overall=overall, budget=Budget(15)) as device:
        rooms = device._state.budget.room
        subject = device.statement().subject
        small, large = (pure(epsilon, overall.protects) for epsilon in (0.75, 1.25))
        assert rooms([(subject, signals), (OVERALL, small)]) == [Room.FITS, Room.FITS]
        assert rooms([(OVERALL, large), (subject, metric(15.5))]) == [Room.NEVER, Room.NEVER]
        device._state.ledger.charge(subject, "one", signals)
        device._state.ledger.charge(OVERALL, "one", small)
        assert rooms([(subject, signals), (OVERALL, small)]) == [Room.NOT_NOW, Room.NOT_NOW]
        assert rooms([(OVERALL, large), (OVERALL, None)]) == [Room.NEVER, Room.FITS]
        assert rooms([]) == []


def test_it_is_agreed_for_good(place: Path) -> None:
    with both(place) as device:
        rule(device, 1)
    for other in (None, Overall(RADIUS, Budget(101.0)), Overall(0.5, Budget(100.0))):
        with pytest.raises(Conflict, match="never change"):
            both(place, overall=other)
    with both(place) as device:
        assert total(device) == NANO


def test_it_is_agreed_before_anything_is_spent(tmp_path: Path) -> None:
    """What was spent before would not be in it: it would say that less was spent than was."""
    with both(tmp_path / "choice.db", overall=None) as device:
        rule(device, 1)
    with both(tmp_path / "signal.db", overall=None) as device:
        device.ask(eta=0.1)
    for name in ("choice.db", "signal.db"):
        with pytest.raises(Conflict, match="before anything is spent"):
            both(tmp_path / name)
        with both(tmp_path / name, overall=None):
            pass  # nothing was agreed
    with both(tmp_path / "met.db", overall=None) as device:
        assert device.statement("server").charges == 0  # met, and nothing spent
    with both(tmp_path / "met.db") as device:
        assert rule(device, 1) == "rr"
        assert total(device) == NANO
    both(tmp_path / "met.db").close()


def test_a_refused_attempt_agrees_nothing(place: Path) -> None:
    opened(place).close()
    with pytest.raises(Conflict):
        opened(place, overall=Overall(RADIUS), per_period=2)
    opened(place).close()


def test_a_device_without_one_says_so(place: Path) -> None:
    with opened(place) as device, pytest.raises(InvalidParameter, match="overall"):
        device.statement(overall=True)


def test_only_pure_guarantees_of_the_whole_profile_hold_between_any_two_vectors() -> None:
    overall = Overall(RADIUS)
    restated = overall.restated(pure(1.0, ONE_PROFILE, proof="randomised-response"))
    assert (restated.epsilon, restated.protects, restated.proof) == (
        1.0,
        Neighbours.features("L1", RADIUS),
        "randomised-response",
    )
    for other in (pure(1.0, ONE_USER), approximate(1.0, 1e-6, ONE_PROFILE), metric(1.0)):
        with pytest.raises(InvalidParameter):
            overall.restated(other)


def test_greedy_and_replayed_noise_leave_their_mark_overall(place: Path, tmp_path: Path) -> None:
    with both(place, limits=Limits(non_private=True)) as device:
        assert rule(device, 1, policy=Policy(Rule.GREEDY, 4)) == "greedy"
        assert device.statement(overall=True).promised.promises_nothing
    with both(tmp_path / "simulated.db", noise=ReplayedNoise(1)) as device:
        assert rule(device, 1) == "rr"
        assert not device.ask(eta=0.1).empty
        assert device.statement(overall=True).promised.promises_nothing


@pytest.mark.parametrize("given", [(0.0,), (-1.0,), (1.0, 10), (1.0, Budget(1, delta=1e-6)), (float("inf"),)], ids=str)
def test_odd_budgets_are_refused(given: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidParameter):
        Overall(*given)


@pytest.mark.parametrize("options", [{"overall": 1.0}, {"limits": Budget(1)}])
def test_odd_options_leave_no_file(options: dict[str, Any], place: Path) -> None:
    with pytest.raises(InvalidParameter):
        opened(place, clock=Clock(), **options)
    assert not place.exists()
