"""Small worlds as frames and as the tables of one machine."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from scipy import sparse

PROFILES = """
u0: 0=5,1=4,2=1 | u1: 0=2,1=1,2=5 | u2: 1=5,3=4,4=2 | u3: 1=2,3=1,4=5
| u4: 3=5,5=4,4=1 | u5: 3=2,5=1,4=4 | u6: 1=5,3=3,4=4 | u7: 3=2,4=5,5=4
"""


@dataclass(frozen=True, eq=False)
class World:
    """Ratings in any order; items are numbers, those below ``n_source`` of the source."""

    users: NDArray[np.int64]
    items: NDArray[np.int64]
    values: NDArray[np.float64]
    times: NDArray[np.int64]
    n_items: int
    n_source: int

    def frame(self, session: SparkSession, *, timed: bool = True) -> DataFrame:
        columns = {
            "user": [f"u{user:05d}" for user in self.users.tolist()],
            "item": self.items,
            "value": self.values,
            "domain": ["source" if item < self.n_source else "target" for item in self.items.tolist()],
        }
        return session.createDataFrame(pa.table(columns | ({"time": self.times} if timed else {})))

    def listed(self, session: SparkSession) -> DataFrame:
        """The public list of items, in no order."""
        items = np.random.default_rng(0).permutation(self.n_items)
        domain = ["source" if item < self.n_source else "target" for item in items.tolist()]
        return session.createDataFrame(pa.table({"item": items, "domain": domain}))

    def table(self) -> tuple[sparse.csr_array, NDArray[np.int64]]:
        """Users x items, and the times beside the values."""
        order = np.lexsort((self.items, self.users))
        starts = np.concatenate([[0], np.cumsum(np.bincount(self.users))])
        shape = (starts.size - 1, self.n_items)
        return sparse.csr_array((self.values[order], self.items[order], starts), shape=shape), self.times[order]


def small() -> World:
    """Eight users, six items and 24 ratings, for which every number is known."""
    rows = [
        (user, *map(int, rating.split("=")), time)
        for user, profile in enumerate(PROFILES.replace("\n", "").split("|"))
        for time, rating in enumerate(profile.split(": ")[1].split(","))
    ]
    users, items, values, times = np.array(rows).T
    return World(users, items, values.astype(np.float64), times, 6, 3)


def layered(seed: int = 5, users: int = 700) -> World:
    """A few thousand ratings in tenths, with items of every layer: people rate in two stretches of a chain of items that follow
    each other, and only its middle has people of both domains. The ends of the chain stand apart."""
    rng = np.random.default_rng(seed)
    stretch, stretches = 12, 8  # islands, far, near, bridge | bridge, near, far, islands
    begins = np.array([0, 1, 2, 3, 4, 5, 6])
    joined = [(0, 0), *((begin, begin + 1) for begin in begins[1:-1]), (7, 7)]
    rows = []
    for user in range(users):
        first, second = joined[rng.integers(len(joined))]
        for part in {first, second}:
            chosen = rng.choice(stretch, size=int(rng.integers(3, 6)), replace=False) + part * stretch
            rows += [(user, int(item)) for item in chosen]
    pairs = np.array(rows)[rng.permutation(len(rows))]
    taste, quality = rng.normal(size=(users, 2)), rng.normal(size=(stretch * stretches, 2))
    raw = 3.0 + (taste[pairs[:, 0]] * quality[pairs[:, 1]]).sum(axis=1) + 0.5 * rng.normal(size=len(pairs))
    values = np.clip(np.round(raw, 1), 1.0, 5.0)
    values[pairs[:, 0] % 50 == 0] = 3.7  # constant raters, whose mean a float does not hold
    values = values.astype(np.float32).astype(np.float64)
    times = rng.integers(0, 5, size=len(pairs))  # few, so that many are equal
    return World(pairs[:, 0], pairs[:, 1], values, times, stretch * stretches, stretch * stretches // 2)
