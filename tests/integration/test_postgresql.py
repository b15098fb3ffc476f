"""What only a server can do to a ledger: restart, cut connections, fill up, say no; and what many writers do to each other."""

import os
import re
import shutil
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from urllib.parse import quote

import psycopg
import pytest

from tacit.errors import InvalidParameter, LedgerDamaged, LedgerError, LedgerExists, LedgerUnavailable, TacitError
from tacit.guarantees import ONE_USER, Guarantee, pure
from tacit.ledger import Budget, PrivacyLedger, Terms
from tacit.ledger.chain import lane_of
from tacit.ledger.stores.interface import Query
from tacit.ledger.stores.postgresql import PostgresqlStore
from tacit.ledger.stores.postgresql_session import READING, WRITING
from tacit.ledger.stores.schema import ENTRIES, SUBJECTS, TEXTS
from tests.integration.conftest import GUARDED, PASSWORD, PostgresqlServer

BOOK = "privacy"
COST = pure(0.001, ONE_USER)
NAMES = [f"subject-{number}" for number in range(64)]
TEXT = Query("SELECT text FROM texts WHERE digest = ?", ("bytes",))


@pytest.fixture
def uri(postgresql: PostgresqlServer) -> Iterator[str]:
    """An empty database."""
    yield postgresql.new_database()
    postgresql.drop_databases()


@pytest.fixture
def ledger(uri: str) -> Iterator[PrivacyLedger]:
    with PrivacyLedger.create(uri) as ledger:
        ledger.enrol_many(NAMES, Terms((Budget(1_000),), ONE_USER))
        yield ledger


def ledger_database(uri: str) -> str:
    return re.search(r"/(ledger_\d+)\?", uri)[1]  # type: ignore[index]


def charges(uri: str) -> int:
    """How many charges are in the database, asked past the ledger."""
    with psycopg.connect(uri) as connection:
        row = connection.execute("SELECT count(*) FROM tacit.entries WHERE release_id <> ''").fetchone()
    return row[0] if row else 0


def end_sessions(server: PostgresqlServer, uri: str) -> int:
    """Ends all sessions of the ledger, as an administrator would, and waits until they are gone; how many there were."""
    ours = f"FROM pg_stat_activity WHERE datname = '{ledger_database(uri)}' AND application_name = 'tacit'"
    ended = len(server.run(f"SELECT pg_terminate_backend(pid) {ours}"))
    while server.run(f"SELECT pid {ours}"):
        time.sleep(0.01)
    return ended


def shown(problem: BaseException) -> str:
    """Everything that a log may hold of an error."""
    return "".join(traceback.format_exception(problem)) + repr(problem)


# --- Sessions that end


def test_a_session_that_was_ended_while_idle_is_replaced(postgresql, uri, ledger):
    ledger.charge("subject-1", "before", COST)
    assert ledger.statement("subject-1").charges == 1
    assert end_sessions(postgresql, uri) == 2  # the writer's and a reader's
    ledger.charge("subject-1", "after", COST)
    assert ledger.statement("subject-1").charges == 2


def test_a_session_that_ends_within_a_transaction_charges_nothing(postgresql, uri, ledger):
    store = PostgresqlStore(uri)

    def cut() -> None:
        with store.write(BOOK, [0]) as writer:
            assert writer.ask(TEXT, [(b"a",)])() == [None]
            writer.insert(TEXTS, [(b"a", "x")])
            end_sessions(postgresql, uri)

    with pytest.raises(LedgerUnavailable, match=r"terminating connection|closed the connection"):
        cut()
    with store.write(BOOK, [0]) as writer:
        assert writer.ask(TEXT, [(b"a",)])() == [None]
        writer.insert(TEXTS, [(b"a", "x")])
    store.close()


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_all_that_was_acknowledged_survives_a_restart_and_a_crash(postgresql, uri, ledger, mode):
    for number in range(20):
        ledger.charge(NAMES[number], "r", COST)
    postgresql.stop(mode)
    with pytest.raises(LedgerUnavailable, match="nothing may be released"):
        ledger.charge(NAMES[0], "meanwhile", COST)
    postgresql.start()
    assert charges(uri) == 20
    assert not ledger.charge(NAMES[19], "r", COST).fresh
    assert ledger.charge(NAMES[0], "meanwhile", COST).fresh


def test_a_writer_that_hangs_loses_its_lanes_before_others_give_up():
    assert int(WRITING["idle_in_transaction_session_timeout"][:-1]) < int(WRITING["lock_timeout"][:-1])


def test_a_writer_that_waits_too_long_gives_up(uri, ledger, monkeypatch):
    monkeypatch.setitem(WRITING, "lock_timeout", "200ms")
    first, second = PostgresqlStore(uri), PostgresqlStore(uri)

    def wait() -> None:
        with second.write(BOOK, [3]) as writer:
            _ = writer.tips

    with first.write(BOOK, [3]) as writer:
        _ = writer.tips
        with pytest.raises(LedgerUnavailable, match="lock timeout"):
            wait()
    wait()
    first.close()
    second.close()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_leaves_the_sessions_of_its_parent_alone(uri, ledger):
    store = PostgresqlStore(uri)
    before = [sessions_of(store), sessions_of(store)]
    child = os.fork()
    if child == 0:  # nothing of pytest may run here
        apart = False
        try:
            apart = not set(sessions_of(store)) & set(before[0])
            store.close()
        finally:
            os._exit(0 if apart else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert [sessions_of(store), before[0]] == before
    store.close()


def sessions_of(store: PostgresqlStore) -> list[int]:
    """The server's processes for a writer and a reader."""
    mine = Query("SELECT pg_backend_pid()", ())
    with store.write(BOOK, [0]) as writer, store.read() as reader:
        return [answers()[0][0] for answers in (writer.ask(mine, [()]), reader.ask(mine, [()]))]


# --- Servers that cannot be trusted, or cannot write


def test_a_server_without_fsync_is_refused(postgresql, uri, ledger):
    postgresql.set("fsync", "off")
    try:
        with pytest.raises(LedgerUnavailable, match=r"fsync = off.*Nothing was charged"):
            PrivacyLedger.open(uri)
        other = postgresql.new_database()
        with pytest.raises(LedgerUnavailable, match="fsync = off"):
            PrivacyLedger.create(other)
    finally:
        postgresql.set("fsync", None)
    PrivacyLedger.open(uri).close()


def test_a_commit_waits_for_the_disk_whatever_the_database_says(postgresql, uri, ledger):
    for found, wanted in (("off", "on"), ("local", "on"), ("remote_apply", "remote_apply")):
        postgresql.run(f"ALTER ROLE postgres SET synchronous_commit = {found}")
        try:
            store = PostgresqlStore(uri)
            assert store._wire.run(b"SHOW synchronous_commit") == [(wanted,)]
            store.close()
        finally:
            postgresql.run("ALTER ROLE postgres RESET synchronous_commit")


def test_a_read_only_database_charges_nothing(postgresql, uri, ledger):
    ledger.charge("subject-1", "before", COST)
    database = ledger_database(uri)
    postgresql.run(f"ALTER DATABASE {database} SET default_transaction_read_only = on")
    end_sessions(postgresql, uri)
    with pytest.raises(LedgerUnavailable, match="read-only transaction"):
        ledger.charge("subject-1", "after", COST)
    assert charges(uri) == 1
    assert ledger.statement("subject-1").charges == 1  # it can still be read
    postgresql.run(f"ALTER DATABASE {database} RESET default_transaction_read_only")
    end_sessions(postgresql, uri)
    assert ledger.charge("subject-1", "after", COST).fresh


def test_a_role_that_may_not_write_charges_nothing(postgresql, uri, ledger):
    postgresql.run("CREATE ROLE onlooker LOGIN")
    postgresql.run("GRANT USAGE ON SCHEMA tacit TO onlooker", uri)
    postgresql.run("GRANT SELECT ON ALL TABLES IN SCHEMA tacit TO onlooker", uri)
    try:
        with PrivacyLedger.open(uri.replace("postgres@", "onlooker@")) as onlooker:
            assert onlooker.statement("subject-1").charges == 0
            with pytest.raises(LedgerUnavailable, match="permission denied"):
                onlooker.charge("subject-1", "r", COST)
    finally:
        postgresql.run("DROP OWNED BY onlooker", uri)
        postgresql.run("DROP ROLE onlooker")
    assert charges(uri) == 0


@pytest.mark.skipif(shutil.which("prlimit") is None, reason="the files of another process are limited with prlimit")
def test_a_full_disk_charges_nothing_and_keeps_what_it_had(postgresql, uri, ledger):
    postgresql.run("ALTER TABLE tacit.entries SET (fillfactor = 10)", uri)  # a few rows fill a page
    ((session,),) = postgresql.run(
        f"SELECT pid FROM pg_stat_activity WHERE datname = '{ledger_database(uri)}' AND application_name = 'tacit'"
    )
    postgresql.limit_files(session, 17 * 1024 * 1024)  # more than a file of the log: without its log the server stops
    made = 0

    def fill() -> None:
        nonlocal made
        while made < 100:
            assert all(outcome.fresh for outcome in ledger.charge_many(batch(made)))
            made += 1

    with pytest.raises(LedgerUnavailable, match="File too large"):
        fill()
    assert made > 1
    assert charges(uri) == made * 1_000
    assert all(
        outcome.fresh for outcome in ledger.charge_many(batch(made))
    )  # a new session has no limit: there is room again
    assert not any(outcome.fresh for outcome in ledger.charge_many(batch(made)))
    assert charges(uri) == (made + 1) * 1_000


def batch(which: int) -> list[tuple[str, str, Guarantee]]:
    return [(NAMES[number % 64], f"r-{which}-{number}", COST) for number in range(1_000)]


# --- Many writers


BATCHES = """
import sys
from tacit.guarantees import ONE_USER, pure
from tacit.ledger import PrivacyLedger
target, who, turn = sys.argv[1], sys.argv[2], int(sys.argv[3])
names = [f"subject-{number}" for number in range(64)][::turn]
print("ready", flush=True)
sys.stdin.readline()
with PrivacyLedger.open(target) as ledger:
    for batch in range(40):
        wished = [(name, f"{who}-{batch}", pure((1 + batch) / 1000, ONE_USER)) for name in names]
        assert all(outcome.fresh for outcome in ledger.charge_many(wished))
        ledger.charge(names[batch], f"{who}-alone-{batch}", pure(0.5 + batch / 1000, ONE_USER))
"""


def test_batches_over_all_lanes_from_two_processes_never_deadlock(uri, ledger):
    assert {lane_of(name, 16) for name in NAMES} == set(range(16))
    started = [
        subprocess.Popen(
            [sys.executable, "-c", BATCHES, uri, who, turn],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for who, turn in (("up", "1"), ("down", "-1"))
    ]
    for process in started:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in started:
        _, problem = process.communicate(timeout=100)
        assert process.returncode == 0, problem
    assert charges(uri) == 2 * 40 * 65


@pytest.fixture
def three(uri: str, ledger: PrivacyLedger, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[PostgresqlStore]]:
    """Three writers; the third soon gives up waiting."""
    stores = [PostgresqlStore(uri), PostgresqlStore(uri)]
    monkeypatch.setitem(WRITING, "lock_timeout", "300ms")
    stores.append(PostgresqlStore(uri))
    yield stores
    for store in stores:
        store.close()


def insert(store: PostgresqlStore, lanes: list[int], *keys: bytes) -> None:
    with store.write(BOOK, lanes) as writer:
        writer.insert(TEXTS, [(key, "x") for key in keys], unless_there=True)


def test_lanes_are_locked_in_one_order_whatever_order_they_are_named_in(three):
    first, second, third = three
    waiting = threading.Thread(target=insert, args=(second, [9, 0, 5], b"a"))
    with first.write(BOOK, [5]) as writer:
        _ = writer.tips
        waiting.start()
        time.sleep(0.3)  # it holds lane 0, waits for lane 5, and has not come to lane 9 yet
        insert(third, [9], b"b")
        with pytest.raises(LedgerUnavailable, match="lock timeout"):
            insert(third, [0], b"c")
    waiting.join(20)
    insert(third, [0, 5, 9], b"c")


def test_texts_that_others_may_insert_too_are_inserted_in_one_order(three):
    first, second, third = three
    waiting = threading.Thread(target=insert, args=(second, [1], b"z", b"a", b"m"))
    with first.write(BOOK, [0]) as writer:
        writer.insert(TEXTS, [(b"m", "x")], unless_there=True)
        assert writer.ask(TEXT, [(b"m",)])() == [("x",)]
        waiting.start()
        time.sleep(0.3)  # it has inserted a, waits for what becomes of m, and has not come to z yet
        insert(third, [2], b"z")
        with pytest.raises(LedgerUnavailable, match="lock timeout"):
            insert(third, [2], b"a")
    waiting.join(20)
    with third.read() as reader:
        assert len(list(reader.stream("SELECT digest FROM texts WHERE text = 'x'"))) == 3


def test_what_is_asked_along_with_the_locks_sees_what_their_last_holder_committed(uri, ledger):
    """Were the answers of the moment when they were sent, two writers would both find the budget unspent."""
    first, second = PostgresqlStore(uri), PostgresqlStore(uri)
    sent, seen = threading.Event(), []

    def wait() -> None:
        with second.write(BOOK, [5, 6]) as writer:
            answers = [writer.ask(TEXT, [(b"a",)]), writer.ask(TEXT, [(b"a",), (b"none",)])]
            sent.set()
            seen.extend(
                [*(answer() for answer in answers), writer.tips[5].position]
            )  # one journey with BEGIN and locks

    thread = threading.Thread(target=wait)
    with first.write(BOOK, [5]) as writer:
        before = writer.tips[5]
        thread.start()
        assert sent.wait(20)
        time.sleep(0.3)  # the second is waiting for the lane, its questions behind it
        writer.insert(TEXTS, [(b"a", "committed later")])
        writer.advance({5: before._replace(position=before.position + 9)})
    thread.join(20)
    assert seen == [[("committed later",)], [("committed later",), None], before.position + 9]
    first.close()
    second.close()


def test_two_processes_never_spend_a_budget_twice(uri, ledger):
    """The end of the last test's reason: eight racing ledgers, one subject, a budget for ten."""
    ledger.enrol("poor", Budget(0.01), protects=ONE_USER)
    ledgers = [PrivacyLedger.open(uri) for _ in range(8)]
    outcomes: list[object] = []

    def spend(which: int) -> None:
        for number in range(10):
            outcomes.extend(ledgers[which].charge_many([("poor", f"{which}-{number}", COST)]))

    threads = [threading.Thread(target=spend, args=(which,)) for which in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(not isinstance(outcome, TacitError) for outcome in outcomes) == 10
    assert {outcome.code for outcome in outcomes if isinstance(outcome, TacitError)} == {"budget-exhausted"}
    for one in ledgers:
        one.close()


def test_transactions_in_other_lanes_do_not_wait(uri, ledger):
    first, second = PostgresqlStore(uri), PostgresqlStore(uri)
    with first.write(BOOK, [0]) as held:
        _ = held.tips
        with second.write(BOOK, [1]) as writer:
            writer.insert(TEXTS, [(b"a", "x")])
        with second.write("impressions", [0]) as writer:
            assert writer.ask(TEXT, [(b"a",)])() == [("x",)]
    first.close()
    second.close()


def test_more_than_the_sockets_hold_can_be_asked_while_a_lane_is_waited_for(uri, ledger):
    """Else the writer that waits would stop the one that it waits for: they are threads of one process here."""
    first, second = PostgresqlStore(uri), PostgresqlStore(uri)
    keys = [(b"%0200d" % number,) for number in range(50_000)]
    found: list[object] = []

    def wait() -> None:
        with second.write(BOOK, [0]) as writer:
            found.extend(writer.ask(TEXT, keys)())

    thread = threading.Thread(target=wait)
    with first.write(BOOK, [0]) as writer:
        _ = writer.tips
        thread.start()
        time.sleep(0.5)
        writer.insert(TEXTS, [(keys[-1][0], "x")])
    thread.join(60)
    assert found == [None] * 49_999 + [("x",)]
    first.close()
    second.close()


@pytest.mark.parametrize("analysed", [False, True])
def test_every_plan_uses_whole_keys_from_the_first_charge_on(postgresql, uri, ledger, analysed):
    """Plans are kept, and made while tables are small: one that reads all rows would only be found out much later."""
    if analysed:
        postgresql.run("VACUUM ANALYZE", uri)
    ledger = PrivacyLedger.open(uri)
    ledger.enrol_many(["hourly", "daily"], Terms((Budget(1, per="day", sliding=True), Budget(5)), ONE_USER))
    for names in (["hourly"], ["hourly", "daily", "subject-1"]):
        ledger.charge_many([(name, f"r-{len(names)}", COST) for name in names])
        ledger.release(names[0], "kept", COST, lambda: b"content")
    wire = ledger._store._wire  # type: ignore[attr-defined]
    explained = 0
    for statement, name in list(wire._prepared.items()):
        if b"$" in statement and b" lanes " not in statement:  # there are few lanes
            nulls = b", ".join([b"NULL"] * len(set(re.findall(rb"\$\d+", statement))))
            rows = wire.run(b"EXPLAIN EXECUTE %s(%s)" % (name, nulls), once=True)
            plan = "\n".join(line for (line,) in rows)
            assert "Seq Scan" not in plan, plan
            assert "Filter" not in plan, plan
            explained += 1
    ledger.close()
    assert explained > 10


# --- Addresses, errors, the optional package


@pytest.mark.parametrize("password", ["wr@ng", "wr:ng", "wr/ng", "12/wr@ng", "wr?ng", "wr%ng", "wr ng", "wrong"])
@pytest.mark.parametrize("form", ["{0}@127.0.0.1:1/db", "{0}@no-such-host.invalid/db", "{0}@/db?host=/no/such/place"])
def test_a_password_is_never_shown(password, form):
    for given in (password, quote(password, safe="")):
        uri = "postgresql://somebody:" + form.format(given)
        with pytest.raises((LedgerUnavailable, InvalidParameter)) as caught:
            PrivacyLedger.open(uri)
        text = shown(caught.value)
        assert not re.search(r"wr.{0,3}ng|\bng\b", text.replace(repr(uri), "")), text
        assert "somebody" not in str(caught.value)


def test_a_wrong_password_is_refused_and_not_shown(postgresql, uri, ledger):
    guarded = uri.replace("postgres@", f"{GUARDED}:wrong-battery@")
    with pytest.raises(LedgerUnavailable, match="password authentication failed") as caught:
        PrivacyLedger.open(guarded)
    assert "wrong-battery" not in shown(caught.value)
    with pytest.raises(LedgerError) as caught:  # let in, but with no right to look
        PrivacyLedger.open(f"{uri.replace('postgres@', f'{GUARDED}@')}&password={PASSWORD}")
    assert PASSWORD not in shown(caught.value)


def test_an_error_shows_no_value_of_a_row(uri, ledger):
    store = PostgresqlStore(uri)

    def twice() -> None:
        with store.write(BOOK, [0]) as writer:
            for number in (1, 2):
                writer.insert(SUBJECTS, [(number, "private-name", b"t", 0, 0, 0, 0, b"s")])

    with pytest.raises(LedgerDamaged, match=r"duplicate key.*nothing was charged") as caught:
        twice()
    assert "private-name" not in shown(caught.value)
    store.close()


def test_a_table_that_is_gone_is_damage(postgresql, uri, ledger):
    postgresql.run(f"DROP TABLE tacit.{ENTRIES.name}", uri)
    with pytest.raises(LedgerDamaged, match="does not exist"):
        ledger.charge("subject-1", "r", COST)


def test_a_schema_of_something_else_is_left_alone(postgresql, uri):
    postgresql.run("CREATE SCHEMA tacit", uri)
    postgresql.run("CREATE TABLE tacit.other (a int)", uri)
    with pytest.raises(LedgerExists, match="something else"):
        PrivacyLedger.create(uri)


def test_a_schema_that_was_made_for_the_ledger_is_used(postgresql, uri):
    postgresql.run(f"CREATE SCHEMA tacit AUTHORIZATION {GUARDED}", uri)
    with PrivacyLedger.create(f"{uri.replace('postgres@', f'{GUARDED}@')}&password={PASSWORD}") as ledger:
        ledger.enrol("a", Budget(1), protects=ONE_USER)
        assert ledger.charge("a", "r", COST).fresh
    postgresql.run(f"DROP OWNED BY {GUARDED} CASCADE", uri)


def test_a_database_in_another_encoding_is_refused(postgresql):
    postgresql.run("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'")
    try:
        with pytest.raises(LedgerUnavailable, match="needs one in UTF8"):
            PrivacyLedger.create(postgresql.uri_of("latin"))
    finally:
        postgresql.run("DROP DATABASE latin WITH (FORCE)")


def test_another_ledger_in_the_same_place_is_noticed(postgresql, uri, ledger):
    ledger.charge("subject-1", "r", COST)
    postgresql.run("DROP SCHEMA tacit CASCADE", uri)
    PrivacyLedger.create(uri).close()
    end_sessions(postgresql, uri)
    with pytest.raises(LedgerDamaged, match="another ledger"):
        ledger.charge("subject-1", "again", COST)


def test_a_temporary_table_cannot_stand_in_for_one_of_ours():
    assert READING["search_path"] == WRITING["search_path"] == "tacit, pg_temp"


def test_without_psycopg_it_is_said_what_to_install():
    code = "import sys; sys.modules['psycopg'] = None; from tacit.ledger.stores import open_store; open_store('postgresql:///a')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "missing-extra: " in done.stderr
    assert "pip install 'tacit[postgresql]'" in done.stderr
