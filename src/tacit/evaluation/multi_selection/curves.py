"""What is kept of the best item's utility, by epsilon per unit of distance."""

from collections.abc import Iterator

from tacit.evaluation.curve import NATS_PER_DISTANCE, Better, Curve, Level, Line, Role
from tacit.evaluation.curve_rows import count, kept, level, line_of
from tacit.evaluation.result import Result

METRIC, K = "kept", 5
TOLD_AT = 10.0


def curves(result: Result) -> Iterator[Curve]:
    """One for the data set: picks from slates of five. Whoever tells her features gets the best item: that is the unit."""
    default = _line(result, "exact", "ridge", Role.DEFAULT)
    nothing = level(result, METRIC, "ig-sig", k=K, draws=_draws(result), local_model="ridge")
    if default is None or nothing is None:
        return
    yield Curve(
        result.system,
        result.data,
        "utility kept",
        "share of the best item's",
        Better.HIGHER,
        kept(default, _line(result, "sat-realuser", "pca", Role.PUBLISHED)),
        Level("features told", 1.0),
        Level("ig-sig: no signal", nothing.value, nothing.stderr),
        told_at=TOLD_AT,
        users=count(result, "look-alikes"),
        items=count(result, "items"),
        measured_in=NATS_PER_DISTANCE,
    )


def _line(result: Result, method: str, local_model: str, role: Role) -> Line | None:
    rows = result.select(METRIC, method, k=K, draws=_draws(result), local_model=local_model)
    return line_of(f"{method}, {local_model}", role, {1.0 / float(row.setting["eta"]): row for row in rows})


def _draws(result: Result) -> int:
    """The most draws that the published algorithms were tried with at this k."""
    tried = [int(row.setting["draws"]) for row in result.select(METRIC, "ig-sig", k=K, local_model="ridge")]
    return max(tried, default=0)
