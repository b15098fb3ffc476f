"""What is held out: as the paper does it; and cells of every user, half of whom decide the gate, the others being reported."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.data import Ratings, leave_out_per_user

CELLS = 5  # held out of a user
KEPT = 3  # of every user at least so many cells train
SHARE = 0.2  # of the users are tested in the paper's split


@dataclass(frozen=True, eq=False, repr=False)
class Held:
    """``train`` and ``test``: users x items. ``reported``: whose figures count. ``entities[user]``: who holds her."""

    train: sparse.csr_array
    test: sparse.csr_array
    reported: NDArray[np.bool_]
    entities: NDArray[np.int64]
    count: int  # of entities

    def __repr__(self) -> str:
        return f"Held({self.train.shape[0]:,} users, {self.train.shape[1]:,} items, {self.count:,} entities)"

    @property
    def users(self) -> int:
        return int(self.train.shape[0])

    @property
    def items(self) -> int:
        return int(self.train.shape[1])

    def members(self, entity: int) -> NDArray[np.int64]:
        return np.flatnonzero(self.entities == entity)


def paper_split(ratings: Ratings, *, rng: np.random.Generator) -> Held:
    """A fifth of the users, five of their cells each; the rest is training. Users of fewer cells keep one."""
    split = leave_out_per_user(ratings, CELLS, rng=rng)
    chosen = np.zeros(ratings.n_users, dtype=np.bool_)
    chosen[rng.permutation(ratings.n_users)[: round(SHARE * ratings.n_users)]] = True
    tested = chosen[split.test.users]
    train = sparse.csr_array(table(split.train) + table(split.test.subset(~tested)))
    train.sort_indices()
    return Held(train, table(split.test.subset(tested)), chosen, *_entities(ratings))


def every_user(ratings: Ratings, *, rng: np.random.Generator, marks: bool = True) -> Held:
    """Up to five cells of every user are held out, at least three remain. A random half is reported. ``marks``: values become 1."""
    split = leave_out_per_user(ratings, CELLS, keep=KEPT, rng=rng)
    reported = np.zeros(ratings.n_users, dtype=np.bool_)
    reported[rng.permutation(ratings.n_users)[ratings.n_users // 2 :]] = True
    train, test = table(split.train), table(split.test)
    return Held(ones(train) if marks else train, ones(test) if marks else test, reported, *_entities(ratings))


def table(ratings: Ratings) -> sparse.csr_array:
    shape = (ratings.n_users, ratings.n_items)
    return sparse.csr_array((ratings.values.astype(np.float64), ratings.items, ratings.starts), shape=shape)


def ones(rows: sparse.csr_array) -> sparse.csr_array:
    return sparse.csr_array((np.ones(rows.nnz), rows.indices, rows.indptr), shape=rows.shape)


def _entities(ratings: Ratings) -> tuple[NDArray[np.int64], int]:
    if ratings.entities is None:
        return np.zeros(ratings.n_users, dtype=np.int64), 1
    return ratings.entities.codes.astype(np.int64), len(ratings.entities)
