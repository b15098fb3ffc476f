"""A server in the test's own process, behind httpx.MockTransport: real parties, no network, a record of all that arrived."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import tacit
from tacit.ledger import Budget
from tacit.messages.multi_selection import Reply, Request
from tacit.messages.private_selection import Engagement, Impression, OfferRequest
from tacit.messages.store import Store
from tacit.models.features import GenreProfile
from tacit.models.items import Items
from tacit.models.multi_selection import LinearMap, fit_ridge
from tacit.server import MultiSelection, PrivateSelection, listings_of
from tests.releases import changed
from tests.unit.device.small_world import Clock
from tests.unit.server.small_store import GENRES, small_store

ADDRESS = "http://127.0.0.1:8000"
BUDGET = Budget(epsilon=10, per="month")
BINARY, JSON, PROBLEM = "application/vnd.tacit", "application/json", "application/problem+json"
ITEMS = 300
NAMES = tuple(f"Genre {place}" for place in range(GENRES))

Handler = Callable[[httpx.Request], httpx.Response]


def film(place: int) -> str:
    return f"Film no. {place} ({1950 + place % 70})"


def titled_store() -> Store:
    store = small_store(ITEMS)
    return changed(store, items=Items(store.items.ids, tuple(film(place) for place in range(ITEMS))))


STORE = titled_store()
SLATES = MultiSelection(STORE, compiled=False)
LISTED = [*STORE.items.ids[:10].tolist(), *STORE.items.ids[-10:].tolist()]  # of both parts of the model


def scorer_rows() -> np.ndarray:
    utilities = STORE.scorer.score(STORE.look_alikes, np.arange(ITEMS))
    return fit_ridge(STORE.look_alikes, utilities, np.ones(len(STORE.look_alikes))).matrix


ROWS = scorer_rows()


def catalogue(store: Store = STORE) -> dict[str, Any]:
    space = store.space
    assert isinstance(space, GenreProfile)
    return {
        "version": 1,
        "name": store.name,
        "model": store.version,
        "features": {
            "kind": space.kind,
            "dimension": space.dimension,
            "names": list(NAMES),
            "liked_from": space.liked_from,
            "low": 0,
            "high": 1,
            "grid_bits": 20,
        },
        "ids": store.items.ids.tolist(),
        "titles": list(store.items.titles or ()),
        "genres": [np.flatnonzero(row).tolist() for row in space.flags],
    }


def scorer_parts(size: int = 255) -> list[Reply]:
    numbers, dimension = STORE.items.numbers.tolist(), STORE.space.dimension
    return [
        Reply.of(numbers[first : first + size], len(numbers[first : first + size]), LinearMap(part), dimension)
        for first in range(0, ITEMS, size)
        for part in [ROWS[first : first + size]]
    ]


def told(content: object, status: int = 200, kind: str = JSON, **headers: str) -> httpx.Response:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    # as a stream: else httpx would unpack it here, and not send what was packed wrongly
    return httpx.Response(status, headers={"content-type": kind, **headers}, stream=httpx.ByteStream(body))


def problem(code: str, status: int, detail: str = "because.", **headers: str) -> httpx.Response:
    content = {"type": f"urn:tacit:{code}", "code": code, "title": code, "status": status, "detail": detail}
    return told(content, status, PROBLEM, **headers)


class TinyServer:
    """``instead`` answers a path in place of the server; what it returns None for, the server answers."""

    def __init__(self, place: Path, clock: Clock | None = None, **options: Any) -> None:
        self.clock = clock or Clock()
        listings, people = listings_of(STORE, LISTED)
        options = {"policy": "rr", "gamma": 1.0, "epsilon": 1.0, "explore": 0.0, **options}
        self.shop = PrivateSelection(listings, place, spread=people, clock=self.clock, **options)
        self.catalogue = catalogue()
        self.parts = scorer_parts()
        self.instead: dict[str, Callable[[httpx.Request], httpx.Response | None]] = {}
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        made = self.instead.get(path_of(request), lambda _: None)(request)
        return self.answer(request) if made is None else made

    def answer(self, request: httpx.Request) -> httpx.Response:
        path, body = path_of(request), request.content
        if path == "/v1/catalogue":
            return told(self.catalogue, etag='"who-are-you"', **{"set-cookie": "who=you"})
        if path == "/v1/multi-selection":
            return self._slate(request)
        if path == "/v1/private-selection/scorer":
            reply = self.parts[int(request.url.params["part"])]
            return self._reply(reply, request.headers["accept"], **{"tacit-parts": str(len(self.parts))})
        if path == "/v1/private-selection/offers":
            offer = self.shop.offer(OfferRequest.from_json(json.loads(body)))
            return httpx.Response(204) if offer is None else told(offer.to_json())
        if path == "/v1/private-selection/impressions":
            return told({"outcome": self.shop.bill(Impression.from_json(json.loads(body)))})
        if path == "/v1/private-selection/engagements":
            return told({"outcome": self.shop.engage(Engagement.from_json(json.loads(body)))})
        return problem("not-found", 404)

    def sent(self, path: str) -> list[bytes]:
        """The bodies that arrived for a path that ends so."""
        return [one.content for one in self.requests if one.url.path.endswith(path)]

    def traffic(self) -> list[bytes]:
        """All that arrived: lines, headers and bodies, in order."""
        return [wire(one) for one in self.requests]

    def _slate(self, request: httpx.Request) -> httpx.Response:
        binary = request.headers["content-type"] == BINARY
        asked = Request.from_bytes(request.content) if binary else Request.from_json(json.loads(request.content))
        return self._reply(SLATES.answer(asked.signal, asked.k, asked.t), request.headers["accept"])

    def _reply(self, reply: Reply, form: str, **headers: str) -> httpx.Response:
        return told(reply.to_bytes() if form == BINARY else reply.to_json(), 200, form, **headers)


def path_of(request: httpx.Request) -> str:
    """Whatever stands before it is the way to this server."""
    return request.url.path[request.url.path.index("/v1/") :]


def wire(request: httpx.Request) -> bytes:
    lines = [
        f"{request.method} {request.url}",
        *(f"{name}: {value}" for name, value in sorted(request.headers.items())),
    ]
    return "\n".join(lines).encode() + b"\n\n" + request.content


class Awaited:
    """An AsyncClient as the tests of Client call it: what talks is awaited here, everything else is passed on."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.client = tacit.AsyncClient(*args, **options)
        asyncio.run(self.client.__aenter__())

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.client, name)
        if name not in ("recommend", "choose", "shown", "flush", "clicks"):
            return found
        return lambda *args, **options: asyncio.run(found(*args, **options))

    def close(self) -> None:
        asyncio.run(self.client.aclose())

    def __enter__(self) -> "Awaited":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


KINDS = {"waiting": tacit.Client, "awaiting": Awaited}


def client_of(kind: str, place: Path, server: Handler, **options: Any) -> Any:
    """A client of either kind, in the middle of November 2026."""
    clock = getattr(server, "clock", None) or Clock()
    options = {"budget": BUDGET, "clock": clock, "transport": httpx.MockTransport(server), **options}
    return KINDS[kind](options.pop("address", ADDRESS), place, **options)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long clients would have waited: nobody does in a test."""
    found: list[float] = []

    async def noted(seconds: float) -> None:
        found.append(seconds)

    monkeypatch.setattr("tacit.device.client.sleep", found.append)
    monkeypatch.setattr("anyio.sleep", noted)
    return found


@pytest.fixture
def server(tmp_path: Path) -> Iterator[TinyServer]:
    made = TinyServer(tmp_path / "server.db")
    yield made
    made.shop.close()


@pytest.fixture(params=list(KINDS))
def opened(request: pytest.FixtureRequest, tmp_path: Path, server: TinyServer) -> Iterator[Callable[..., Any]]:
    """Opens clients of one kind, by default of the same file and server."""
    clients: list[Any] = []

    def open_client(place: str = "me.db", **options: Any) -> Any:
        clients.append(client_of(request.param, tmp_path / place, options.pop("server", server), **options))
        return clients[-1]

    yield open_client
    for client in clients:
        client.close()
