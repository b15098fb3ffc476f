"""Asking: one signal for each slot, whatever happens, and charged once."""

import subprocess
import sys
from contextlib import ExitStack
from fractions import Fraction
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from tacit.device import Device
from tacit.ledger import Budget
from tacit.ledger.privacy import LONGEST_DRAW
from tacit.ledger.verification import check
from tacit.messages.multi_selection import Signal
from tacit.models.features import FoldedTaste, GenreProfile, version_of
from tests.unit.device.retries import different_signals
from tests.unit.device.signals import spent
from tests.unit.device.small_world import FILMS, SHOP, Clock, CountedNoise, Shop, flags, opened

# --- one signal for each slot


def test_a_signal_is_the_features_plus_noise_under_the_stated_guarantee(place: Path) -> None:
    with opened(place, budget=Budget(1000, per="month")) as device:
        device.rate({"Jumanji (1995)": 5, 3: 4, "ran (1985)": 2})
        signal = device.ask(eta=0.001)
        # liked: action 2/3, drama 1/3; disliked: drama. Noise of scale 0.001 exceeds 0.05 with a chance of e^-50
        assert np.abs(signal.values - [2 / 3, 0, 1 / 3, 0, 0, 0, 1, 0]).max() < 0.05
        assert (signal.eta, signal.grid_bits, signal.simulated, signal.empty) == (Fraction(1, 1000), 20, False, False)
        assert signal.guarantee.epsilon == 1000.0


def test_the_same_bytes_leave_in_one_slot_also_after_a_restart(place: Path) -> None:
    noise = CountedNoise()
    assert different_signals(lambda: opened(place, noise=noise)) == 1
    assert noise.draws > 0
    with opened(place) as device:
        assert device.statement().charges == 1
        assert spent(device) == 10 * 10**9
    assert check(place).sound


class ForgetsOnRetry(Device):
    """The broken twin: fresh noise for every ask."""

    def ask(self, eta: object = 0.1) -> Signal:
        from tacit.device import multi_selection

        mechanism = multi_selection.mechanism_of(self.space, Fraction(1, 10))
        return Signal.from_release(mechanism.release(self._state.features()), Fraction(1, 10))


class RemembersUntilRestart(ForgetsOnRetry):
    """The same, with a memo in its memory only."""

    memo: Signal | None = None

    def ask(self, eta: object = 0.1) -> Signal:
        self.memo = self.memo or super().ask(eta)
        return self.memo


class AsksAgainWhenFeaturesMove(Device):
    """The same, with a memo for each vector: that a fresh signal came tells that the profile changed."""

    def ask(self, eta: object = 0.1) -> Signal:
        self._multi_selection._version = sha256(self._state.features().tobytes()).hexdigest()
        return super().ask(0.1)


@pytest.mark.parametrize("twin", [ForgetsOnRetry, RemembersUntilRestart, AsksAgainWhenFeaturesMove])
def test_that_check_catches_devices_that_draw_again(twin: type[Device], place: Path) -> None:
    assert different_signals(lambda: twin(place, SHOP, budget=Budget(1000), clock=Clock())) > 1


def _asker(place: Path, number: int) -> "subprocess.Popen[str]":
    command = [sys.executable, str(Path(__file__).parent / "asker.py"), str(place), str(number)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_processes_that_ask_at_once_send_the_same_bytes_for_one_charge(place: Path) -> None:
    with ExitStack() as stack:
        workers = [stack.enter_context(_asker(place, number)) for number in range(3)]
        for worker in workers:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "ready\n"
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.write("go\n")
            worker.stdin.flush()
        sent = {worker.communicate(timeout=60)[0] for worker in workers}
    assert [worker.returncode for worker in workers] == [0, 0, 0]
    assert len(sent) == 1
    with opened(place) as device:
        assert device.statement().charges == 1
        assert {device.request(5).to_bytes().hex()} == sent


def test_a_charge_whose_signal_was_never_kept_is_drawn_by_the_retry(place: Path) -> None:
    """A crash between charge and draw: the budget is gone, the slot is not."""

    class Crashes:
        caveat = None

        def draw(self, count: int) -> bytes:
            raise KeyboardInterrupt

    clock = Clock()
    with opened(place, noise=Crashes(), clock=clock) as device, pytest.raises(KeyboardInterrupt):
        device.ask()
    clock.at += LONGEST_DRAW  # nobody can still be drawing
    with opened(place, clock=clock) as device:
        assert spent(device) == 10 * 10**9
        assert not device.ask().empty
        assert spent(device) == 10 * 10**9
        assert device.statement().charges == 1


def test_a_new_month_brings_a_fresh_signal_and_the_old_one_stays_paid(place: Path) -> None:
    clock = Clock(2026, 11, 30, 23, 59)
    with opened(place, clock=clock) as device:
        november = device.ask()
        clock.set(2026, 12, 1)
        december = device.ask()
        assert december != november
        clock.set(2026, 12, 31, 23)
        assert device.ask() == december
        assert device.statement().charges == 2


def test_slots_are_parts_of_the_calendar(place: Path) -> None:
    clock = Clock(2026, 11, 1)
    with opened(place, clock=clock, budget=Budget(30, per="month"), per_period=3) as device:
        seen = []
        for day in range(1, 31):  # November has 30 days: three slots of ten
            clock.set(2026, 11, day)
            seen.append(device.ask().to_bytes())
        assert len(set(seen)) == 3
        assert [len(set(seen[start : start + 10])) for start in (0, 10, 20)] == [1, 1, 1]


def test_a_day_or_a_lifetime_may_be_a_slot(tmp_path: Path) -> None:
    for refresh, slots in (("day", 3), ("lifetime", 1)):
        clock = Clock()
        with opened(tmp_path / f"{refresh}.db", clock=clock, budget=Budget(100), refresh=refresh) as device:
            seen = set()
            for day in (1, 2, 3):
                clock.set(2026, 11, day)
                seen.add(device.ask())
            assert len(seen) == slots


def test_a_clock_that_goes_back_resends_the_old_signal(place: Path) -> None:
    clock = Clock(2026, 11, 5)
    with opened(place, clock=clock) as device:
        november = device.ask()
        clock.set(2026, 12, 5)
        december = device.ask()
        clock.set(2026, 11, 6)
        assert device.ask() == november
        clock.set(2026, 10, 6)  # a slot that had none: the ledger's time is still December, whose budget is spent
        assert device.ask() == december
        assert device.statement().charges == 2


def test_two_etas_are_two_signals_and_both_are_charged(place: Path) -> None:
    with opened(place, budget=Budget(15, per="month")) as device:
        one, other = device.ask(0.1), device.ask(0.2)
        assert one.steps.tolist() != other.steps.tolist()
        assert spent(device) == 15 * 10**9
        assert (device.ask(0.1), device.ask("0.2")) == (one, other)


def test_other_kinds_of_features_have_signals_of_their_own(place: Path) -> None:
    class OtherKind(type(SHOP.space)):  # type: ignore[misc]
        kind = "genre-profile/2"

    with opened(place, budget=Budget(20, per="month")) as device:
        first = device.ask()
    other = Shop(SHOP.items, OtherKind(SHOP.space.flags))  # type: ignore[attr-defined]
    with Device(place, other, budget=Budget(20, per="month"), clock=Clock()) as device:
        assert device.ask() != first
        assert device.statement().charges == 2


def refitted(rank_scale: float) -> Shop:
    factors = np.linspace(-1, 1, 2 * len(FILMS)).reshape(-1, 2) * rank_scale
    return Shop(SHOP.items, FoldedTaste(factors, np.zeros(len(FILMS)), 3.0, np.ones(3)))


def test_refitted_factors_are_other_features_with_a_signal_of_their_own(place: Path) -> None:
    """Same kind, same dimension: the memo is for what the features are made of."""
    clock, budget = Clock(2026, 10, 1), Budget(20, per="month")
    with Device(place, refitted(1.0), budget=budget, clock=clock) as device:
        october = device.ask()
        clock.set(2026, 11, 1)
        first = device.ask()
    with Device(place, refitted(1.5), budget=budget, clock=clock) as device:
        second = device.ask()
        assert second not in (first, october)
        assert device.statement().charges == 3
    with Device(place, refitted(1.0), budget=budget, clock=clock) as device:
        assert device.ask() == first
    with Device(place, refitted(2.0), budget=budget, clock=clock) as device:
        assert device.ask().empty  # spent, and the older signals are of other features
    with Device(place, refitted(1.5), budget=budget, clock=clock) as device:
        clock.set(2026, 10, 2)  # the slot of an old signal, which was of other features
        assert device.ask() == second


def test_the_version_of_features_is_of_all_they_are_made_from() -> None:
    space = GenreProfile(flags())
    fewer = flags()
    fewer[0, 1] = True
    others = [GenreProfile(fewer), GenreProfile(flags(), liked_from=3.0), refitted(1.0).space]
    assert len({version_of(one) for one in (space, *others)}) == 4
    assert version_of(GenreProfile(flags())) == version_of(space)
    assert len(version_of(space)) == 32
