"""A ledger as tables on the terminal. Amounts are shortened, spent ones up and what is left down; the JSON is exact."""

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
_DIGITS, _DIGITS_OF_DELTA = 7, 3  # significant ones, of what is no integer
_LONGEST = 400  # digits of any amount


def print_overview(console: "Console", seen: "Overview", store: str) -> None:
    table = Table(show_header=False)
    for name, value in _facts(seen, store).items():
        table.add_row(name, escape(value))
    console.print(table)
    if seen.statements:
        _print_statements(console, seen)
    if seen.subject is not None:
        _print_promise(console, seen.statements[0].promised)
    if seen.charges:
        _print_charges(console, seen)
    if seen.totals:
        _print_items(console, seen)


def money(micros: int) -> str:
    return f"{shown(micros, _MICRO):,f}"


def brief(units: int, digits: int, rounding: str, most: int = _DIGITS) -> Decimal:
    """Units as a decimal of at most so many significant digits; the digits of whole numbers all stay."""
    exact = shown(units, digits)
    places = max(0, most - 1 - exact.adjusted())
    context = Context(prec=_LONGEST, rounding=rounding)
    rounded = exact.quantize(Decimal(1).scaleb(-places), context=context)
    return rounded.normalize(context)


def amounts(cost: Cost, terms: Terms, rounding: str = ROUND_CEILING) -> list[tuple[str, str]]:
    """The parts of a cost in the words of its accounting; what is zero by nature is left out."""
    measure, digits = MEASURES[terms.accounting]
    parts = [(measure, f"{brief(cost.amount, digits, rounding):,f}")]
    if cost.delta:
        parts.append(("delta", f"{float(brief(cost.delta, DELTA_DIGITS, rounding, _DIGITS_OF_DELTA)):g}"))
    if cost.unprotected:
        parts.append(("unprotected", f"{cost.unprotected:,}"))
    return parts


def _facts(seen: "Overview", store: str) -> dict[str, str]:
    facts = {
        "ledger": seen.ledger,
        "store": store,
        "created": seen.created,
        "lanes": f"{seen.lanes:,}",
        "entries": f"{seen.entries:,}",
        "subjects": f"{seen.subjects:,}",
        "latest entry": f"{_time(seen.latest_charge)} UTC" if seen.entries else "none",
    }
    if seen.impressions:
        facts["impressions"] = f"{seen.impressions:,} of {counted(seen.items, 'item')}"
        facts["latest impression"] = f"{as_datetime(seen.latest_impression):%Y-%m-%d}"
        facts["money"] = money(seen.micros)
    return facts


def _table(console: "Console", title: str) -> Table:
    """A table without lines between its columns: they would take a quarter of a terminal's width."""
    console.print(f"\n[italic]{title}[/italic]")  # a title of its own would wrap at the width of a small table
    return Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)


def _print_statements(console: "Console", seen: "Overview") -> None:
    one = seen.subject is not None  # her promise stands below, in full
    table = _table(console, "Subject" if one else "Subjects, those charged last first")
    if one:
        table.add_column("subject", overflow="fold")
    else:
        table.add_column("subject", no_wrap=True, overflow="ellipsis", max_width=max(10, console.width // 6))
    table.add_column("charges", justify="right", no_wrap=True)
    table.add_column("budget")
    table.add_column("spent", no_wrap=True)
    table.add_column("left", no_wrap=True)
    if not one:
        table.add_column("promised in all")
    for statement in seen.statements:
        for place, window in enumerate(statement.windows):
            first = place == 0  # the next rows are her other budgets
            cells = [
                escape(statement.subject) if first else "",
                f"{statement.charges:,}" if first else "",
                str(window.budget),
                _lines(window.spent, statement.terms, also_delta=bool(window.left.delta)),
                _left(window, statement.terms),
            ]
            table.add_row(*cells, *([] if one else [_figures(statement.promised) if first else ""]))
    console.print(table)
    if not one:
        _print_rest(console, seen.subjects - len(seen.statements), "subject")


def _lines(cost: Cost, terms: Terms, *, also_delta: bool = False) -> str:
    parts = amounts(cost, terms)
    if also_delta and not cost.delta:
        parts.insert(1, ("delta", "0"))
    return "\n".join(f"{measure} {figure}" for measure, figure in parts)


def _left(window: Window, terms: Terms) -> str:
    """Each figure beside the one of the same measure in `spent`, which names it."""
    figures = [figure for _, figure in amounts(window.left, terms, ROUND_FLOOR)]
    if window.spent.delta and not window.left.delta:
        figures.append("0")
    return "\n".join(figures)


def _figures(guarantee: "Guarantee") -> str:
    """The figures alone: of many releases, what they assume fills pages."""
    return escape(str(guarantee).partition(";")[0].replace(" = ", " ").replace(", ", "\n"))


def _print_promise(console: "Console", promised: "Guarantee") -> None:
    figures = str(promised).partition(";")[0]
    console.print(f"\nAll her releases together promise {escape(figures)}")
    for line in (f"protects {promised.protects}", *(f"assumes {reason}" for reason in sorted(promised.assumes))):
        console.print(Padding(escape(line), (0, 0, 0, 2), expand=False))


def _print_charges(console: "Console", seen: "Overview") -> None:
    (statement,) = seen.statements
    table = _table(console, "Her charges, the latest first")
    if seen.lanes > 1:
        table.add_column("lane", justify="right", no_wrap=True)
    table.add_column("entry", justify="right", no_wrap=True)
    table.add_column("time (UTC)", no_wrap=True)
    table.add_column("release", overflow="fold")
    table.add_column("cost", no_wrap=True)
    table.add_column("guarantee")
    for charge in seen.charges:
        table.add_row(
            *([f"{charge.lane}"] if seen.lanes > 1 else []),
            f"{charge.position:,}",
            _time(charge.at),
            escape(charge.release_id),
            _lines(charge.cost, statement.terms),
            _figures(charge.guarantee),
        )
    console.print(table)
    _print_rest(console, statement.charges - len(seen.charges), "charge")


def _print_items(console: "Console", seen: "Overview") -> None:
    table = _table(console, "Items, the most displayed first")
    table.add_column("item", no_wrap=True, overflow="ellipsis", max_width=max(10, console.width // 2))
    for column in ("impressions", "money"):
        table.add_column(column, justify="right", no_wrap=True)
    for total in seen.totals:
        table.add_row(escape(total.item), f"{total.impressions:,}", money(total.micros))
    console.print(table)
    _print_rest(console, seen.items - len(seen.totals), "item")


def _print_rest(console: "Console", more: int, what: str) -> None:
    if more > 0:
        console.print(f"... and {counted(more, f'more {what}')}: --limit says how many are shown.")


def _time(at: int) -> str:
    return f"{as_datetime(at):%Y-%m-%d %H:%M:%S}"
