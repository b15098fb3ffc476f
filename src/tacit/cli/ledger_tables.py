"""A ledger as tables on the terminal. Spent amounts are rounded up, remaining amounts down; the JSON is exact."""

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from tacit.cli.output import counted
from tacit.ledger.budgets import DELTA_DIGITS, MEASURES, Cost, Terms, Window, shown
from tacit.ledger.chain import as_datetime

if TYPE_CHECKING:
    from rich.console import Console

    from tacit.guarantees import Guarantee
    from tacit.ledger.overview import Overview

_MICRO = 6  # digits of a micro-unit of money
_DIGITS, _DIGITS_OF_DELTA = 7, 3  # significant digits of a figure that is not an integer
_LONGEST = 400  # digits of any amount


def print_overview(console: "Console", ledger: "Overview", store: str) -> None:
    """Prints the ledger's facts and its tables. ``store`` is its address without a password."""
    table = Table(show_header=False)
    for name, value in _facts(ledger, store).items():
        table.add_row(name, escape(value))
    console.print(table)
    if ledger.statements:
        _print_statements(console, ledger)
    if ledger.subject is not None:
        promised = ledger.statements[0].promised
        console.print(f"\nAll releases of this subject together promise {escape(str(promised).partition(';')[0])}")
        for line in (f"protects {promised.protects}", *(f"assumes {reason}" for reason in sorted(promised.assumes))):
            console.print(Padding(escape(line), (0, 0, 0, 2), expand=False))
    if ledger.charges:
        _print_charges(console, ledger)
    if ledger.totals:
        _print_items(console, ledger)


def money(micros: int) -> str:
    return f"{shown(micros, _MICRO):,f}"


def brief(units: int, digits: int, rounding: str, most: int = _DIGITS) -> Decimal:
    """Units as a decimal of at most ``most`` significant digits. A whole number keeps all its digits."""
    exact = shown(units, digits)
    places = max(0, most - 1 - exact.adjusted())
    context = Context(prec=_LONGEST, rounding=rounding)
    rounded = exact.quantize(Decimal(1).scaleb(-places), context=context)
    return rounded.normalize(context)


def amounts(cost: Cost, terms: Terms, rounding: str = ROUND_CEILING) -> list[tuple[str, str]]:
    """The parts of a cost, each with its unit. A delta or an unprotected part of zero is left out."""
    measure, digits = MEASURES[terms.accounting]
    parts = [(measure, f"{brief(cost.amount, digits, rounding):,f}")]
    if cost.delta:
        parts.append(("delta", f"{float(brief(cost.delta, DELTA_DIGITS, rounding, _DIGITS_OF_DELTA)):g}"))
    if cost.unprotected:
        parts.append(("unprotected", f"{cost.unprotected:,}"))
    return parts


def _facts(ledger: "Overview", store: str) -> dict[str, str]:
    facts = {
        "ledger": ledger.ledger,
        "store": store,
        "created": ledger.created,
        "lanes": f"{ledger.lanes:,}",
        "entries": f"{ledger.entries:,}",
        "subjects": f"{ledger.subjects:,}",
        "latest entry": f"{_time(ledger.latest_charge)} UTC" if ledger.entries else "none",
    }
    if ledger.impressions:
        facts["impressions"] = f"{ledger.impressions:,} of {counted(ledger.items, 'item')}"
        facts["latest impression"] = f"{as_datetime(ledger.latest_impression):%Y-%m-%d}"
        facts["money"] = money(ledger.micros)
    return facts


def _table(console: "Console", title: str) -> Table:
    """A table without lines between its columns, which would take a quarter of a terminal's width."""
    console.print(f"\n[italic]{title}[/italic]")  # rich would wrap a title of the table at the table's width
    return Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)


def _print_statements(console: "Console", ledger: "Overview") -> None:
    single = ledger.subject is not None  # its promise follows below, in full
    table = _table(console, "Subject" if single else "Subjects, the latest charged first")
    if single:
        table.add_column("subject", overflow="fold")
    else:
        table.add_column("subject", no_wrap=True, overflow="ellipsis", max_width=max(10, console.width // 6))
    table.add_column("charges", justify="right", no_wrap=True)
    table.add_column("budget")
    table.add_column("spent", no_wrap=True)
    table.add_column("left", no_wrap=True)
    if not single:
        table.add_column("promised in all")
    for statement in ledger.statements:
        for index, window in enumerate(statement.windows):
            first = index == 0  # the next rows are the subject's other budgets
            cells = [
                escape(statement.subject) if first else "",
                f"{statement.charges:,}" if first else "",
                str(window.budget),
                _lines(window.spent, statement.terms, also_delta=bool(window.left.delta)),
                _left(window, statement.terms),
            ]
            table.add_row(*cells, *([] if single else [_figures(statement.promised) if first else ""]))
    console.print(table)
    if not single:
        _print_rest(console, ledger.subjects - len(ledger.statements), "subject")


def _lines(cost: Cost, terms: Terms, *, also_delta: bool = False) -> str:
    parts = amounts(cost, terms)
    if also_delta and not cost.delta:
        parts.insert(1, ("delta", "0"))
    return "\n".join(f"{measure} {figure}" for measure, figure in parts)


def _left(window: Window, terms: Terms) -> str:
    """The remaining figures without their units, in the order of the column `spent`, which has the units."""
    figures = [figure for _, figure in amounts(window.left, terms, ROUND_FLOOR)]
    if window.spent.delta and not window.left.delta:
        figures.append("0")
    return "\n".join(figures)


def _figures(guarantee: "Guarantee") -> str:
    """Epsilon and delta without the assumptions, which fill pages for many releases."""
    return escape(str(guarantee).partition(";")[0].replace(" = ", " ").replace(", ", "\n"))


def _print_charges(console: "Console", ledger: "Overview") -> None:
    (statement,) = ledger.statements
    table = _table(console, "Charges, the latest first")
    if ledger.lanes > 1:
        table.add_column("lane", justify="right", no_wrap=True)
    table.add_column("entry", justify="right", no_wrap=True)
    table.add_column("time (UTC)", no_wrap=True)
    table.add_column("release", overflow="fold")
    table.add_column("cost", no_wrap=True)
    table.add_column("guarantee")
    for charge in ledger.charges:
        table.add_row(
            *([f"{charge.lane}"] if ledger.lanes > 1 else []),
            f"{charge.position:,}",
            _time(charge.at),
            escape(charge.release_id),
            _lines(charge.cost, statement.terms),
            _figures(charge.guarantee),
        )
    console.print(table)
    _print_rest(console, statement.charges - len(ledger.charges), "charge")


def _print_items(console: "Console", ledger: "Overview") -> None:
    table = _table(console, "Items, the most shown first")
    table.add_column("item", no_wrap=True, overflow="ellipsis", max_width=max(10, console.width // 2))
    for column in ("impressions", "money"):
        table.add_column(column, justify="right", no_wrap=True)
    for total in ledger.totals:
        table.add_row(escape(total.item), f"{total.impressions:,}", money(total.micros))
    console.print(table)
    _print_rest(console, ledger.items - len(ledger.totals), "item")


def _print_rest(console: "Console", more: int, what: str) -> None:
    if more > 0:
        console.print(f"... and {counted(more, f'more {what}')}; --limit sets how many are shown.")


def _time(at: int) -> str:
    return f"{as_datetime(at):%Y-%m-%d %H:%M:%S}"
