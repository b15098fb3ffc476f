"""Clicks: a bit that chance may have flipped, for every display under consent, charged to the same budget, the same on a retry."""

import math
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tacit.device import Choice, Device, Limits
from tacit.errors import InvalidParameter
from tacit.guarantees import ONE_PROFILE
from tacit.ledger import Budget, PrivacyLedger
from tacit.ledger.privacy import LONGEST_DRAW
from tacit.mechanisms import ReplayedNoise
from tacit.messages.private_selection import BatchTerms, Engagement, Policy, Rule
from tests.releases import message_of
from tests.unit.device.offering import EXPIRES, Taste, offered, selecting, token
from tests.unit.device.small_world import SHOP, Clock, CountedNoise

NANO = 10**9
PUBLIC = Policy(Rule.PUBLIC, 4)
LATER = (EXPIRES + 1) * 1_000_000


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "me.db"


def displayed(device: Device, number: int, policy: Policy = PUBLIC) -> Choice:
    choice = device.choose(offered(number, policy))
    assert choice is not None
    device.shown(choice)
    return choice


def spent(device: Device) -> int:
    return device.statement("server").spent.amount


class Truth(CountedNoise):
    """Noise that never lies: the first of all numbers."""

    def draw(self, count: int) -> bytes:
        return bytes(count)


class Lie(CountedNoise):
    """Noise that always lies."""

    def draw(self, count: int) -> bytes:
        # below 2^32 (e + 1) in 34 bits: the largest number that is not rejected
        return (math.floor(2**32 * math.e) + 2**32 - 1 << (8 * count - 34)).to_bytes(count, "big")


@pytest.mark.parametrize(("noise", "flips"), [(Truth(), 0), (Lie(), 1)])
def test_a_click_is_randomised_response_to_two_values(noise: Any, flips: int, place: Path) -> None:
    with selecting(place, noise=noise) as device:
        for number, clicked in enumerate((True, False)):
            choice = displayed(device, number)
            assert device.clicked(choice, clicked) == message_of(Engagement, token(number), int(clicked) ^ flips, 1.0)


def test_clicks_are_charged_to_the_servers_subject_before_the_draw(place: Path) -> None:
    with selecting(place) as device:
        choice = displayed(device, 1, Policy(Rule.RR, 4, 1.0))
        assert spent(device) == NANO
        noted: list[int] = []

        class Notes(CountedNoise):
            def draw(self, count: int) -> bytes:
                with PrivacyLedger.open(place) as ledger:
                    noted.append(ledger.statement("selection server").spent.amount)
                return super().draw(count)

        device._state.noise = Notes()
        assert device.clicked(choice, True) is not None
        assert set(noted) == {2 * NANO}
        assert device.statement("server").terms.protects == ONE_PROFILE
        assert device.statement("server").promised.epsilon == pytest.approx(2.0)


def test_a_retry_sends_the_same_bit_whatever_is_said_then(place: Path) -> None:
    numbers = range(9)
    with selecting(place) as device:
        first = [device.clicked(displayed(device, number), True) for number in numbers]
        again = [device.clicked(displayed(device, number), False) for number in numbers for _ in range(3)]
        assert again == [one for one in first for _ in range(3)]
    with selecting(place) as device:
        assert [device.clicked(displayed(device, number), False) for number in numbers] == first
        assert spent(device) == 9 * NANO
        displayed(device, 20)
        assert device.clicked(displayed(device, 21), True) is not None  # the last that fits
        assert device.clicked(displayed(device, 20), True) is None
        assert [
            device.clicked(displayed(device, number), False) for number in numbers
        ] == first  # also when all is spent


def test_a_bit_that_was_charged_and_not_kept_is_drawn_by_the_retry(place: Path) -> None:
    class Dies(CountedNoise):
        def draw(self, count: int) -> bytes:
            raise KeyboardInterrupt

    clock = Clock()
    with selecting(place, noise=Dies(), clock=clock) as device:
        choice = displayed(device, 1)
        with pytest.raises(KeyboardInterrupt):
            device.clicked(choice, True)
    clock.at += LONGEST_DRAW  # nobody can still be drawing
    with selecting(place, clock=clock) as device:
        assert device.clicked(choice, True) is not None
        assert spent(device) == NANO


def test_a_bit_comes_with_the_epsilon_that_it_was_drawn_at(place: Path) -> None:
    """Also after the limits were changed: the bit on the disk is still the one of then."""
    with selecting(place, limits=Limits(click_epsilon=0.5)) as device:
        choice = displayed(device, 1)
        first = device.clicked(choice, True)
        assert first is not None
        assert first.epsilon == 0.5
    with selecting(place, limits=Limits(click_epsilon=2.0)) as device:
        assert device.clicked(choice, True) == first == device.clicked(choice, False)
        again = device.clicked(displayed(device, 2), True)
        assert again is not None
        assert again.epsilon == 2.0


@pytest.mark.parametrize(("first", "second", "bit"), [(Lie, Truth, 0), (Truth, Lie, 1)])
def test_of_two_that_report_at_the_same_time_the_one_that_charged_draws_the_bit(
    first: Any, second: Any, bit: int, place: Path
) -> None:
    """However long it takes: the time may tell what was drawn."""
    second_is_there, first_is_done = Event(), Event()
    found: list[Engagement | None] = []

    def pause(_: float) -> None:
        second_is_there.set()
        assert first_is_done.wait(10)

    def come_second() -> None:
        with selecting(place, noise=second()) as other:
            other._state.ledger._pause = pause
            found.append(other.clicked(choice, True))
        second_is_there.set()

    thread = Thread(target=come_second)

    class Slow(first):  # type: ignore[misc]
        def draw(self, count: int) -> bytes:
            if thread.ident is None:
                thread.start()
            assert second_is_there.wait(10)
            return super().draw(count)

    with selecting(place, noise=Slow()) as device:
        choice = displayed(device, 1)
        reported = device.clicked(choice, True)
        first_is_done.set()
        thread.join()
        assert reported is not None
        assert found == [reported]
        assert reported.bit == bit
        assert device.statement("server").charges == 1


@pytest.mark.parametrize(("inner", "outer", "bit"), [(Lie, Truth, 0), (Truth, Lie, 1)])
def test_of_two_that_draw_all_the_same_both_report_the_bit_that_was_kept_first(
    inner: Any, outer: Any, bit: int, place: Path
) -> None:
    """As where the one that charged was suspended for so long that the other took it for dead."""
    found: list[Engagement | None] = []
    clock = Clock()

    class Overtaken(outer):  # type: ignore[misc]
        def draw(self, count: int) -> bytes:
            if not found:
                found.append(None)
                clock.at += LONGEST_DRAW
                with selecting(place, noise=inner(), clock=clock) as other:
                    found[0] = other.clicked(choice, True)
            return super().draw(count)

    with selecting(place, noise=Overtaken(), clock=clock) as device:
        choice = displayed(device, 1)
        reported = device.clicked(choice, True)
        assert reported is not None
        assert found == [reported]
        assert reported.bit == bit
        assert device.clicked(choice, False) == reported
        assert device.statement("server").charges == 1


def test_bits_have_the_law_of_the_stated_epsilon(place: Path) -> None:
    limits = Limits(budget=Budget(10_000), click_epsilon=0.5)
    with selecting(place, limits=limits) as device:
        bits = [device.clicked(displayed(device, number), True) for number in range(150)]
    ones = sum(one.bit for one in bits if one is not None)
    truth = math.exp(0.5) / (1 + math.exp(0.5))
    assert len(bits) == 150
    assert stats.binomtest(ones, 150, truth).pvalue > 1e-6
    assert stats.binomtest(ones, 150, 0.9).pvalue < 1e-6


def test_every_display_under_consent_is_due_once_its_window_is_over_clicked_or_not(place: Path) -> None:
    clock = Clock()
    limits = Limits(click_window=600)
    with selecting(place, clock=clock, limits=limits, noise=Truth()) as device:
        clicked, ignored = displayed(device, 1), displayed(device, 2)
        device.choose(offered(3, PUBLIC))  # chosen, never shown
        device.note_click(clicked)
        assert device.clicks_due() == []
        clock.at = (EXPIRES + 600) * 1_000_000 - 1
        assert device.clicks_due() == []
        clock.at += 1
        due = [message_of(Engagement, token(1), 1, 1.0), message_of(Engagement, token(2), 0, 1.0)]
        assert device.clicks_due() == due == device.clicks_due()
        assert spent(device) == 2 * NANO
        device.settled(due[0], "ok")
        assert device.clicks_due() == due[1:]
        device.settled(ignored, "ok")  # the impression, not the click
        assert device.clicks_due() == due[1:]
        assert device.clicks_due("other") == []


def test_which_reports_come_and_when_does_not_depend_on_what_was_clicked(tmp_path: Path) -> None:
    seen = set()
    for number, clicks in enumerate(([], [1], [1, 2, 3, 4, 5])):
        clock = Clock()
        limits = Limits(budget=Budget(3))
        with selecting(tmp_path / f"{number}.db", clock=clock, limits=limits) as device:
            for one in range(1, 6):
                choice = displayed(device, one)
                if one in clicks:
                    device.note_click(choice)
            clock.at = LATER
            seen.add(tuple(one.token for one in device.clicks_due()))
            assert spent(device) == 3 * NANO
    assert seen == {tuple(map(token, (1, 2, 3)))}  # as many as the budget has room for


def test_without_consent_then_or_now_there_is_no_report(place: Path) -> None:
    clock = Clock()
    noise = CountedNoise()
    with Device(place, SHOP, private_scorer=Taste(), clock=clock, noise=noise) as device:
        before = displayed(device, 1)
        device.consent()
        during = displayed(device, 2)
        clock.at = LATER
        assert device.clicked(before, True) is None
        assert [one.token for one in device.clicks_due()] == [token(2)]
        device.note_click(during)
        device.revoke()
        assert device.clicks_due() == []
        assert device.clicked(during, True) is None
        assert spent(device) == NANO


def test_revocation_forgets_what_was_clicked(place: Path) -> None:
    clock = Clock()
    with selecting(place, clock=clock, noise=Truth()) as device:
        device.note_click(displayed(device, 1))
        device.revoke()
        device.consent()
        clock.at = LATER
        assert device.clicks_due() == [message_of(Engagement, token(1), 0, 1.0)]


def test_what_was_never_shown_or_never_chosen_has_no_click(place: Path) -> None:
    with selecting(place) as device:
        chosen = device.choose(offered(1, PUBLIC))
        assert chosen is not None
        assert device.clicked(chosen, True) is None
        assert device.shown(chosen)
        assert device.clicked(chosen, True) is not None
        impression = device.shown(chosen)
        assert device.clicked(impression, False) == device.clicked(chosen, True)
        assert device.clicked(impression, True, "other") is None
        assert spent(device) == NANO


def test_a_token_whose_report_is_shuffled_never_comes_with_a_click(place: Path) -> None:
    clock = Clock()
    with selecting(place, clock=clock) as device:
        choice = device.choose(offered(1, batch=BatchTerms("b", (1, 1, 1, 1))), token="ab" * 32)
        assert choice is not None
        device.shuffled_report(choice)
        clock.at = LATER
        assert device.clicked(choice, True) is None
        assert device.clicks_due() == []


def test_clicks_may_be_forbidden(place: Path) -> None:
    clock = Clock()
    with selecting(place, clock=clock, limits=Limits(click_epsilon=None)) as device:
        choice = displayed(device, 1)
        device.note_click(choice)
        clock.at = LATER
        assert (device.clicked(choice, True), device.clicks_due(), spent(device)) == (None, [], 0)


def test_the_click_of_an_offer_that_cost_nothing_is_paid_for(place: Path) -> None:
    with selecting(place) as device:
        device.clicked(displayed(device, 1, Policy(Rule.RR, 1, 1.0)), True)
        assert spent(device) == NANO


@pytest.mark.parametrize("clicked", [1, 0, None, "yes", np.True_])
def test_a_click_is_true_or_false(clicked: Any, place: Path) -> None:
    with selecting(place) as device:
        with pytest.raises(InvalidParameter):
            device.clicked(displayed(device, 1), clicked)
        assert spent(device) == 0


def test_replayed_noise_is_said_to_promise_nothing(place: Path) -> None:
    with selecting(place, noise=ReplayedNoise(1)) as device:
        assert device.clicked(displayed(device, 1), True) is not None
        assert device.statement("server").promised.promises_nothing
