"""The results of a report as a table in Markdown: what a README shows."""

from collections.abc import Iterable

from tacit.evaluation.curve import Curve
from tacit.evaluation.registry import SYSTEMS
from tacit.evaluation.report.words import at, interval

EACH = 2  # worlds of a system
COLUMNS = ("system", "world", "utility", "learns nothing", "private", "not private", "of the way")


def results_table(curves: Iterable[Curve], each: int = EACH) -> str:
    """A line for the first worlds of every system, with standard errors; the private figure at an epsilon that is usual for it."""
    by: dict[str, list[Curve]] = {system: [] for system in SYSTEMS}
    for curve in curves:
        by[curve.system].append(curve)
    lines = [_line(COLUMNS), _line("---" for _ in COLUMNS)]
    lines += [_line(_cells(curve)) for found in by.values() for curve in found[:each]]
    return "\n".join(lines) + "\n"


def _cells(curve: Curve) -> tuple[str, ...]:
    told, share = curve.told, curve.share(curve.told.value)
    large = [
        f"{count:,} {what}"
        for count, what in (
            (curve.users, "look-alikes" if curve.system == "multi-selection" else "users"),
            (curve.items, "items"),
            (curve.entities, "entities"),
        )
        if count
    ]
    return (
        curve.system,
        f"{curve.world}: {', '.join(large)}" if large else curve.world,
        f"{curve.metric}, {curve.unit} ({curve.better} is better)",
        f"{interval(curve.nothing.value, curve.nothing.stderr, curve.unit)} ({curve.nothing.method})",
        f"**{interval(told.value, told.stderr, curve.unit)}** at {at(curve, told.epsilon)}",
        f"{interval(curve.plain.value, curve.plain.stderr, curve.unit)} ({curve.plain.method})",
        "within errors" if not curve.stands_out(told) else "" if share is None else f"{share:.0%}",
    )


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"
