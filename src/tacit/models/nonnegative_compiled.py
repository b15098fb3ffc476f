"""The inner steps of the non-negative factorisation, compiled by numba (extra `fast`); `nonnegative_plain` says what they do.

Rows do not depend on each other, so a step on many threads gives the bits of a step on one.
"""

import numpy as np
from numba import njit, prange


@njit(cache=True)
def _sweep(row, product, gram, ridge, sweeps):  # type: ignore[no-untyped-def]
    rank = row.size
    for _ in range(sweeps):
        for c in range(rank):
            total = gram[c, c] + ridge
            if total > 0.0:
                rest = product[c] + gram[c, c] * row[c]
                for d in range(rank):
                    rest -= gram[c, d] * row[d]
                row[c] = max(rest, 0.0) / total


@njit(cache=True)
def _masked_row(i, starts, columns, values, other, current, ridges, anchor, pull, sweeps):  # type: ignore[no-untyped-def]
    rank = current.shape[1]
    row = current[i]
    if starts[i] == starts[i + 1]:
        for c in range(rank):
            row[c] = anchor[i, c] if pull > 0.0 else 0.0
        return 0.0
    gram = np.zeros((rank, rank))
    product = np.zeros(rank)
    squares = 0.0
    for cell in range(starts[i], starts[i + 1]):
        near = other[columns[cell]]
        value = values[cell]
        squares += value * value
        for c in range(rank):
            product[c] += value * near[c]
            for d in range(c + 1):
                gram[c, d] += near[c] * near[d]
    for c in range(rank):
        for d in range(c):
            gram[d, c] = gram[c, d]
    aim = product.copy()
    if pull > 0.0:
        for c in range(rank):
            aim[c] += pull * anchor[i, c]
    _sweep(row, aim, gram, ridges[i] + pull, sweeps)
    fitted = 0.0
    for c in range(rank):
        inner = 0.0
        for d in range(rank):
            inner += gram[c, d] * row[d]
        fitted += row[c] * (inner - 2.0 * product[c])
    return max(squares + fitted, 0.0)


@njit(cache=True)
def masked_step(starts, columns, values, other, current, ridges, anchor, pull, sweeps):  # type: ignore[no-untyped-def]
    loss = np.empty(current.shape[0])
    for i in range(current.shape[0]):
        loss[i] = _masked_row(i, starts, columns, values, other, current, ridges, anchor, pull, sweeps)
    return loss


@njit(cache=True, parallel=True)
def masked_step_parallel(starts, columns, values, other, current, ridges, anchor, pull, sweeps):  # type: ignore[no-untyped-def]
    loss = np.empty(current.shape[0])
    for i in prange(current.shape[0]):
        loss[i] = _masked_row(i, starts, columns, values, other, current, ridges, anchor, pull, sweeps)
    return loss


@njit(cache=True)
def shared_step(products, gram, current, ridges, sweeps):  # type: ignore[no-untyped-def]
    for i in range(current.shape[0]):
        _sweep(current[i], products[i], gram, ridges[i], sweeps)
