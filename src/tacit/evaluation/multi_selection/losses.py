"""What the trials lost: for every case the dis-utility of every trial, so that cases can be compared trial by trial."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.evaluation.multi_selection.plan import DRAWS
from tacit.evaluation.statistics import Estimate, difference, mean, reduction

D_I, D_F = "d_i", "d_f"
Floats = NDArray[np.float64]


class Case(NamedTuple):
    """``d_i``: how far the best item of the slate is below the best of all, at the true features, in stars; ``d_f``: the pick."""

    measure: str
    method: str
    eta: float | None  # None: the method ignores the signal
    k: int
    local_model: str = ""  # of a pick; "" for the slate
    draws: int = DRAWS

    def setting(self) -> dict[str, int | float | str]:
        found: dict[str, int | float | str] = {} if self.eta is None else {"eta": self.eta}
        found |= {"k": self.k, "draws": self.draws}
        return found | {"local_model": self.local_model} if self.local_model else found

    def __str__(self) -> str:
        where = "" if self.eta is None else f" eta={self.eta:g}"
        model = f"+{self.local_model}" if self.local_model else ""
        return f"{self.method}{model}{where} k={self.k}"


@dataclass(frozen=True, eq=False)
class Losses:
    """Trials stand in one order in every case; a slow case may have fewer, the first ones."""

    users: NDArray[np.int64]  # who each trial is of
    best: Floats  # the utility of the best of all items, in each trial
    values: Mapping[Case, Floats]

    def __contains__(self, case: Case) -> bool:
        return self._home(case) in self.values

    def of(self, case: Case) -> Floats:
        return self.values[self._home(case)]

    def mean(self, case: Case) -> Estimate:
        values = self.of(case)
        return mean(values, self.users[: len(values)])

    def kept(self, case: Case) -> Estimate:
        """The share of the best utility that is left."""
        values = self.of(case)
        best = self.best[: len(values)]
        return reduction(values, best, self.users[: len(values)])

    def gap(self, one: Case, other: Case) -> Estimate:
        """How much more ``one`` loses than ``other``, in the trials that both have."""
        first, second, users = self._both(one, other)
        return difference(first, second, users)

    def saved(self, one: Case, other: Case) -> Estimate:
        """By what share ``one`` loses less than ``other``."""
        first, second, users = self._both(one, other)
        return reduction(first, second, users)

    def cases(self, measure: str) -> list[Case]:
        return [case for case in self.values if case.measure == measure]

    def _home(self, case: Case) -> Case:
        """From a slate of one there is nothing to pick: d_f is d_i, whatever the local model."""
        return case._replace(measure=D_I, local_model="") if case.k == 1 else case

    def _both(self, one: Case, other: Case) -> tuple[Floats, Floats, NDArray[np.int64]]:
        first, second = self.of(one), self.of(other)
        least = min(len(first), len(second))
        return first[:least], second[:least], self.users[:least]


def joined(parts: Iterable[Mapping[Case, Floats]]) -> dict[Case, Floats]:
    """Consecutive parts of the trials as one."""
    values: dict[Case, list[Floats]] = {}
    for part in parts:
        for case, found in part.items():
            values.setdefault(case, []).append(found)
    return {case: np.concatenate(found) for case, found in values.items()}
