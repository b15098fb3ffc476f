"""Who is asked: a fifth of those who rated in both domains lose all they rated in the target, which is then to be predicted."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.data import Ratings, TwoDomains
from tacit.errors import InvalidParameter

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SHARE = 0.2
LEAST = 5  # ratings on each side of those who may be asked
_FEWEST = 2  # users asked, or no error could be told


@dataclass(frozen=True, eq=False, repr=False)
class Held:
    """What is known: ``ratings``, users x items of both domains, source items first, ``times`` beside its values.

    ``asked``: the users without a target profile. ``hidden``: what they rated there, one row for each of them.
    """

    world: str
    ratings: sparse.csr_array
    n_source: int
    times: Ints | None
    low: float
    high: float
    asked: Ints
    hidden: sparse.csr_array
    straddlers: int  # before any profile was hidden

    def __repr__(self) -> str:
        return f"Held({self.world!r}: {self.ratings.shape[0]:,} users, {self.asked.size:,} asked, {self.hidden.nnz:,} hidden)"

    @property
    def n_target(self) -> int:
        return int(self.ratings.shape[1]) - self.n_source

    @property
    def source(self) -> sparse.csr_array:
        """What the asked users rated in the source, one row for each of them."""
        return sparse.csr_array(self.ratings[self.asked][:, : self.n_source])

    @property
    def cells(self) -> tuple[Ints, Ints]:
        """Row and target item of every hidden rating."""
        rows = np.repeat(np.arange(self.asked.size), np.diff(self.hidden.indptr))
        return rows, self.hidden.indices.astype(np.int64)

    def pairs(self, listed: int) -> tuple[Ints, Ints]:
        """What is predicted: every hidden cell, and all target items of the first ``listed`` asked users, who are in random order
        as far as anything is concerned. Rows of asked users and target items, both from 0."""
        rows, items = self.cells
        some = min(listed, self.asked.size)
        rest = rows >= some
        users = np.concatenate([np.repeat(np.arange(some), self.n_target), rows[rest]])
        return users, np.concatenate([np.tile(np.arange(self.n_target), some), items[rest]])


def straddlers(two: TwoDomains, least: int = LEAST) -> Ints:
    """The users who rated so many items in each domain."""
    return np.flatnonzero((two.source.counts >= least) & (two.target.counts >= least)).astype(np.int64)


def hidden(two: TwoDomains, world: str, *, rng: np.random.Generator, share: float = SHARE) -> Held:
    """A random ``share`` of the straddlers is asked."""
    both = straddlers(two)
    asked = rng.permutation(both)[: round(share * both.size)]
    if asked.size < _FEWEST:
        raise InvalidParameter(
            f"too few users rated {LEAST} items in each domain: {both.size:,}, of whom a fifth are asked; at least "
            f"{_FEWEST} must be."
        )
    lost = np.zeros(two.n_users, dtype=np.bool_)
    lost[asked] = True
    rows = lost[two.target.users]
    known, test = two.target.subset(~rows), two.target.subset(rows)
    table = sparse.hstack([_table(two.source), _table(known)], format="csr")
    times = None
    if two.source.times is not None and known.times is not None:
        order = np.lexsort((np.arange(table.nnz), np.concatenate([two.source.users, known.users])))
        times = np.concatenate([two.source.times, known.times])[order]
    return Held(
        world, sparse.csr_array(table), two.source.n_items, times, two.target.scale.low, two.target.scale.high, asked,
        sparse.csr_array(_table(test)[asked]), int(two.shared.size),
    )  # fmt: skip


def _table(ratings: Ratings) -> sparse.csr_array:
    shape = (ratings.n_users, ratings.n_items)
    return sparse.csr_array((ratings.values.astype(np.float64), ratings.items, ratings.starts), shape=shape)
