"""The greedy slate of a kernel: k times the item that raises det L_Y most (Chen, Zhang and Zhou, 2018).

Deterministic, so it is not private: for released or public data only. det L_{Y+i} is det L_Y times what is left of item i after
projecting on Y, and an incremental Cholesky factorisation keeps what is left of every item: O(n (d + k) k) for sigma I + B B^T.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.checks import finite
from tacit.errors import InvalidParameter
from tacit.models.dpp.kernels import Floats, checked_features, checked_size

Kernel: TypeAlias = NDArray[np.float64] | tuple[ArrayLike, float]  # L itself, or (B, sigma) for sigma I + B B^T

NOTHING_LEFT = 1e-12  # of an item's own L_ii: less than that is rounding
TIE = 1e-12  # gains (in logs) that differ by less are equal


def greedy_map(
    kernel: Kernel, k: int, *, log_weights: ArrayLike | None = None, fill: bool = False
) -> NDArray[np.int64]:
    """At most ``k`` items in the order they were chosen; ties go to the lowest index.

    ``log_weights`` w stand for the kernel diag(e^{w/2}) L diag(e^{w/2}), which is never formed: an item's gain is w_i + log of what
    is left of it. With w = alpha q a large alpha chooses by quality alone, alpha = 0 by diversity alone.

    Where nothing is left of any item, each larger slate has determinant 0 and greedy has no ground to choose: the slate ends there,
    shorter than k. With ``fill`` the other items follow by their own weight and size, w_i + log L_ii, ties to the lowest index.
    """
    part = _Rows(*kernel) if isinstance(kernel, tuple) else _Dense(kernel)
    size = part.diagonal
    k = checked_size(k, len(size))
    weights = _checked_weights(log_weights, len(size))
    with np.errstate(divide="ignore"):
        own = weights + np.log(size)  # what an item is worth by itself
    left, factor = size.copy(), np.empty((k, len(size)))
    free, chosen = np.ones(len(size), dtype=np.bool_), list[int]()
    while len(chosen) < k:
        usable = free & (left > (0.0 if part.least > 0.0 else NOTHING_LEFT) * size)
        if not usable.any():
            break
        item = _first_best(weights, left, usable)
        done = len(chosen)
        # One more row of the Cholesky factor: (L_i - what the rows before it explain) / its own pivot.
        explained = factor[:done, item] @ factor[:done] if done else 0.0
        factor[done] = (part.column(item) - explained) / np.sqrt(left[item])
        left = np.maximum(left - factor[done] ** 2, part.least)
        free[item] = False
        chosen.append(item)
    if fill and len(chosen) < k:
        rest = np.flatnonzero(free)
        chosen += rest[np.argsort(-own[rest], kind="stable")][: k - len(chosen)].tolist()
    return np.array(chosen, dtype=np.int64)


class _Dense:
    least = 0.0

    def __init__(self, kernel: ArrayLike) -> None:
        self._kernel = checked_features(kernel)
        if self._kernel.shape[0] != self._kernel.shape[1]:
            raise InvalidParameter("a kernel must be square; give (B, sigma) for sigma I + B B^T.")
        self.diagonal = np.diagonal(self._kernel).copy()
        if (self.diagonal < 0.0).any():
            raise InvalidParameter("a kernel must be positive semidefinite, and this one has a diagonal entry below 0.")

    def column(self, item: int) -> Floats:
        column: Floats = self._kernel[item]
        return column


class _Rows:
    """sigma I + B B^T, of which only single columns are formed. What is left of an item never falls below sigma."""

    def __init__(self, rows: ArrayLike, sigma: float) -> None:
        self._rows = checked_features(rows)
        self.least = finite("sigma", sigma)
        if self.least < 0.0:
            raise InvalidParameter(f"sigma must be at least 0, not {self.least:g}.")
        self.diagonal = np.einsum("ij,ij->i", self._rows, self._rows) + self.least

    def column(self, item: int) -> Floats:
        column: Floats = (
            self._rows @ self._rows[item]
        )  # but for sigma at the item itself, which is chosen and not looked at again
        return column


def _first_best(weights: Floats, left: Floats, usable: NDArray[np.bool_]) -> int:
    gains = np.full(len(left), -np.inf)
    gains[usable] = weights[usable] + np.log(left[usable])
    best = float(gains.max())
    return int(np.argmax(gains >= best - TIE * max(1.0, abs(best))))


def _checked_weights(log_weights: ArrayLike | None, items: int) -> Floats:
    if log_weights is None:
        return np.zeros(items)
    weights = np.asarray(log_weights, dtype=np.float64)
    if weights.shape != (items,) or not np.isfinite(weights).all():
        raise InvalidParameter(f"log_weights must be {items} finite numbers, one for each item.")
    return weights
