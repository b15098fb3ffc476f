"""Two at once: the one that charged draws, the other waits for it, and nobody waits for the dead."""

from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread

import pytest

from tacit.guarantees import ONE_USER, pure
from tacit.ledger import Budget, PrivacyLedger
from tacit.ledger.chain import DAY, SECOND
from tacit.ledger.privacy import LONGEST_DRAW
from tacit.ledger.stores import open_store
from tests.unit.ledger.small_ledger import Hand

SMALL = pure(0.1, ONE_USER)
Opened = Callable[..., PrivacyLedger]


class Pauses:
    """How long would have been waited, in seconds: nobody does in these tests."""

    def __init__(self) -> None:
        self.waited = 0.0

    def __call__(self, seconds: float) -> None:
        assert seconds > 0
        self.waited += seconds


@pytest.fixture
def clock() -> Hand:
    return Hand()


@pytest.fixture
def opened(tmp_path: Path, clock: Hand) -> Iterator[Opened]:
    """Opens one file as often as it is asked to, as several processes would."""
    path, ledgers = tmp_path / "ledger.db", []
    with PrivacyLedger.create(path, clock=clock) as ledger:
        ledger.enrol("anna", Budget(3), protects=ONE_USER)

    def open_ledger(pause: Callable[[float], None]) -> PrivacyLedger:
        ledgers.append(PrivacyLedger(open_store(path), clock=clock, pause=pause))
        return ledgers[-1]

    yield open_ledger
    for ledger in ledgers:
        ledger.close()


@pytest.mark.parametrize("shared", [False, True], ids=["two processes", "two threads"])
def test_what_is_kept_is_the_draw_of_the_one_that_charged_however_slow_it_is(opened: Opened, shared: bool) -> None:
    second_is_there, first_is_done, got = Event(), Event(), []

    def pause(_: float) -> None:
        second_is_there.set()
        assert first_is_done.wait(10)

    second = opened(pause)
    first = second if shared else opened(lambda _: pytest.fail("the maker of a charge waits for nobody"))

    def come_second() -> None:
        got.append(second.release("anna", "r", SMALL, lambda: b"quickly drawn"))
        second_is_there.set()

    thread = Thread(target=come_second)

    def slowly() -> bytes:
        thread.start()
        assert second_is_there.wait(10)
        return b"slowly drawn"

    assert first.release("anna", "r", SMALL, slowly) == b"slowly drawn"
    first_is_done.set()
    thread.join()
    assert got == [b"slowly drawn"]


def test_who_died_long_ago_is_not_waited_for(opened: Opened, clock: Hand) -> None:
    ledger = opened(lambda _: pytest.fail("nobody is there to wait for"))
    ledger.charge("anna", "r", SMALL)
    clock.at += LONGEST_DRAW
    assert ledger.release("anna", "r", SMALL, lambda: b"drawn") == b"drawn"


def test_who_died_just_now_is_waited_for_until_two_seconds_after_the_charge(opened: Opened, clock: Hand) -> None:
    pauses = Pauses()
    ledger = opened(pauses)
    ledger.charge("anna", "r", SMALL)
    clock.at += LONGEST_DRAW // 4
    assert ledger.release("anna", "r", SMALL, lambda: b"drawn") == b"drawn"
    assert pauses.waited == pytest.approx(1.5)
    assert ledger.statement("anna").charges == 1


@pytest.mark.parametrize(
    ("late", "seconds"),
    [
        (0, 2),
        (-1, 2),
        (-300 * DAY, 2),
        (300 * DAY, 0),
        (SECOND, 1),
        (LONGEST_DRAW - 15_000, 0.015),  # the last step ends where the time does
        (LONGEST_DRAW - 1, 1e-6),
        (LONGEST_DRAW, 0),
    ],
)
def test_a_wrong_clock_makes_nobody_wait_longer(opened: Opened, clock: Hand, late: int, seconds: float) -> None:
    """Standing still, going back, jumping ahead, and running as it should."""
    pauses = Pauses()
    ledger = opened(pauses)
    ledger.charge("anna", "r", SMALL)
    clock.at += late
    assert ledger.release("anna", "r", SMALL, lambda: b"drawn") == b"drawn"
    assert pauses.waited == pytest.approx(seconds)


def test_who_finds_what_was_kept_waits_no_more(opened: Opened) -> None:
    pauses = Pauses()
    ledger, other = opened(pauses), opened(pauses)
    other.charge("anna", "r", SMALL)
    receipt = ledger.charge("anna", "r", SMALL)
    other.keep("anna", "r", b"drawn")
    assert ledger.awaited("anna", "r", receipt) == b"drawn"
    assert ledger.release("anna", "r", SMALL, lambda: pytest.fail("drawn twice")) == b"drawn"
    assert pauses.waited == pytest.approx(0.01)  # one step, for the receipt from before it was kept


def test_a_waiting_caller_looks_at_every_step(opened: Opened) -> None:
    steps: list[float] = []

    def pause(seconds: float) -> None:
        steps.append(seconds)
        if len(steps) == 3:
            maker.keep("anna", "r", b"drawn")

    maker, ledger = opened(pause), opened(pause)
    maker.charge("anna", "r", SMALL)
    assert ledger.release("anna", "r", SMALL, lambda: pytest.fail("drawn twice")) == b"drawn"
    assert steps == [0.01] * 3
