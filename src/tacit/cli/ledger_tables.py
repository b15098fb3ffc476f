"""A ledger as tables on the terminal."""

from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from tacit.ledger.accounting import MEASURES
from tacit.ledger.amounts import DELTA_DIGITS, Cost, shown
from tacit.ledger.budgets import Terms
from tacit.ledger.clock import as_datetime
from tacit.ledger.statements import Statement

if TYPE_CHECKING:
    from rich.console import Console

    from tacit.ledger.overview import Overview, PastCharge

_MICRO = 6  # digits of a micro-unit of money


def print_overview(console: "Console", seen: "Overview", store: str) -> None:
    facts = {
        "ledger": seen.ledger,
        "store": store,
        "created": seen.created,
        "latest entry": _time(seen.latest) if seen.latest else "none",
        "lanes": f"{seen.lanes:,}",
        "entries": f"{seen.entries:,}",
        "subjects": f"{seen.subjects:,}",
        "impressions": f"{seen.impressions:,} of {seen.items:,} items",
        "money": money(seen.micros),
    }
    table = Table(show_header=False)
    for name, value in facts.items():
        table.add_row(name, escape(value))
    console.print(table)
    if seen.statements:
        _print_statements(console, seen)
    if seen.charges:
        _print_charges(console, seen.charges, seen.statements[0])
    if seen.totals:
        _print_items(console, seen)


def money(micros: int) -> str:
    return f"{shown(micros, _MICRO):,f}"


def amount(cost: Cost, terms: Terms) -> str:
    """A cost in the words of its accounting; what is zero by nature is left out."""
    measure, digits = MEASURES[terms.accounting]
    text = f"{measure} {shown(cost.amount, digits):f}"
    if cost.delta:
        text += f", delta {shown(cost.delta, DELTA_DIGITS):g}"
    if cost.unprotected:
        text += f", unprotected {cost.unprotected:,}"
    return text


def _print_statements(console: "Console", seen: "Overview") -> None:
    title = "Subjects, those charged last first" if seen.subject is None else "Subject"
    table = Table(title=title, title_justify="left")
    for column in ("subject", "charges", "budget", "spent", "left", "promised by all releases together"):
        table.add_column(column, justify="right" if column == "charges" else "left", overflow="fold")
    for statement in seen.statements:
        promise = str(statement.promised)  # of many subjects the figures alone: what they assume fills pages
        for place, window in enumerate(statement.windows):
            first = place == 0  # the next rows are her other budgets
            table.add_row(
                escape(statement.subject) if first else "",
                f"{statement.charges:,}" if first else "",
                str(window.budget),
                amount(window.spent, statement.terms),
                amount(window.left, statement.terms),
                escape(promise if seen.subject is not None else promise.partition(";")[0]) if first else "",
            )
    console.print(table)
    if seen.subject is None:
        _print_rest(console, seen.subjects - len(seen.statements), "subjects")


def _print_charges(console: "Console", charges: tuple["PastCharge", ...], statement: Statement) -> None:
    table = Table(title="Her charges, the latest first", title_justify="left")
    for column in ("entry", "time", "release", "cost", "guarantee"):
        table.add_column(column, justify="right" if column == "entry" else "left", overflow="fold")
    for charge in charges:
        table.add_row(
            f"{charge.entry:,}",
            _time(charge.at),
            escape(charge.release_id),
            amount(charge.cost, statement.terms),
            escape(str(charge.guarantee)),
        )
    console.print(table)
    _print_rest(console, statement.charges - len(charges), "charges")


def _print_items(console: "Console", seen: "Overview") -> None:
    table = Table(title="Items, the most displayed first", title_justify="left")
    for column in ("item", "impressions", "money"):
        table.add_column(column, justify="left" if column == "item" else "right", overflow="fold")
    for total in seen.totals:
        table.add_row(escape(total.item), f"{total.impressions:,}", money(total.micros))
    console.print(table)
    _print_rest(console, seen.items - len(seen.totals), "items")


def _print_rest(console: "Console", more: int, what: str) -> None:
    if more > 0:
        console.print(f"... and {more:,} more {what}: --limit says how many are shown.")


def _time(at: int) -> str:
    return f"{as_datetime(at):%Y-%m-%d %H:%M:%S} UTC"
