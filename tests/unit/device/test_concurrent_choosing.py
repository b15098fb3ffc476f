"""One token, asked for again while its first call is scoring: how long that takes must not decide what is shown."""

import math
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest

from tacit.device import Choice, Device
from tacit.ledger import DisplayLedger
from tacit.messages.private_selection import BatchTerms, Offer, Policy, Rule
from tests.unit.device.offering import FAVOURS_LAST, LIKED, RR, offered, selecting, token
from tests.unit.device.small_world import SHOP, Clock

TERMS = BatchTerms("monday", (40, 30, 20, 10), "ab" * 32)
BEST = math.floor(2**32 * math.e)
FIRST, SECOND, THIRD, FOURTH = (BEST + (place << 32) for place in (-1, 0, 1, 2))  # of one draw below the total weight
TOTAL = BEST + (3 << 32)


class Scripted:
    """Noise that gives one number, as often as it is asked for bits."""

    caveat = None

    def __init__(self, number: int) -> None:
        self.number = number

    def draw(self, count: int) -> bytes:
        return (self.number << (8 * count - (TOTAL - 1).bit_length())).to_bytes(count, "big")


class Slow:
    """A private model that scores for as long as it is told to. Fails without an answer where its test is over."""

    def __init__(self, numbers: dict[str, float] = FAVOURS_LAST) -> None:
        self.numbers, self.begun, self.over, self.asked = numbers, Event(), Event(), 0

    def __call__(self, features: np.ndarray, items: tuple[str, ...]) -> list[float]:
        self.asked += 1
        self.begun.set()
        assert self.over.wait(30)
        return [self.numbers[item] for item in items]


AGAIN: dict[str, tuple[Offer, Callable[[Device], object]]] = {
    "the same": (offered(), lambda device: None),
    "another epsilon": (offered(policy=Policy(Rule.RR, 4, 0.5)), lambda device: None),
    "one that costs too much": (offered(policy=Policy(Rule.RR, 4, 9.0)), lambda device: None),
    "public": (offered(policy=Policy(Rule.PUBLIC, 4)), lambda device: None),
    "uniform": (offered(policy=Policy(Rule.UNIFORM, 4)), lambda device: None),
    "other candidates": (offered(items=("50", "13", "8", "5")), lambda device: None),
    "of a batch": (offered(batch=TERMS), lambda device: None),
    "after revocation": (offered(), lambda device: device.revoke()),
}


def raced(
    place: Path,
    noise: Any,
    again: str,
    offer: Offer | None = None,
    kind: type[Device] = Device,
    numbers: dict[str, float] = FAVOURS_LAST,
) -> tuple[Choice | None, Choice | None]:
    """What the first call of a token shows, and what a second one shows that comes and goes while the first is scoring."""
    slow = Slow(numbers)
    with kind(place, SHOP, private_scorer=slow, clock=Clock(), noise=noise) as device, ThreadPoolExecutor(1) as pool:
        device.consent()
        first = pool.submit(device.choose, offer or offered())
        assert slow.begun.wait(30)
        other, before = AGAIN[again]
        before(device)
        try:
            second = device.choose(other)
        finally:
            slow.over.set()
        found = first.result(30)
        assert slow.asked == 1
        assert device.choose(other) == found  # what is on the disk
        return found, second


@pytest.mark.parametrize("again", AGAIN)
def test_a_second_call_shows_nothing_and_the_first_shows_what_it_drew(again: str, tmp_path: Path) -> None:
    first, second = raced(tmp_path / "me.db", Scripted(FIRST), again)
    assert second is None
    assert first is not None
    assert (first.policy, first.item) == (RR, "5")  # her best, which is publicly the last


def test_the_same_for_a_batch_whose_other_offers_are_public(tmp_path: Path) -> None:
    first, second = raced(tmp_path / "me.db", Scripted(FIRST), "of a batch", offered(batch=TERMS))
    assert (first and first.policy, second) == (RR, None)
    slow = Slow()
    with selecting(tmp_path / "other.db", private_scorer=slow) as device, ThreadPoolExecutor(1) as pool:
        scoring = pool.submit(device.choose, offered(1, batch=TERMS))
        assert slow.begun.wait(30)
        try:
            other = device.choose(offered(2, batch=TERMS))  # another token of it, meanwhile
            assert device.choose(offered(1, batch=TERMS)) is None
        finally:
            slow.over.set()
        found = scoring.result(30)
        assert found is not None
        assert other is not None
        assert (found.policy.rule, other.policy.rule) == (Rule.RR, Rule.PUBLIC)
        assert device.statement("server").charges == 1


def law(tmp_path: Path, again: str, numbers: dict[str, float], kind: type[Device] = Device) -> dict[str, int]:
    """The exact law, in weights, of what is shown for a token that is asked for again while it is being scored."""
    weights: dict[str, int] = {}
    for draw, weight in ((FIRST, BEST), (SECOND, 1 << 32), (THIRD, 1 << 32), (FOURTH, 1 << 32)):
        place = tmp_path / f"{kind.__name__} {again} {numbers['21']} {draw}.db"
        first, _ = raced(place, Scripted(draw), again, kind=kind, numbers=numbers)
        assert first is not None
        weights[first.item] = weights.get(first.item, 0) + weight
    return weights


class Unclaimed(Device):
    """A broken twin: as if every call were the first for its token."""

    def choose(self, *given: Any, **options: Any) -> Choice | None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(DisplayLedger, "claim", lambda *_: True)
            return super().choose(*given, **options)


def test_the_law_with_repetitions_is_the_law_and_that_check_catches_a_device_without_claims(tmp_path: Path) -> None:
    other = dict(FAVOURS_LAST, **{"21": 2.0})
    assert law(tmp_path, "public", FAVOURS_LAST) == {"5": BEST} | dict.fromkeys(LIKED[:3], 1 << 32)
    assert law(tmp_path, "public", other) == {"21": BEST} | dict.fromkeys(LIKED[1:], 1 << 32)
    assert law(tmp_path, "public", FAVOURS_LAST, Unclaimed) == {
        "21": TOTAL
    }  # where scoring is slow; and the law where not


def test_a_second_process_shows_nothing_while_the_first_is_scoring_or_after_it_was_killed(tmp_path: Path) -> None:
    script, place = str(Path(__file__).parent / "slow_chooser.py"), tmp_path / "me.db"
    for number, killed in ((1, False), (2, True)):
        with subprocess.Popen(
            [sys.executable, script, str(place), str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as worker:
            assert worker.stdin is not None
            assert worker.stdout is not None
            assert worker.stdout.readline() == "scoring\n"
            with selecting(place) as device:
                assert device.choose(offered(number)) is None
                assert device.choose(offered(number, Policy(Rule.PUBLIC, 4))) is None
            if killed:
                worker.kill()
            shown = worker.communicate("go\n" if not killed else None, timeout=60)[0].split()
        with selecting(place) as device:
            found = device.choose(offered(number))
            assert device.statement("server").charges == number
        if killed:
            assert (shown, found) == ([], None)
        else:
            assert found is not None
            assert (shown, found.policy.rule) == ([found.item], Rule.RR)


def test_a_claim_is_no_display_and_is_forgotten_with_it(tmp_path: Path) -> None:
    clock = Clock()
    with selecting(tmp_path / "me.db", clock=clock) as device:
        device.choose(offered())
        displays = device._state.displays
        assert (displays.pending("server"), displays.shown("server")) == ([], [])
        assert displays.find("server", token(1)) is not None
        clock.set(2026, 11, 18)
        assert displays.forget() == 2
