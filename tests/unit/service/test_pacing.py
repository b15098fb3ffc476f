"""Work on the loop, in turns, and beside it: nobody waits for more than one piece of it, and not too many wait."""

import asyncio
import itertools
import threading
from collections.abc import Awaitable
from typing import Any, TypeVar

import pytest

from tacit.service.bodies import Problem
from tacit.service.served import Pace
from tacit.service.state import Workbench

T = TypeVar("T")


def ended(asking: Awaitable[T]) -> T:
    return asyncio.run(asyncio.wait_for(asking, 20.0))


def test_what_is_quick_is_done_where_it_stands() -> None:
    async def asking() -> tuple[int, int]:
        pacing = Workbench()
        return await pacing(threading.get_ident, Pace.AT_ONCE), threading.get_ident()

    here, loop = ended(asking())
    assert here == loop


def test_of_what_takes_its_turn_one_is_done_in_each_round_and_others_come_between() -> None:
    """Else as many as have come together would be worked off before anybody else is listened to."""
    done: list[str] = []

    async def asking() -> None:
        pacing = Workbench()
        over = asyncio.Event()

        async def others() -> None:
            while not over.is_set():
                done.append("other")
                await asyncio.sleep(0)

        beside = asyncio.ensure_future(others())
        slates = [asyncio.ensure_future(pacing(lambda: done.append("slate"), Pace.IN_TURN)) for _ in range(5)]
        await asyncio.gather(*slates)
        over.set()
        await beside

    ended(asking())
    places = [place for place, what in enumerate(done) if what == "slate"]
    assert len(places) == 5
    assert all("other" in done[first:second] for first, second in itertools.pairwise(places))


def test_an_error_or_a_caller_who_leaves_gives_the_turn_to_the_next() -> None:
    def failing() -> int:
        raise ZeroDivisionError

    async def asking() -> list[Any]:
        pacing = Workbench()
        calls = [
            asyncio.ensure_future(pacing(work, Pace.IN_TURN)) for work in (failing, lambda: 1, lambda: 2, lambda: 3)
        ]
        await asyncio.sleep(0)
        calls[1].cancel()
        found = await asyncio.gather(*calls, return_exceptions=True)
        return [*found, await pacing(lambda: 4, Pace.IN_TURN)]

    first, second, *rest = ended(asking())
    assert isinstance(first, ZeroDivisionError)
    assert isinstance(second, asyncio.CancelledError)
    assert rest == [2, 3, 4]


def test_what_takes_long_is_done_beside_and_the_loop_listens_meanwhile() -> None:
    async def asking() -> tuple[int, int]:
        pacing, goes_on = Workbench(), threading.Event()

        def long() -> int:
            assert goes_on.wait(10)
            return threading.get_ident()

        working = asyncio.ensure_future(pacing(long, Pace.BESIDE))
        await asyncio.sleep(0.01)
        assert not working.done()
        goes_on.set()
        return await working, threading.get_ident()

    beside, loop = ended(asking())
    assert beside != loop


@pytest.mark.parametrize("pace", [Pace.IN_TURN, Pace.BESIDE])
def test_beyond_the_most_that_may_wait_the_answer_is_later(pace: Pace) -> None:
    async def asking() -> list[Any]:
        pacing = Workbench()
        calls = [pacing(lambda: 1, pace) for _ in range(70)]
        found = list(await asyncio.gather(*calls, return_exceptions=True))
        return [*found, await pacing(lambda: 2, pace)]

    *found, later = ended(asking())
    refused = [one for one in found if isinstance(one, Problem)]
    assert found.count(1) + len(refused) == 70
    assert found.count(1) >= 64
    assert refused
    assert {one.code for one in refused} == {"not-ready"}
    assert later == 2


def test_those_who_wait_for_the_thread_do_not_keep_others_from_their_turn() -> None:
    async def asking() -> int:
        pacing, goes_on = Workbench(), threading.Event()
        long = [asyncio.ensure_future(pacing(lambda: goes_on.wait(10), Pace.BESIDE)) for _ in range(64)]
        await asyncio.sleep(0)
        try:
            with pytest.raises(Problem):
                await pacing(lambda: True, Pace.BESIDE)
            return await pacing(lambda: 5, Pace.IN_TURN)
        finally:
            goes_on.set()
            await asyncio.gather(*long)

    assert ended(asking()) == 5


def test_the_end_waits_for_the_work_under_way_and_not_for_what_is_behind_it() -> None:
    done: list[int] = []

    async def asking() -> list[Any]:
        pacing, begun, goes_on = Workbench(), threading.Event(), threading.Event()

        def first() -> None:
            begun.set()
            assert goes_on.wait(10)
            done.append(1)

        calls = [asyncio.ensure_future(pacing(work, Pace.BESIDE)) for work in (first, lambda: done.append(2))]
        await asyncio.to_thread(begun.wait, 10)
        threading.Timer(0.1, goes_on.set).start()
        pacing.close()
        return await asyncio.gather(*calls, return_exceptions=True)

    under_way, behind = ended(asking())
    assert under_way is None
    assert isinstance(behind, asyncio.CancelledError)
    assert done == [1]
