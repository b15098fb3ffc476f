"""What only a server can do to a ledger: restart, cut connections, fill up, say no."""

import os
import shutil

import pytest

from tacit.errors import LedgerUnavailable
from tacit.guarantees import Guarantee
from tacit.ledger import PrivacyLedger
from tacit.ledger.stores.interface import TEXTS, Query
from tacit.ledger.stores.postgresql import PostgresqlStore
from tacit.ledger.stores.postgresql_wire import WRITING
from tests.integration.conftest import NAMES
from tests.integration.on_a_server import BOOK, COST, TEXT, charges, end_sessions, ledger_database

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
            assert store._session.run(b"SHOW synchronous_commit") == [(wanted,)]
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
