"""So many bytes, in so much time: limits of a request's body, announced or streamed."""

import asyncio
from collections.abc import Sequence

import pytest
from starlette.types import Message, Receive

from tacit.service.application import bounded
from tacit.service.bodies import Problem


def sender(parts: Sequence[bytes], *, pause: float = 0.0, ends: bool = True) -> Receive:
    """Sends a body in parts; then its caller leaves after a pause."""
    waiting: list[Message] = [
        {"type": "http.request", "body": part, "more_body": not ends or place < len(parts) - 1}
        for place, part in enumerate(parts)
    ] + [{"type": "http.disconnect"}]

    async def receive() -> Message:
        await asyncio.sleep(pause)
        return waiting.pop(0)

    return receive


def read(receive: Receive) -> tuple[int, list[Message]]:
    """Reads to the end of the body; how many bytes went on, and all messages."""

    async def reading() -> tuple[int, list[Message]]:
        found = [await receive()]
        while found[-1].get("more_body"):
            found.append(await receive())
        return sum(len(one["body"]) for one in found), found

    return asyncio.run(reading())


@pytest.mark.parametrize("parts", [[b"x" * 10], [b"x" * 5, b"x" * 5], [b"x"] * 10, [b"", b"x" * 10, b""]])
def test_a_body_of_the_most_bytes_goes_on_as_it_is(parts: list[bytes]) -> None:
    size, messages = read(bounded(sender(parts), 10, 5.0))
    assert size == 10
    assert [one["body"] for one in messages] == parts


@pytest.mark.parametrize("parts", [[b"x" * 11], [b"x" * 5, b"x" * 6], [b"x"] * 11, [b"x" * 10, b"", b"x"]])
def test_one_byte_more_is_refused_and_the_connection_closed(parts: list[bytes]) -> None:
    with pytest.raises(Problem) as told:
        read(bounded(sender(parts), 10, 5.0))
    assert (told.value.code, told.value.status) == ("too-large", 413)
    # else what is still on its way would be read as the next request
    assert told.value.headers["Connection"] == "close"


def test_a_body_is_refused_as_soon_as_it_is_too_large() -> None:
    taken = 0

    async def endless() -> Message:
        nonlocal taken
        taken += 1
        return {"type": "http.request", "body": b"x" * 100, "more_body": True}

    with pytest.raises(Problem, match="too-large"):
        read(bounded(endless, 1000, 5.0))
    assert taken == 11


def test_a_body_that_stops_coming_is_given_up() -> None:
    async def silent() -> Message:
        return await asyncio.Future()

    with pytest.raises(Problem) as told:
        read(bounded(silent, 10, 0.02))
    assert (told.value.code, told.value.status) == ("too-slow", 408)
    assert told.value.headers["Connection"] == "close"


def test_the_time_is_that_of_the_whole_body_and_not_of_each_part() -> None:
    with pytest.raises(Problem, match="too-slow"):
        read(bounded(sender([b"x"] * 20, pause=0.02), 100, 0.1))


def test_what_comes_after_the_body_may_take_its_time() -> None:
    """A caller who waits for her answer sends nothing: that is no slow body."""

    async def waiting() -> tuple[Message, Message]:
        body = sender([b"x" * 10])

        async def receive() -> Message:
            message = await body()
            await asyncio.sleep(0.4 if message["type"] == "http.disconnect" else 0.0)
            return message

        limited = bounded(receive, 10, 0.3)
        return await limited(), await limited()

    first, second = asyncio.run(waiting())
    assert (first["body"], second["type"]) == (b"x" * 10, "http.disconnect")


def test_a_caller_who_leaves_ends_the_body() -> None:
    async def leaving() -> list[str]:
        limited = bounded(sender([b"x"], ends=False), 10, 5.0)
        return [(await limited())["type"] for _ in range(2)]

    assert asyncio.run(leaving()) == ["http.request", "http.disconnect"]
