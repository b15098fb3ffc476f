"""Work on requests, each in the way that keeps nobody else waiting for long. In each process one loop listens and answers."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from typing import TypeVar

from tacit.service.problems import TRY_AGAIN, Problem

R = TypeVar("R")
_MOST_WAITING = 64


class Pace(Enum):
    """How long a piece of work takes, and where it is done therefore."""

    AT_ONCE = "less than some two milliseconds: where it stands"
    IN_TURN = "some milliseconds: on the loop, one for each round of it"
    BESIDE = "longer: in a thread beside the loop, one after the other"


class Pacing:
    """With work of some milliseconds others wait longer for a thread to hand over the interpreter, which it does late, than they do
    for a turn of it on the loop."""

    def __init__(self) -> None:
        self._waiting = {Pace.IN_TURN: 0, Pace.BESIDE: 0}  # apart: the thread may be behind while turns come round
        self._turn = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="answers")

    async def __call__(self, work: Callable[[], R], pace: Pace) -> R:
        if pace is Pace.AT_ONCE:
            return work()
        if (
            self._waiting[pace] >= _MOST_WAITING
        ):  # who comes now would wait for seconds, and everybody behind her for longer
            raise Problem("not-ready", "too many long requests wait here already. Try again.", TRY_AGAIN)
        self._waiting[pace] += 1
        try:
            loop = asyncio.get_running_loop()
            if pace is Pace.BESIDE:
                return await loop.run_in_executor(self._thread, work)
            await self._turn.acquire()
            try:
                return work()
            finally:
                loop.call_soon(self._turn.release)  # in the next round: all else that waits for the loop comes before
        finally:
            self._waiting[pace] -= 1

    def close(self) -> None:
        """Waits for the piece of work under way; for those behind it nobody waits any more."""
        self._thread.shutdown(cancel_futures=True)
