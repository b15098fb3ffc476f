"""The greedy slate: k times the item that adds most to the samples' utility of their t best items of the slate.

For t = 1 and any t this is a monotone submodular function, so that greedy reaches at least 1 - 1/e of the best slate.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.models.classes import Classes
from tacit.models.loops_plain import NO_GAIN
from tacit.models.tables import Tables


def from_lists(
    work: ModuleType,
    lists: tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]],
    rows: NDArray[np.integer[Any]],
    classes: Classes,
    k: int,
    t: int,
) -> NDArray[np.int64]:
    """The slate for samples that see their r best items only; ``lists`` are (starts, classes, kept, utilities).

    Where all samples are satisfied, the class not yet represented with the largest summed utility follows. The slate is
    shorter than k where no class with any utility for a sample is left.
    """
    starts, listed, kept, utilities = lists
    slate: NDArray[np.int64] = work.greedy_on_lists(
        starts,
        listed,
        kept,
        utilities,
        rows,
        classes.first,
        classes.sizes,
        classes.starts,
        classes.members,
        k,
        min(t, k),
    )
    return slate


def from_weights(
    work: ModuleType,
    tables: Tables,
    rows: NDArray[np.integer[Any]],
    weights: NDArray[np.float64],
    classes: Classes,
    k: int,
    t: int,
) -> NDArray[np.int64]:
    """The slate for weighted look-alikes that see the full utility of every candidate class: no draws, no cut at r."""
    slate: NDArray[np.int64] = work.greedy_on_weights(
        tables.utilities,
        tables.tops,
        rows,
        (weights / weights.sum()).astype(np.float32),
        tables.items,
        tables.sizes,
        tables.members,
        classes.members,
        k,
        min(t, k),
        NO_GAIN / float(tables.scale),
    )
    return slate


def filled(
    slate: NDArray[np.int64], classes: Classes, k: int, sums: Callable[[], NDArray[np.float64]]
) -> NDArray[np.int64]:
    """A slate that ran short, followed by the classes it lacks, largest summed utility first."""
    if len(slate) >= k:
        return slate
    lacking = np.setdiff1d(np.arange(len(classes)), classes.of[slate])
    if not lacking.size:
        return slate
    order = lacking[np.lexsort((classes.first[lacking], -sums()[lacking]))][: k - len(slate)]
    return np.concatenate([slate, classes.first[order].astype(np.int64)])
