"""Small tables of two domains, the mechanisms on them, and what they sum up, slowly."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms import (
    OffsetSums,
    PairMoments,
    RatingBounds,
    RatingMoments,
    TransferMoments,
)
from tacit.mechanisms.rating_rows import COARSE
from tests.unit.mechanisms.test_rating_bounds import odd_cells, slow_cut, slow_row

OWN, FIXED = RatingBounds(1.0, 5.0), RatingBounds(1.0, 5.0, centre=3.0)
ITEMS, SOURCE, HEAD = 6, 2, (4, 0, 5, 1)
MU, DELTA = 0.8, 1e-6
OFFSETS = OffsetSums(ITEMS, OWN, MU, DELTA)
PAIRS = PairMoments(ITEMS, HEAD, OWN, MU, DELTA)
MOMENTS = RatingMoments(ITEMS, SOURCE, OWN, MU, DELTA, most_items=4)
TRANSFER = TransferMoments(ITEMS, SOURCE, OWN, MU, DELTA, head_size=3)
PARTS = [
    OFFSETS,
    PAIRS,
    MOMENTS,
    replace(OFFSETS, bounds=FIXED),
    replace(PAIRS, bounds=FIXED),
    replace(MOMENTS, bounds=FIXED),
]


def slow_offsets(users: Any, mechanism: OffsetSums) -> list[int]:
    total = [0] * (2 * mechanism.items)
    for cells in users:
        row = slow_row(cells, mechanism.bounds)
        bound, mask = (int(Fraction(length) / mechanism.bounds.step) for length in (mechanism.norm, mechanism.mask))
        cut, marked = slow_cut(row, bound, mask)
        for item, steps in cut.items():
            total[item] += steps
            total[mechanism.items + item] += marked
    return total


def slow_pairs(users: Any, mechanism: PairMoments) -> list[int]:
    bound = int(Fraction(mechanism.norm) / mechanism.bounds.step) // COARSE
    total = []
    rows = []
    for cells in users:
        row = {item: steps for item, steps in slow_row(cells, mechanism.bounds).items() if item in mechanism.head}
        rows.append(slow_cut(row, bound, coarse=COARSE)[0])
    for one, other in combinations(mechanism.head, 2):
        total.append(sum(row.get(one, 0) * row.get(other, 0) for row in rows))
    return total


def slow_moments(users: Any, mechanism: RatingMoments) -> list[int]:
    """Of users with few ratings, of whom none is drawn."""
    bound = int(Fraction(mechanism.norm) / mechanism.bounds.step) // COARSE
    rows = [slow_cut(slow_row(cells, mechanism.bounds), bound, coarse=COARSE)[0] for cells in users]
    pairs = combinations_with_replacement(range(mechanism.items), 2)
    sides = [({item < mechanism.n_source for item in row}) for row in rows]
    return [
        *(sum(row.get(one, 0) * row.get(other, 0) for row in rows) for one, other in pairs),
        *(sum(row.get(item, 0) for row in rows) for item in range(mechanism.items)),
        *(sum(item in row for row in rows) for item in range(mechanism.items)),
        *(sum(side == wanted for side in sides) for wanted in ({True}, {False}, {True, False})),
    ]


def few_odd_cells(rng: np.random.Generator, users: int) -> Any:
    return [[cells[i] for i in range(min(4, len(cells)))] for cells in odd_cells(rng, users, ITEMS)]


def costs(mechanism: Any, change: NDArray[np.int64]) -> Fraction:
    """What a change of the sums costs, as a share of mu^2: its squares over the variance of each number's noise."""
    if isinstance(mechanism, RatingMoments):
        triangle = mechanism.items * (mechanism.items + 1) // 2
        parts = np.split(change, np.cumsum([triangle, mechanism.items, mechanism.items]))
        variances = tuple(law.width for law in mechanism.noise_laws)
    else:
        parts, variances = [change], (mechanism.noise_law.width,)
    squares = [sum(x * x for x in part.tolist()) for part in parts]
    spent = sum((square / variance for square, variance in zip(squares, variances, strict=True)), Fraction(0))
    return spent / Fraction(mechanism.mu) ** 2


def hostile(rng: np.random.Generator) -> list[NDArray[np.float64]]:
    """Single users, dense: at both ends of the scale, all rated, few rated, beyond the scale, not numbers."""
    rows = [np.array(row, dtype=np.float64) for row in np.ndindex(*([2] * ITEMS))]
    rows = [np.where(row == 0, 1.0, 5.0) for row in rows]
    rows += [np.where(rng.random(ITEMS) < 0.4, math.nan, row) for row in rows]
    rows += [rng.uniform(-3, 9, ITEMS) for _ in range(30)]
    rows += [np.where(rng.random(ITEMS) < 0.3, rng.choice([math.inf, -math.inf, 1e308, 0.0]), 4.0) for _ in range(20)]
    return rows
