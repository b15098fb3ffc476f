"""What had been spent before a budget's window began, followed from charge to charge without asking the store.

Each class is asked once for every charge of one subject, in the order of time, with what was spent before that charge.
"""

from array import array
from typing import Protocol

from tacit.ledger.amounts import NOTHING_SPENT, Cost
from tacit.ledger.budgets import Budget, Period

_FIELDS = 4  # of one step of a trail: a time, and what had been spent after it


class LookBack(Protocol):
    def before(self, at: int, spent: Cost) -> Cost:
        """What was spent before the window of a charge at ``at``; ``spent`` is all that was spent before the charge."""
        ...


def look_back(budget: Budget) -> LookBack:
    if budget.per is Period.LIFETIME:
        return Lifetime()
    return Sliding(budget) if budget.sliding else Calendar(budget)


class Lifetime:
    __slots__ = ()

    def before(self, at: int, spent: Cost) -> Cost:
        return NOTHING_SPENT


class Calendar:
    """Two figures are enough: when the window ends, and what was spent before it began."""

    __slots__ = ("_before", "_budget", "_ends")

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._ends: int | None = None
        self._before = NOTHING_SPENT

    def before(self, at: int, spent: Cost) -> Cost:
        if self._ends is None or at >= self._ends:
            self._ends, self._before = self._budget.renews(at), spent
        return self._before


class Sliding:
    """Remembers the charges of one window's length, 32 bytes for each moment; the budget bounds how many fit into it."""

    __slots__ = ("_before", "_budget", "_first", "_last", "_trail")

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._trail = array("q")
        self._first = 0  # where the window begins in the trail
        self._last: int | None = None  # the time of the charge before
        self._before = NOTHING_SPENT

    def before(self, at: int, spent: Cost) -> Cost:
        trail = self._trail
        if self._last is not None:
            if len(trail) > self._first and trail[-_FIELDS] == self._last:
                del trail[-_FIELDS:]  # charges of one moment are one step
            trail.extend((self._last, *spent))
        self._last = at
        start, first, end = self._budget.start(at), self._first, len(trail)
        while first < end and trail[first] < start:
            first += _FIELDS
        if first > self._first:
            self._before = Cost(*trail[first - _FIELDS + 1 : first])
            if 2 * first >= end:  # moving the rest costs no more than what was passed over
                del trail[:first]
                first = 0
            self._first = first
        return self._before
