"""Fair timing: ours and the peer's turns alternate, the median over the rounds is kept, the spread is told."""

import statistics
import time
from collections.abc import Callable
from typing import TypedDict

LOWER = "ratio = ours / theirs, lower is better"  # in the note of a row that compares losses or sizes, not times


class Row(TypedDict):
    """One line of benchmarks/results.json."""

    name: str
    peer: str
    ours: float
    theirs: float
    ratio: float
    target: float | None
    note: str


def seconds(work: Callable[[], object], least: float = 0.02) -> float:
    """Seconds of one call, repeated until ``least`` seconds have passed."""
    calls, start = 0, time.perf_counter()
    while True:
        work()
        calls += 1
        passed = time.perf_counter() - start
        if passed >= least:
            return passed / calls


def compare(
    name: str,
    peer: str,
    ours: Callable[[], object] | Callable[[], float],
    theirs: Callable[[], object],
    *,
    per: tuple[int, int] = (1, 1),
    target: float | None,
    note: str,
    rounds: int = 7,
    timed_peer: bool = False,
) -> Row:
    """Time per unit of work: ``per`` says how many units one call of ours and of theirs does.

    With ``timed_peer`` a call of ``theirs`` returns its own seconds (measured in the peer's process).
    """
    ours()
    theirs()  # warm up: caches and lazy imports are not what is compared
    mine, other = [], []
    for _ in range(rounds):
        mine.append(seconds(ours) / per[0])
        other.append((float(theirs()) if timed_peer else seconds(theirs)) / per[1])  # type: ignore[arg-type]
    our_median, their_median = statistics.median(mine), statistics.median(other)
    ratios = sorted(b / a for a, b in zip(mine, other, strict=True))
    return Row(
        name=name,
        peer=peer,
        ours=our_median,
        theirs=their_median,
        ratio=their_median / our_median,
        target=target,
        note=f"{note}; ratio of times, higher is better, rounds {ratios[0]:.3g} to {ratios[-1]:.3g}",
    )
