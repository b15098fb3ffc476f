"""A shuffler's mail: each token once in its batch, a closed batch takes no more, what was forgotten is gone from the disk."""

import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tacit.errors import Conflict, InvalidParameter, LedgerDamaged, LedgerUnavailable
from tacit.ledger import MailLedger
from tacit.ledger.stores.interface import MAIL
from tacit.ledger.stores.sqlite_files import TYPES
from tacit.ledger.verification import check
from tests.unit.ledger.impression_reference import alter


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "mail.db"


@pytest.fixture(params=[1, 4], ids=["one lane", "four lanes"])
def mail(request: pytest.FixtureRequest, path: Path) -> Any:
    with MailLedger.create(path, lanes=request.param) as mail:
        yield mail
        assert check(path).sound


def test_a_token_is_taken_once_in_a_batch_whatever_its_group_or_item(mail: MailLedger) -> None:
    assert mail.add("b", "g", "pear", "t1") is True
    assert mail.add("b", "g", "pear", "t1") is False
    assert mail.add("b", "g", "apple", "t1") is False
    assert mail.add("b", "h", "pear", "t1") is False
    assert mail.add("c", "g", "apple", "t1") is True
    assert mail.reports("b", "g") == [("t1", "pear")]
    assert mail.reports("b", "h") == []
    assert mail.groups("b") == {"g": 1}


def test_reports_stand_in_the_order_of_tokens_not_of_arrival(mail: MailLedger, path: Path) -> None:
    for token in ("d", "b", "a", "c"):
        mail.add("b", "g", f"item-{token}", token)
    mail.add("b", "f", "pear", "e")
    assert mail.reports("b", "g") == [(token, f"item-{token}") for token in "abcd"]
    assert list(mail.groups("b").items()) == [("f", 1), ("g", 4)]
    with MailLedger.open(path) as other:
        assert other.reports("b", "g") == mail.reports("b", "g")


def test_rows_have_no_numbers_and_lie_in_the_order_of_tokens(mail: MailLedger, path: Path) -> None:
    tokens = [f"{(7 * i) % 101:03d}" for i in range(101)]
    for token in tokens:
        mail.add("b", "g", "pear", token)
    with closing(sqlite3.connect(path)) as connection:
        for number in ("rowid", "oid", "_rowid_"):
            with pytest.raises(sqlite3.OperationalError, match="no such column"):
                connection.execute(f"SELECT {number} FROM mail")
        stored = [token for (token,) in connection.execute("SELECT token FROM mail NOT INDEXED")]
    assert stored == sorted(tokens)


def test_a_file_whose_mail_has_row_numbers_is_refused(path: Path) -> None:
    """The same table as it would be without the rule: nothing else would notice."""
    MailLedger.create(path).close()
    with closing(sqlite3.connect(path)) as connection:
        (index,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'mail_by_group'").fetchone()
        connection.executescript(f"DROP TABLE mail; {MAIL.definition(TYPES)}; {index}")
    with pytest.raises(LedgerDamaged):
        MailLedger.open(path)


def test_a_closed_batch_takes_no_more_but_knows_what_it_has(mail: MailLedger) -> None:
    mail.add("b", "g", "pear", "t1")
    assert not mail.closed("b")
    mail.close_batch("b")
    mail.close_batch("b")
    assert mail.closed("b")
    with pytest.raises(Conflict) as caught:
        mail.add("b", "g", "pear", "t2-secret")
    assert "secret" not in str(caught.value)
    assert mail.add("b", "g", "pear", "t1") is False  # a device that did not hear the answer
    assert mail.add("c", "g", "pear", "t2") is True
    outcomes = mail.add_many([("b", "g", "pear", "t3"), ("c", "g", "pear", "t3"), ("c", "g", "pear", "t3")])
    assert isinstance(outcomes[0], Conflict)
    assert outcomes[1:] == [True, False]


def test_a_batch_is_forgotten_only_when_closed_and_stays_closed(mail: MailLedger) -> None:
    mail.add_many([("b", "g", "pear", f"t{i}") for i in range(4_100)])
    mail.add("c", "g", "pear", "t1")
    with pytest.raises(Conflict, match="close it first"):
        mail.forget("b")
    assert len(mail.reports("b", "g")) == 4_100
    mail.close_batch("b")
    assert mail.forget("b") == 4_100
    assert mail.forget("b") == 0
    assert mail.groups("b") == {}
    with pytest.raises(Conflict):
        mail.add("b", "g", "pear", "t1")
    assert mail.reports("c", "g") == [("t1", "pear")]


def test_what_was_forgotten_is_not_left_in_the_file(path: Path) -> None:
    with MailLedger.create(path) as mail:
        mail.add_many([("b", "g", "an-item-of-one-user", f"{i:0100d}") for i in range(500)])
        mail.close_batch("b")
    assert b"an-item-of-one-user" in path.read_bytes()
    with MailLedger.open(path) as mail:
        mail.forget("b")
    left = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert b"an-item-of-one-user" not in left
    assert b"0" * 90 not in left


def test_close_without_a_batch_closes_the_ledger(path: Path) -> None:
    mail = MailLedger.create(path)
    mail.close()
    with pytest.raises(LedgerUnavailable):
        mail.add("b", "g", "pear", "t")


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("wrong", ["", "two\nlines", 7, "x" * 401])
def test_what_is_no_report_is_refused(tmp_path: Path, place: int, wrong: Any) -> None:
    letter: list[Any] = ["b", "g", "pear", "t"]
    letter[place] = wrong
    with MailLedger.create(tmp_path / "a.db") as mail:
        with pytest.raises(InvalidParameter):
            mail.add(*letter)
        assert mail.groups("b") == {}


@pytest.mark.parametrize("change", ["item = 'fig'", "token = 'u'", "seal = x''"])
def test_an_altered_report_is_noticed_before_it_is_sent(mail: MailLedger, path: Path, change: str) -> None:
    mail.add("b", "g", "pear", "t")
    alter(path, f"UPDATE mail SET {change}")
    with pytest.raises(LedgerDamaged):
        mail.reports("b", "g")
    assert "a letter is not what was written" in str(check(path).findings)
    alter(path, "DELETE FROM mail")


def test_threads_that_bring_the_same_token_are_told_apart(mail: MailLedger) -> None:
    tokens = [f"t{i}" for i in range(40)]
    took: list[str] = []

    def run() -> None:
        took.extend(token for token in tokens if mail.add("b", "g", "pear", token))

    threads = [threading.Thread(target=run) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(took) == sorted(tokens)
    assert len(mail.reports("b", "g")) == 40


def test_nothing_is_taken_after_a_close_that_races_with_it(mail: MailLedger) -> None:
    taken: list[str] = []
    started, closed = threading.Event(), threading.Event()

    def run(thread: int) -> None:
        for number in range(10_000):
            try:
                after = closed.is_set()
                mail.add("b", "g", "pear", f"{thread}-{number}")
                assert not after
                taken.append(f"{thread}-{number}")
                started.set()
            except Conflict:
                return

    threads = [threading.Thread(target=run, args=(thread,)) for thread in range(3)]
    for thread in threads:
        thread.start()
    started.wait()
    mail.close_batch("b")
    kept = mail.reports("b", "g")
    closed.set()
    for thread in threads:
        thread.join()
    assert mail.reports("b", "g") == kept
    assert sorted(token for token, _ in kept) == sorted(taken)
