"""The gate: does the shared model help this entity's own users? Asked of cells held out, inside the entity, and decided there.

Which kind of fit won, the held-out scores and the flag are functions of private rows: to publish any of them is a release, and
needs a budget. No gate can promise that nobody is harmed: it is a test on a small sample.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.checks import whole
from tacit.entity.local_fit import FitSettings, Floats, Kind, LocalFit, clean, fit_local
from tacit.guarantees import Release
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise
from tacit.models.nonnegative import checked_items
from tacit.models.nonnegative_stack import Factorisation, Released

HELD_OUT = 0.1  # of an entity's cells
DATA_FREE, CONSTANT = "data-free", "constant"
NO_INFORMATION = "no information at this budget"
_CELLS = 1 << 22  # scores at a time


class PrototypeMechanism(Protocol):
    def release(self, rows: Any, noise: Noise = ...) -> Release[Any]: ...


@dataclass(frozen=True, eq=False, repr=False)
class GateReport:
    """Held-out errors, lower for better: RMSE of ratings, or mean percentile rank where zeros are observed. Private."""

    measure: str
    scores: dict[str, float]  # of the three kinds and the two controls; NaN where nothing could be held out
    chosen: Kind
    cells: int  # held out

    def __repr__(self) -> str:
        return "GateReport(private: stays inside the entity)"

    @property
    def informative(self) -> bool:
        """Whether the shared factors beat both controls: the same noise without data, and factors that are all alike."""
        return self.scores[Kind.GLOBAL] < min(self.scores[DATA_FREE], self.scores[CONSTANT])

    @property
    def flag(self) -> str | None:
        """Not that a release was poor: only that it did not show here."""
        return None if self.informative else NO_INFORMATION


def gated_fit(
    rows: Any, items: Floats, data_free: Floats | Sequence[Floats], settings: FitSettings, *, rng: np.random.Generator
) -> LocalFit:
    """The kind of fit that does best on a tenth of the entity's cells, fitted again to all of them; with its report.

    ``items`` are the shared factors, ``data_free`` those of a release of nobody's rows (see `data_free_items`). Where no cell can
    be held out, nothing speaks against the shared factors, and they are used. Shared factors that are noise beat one control of
    the same noise every second time; of several controls the best counts, and noise beats n of them once in n + 1 times.
    """
    shared = checked_items(items)
    table = clean(rows, settings.value_bound, len(shared))
    split = held_out(table, rng)
    seed = rng.spawn(1)[0].bit_generator.state  # one start for the local fit before and after

    def fitted(on: sparse.csr_array, factors: Floats, kind: Kind) -> LocalFit:
        start = np.random.default_rng()
        start.bit_generator.state = seed
        return fit_local(on, factors, kind, settings, rng=start)

    fits = {str(kind): fitted(split.train, shared, kind) for kind in Kind}
    fits[CONSTANT] = fitted(split.train, np.ones((len(shared), 1)), Kind.GLOBAL)
    error = mean_rank if settings.zeros_observed else root_mean_square
    scores = {name: error(fit, split) for name, fit in fits.items()}
    controls = [data_free] if isinstance(data_free, np.ndarray) else data_free
    scores[DATA_FREE] = min(error(fitted(split.train, one, Kind.GLOBAL), split) for one in controls)
    # On a tie the entity's own comes first: it relies on nobody.
    chosen = min(Kind, key=lambda kind: scores[kind]) if split.size else Kind.GLOBAL
    measure = "mean percentile rank" if settings.zeros_observed else "RMSE"
    report = GateReport(measure, scores, chosen, split.size)
    return replace(fitted(table, shared, chosen), report=report)


def data_free_items(
    mechanism: PrototypeMechanism, items: int, entities: int, how: Factorisation, *, noise: Noise = SYSTEM_NOISE
) -> Floats:
    """V of ``entities`` releases of nobody's rows: the same noise, no data. It says nothing about anyone and costs nothing."""
    nobody = sparse.csr_array((0, whole("items", items, least=1)))
    released: list[Released] = [
        mechanism.release(nobody, noise).value for _ in range(whole("entities", entities, least=1))
    ]
    return how.of(released)


@dataclass(frozen=True, eq=False, repr=False)
class Split:
    """What trains and what is held out. Private, and shown nowhere."""

    train: sparse.csr_array
    users: NDArray[np.int64]  # of the cells held out, ascending
    items: NDArray[np.int64]
    values: Floats

    @property
    def size(self) -> int:
        return len(self.values)


def held_out(table: sparse.csr_array, rng: np.random.Generator) -> Split:
    """A tenth of all cells, drawn by ``rng``, but never the last cell of a user."""
    users = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
    keys = rng.random(table.nnz)
    last = np.full(table.shape[0], -1.0)
    np.maximum.at(last, users, keys)
    free = np.flatnonzero(keys < last[users])
    wanted = min(math.ceil(HELD_OUT * table.nnz), free.size)
    out = np.zeros(table.nnz, dtype=np.bool_)
    out[free[np.argsort(keys[free], kind="stable")[:wanted]]] = True
    starts = np.concatenate([[0], np.cumsum(~out)])[table.indptr]
    train = sparse.csr_array((table.data[~out], table.indices[~out], starts), shape=table.shape)
    return Split(train, users[out], table.indices[out].astype(np.int64), table.data[out])


def root_mean_square(fit: LocalFit, split: Split) -> float:
    """The error of the held-out values; NaN where there are none."""
    if not split.size:
        return math.nan
    return math.sqrt(float(np.mean((fit.at(split.users, split.items) - split.values) ** 2)))


def mean_rank(fit: LocalFit, split: Split) -> float:
    """Where held-out items stand among all that a user does not train with, weighed by their values: 0 is best, .5 is chance.

    (items strictly higher + half of those that tie) / (candidates - 1). NaN where nothing of weight is held out.
    """
    weighed, weight = 0.0, 0.0
    count, width = split.train.shape
    step = max(1, _CELLS // max(width, 1))
    for first in range(0, count, step):
        scores = fit.scores(slice(first, first + step))
        low, high = np.searchsorted(split.users, [first, first + len(scores)])
        for cell in range(low, high):
            user = int(split.users[cell])
            mine = split.train.indices[split.train.indptr[user] : split.train.indptr[user + 1]]
            candidates = np.delete(scores[user - first], mine)
            own = scores[user - first, split.items[cell]]
            above = (candidates > own).sum() + 0.5 * ((candidates == own).sum() - 1)
            weighed += split.values[cell] * above / max(len(candidates) - 1, 1)
            weight += split.values[cell]
    return weighed / weight if weight > 0.0 else math.nan
