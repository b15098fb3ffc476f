"""The odometer: what was promised to a subject so far, what is spent and left, as a value that anybody can recompute."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tacit.guarantees import Guarantee
from tacit.ledger.accounting import MEASURES, allowance, promised
from tacit.ledger.accounts import unknown_subject
from tacit.ledger.amounts import DELTA_DIGITS, Cost, shown
from tacit.ledger.budgets import Budget, Terms
from tacit.ledger.clock import as_text
from tacit.ledger.entries import SPENT_BEFORE, SUBJECT, sealed_subject, spent_before
from tacit.ledger.known import Known, read_guarantee
from tacit.ledger.stores.interface import Reader


@dataclass(frozen=True, slots=True)
class Window:
    """One budget's window at the time of a statement."""

    budget: Budget
    spent: Cost
    left: Cost


@dataclass(frozen=True, slots=True)
class Statement:
    """What a subject was promised by all releases so far (``promised``), and how her budgets stand at ``at``."""

    subject: str
    terms: Terms
    at: int  # microseconds since 1970
    charges: int
    spent: Cost  # in all
    windows: tuple[Window, ...]
    promised: Guarantee

    def __str__(self) -> str:
        measure, digits = MEASURES[self.terms.accounting]
        lines = [f"{self.subject}: {self.charges:,} charged, {shown(self.spent.amount, digits):f} {measure} in all"]
        lines += [
            f"  {window.budget}: {shown(window.spent.amount, digits):f} {measure} spent, "
            f"{shown(window.left.amount, digits):f} left"
            for window in self.windows
        ]
        return "\n".join([*lines, f"  promised: {self.promised}"])

    def to_json(self) -> dict[str, Any]:
        """Amounts as exact decimals in text: a float would round them."""
        return {
            "subject": self.subject,
            "at": as_text(self.at),
            "terms": self.terms.to_json(),
            "charges": self.charges,
            "spent": cost_to_json(self.spent, self.terms),
            "windows": [
                {
                    "budget": window.budget.to_json(),
                    "spent": cost_to_json(window.spent, self.terms),
                    "left": cost_to_json(window.left, self.terms),
                }
                for window in self.windows
            ],
            "promised": self.promised.to_json(),
        }


def cost_to_json(cost: Cost, terms: Terms) -> dict[str, Any]:
    """A cost in the measure of the terms' accounting, such as {"epsilon": "0.3", "delta": "0", "unprotected": 0}."""
    measure, digits = MEASURES[terms.accounting]
    return {
        measure: f"{shown(cost.amount, digits):f}",
        "delta": f"{shown(cost.delta, DELTA_DIGITS):f}",
        "unprotected": cost.unprotected,
    }


def stated(
    subject: str, terms: Terms, at: int, counted: Mapping[Guarantee, int], spent: Cost, before: tuple[Cost, ...]
) -> Statement:
    """The statement that follows from the charges: how many under each guarantee, their sum, and the sum before each window."""
    windows = []
    for budget, earlier in zip(terms.budgets, before, strict=True):
        used, allowed = spent - earlier, allowance(budget, terms)
        left = Cost(max(0, allowed.amount - used.amount), max(0, allowed.delta - used.delta))
        windows.append(Window(budget, used, left))
    return Statement(subject, terms, at, sum(counted.values()), spent, tuple(windows), promised(counted, terms))


_UNDER_EACH = "SELECT guarantee, count(*) FROM entries WHERE subject = ? AND release_id <> '' GROUP BY guarantee"


def statement_of(reader: Reader, known: Known, lanes: int, subject: str, moment: int) -> Statement:
    """A subject's statement, from the ledger."""
    (row,) = reader.ask(SUBJECT, [(subject,)])()
    if row is None:
        raise unknown_subject()
    number, key, *total, last = sealed_subject(subject, row)
    terms, at = known.agreed(reader, key).terms, max(moment, last)
    counted: Counter[Guarantee] = Counter()
    for digest, count in list(reader.stream(_UNDER_EACH, (number,))):
        counted[read_guarantee(reader, digest)] += count
    starts = [budget.start(at) for budget in terms.budgets]
    rows = reader.ask(SPENT_BEFORE, [(lanes, number, start) for start in starts])()
    before = tuple(spent_before(row, number, start) for row, start in zip(rows, starts, strict=True))
    return stated(subject, terms, at, counted, Cost(*total), before)
