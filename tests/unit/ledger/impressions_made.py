"""A clock and outcomes for the tests of impressions."""

from datetime import date

from tacit.errors import (
    TacitError,
)
from tacit.ledger.chain import DAY
from tacit.ledger.tally import Counted


class Hands:
    """A clock that a test sets: a day, and a time of day that must never reach the disk."""

    time = 12_345_678_901

    def __init__(self, day: date) -> None:
        self.day = day

    def __call__(self) -> int:
        return number(self.day) * DAY + self.time


def number(day: date) -> int:
    return (day - date(1970, 1, 1)).days


def kinds(outcomes: list[Counted | TacitError]) -> list[object]:
    """Whether each report was counted now (True), earlier (False), or the error it got."""
    return [outcome.fresh if isinstance(outcome, Counted) else type(outcome) for outcome in outcomes]
