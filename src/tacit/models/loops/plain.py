"""The inner loops in plain numpy: what runs without the extra `fast`, and what the compiled loops must equal.

Three groups: look-alikes and greedy slates of multi-selection, losses of swaps for `tacit.mechanisms.local_swaps`,
and the steps of the non-negative factorisation. Swap losses are exact: coordinates are whole numbers held as floats,
and squared distances and their sums over a block of users stay below 2^53, so floats add them without rounding, in
any order.
"""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.models.arrays import Array, Floats, Ints

NO_GAIN = 1e-12  # a smaller gain counts as 0
BINS = 4096  # of distance, in `heavy_rows`
_CELLS = 1 << 20  # distances at a time
_USERS = 1 << 18  # at a time: their sums of at most 2^34 each stay below 2^53
_VALUES = 1 << 22  # numbers of the normal equations in memory at once (32 MB)


def l1_distances(signal: Array, table: Array) -> NDArray[np.float32]:
    """The L1 distance of the signal from every look-alike."""
    distances: NDArray[np.float32] = np.abs(table - signal).sum(axis=1, dtype=np.float32)
    return distances


def running_weights(distances: Array, eta: float) -> Floats:
    """Sums of exp(-(distance - least) / eta) over the rows so far."""
    gaps = distances.astype(np.float64)
    return np.cumsum(np.exp(-(gaps - gaps.min()) / eta))  # subtract the least: one weight is then 1


def draw_rows(running: Array, uniforms: Array) -> Ints:
    """Rows drawn with replacement, in proportion to their weights."""
    rows: Ints = np.minimum(np.searchsorted(running, uniforms * running[-1], side="right"), len(running) - 1)
    return rows


def heavy_rows(distances: Array, eta: float, share: float, most: int, offset: float) -> tuple[Ints, Floats]:
    """The heaviest rows that hold ``share`` of the weight, ascending, and their weights.

    If there are more than ``most``, it takes an unbiased systematic sample: a row of weight w is taken w/step times,
    rounded up or down by a uniform ``offset`` in [0, 1). Heavy rows always stay.
    """
    gaps = distances.astype(np.float64) - float(distances.min())
    weights = np.exp(-gaps / eta)
    bins = (gaps * (BINS / max(float(gaps.max()), 1e-9))).astype(np.int64)
    mass = np.bincount(bins, weights=weights, minlength=BINS + 1)
    last = int(np.argmax(np.cumsum(mass) >= share * mass.sum()))
    rows = np.flatnonzero(bins <= last)
    kept = weights[rows]
    if len(rows) <= most:
        return rows, kept
    targets = (np.arange(most) + offset) * (kept.sum() / most)
    counts = np.bincount(
        np.minimum(np.searchsorted(np.cumsum(kept), targets, side="right"), len(rows) - 1), minlength=len(rows)
    )
    taken = np.flatnonzero(counts)
    return rows[taken], counts[taken].astype(np.float64)


def stack_rows(
    features: Array, table: Array, scale: float, rows: Array, weights: Array, columns: Array, out: Array
) -> None:
    """Writes sqrt(weight) * [1, features, utilities] of every row into ``out``: its Gram matrix is the weighted one."""
    out[:, 0] = 1.0
    out[:, 1 : 1 + features.shape[1]] = features[rows]
    out[:, 1 + features.shape[1] :] = table[rows[:, None], columns] * scale
    out *= np.sqrt(weights)[:, None]


def greedy_on_lists(
    starts: Array, classes: Array, kept: Array, utilities: Array, rows: Array, first: Array, sizes: Array,
    class_starts: Array, members: Array, k: int, t: int,
) -> Ints:  # fmt: skip
    """The greedy slate for samples that see their top-r lists only; shorter than k if nothing is left to gain."""
    lists = [slice(int(starts[row]), int(starts[row + 1])) for row in rows]
    best = np.zeros((len(rows), t))
    taken = np.zeros(first.size, dtype=np.int64)
    sums = np.zeros(first.size)
    listed = np.zeros(first.size, dtype=np.bool_)
    for part in lists:
        sums[classes[part]] += utilities[part]
        listed[classes[part]] = True
    slate: list[int] = []
    for _ in range(k):
        gain = np.zeros(first.size)
        for part, bar in zip(lists, best[:, -1], strict=True):
            counts = (utilities[part] > bar) & (kept[part] > taken[classes[part]])
            gain[classes[part][counts]] += utilities[part][counts] - bar
        possible = np.flatnonzero((gain > NO_GAIN) & (taken < sizes))
        if not possible.size:
            gain, possible = sums, np.flatnonzero(listed & (taken == 0) & (sums > 0.0))
        if not possible.size:
            break
        items = members[class_starts[possible] + taken[possible]]
        chosen = possible[np.lexsort((items, -gain[possible]))[0]]
        for sample, part in enumerate(lists):
            entry = np.flatnonzero(classes[part] == chosen)
            if entry.size and kept[part][entry[0]] > taken[chosen]:
                best[sample] = np.sort(np.append(best[sample], utilities[part][entry[0]]))[::-1][:t]
        slate.append(int(members[class_starts[chosen] + taken[chosen]]))
        taken[chosen] += 1
    return np.array(slate, dtype=np.int64)


def greedy_on_weights(
    table: Array, tops: Array, rows: Array, weights: Array, items: Array, sizes: Array, member_starts: Array,
    members: Array, k: int, t: int, no_gain: float,
) -> Ints:  # fmt: skip
    """The greedy slate for weighted rows that see the full utilities; columns are candidates, ``items`` their smallest items."""
    columns = len(items)
    next_item, taken = items.copy(), np.zeros(columns, dtype=np.int64)
    best = np.zeros((len(rows), t), dtype=np.int64)
    sums = np.zeros(columns)
    slate: list[int] = []
    for pick in range(k):
        gain = weighted_gains(table, rows, weights, best[:, -1], columns)
        sums = gain if pick == 0 else sums
        possible = np.flatnonzero((gain > no_gain) & (taken < sizes))
        if not possible.size:
            gain, possible = sums, np.flatnonzero((taken == 0) & (sums > 0.0))
        if not possible.size:
            break
        chosen = int(possible[np.lexsort((next_item[possible], -gain[possible]))[0]])
        slate.append(int(next_item[chosen]))
        taken[chosen] += 1
        if taken[chosen] < sizes[chosen]:
            next_item[chosen] = members[member_starts[chosen] + taken[chosen]]
        values = table[rows, chosen].astype(np.int64)
        best = -np.sort(-np.concatenate([best, values[:, None]], axis=1), axis=1)[:, :t]
    return np.array(slate, dtype=np.int64)


def weighted_gains(table: Array, rows: Array, weights: Array, bars: Array, columns: int) -> Floats:
    """For each of the first ``columns`` columns: the sum over rows of weight * max(0, utility - bar)."""
    above = np.maximum(table[rows, :columns].astype(np.float64) - bars[:, None], 0.0)
    # Summed row by row, so that equal columns get equal gains.
    gains: Floats = (above * weights[:, None].astype(np.float64)).sum(axis=0)
    return gains


def top_lists(scores: Array, sizes: Array, class_starts: Array, members: Array, r: int) -> tuple[Ints, Ints, Ints]:
    """The r best items of each row by class: the classes, how many members of each are kept, and the lists' lengths.

    Classes are in order of score, then of smallest item.
    """
    n, n_classes = scores.shape
    most = min(r, n_classes)
    listed, kept = np.zeros((n, most), dtype=np.int64), np.zeros((n, most), dtype=np.int64)
    lengths = np.zeros(n, dtype=np.int64)
    class_of = np.repeat(np.arange(n_classes), sizes)
    for row in range(n):
        by_item = np.lexsort((members, -scores[row][class_of]))[:r]  # score descending, item ascending
        present, counts = np.unique(class_of[by_item], return_counts=True)
        order = np.lexsort((members[class_starts[present]], -scores[row][present]))
        lengths[row] = present.size
        listed[row, : present.size], kept[row, : present.size] = present[order], counts[order]
    return listed, kept, lengths


def swap_losses(
    points: Floats,
    candidates: Floats,
    nearest: Floats,
    second: Floats,
    starts: Ints,
    most: float,
) -> Ints:
    """centres x candidates: the total loss after this centre is swapped for that candidate.

    Users are sorted by centre: those of centre c stand from starts[c] to starts[c + 1]. ``nearest`` is their distance
    to their own centre, ``second`` to the next one, both at most ``most``. A user whose centre stays pays
    min(nearest, new), else min(second, new).
    """
    stays, goes = _sums(points, candidates, nearest, second, starts, most)
    losses: Ints = stays.sum(axis=0)[None, :] - stays + goes
    return losses


def distances(points: Floats, centres: Floats, most: float) -> Floats:
    """Squared distances, users x centres, each at most ``most``. Points and centres have one column each."""
    total = np.zeros((points.shape[1], centres.shape[1]))
    for coordinates, centre_coordinates in zip(points, centres, strict=True):
        gap = coordinates[:, None] - centre_coordinates[None, :]
        total += gap * gap
    return np.minimum(total, most)


def _sums(
    points: Floats,
    candidates: Floats,
    nearest: Floats,
    second: Floats,
    starts: Ints,
    most: float,
) -> tuple[Ints, Ints]:
    """For each centre and candidate, over the centre's users: sums of min(nearest, new) and of min(second, new)."""
    shape = (len(starts) - 1, candidates.shape[1])
    stays, goes = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    users = max(1, min(_USERS, _CELLS // candidates.shape[1]))
    for centre in range(shape[0]):
        for first in range(starts[centre], starts[centre + 1], users):
            part = slice(first, min(first + users, starts[centre + 1]))
            new = distances(points[:, part], candidates, most)
            stays[centre] += np.minimum(nearest[part, None], new).sum(axis=0).astype(np.int64)
            goes[centre] += np.minimum(second[part, None], new).sum(axis=0).astype(np.int64)
    return stays, goes


def masked_step(
    starts: Array, columns: Array, values: Floats, other: Floats, current: Floats, ridges: Floats,
    anchor: Floats, pull: float, sweeps: int,
) -> Floats:  # fmt: skip
    """Moves every row of ``current`` towards its least squares on its own cells, one coordinate at a time, in place.

    Row i minimises sum over its cells (x - u . other_j)^2 + ridges_i |u|^2 + pull |u - anchor_i|^2 with u >= 0.
    Returns the first sum of each row. A row without cells goes to its anchor, or to 0 if nothing pulls.
    """
    n, rank = current.shape
    upper, lower = np.triu_indices(rank)
    pairs = other[:, upper] * other[:, lower]
    loss = np.zeros(n)
    step = max(1, _VALUES // (rank * rank))
    for first in range(0, n, step):
        last = min(first + step, n)
        cells = slice(int(starts[first]), int(starts[last]))
        layout = (columns[cells], starts[first : last + 1] - starts[first])
        shape = (last - first, len(other))
        grams = np.empty((last - first, rank, rank))
        ones = sparse.csr_array((np.ones(cells.stop - cells.start), *layout), shape=shape)
        grams[:, upper, lower] = grams[:, lower, upper] = ones @ pairs
        part = sparse.csr_array((values[cells], *layout), shape=shape)
        products = part @ other
        squares = part.multiply(part).sum(axis=1) if cells.stop > cells.start else np.zeros(last - first)
        rows = current[first:last]
        rows[np.diff(layout[1]) == 0] = 0.0 if pull == 0.0 else anchor[first:last][np.diff(layout[1]) == 0]
        diagonal = ridges[first:last] + pull
        _sweep(rows, products + pull * anchor[first:last] if pull > 0.0 else products, grams, diagonal, sweeps)
        fitted = np.einsum("nc,ncd,nd->n", rows, grams, rows)
        loss[first:last] = np.maximum(squares - 2.0 * (rows * products).sum(axis=1) + fitted, 0.0)
    return loss


def shared_step(products: Floats, gram: Floats, current: Floats, ridges: Floats, sweeps: int) -> None:
    """`masked_step` where all cells are observed: one Gram matrix serves all rows. ``products`` = values @ other. In place."""
    _sweep(current, products, np.broadcast_to(gram, (len(current), *gram.shape)), ridges, sweeps)


def _sweep(rows: Floats, products: Floats, grams: Floats, ridges: Floats, sweeps: int) -> None:
    """Gauss-Seidel: moves each coordinate to its exact optimum given the others, but not below 0."""
    for _ in range(sweeps):
        for c in range(rows.shape[1]):
            own = grams[:, c, c]
            rest = products[:, c] - (grams[:, c, :] * rows).sum(axis=1) + own * rows[:, c]
            total = own + ridges
            best = np.maximum(rest, 0.0) / np.where(total > 0.0, total, 1.0)
            rows[:, c] = np.where(total > 0.0, best, rows[:, c])  # no cell depends on it: it stays
