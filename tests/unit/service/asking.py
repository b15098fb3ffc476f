"""An ASGI application that is asked in the test's own process: no sockets, and every message that it sends is seen."""

import asyncio
import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from starlette.types import ASGIApp, Message, Scope

HERE = ("192.0.2.1", 5000)


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The stable code of a problem."""
        assert self.headers["content-type"] == "application/problem+json"
        return str(self.json()["code"])


def scope_of(
    method: str, path: str, headers: Mapping[str, str] | None = None, client: tuple[str, int] | None = HERE
) -> Scope:
    place, _, query = path.partition("?")
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "http",
        "method": method,
        "path": place,
        "raw_path": place.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in (headers or {}).items()],
        "client": client,
        "server": ("test", 80),
        "state": {},
    }


async def ask(
    app: ASGIApp,
    path: str,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    body: bytes | Iterable[bytes] | None = None,
    client: tuple[str, int] | None = HERE,
) -> Answer:
    """One request. A body as bytes is announced by its length, one in parts is not; then the caller waits for the answer."""
    headers = dict(headers or {})
    parts = [body] if isinstance(body, bytes) else list(body or [])
    if isinstance(body, bytes):
        headers.setdefault("content-length", str(len(body)))
    elif body is not None:
        headers.setdefault("transfer-encoding", "chunked")
    waiting = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    waiting[-1:] = [{"type": "http.request", "body": parts[-1] if parts else b"", "more_body": False}]
    sent: list[Message] = []

    async def receive() -> Message:
        return waiting.pop(0) if waiting else await asyncio.Future()

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope_of(method, path, headers, client), receive, send)
    return answer_of(sent)


def answer_of(sent: list[Message]) -> Answer:
    starts = [message for message in sent if message["type"] == "http.response.start"]
    assert len(starts) == 1, "a request has one answer"
    named = [(name.decode(), value.decode()) for name, value in starts[0]["headers"]]
    assert len(named) == len(dict(named)), "every header is there once"
    return Answer(starts[0]["status"], dict(named), b"".join(message.get("body", b"") for message in sent))


class Running:
    """An application between its start and its end, on an event loop of its own."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.loop = asyncio.new_event_loop()

    def __enter__(self) -> "Running":
        self.loop.run_until_complete(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        self.loop.run_until_complete(self._stop())
        self.loop.close()

    def ask(self, path: str, **more: Any) -> Answer:
        return self.loop.run_until_complete(ask(self.app, path, **more))

    async def _start(self) -> None:
        self._told: asyncio.Queue[Message] = asyncio.Queue()
        self._heard: asyncio.Queue[Message] = asyncio.Queue()
        scope: Scope = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}
        self._life = asyncio.ensure_future(self.app(scope, self._told.get, self._heard.put))
        self._told.put_nowait({"type": "lifespan.startup"})
        assert (await self._heard.get())["type"] == "lifespan.startup.complete"

    async def _stop(self) -> None:
        self._told.put_nowait({"type": "lifespan.shutdown"})
        assert (await self._heard.get())["type"] == "lifespan.shutdown.complete"
        await self._life
