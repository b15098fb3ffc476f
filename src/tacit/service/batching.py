"""Requests that wait for the disk share one transaction: what arrives while one is under way goes together into the next.

The ledger's own group commit does this for threads. Here there is one thread for each kind of work, however many requests wait.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from tacit.service.metrics import TOGETHER
from tacit.service.problems import TRY_AGAIN, Problem

T = TypeVar("T")
R = TypeVar("R")
_MOST_TOGETHER = 500


class Batches(Generic[T, R]):
    """``work`` gives the outcome of each item, or the error to raise for it; what it raises itself is raised for all of them."""

    def __init__(self, what: str, work: Callable[[list[T]], Sequence[R | Exception]], most_waiting: int) -> None:
        self._work, self._most_waiting = work, most_waiting
        self._waiting: deque[tuple[T, asyncio.Future[R]]] = deque()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=what)
        self._runner: asyncio.Task[None] | None = None
        self._sizes = TOGETHER.labels(what)

    async def __call__(self, item: T) -> R:
        """The outcome, when it is durable."""
        if len(self._waiting) >= self._most_waiting:
            raise Problem("not-ready", "too many requests wait here already. Try again.", TRY_AGAIN)
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[R] = loop.create_future()
        self._waiting.append((item, outcome))
        if self._runner is None:
            self._runner = loop.create_task(self._run(loop))
        return await outcome

    async def close(self) -> None:
        """Waits for what is under way."""
        if self._runner is not None:
            await self._runner
        self._thread.shutdown()

    async def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            await self._work_off(loop)
        finally:
            self._runner = None

    async def _work_off(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._waiting:
            taken = [self._waiting.popleft() for _ in range(min(len(self._waiting), _MOST_TOGETHER))]
            self._sizes.observe(len(taken))
            try:
                outcomes = await loop.run_in_executor(self._thread, self._work, [item for item, _ in taken])
                if len(outcomes) != len(taken):
                    raise RuntimeError("an outcome for each item is needed")
            except Exception as problem:
                outcomes = [problem] * len(taken)
            for (_, future), outcome in zip(taken, outcomes, strict=True):
                if future.done():  # its caller has left; what was written is written
                    continue
                if isinstance(outcome, Exception):
                    future.set_exception(outcome)
                else:
                    future.set_result(outcome)
