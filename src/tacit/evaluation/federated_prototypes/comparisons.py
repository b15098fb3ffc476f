"""Rows compared with each other: of two figures one is ahead by 2 standard errors.

Figures of one split are compared user by user where they are errors or ranks, and otherwise as if they were independent.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

from tacit.evaluation.federated_prototypes.measures import Floats
from tacit.evaluation.federated_prototypes.paper import NAME
from tacit.evaluation.federated_prototypes.rows import Key, key_of, settled
from tacit.evaluation.result import Claim, Row
from tacit.evaluation.statistics import SHOWN, Estimate, mean

Value = int | float | str


class Rows:
    """Rows by method, metric and the whole setting, and what each user adds to some of them."""

    def __init__(self, rows: Sequence[Row], influences: Mapping[Key, Floats] | None = None) -> None:
        self._rows = {key_of(row): row for row in rows}
        self._influences = influences or {}
        self.all = rows

    def find(self, method: str, metric: str, **setting: Value) -> Row | None:
        return self._rows.get((method, metric, settled(setting)))

    def values(self, method: str, metric: str, name: str, **setting: Value) -> dict[Value, Row]:
        """The rows of a method that have this setting, by one further part of it."""
        found = {}
        for row in self.all:
            rest = {key: value for key, value in row.setting.items() if key != name}
            if (row.method, row.metric) == (method, metric) and name in row.setting and rest == setting:
                found[row.setting[name]] = row
        return found

    def lower(self, one: Row, other: Row) -> Estimate:
        """How far ``one`` is below ``other``: the error is of the difference user by user, or of independent figures."""
        first, second = (self._influences.get(key_of(row)) for row in (one, other))
        if first is not None and second is not None and first.size == second.size:
            error = mean(second - first).stderr
        else:
            error = math.hypot(one.stderr or 0.0, other.stderr or 0.0)
        return Estimate(other.value - one.value, error, min(one.n, other.n))


def decided(claim: str, apart: dict[str, Estimate], *, paper: str = NAME, bound: float = 0.0) -> Iterator[Claim]:
    """Whether every difference is above ``bound`` by 2 standard errors."""
    if apart:
        evidence = "; ".join(f"{name}: {one}" for name, one in apart.items())
        yield Claim(paper, claim, all(one.above(bound, SHOWN) for one in apart.values()), evidence)
