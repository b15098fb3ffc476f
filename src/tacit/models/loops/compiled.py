"""The inner loops compiled by numba (extra `fast`). `plain` does the same in numpy; tests hold the two equal.

Rows of a factorisation step do not depend on each other, so a step on many threads gives the same bits as a step on
one.
"""

import numpy as np
from numba import njit, prange

from tacit.models.loops.plain import BINS, NO_GAIN

_TABLE = np.exp(-np.arange(44 * 64) / 64.0)
_BLOCK = 128  # users at a time: their distances stay in the first-level cache, their sums below 2^53


@njit(cache=True, fastmath=True)
def l1_distances(signal, table):  # type: ignore[no-untyped-def]
    """`plain.l1_distances`, reading each look-alike once. fastmath lets the sum over coordinates use vector registers."""
    n, d = table.shape
    out = np.empty(n, dtype=np.float32)
    for row in range(n):
        total = np.float32(0.0)
        for coordinate in range(d):
            total += abs(table[row, coordinate] - signal[coordinate])
        out[row] = total
    return out


def running_weights(distances, eta):  # type: ignore[no-untyped-def]
    """`plain.running_weights`, in one pass."""
    return _running(distances, eta, _TABLE)


@njit(cache=True)
def _running(distances, eta, table):  # type: ignore[no-untyped-def]
    least, rate = _least(distances), 1.0 / eta
    sums = np.empty(distances.size, dtype=np.float64)
    total = 0.0
    for row in range(distances.size):
        total += _decay((np.float64(distances[row]) - least) * rate, table)
        sums[row] = total
    return sums


@njit(cache=True)
def _least(distances):  # type: ignore[no-untyped-def]
    least = distances[0]
    for row in range(distances.size):
        least = min(least, distances[row])
    return np.float64(least)


@njit(cache=True, inline="always")
def _decay(x, table):  # type: ignore[no-untyped-def]
    """e^-x for x >= 0, to a relative error of 1e-11, by a table of e^(-j/64) and four terms.

    0 beyond 44, where e^-x is below 1e-19.
    """
    index = int(x * 64.0)
    if index >= table.size:
        return 0.0
    rest = x - index * 0.015625
    return table[index] * (1.0 - rest * (1.0 - rest * (0.5 - rest * (1.0 / 6.0 - rest / 24.0))))


@njit(cache=True)
def draw_rows(running, uniforms):  # type: ignore[no-untyped-def]
    """`plain.draw_rows`: one binary search in the running weights for each draw."""
    rows = np.empty(uniforms.size, dtype=np.int64)
    for draw in range(uniforms.size):
        target = uniforms[draw] * running[-1]
        low, high = 0, running.size - 1
        while low < high:
            middle = (low + high) // 2
            if running[middle] > target:
                high = middle
            else:
                low = middle + 1
        rows[draw] = low
    return rows


def heavy_rows(distances, eta, share, most, offset):  # type: ignore[no-untyped-def]
    """`plain.heavy_rows`, by bins of distance instead of sorting: a bin is taken whole or not at all.

    Of more than ``most`` rows it keeps those at even steps of the running weight.
    """
    return _heavy(distances, eta, share, most, offset, _TABLE)


@njit(cache=True)
def _heavy(distances, eta, share, most, offset, table):  # type: ignore[no-untyped-def]
    n = distances.size
    least, rate = _least(distances), 1.0 / eta
    largest = least
    for row in range(n):
        largest = max(largest, np.float64(distances[row]))
    scale = BINS / max(largest - least, 1e-9)
    mass = np.zeros(BINS + 1, dtype=np.float64)
    count = np.zeros(BINS + 1, dtype=np.int64)
    weights = np.empty(n, dtype=np.float64)
    for row in range(n):
        gap = np.float64(distances[row]) - least
        weight = _decay(gap * rate, table)
        weights[row] = weight
        index = int(gap * scale)
        mass[index] += weight
        count[index] += 1
    total = mass.sum()
    weight_taken, taken, last = 0.0, 0, -1
    for index in range(BINS + 1):
        if weight_taken >= share * total:
            break
        weight_taken += mass[index]
        taken += count[index]
        last = index
    rows = np.empty(min(taken, most), dtype=np.int64)
    kept = np.empty(rows.size, dtype=np.float64)
    filled = 0
    if taken <= most:
        for row in range(n):
            if int((np.float64(distances[row]) - least) * scale) <= last:
                rows[filled] = row
                kept[filled] = weights[row]
                filled += 1
        return rows, kept
    step = weight_taken / most
    running, aim = 0.0, offset * step
    for row in range(n):
        if int((np.float64(distances[row]) - least) * scale) > last:
            continue
        running += weights[row]
        times = 0
        while running > aim:
            times += 1
            aim += step
        if times > 0 and filled < rows.size:
            rows[filled] = row
            kept[filled] = times
            filled += 1
    return rows[:filled], kept[:filled]


@njit(cache=True)
def stack_rows(features, table, scale, rows, weights, columns, out):  # type: ignore[no-untyped-def]
    """`plain.stack_rows`."""
    d = features.shape[1]
    for index in range(rows.size):
        row, root = rows[index], np.sqrt(weights[index])
        out[index, 0] = root
        for column in range(d):
            out[index, 1 + column] = root * features[row, column]
        for column in range(columns.size):
            out[index, 1 + d + column] = root * (table[row, columns[column]] * scale)


@njit(cache=True)
def greedy_on_lists(starts, classes, kept, utilities, rows, first, sizes, class_starts, members, k, t):  # type: ignore[no-untyped-def]
    """`plain.greedy_on_lists`, on lists sorted by utility."""
    n_classes = first.size
    q = rows.size
    best = np.zeros((q, t), dtype=np.float64)  # the t best utilities of each sample so far, descending
    gain = np.zeros(n_classes, dtype=np.float64)
    sums = np.zeros(n_classes, dtype=np.float64)
    taken = np.zeros(n_classes, dtype=np.int64)
    touched = np.empty(n_classes, dtype=np.int64)
    seen = np.zeros(n_classes, dtype=np.bool_)
    count = 0
    for sample in range(q):
        for entry in range(starts[rows[sample]], starts[rows[sample] + 1]):
            listed = classes[entry]
            sums[listed] += utilities[entry]
            if not seen[listed]:
                seen[listed] = True
                touched[count] = listed
                count += 1
    slate = np.empty(k, dtype=np.int64)
    for pick in range(k):
        for index in range(count):
            gain[touched[index]] = 0.0
        for sample in range(q):
            bar = best[sample, t - 1]
            for entry in range(starts[rows[sample]], starts[rows[sample] + 1]):
                if utilities[entry] <= bar:
                    break  # the list is sorted: no later entry can gain
                listed = classes[entry]
                if kept[entry] > taken[listed]:
                    gain[listed] += utilities[entry] - bar
        chosen, chosen_item, most = -1, -1, NO_GAIN
        for index in range(count):
            listed = touched[index]
            if gain[listed] < most or gain[listed] <= NO_GAIN or taken[listed] >= sizes[listed]:
                continue
            item = members[class_starts[listed] + taken[listed]]
            if gain[listed] > most or item < chosen_item:
                chosen, chosen_item, most = listed, item, gain[listed]
        if chosen < 0:  # no sample gains any more: take the best class that is not represented yet
            most = 0.0
            for index in range(count):
                listed = touched[index]
                if taken[listed] == 0 and (
                    sums[listed] > most or (sums[listed] == most and chosen >= 0 and first[listed] < chosen_item)
                ):
                    chosen, chosen_item, most = listed, first[listed], sums[listed]
        if chosen < 0:
            return slate[:pick]
        for sample in range(q):
            for entry in range(starts[rows[sample]], starts[rows[sample] + 1]):
                if classes[entry] != chosen:
                    continue
                if kept[entry] > taken[chosen]:
                    value = utilities[entry]
                    for index in range(t):
                        if value > best[sample, index]:
                            value, best[sample, index] = best[sample, index], value
                break
        taken[chosen] += 1
        slate[pick] = chosen_item
    return slate


@njit(cache=True)
def greedy_on_weights(table, tops, rows, weights, items, sizes, member_starts, members, k, t, no_gain):  # type: ignore[no-untyped-def]
    """`plain.greedy_on_weights`; rows that can gain nothing more are dropped."""
    columns = items.size
    rows, weights = rows.copy(), weights.copy()
    next_item, taken = items.copy(), np.zeros(columns, dtype=np.int64)
    best = np.zeros((rows.size, t), dtype=np.uint16)
    bars = np.zeros(rows.size, dtype=np.uint16)
    left = rows.size  # rows that can still gain, kept in front
    sums = np.zeros(columns, dtype=np.float64)
    slate = np.empty(k, dtype=np.int64)
    for pick in range(k):
        gain = weighted_gains(table, rows[:left], weights[:left], bars[:left], columns)
        if pick == 0:
            sums[:] = gain
        chosen, most = -1, no_gain
        for column in range(columns):
            if taken[column] >= sizes[column] or gain[column] <= no_gain or gain[column] < most:
                continue
            if gain[column] > most or next_item[column] < next_item[chosen]:
                chosen, most = column, gain[column]
        if chosen < 0:
            most = 0.0
            for column in range(columns):
                if taken[column] > 0 or sums[column] <= 0.0 or sums[column] < most:
                    continue
                if sums[column] > most or items[column] < items[chosen]:
                    chosen, most = column, sums[column]
        if chosen < 0:
            return slate[:pick]
        slate[pick] = next_item[chosen]
        taken[chosen] += 1
        if taken[chosen] < sizes[chosen]:
            next_item[chosen] = members[member_starts[chosen] + taken[chosen]]
        kept = 0
        for index in range(left):
            value = table[rows[index], chosen]
            for rank in range(t):
                if value > best[index, rank]:
                    value, best[index, rank] = best[index, rank], value
            if t > 1 or best[index, 0] < tops[rows[index]]:
                rows[kept], weights[kept], bars[kept] = rows[index], weights[index], best[index, t - 1]
                for rank in range(t):
                    best[kept, rank] = best[index, rank]
                kept += 1
        left = kept
    return slate


@njit(cache=True, fastmath={"contract", "nsz"})
def weighted_gains(table, rows, weights, bars, columns):  # type: ignore[no-untyped-def]
    """`plain.weighted_gains` for utilities in whole levels.

    Rows add up in single precision in blocks of 64, which suits vector registers, and the blocks in double precision.
    """
    total = np.zeros(columns, dtype=np.float64)
    block = np.zeros(columns, dtype=np.float32)
    for index in range(rows.size):
        # The bar as a float: whole numbers would be widened and not fit vector registers.
        weight, bar = weights[index], np.float32(bars[index])
        row = table[rows[index]]
        for column in range(columns):
            block[column] += weight * max(np.float32(row[column]) - bar, np.float32(0.0))
        if index % 64 == 63:
            for column in range(columns):
                total[column] += block[column]
                block[column] = np.float32(0.0)
    for column in range(columns):
        total[column] += block[column]
    return total


@njit(cache=True)
def top_lists(scores, sizes, class_starts, members, r):  # type: ignore[no-untyped-def]
    """`plain.top_lists`.

    A class that lies wholly above the r-th score is kept whole; members of classes that tie at it interleave by item.
    """
    n, n_classes = scores.shape
    most = min(r, n_classes)
    classes = np.empty((n, most), dtype=np.int64)
    kept = np.empty((n, most), dtype=np.int64)
    lengths = np.zeros(n, dtype=np.int64)
    for row in range(n):
        order = np.argsort(-scores[row], kind="mergesort")
        room, start, length = r, 0, 0
        while room > 0 and start < n_classes:
            end, together = start, 0
            while end < n_classes and scores[row, order[end]] == scores[row, order[start]]:
                together += sizes[order[end]]
                end += 1
            if together <= room or end == start + 1:
                for tied in range(start, end):
                    classes[row, length] = order[tied]
                    kept[row, length] = min(room, sizes[order[tied]])
                    length += 1
                room -= min(room, together)
            else:  # tied classes share the room that is left, smallest items first
                inside = np.zeros(end - start, dtype=np.int64)
                while room > 0:
                    best, least = -1, -1
                    for tied in range(start, end):
                        if inside[tied - start] < sizes[order[tied]]:
                            item = members[class_starts[order[tied]] + inside[tied - start]]
                            if best < 0 or item < least:
                                best, least = tied - start, item
                    inside[best] += 1
                    room -= 1
                for tied in range(start, end):
                    if inside[tied - start] > 0:
                        classes[row, length] = order[tied]
                        kept[row, length] = inside[tied - start]
                        length += 1
            start = end
        lengths[row] = length
    return classes, kept, lengths


def swap_losses(points, candidates, nearest, second, starts, most):  # type: ignore[no-untyped-def]
    """`plain.swap_losses`. ``nearest`` and ``second`` are at most ``most``, so new distances need no cut."""
    firsts = [first for c in range(starts.size - 1) for first in range(starts[c], starts[c + 1], _BLOCK)]
    low = high = np.empty((0, points.shape[0]))
    reach = np.empty(0)
    if firsts:
        low, high = np.minimum.reduceat(points, firsts, axis=1).T, np.maximum.reduceat(points, firsts, axis=1).T
        reach = np.maximum.reduceat(second, firsts)
    rows = [np.ascontiguousarray(table) for table in (candidates.T, low, high)]
    stays, goes = _sums(points, rows[0], nearest, second, starts, rows[1], rows[2], reach)
    return stays.sum(axis=0)[None, :] - stays + goes


# Sums of whole numbers below 2^53 are exact in any order, and no number is NaN: reordering changes nothing.
@njit(cache=True, fastmath={"reassoc", "nnan", "nsz", "contract"})
def _sums(points, candidates, nearest, second, starts, low, high, reach):  # type: ignore[no-untyped-def]
    """`plain._sums`. It skips a block of users if its box [low, high] is at least ``reach`` away from the candidate."""
    centres, count = starts.size - 1, candidates.shape[0]
    stays = np.zeros((centres, count), dtype=np.int64)
    goes = np.zeros((centres, count), dtype=np.int64)
    buffer = np.empty(_BLOCK, dtype=np.float64)
    block = 0
    for centre in range(centres):
        for first in range(starts[centre], starts[centre + 1], _BLOCK):
            last = min(first + _BLOCK, starts[centre + 1])
            size = last - first
            near, next_near, new = nearest[first:last], second[first:last], buffer[:size]
            all_near, all_next = 0.0, 0.0
            for u in range(size):
                all_near += near[u]
                all_next += next_near[u]
            for candidate in range(count):
                least = 0.0
                for j in range(points.shape[0]):
                    aim, gap = candidates[candidate, j], 0.0
                    if aim < low[block, j]:
                        gap = low[block, j] - aim
                    elif aim > high[block, j]:
                        gap = aim - high[block, j]
                    least += gap * gap
                if least >= reach[block]:
                    stays[centre, candidate] += np.int64(all_near)
                    goes[centre, candidate] += np.int64(all_next)
                    continue
                for u in range(size):
                    new[u] = 0.0
                for j in range(points.shape[0]):
                    aim, row = candidates[candidate, j], points[j, first:last]
                    for u in range(size):
                        gap = row[u] - aim
                        new[u] += gap * gap
                kept, moved = 0.0, 0.0
                for u in range(size):  # two loops without min(): they fit vector registers
                    kept += near[u] if near[u] < new[u] else new[u]
                for u in range(size):
                    moved += next_near[u] if next_near[u] < new[u] else new[u]
                stays[centre, candidate] += np.int64(kept)
                goes[centre, candidate] += np.int64(moved)
            block += 1
    return stays, goes


@njit(cache=True)
def masked_step(starts, columns, values, other, current, ridges, anchor, pull, sweeps):  # type: ignore[no-untyped-def]
    """`plain.masked_step`, row by row."""
    loss = np.empty(current.shape[0])
    for i in range(current.shape[0]):
        loss[i] = _masked_row(i, starts, columns, values, other, current, ridges, anchor, pull, sweeps)
    return loss


@njit(cache=True, parallel=True)
def masked_step_parallel(starts, columns, values, other, current, ridges, anchor, pull, sweeps):  # type: ignore[no-untyped-def]
    """`masked_step` on all threads."""
    loss = np.empty(current.shape[0])
    for i in prange(current.shape[0]):
        loss[i] = _masked_row(i, starts, columns, values, other, current, ridges, anchor, pull, sweeps)
    return loss


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
def shared_step(products, gram, current, ridges, sweeps):  # type: ignore[no-untyped-def]
    """`plain.shared_step`."""
    for i in range(current.shape[0]):
        _sweep(current[i], products[i], gram, ridges[i], sweeps)


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
