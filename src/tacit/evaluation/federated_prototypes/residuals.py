"""Signed factors of what item means and user biases leave, by alternating ridge regression."""

import numpy as np
from scipy import sparse

from tacit.evaluation.federated_prototypes.measures import Floats

RANK = 10
RIDGE = 0.1  # for each rating
ROUNDS = 5
_LEAST = 4.0  # ratings' worth of ridge that every row has


def residual_scores(
    rows: sparse.csr_array, predicted: Floats, *, rng: np.random.Generator, rank: int = RANK, ridge: float = RIDGE
) -> Floats:
    """What to add to ``predicted`` (users x items): products of factors fitted to the residuals of the rows' cells."""
    users = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    left = sparse.csr_array((rows.data - predicted[users, rows.indices], rows.indices, rows.indptr), shape=rows.shape)
    turned = sparse.csr_array(left.T.tocsr())
    items = 0.1 * rng.standard_normal((rows.shape[1], rank))
    for _ in range(ROUNDS):
        own = regressed(left, items, ridge)
        items = regressed(turned, own, ridge)
    return np.asarray(own @ items.T)


def regressed(cells: sparse.csr_array, others: Floats, ridge: float) -> Floats:
    """Each row's ridge regression on the factors of its cells; the penalty grows with their number."""
    rank = others.shape[1]
    marks = sparse.csr_array((np.ones(cells.nnz), cells.indices, cells.indptr), shape=cells.shape)
    squares = (others[:, :, None] * others[:, None, :]).reshape(len(others), rank * rank)
    grams = np.asarray(marks @ squares).reshape(-1, rank, rank)
    penalty = ridge * (np.diff(cells.indptr) + _LEAST)
    grams[:, np.arange(rank), np.arange(rank)] += penalty[:, None]
    return np.asarray(np.linalg.solve(grams, np.asarray(cells @ others)[:, :, None])[:, :, 0])
