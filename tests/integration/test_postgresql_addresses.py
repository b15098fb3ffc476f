"""Addresses, passwords, schemas and encodings of a server, and what an error shows of them."""

import re
import subprocess
import sys
import traceback
from urllib.parse import quote

import pytest

from tacit.errors import InvalidParameter, LedgerDamaged, LedgerError, LedgerExists, LedgerUnavailable
from tacit.guarantees import ONE_USER
from tacit.ledger import Budget, PrivacyLedger
from tacit.ledger.stores.interface import ENTRIES, SUBJECTS
from tacit.ledger.stores.postgresql import PostgresqlStore
from tacit.ledger.stores.postgresql_wire import READING, WRITING
from tests.integration.conftest import GUARDED, PASSWORD
from tests.integration.on_a_server import BOOK, COST, end_sessions


def shown(problem: BaseException) -> str:
    """Everything that a log may hold of an error."""
    return "".join(traceback.format_exception(problem)) + repr(problem)


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
    with pytest.raises(LedgerExists, match="holds other tables"):
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
