"""What slates are looked at on: hostile records, and every neighbouring pair of small tables of them."""

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.audit import check, domains
from tacit.audit.cases import Draws
from tacit.audit.findings import Finding, Measure
from tacit.guarantees import Relation
from tacit.mechanisms.noise import Noise

Check: TypeAlias = Callable[[Noise, Draws], Finding]

BOTH = (Relation.ADD_REMOVE, Relation.REPLACE)
HOSTILE = (
    (0.0, 0.0, 0.0),
    (1.0, 0.0, 0.0),
    (0.0, -1.0, 0.0),
    (0.0, 0.0, 1e308),
    (math.nextafter(1.0, 2.0), 0.0, math.nextafter(0.0, 1.0)),
    (1.0, 1.0, 1.0),
    (-0.6, 0.0, 0.8),
    (7.0, -1e300, 5e-324),
    (math.inf, 1.0, 1.0),
    (math.nan, -3.0, 0.25),
)


class Remembered:
    """A mechanism whose laws are kept, for several measures of the same tables."""

    def __init__(self, real: Any) -> None:
        self.real, self.laws = real, dict[bytes, NDArray[np.float64]]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def pmf(self, rows: domains.Table) -> NDArray[np.float64]:
        key = rows.tobytes()
        if key not in self.laws:
            self.laws[key] = self.real.pmf(rows)
        return self.laws[key]


def pairs_of(tables: Sequence[domains.Table], relation: Relation) -> NDArray[np.int64]:
    """All pairs that are neighbours."""
    return domains.added_or_removed(tables) if relation is Relation.ADD_REMOVE else domains.replaced(tables)


def over(
    mechanism: Any,
    rows: Sequence[Sequence[float]],
    case: str,
    measure: Measure = Measure.EPSILON,
    *,
    users: int = 2,
    reference: float | None = None,
    note: str = "",
) -> Check:
    """Every table of so many of these rows, one of them added, removed or replaced as the mechanism claims to hide it."""

    def run(noise: Noise, draws: Draws) -> Finding:
        relation = getattr(mechanism, "real", mechanism).relation
        tables = domains.tables(rows, users)
        return check.exactly(
            mechanism,
            tables,
            pairs_of(tables, relation),
            measure=measure,
            case=f"{case}, one {relation}",
            reference=reference,
            note=note,
        )

    return run
