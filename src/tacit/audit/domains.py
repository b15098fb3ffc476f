"""Small domains, whole: every input, and every pair of neighbouring inputs."""

from collections.abc import Sequence
from itertools import product
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.audit.exact import Pairs

Table: TypeAlias = NDArray[np.float64]


def score_box(candidates: int, *, steps: int, low: float = 0.0, high: float = 1.0) -> list[Table]:
    """Every vector of scores whose entries are one of the ``steps`` + 1 grid points from low to high."""
    grid = np.linspace(low, high, steps + 1)
    return [np.array(scores) for scores in product(grid, repeat=candidates)]


def vote_tables(users: int, candidates: int) -> list[Table]:
    """Every table of 0/1 votes with at most that many users, the empty table among them."""
    return tables(list(product((0.0, 1.0), repeat=candidates)), users)


def tables(rows: Sequence[Sequence[float]], users: int) -> list[Table]:
    """Every table of at most ``users`` rows taken from ``rows``, in every order."""
    width = len(rows[0])
    return [
        np.array(chosen, dtype=np.float64).reshape(size, width)
        for size in range(users + 1)
        for chosen in product(rows, repeat=size)
    ]


def added_or_removed(inputs: Sequence[Table]) -> Pairs:
    """All pairs of tables of which one is the other without one of its rows."""
    place = {_key(table): index for index, table in enumerate(inputs)}
    pairs = {
        (index, place[_key(np.delete(table, user, axis=0))])
        for index, table in enumerate(inputs)
        for user in range(table.shape[0])
    }
    return np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)


def replaced(inputs: Sequence[Table]) -> Pairs:
    """All pairs of tables of equal size that differ in exactly one row."""
    groups: dict[tuple[int, int, bytes], list[int]] = {}
    for index, table in enumerate(inputs):
        for user in range(table.shape[0]):
            rest = np.delete(table, user, axis=0)
            groups.setdefault((table.shape[0], user, rest.tobytes()), []).append(index)
    pairs = {(first, second) for group in groups.values() for first in group for second in group if first < second}
    return np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)


def _key(table: Table) -> tuple[tuple[int, ...], bytes]:
    return table.shape, table.tobytes()  # bytes, so that a NaN equals itself
