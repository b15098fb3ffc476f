"""The state that the server's routes share in one worker: the ledger, the served version, and queues for their work."""

import asyncio
import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Generic, TypeVar, cast

from starlette.requests import Request as HttpRequest

from tacit.errors import TacitError
from tacit.ledger import ImpressionLedger, Settlement
from tacit.messages.private_selection import Engagement, Impression, Offer, OfferRequest
from tacit.service.bodies import TRY_AGAIN, Problem
from tacit.service.keys import ApiKey, KeyRing, Scope
from tacit.service.served import Pace, ServedVersion, Shelf
from tacit.service.settings import Settings
from tacit.service.telemetry import LOG, TOGETHER

T = TypeVar("T")
R = TypeVar("R")
_MOST_TOGETHER = 500  # requests in one transaction
_MOST_WAITING = 64  # requests for a turn, or for the thread
_KEYS_EVERY, _PARENT_EVERY = 2.0, 1.0  # seconds
_KEYS_UNREAD = "the keys cannot be read again; known keys stay valid, even those that were revoked since"
_UNAUTHORISED = {"WWW-Authenticate": "Bearer"}


class Batches(Generic[T, R]):
    """Puts requests that wait for the disk into shared transactions: those that arrive during one form the next.

    The ledger's own group commit does the same for threads. This class needs one thread for each kind of work, however many
    requests wait. ``work`` returns an outcome for each item, or the error to raise for it. If ``work`` raises an error, all
    items get it.
    """

    def __init__(self, name: str, work: Callable[[list[T]], Sequence[R | Exception]], most_waiting: int) -> None:
        self._work, self._most_waiting = work, most_waiting
        self._waiting: deque[tuple[T, asyncio.Future[R]]] = deque()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._runner: asyncio.Task[None] | None = None
        self._sizes = TOGETHER.labels(name)

    async def __call__(self, item: T) -> R:
        """Returns the outcome once it is durable."""
        if len(self._waiting) >= self._most_waiting:
            raise Problem("not-ready", "too many requests are waiting. Try again.", TRY_AGAIN)
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[R] = loop.create_future()
        self._waiting.append((item, outcome))
        if self._runner is None:
            self._runner = loop.create_task(self._run(loop))
        return await outcome

    async def close(self) -> None:
        """Waits for the work in progress."""
        if self._runner is not None:
            await self._runner
        self._thread.shutdown()

    async def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            while self._waiting:
                batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), _MOST_TOGETHER))]
                self._sizes.observe(len(batch))
                try:
                    outcomes = await loop.run_in_executor(self._thread, self._work, [item for item, _ in batch])
                    if len(outcomes) != len(batch):
                        raise RuntimeError("work must return one outcome for each item")
                except Exception as problem:
                    outcomes = [problem] * len(batch)
                for (_, future), outcome in zip(batch, outcomes, strict=True):
                    if future.done():  # the caller has gone; the write stays
                        continue
                    if isinstance(outcome, Exception):
                        future.set_exception(outcome)
                    else:
                        future.set_result(outcome)
        finally:
            self._runner = None


class Workbench:
    """Runs the work of requests where it delays others the least; see `Pace`.

    Work of some milliseconds runs on the event loop, one piece in each round. In a thread it would delay others longer,
    because Python switches threads only every few milliseconds.
    """

    def __init__(self) -> None:
        self._waiting = {Pace.IN_TURN: 0, Pace.BESIDE: 0}  # separate: a busy thread does not delay the loop
        self._turn = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="answers")

    async def __call__(self, work: Callable[[], R], pace: Pace) -> R:
        if pace is Pace.AT_ONCE:
            return work()
        if self._waiting[pace] >= _MOST_WAITING:  # this request would wait for seconds, and later ones longer
            raise Problem("not-ready", "too many long requests are waiting. Try again.", TRY_AGAIN)
        self._waiting[pace] += 1
        try:
            loop = asyncio.get_running_loop()
            if pace is Pace.BESIDE:
                return await loop.run_in_executor(self._thread, work)
            await self._turn.acquire()
            try:
                return work()
            finally:
                loop.call_soon(self._turn.release)  # in the next round, after everything else that waits for the loop
        finally:
            self._waiting[pace] -= 1

    def close(self) -> None:
        """Waits for the work in progress, and drops the work that waits."""
        self._thread.shutdown(cancel_futures=True)


@dataclass
class State:
    """The state that the routes of one worker share, from its start to its end."""

    settings: Settings
    keys: KeyRing
    ledger: ImpressionLedger
    shelf: Shelf
    offers: Batches[OfferRequest, Offer | None] = field(init=False)
    impressions: Batches[Impression, Settlement] = field(init=False)
    engagements: Batches[Engagement, Settlement] = field(init=False)
    workbench: Workbench = field(default_factory=Workbench)

    def __post_init__(self) -> None:
        most = self.settings.most_waiting
        self.offers = Batches("offers", lambda requests: self.served.private_selection.offer_many(requests), most)
        self.impressions = Batches(
            "impressions", lambda impressions: self.served.private_selection.bill_many(impressions), most
        )
        self.engagements = Batches("engagements", self._engage, most)

    @property
    def served(self) -> ServedVersion:
        """The version that answers now. Raises a Problem until the first one is loaded."""
        served = self.shelf.served
        if served is None:
            raise Problem("not-ready", "no model is loaded yet. Try again.", TRY_AGAIN)
        return served

    def _engage(self, engagements: list[Engagement]) -> list[Settlement | Exception]:
        """Settles the clicks one by one: they are rare compared with offers and reports."""
        outcomes: list[Settlement | Exception] = []
        for engagement in engagements:
            try:
                outcomes.append(self.served.private_selection.engage(engagement))
            except Exception as problem:
                outcomes.append(problem)
        return outcomes

    async def close(self) -> None:
        """Finishes the work in progress, then closes the ledger."""
        await self.offers.close()
        await self.impressions.close()
        await self.engagements.close()
        self.workbench.close()
        self.ledger.close()


def state_of(request: HttpRequest) -> State:
    """The state of the worker that answers this request."""
    return cast(State, request.app.state.service)


def allowed(keys: KeyRing, request: HttpRequest, *scopes: Scope) -> ApiKey:
    """The caller's key. Raises a Problem unless it is valid and has one of these scopes."""
    key = keys.find(request.headers.get("authorization", ""))
    if key is None:
        raise Problem("unauthorised", "this needs a valid key: Authorization: Bearer tacit_...", _UNAUTHORISED)
    if key.scope not in scopes:
        raise Problem("forbidden", f"this needs a key with the scope {' or '.join(scopes)}.")
    return key


async def watch_parent() -> None:
    """Ends this worker when its parent process is gone. Otherwise it would keep running, and keep the port."""
    process = multiprocessing.parent_process()  # it may already be gone
    parent = os.getppid() if process is None else process.pid
    while os.getppid() == parent:
        await asyncio.sleep(_PARENT_EVERY)
    os.kill(os.getpid(), signal.SIGTERM)


async def watch_keys(keys: KeyRing) -> None:
    """Reads the keys again when their file changes. It logs an unreadable file once; the known keys stay valid."""
    logged = False
    while True:
        await asyncio.sleep(_KEYS_EVERY)
        try:
            await asyncio.to_thread(keys.refresh)
            logged = False
        except (TacitError, OSError) as problem:
            if not logged:
                LOG.error(_KEYS_UNREAD, extra={"about": {"because": str(problem)}})
            logged = True
