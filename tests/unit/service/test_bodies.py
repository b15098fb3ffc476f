"""Bodies: which form comes in, which goes out, and what is refused."""

import asyncio
from datetime import date
from typing import Any

import orjson
import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message

from tacit.errors import InvalidMessage
from tacit.guarantees import ONE_USER, pure
from tacit.messages import multi_selection as messages
from tacit.messages.multi_selection import Reply, Signal
from tacit.messages.private_selection import Candidate
from tacit.service.bodies import (
    BINARY,
    JSON,
    SCHEMA_OF,
    SCHEMAS,
    LedgerStatementBody,
    Problem,
    SlateRelease,
    SlateReleasesBody,
    StateBody,
    StatementBody,
    body_of,
    form_of,
    json_bytes,
    json_of,
    json_response,
    reply_response,
    request_of,
    wanted_form,
)
from tests.unit.service.asking import scope_of


def asked(parts: list[bytes] | None = None, **headers: str) -> Request:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    waiting: list[Message] = [{"type": "http.request", "body": part, "more_body": True} for part in parts or [b""]]
    waiting[-1]["more_body"] = False

    async def receive() -> Message:
        return waiting.pop(0)

    return Request(scope_of("POST", "/", named), receive)


@pytest.mark.parametrize("given", [JSON, "application/json; charset=utf-8", " Application/JSON ;x=1"])
def test_a_content_type_is_read_without_its_parameters(given: str) -> None:
    assert form_of(asked(content_type=given)) == JSON


@pytest.mark.parametrize("given", ["", "text/plain", "application/json5", "json", "*/*", BINARY])
def test_another_content_type_is_415(given: str) -> None:
    with pytest.raises(Problem) as problem:
        form_of(asked(content_type=given))
    assert (problem.value.status, JSON in problem.value.detail) == (415, True)
    with pytest.raises(Problem, match="unsupported-media-type"):
        form_of(asked())  # a body that does not say what it is may be sent by any page, without asking first


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("*/*", "otherwise"),
        ("application/*", "otherwise"),
        ("text/html, */*;q=0.1", "otherwise"),
        (JSON, JSON),
        (BINARY, BINARY),
        ("APPLICATION/JSON", JSON),
        (f"text/html, {BINARY};q=0.9, {JSON};q=0.8", BINARY),
        (f"{JSON}, {BINARY}", JSON),
        (f"{JSON};q=0, {BINARY}", BINARY),
        (f"{JSON} ; q=0.0,{BINARY}", BINARY),
        (f"{JSON};charset=utf-8;q=0.000,{BINARY}", BINARY),
        (f"{BINARY};q=0, */*", "otherwise"),
        (f"{JSON};q=0.001", JSON),
    ],
)
def test_the_answer_has_the_form_that_is_accepted_first(accept: str, form: str) -> None:
    assert wanted_form(asked(accept=accept), "otherwise") == form


def test_anything_but_one_form_is_the_other() -> None:
    assert wanted_form(asked(accept=f"{JSON};q=0, */*"), JSON) == BINARY
    assert wanted_form(asked(accept=f"*/*, {BINARY};q=0"), BINARY) == JSON


def test_a_caller_who_says_nothing_accepts_anything() -> None:
    assert wanted_form(asked(), BINARY) == BINARY


@pytest.mark.parametrize("accept", ["text/html", f"{JSON};q=0", f"{JSON};q=0, {BINARY};q=0.0", "*/*;q=0", "text/*"])
def test_a_form_that_there_is_not_is_406(accept: str) -> None:
    with pytest.raises(Problem) as problem:
        wanted_form(asked(accept=accept), JSON)
    assert problem.value.status == 406


def read(work: Any) -> Any:
    return asyncio.run(work)


def test_a_body_in_parts_is_one_body() -> None:
    assert read(body_of(asked([b"one"]))) == b"one"
    assert read(body_of(asked([b"on", b"", b"e", b""]))) == b"one"


def test_a_caller_who_leaves_in_the_middle_has_sent_no_body() -> None:
    waiting: list[Message] = [{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}]

    async def receive() -> Message:
        return waiting.pop(0)

    with pytest.raises(ClientDisconnect):
        read(body_of(Request(scope_of("POST", "/"), receive)))


@pytest.mark.parametrize("content", [b"", b"{", b"{'a': 1}", b"NaN", b"\xff", b'{"a": 1} x', b"[" * 3000])
def test_what_is_no_json_is_400_and_is_not_shown(content: bytes) -> None:
    with pytest.raises(Problem) as problem:
        read(json_of(asked([content], content_type=JSON)))
    assert (problem.value.code, problem.value.status) == ("malformed-body", 400)
    assert problem.value.__suppress_context__
    assert problem.value.detail == "the body is not JSON."


def test_a_request_is_read_in_the_form_that_it_came_in() -> None:
    sent = messages.Request(Signal.nothing(3, "0.1"), 4, 2)
    assert read(request_of(asked([sent.to_bytes()], content_type=BINARY))) == (sent, BINARY)
    assert read(request_of(asked([orjson.dumps(sent.to_json())], content_type=JSON))) == (sent, JSON)
    with pytest.raises(Problem, match="unsupported-media-type"):
        read(request_of(asked([sent.to_bytes()], content_type="text/plain")))


def test_what_a_message_refuses_is_raised_as_it_is() -> None:
    for content, form in ((b"x", BINARY), (b"{}", JSON)):
        with pytest.raises(InvalidMessage):
            read(request_of(asked([content], content_type=form)))


def test_answers_say_what_they_are() -> None:
    reply = Reply.of([7], 1, "none", 3)
    binary, text = reply_response(reply, BINARY, {"Tacit-Parts": "3"}), reply_response(reply, JSON)
    assert binary.body == reply.to_bytes()
    assert (binary.headers["content-type"], binary.headers["tacit-parts"]) == (BINARY, "3")
    assert (orjson.loads(text.body), text.headers["content-type"]) == (reply.to_json(), JSON)
    assert (json_response(StateBody("alive")).status_code, json_response(StateBody("alive")).body) == (
        200,
        b'{"state":"alive"}',
    )


def test_a_body_writes_the_messages_and_guarantees_in_it_as_they_write_themselves() -> None:
    counted = pure(0.5, ONE_USER)
    rows = [SlateRelease("counts", 3, counted)]
    body = SlateReleasesBody(rows, None)
    told = {"name": "counts", "items": 3, "guarantee": counted.to_json()}
    assert orjson.loads(json_bytes(body)) == {"releases": [told], "together": None}
    candidate = Candidate("film", 0.5, 20)
    assert orjson.loads(json_bytes(candidate)) == candidate.to_json()
    days = StatementBody(date(2026, 11, 1), date(2026, 11, 2), 0, "0", [])
    assert orjson.loads(json_bytes(days))["first_day"] == "2026-11-01"


def test_a_body_refuses_what_has_no_form_in_json() -> None:
    with pytest.raises(TypeError):
        json_bytes(LedgerStatementBody("s", "now", {"a": object()}, 0, {}, [], pure(0.5, ONE_USER)))


def test_every_body_has_a_schema_under_a_name_of_its_own() -> None:
    assert len(SCHEMAS) == len(SCHEMA_OF)
