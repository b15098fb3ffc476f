"""What the edge notes of a request, in metrics and in one line of the log; and what it does when something goes wrong."""

import asyncio
import json
import logging
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tacit.service.application import Edge
from tacit.service.bodies import Problem
from tacit.service.keys import KeyRing
from tacit.service.telemetry import REGISTRY
from tests.unit.service.asking import Answer, answer_of, ask, scope_of

Make = Callable[..., Edge]


@pytest.fixture
def edge(settings: Callable[..., Any], tmp_path: Path) -> Make:
    return lambda app, **given: Edge(app, settings(**given), KeyRing(tmp_path / "keys.json"))


def routed(route: str | None, answer: ASGIApp) -> ASGIApp:
    """An application that knows one route."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if route is not None:
            scope["route"] = SimpleNamespace(path=route)
        await answer(scope, receive, send)

    return app


def asked(app: ASGIApp, path: str = "/", **more: Any) -> Answer:
    return asyncio.run(ask(app, path, **more))


def count(route: str, method: str, status: int) -> float:
    labels = {"route": route, "method": method, "status": str(status)}
    return REGISTRY.get_sample_value("tacit_request_seconds_count", labels) or 0.0


def labels() -> set[tuple[str, str]]:
    samples = [one for family in REGISTRY.collect() if family.name == "tacit_request_seconds" for one in family.samples]
    return {(one.labels["route"], one.labels["method"]) for one in samples if one.name.endswith("_count")}


async def failing(scope: Scope, receive: Receive, send: Send) -> None:
    raise ValueError("rating four-and-a-half of user 7")


def test_requests_are_counted_by_route_method_and_status(edge: Make) -> None:
    app = edge(routed("/t1/{item}", Response(b"fine")))
    for item in range(3):
        asked(app, f"/t1/{item}")
    assert count("/t1/{item}", "GET", 200) == 3
    asked(edge(routed("/t1/{item}", failing)), "/t1/7", method="POST")
    assert count("/t1/{item}", "POST", 500) == 1


def test_nobody_can_make_up_labels(edge: Make) -> None:
    """A label is kept in memory for good: made-up paths and methods share one."""
    before, unknown = labels(), count("none", "any", 404)
    for number in range(5):
        asked(edge(Response(status_code=404)), f"/made-up-{number}", method=f"BREW{number}")
        asked(edge(routed("/t2", Response(status_code=405))), "/t2", method=f"BREW{number}")
    assert labels() - before <= {("none", "any"), ("/t2", "any")}
    assert count("none", "any", 404) == unknown + 5
    assert count("/t2", "any", 405) == 5


def test_who_is_turned_away_at_the_edge_is_counted_too(edge: Make) -> None:
    before = count("none", "any", 429)
    app = edge(Response(b""), rate=0.001, burst=1)
    assert [asked(app).status for _ in range(3)] == [200, 429, 429]
    assert count("none", "any", 429) == before + 2


def test_a_line_of_the_log_holds_these_members_and_no_more(edge: Make, capfd: pytest.CaptureFixture[str]) -> None:
    """No address, no path as it was typed, no query, no header, no body."""
    app = edge(routed("/t3/{item}", Response(b"hello")), log_requests=True)
    asked(app, "/t3/secret-318?key=secret", headers={"user-agent": "secret", "authorization": "Bearer secret"})
    out, err = capfd.readouterr()
    (line,) = err.splitlines()
    assert out == ""
    noted = json.loads(line)
    assert set(noted) == {"at", "level", "process", "event", "route", "method", "status", "ms", "bytes"}
    assert [noted[name] for name in ("event", "route", "method", "status", "bytes")] == [
        "request", "/t3/{item}", "GET", 200, 5,
    ]  # fmt: skip
    assert 0.0 <= noted["ms"] < 10_000
    assert "secret" not in line
    assert "192.0.2.1" not in line


@pytest.mark.parametrize("what", ["offers", "impressions", "engagements"])
def test_offers_and_reports_that_went_well_have_no_line(
    edge: Make, capfd: pytest.CaptureFixture[str], what: str
) -> None:
    """The ledger keeps the day of an impression, and their order: a line with the time of each would give the time of all."""
    route = f"/v1/private-selection/{what}"
    for status, lines in ((200, 0), (204, 0), (422, 1), (503, 1)):
        asked(edge(routed(route, Response(status_code=status)), log_requests=True), route, method="POST")
        assert len(capfd.readouterr().err.splitlines()) == lines, status


def test_lines_can_be_left_out(edge: Make, capfd: pytest.CaptureFixture[str]) -> None:
    asked(edge(Response(b"hello"), log_requests=False))
    assert capfd.readouterr() == ("", "")


def test_an_unexpected_error_is_answered_without_its_message_and_its_places_are_logged(
    edge: Make, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, "tacit.service"):
        answer = asked(edge(failing))
    assert (answer.status, answer.code) == (500, "internal-error")
    assert "four-and-a-half" not in answer.body.decode()
    (record,) = caplog.records
    assert record.about["error"] == "ValueError"  # type: ignore[attr-defined]
    assert record.about["places"][-1].endswith(" failing")  # type: ignore[attr-defined]
    assert "four-and-a-half" not in str(vars(record))  # in words: digits stand in its times by chance
    assert record.exc_info is None


@pytest.mark.parametrize("error", [ValueError("4.5"), Problem("not-ready", "later.")])
def test_an_answer_that_has_begun_is_not_begun_again(edge: Make, error: Exception) -> None:
    async def half(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise error

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request"}

    asyncio.run(edge(half)(scope_of("GET", "/"), receive, send))
    assert answer_of(sent).status == 200


def test_a_caller_who_left_is_no_error_and_gets_no_answer(edge: Make, caplog: pytest.LogCaptureFixture) -> None:
    async def left(scope: Scope, receive: Receive, send: Send) -> None:
        raise ClientDisconnect

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    before = count("/t4", "POST", 499)
    asyncio.run(edge(routed("/t4", left))(scope_of("POST", "/"), receive, send))
    assert sent == []
    assert count("/t4", "POST", 499) == before + 1
    assert caplog.records == []


def test_a_cancelled_request_is_not_swallowed(edge: Make) -> None:
    """Else a server that is told to stop would wait for it."""

    async def cancelled(scope: Scope, receive: Receive, send: Send) -> None:
        raise asyncio.CancelledError

    async def asking() -> None:
        await ask(edge(cancelled), "/")

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(asking())


def test_what_is_no_request_passes(edge: Make) -> None:
    seen: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope["type"])

    async def nothing(*_: object) -> Any:
        return {}

    asyncio.run(edge(app)({"type": "lifespan"}, nothing, nothing))
    assert seen == ["lifespan"]
