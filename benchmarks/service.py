"""The service against an empty endpoint of the same framework, both on one worker, over loopback, in alternating rounds.

What our own layers cost (limits, parsing, headers, metrics, the log, turns) is measured where nothing else is done: by the service
with slates that are known already. A difference of two endpoints that work for milliseconds does not show it: on a machine that
others use their work alone varies by more.
"""

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.http_load import Load, Post, load, together
from benchmarks.multi_selection import GENRES, flags_of, tastes
from benchmarks.timing import LOWER, Row
from tacit.messages.multi_selection import Request, Signal
from tacit.messages.store import Store
from tacit.models.features import GenreProfile
from tacit.models.items import Items
from tacit.models.scorers import TwoTower
from tacit.service.bodies import BINARY
from tacit.service.versions import publish

SIZES = (3_402, 160_000)
# Many short rounds in turn: what else a machine does changes more slowly, and is the same for all sides of a round.
_ROUNDS, _SECONDS, _CONNECTIONS = 15, 0.5, 8
_TARGET = 1.5
_TOLD = f"processor seconds of a request; {LOWER}"
_OFFERED = b'{"version":1,"context":"","consent":1}'
_EMPTY = Post("/empty", _OFFERED)


@dataclass(frozen=True)
class Seen:
    """A round: what the callers saw, and the processor's seconds for each request, which hardly depend on what else is running."""

    load: Load
    cost: float


@dataclass(frozen=True)
class Server:
    """One that listens on this machine, in processes of its own."""

    port: int
    process: int

    def round(self, post: Post) -> Seen:
        before = _processor_seconds(self.process)
        found = load(self.port, post, connections=_CONNECTIONS, seconds=_SECONDS)
        return Seen(found, (_processor_seconds(self.process) - before) / found.count)


def run() -> list[Row]:
    rng = np.random.default_rng(2024)
    flags = flags_of(rng)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for count in SIZES:
            home = Path(folder) / str(count)
            publish(home / "models", _store(flags, count, rng))
            rows += _of_one_size(home, count, _request(rng))
    return rows


def _of_one_size(home: Path, count: int, request: bytes) -> list[Row]:
    slates, offers = "multi-selection", "offers"
    ours = {
        slates: Post("/v1/multi-selection", request, BINARY),
        offers: Post("/v1/private-selection/offers", _OFFERED),
    }
    bare = {slates: Post("/multi-selection", request, BINARY), offers: Post("/offers", _OFFERED)}
    rows = []
    with (
        _listening(["benchmarks.bare_server", "create"], home, _EMPTY) as without,
        _listening(["benchmarks.bare_server", "create_without_work"], home, ours[slates]) as layers,
        _listening(["tacit", "serve"], home, ours[offers]) as server,
    ):
        alone = _rounds((layers, ours[slates]), (without, _EMPTY))
        rows.append(_layers(f"{slates}-{count}", "slates that are known", *_sides(alone)))
        for what in ours:
            found = _rounds((server, ours[what]), (without, bare[what]), (without, _EMPTY))
            mine, same, empty = _sides(found)
            rows.append(
                Row(name=f"request-{what}-{count}", peer="the same work in a bare endpoint", ours=mine, theirs=same,
                    ratio=mine / same, target=None, note=f"whole requests; {_TOLD}")
            )  # fmt: skip
            if what == offers:  # our layers are beside a disk, whose transactions they share
                rows.append(_layers(f"{what}-{count}", "a bare endpoint with the same work", mine, same, empty))
            rows += _times(f"{what}-{count}", found)
    return rows


def _rounds(*sides: tuple[Server, Post]) -> list[list[Seen]]:
    for server, post in sides:
        server.round(post)  # warm up
    return [[server.round(post) for server, post in sides] for _ in range(_ROUNDS)]


def _sides(rounds: list[list[Seen]]) -> list[float]:
    """What a request costs on each side."""
    return [statistics.median(seen.cost for seen in side) for side in zip(*rounds, strict=True)]


def _layers(name: str, beside: str, ours: float, other: float, empty: float | None = None) -> Row:
    empty = other if empty is None else empty
    return Row(name=f"layers-{name}", peer="an empty endpoint", ours=ours - other, theirs=empty, ratio=(ours - other) / empty,
               target=_TARGET, note=f"what our layers add: {beside}; {_TOLD}")  # fmt: skip


def _times(name: str, rounds: list[list[Seen]]) -> list[Row]:
    sides = [together(one[side].load for one in rounds) for side in (0, 2)]
    percentiles = [statistics.quantiles(one.times, n=100) for one in sides]
    found = {
        "p50": ([cuts[49] for cuts in percentiles], LOWER),
        "p99": ([cuts[98] for cuts in percentiles], LOWER),
        "rate": ([one.count / one.seconds for one in sides], "requests a second; ratio = ours / theirs"),
    }
    return [
        Row(name=f"{what}-{name}", peer="an empty endpoint", ours=mine, theirs=other, ratio=mine / other, target=None,
            note=f"one worker, {_CONNECTIONS} connections; {better}")
        for what, ((mine, other), better) in found.items()
    ]  # fmt: skip


def _store(flags: np.ndarray, count: int, rng: np.random.Generator) -> Store:
    features = np.concatenate([rng.dirichlet(np.full(GENRES, 0.6), count) for _ in range(2)], axis=1)
    items = Items(np.arange(len(flags), dtype=np.int64))
    return Store.of(items, GenreProfile(flags), TwoTower(tastes(), flags), features)


def _request(rng: np.random.Generator) -> bytes:
    steps = rng.integers(-100_000, 1 << 20, size=2 * GENRES).tolist()
    signal = {**Signal.nothing(2 * GENRES, "0.1").to_json(), "empty": False, "steps": steps}
    return Request(Signal.from_json(signal), 5).to_bytes()


def _processor_seconds(process: int) -> float:
    """Of a process and all that it started, on the processor until now."""
    total, waiting = 0, [process]
    while waiting:
        one = waiting.pop()
        with suppress(FileNotFoundError):  # it has ended
            for thread in Path(f"/proc/{one}/task").iterdir():
                total += int((thread / "schedstat").read_text().split()[0])  # nanoseconds
            waiting += map(int, Path(f"/proc/{one}/task/{one}/children").read_text().split())
    return total / 1e9


@contextmanager
def _listening(words: list[str], home: Path, first: Post) -> Iterator[Server]:
    environment = {**os.environ, "TACIT_SERVE_RATE": "0", "TACIT_SERVE_HOME": str(home), "TACIT_SERVE_PORT": "0"}
    environment["TACIT_SERVE_DATABASE"] = str(home / f"{words[-1]}.db")
    log = home / f"{words[-1]}.log"
    with (
        log.open("wb") as out,
        subprocess.Popen([sys.executable, "-m", *words], stderr=out, env=environment) as process,
    ):
        try:
            yield Server(_ready(log, process, first), process.pid)
        finally:
            process.terminate()


def _ready(log: Path, process: subprocess.Popen[bytes], post: Post) -> int:
    """The port, once a first request was answered there."""
    for _ in range(600):
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", log.read_text())
        if found:
            with suppress(OSError, StopIteration):
                load(int(found[1]), post, seconds=0.01)
                return int(found[1])
        if process.poll() is not None:
            break
        time.sleep(0.2)
    raise RuntimeError(f"the server did not start: {log.read_text()[-500:]}")
