"""Batches: what arrives while one transaction is under way goes together into the next, and each has its own outcome."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import pytest

from tacit.errors import Conflict, LedgerUnavailable
from tacit.service.bodies import Problem
from tacit.service.state import Batches

T = TypeVar("T")


class Work:
    """Squares numbers; waits for a sign before each batch, and remembers what came together."""

    def __init__(self, outcome: Callable[[int], Any] = lambda item: item * item) -> None:
        self.batches: list[list[int]] = []
        self.threads: set[int] = set()
        self.goes_on = threading.Event()
        self.outcome = outcome

    def __call__(self, items: list[int]) -> Sequence[Any]:
        self.threads.add(threading.get_ident())
        self.batches.append(items)
        assert self.goes_on.wait(10)
        return [self.outcome(item) for item in items]


def ended(asking: Awaitable[T]) -> T:
    """What comes of it; where it would go on for ever, that is an error."""
    return asyncio.run(asyncio.wait_for(asking, 20.0))


def gathered(work: Work, items: Sequence[int], most: int = 1000) -> list[Any]:
    """Asks for the first; for the others while that one is under way."""

    async def asking() -> list[Any]:
        batches = Batches[int, int]("test", work, most)
        first = asyncio.ensure_future(batches(items[0]))
        while not work.batches:
            await asyncio.sleep(0.001)
        rest = [asyncio.ensure_future(batches(item)) for item in items[1:]]
        await asyncio.sleep(0)  # all of them wait now
        work.goes_on.set()
        found = await asyncio.gather(first, *rest, return_exceptions=True)
        await batches.close()
        return list(found)

    return ended(asking())


def test_what_waits_goes_together_in_its_order_and_everybody_has_her_own_outcome() -> None:
    work = Work()
    assert gathered(work, range(101)) == [item * item for item in range(101)]
    assert work.batches == [[0], list(range(1, 101))]  # one transaction for a hundred


def test_very_many_go_in_several_batches() -> None:
    work = Work()
    assert gathered(work, range(1202), most=2000) == [item * item for item in range(1202)]
    assert [len(batch) for batch in work.batches] == [1, 500, 500, 201]


def test_one_thread_does_all_of_it_and_not_that_of_the_loop() -> None:
    work = Work()
    gathered(work, range(1202), most=2000)
    assert len(work.threads) == 1
    assert threading.get_ident() not in work.threads


def test_an_error_of_one_does_not_touch_the_others() -> None:
    work = Work(lambda item: Conflict("used before.") if item == 2 else item)
    one, two, three, four = gathered(work, [1, 2, 3, 4])
    assert (one, three, four) == (1, 3, 4)
    assert isinstance(two, Conflict)


def test_an_error_of_all_is_raised_for_all_of_that_batch_and_the_next_is_tried() -> None:
    def failing(item: int) -> int:
        if item == 0:
            raise LedgerUnavailable("the disk is full.")
        return item

    first, *rest = gathered(Work(failing), [0, 1, 2])
    assert isinstance(first, LedgerUnavailable)
    assert rest == [1, 2]
    one, *together = gathered(Work(failing), [1, 2, 0, 3])
    assert one == 1
    assert [type(outcome) for outcome in together] == [LedgerUnavailable] * 3


def test_beyond_the_most_that_may_wait_the_answer_is_later() -> None:
    work = Work()
    found = gathered(work, range(10), most=5)
    assert found[:6] == [0, 1, 4, 9, 16, 25]  # one under way, five waiting
    assert all(isinstance(one, Problem) for one in found[6:])
    assert {(one.code, one.status, one.headers["Retry-After"]) for one in found[6:]} == {("not-ready", 503, "1")}
    assert work.batches == [[0], [1, 2, 3, 4, 5]]


def run(asking: Callable[[Work, Batches[int, int]], Awaitable[Any]]) -> tuple[Work, Any]:
    async def running() -> tuple[Work, Any]:
        work = Work()
        return work, await asking(work, Batches[int, int]("test", work, 1000))

    return ended(running())


def test_a_caller_who_leaves_changes_nothing_for_the_others() -> None:
    async def asking(work: Work, batches: Batches[int, int]) -> list[int]:
        calls = [asyncio.ensure_future(batches(item)) for item in range(4)]
        while not work.batches:
            await asyncio.sleep(0.001)
        calls[0].cancel()
        calls[2].cancel()
        work.goes_on.set()
        found = [await calls[1], await calls[3], await batches(9)]  # and it goes on afterwards
        await batches.close()
        return found

    work, found = run(asking)
    assert found == [1, 9, 81]
    assert [item for batch in work.batches for item in batch] == [0, 1, 2, 3, 9]  # what was written is written


def test_the_end_waits_for_what_is_under_way() -> None:
    async def asking(work: Work, batches: Batches[int, int]) -> list[int]:
        calls = [asyncio.ensure_future(batches(item)) for item in range(3)]
        await asyncio.sleep(0)
        threading.Timer(0.05, work.goes_on.set).start()
        await batches.close()
        assert all(call.done() for call in calls)
        return [call.result() for call in calls]

    assert run(asking)[1] == [0, 1, 4]


def test_after_the_end_nothing_is_taken_and_an_unused_one_ends_at_once() -> None:
    async def asking(work: Work, batches: Batches[int, int]) -> None:
        await batches.close()
        with pytest.raises(RuntimeError):
            await batches(1)

    work, _ = run(asking)
    assert work.batches == []


def test_too_few_outcomes_are_an_error_and_nobody_waits_for_ever() -> None:
    async def asking() -> list[Any]:
        batches = Batches[int, int]("test", lambda items: [1] * (len(items) - 1), 10)
        calls = [asyncio.wait_for(batches(item), 2.0) for item in range(3)]
        return list(await asyncio.gather(*calls, return_exceptions=True))

    found = ended(asking())
    assert all(isinstance(one, Exception) and not isinstance(one, TimeoutError) for one in found)
