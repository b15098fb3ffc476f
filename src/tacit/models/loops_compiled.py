"""The server's inner loops, compiled by numba (extra `fast`). `loops_plain` does the same in numpy; tests hold them equal."""

import numpy as np
from numba import njit

from tacit.models.loops_plain import NO_GAIN

_BINS = 4096
_TABLE = np.exp(-np.arange(44 * 64) / 64.0)


@njit(cache=True, fastmath=True)
def l1_distances(signal, table):  # type: ignore[no-untyped-def]
    """Row-major and fused: each look-alike is read once. fastmath lets the sum over coordinates use vector registers."""
    n, d = table.shape
    out = np.empty(n, dtype=np.float32)
    for row in range(n):
        total = np.float32(0.0)
        for place in range(d):
            total += abs(table[row, place] - signal[place])
        out[row] = total
    return out


@njit(cache=True, inline="always")
def _decay(x, table):  # type: ignore[no-untyped-def]
    """e^-x for x >= 0 to 1e-11 of itself, by a table of e^(-j/64) and four terms; 0 beyond 44, where it is below 1e-19."""
    place = int(x * 64.0)
    if place >= table.size:
        return 0.0
    rest = x - place * 0.015625
    return table[place] * (1.0 - rest * (1.0 - rest * (0.5 - rest * (1.0 / 6.0 - rest / 24.0))))


@njit(cache=True)
def _least(distances):  # type: ignore[no-untyped-def]
    least = distances[0]
    for row in range(distances.size):
        least = min(least, distances[row])
    return np.float64(least)


@njit(cache=True)
def _running(distances, eta, table):  # type: ignore[no-untyped-def]
    least, rate = _least(distances), 1.0 / eta
    sums = np.empty(distances.size, dtype=np.float64)
    total = 0.0
    for row in range(distances.size):
        total += _decay((np.float64(distances[row]) - least) * rate, table)
        sums[row] = total
    return sums


def running_weights(distances, eta):  # type: ignore[no-untyped-def]
    """Sums of exp(-(distance - least)/eta) over the rows so far, in one pass."""
    return _running(distances, eta, _TABLE)


@njit(cache=True)
def draw_rows(running, uniforms):  # type: ignore[no-untyped-def]
    """Rows drawn with replacement, each as often as its weight says: a search in the running weights for each draw."""
    drawn = np.empty(uniforms.size, dtype=np.int64)
    for draw in range(uniforms.size):
        aim = uniforms[draw] * running[-1]
        low, high = 0, running.size - 1
        while low < high:
            middle = (low + high) // 2
            if running[middle] > aim:
                high = middle
            else:
                low = middle + 1
        drawn[draw] = low
    return drawn


@njit(cache=True)
def stack_rows(features, table, scale, rows, weights, columns, out):  # type: ignore[no-untyped-def]
    """Writes sqrt(weight) * [1, features, utilities] of every row into ``out``: its Gram matrix is then the weighted one."""
    d = features.shape[1]
    for place in range(rows.size):
        row, root = rows[place], np.sqrt(weights[place])
        out[place, 0] = root
        for column in range(d):
            out[place, 1 + column] = root * features[row, column]
        for column in range(columns.size):
            out[place, 1 + d + column] = root * (table[row, columns[column]] * scale)


@njit(cache=True)
def _heavy(distances, eta, share, most, offset, table):  # type: ignore[no-untyped-def]
    n = distances.size
    least, rate = _least(distances), 1.0 / eta
    largest = least
    for row in range(n):
        largest = max(largest, np.float64(distances[row]))
    bins = _BINS / max(largest - least, 1e-9)
    mass = np.zeros(_BINS + 1, dtype=np.float64)
    count = np.zeros(_BINS + 1, dtype=np.int64)
    weights = np.empty(n, dtype=np.float64)
    for row in range(n):
        gap = np.float64(distances[row]) - least
        weight = _decay(gap * rate, table)
        weights[row] = weight
        place = int(gap * bins)
        mass[place] += weight
        count[place] += 1
    total = mass.sum()
    held, taken, last = 0.0, 0, -1
    for place in range(_BINS + 1):
        if held >= share * total:
            break
        held += mass[place]
        taken += count[place]
        last = place
    rows = np.empty(min(taken, most), dtype=np.int64)
    kept = np.empty(rows.size, dtype=np.float64)
    found = 0
    if taken <= most:
        for row in range(n):
            if int((np.float64(distances[row]) - least) * bins) <= last:
                rows[found] = row
                kept[found] = weights[row]
                found += 1
        return rows, kept
    step = held / most
    running, aim = 0.0, offset * step
    for row in range(n):
        if int((np.float64(distances[row]) - least) * bins) > last:
            continue
        running += weights[row]
        times = 0
        while running > aim:
            times += 1
            aim += step
        if times > 0 and found < rows.size:
            rows[found] = row
            kept[found] = times
            found += 1
    return rows[:found], kept[:found]


def heavy_rows(distances, eta, share, most, offset):  # type: ignore[no-untyped-def]
    """The heaviest rows that hold at least ``share`` of all weight exp(-distance/eta), in ascending order, and their weights.

    By bins of distance, not by sorting: a bin is taken wholly or not at all. Where there are more than ``most``, rows at even
    steps of the running weight stand for all (see `loops_plain.heavy_rows`).
    """
    return _heavy(distances, eta, share, most, offset, _TABLE)


@njit(cache=True)
def greedy_on_lists(starts, classes, kept, utilities, rows, first, sizes, class_starts, members, k, t):  # type: ignore[no-untyped-def]
    """Greedy slate on sorted top-r lists; returns the picked items' codes (fewer than k where nothing is left)."""
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
            one = classes[entry]
            sums[one] += utilities[entry]
            if not seen[one]:
                seen[one] = True
                touched[count] = one
                count += 1
    slate = np.empty(k, dtype=np.int64)
    for pick in range(k):
        for place in range(count):
            gain[touched[place]] = 0.0
        for sample in range(q):
            bar = best[sample, t - 1]
            for entry in range(starts[rows[sample]], starts[rows[sample] + 1]):
                if utilities[entry] <= bar:
                    break  # sorted: nothing further can gain
                one = classes[entry]
                if kept[entry] > taken[one]:
                    gain[one] += utilities[entry] - bar
        chosen, chosen_item, most = -1, -1, NO_GAIN
        for place in range(count):
            one = touched[place]
            if gain[one] < most or gain[one] <= NO_GAIN or taken[one] >= sizes[one]:
                continue
            item = members[class_starts[one] + taken[one]]
            if gain[one] > most or item < chosen_item:
                chosen, chosen_item, most = one, item, gain[one]
        if chosen < 0:  # all samples are satisfied: the best class that is not represented yet
            most = 0.0
            for place in range(count):
                one = touched[place]
                if taken[one] == 0 and (
                    sums[one] > most or (sums[one] == most and chosen >= 0 and first[one] < chosen_item)
                ):
                    chosen, chosen_item, most = one, first[one], sums[one]
        if chosen < 0:
            return slate[:pick]
        for sample in range(q):
            for entry in range(starts[rows[sample]], starts[rows[sample] + 1]):
                if classes[entry] != chosen:
                    continue
                if kept[entry] > taken[chosen]:
                    value = utilities[entry]
                    for place in range(t):
                        if value > best[sample, place]:
                            value, best[sample, place] = best[sample, place], value
                break
        taken[chosen] += 1
        slate[pick] = chosen_item
    return slate


@njit(cache=True, fastmath={"contract", "nsz"})
def weighted_gains(table, rows, weights, bars, columns):  # type: ignore[no-untyped-def]
    """For each of the first ``columns`` columns: sum over rows of weight * max(0, utility - bar), utilities in whole levels.

    Rows add up in single precision in blocks of 64, which vector registers like, and the blocks in double.
    """
    total = np.zeros(columns, dtype=np.float64)
    block = np.zeros(columns, dtype=np.float32)
    for place in range(rows.size):
        weight, bar = (
            weights[place],
            np.float32(bars[place]),
        )  # whole numbers would be widened and not fit vector registers
        row = table[rows[place]]
        for column in range(columns):
            block[column] += weight * max(np.float32(row[column]) - bar, np.float32(0.0))
        if place % 64 == 63:
            for column in range(columns):
                total[column] += block[column]
                block[column] = np.float32(0.0)
    for column in range(columns):
        total[column] += block[column]
    return total


@njit(cache=True)
def greedy_on_weights(table, tops, rows, weights, items, sizes, member_starts, members, k, t, no_gain):  # type: ignore[no-untyped-def]
    """Greedy slate on the full utilities of weighted rows; columns are candidates, ``items`` their smallest items."""
    columns = items.size
    rows, weights = rows.copy(), weights.copy()
    next_item, taken = items.copy(), np.zeros(columns, dtype=np.int64)
    best = np.zeros((rows.size, t), dtype=np.uint16)
    bars = np.zeros(rows.size, dtype=np.uint16)
    left = rows.size  # rows that something could still gain for, kept in front
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
        for place in range(left):
            value = table[rows[place], chosen]
            for rank in range(t):
                if value > best[place, rank]:
                    value, best[place, rank] = best[place, rank], value
            if t > 1 or best[place, 0] < tops[rows[place]]:
                rows[kept], weights[kept], bars[kept] = rows[place], weights[place], best[place, t - 1]
                for rank in range(t):
                    best[kept, rank] = best[place, rank]
                kept += 1
        left = kept
    return slate


@njit(cache=True)
def top_lists(scores, sizes, class_starts, members, r):  # type: ignore[no-untyped-def]
    """The r best items of each row by class: (classes, members kept) in order of score, then of smallest item; and list lengths.

    A class that stands wholly above the r-th score is kept wholly. Members of classes that tie at it interleave by item.
    """
    n, n_classes = scores.shape
    most = min(r, n_classes)
    classes = np.empty((n, most), dtype=np.int64)
    kept = np.empty((n, most), dtype=np.int64)
    lengths = np.zeros(n, dtype=np.int64)
    for row in range(n):
        order = np.argsort(-scores[row], kind="mergesort")
        room, place, length = r, 0, 0
        while room > 0 and place < n_classes:
            end, together = place, 0
            while end < n_classes and scores[row, order[end]] == scores[row, order[place]]:
                together += sizes[order[end]]
                end += 1
            if together <= room or end == place + 1:
                for one in range(place, end):
                    classes[row, length] = order[one]
                    kept[row, length] = min(room, sizes[order[one]])
                    length += 1
                room -= min(room, together)
            else:  # tied classes share what room is left, smallest items first
                inside = np.zeros(end - place, dtype=np.int64)
                while room > 0:
                    who, least = -1, -1
                    for one in range(place, end):
                        if inside[one - place] < sizes[order[one]]:
                            item = members[class_starts[order[one]] + inside[one - place]]
                            if who < 0 or item < least:
                                who, least = one - place, item
                    inside[who] += 1
                    room -= 1
                for one in range(place, end):
                    if inside[one - place] > 0:
                        classes[row, length] = order[one]
                        kept[row, length] = inside[one - place]
                        length += 1
            place = end
        lengths[row] = length
    return classes, kept, lengths
