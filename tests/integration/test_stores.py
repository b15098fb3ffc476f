"""What every store promises, on a real file and a real server."""

import itertools
import os
import sqlite3
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Iterator

import psycopg
import pytest

from tacit.errors import LedgerDamaged, LedgerExists, LedgerMissing, LedgerTooNew, LedgerUnavailable
from tacit.ledger.chain import Tip
from tacit.ledger.stores import create_store, is_postgresql, open_store, postgresql, sqlite_files
from tacit.ledger.stores.interface import (
    ACCOUNTS,
    MIGRATIONS,
    SUBJECTS,
    TEXTS,
    VERSION,
    AlreadyThere,
    LedgerStore,
    Query,
    Row,
    starting_rows,
)

BOOK = "privacy"
TEXT = Query("SELECT text FROM texts WHERE digest = ?", ("bytes",))
SUBJECT = Query("SELECT number, total, seal FROM subjects WHERE name = ? AND terms = ?", ("text", "bytes"))
AWKWARD = ["", "it's", 'a "quoted" one', "{1,2}", "100 % of \\x41", "NULL", "why?", "häßlich 日本 🙂", "tab\tand\nline"]


def run(target: str, *statements: str) -> list[Row]:
    """Statements past the store, as somebody with a database shell would run them; the rows of the last."""
    if is_postgresql(target):
        with psycopg.connect(target, options="-c search_path=tacit", autocommit=True) as connection:
            cursors = [connection.execute(statement) for statement in statements]  # type: ignore[arg-type]
            return cursors[-1].fetchall() if cursors[-1].description else []
    connection = sqlite3.connect(target, isolation_level=None)
    try:
        return [connection.execute(statement) for statement in statements][-1].fetchall()
    finally:
        connection.close()


def subject(number: int, name: str, total: int = 0) -> Row:
    return (number, name, b"terms", total, 0, 0, number * 1_000_000, number.to_bytes(8, "big"))


def insert(store: LedgerStore, *parts: list[Row]) -> None:
    """Inserts texts, all in one transaction."""
    with store.write(BOOK, [0, 1]) as writer:
        for rows in parts:
            writer.insert(TEXTS, rows)


def texts_in(store: LedgerStore) -> int:
    with store.read() as reader:
        return sum(1 for _ in reader.stream("SELECT digest FROM texts"))


@pytest.fixture
def store(target: str) -> Iterator[LedgerStore]:
    store = create_store(target, lanes=4)
    yield store
    store.close()


def test_a_created_ledger_is_found_again(target):
    created = create_store(target, lanes=5)
    created.close()
    opened = open_store(target)
    assert (opened.ledger, opened.lanes) == (created.ledger, 5)
    opened.close()


def test_a_ledger_that_is_not_there_is_not_made_up(target):
    with pytest.raises(LedgerMissing):
        open_store(target)


def test_a_second_ledger_in_the_same_place_is_refused(target, store):
    with pytest.raises(LedgerExists):
        create_store(target)
    again = open_store(target)
    assert again.ledger == store.ledger
    again.close()


def test_a_later_version_is_refused(target, store):
    run(target, f"UPDATE facts SET value = '{VERSION + 1}' WHERE name = 'version'")
    with pytest.raises(LedgerTooNew, match=f"version {VERSION + 1}"):
        open_store(target)


def test_a_closed_store_is_refused(store):
    store.close()
    with pytest.raises(LedgerUnavailable):
        insert(store, [(b"a", "a")])


CREATING = """
import sys
from tacit.errors import LedgerExists
from tacit.ledger.stores import create_store
print("ready", flush=True)
sys.stdin.readline()
try:
    print(create_store(sys.argv[1]).ledger)
except LedgerExists:
    print("exists")
"""


def test_of_several_processes_that_create_at_once_one_wins(target):
    started = [
        subprocess.Popen(
            [sys.executable, "-c", CREATING, target], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    for process in started:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    said = []
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in started:
        said.append(process.communicate(timeout=60)[0].strip())
        assert process.returncode == 0
    winners = [line for line in said if line != "exists"]
    opened = open_store(target)
    assert winners == [opened.ledger]
    opened.close()


def first_version(target: str) -> dict[str, str]:
    """A ledger as version 1 made it, with something in it; its facts."""
    types = postgresql.TYPES if is_postgresql(target) else sqlite_files.TYPES
    statements = ["CREATE SCHEMA tacit"] if is_postgresql(target) else []
    statements += [table.definition(types) for table in MIGRATIONS[0].tables]
    statements += list(MIGRATIONS[0].statements)
    facts = {}
    for table, row in starting_rows(4):
        if table.name == "facts":
            facts[row[0]] = row[1] if row[0] != "version" else "1"
            row = (row[0], facts[row[0]])
        values = [literal(target, value) for value in row]
        statements.append(f"INSERT INTO {table.name} VALUES ({', '.join(values)})")
    statements.append(f"INSERT INTO texts VALUES ({literal(target, b'kept')}, 'as it was')")
    run(target, *statements)
    return facts


def literal(target: str, value: object) -> str:
    if isinstance(value, bytes):
        return f"'\\x{value.hex()}'::bytea" if is_postgresql(target) else f"x'{value.hex()}'"
    return f"'{value}'" if isinstance(value, str) else str(value)


def test_a_ledger_of_version_1_is_brought_up_to_date_with_all_that_it_holds(target):
    facts = first_version(target)
    opened: list[LedgerStore] = []
    threads = [threading.Thread(target=lambda: opened.append(open_store(target))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [store.ledger for store in opened] == [facts["ledger"]] * 3
    assert run(target, "SELECT value FROM facts WHERE name = 'version'") == [(str(VERSION),)]
    with opened[0].write("impressions", [0, 3]) as writer:
        assert [tip.position for tip in writer.tips.values()] == [0, 0]
        assert writer.ask(TEXT, [(b"kept",)])() == [("as it was",)]
        writer.insert(ACCOUNTS, [(4, "item", 0, 1, 1, b"seal")])
    assert run(target, "SELECT item FROM accounts") == [("item",)]
    for store in opened:
        store.close()


@pytest.mark.parametrize("many", [1, len(AWKWARD)])
def test_values_come_back_as_they_were_written(store, many):
    rows = [(bytes(range(place, 256)), text) for place, text in enumerate(AWKWARD)]
    with store.write(BOOK, [0]) as writer:
        for start in range(0, len(rows), many):
            writer.insert(TEXTS, rows[start : start + many])
    with store.read() as reader:
        for start in range(0, len(rows), many):
            part = rows[start : start + many]
            assert reader.ask(TEXT, [row[:1] for row in part])() == [row[1:] for row in part]
        streamed = list(reader.stream("SELECT digest, text FROM texts"))
    assert sorted(streamed) == sorted(rows)
    assert {type(value) for row in streamed for value in row} == {bytes, str}


@pytest.mark.parametrize("numbers", [[2**63 - 1], [0, 1, 2**31, 2**62, 2**63 - 1]])
def test_integers_keep_all_their_bits(store, numbers):
    with store.write(BOOK, [0]) as writer:
        writer.insert(SUBJECTS, [subject(1 + place, f"s{n}", total=n) for place, n in enumerate(numbers)])
    with store.read() as reader:
        found = reader.ask(SUBJECT, [(f"s{n}", b"terms") for n in numbers])()
    assert [row[1] for row in found] == numbers


@pytest.mark.parametrize("asked", [["here"], ["nobody"], ["nobody", "here", "nobody else", "here", "there"], []])
def test_answers_are_in_the_order_of_the_keys(store, asked):
    with store.write(BOOK, [0]) as writer:
        writer.insert(SUBJECTS, [subject(1, "here"), subject(2, "there")])
        inside = writer.ask(SUBJECT, [(name, b"terms") for name in asked])
        assert [row and row[0] for row in inside()] == [{"here": 1, "there": 2}.get(name) for name in asked]
    with store.read() as reader:
        assert reader.ask(SUBJECT, [(name, b"terms") for name in asked])() == inside()
        assert reader.ask(SUBJECT, [(name, b"other terms") for name in asked])() == [None] * len(asked)


@pytest.mark.parametrize("changed", [[2], [1, 3]])
def test_an_update_changes_its_rows_and_no_other(store, changed):
    with store.write(BOOK, [0]) as writer:
        writer.insert(SUBJECTS, [subject(number, f"s{number}") for number in (1, 2, 3)])
    with store.write(BOOK, [0]) as writer:
        writer.update(SUBJECTS, ("total", "seal"), [(number * 10, b"new", number) for number in changed])
    with store.read() as reader:
        found = list(reader.stream("SELECT number, total, seal FROM subjects ORDER BY number"))
    for number, total, seal in found:
        assert (total, seal) == ((number * 10, b"new") if number in changed else (0, number.to_bytes(8, "big")))


def test_an_insert_unless_there_keeps_what_is_there(store):
    with store.write(BOOK, [0]) as writer:
        writer.insert(TEXTS, [(b"a", "first")], unless_there=True)
    with store.write(BOOK, [0]) as writer:
        writer.insert(TEXTS, [(b"b", "new"), (b"a", "second")], unless_there=True)
        writer.insert(TEXTS, [(b"a", "third")], unless_there=True)
    with store.read() as reader:
        assert reader.ask(TEXT, [(b"a",), (b"b",)])() == [("first",), ("new",)]


@pytest.mark.parametrize("rows", [[(b"new", "x"), (b"a", "y")], [(b"a", "y")]])
def test_a_row_that_is_there_fails_the_whole_transaction(store, rows):
    insert(store, [(b"a", "first")])
    with pytest.raises((LedgerDamaged, AlreadyThere)):
        insert(store, [(b"before", "z")], rows)
    assert texts_in(store) == 1


def test_a_transaction_that_raises_leaves_nothing(store):
    def stopped() -> None:
        with store.write(BOOK, [0, 1]) as writer:
            writer.insert(TEXTS, [(b"a", "x")])
            writer.insert(SUBJECTS, [subject(1, "s"), subject(2, "t")])
            writer.advance({0: Tip(7, b"link", 1)})
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        stopped()
    assert texts_in(store) == 0
    with store.write(BOOK, [0, 1]) as writer:  # the locks are free, and the session is in order
        assert [tip.position for tip in writer.tips.values()] == [0, 0]
        assert writer.ask(SUBJECT, [("s", b"terms")])() == [None]
        writer.insert(TEXTS, [(b"a", "x")])
    assert texts_in(store) == 1


def test_a_lane_goes_on_where_it_was_left(target, store):
    with store.write(BOOK, [1, 2]) as writer:
        assert sorted(writer.tips) == [1, 2]
        writer.advance({1: Tip(3, b"one", 11), 2: Tip(4, b"two", 12)})
    again = open_store(target)
    with again.write(BOOK, [0, 1, 2]) as writer:
        assert {lane: writer.tips[lane].position for lane in (0, 1, 2)} == {0: 0, 1: 3, 2: 4}
        assert writer.tips[2] == Tip(4, b"two", 12)
    with again.write("impressions", [1]) as writer:  # each book has lanes of its own
        assert writer.tips[1].position == 0
    again.close()


@pytest.mark.parametrize(
    "harm", ["UPDATE lanes SET position = 1 WHERE lane = 1", "DELETE FROM lanes WHERE lane = 1"], ids=["moved", "gone"]
)
def test_the_end_of_a_lane_that_was_tampered_with_is_noticed(target, store, harm):
    run(target, harm)
    with pytest.raises(LedgerDamaged, match="lane 1"):
        insert(store, [(b"a", "x")])
    assert texts_in(store) == 0


def test_a_reader_sees_one_moment_while_others_write(store):
    with store.write(BOOK, [0]) as writer:
        writer.insert(TEXTS, [(bytes([n]), "before") for n in range(100)])
    with store.read() as reader:
        stream = reader.stream("SELECT text FROM texts")
        assert next(stream) == ("before",)
        with store.write(BOOK, [0]) as writer:
            writer.insert(TEXTS, [(b"later", "x")])
            writer.update(TEXTS, ("text",), [("changed", bytes([n])) for n in range(100)])
        assert set(stream) == {("before",)}
        assert reader.ask(TEXT, [(b"later",)])() == [None]
        assert list(reader.stream("SELECT count(*) FROM texts")) == [(100,)]
    with store.read() as reader:
        assert reader.ask(TEXT, [(b"later",), (b"\0",)])() == [("x",), ("changed",)]
        assert reader.damage() == []


def test_streams_are_bounded_in_memory_and_may_be_interleaved(store):
    size, rows = 500, 40_000
    with store.write(BOOK, [0]) as writer:
        for start in range(0, rows, 10_000):
            part = range(start, start + 10_000)
            writer.insert(TEXTS, [(n.to_bytes(4, "big"), f"{n:0{size}}") for n in part])
    tracemalloc.start()
    try:
        with store.read() as reader:
            up = reader.stream("SELECT digest, text FROM texts ORDER BY digest")
            down = reader.stream("SELECT text FROM texts WHERE digest >= ? ORDER BY digest DESC", (b"\0\0\0\0",))
            for n, ((key, text), (last,)) in enumerate(zip(up, down, strict=True)):
                assert (int(text), int(last)) == (n, rows - 1 - n)
                if n % 10_000 == 0:
                    assert reader.ask(TEXT, [(key,), (b"none",)])() == [(text,), None]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < size * rows / 3


def test_a_stream_may_be_left_unfinished(store):
    with store.write(BOOK, [0]) as writer:
        writer.insert(TEXTS, [(n.to_bytes(4, "big"), "x") for n in range(10_000)])
    for _ in range(10):  # more often than readers' sessions are kept
        with store.read() as reader:
            assert len(list(itertools.islice(reader.stream("SELECT digest FROM texts"), 3))) == 3


def test_text_is_ordered_by_code_points_everywhere(store):
    with store.write(BOOK, [0]) as writer:
        writer.insert(SUBJECTS, [subject(n, name) for n, name in enumerate(["b", "é", "B", "a-b", "ab", "日"], 1)])
    with store.read() as reader:
        found = [name for (name,) in reader.stream("SELECT name FROM subjects ORDER BY name")]
    assert found == ["B", "a-b", "ab", "b", "é", "日"]


def test_threads_share_a_store(store):
    def add(thread: int) -> None:
        for n in range(20):
            with store.write(BOOK, [thread % 4, (thread + 1) % 4]) as writer:
                tips = {lane: tip._replace(position=tip.position + 1) for lane, tip in writer.tips.items()}
                writer.insert(TEXTS, [(b"%d-%d" % (thread, n), "x")])
                writer.advance(tips)
            with store.read() as reader:
                assert reader.ask(TEXT, [(b"%d-%d" % (thread, n),)])() == [("x",)]

    threads = [threading.Thread(target=add, args=(thread,)) for thread in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts_in(store) == 160
    with store.write(BOOK, [0, 1, 2, 3]) as writer:
        assert sum(tip.position for tip in writer.tips.values()) == 320


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_gets_a_session_of_its_own(store):
    assert texts_in(store) == 0  # so that there is a reader's session to inherit as well
    child = os.fork()
    if child == 0:  # nothing of pytest may run here
        try:
            with store.write(BOOK, [0]) as writer:
                writer.insert(TEXTS, [(b"child", "x")])
            done = texts_in(store) == 1
            store.close()
            del store
        finally:
            os._exit(0 if done else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert texts_in(store) == 1
    with store.write(BOOK, [0]) as writer:
        writer.insert(TEXTS, [(b"parent", "x")])
    assert texts_in(store) == 2
