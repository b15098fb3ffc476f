"""The budget of signals: never exceeded, never an error when it is spent, agreed once and for good."""

import shutil
from fractions import Fraction
from pathlib import Path

import pytest

from tacit.device.multi_selection import DeviceMultiSelection
from tacit.errors import (
    Conflict,
    InvalidParameter,
    LedgerBehind,
    LedgerMissing,
)
from tacit.guarantees import Neighbours, within
from tacit.ledger import Budget
from tacit.ledger.verification import check
from tacit.mechanisms import ReplayedNoise
from tacit.messages.multi_selection import Request, Signal
from tests.unit.device.signals import spent
from tests.unit.device.small_world import FILMS, Clock, CountedNoise, opened

# --- the budget


def test_a_spent_budget_gives_the_newest_older_signal_with_that_eta_else_nothing(place: Path) -> None:
    clock = Clock(2026, 9, 1)
    noise = CountedNoise()
    with opened(place, clock=clock, noise=noise, budget=Budget(25)) as device:
        september = device.ask(0.1)
        clock.set(2026, 10, 1)
        october = device.ask(0.1)
        assert september != october
        clock.set(2026, 11, 1)
        draws = noise.draws
        assert device.ask(0.1) == october  # 10 do not fit any more
        assert noise.draws == draws
        fresh = device.ask(0.2)  # but 5 do
        assert fresh not in (september, october)
        nothing = device.ask(0.5)  # no 2 are left, and there is no older one
        assert nothing.empty
        assert nothing.guarantee.epsilon == 0.0
        assert (nothing.eta, nothing.dimension) == (Fraction(1, 2), 8)
        assert spent(device) == 25 * 10**9
    with opened(place, clock=clock, budget=Budget(25)) as device:  # the same after a restart
        assert device.ask(0.1) == october
        assert device.ask(0.5) == nothing


def test_what_leaves_when_the_budget_is_spent_does_not_depend_on_the_profile(place: Path) -> None:
    with opened(place, budget=Budget(12)) as device:
        device.ask(0.2)  # 5, and 7 are left
        seen = set()
        for ratings in ({}, {2: 5}, dict.fromkeys(FILMS, 1)):
            device.rate(ratings)
            seen.add(device.request(eta=0.1).to_bytes())
        assert len(seen) == 1
        assert Request.from_bytes(seen.pop()).signal.empty


def test_signals_never_exceed_the_budget_of_a_month(place: Path) -> None:
    clock = Clock(2026, 11, 1)
    with opened(place, clock=clock, refresh="day", budget=Budget(35, per="month")) as device:
        for day in range(1, 31):
            clock.set(2026, 11, day)
            device.ask(0.1)
        assert device.statement().charges == 3
        clock.set(2026, 12, 1)
        device.ask(0.1)
        assert device.statement().charges == 4


def test_a_device_that_lost_its_file_starts_with_a_spent_period(place: Path) -> None:
    clock = Clock(2026, 11, 16)
    with opened(place, clock=clock, reinstalled=True) as device:
        assert device.ask().empty
        assert spent(device) == 10 * 10**9
    with opened(place, clock=clock, reinstalled=True) as device:  # started again: once is enough
        assert device.ask().empty
        assert spent(device) == 10 * 10**9
        clock.set(2026, 12, 1)
        assert not device.ask().empty
    with opened(place, clock=clock, reinstalled=True) as device:  # the memo is there: nothing was lost
        assert not device.ask().empty
        assert device.statement().charges == 2


def test_a_device_that_has_its_memo_sends_it_although_it_was_reinstalled(place: Path) -> None:
    with opened(place) as device:
        first = device.ask()
    with opened(place, reinstalled=True) as device:
        assert device.ask() == first
        assert device.statement().charges == 1  # nothing was left


def test_memos_that_a_restored_copy_lacks_are_not_drawn_again(tmp_path: Path) -> None:
    """October's backup, or one of this very slot that lacks a later eta: what is left counts as spent, what is there is sent."""
    clock, place, copy = Clock(2026, 10, 5), tmp_path / "me.db", tmp_path / "copy.db"
    options = {"clock": clock, "budget": Budget(20, per="month")}
    with opened(place, **options) as device:
        october = device.ask(0.1)
    for month, lost in ((11, 0.1), (12, 0.2)):
        clock.set(2026, month, 5)
        if month == 12:
            with opened(place, **options) as device:
                december = device.ask(0.1)
        shutil.copy(place, copy)
        with opened(place, **options) as device:
            sent = device.ask(lost)
        shutil.copy(copy, place)
        for _ in range(2):  # a second start in the same period charges nothing more
            with opened(place, **options, reinstalled=True) as device:
                again = device.ask(lost)
                assert again != sent
                assert again == (october if month == 11 else Signal.nothing(8, "0.2"))
                assert device.statement().windows[0].left.amount == 0
                charges = device.statement().charges
                if month == 12:
                    assert device.ask(0.1) == december
        assert charges == {11: 2, 12: 4}[month]
    clock.set(2027, 1, 1)
    with opened(place, **options) as device:
        assert not device.ask(0.2).empty
    assert check(place).sound


def test_a_lost_file_is_silent_for_the_rest_of_a_sliding_window(place: Path) -> None:
    clock = Clock(2026, 11, 16)
    options = {"clock": clock, "budget": Budget(10, per="month", sliding=True)}
    with opened(place, **options, reinstalled=True) as device:
        for moment, silent in (((2026, 11, 30), True), ((2026, 12, 16, 23), True), ((2026, 12, 17, 1), False)):
            clock.set(*moment)
            assert device.ask().empty is silent


def test_a_head_refuses_an_older_copy_and_a_missing_file(tmp_path: Path) -> None:
    place, copy = tmp_path / "me.db", tmp_path / "copy.db"
    opened(place).close()
    shutil.copy(place, copy)
    with opened(place) as device:
        first, head = device.ask(), device.head()
    with opened(place, head=head) as device:
        assert device.ask() == first
    with pytest.raises(LedgerBehind):
        opened(copy, head=head)
    with pytest.raises(LedgerMissing):
        opened(tmp_path / "gone.db", head=head)
    assert not (tmp_path / "gone.db").exists()


@pytest.mark.parametrize(("refresh", "per"), [("month", "day"), ("lifetime", "day"), ("lifetime", "month")])
def test_a_slot_that_outlasts_the_budgets_period_is_refused(refresh: str, per: str, place: Path) -> None:
    """A lost memo would be drawn again in its own slot, as soon as the budget is renewed."""
    with pytest.raises(InvalidParameter, match="longer than"):
        opened(place, refresh=refresh, budget=Budget(10, per=per))
    assert not place.exists()
    opened(place, refresh=per, budget=Budget(10, per=per)).close()


@pytest.mark.parametrize("other", [{"per_period": 2}, {"refresh": "day"}, {"refresh": "day", "per_period": 3}], ids=str)
def test_slots_are_agreed_like_the_budget(other: dict[str, object], place: Path) -> None:
    with opened(place, budget=Budget(50, per="month")) as device:
        first = device.ask()
    with pytest.raises(Conflict, match="other slots"):
        opened(place, budget=Budget(50, per="month"), **other)
    with opened(place, budget=Budget(50, per="month")) as device:
        assert device.ask() == first
        assert device.statement().charges == 1


def test_of_two_processes_that_make_a_file_with_other_slots_one_is_refused(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both found no file: both enrol, and the first one's slots stand."""
    opened(place).close()
    looks, look = [], DeviceMultiSelection._require_first

    def look_late(selection: DeviceMultiSelection) -> None:
        looks.append(selection)
        if len(looks) > 1:
            look(selection)

    monkeypatch.setattr(DeviceMultiSelection, "_require_first", look_late)
    with pytest.raises(Conflict, match="other slots"):
        opened(place, per_period=2)
    monkeypatch.undo()
    with pytest.raises(Conflict):
        opened(place, per_period=2)
    with opened(place) as device:
        assert not device.ask().empty


def test_what_another_process_spends_meanwhile_is_not_charged_twice(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(place) as device:
        statements = [device.statement()]  # as it was before
        device.ask(0.2)
        selection = device._multi_selection
        real = selection.statement
        monkeypatch.setattr(selection, "statement", lambda: statements.pop() if statements else real())
        selection.spend_rest()
        assert device.statement().windows[0].left.amount == 0
        assert spent(device) == 10 * 10**9


@pytest.mark.parametrize("epsilon", [0.1, 3.3, 1e-9, 123456.789, 4e9])
def test_the_whole_budget_counts_as_spent_whatever_its_digits(epsilon: float, place: Path) -> None:
    with opened(place, budget=Budget(epsilon), reinstalled=True) as device:
        assert device.statement().windows[0].left.amount == 0


def test_a_budget_that_the_ledger_would_round_is_refused(place: Path) -> None:
    with pytest.raises(InvalidParameter, match="nine decimals"):
        opened(place, budget=Budget(1 / 3))
    assert not place.exists()


def test_terms_are_in_epsilon_per_distance_and_cover_the_grid(place: Path) -> None:
    with opened(place) as device:
        terms = device.statement().terms
        assert terms.protects == Neighbours.features("L1")
        assert Fraction(terms.rounding) == Fraction(8, 1 << 20)
        device.ask()
        promised = device.statement().promised
        assert promised.epsilon == 10.0
        assert within(promised, 1.0).epsilon == pytest.approx(10.0, abs=1e-4)


def test_what_was_promised_stays_promised(place: Path) -> None:
    opened(place).close()
    with pytest.raises(Conflict, match="never change"):
        opened(place, budget=Budget(20, per="month"))
    with pytest.raises(Conflict):
        opened(place, noise=ReplayedNoise(1))  # a real device does not become a simulated one
    opened(place).close()  # and is not locked by these attempts


def test_replayed_noise_promises_nothing_and_the_statement_says_so(place: Path) -> None:
    with opened(place, noise=ReplayedNoise(1)) as device:
        signal = device.ask()
        assert signal.simulated
        assert device.ask() == signal
        assert device.statement().promised.promises_nothing
        assert device.readings(0.1).anywhere.promises_nothing


def test_an_eta_that_never_fits_is_refused_and_told_what_would(place: Path) -> None:
    with opened(place, budget=Budget(5, per="month")) as device:
        with pytest.raises(InvalidParameter, match=r"1/10 never fits.*at least 0\.2\."):
            device.ask(0.1)
        assert not device.ask(0.2).empty
