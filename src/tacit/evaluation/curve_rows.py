"""Lines and levels of a curve, from the rows of a result."""

import math

from tacit.evaluation.curve import Level, Line, Point, Role
from tacit.evaluation.result import COUNT, DATA, Result, Row

Value = int | float | str


def line(
    result: Result, metric: str, method: str, role: Role = Role.OTHER, *, called: str = "", **setting: Value
) -> Line | None:
    """A method by its finite epsilons, at exactly this setting; None where the result has no such rows.

    ``called``: its name for readers, where that of the rows is a short one.
    """
    wanted = {*setting, "epsilon"}
    rows = [row for row in result.select(metric, method, **setting) if row.setting.keys() == wanted]
    return line_of(called or method, role, {_epsilon(row): row for row in rows})


def line_of(method: str, role: Role, rows: dict[float, Row]) -> Line | None:
    """Rows by their epsilon, in nats."""
    points = tuple(
        Point(epsilon, row.value, row.stderr) for epsilon, row in sorted(rows.items()) if 0.0 < epsilon < math.inf
    )
    return Line(method, role, points) if points else None


def level(result: Result, metric: str, method: str, **setting: Value) -> Level | None:
    """A method at exactly this setting, whatever epsilon it is noted under; None where the result has no such row."""
    for row in result.select(metric, method, **setting):
        if set(row.setting) - {"epsilon"} == set(setting) - {"epsilon"}:
            return Level(method, row.value, row.stderr)
    return None


def count(result: Result, of: str, **setting: Value) -> int | None:
    """How many there are of something in a world, where the result tells."""
    row = result.find(COUNT, DATA, **setting, of=of)
    return None if row is None else round(row.value)


def kept(*lines: Line | None) -> tuple[Line, ...]:
    """Those that are there, in order."""
    return tuple(one for one in lines if one is not None)


def _epsilon(row: Row) -> float:
    return float(row.setting["epsilon"])
