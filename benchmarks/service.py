"""The service against an empty endpoint of the same framework, both on one worker, over loopback, in alternating rounds.

What a request costs the processor beyond a bare endpoint of the same framework that does the same work is what our own layers cost:
limits, parsing, headers, metrics, the log, handing on to a thread.
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
from fractions import Fraction
from pathlib import Path

import numpy as np

from benchmarks.http_load import Load, Post, load
from benchmarks.multi_selection import GENRES, flags_of, tastes
from benchmarks.timing import LOWER, Row
from tacit.guarantees import ONE_USER, nothing
from tacit.messages.multi_selection import Request, Signal
from tacit.messages.store import Store
from tacit.models.features import GenreProfile
from tacit.models.items import Items
from tacit.models.two_tower import TwoTower
from tacit.service.bodies import BINARY
from tacit.service.versions import publish

SIZES = (3_402, 160_000)
_ROUNDS, _SECONDS, _CONNECTIONS = 5, 2.0, 8
_TARGET = 1.5
_OFFERED = b'{"version":1,"context":"","consent":1}'
_EMPTY = Post("/empty", _OFFERED)
_PUBLIC = nothing(ONE_USER, "made up")


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


Rounds = list[tuple[Seen, Seen, Seen]]  # ours, the same work without our layers, an empty endpoint


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
    ours = {
        "multi-selection": Post("/v1/multi-selection", request, BINARY),
        "offers": Post("/v1/private-selection/offers", _OFFERED),
    }
    bare = {"multi-selection": Post("/multi-selection", request, BINARY), "offers": Post("/offers", _OFFERED)}
    rows = []
    with (
        _listening(["benchmarks.bare_server"], home, _EMPTY) as without,
        _listening(["tacit", "serve"], home, ours["offers"]) as server,
    ):
        for what in ours:
            for one, post in ((server, ours[what]), (without, bare[what]), (without, _EMPTY)):
                one.round(post)  # warm up
            found = [
                (server.round(ours[what]), without.round(bare[what]), without.round(_EMPTY)) for _ in range(_ROUNDS)
            ]
            rows += [*_costs(f"{what}-{count}", found), *_times(f"{what}-{count}", found)]
    return rows


def _costs(name: str, rounds: Rounds) -> list[Row]:
    ours, bare, empty = (statistics.median(one[side].cost for one in rounds) for side in range(3))
    spread = sorted((a.cost - b.cost) / c.cost for a, b, c in rounds)
    told = f"processor seconds of a request; {LOWER}"
    return [
        Row(name=f"layers-{name}", peer="an empty endpoint", ours=ours - bare, theirs=empty,
            ratio=(ours - bare) / empty, target=_TARGET,
            note=f"what our layers add to a bare endpoint with the same work; {told}, rounds {spread[0]:.2f} to {spread[-1]:.2f}"),
        Row(name=f"request-{name}", peer="the same work in a bare endpoint", ours=ours, theirs=bare, ratio=ours / bare, target=None,
            note=f"whole requests; {told}"),
    ]  # fmt: skip


def _times(name: str, rounds: Rounds) -> list[Row]:
    rows = []
    for what, better in (("p50", LOWER), ("p99", LOWER), ("rate", "requests a second; ratio = ours / theirs")):
        mine, other = (statistics.median(getattr(one[side].load, what) for one in rounds) for side in (0, 2))
        rows.append(
            Row(name=f"{what}-{name}", peer="an empty endpoint", ours=mine, theirs=other, ratio=mine / other, target=None,
                note=f"one worker, {_CONNECTIONS} connections; {better}")
        )  # fmt: skip
    return rows


def _store(flags: np.ndarray, count: int, rng: np.random.Generator) -> Store:
    features = np.concatenate([rng.dirichlet(np.full(GENRES, 0.6), count) for _ in range(2)], axis=1)
    items = Items(np.arange(len(flags), dtype=np.int64))
    return Store(items, GenreProfile(flags), TwoTower(tastes(), flags), features.astype(np.float32), _PUBLIC, _PUBLIC)


def _request(rng: np.random.Generator) -> bytes:
    steps = rng.integers(-100_000, 1 << 20, size=2 * GENRES)
    return Request(Signal(steps, 20, Fraction(1, 10)), 5).to_bytes()


def _processor_seconds(process: int) -> float:
    """Of a process and all that it started."""
    total, waiting = 0, [process]
    while waiting:
        one = waiting.pop()
        with suppress(FileNotFoundError):  # it has ended
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])  # user and system time
            waiting += map(int, Path(f"/proc/{one}/task/{one}/children").read_text().split())
    return total / os.sysconf("SC_CLK_TCK")


@contextmanager
def _listening(words: list[str], home: Path, first: Post) -> Iterator[Server]:
    environment = {**os.environ, "TACIT_SERVE_RATE": "0", "TACIT_SERVE_HOME": str(home), "TACIT_SERVE_PORT": "0"}
    log = home / f"{words[0]}.log"
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
