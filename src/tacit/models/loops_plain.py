"""The server's inner loops in plain numpy: what runs without the extra `fast`, and what the compiled ones must equal."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

NO_GAIN = 1e-12  # a gain up to this is none
_BINS = 4096

Array = NDArray[Any]


def l1_distances(signal: Array, table: Array) -> NDArray[np.float32]:
    distances: NDArray[np.float32] = np.abs(table - signal).sum(axis=1, dtype=np.float32)
    return distances


def running_weights(distances: Array, eta: float) -> NDArray[np.float64]:
    gaps = distances.astype(np.float64)
    return np.cumsum(np.exp(-(gaps - gaps.min()) / eta))  # subtracting the least keeps at least one weight at 1


def draw_rows(running: Array, uniforms: Array) -> NDArray[np.int64]:
    drawn: NDArray[np.int64] = np.minimum(
        np.searchsorted(running, uniforms * running[-1], side="right"), len(running) - 1
    )
    return drawn


def stack_rows(
    features: Array, table: Array, scale: float, rows: Array, weights: Array, columns: Array, out: Array
) -> None:
    out[:, 0] = 1.0
    out[:, 1 : 1 + features.shape[1]] = features[rows]
    out[:, 1 + features.shape[1] :] = table[rows[:, None], columns] * scale
    out *= np.sqrt(weights)[:, None]


def heavy_rows(
    distances: Array, eta: float, share: float, most: int, offset: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The heaviest rows that hold ``share`` of the weight; beyond ``most`` of them a systematic sample, which is unbiased.

    A row of weight w is then taken w/step times, rounded up or down by a uniform ``offset`` in [0, 1): heavy rows always stay.
    """
    gaps = distances.astype(np.float64) - float(distances.min())
    weights = np.exp(-gaps / eta)
    places = (gaps * (_BINS / max(float(gaps.max()), 1e-9))).astype(np.int64)
    mass = np.bincount(places, weights=weights, minlength=_BINS + 1)
    last = int(np.argmax(np.cumsum(mass) >= share * mass.sum()))
    rows = np.flatnonzero(places <= last)
    kept = weights[rows]
    if len(rows) <= most:
        return rows, kept
    aims = (np.arange(most) + offset) * (kept.sum() / most)
    counts = np.bincount(
        np.minimum(np.searchsorted(np.cumsum(kept), aims, side="right"), len(rows) - 1), minlength=len(rows)
    )
    taken = np.flatnonzero(counts)
    return rows[taken], counts[taken].astype(np.float64)


def greedy_on_lists(
    starts: Array, classes: Array, kept: Array, utilities: Array, rows: Array, first: Array, sizes: Array,
    class_starts: Array, members: Array, k: int, t: int,
) -> NDArray[np.int64]:  # fmt: skip
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


def weighted_gains(table: Array, rows: Array, weights: Array, bars: Array, columns: int) -> NDArray[np.float64]:
    above = np.maximum(table[rows, :columns].astype(np.float64) - bars[:, None], 0.0)
    gains: NDArray[np.float64] = (above * weights[:, None].astype(np.float64)).sum(
        axis=0
    )  # row by row: equal columns tie
    return gains


def greedy_on_weights(
    table: Array, tops: Array, rows: Array, weights: Array, items: Array, sizes: Array, member_starts: Array,
    members: Array, k: int, t: int, no_gain: float,
) -> NDArray[np.int64]:  # fmt: skip
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


def top_lists(
    scores: Array, sizes: Array, class_starts: Array, members: Array, r: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    n, n_classes = scores.shape
    most = min(r, n_classes)
    listed, kept = np.zeros((n, most), dtype=np.int64), np.zeros((n, most), dtype=np.int64)
    lengths = np.zeros(n, dtype=np.int64)
    class_of = np.repeat(np.arange(n_classes), sizes)
    for row in range(n):
        by_item = np.lexsort((members, -scores[row][class_of]))[:r]  # score descending, item ascending
        found, counts = np.unique(class_of[by_item], return_counts=True)
        order = np.lexsort((members[class_starts[found]], -scores[row][found]))
        lengths[row] = found.size
        listed[row, : found.size], kept[row, : found.size] = found[order], counts[order]
    return listed, kept, lengths
