"""Clocks that go back, jump, or disagree: the ledger's time goes forward only, and no budget is renewed by turning a clock."""

import json
import subprocess
import sys
from datetime import UTC, datetime
from itertools import pairwise

import pytest

from tacit.errors import BudgetExhausted
from tacit.guarantees import ONE_USER, pure
from tacit.ledger import Budget, PrivacyLedger
from tacit.ledger.verification import check
from tests.integration import writers

HOUR, DAY = 3_600_000_000, 86_400_000_000
NOON = int(datetime(2027, 12, 31, 12, tzinfo=UTC).timestamp()) * 1_000_000
TENTH = pure(0.1, ONE_USER)
KINDS = {
    "day": Budget(0.3, per="day"),
    "any 24 hours": Budget(0.3, per="day", sliding=True),
    "month": Budget(0.3, per="month"),
    "any 31 days": Budget(0.3, per="month", sliding=True),
}


class Turned:
    """A clock that somebody turns."""

    def __init__(self) -> None:
        self.moment = NOON

    def __call__(self) -> int:
        return self.moment


@pytest.fixture
def clock() -> Turned:
    return Turned()


@pytest.mark.parametrize("budget", KINDS.values(), ids=KINDS.keys())
def test_turning_the_clock_back_and_forth_renews_nothing(target: str, clock: Turned, budget: Budget) -> None:
    with PrivacyLedger.create(target, clock=clock) as ledger:
        ledger.enrol("s", budget, protects=ONE_USER)
        for number in range(3):
            ledger.charge("s", f"spent-{number}", TENTH)
        for turn in (-1, -HOUR, -DAY, -32 * DAY, -400 * DAY, 0, -5 * DAY, HOUR, -HOUR):
            clock.moment = NOON + turn
            with pytest.raises(BudgetExhausted):
                ledger.charge("s", f"turned-{turn}", TENTH)
        assert ledger.statement("s").charges == 3


@pytest.mark.parametrize("budget", KINDS.values(), ids=KINDS.keys())
def test_clock_that_jumps_ahead_and_is_set_right_opens_one_window_and_not_two(
    target: str, clock: Turned, budget: Budget
) -> None:
    """The jump costs time, not privacy: until the true time has caught up, the budget of the far window is all there is."""
    with PrivacyLedger.create(target, clock=clock) as ledger:
        ledger.enrol("s", budget, protects=ONE_USER)
        for number in range(3):
            ledger.charge("s", f"before-{number}", TENTH)
        clock.moment = NOON + 100 * DAY
        far = [ledger.charge("s", f"far-{number}", TENTH).at for number in range(2)]
        clock.moment = NOON + HOUR
        assert ledger.charge("s", "back", TENTH).at == far[-1] == NOON + 100 * DAY
        for later in (2 * HOUR, DAY, 40 * DAY, 99 * DAY):
            clock.moment = NOON + later
            with pytest.raises(BudgetExhausted):
                ledger.charge("s", f"back-{later}", TENTH)
        clock.moment = NOON + 140 * DAY
        assert ledger.charge("s", "caught up", TENTH).at == clock.moment
    assert check(target).sound


def test_times_never_go_back_whatever_the_clock_does(target: str, clock: Turned) -> None:
    with PrivacyLedger.create(target, lanes=1, clock=clock) as ledger:
        ledger.enrol("s", Budget(1e3), protects=ONE_USER)
        ledger.enrol("t", Budget(1e3, per="day", sliding=True), protects=ONE_USER)
        stamps = []
        for number, turn in enumerate((0, 5, -7 * DAY, 3, 400 * DAY, -DAY, 399 * DAY, 401 * DAY, 0)):
            clock.moment = NOON + turn
            receipts = ledger.charge_many([("s", f"{number}", TENTH), ("t", f"{number}", TENTH)])
            stamps += [receipt.at for receipt in receipts]
            assert ledger.statement("s").at >= stamps[-1]
        assert all(earlier <= later for earlier, later in pairwise(stamps))
        assert stamps[-1] == NOON + 401 * DAY
    findings = check(target)
    assert findings.sound, findings.to_json()


def test_one_subjects_time_is_not_read_from_a_ledger_that_was_reopened_earlier(target: str, clock: Turned) -> None:
    """What holds within one process holds after a restart with a clock that lost its battery."""
    with PrivacyLedger.create(target, clock=clock) as ledger:
        ledger.enrol("s", Budget(0.2, per="day"), protects=ONE_USER)
        ledger.charge("s", "one", TENTH)
    with PrivacyLedger.open(target, clock=lambda: 0) as ledger:
        assert ledger.charge("s", "two", TENTH).at == NOON
        with pytest.raises(BudgetExhausted) as caught:
            ledger.charge("s", "three", TENTH)
    assert caught.value.renews == datetime(2028, 1, 1, tzinfo=UTC)


def test_processes_whose_clocks_disagree_share_one_time(target: str) -> None:
    with PrivacyLedger.create(target) as ledger:
        ledger.enrol("raced", Budget(1e3, per="day", sliding=True), protects=ONE_USER)
    offsets = (-400 * DAY, 0, 3 * HOUR, -HOUR)
    running = []
    for number, offset in enumerate(offsets):
        arguments = {"target": target, "number": number, "offset": offset, "charges": 40}
        command = [sys.executable, writers.__file__, "charge_by_clock", json.dumps(arguments)]
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
    made = [json.loads(process.communicate(timeout=100)[0]) for process in running]
    stamps = [at for _, at in sorted(tuple(one) for receipts in made for one in receipts)]
    assert len(stamps) == 160
    assert all(earlier <= later for earlier, later in pairwise(stamps))
    assert check(target).sound
