"""Users' records as rows of whole numbers for kernels sigma I + sum of c_u c_u^T: each row's squares add up to at most 2^32.

sqrt(bound) is 2^16 steps, so bound is 2^32 squared steps, and sigma is a whole number of squared steps, rounded up. What is
proved with bound and sigma then holds of the whole numbers themselves; no float is left in it.
"""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.errors import InvalidInput, InvalidParameter
from tacit.guarantees.rounding import sqrt_down
from tacit.mechanisms.arrays import real_array, real_table
from tacit.mechanisms.grid import bounded_rows

STEPS = 1 << 16  # in sqrt(bound)
SQUARE = STEPS * STEPS  # in bound
MOST_USERS = 1 << 30  # 2^30 rows of 2^32 squared steps: every sum stays below 2^62
MOST_ITEMS = 1 << 22


def whole_rows(rows: ArrayLike | sparse.csr_array, items: int, bound: float) -> sparse.csr_array:
    """Users x items in steps of sqrt(bound) / 2^16, each row cut by itself to squares of at most 2^32. Bad cells count as 0."""
    table = bounded_rows(rows, items, sqrt_down(Fraction(bound)), norm=2, steps=STEPS)
    if table.shape[0] >= MOST_USERS:  # by its shape, which the caller's program decides
        raise InvalidInput(f"a table must have fewer than {MOST_USERS} rows: whole numbers would overflow.")
    return table


def whole_sigma(sigma: float, bound: float) -> int:
    """The jitter in squared steps, rounded up: at least 1."""
    return math.ceil(Fraction(sigma) / Fraction(bound) * SQUARE)


def selected_rows(
    rows: ArrayLike | sparse.csr_array,
    items: int,
    bound: float,
    *,
    least: int,
    among: ArrayLike | None = None,
    request: ArrayLike | None = None,
) -> tuple[sparse.csr_array, NDArray[np.int64]]:
    """``whole_rows`` of the candidates ``among`` (all items if None), weighed by ``request``; and the candidates, ascending.

    A record is cut after the other columns are gone, so that it counts in full among the candidates.
    """
    weight = None if request is None else _weights(request, items)
    if among is None:
        chosen, table = np.arange(items), whole_rows(rows, items, bound)
    else:
        chosen = _candidates(among, items, least)
        raw = real_table(rows, "rows", items)
        if raw.shape[1] != items:
            raise InvalidInput(f"expected rows of {items} numbers.")
        table = whole_rows(raw[:, chosen], chosen.size, bound)
    if weight is not None:
        # towards 0, so no row grows
        size = np.abs(table.data) * weight[chosen][table.indices] // STEPS
        table = sparse.csr_array((np.sign(table.data) * size, table.indices, table.indptr), shape=table.shape)
    return table, chosen


def _candidates(among: ArrayLike, items: int, least: int) -> NDArray[np.int64]:
    chosen = np.asarray(among)
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu" or (np.diff(np.sort(chosen)) == 0).any():
        raise InvalidParameter("`among` must be a list of different items, as whole numbers.")
    if chosen.size < least or int(chosen.min()) < 0 or int(chosen.max()) >= items:
        raise InvalidParameter(f"`among` must hold at least {least} items from 0 to {items - 1}.")
    return np.sort(chosen).astype(np.int64)


def _weights(request: ArrayLike, items: int) -> NDArray[np.int64]:
    """Weights in [0, 1] as whole 2^16ths, rounded down; what is no number counts as 0."""
    weight = real_array(request, "a request")
    if weight.shape != (items,):
        raise InvalidInput(f"a request needs one weight for each of {items} items.")
    cut = np.clip(np.nan_to_num(weight, nan=0.0, posinf=1.0, neginf=0.0), 0.0, 1.0)
    return np.floor(cut * STEPS).astype(np.int64)
