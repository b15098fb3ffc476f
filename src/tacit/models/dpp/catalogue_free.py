"""The projection process of chosen eigenvectors without a pass over the catalogue: proposals, accepted by what is left of them.

Propose one of the j chosen vectors at random and in it an item with the probability of its squared entry (vectors have length 1):
item i comes with probability |v_i|^2 / j, v_i its j entries. Accept with (squared distance of v_i from the span of those picked so
far) / |v_i|^2. What is accepted follows the chain rule exactly; with t picked, j - t of j proposals are, so that j H_j are expected
for a slate. An item is found by a binary search in running sums over blocks of items, then within its block: the setup is one pass,
and the time of a draw does not grow with the catalogue.
"""

import numpy as np
from numpy.typing import NDArray

from tacit.models.dpp.coins import Coins
from tacit.models.dpp.elementary import NONE

Floats = NDArray[np.float64]
Items = NDArray[np.int64]

_BLOCK = 32  # items
_CELLS = 500_000  # entries of proposals held at once
_TINY = np.finfo(np.float64).tiny


def running_squares(vectors: Floats) -> Floats:
    """For each of the r x n ``vectors`` the running sums of its squares, block by block of items."""
    r, n = vectors.shape
    whole = n - n % _BLOCK
    blocks = vectors[:, :whole].reshape(r, whole // _BLOCK, _BLOCK)
    sums = np.einsum("rbi,rbi->rb", blocks, blocks)
    rest = np.square(vectors[:, whole:]).sum(axis=1, keepdims=True)
    return np.cumsum(np.concatenate([sums, rest], axis=1), axis=1)


def sample(vectors: Floats, running: Floats, chosen: Items, coins: Coins) -> Items:
    """For each row of ``chosen`` (vectors; `NONE` at the end) as many items, in the order of picking, and `NONE` at the end."""
    items = np.full(chosen.shape, NONE, dtype=np.int64)
    most = max(1, chosen.shape[1])
    proposals = int(most * (np.log(most) + 2.5)) + 1  # j H_j and about two standard deviations: few need a second round
    sizes = (chosen != NONE).sum(axis=1)
    wanting = np.flatnonzero(sizes)
    held = max(1, _CELLS // (proposals * max(most, _BLOCK)))
    for start in range(0, wanting.size, held):
        going = wanting[start : start + held]
        while going.size:
            offered = propose(vectors, running, chosen[going], sizes[going], proposals, coins)
            bars = coins.uniforms(offered.size).reshape(offered.shape)
            items[going] = accept(vectors, chosen[going], items[going], offered, bars)
            going = going[items[going, sizes[going] - 1] == NONE]
    return items


def propose(vectors: Floats, running: Floats, chosen: Items, sizes: Items, proposals: int, coins: Coins) -> Items:
    """Items, slates x proposals: one of each slate's vectors, all alike, and an item by its squared entry there."""
    shape = (len(chosen), proposals)
    uniforms = coins.uniforms(3 * len(chosen) * proposals).reshape(3, *shape)
    place = (uniforms[0] * sizes[:, None]).astype(np.int64)
    vector = chosen[np.arange(len(chosen))[:, None], place].ravel()
    aims = uniforms[1].ravel() * running[vector, -1]
    order = np.argsort(vector, kind="stable")
    starts = np.flatnonzero(np.diff(vector[order], prepend=-1))
    block = np.empty(vector.size, dtype=np.int64)
    for those in np.split(order, starts[1:]):
        block[those] = np.searchsorted(running[vector[those[0]]], aims[those], side="right")
    n = vectors.shape[1]
    inside = np.minimum(block, running.shape[1] - 1)[:, None] * _BLOCK + np.arange(_BLOCK)
    squares = np.square(vectors[vector[:, None], np.minimum(inside, n - 1)])
    squares[inside >= n] = 0.0
    sums = np.cumsum(squares, axis=1)
    steps = (sums <= (uniforms[2].ravel() * sums[:, -1])[:, None]).sum(axis=1)
    items: Items = np.minimum(inside[:, 0] + steps, n - 1).reshape(shape)
    return items


def accept(vectors: Floats, chosen: Items, picked: Items, offered: Items, bars: Floats) -> Items:
    """What was ``picked`` and, behind it, proposals in their order, until there are as many as vectors or no proposal is left.

    ``spanned[:, t]`` is the t-th direction picked, ``along[:, t]`` holds the proposals' parts along it, and ``left`` what is left
    of their squared lengths.
    """
    slates, sizes = np.arange(len(chosen)), (chosen != NONE).sum(axis=1)
    before = int((picked != NONE).sum(axis=1).max())
    # what was picked in an earlier round comes first, and passes
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
        bars[offered == item[:, None]] = np.inf  # what was passed over stays so by itself: distances only fall
    return picked
