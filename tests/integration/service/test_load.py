"""Many connections for a minute, of all that devices do: no error, and every count exact. TACIT_LOAD_SECONDS says how long."""

import asyncio
import os
import re
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from tacit.ledger.verification import check
from tacit.messages.multi_selection import Reply
from tacit.service.keys import Scope, issue
from tests.integration.service.conftest import PRICES, Serve, listings_in
from tests.integration.service.talking import (
    BINARY,
    IMPRESSIONS,
    MULTI_SELECTION,
    OFFERS,
    impression,
    in_ledger,
    request_of,
)

SECONDS = float(os.environ.get("TACIT_LOAD_SECONDS", "60"))
CONNECTIONS = 64


@dataclass
class Load:
    """Devices that share nothing but the service, each over a connection of its own."""

    client: httpx.AsyncClient
    shown: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)

    async def device(self, number: int, end: float) -> None:
        rng = np.random.default_rng(number)
        kinds = (self.slate, self.slate, self.offer, self.offer, self.catalogue, self.private_slate)
        while time.monotonic() < end:
            kind = kinds[int(rng.integers(len(kinds)))]
            try:
                await kind(rng)
                self.done[kind.__name__] += 1
            except (httpx.TransportError, AssertionError) as problem:
                self.errors.append(f"{kind.__name__}: {problem!r}")

    async def sent(self, method: str, path: str, **given: Any) -> httpx.Response:
        answer = await self.client.request(method, path, **given)
        assert answer.status_code in (200, 304), (answer.status_code, answer.text)
        return answer

    async def slate(self, rng: np.random.Generator) -> None:
        asked = request_of(int(rng.integers(1 << 30)), k=int(rng.integers(1, 12)))
        answer = await self.sent("POST", MULTI_SELECTION, content=asked.to_bytes(), headers={"Content-Type": BINARY})
        assert len(Reply.from_bytes(answer.content).items) == asked.k

    async def offer(self, rng: np.random.Generator) -> None:
        consent = int(rng.integers(2))
        offer = (await self.sent("POST", OFFERS, json={"version": 1, "context": "", "consent": consent})).json()
        item = offer["candidates"][int(rng.integers(len(offer["candidates"])))]["item"]
        outcomes = []
        for _ in range(int(rng.integers(1, 3))):  # some say it twice
            answer = await self.sent("POST", IMPRESSIONS, json=impression(offer["token"], item))
            outcomes.append(answer.json()["outcome"])
        assert outcomes == ["ok", "duplicate"][: len(outcomes)]
        self.shown[item] += 1

    async def catalogue(self, rng: np.random.Generator) -> None:
        answer = await self.sent("GET", "/v1/catalogue")
        if rng.integers(2):
            again = await self.sent("GET", "/v1/catalogue", headers={"If-None-Match": answer.headers["etag"]})
            assert again.status_code == 304

    async def private_slate(self, rng: np.random.Generator) -> None:
        k, drawn = int(rng.integers(1, 20)), ("true", "false")[int(rng.integers(2))]
        answer = await self.sent("GET", "/v1/slates/counts-1", params={"k": k, "drawn": drawn})
        assert len(set(answer.json()["slate"]["items"])) == k


async def run(address: str) -> Load:
    limits = httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS)
    async with httpx.AsyncClient(base_url=address, limits=limits, timeout=30.0, trust_env=False) as client:
        load = Load(client)
        end = time.monotonic() + SECONDS
        await asyncio.gather(*(load.device(number, end) for number in range(CONNECTIONS)))
    return load


def test_a_minute_of_everything_at_once_has_no_error_and_exact_counts(serve: Serve, tmp_path: Path) -> None:
    service = serve(workers=2, listings=listings_in(tmp_path), policy="rr", log_requests="false")
    operator = {"Authorization": f"Bearer {issue(service.home / 'keys.json', 'operator', Scope.OPERATOR)}"}
    service.start()
    workers = service.workers()
    load = asyncio.run(run(service.address))
    assert load.errors == []
    assert min(load.done.values()) > 10
    assert len(load.done) == 4
    with service.client(headers=operator) as client:
        counts = client.get("/v1/private-selection/counts").json()["items"]
        measured = client.get("/metrics").text
    assert {one["item"]: one["impressions"] for one in counts} == load.shown
    assert {one["item"]: int(one["micros"]) for one in counts} == {
        item: PRICES[item] * times for item, times in load.shown.items()
    }
    offers = re.search(r"^tacit_offers_total ([0-9.e+]+)$", measured, re.MULTILINE)
    settled = re.search(r'^tacit_settled_total\{outcome="ok"\} ([0-9.e+]+)$', measured, re.MULTILINE)
    assert offers is not None
    assert settled is not None
    assert float(offers[1]) == float(settled[1]) == load.shown.total()  # of both workers together
    assert service.workers() == workers, "a worker died"
    assert service.stop() == 0
    database = str(service.home / "server.db")
    assert in_ledger(database) == load.shown
    assert check(database).sound
