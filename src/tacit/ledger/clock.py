"""Time as whole microseconds since 1970, UTC. The ledger's time never goes back (docs/ledger)."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

Clock = Callable[[], int]  # microseconds since 1970

SECOND = 1_000_000
DAY = 86_400 * SECOND
END_OF_TIME = 2_900_000 * DAY  # in the year 9909: what comes later is in no calendar
_START = datetime(1970, 1, 1, tzinfo=UTC)


def now() -> int:
    """The system's clock."""
    return time.time_ns() // 1000


def as_datetime(at: int) -> datetime:
    return _START + timedelta(microseconds=at)


def as_text(at: int) -> str:
    """As ISO 8601 with all digits: equal texts are equal times."""
    return as_datetime(at).isoformat(timespec="microseconds")


def day_of(at: int) -> int:
    """The day that ``at`` lies in, counted from 1970."""
    return at // DAY


def start_of_month(at: int) -> int:
    moment = as_datetime(at)
    return _micros(datetime(moment.year, moment.month, 1, tzinfo=UTC))


def start_of_next_month(at: int) -> int:
    moment = as_datetime(at)
    year, month = (moment.year + 1, 1) if moment.month == 12 else (moment.year, moment.month + 1)
    return _micros(datetime(year, month, 1, tzinfo=UTC))


def _micros(moment: datetime) -> int:
    return (moment - _START) // timedelta(microseconds=1)
