"""Servers that mean harm, or are none: wrong sizes and types, endless answers, crafted catalogues. Nothing is believed."""

import gzip
import json
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from tacit.device import catalogue as remote_catalogue
from tacit.device import wire
from tacit.device.wire import Call, ResponseReader
from tacit.errors import Conflict, InvalidMessage, ServerRefused
from tacit.messages.multi_selection import Reply
from tacit.models.multi_selection import LinearMap
from tests.unit.device.tiny_server import (
    BINARY,
    ITEMS,
    JSON,
    ROWS,
    STORE,
    TinyServer,
    catalogue,
    film,
    opened,
    pauses,
    problem,
    scorer_parts,
    server,
    told,
)

__all__ = ["opened", "pauses", "server"]
pytestmark = pytest.mark.usefixtures("pauses")
SLATE, SCORER, OFFERS = "/v1/multi-selection", "/v1/private-selection/scorer", "/v1/private-selection/offers"
CATALOGUE = "/v1/catalogue"
Opened = Callable[..., Any]


class Endless(httpx.SyncByteStream, httpx.AsyncByteStream):
    """An answer without an end, which counts what was taken of it."""

    def __init__(self, packed: bool = False) -> None:
        self.taken, self.packed = 0, packed

    def __iter__(self) -> Iterator[bytes]:
        packing = zlib.compressobj(wbits=31)
        while True:
            chunk = packing.compress(bytes(1 << 22)) if self.packed else bytes(1 << 16)
            self.taken += len(chunk)
            assert self.taken < 1 << 27, "nobody stopped"
            yield chunk

    async def __aiter__(self) -> Any:
        for chunk in iter(self):
            yield chunk


def slate(k: int = 5, dimension: int = 10, first: int = 100) -> bytes:
    return Reply.of(range(first, first + 3 * k, 3), k, LinearMap(np.zeros((k, 1 + dimension))), dimension).to_bytes()


NO_SLATES = {
    "nothing": partial(told, b"", kind=BINARY),
    "half of one": partial(told, slate()[:-1], kind=BINARY),
    "one byte too many": partial(told, slate() + b"\0", kind=BINARY),
    "another size": partial(told, slate(6), kind=BINARY),
    "other features": partial(told, slate(dimension=8), kind=BINARY),
    "items that nobody knows": partial(told, slate(first=101), kind=BINARY),
    "JSON where bytes were asked for": partial(told, Reply.from_bytes(slate()).to_json()),
    "bytes that are called JSON": partial(told, slate(), kind=JSON),
    "a page": partial(told, b"<html>", kind="text/html"),
    "no type": partial(httpx.Response, 200, content=slate()),
    "nothing to offer": partial(httpx.Response, 204),
    "a number that is none": partial(told, slate()[:-4] + b"\xff\xff\xff\x7f", kind=BINARY),
    "a packing that was not asked for": partial(told, slate(), kind=BINARY, **{"content-encoding": "br"}),
    "packed wrongly": partial(told, slate(), kind=BINARY, **{"content-encoding": "gzip"}),
    "packed in half": partial(told, gzip.compress(slate())[:-9], kind=BINARY, **{"content-encoding": "gzip"}),
    "packed, and more": partial(told, gzip.compress(slate()) + b"more", kind=BINARY, **{"content-encoding": "gzip"}),
}


@pytest.mark.parametrize("answer", NO_SLATES.values(), ids=NO_SLATES.keys())
def test_what_is_no_slate_is_refused_and_asked_for_once(
    opened: Opened, server: TinyServer, answer: Callable[[], httpx.Response]
) -> None:
    server.instead[SLATE] = lambda _: answer()
    me = opened()
    me.rate({film(3): 5})
    with pytest.raises((InvalidMessage, ServerRefused)) as caught:
        me.recommend()
    assert isinstance(caught.value, ServerRefused) == (answer().status_code == 204)
    assert len(server.sent("multi-selection")) == 1
    server.instead.clear()
    assert len(me.recommend()) == 1  # the signal is the same, and nothing is broken
    assert len(set(server.sent("multi-selection"))) == 1


GARBAGE = {
    "no JSON": b"{",
    "no UTF-8": b'{"\xff": 1}',
    "too deep": b"[" * 100_000,
    "a number of too many digits": b"1" * 10_000,
    "a name twice": b'{"version": 1, "version": 1}',
    "a list": b"[]",
    "null": b" null",  # with a space: an error may name the type
    "not a number": b'{"version": NaN}',
}


@pytest.mark.parametrize("content", GARBAGE.values(), ids=GARBAGE.keys())
def test_garbage_for_json_is_refused_and_not_repeated(opened: Opened, server: TinyServer, content: bytes) -> None:
    me = opened(form="json")
    server.instead = dict.fromkeys((SLATE, CATALOGUE, SCORER, OFFERS), lambda _: told(content))
    for call in (me.recommend, me.choose, opened):
        with pytest.raises(InvalidMessage) as caught:
            call()
        assert content[:50].decode(errors="ignore") not in str(caught.value)
        assert caught.value.__context__ is None or caught.value.__suppress_context__
    del server.instead[SCORER]
    server.instead[SCORER] = server.answer
    assert me.choose() is None  # an offer that is none is nothing to show, and no error


@pytest.mark.parametrize("path", [CATALOGUE, SLATE, SCORER, OFFERS])
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "packed"])
def test_an_endless_answer_is_not_read_to_its_end(opened: Opened, server: TinyServer, path: str, packed: bool) -> None:
    stream = Endless(packed)
    headers = {"content-encoding": "gzip"} if packed else {}
    form = BINARY if path in (SLATE, SCORER) else JSON
    me = None if path == CATALOGUE else opened()
    server.instead[path] = lambda _: httpx.Response(200, headers={"content-type": form, **headers}, stream=stream)
    with pytest.raises(InvalidMessage, match="larger than"):
        opened() if me is None else me.recommend() if path == SLATE else me.choose()
    assert stream.taken <= remote_catalogue.MOST_BYTES + (1 << 17)


@pytest.mark.parametrize("path", [CATALOGUE, SLATE])
def test_a_few_bytes_do_not_unpack_to_many(opened: Opened, server: TinyServer, path: str) -> None:
    bomb = gzip.compress(bytes(1 << 27), 9)
    assert len(bomb) < 1 << 18
    me = None if path == CATALOGUE else opened()
    form = BINARY if path == SLATE else JSON
    server.instead[path] = lambda _: told(bomb, kind=form, **{"content-encoding": "gzip"})
    with pytest.raises(InvalidMessage, match="larger than"):
        opened() if me is None else me.recommend()


def test_they_are_not_even_unpacked() -> None:
    bomb = gzip.compress(bytes(1 << 27), 9)
    received = ResponseReader(Call("GET", "/", JSON, most=1000), 200, {"content-encoding": "gzip"}, 10.0)
    tracemalloc.start()
    try:
        assert not received.feed(bomb)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_packed_answer_is_read(opened: Opened, server: TinyServer) -> None:
    content = gzip.compress(json.dumps(catalogue()).encode())
    server.instead[CATALOGUE] = lambda _: told(content, **{"content-encoding": "gzip"})
    assert len(opened().catalogue.items) == ITEMS


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(opened: Opened, server: TinyServer, status: int) -> None:
    me = opened()
    server.instead[SLATE] = lambda _: httpx.Response(status, headers={"location": "https://elsewhere.example/v1/"})
    with pytest.raises(ServerRefused, match="Redirects are not followed") as caught:
        me.recommend()
    assert caught.value.problem is None
    assert {one.url.host for one in server.requests} == {"127.0.0.1"}
    assert len(server.sent("multi-selection")) == 1


@pytest.mark.parametrize(
    "answer",
    [
        partial(problem, "Invalid Message", 422),
        partial(problem, "x" * 1000, 422),
        partial(problem, "", 422),
        partial(told, {"code": "invalid-message", "detail": "no"}, 422, JSON),
        partial(told, [], 422, "application/problem+json"),
        partial(told, b"{", 422, "application/problem+json"),
        partial(told, {"code": 7}, 422, "application/problem+json"),
        partial(told, b" " * 100_000 + b'{"code": "invalid-message"}', 422, "application/problem+json"),
    ],
)
def test_what_is_no_problem_is_not_the_servers_own_word(
    opened: Opened, server: TinyServer, answer: Callable[[], httpx.Response]
) -> None:
    me = opened()
    server.instead[SLATE] = lambda _: answer()
    with pytest.raises(ServerRefused, match="status 422") as caught:
        me.recommend()
    assert caught.value.problem is None
    assert len(str(caught.value)) < 300


def changed(**changes: Any) -> dict[str, Any]:
    """The catalogue with other members; those of its features are named with ``features_``."""
    found = catalogue()
    for name, value in changes.items():
        inner = name.startswith("features_")
        (found["features"] if inner else found)[name.removeprefix("features_")] = value
    return found


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in catalogue().items() if key != name}


def ids(*first: Any) -> list[Any]:
    return [*first, *catalogue()["ids"][len(first) :]]


def rows(first: Any) -> list[Any]:
    return [first, *catalogue()["genres"][1:]]


WRONG = {
    "a version to come": changed(version=2),
    "a member more": changed(user=7),
    "a member less": without("titles"),
    "a name that is a number": changed(name=7),
    "a name with a line break": changed(name="a\nb"),
    "a model that is no digest": changed(model="latest"),
    "features of another kind": changed(features_kind="factors/1"),
    "features with more members": changed(features_user=7),
    "features that are a list": changed(features=[]),
    "one feature too many": changed(features_dimension=11),
    "another dimension": changed(features_dimension=8),
    "no genres": changed(features_names=[], features_dimension=0),
    "a genre twice": changed(features_names=["a", "a", "b", "c", "d"]),
    "a genre too few": changed(features_names=["a", "b", "c", "d"], features_dimension=8),
    "genres that are numbers": changed(features_names=[1, 2, 3, 4, 5]),
    "likes that are no number": changed(features_liked_from="4"),
    "likes that are infinite": changed(features_liked_from=float("inf")),
    "a larger domain": changed(features_high=2),
    "a domain below 0": changed(features_low=-1),
    "a coarser grid": changed(features_grid_bits=2),
    "no items": changed(ids=[], titles=[], genres=[]),
    "one id too few": changed(ids=catalogue()["ids"][1:]),
    "ids that fall": changed(ids=catalogue()["ids"][::-1]),
    "an id twice": changed(ids=ids(100, 100)),
    "ids of two kinds": changed(ids=ids(100, "103")),
    "ids that are numbers after texts": changed(ids=ids("100", 103)),
    "an id that is a truth value": changed(ids=ids(True)),
    "an id that is a fraction": changed(ids=ids(99.5)),
    "an id beyond 64 bits": changed(ids=[*catalogue()["ids"][:-1], 1 << 63]),
    "an id with a line break": changed(ids=sorted([f"{one}" for one in catalogue()["ids"][1:]] + ["1\n"])),
    "one title too few": changed(titles=catalogue()["titles"][1:]),
    "a title that is a number": changed(titles=[7, *catalogue()["titles"][1:]]),
    "a title that writes on the terminal": changed(titles=["\x1b[2J", *catalogue()["titles"][1:]]),
    "half a letter": changed(titles=["\ud800", *catalogue()["titles"][1:]]),
    "one row of genres too few": changed(genres=catalogue()["genres"][1:]),
    "a genre that is none": changed(genres=rows([5])),
    "a genre below 0": changed(genres=rows([-1])),
    "a genre twice in an item": changed(genres=rows([1, 1])),
    "genres as a text": changed(genres=rows("12")),
    "genres of truth values": changed(genres=rows([True])),
}


@pytest.mark.parametrize("content", WRONG.values(), ids=WRONG.keys())
def test_a_catalogue_of_a_wrong_shape_is_refused(
    opened: Opened, server: TinyServer, tmp_path: Path, content: Any
) -> None:
    server.instead[CATALOGUE] = lambda _: told(content)
    with pytest.raises(InvalidMessage):
        opened()
    assert list(tmp_path.glob("me.db*")) == []  # nothing was begun


@pytest.mark.parametrize("cells", [ITEMS * 5 - 1, 3])
def test_a_catalogue_that_takes_too_much_memory_is_refused(
    opened: Opened, server: TinyServer, monkeypatch: pytest.MonkeyPatch, cells: int
) -> None:
    monkeypatch.setattr(remote_catalogue, "MOST_CELLS", cells)
    with pytest.raises(InvalidMessage):
        opened()
    monkeypatch.setattr(remote_catalogue, "MOST_CELLS", ITEMS * 5)
    opened()
    server.catalogue = changed(ids=sorted([*(f"{one:04}" for one in range(ITEMS - 1)), "x" * 6]))
    with pytest.raises(InvalidMessage, match="memory"):
        opened()


def test_ids_may_be_texts_and_titles_may_be_missing(opened: Opened, server: TinyServer) -> None:
    texts = sorted(f"film-{place:03}" for place in range(ITEMS))
    server.catalogue = changed(ids=texts, titles=None)
    server.instead[SLATE] = lambda _: told(slate(first=0), kind=BINARY)  # numbers on the wire are places
    me = opened()
    me.rate({"film-007": 5})
    assert me.recommend(t=5) == ("film-000", "film-003", "film-006", "film-009", "film-012")
    assert me.titles(("film-003",)) == ("film-003",)


def test_a_catalogue_with_other_features_is_another_signal_and_charged(opened: Opened, server: TinyServer) -> None:
    options: dict[str, Any] = {"refresh": "day"}
    with opened(**options) as me:
        me.recommend(eta=0.2)
        me.recommend(eta=0.2)
        assert me.statement().charges == 1
    server.catalogue = changed(genres=rows([0, 1, 2, 3]), model="ab" * 32)
    with opened(**options) as me:
        me.recommend(eta=0.2)
        assert me.statement().charges == 2
    server.catalogue = changed(features_liked_from=3.0)
    with opened(**options) as me:
        me.recommend(eta=0.2)
        assert me.statement().charges == 2  # nothing is left of the budget: whatever a server invents, no more is told
    first, again, second, third = server.sent("multi-selection")
    assert first == again != second
    assert third.endswith(bytes(40))


def test_a_client_that_cannot_open_leaves_no_connection_behind(
    opened: Opened, server: TinyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[str] = []
    monkeypatch.setattr(httpx.MockTransport, "close", lambda _: closed.append("waiting"))

    async def aclose(_: object) -> None:
        closed.append("awaiting")

    monkeypatch.setattr(httpx.MockTransport, "aclose", aclose)
    server.instead[CATALOGUE] = lambda _: told({})
    with pytest.raises(InvalidMessage):
        opened()
    assert len(closed) == 1


def test_new_titles_or_another_model_cost_nothing(opened: Opened, server: TinyServer) -> None:
    opened().recommend()
    server.catalogue = changed(model="ab" * 32, name="other", titles=None)
    me = opened()
    me.recommend()
    assert me.statement().charges == 1
    assert len(set(server.sent("multi-selection"))) == 1


def test_a_catalogue_with_another_number_of_features_is_not_this_files(opened: Opened, server: TinyServer) -> None:
    opened()
    server.catalogue = changed(features_names=list("abcdef"), features_dimension=12)
    with pytest.raises(Conflict, match="number of features"):
        opened()


def parts_of(*replies: Reply) -> list[Reply]:
    return list(replies)


def of_numbers(numbers: list[int], dimension: int = 10, model: Any = None) -> Reply:
    model = LinearMap(np.zeros((len(numbers), 1 + dimension))) if model is None else model
    return Reply.of(numbers, len(numbers), model, dimension)


WHOLE, LAST = scorer_parts()
NUMBERS = STORE.items.numbers.tolist()
BAD_MODELS = {
    "no model": parts_of(of_numbers(NUMBERS[:9], model="none")),
    "a network": parts_of(of_numbers(NUMBERS[:9], model="network")),
    "other features": parts_of(of_numbers(NUMBERS[:9], 8)),
    "an item that nobody knows": parts_of(of_numbers([101])),
    "an item in two parts": parts_of(WHOLE, WHOLE),
    "more parts than there are items": parts_of(WHOLE, LAST, LAST),
}


@pytest.mark.parametrize("parts", BAD_MODELS.values(), ids=BAD_MODELS.keys())
def test_a_model_for_offers_that_is_none_is_refused_before_there_is_an_offer(
    opened: Opened, server: TinyServer, parts: list[Reply]
) -> None:
    server.parts = parts
    me = opened()
    me.consent()
    with pytest.raises(InvalidMessage):
        me.choose()
    assert server.sent("offers") == []
    server.parts = scorer_parts()
    assert me.choose() is not None


@pytest.mark.parametrize("count", ["", "0", "3", "-1", "two", "2.0", "²", "9" * 50])
def test_the_number_of_parts_is_believed_within_reason(opened: Opened, server: TinyServer, count: str) -> None:
    def counted(request: httpx.Request) -> httpx.Response:
        headers = [(b"content-type", BINARY.encode()), (b"tacit-parts", count.encode("latin-1"))]
        return httpx.Response(200, headers=headers, content=server.answer(request).read())

    server.instead[SCORER] = counted
    with pytest.raises(InvalidMessage, match="1 to 2 parts"):
        opened().choose()
    assert len(server.sent("scorer")) == 1


class Swapped:
    """A server that takes up the next of its versions after so many parts of the one before; None says no version."""

    def __init__(self, server: TinyServer, *turns: tuple[str | None, int]) -> None:
        self.server, self.versions = server, [name for name, parts in turns for _ in range(parts)]

    def __call__(self, request: httpx.Request) -> httpx.Response:
        version, answer = self.versions.pop(0), self.server.answer(request)
        if version is not None:
            answer.headers["Tacit-Version"] = version
        return answer


@pytest.mark.parametrize("version", ["one", None])
def test_a_model_of_one_version_is_fetched_once_whether_the_version_is_said_or_not(
    opened: Opened, server: TinyServer, version: str | None
) -> None:
    server.instead[SCORER] = Swapped(server, (version, 2))
    assert opened().choose() is not None
    assert len(server.sent("scorer")) == 2


@pytest.mark.parametrize(("before", "after"), [("one", "two"), (None, "two"), ("one", None), ("one", "")])
def test_parts_of_two_versions_are_no_model_and_all_are_fetched_again(
    opened: Opened, server: TinyServer, before: str | None, after: str | None
) -> None:
    server.instead[SCORER] = Swapped(server, (before, 1), (after, 3))
    me = opened()
    assert me.choose() is not None
    asked = [one.url.params["part"] for one in server.requests if one.url.path == SCORER]
    assert asked == ["0", "1", "0", "1"]


def test_who_keeps_changing_his_model_has_none_and_gets_no_choice(opened: Opened, server: TinyServer) -> None:
    server.instead[SCORER] = Swapped(server, *((str(turn), 1) for turn in range(4)))
    me = opened()
    me.consent()
    with pytest.raises(InvalidMessage, match="changed"):
        me.choose()
    assert len(server.sent("scorer")) == 4
    assert server.sent("offers") == []
    assert me.selection_statement().charges == 0
    del server.instead[SCORER]
    assert me.choose() is not None


def test_a_model_whose_number_of_parts_changes_while_it_is_fetched_is_fetched_again(
    opened: Opened, server: TinyServer
) -> None:
    def changing(request: httpx.Request) -> httpx.Response:
        answer = server.answer(request)
        if request.url.params["part"] == "1":
            answer.headers["tacit-parts"] = "1"
        return answer

    server.instead[SCORER] = changing
    me = opened()
    with pytest.raises(InvalidMessage, match="changed"):
        me.choose()
    assert len(server.sent("scorer")) == 4  # all parts twice, and then no more
    del server.instead[SCORER]
    assert me.choose() is not None
    assert len(server.sent("scorer")) == 6


def test_a_model_that_has_become_shorter_while_it_is_fetched_is_fetched_again(
    opened: Opened, server: TinyServer
) -> None:
    def shorter(request: httpx.Request) -> httpx.Response | None:
        if request.url.params["part"] == "0":
            return None
        server.parts = [Reply.of(NUMBERS[:5], 5, LinearMap(ROWS[:5]), 10)]
        return problem("not-found", 404)

    server.instead[SCORER] = shorter
    assert opened().choose() is not None
    assert len(server.sent("scorer")) == 3


def test_a_model_without_some_items_leaves_them_at_their_public_score(opened: Opened, server: TinyServer) -> None:
    server.parts = [Reply.of(NUMBERS[:5], 5, LinearMap(ROWS[:5]), 10)]
    me = opened()
    me.rate({film(3): 5})
    me.consent()
    assert me.choose() is not None
    assert me.selection_statement().charges == 1


def test_answers_of_any_length_of_the_offers_are_read_to_the_devices_own_limit(
    opened: Opened, server: TinyServer
) -> None:
    def padded(request: httpx.Request) -> httpx.Response:
        answer = server.answer(request)
        return told(answer.read() + b" " * (wire.MOST_REPLY + 1))

    server.instead[OFFERS] = padded
    assert opened().choose() is not None
