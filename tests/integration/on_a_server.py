"""A ledger on a server, and what is asked of it past the ledger."""

import re
import time

import psycopg

from tacit.guarantees import ONE_USER, pure
from tacit.ledger.stores.interface import Query
from tests.integration.conftest import PostgresqlServer

BOOK = "privacy"
COST = pure(0.001, ONE_USER)
TEXT = Query("SELECT text FROM texts WHERE digest = ?", ("bytes",))


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
