"""A small published world, and services on it: real processes, over SQLite and over a real PostgreSQL."""

import fcntl
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import httpx
import pytest

from tacit.messages.store import Store
from tacit.service.keys import Scope, issue
from tests.integration.conftest import PostgresqlServer
from tests.integration.service import publisher
from tests.integration.service.serving import Service

_NUMBERS = count(1)
# What is offered for money: the score of a listing is its bid times its probability of a click, in micro-units, and whoever is
# shown owes the score of the next in rank.
SCORES = {str(item): 800_000 - 50_000 * place for place, item in enumerate((31, 5, 74, 12, 99, 60, 23, 8))}
PRICES = dict(zip(SCORES, [*list(SCORES.values())[1:], 0], strict=True))


@dataclass(frozen=True)
class Published:
    """Two versions of a world of 120 items; the first of them is the one that is served."""

    folder: Path
    first: str
    second: str

    @property
    def models(self) -> Path:
        return self.folder / "models"

    @property
    def ratings(self) -> Path:
        return self.folder / "films.parquet"

    def store(self, version: str | None = None) -> Store:
        return Store.load(self.models / (version or self.first) / "store.tacit")


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> Published:
    """Made once, also where several processes test. Nobody writes to it: who must, copies it."""
    common = tmp_path_factory.getbasetemp()
    if common.name.startswith("popen-"):  # a worker of pytest-xdist: its parent's folder is common to all
        common = common.parent
    folder = common / "published"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "versions").exists():
            words = [sys.executable, publisher.__file__, str(folder)]
            done = subprocess.run(words, capture_output=True, text=True, timeout=200, check=False)
            assert done.returncode == 0, done.stderr
    first, second = (folder / "versions").read_text().split()
    return Published(folder, first, second)


@pytest.fixture(scope="session")
def store(published: Published) -> Store:
    """What the first version serves."""
    return published.store()


Serve = Callable[..., Service]


@pytest.fixture
def serve(tmp_path: Path, published: Published) -> Iterator[Serve]:
    """Makes services of the published world, and ends them after the test. They are not limited unless a test says so."""
    made: list[Service] = []

    def make(*words: str, **settings: object) -> Service:
        settings = {"models": published.models, "rate": 0, **settings}
        made.append(Service(tmp_path / f"service-{len(made)}", *words, **settings))
        return made[-1]

    yield make
    for service in made:
        service.kill()


@dataclass(frozen=True)
class Running:
    """A service that many tests share, with an operator's key and what it counts in."""

    service: Service
    database: str
    operator: dict[str, str]  # the header

    def client(self, **settings: object) -> httpx.Client:
        return self.service.client(**settings)


def _running(folder: Path, published: Published, database: str, **settings: object) -> Iterator[Running]:
    service = Service(folder, models=published.models, rate=0, policy="rr", database=database, **settings)
    key = issue(service.home / "keys.json", "operator", Scope.OPERATOR)
    service.start()
    try:
        yield Running(service, database, {"Authorization": f"Bearer {key}"})
    finally:
        service.kill()


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory, published: Published) -> Iterator[Running]:
    """One service over SQLite, for tests that change nothing but counts."""
    folder = tmp_path_factory.mktemp("running")
    yield from _running(folder, published, str(folder / "server.db"))


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def counting(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, published: Published
) -> Iterator[Running]:
    """One service for the tests of a module, over either store, with listings that are paid for."""
    folder = tmp_path_factory.mktemp("counting")
    database = _new_place(request, folder)
    yield from _running(folder, published, database, listings=listings_in(folder))


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place with no ledger in it, for services that come and go."""
    return _new_place(request, tmp_path)


def _new_place(request: pytest.FixtureRequest, folder: Path) -> str:
    return (
        str(folder / "server.db") if request.param == "sqlite" else new_database(request.getfixturevalue("postgresql"))
    )


def listings_in(folder: Path) -> Path:
    """A file of listings with these scores: bids ten times as high, clicked one time in ten."""
    file = folder / "listings.csv"
    rows = [f"{item},{10 * score},100000" for item, score in SCORES.items()]
    file.write_text("\n".join(["item,bid_micros,ppm", *rows]) + "\n")
    return file


def new_database(server: PostgresqlServer) -> str:
    """An empty one that ends with the server. (The fixture ``target`` drops its databases after each test, these would go too.)"""
    name = f"service_{next(_NUMBERS)}"
    server.run(f"CREATE DATABASE {name} TEMPLATE template0")
    return server.uri_of(name)
