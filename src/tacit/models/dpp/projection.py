"""The projection process of orthonormal vectors, and the spectrum that the vectors come from.

By the chain rule, items come one after the other. The next item is i with probability proportional to the squared
distance of its entries from the span of the items picked so far, because the volume is the product of these
distances. The entries of an item live in j dimensions. `projection_samples` does this with one product of the
vectors, a pass over the catalogue, for every item.

`samples_by_proposal` needs no pass over the catalogue. It proposes one of the j chosen vectors at random and in it an
item with the probability of its squared entry (vectors have length 1), so item i comes with probability |v_i|^2 / j
for its j entries v_i. It accepts with (squared distance of v_i from the span) / |v_i|^2. The accepted items follow
the chain rule exactly. With t items picked, j - t of j proposals are accepted, so a slate needs j H_j proposals on
average. A binary search in running sums over blocks of items, then within the block, finds an item: the setup is one
pass, and the time of a draw does not grow with the catalogue.
"""

from typing import Any

import numpy as np
from scipy import sparse

from tacit.errors import InvalidInput
from tacit.models.arrays import Floats, Ints
from tacit.models.dpp.laws import NONE, Coins

_CELLS = 500_000  # entries of vectors or proposals in memory at once
_BLOCK = 32  # items
_TINY = np.finfo(np.float64).tiny
_EPSILON = 2.0**-52
_SPAN = 1e-4  # of the largest eigenvalue: smaller ones are computed again, from what the larger ones leave of B
_SQUARES_FIT = 300  # squares of numbers within 2^-300 .. 2^300, and their sums, neither overflow nor underflow


def projection_samples(vectors: Floats, chosen: Ints, coins: Coins) -> Ints:
    """As many items as vectors for each row of ``chosen``, which lists some of the r x n ``vectors``. Short rows end in `NONE`."""
    items = np.full(chosen.shape, NONE, dtype=np.int64)
    sizes = (chosen != NONE).sum(axis=1)
    order = np.argsort(-sizes, kind="stable")  # longer rows first: at each step a front part continues
    batch = max(1, _CELLS // max(1, vectors.shape[1] * chosen.shape[1]))
    for start in range(0, len(chosen), batch):
        slates = order[start : start + batch]
        most = sizes[slates[0]]
        items[slates, :most] = _batch_samples(vectors, chosen[slates, :most], sizes[slates], coins)
    return items


def _batch_samples(vectors: Floats, chosen: Ints, sizes: Ints, coins: Coins) -> Ints:
    """The chain rule for slates of falling sizes, all at once."""
    count, most = chosen.shape
    rows = vectors[chosen]
    rows[chosen == NONE] = 0.0
    distances = np.einsum("sji,sji->si", rows, rows)  # squared, slates x items
    spanned = np.zeros((count, most, most))
    items = np.full((count, most), NONE, dtype=np.int64)
    uniforms = coins.uniforms(count * most).reshape(most, count)
    for step in range(most):
        active = int(np.count_nonzero(sizes > step))
        slates = np.arange(active)
        item = draw_indices(distances[:active], uniforms[step, :active])
        direction = _orthogonal_part(spanned[:active, :step], rows[slates, :, item])
        spanned[:active, step] = direction
        items[:active, step] = item
        distances[:active] -= np.square((direction[:, None, :] @ rows[:active])[:, 0])
        np.maximum(distances, 0.0, out=distances)
        distances[slates, item] = 0.0
    return items


def draw_indices(weights: Floats, uniforms: Floats) -> Ints:
    """An index for each row of weights, with probability proportional to its weight; never one of weight 0."""
    running = np.cumsum(weights, axis=1)
    # Below the sum even when rounded, because uniform numbers are at most 1 - 2^-53.
    targets = uniforms * running[:, -1]
    if len(weights) == 1:
        return np.asarray(np.searchsorted(running[0], targets, side="right"), dtype=np.int64)
    return np.asarray(np.count_nonzero(running <= targets[:, None], axis=1), dtype=np.int64)


def _orthogonal_part(spanned: Floats, rows: Floats) -> Floats:
    """The part of each row orthogonal to the orthonormal ``spanned``, scaled to length 1. Two passes are enough in floats."""
    for _ in range(2):
        if spanned.shape[1]:
            rows = rows - ((rows[:, None, :] @ spanned.transpose(0, 2, 1)) @ spanned)[:, 0]
        rows = rows / np.sqrt(np.einsum("sj,sj->s", rows, rows))[:, None]
    return rows


def samples_by_proposal(vectors: Floats, running: Floats, chosen: Ints, coins: Coins) -> Ints:
    """As many items as vectors for each row of ``chosen`` (vectors, `NONE` at the end), in the order of picking.

    Shorter rows end in `NONE`.
    """
    items = np.full(chosen.shape, NONE, dtype=np.int64)
    most = max(1, chosen.shape[1])
    # j H_j and about two standard deviations: few slates need a second round.
    proposals = int(most * (np.log(most) + 2.5)) + 1
    sizes = (chosen != NONE).sum(axis=1)
    unfinished = np.flatnonzero(sizes)
    batch = max(1, _CELLS // (proposals * max(most, _BLOCK)))
    for start in range(0, unfinished.size, batch):
        slates = unfinished[start : start + batch]
        while slates.size:
            offered = propose(vectors, running, chosen[slates], sizes[slates], proposals, coins)
            bars = coins.uniforms(offered.size).reshape(offered.shape)
            items[slates] = accept(vectors, chosen[slates], items[slates], offered, bars)
            slates = slates[items[slates, sizes[slates] - 1] == NONE]
    return items


def propose(vectors: Floats, running: Floats, chosen: Ints, sizes: Ints, proposals: int, coins: Coins) -> Ints:
    """Items, slates x proposals: a uniform choice among each slate's vectors, then an item by its squared entry."""
    shape = (len(chosen), proposals)
    uniforms = coins.uniforms(3 * len(chosen) * proposals).reshape(3, *shape)
    choice = (uniforms[0] * sizes[:, None]).astype(np.int64)
    vector = chosen[np.arange(len(chosen))[:, None], choice].ravel()
    targets = uniforms[1].ravel() * running[vector, -1]
    order = np.argsort(vector, kind="stable")
    starts = np.flatnonzero(np.diff(vector[order], prepend=-1))
    block = np.empty(vector.size, dtype=np.int64)
    for positions in np.split(order, starts[1:]):
        block[positions] = np.searchsorted(running[vector[positions[0]]], targets[positions], side="right")
    n = vectors.shape[1]
    inside = np.minimum(block, running.shape[1] - 1)[:, None] * _BLOCK + np.arange(_BLOCK)
    squares = np.square(vectors[vector[:, None], np.minimum(inside, n - 1)])
    squares[inside >= n] = 0.0
    sums = np.cumsum(squares, axis=1)
    steps = (sums <= (uniforms[2].ravel() * sums[:, -1])[:, None]).sum(axis=1)
    items: Ints = np.minimum(inside[:, 0] + steps, n - 1).reshape(shape)
    return items


def accept(vectors: Floats, chosen: Ints, picked: Ints, offered: Ints, bars: Floats) -> Ints:
    """The items ``picked`` so far, then accepted proposals in their order, until no vector or no proposal is left.

    ``spanned[:, t]`` is the t-th direction picked, ``along[:, t]`` holds the proposals' parts along it, and ``left``
    what is left of their squared lengths.
    """
    slates, sizes = np.arange(len(chosen)), (chosen != NONE).sum(axis=1)
    before = int((picked != NONE).sum(axis=1).max())
    # Items of an earlier round come first, and are always accepted.
    offered = np.concatenate([picked[:, :before], offered], axis=1)
    rows = vectors[chosen[:, :, None], offered[:, None, :]]
    rows[chosen == NONE] = 0.0
    left = np.einsum("sjp,sjp->sp", rows, rows)
    again = np.where(picked[:, :before] == NONE, np.inf, -np.inf)
    bars = np.concatenate([again, bars * left[:, before:]], axis=1)
    spanned = np.zeros((len(chosen), chosen.shape[1], chosen.shape[1]))
    along = np.zeros((len(chosen), chosen.shape[1], offered.shape[1]))
    picked = np.full(chosen.shape, NONE, dtype=np.int64)
    for step in range(chosen.shape[1]):
        passed = bars < left
        first = passed.argmax(axis=1)
        hit = passed[slates, first] & (step < sizes)
        if not hit.any():
            break
        direction = rows[slates, :, first][:, None, :]
        if step:
            direction -= along[slates, :step, first][:, None, :] @ spanned[:, :step]
        direction *= (hit / np.sqrt(np.maximum(left[slates, first], _TINY)))[:, None, None]
        spanned[:, step, None] = direction
        along[:, step, None] = part = direction @ rows
        left -= np.square(part[:, 0])
        item = np.where(hit, offered[slates, first], NONE)
        picked[:, step] = item
        bars[offered == item[:, None]] = np.inf  # rejected proposals stay rejected: distances only fall
    return picked


def running_squares(vectors: Floats) -> Floats:
    """The running sums of the squares of each of the r x n ``vectors``, over blocks of items."""
    r, n = vectors.shape
    whole = n - n % _BLOCK
    blocks = vectors[:, :whole].reshape(r, whole // _BLOCK, _BLOCK)
    sums = np.einsum("rbi,rbi->rb", blocks, blocks)
    rest = np.square(vectors[:, whole:]).sum(axis=1, keepdims=True)
    return np.cumsum(np.concatenate([sums, rest], axis=1), axis=1)


def spectrum(rows: Any) -> tuple[Floats, Floats]:
    """The logarithms of the r eigenvalues of B B^T above 0, and its eigenvectors in r x n rows. B is n x d, dense or sparse.

    They come from the small Gram matrix B^T B. An eigenvalue counts as 0 if its square root is below 8 d 2^-52 of B's
    Frobenius norm, the rounding of dependent columns. (For a sparse B with more columns than rows: if the eigenvalue
    itself is below 8 n 2^-52 of the largest.)

    O(n d^2 + d^3), or O(d n^2 + n^3) if that is less.
    """
    rows = _floats(rows)
    largest = max(float(rows.max()), -float(rows.min())) if min(rows.shape) else 0.0
    if not np.isfinite(largest):
        raise InvalidInput("the rows of a kernel must be finite numbers. Clip them, and replace NaN by 0.")
    exponent = int(np.frexp(largest)[1])
    if abs(exponent) > _SQUARES_FIT:
        rows = rows * 2.0 ** (-exponent // 2) * 2.0 ** (-exponent - -exponent // 2)
    else:
        exponent = 0
    if largest == 0.0:
        values, vectors = np.zeros(0), np.zeros((0, rows.shape[0]))
    elif rows.shape[1] <= rows.shape[0]:
        values, vectors = _tall_spectrum(rows)
    elif sparse.issparse(rows):
        values, vectors = np.linalg.eigh((rows @ rows.T).toarray())
        above = values > 8.0 * len(values) * _EPSILON * values[-1]
        values, vectors = values[above], vectors[:, above].T
    else:
        values, vectors = _tall_spectrum(np.asarray(np.linalg.qr(rows.T, mode="r")).T)  # B^T = Q R, so B B^T = R^T R
    return np.log(values) + 2.0 * exponent * np.log(2.0), vectors


def _tall_spectrum(rows: Any) -> tuple[Floats, Floats]:
    """The spectrum for d <= n.

    A Gram matrix has errors of the size of its largest eigenvalue, so each pass keeps values within `_SPAN` of it.
    """
    d = rows.shape[1]
    values: list[Floats] = []
    vectors: list[Floats] = []
    floor = None
    while True:
        gram = rows.T @ rows
        gram = gram.toarray() if sparse.issparse(gram) else gram
        if floor is None:
            floor = (8.0 * d * _EPSILON) ** 2 * float(np.trace(gram))
        squares, turn = np.linalg.eigh(gram)
        kept = squares > max(_SPAN * squares[-1], floor)
        values.append(squares[kept])
        vectors.append(_rotate(rows, turn[:, kept] / np.sqrt(squares[kept])))
        if kept.all() or squares[-1] <= floor:
            break
        rest = _rotate(rows, turn[:, ~kept])
        for _ in range(2):  # two passes are enough in floats
            for done in vectors:
                rest -= (rest @ done.T) @ done
        rows = rest.T
    return np.concatenate(values), vectors[0] if len(vectors) == 1 else np.concatenate(vectors)


def _rotate(rows: Any, turn: Floats) -> Floats:
    """(B W)^T with contiguous rows, so that a column of B W is read in one go."""
    if sparse.issparse(rows):
        return np.ascontiguousarray((rows @ turn).T)
    turned: Floats = turn.T @ rows.T
    return turned


def _floats(rows: Any) -> Any:
    if sparse.issparse(rows):
        return sparse.csr_array(rows, dtype=np.float64)
    rows = np.asarray(rows, dtype=np.float64)
    if rows.ndim != 2:
        raise InvalidInput(
            f"the rows of a kernel must be a matrix of items x columns, not an array of {rows.ndim} dimensions."
        )
    return rows
