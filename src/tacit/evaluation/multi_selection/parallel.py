"""Trials on several processors. Each trial has seeds of its own, so the split changes nothing."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context

from tacit.evaluation.multi_selection.losses import Case, Floats, Losses, joined
from tacit.evaluation.multi_selection.plan import Task
from tacit.evaluation.multi_selection.trials import Bench, run

Progress = Callable[[int, int], None]
_PART = 10  # trials handed over at a time
_ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


def losses(at: Bench, tasks: Sequence[Task], *, workers: int = 1, progress: Progress | None = None) -> Losses:
    """Every task on every trial; with ``workers`` above 1 in as many processes, one thread each."""
    trials = max(task.trials for task in tasks)
    parts = [(first, min(first + _PART, trials)) for first in range(0, trials, _PART)]
    found: list[dict[Case, Floats]] = []
    for part, (_, last) in zip(_found(at, tasks, parts, workers), parts, strict=True):
        found.append(part)
        if progress is not None:
            progress(last, trials)
    return Losses(at.users[:trials], at.best[:trials], joined(found))


def _found(
    at: Bench, tasks: Sequence[Task], parts: Sequence[tuple[int, int]], workers: int
) -> Iterator[dict[Case, Floats]]:
    if workers <= 1 or len(parts) <= 1:
        for first, last in parts:
            yield run(at, tasks, first, last)
        return
    # Fresh processes, not forked ones: training has started threads that would not survive a fork.
    with _one_thread_each(), ProcessPoolExecutor(workers, get_context("spawn"), _start, (at, tuple(tasks))) as pool:
        yield from pool.map(_part, parts)


_HELD: list[tuple[Bench, tuple[Task, ...]]] = []  # of a worker process


def _start(at: Bench, tasks: tuple[Task, ...]) -> None:
    _HELD[:] = [(at, tasks)]


def _part(bounds: tuple[int, int]) -> dict[Case, Floats]:
    at, tasks = _HELD[0]
    return run(at, tasks, *bounds)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """For processes started meanwhile: as many threads as processors in each of them would only get in each other's way."""
    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(_ONE_THREAD)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
