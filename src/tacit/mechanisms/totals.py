"""Exact sums over users, of which a release is made: computed here, or elsewhere for tables that no one machine holds."""

from collections.abc import Iterator
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.errors import InvalidInput
from tacit.guarantees import ONE_USER, Guarantee, Loss, LossKind
from tacit.guarantees.gaussian import epsilon_of_gaussian
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise
from tacit.mechanisms.rating_bounds import require_ratings

_CELLS = 1 << 22  # of a table at a time


class Summed(Protocol):
    """A step that is a sum over users: the totals of two tables, one below the other, are the sum of their totals."""

    @property
    def length(self) -> int:
        """How many whole numbers ``totals`` gives."""

    def totals(self, rows: Any, noise: Noise = SYSTEM_NOISE) -> NDArray[np.int64]:
        """The exact sums in steps. Private."""


@runtime_checkable
class TotalsOnDemand(Protocol):
    """The rows of all users, of which only sums are asked.

    ``totals(of)`` must be ``of.totals`` of all rows: of parts of the table that hold every user's row whole, and once, added up.
    """

    def totals(self, of: Summed, /) -> NDArray[np.int64]:
        """The totals of all users' clipped rows, in grid steps, however they are added up."""


Rows: TypeAlias = "sparse.csr_array | NDArray[Any] | TotalsOnDemand"


def totals_of(step: Summed, rows: Rows, noise: Noise) -> NDArray[np.int64]:
    """A copy of the exact sums of ``step``, from wherever they come."""
    if not isinstance(rows, TotalsOnDemand):
        return step.totals(rows, noise)
    total = np.array(rows.totals(step))
    if total.shape != (step.length,) or total.dtype != np.int64:
        raise InvalidInput(f"expected totals of {step.length} whole numbers of 64 bits, one for each sum.")
    return total


def stretches(rows: Any, items: int) -> Iterator[Any]:
    """The table a stretch of users at a time, every row whole. Other tables than ratings of ``items`` are refused."""
    require_ratings(rows, items)
    if sparse.issparse(rows) and rows.format == "csr" and rows.nnz > _CELLS:
        wanted = np.arange(_CELLS, rows.nnz, _CELLS)
        ends = np.unique(np.concatenate([[0], np.searchsorted(rows.indptr, wanted), [rows.shape[0]]]))
    elif isinstance(rows, np.ndarray) and rows.size > _CELLS:
        ends = np.append(np.arange(0, rows.shape[0], max(1, _CELLS // rows.shape[1])), rows.shape[0])
    else:
        yield rows
        return
    for first, last in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        yield rows[first:last]


def gaussian_claim(name: str, mu: float, delta: float) -> Guarantee:
    """What a Gaussian loss mu promises of one user, added or removed."""
    loss = Loss(LossKind.GAUSSIAN, mu)
    return Guarantee(epsilon_of_gaussian(mu, delta), ONE_USER, delta=delta, proof=name, loss=loss)
