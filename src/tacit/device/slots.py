"""Slots: when a device may draw a fresh signal. A slot is a part of the calendar, so that the time of a fresh signal says nothing
about the user; drawing one "because the features have moved" would."""

from tacit.checks import member, whole
from tacit.errors import InvalidParameter, LedgerUnavailable
from tacit.ledger import Period
from tacit.ledger.clock import DAY, END_OF_TIME, as_datetime, start_of_month, start_of_next_month


def slot_of(at: int, refresh: Period | str = Period.MONTH, per_period: int = 1) -> str:
    """The name of the slot that ``at`` (microseconds since 1970, UTC) lies in: a day or month, or one of its equal parts.

    With "lifetime" there is one slot for ever.
    """
    refresh, per_period = checked(refresh, per_period)
    if not 0 <= at <= END_OF_TIME:
        raise LedgerUnavailable(
            "the clock's time is in no calendar; nothing was drawn. Mend the clock, then try again."
        )
    if refresh is Period.LIFETIME:
        return "ever"
    if refresh is Period.DAY:
        start, end, name = at - at % DAY, at - at % DAY + DAY, f"{as_datetime(at):%Y-%m-%d}"
    else:
        start, end, name = start_of_month(at), start_of_next_month(at), f"{as_datetime(at):%Y-%m}"
    part = (at - start) * per_period // (end - start)
    return name if per_period == 1 else f"{name}.{part + 1}of{per_period}"


_BY_LENGTH = (Period.DAY, Period.MONTH, Period.LIFETIME)


def require_within(refresh: Period, period: Period) -> None:
    """Refuses slots that are longer than the budget's period.

    A device that lost its memos is silent for one period. If that ended before the slot does, a second signal would be drawn in
    one slot. A slot within a period is safe, also in a sliding one: 24 hours or 31 days from now end no earlier than the slot.
    """
    if _BY_LENGTH.index(refresh) > _BY_LENGTH.index(period):
        raise InvalidParameter(
            f"a slot must not be longer than the budget's period, and refresh='{refresh}' is longer than per='{period}': "
            f"say refresh='{period}', or a budget per='{refresh}'."
        )


def checked(refresh: Period | str, per_period: int) -> tuple[Period, int]:
    """The two parameters of a slot, if they go together."""
    refresh, per_period = member("refresh", Period, refresh), whole("per_period", per_period, least=1, most=1000)
    if refresh is Period.LIFETIME and per_period > 1:
        raise InvalidParameter("a lifetime has no parts: per_period must be 1, or refresh by day or month.")
    return refresh, per_period
