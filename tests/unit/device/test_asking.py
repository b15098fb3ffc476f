"""Asking: one signal for each slot, whatever happens; charged once; never an error when the budget is spent."""

import shutil
import subprocess
import sys
from contextlib import ExitStack
from fractions import Fraction
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from tacit.device import Device
from tacit.device.memos import Memos
from tacit.errors import (
    Conflict,
    InvalidFeatures,
    InvalidMessage,
    InvalidParameter,
    LedgerBehind,
    LedgerMissing,
    LedgerUnavailable,
)
from tacit.guarantees import Neighbours, within
from tacit.ledger import Budget
from tacit.ledger.awaiting import LONGEST
from tacit.ledger.verification.check import check
from tacit.mechanisms import ReplayedNoise
from tacit.messages.multi_selection import Request, Signal
from tacit.models.features import GenreProfile, version_of
from tacit.models.folded_taste import FoldedTaste
from tests.unit.device.retries import different_signals
from tests.unit.device.small_world import BUDGET, FILMS, SHOP, Clock, CountedNoise, Shop, flags, opened


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "me.db"


def spent(device: Device) -> int:
    """Nano-epsilon in all."""
    return device.statement().spent.amount


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
        return Signal.from_release(mechanism.release(self._features()), Fraction(1, 10))


class RemembersUntilRestart(ForgetsOnRetry):
    """The same, with a memo in its memory only."""

    memo: Signal | None = None

    def ask(self, eta: object = 0.1) -> Signal:
        self.memo = self.memo or super().ask(eta)
        return self.memo


class AsksAgainWhenFeaturesMove(Device):
    """The same, with a memo for each vector: that a fresh signal came tells that the profile changed."""

    def ask(self, eta: object = 0.1) -> Signal:
        self._version = sha256(self._features().tobytes()).hexdigest()
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
    clock.at += LONGEST  # nobody can still be drawing
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
    looks, look = [], Memos._require_first

    def look_late(memos: Memos) -> None:
        looks.append(memos)
        if len(looks) > 1:
            look(memos)

    monkeypatch.setattr(Memos, "_require_first", look_late)
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
        real = device._memos.statement
        monkeypatch.setattr(device._memos, "statement", lambda: statements.pop() if statements else real())
        device._memos.spend_the_rest()
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
    with pytest.raises(Conflict, match="stays promised"):
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


# --- what is refused, before any noise


@pytest.mark.parametrize(("k", "t"), [(0, 1), (5, 6), (300, 1), (5, 0), (True, 1), (5, 1.0), (None, 1)])
def test_odd_slates_are_refused_before_charge_and_noise(k, t, place: Path) -> None:
    noise = CountedNoise()
    with opened(place, noise=noise) as device:
        with pytest.raises(InvalidMessage):
            device.request(k, t)
        assert (noise.draws, device.statement().charges) == (0, 0)
        assert (device.request(7, 2).k, device.request(7, 2).t) == (7, 2)


class Counted:
    """A feature space that counts how often it sees a profile, and fails where it is told to."""

    def __init__(self) -> None:
        self.seen, self.fails = 0, False

    def __getattr__(self, name: str) -> object:
        return getattr(SHOP.space, name)

    def of(self, items: np.ndarray, values: np.ndarray) -> np.ndarray:
        self.seen += 1
        if self.fails:
            raise np.linalg.LinAlgError
        return SHOP.space.of(items, values)


def test_the_profile_is_looked_at_once_for_each_fresh_signal_and_never_else(place: Path) -> None:
    clock, space = Clock(2026, 11, 1), Counted()
    with Device(place, Shop(SHOP.items, space), budget=Budget(25), clock=clock) as device:  # type: ignore[arg-type]
        first = device.ask(0.1)
        space.fails = True
        assert device.ask(0.1) == first  # the memo, although another signal would fit
        assert space.seen == 1
        space.fails = False
        clock.set(2026, 12, 1)
        second = device.ask(0.1)
        assert space.seen == 2
        space.fails = True
        clock.set(2027, 1, 1)
        assert device.ask(0.1) == second  # spent: an older signal
        assert device.ask(0.125).empty  # spent: none
        assert space.seen == 2
        with pytest.raises(InvalidFeatures) as problem:
            device.ask(0.2)  # would be fresh
        assert problem.value.__context__ is None
        assert (space.seen, device.statement().charges) == (3, 2)


class Bad:
    """A feature space that gives features outside its domain."""

    def __init__(self, features: list[float]) -> None:
        self.features = features

    def __getattr__(self, name: str) -> object:
        return getattr(SHOP.space, name)

    def of(self, items: object, values: object) -> np.ndarray:
        return np.array(self.features)


@pytest.mark.parametrize(
    "features",
    [
        [1.0, 0, 0, 0, 0, 0, 0],
        [1.0, 0, 0, 0, 0, 0, 0, 0, 0],
        [float("nan")] + [0.0] * 7,
        [float("inf")] + [0.0] * 7,
        [0.77] + [0.0] * 7,
        [1.77, -0.77] + [0.0] * 6,
        [0.77, 0.230002] + [0.0] * 6,
    ],
    ids=["too few", "too many", "nan", "inf", "not normalised", "outside", "a little too much"],
)
def test_features_outside_the_domain_are_refused_before_charge_and_noise(features: list[float], place: Path) -> None:
    noise = CountedNoise()
    with Device(place, Shop(SHOP.items, Bad(features)), budget=BUDGET, noise=noise, clock=Clock()) as device:  # type: ignore[arg-type]
        with pytest.raises(InvalidFeatures) as problem:
            device.ask()
        assert "77" not in str(problem.value)
        assert (noise.draws, device.statement().charges) == (0, 0)


@pytest.mark.parametrize("eta", [0, 9e-4, 11, float("nan"), 1 / 3, None])
def test_odd_etas_are_refused_before_charge_and_noise(eta, place: Path) -> None:
    noise = CountedNoise()
    with opened(place, noise=noise, budget=Budget(10_000)) as device:
        with pytest.raises(InvalidParameter):
            device.ask(eta)
        assert (noise.draws, device.statement().charges) == (0, 0)


def test_a_profile_without_ratings_or_with_one_block_is_in_the_domain(place: Path) -> None:
    with opened(place, budget=Budget(2000)) as device:
        assert np.abs(device.ask(0.001).values).max() < 0.05  # all zeros, and noise
    with opened(place, budget=Budget(2000)) as device:
        device.rate({21: 1})
        values = device.ask(0.002).values
        assert np.abs(values - [0, 0, 0, 0, 0, 0, 1, 0]).max() < 0.1


@pytest.mark.parametrize(
    "options",
    [
        {"refresh": "week"},
        {"per_period": 0},
        {"per_period": 1.5},
        {"refresh": "lifetime", "per_period": 2},
        {"budget": 10},
        {"budget": [BUDGET]},
    ],
    ids=str,
)
def test_odd_options_are_refused_and_leave_no_file(options: dict[str, object], place: Path) -> None:
    with pytest.raises(InvalidParameter):
        opened(place, **options)
    assert not place.exists()


def test_a_clock_beyond_all_calendars_draws_nothing(place: Path) -> None:
    clock = Clock()
    noise = CountedNoise()
    with opened(place, clock=clock, noise=noise) as device:
        for at in (-1, 2**62):
            clock.at = at
            with pytest.raises(LedgerUnavailable):
                device.ask()
        assert noise.draws == 0
