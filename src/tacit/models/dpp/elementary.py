"""Elementary symmetric polynomials in logarithms, and the choice of eigenvectors that they govern.

e_r(x_1..x_i) = e_r(x_1..x_(i-1)) + x_i e_(r-1)(x_1..x_(i-1)), so that row r of the table is a running sum of x_i times row r-1.
Logarithms neither overflow nor underflow; a value of 0 is -inf.
"""

import numpy as np
from numpy.typing import NDArray

from tacit.models.dpp.coins import Coins

Floats = NDArray[np.float64]
Items = NDArray[np.int64]

NONE = -1  # fills rows of indices that are shorter than the longest


def log_table(log_values: Floats, k: int) -> Floats:
    """(k + 1) x (n + 1): entry (r, i) is log e_r of the first i values. O(n k)."""
    values = np.asarray(log_values, dtype=np.float64)
    table = np.full((k + 1, values.size + 1), -np.inf)
    table[0] = 0.0
    for r in range(1, k + 1):
        table[r, 1:] = np.logaddexp.accumulate(values + table[r - 1, :-1])
    return table


def log_elementary(log_values: Floats, k: int) -> Floats:
    """log e_0 .. log e_k of the values whose logarithms are given; -inf where the polynomial is 0."""
    values = np.asarray(log_values, dtype=np.float64)
    values = values[values > -np.inf]
    found = np.full(k + 1, -np.inf)
    found[0] = 0.0
    running = np.zeros(values.size)
    for r in range(1, min(k, values.size) + 1):
        sums = np.logaddexp.accumulate(values + running)
        found[r] = sums[-1]
        running = np.concatenate(([-np.inf], sums[:-1]))
    return found


def choose(table: Floats, sizes: Items, coins: Coins) -> Items:
    """For each size j: j of the values, a set C with probability prod_C x / e_j; rows below the largest size end in `NONE`.

    The last value of the set is among the first i with probability e_r(x_1..x_i) / e_r(x_1..x_m), where r are still to be chosen
    from the first m: one binary search in row r, instead of a coin for every value. All rows that want r more share it.
    """
    most = int(sizes.max(initial=0))
    chosen = np.full((sizes.size, most), NONE, dtype=np.int64)
    order = np.argsort(-sizes, kind="stable")  # the rows that want r more come first
    wanting = sizes.size - np.cumsum(np.bincount(sizes, minlength=most + 1))
    left = np.full(sizes.size, table.shape[1] - 1, dtype=np.int64)  # m, for each row
    logs = np.log(coins.uniforms(sizes.size * most)).reshape(most, sizes.size)
    for r in range(most, 0, -1):
        rows = slice(0, wanting[r - 1])
        aims = logs[r - 1, rows] + table[r, left[rows]]
        left[rows] = np.searchsorted(table[r], aims, side="left") - 1  # never a value of 0: there the row does not rise
        chosen[rows, r - 1] = left[rows]
    back = np.empty_like(chosen)
    back[order] = chosen
    return back
