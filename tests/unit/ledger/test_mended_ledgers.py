"""False ledgers whose every link, sum and seal was mended by one who knows the code: what no link shows, the rules show."""

import hashlib
import io
import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tacit.errors import LedgerDamaged
from tacit.guarantees import ONE_USER, pure
from tacit.ledger import Budget, PrivacyLedger, Terms
from tacit.ledger.chain import DAY, Tip, digest, genesis, lane_of, lane_of_digest
from tacit.ledger.entries import link_of_charge, link_of_enrolment
from tacit.ledger.impressions import ImpressionLedger
from tacit.ledger.stores import open_store
from tacit.ledger.stores.interface import ACCOUNTS, ENTRIES, IMPRESSIONS, LANES, SUBJECTS, LedgerTable, tip_row
from tacit.ledger.stores.sqlite_files import TYPES
from tacit.ledger.tally import link_of_impression
from tacit.ledger.verification import check
from tacit.ledger.verification.export import export, line_of, recompute
from tests.unit.ledger.small_ledger import LARGE, LEAKY, SMALL, START, Hand, build
from tests.unit.ledger.test_check import mend, tampering

OVERSPENT = "more was spent in one period than a budget allows"
Lines = list[dict[str, Any]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mended") / "original.db"
    build(path, 1)
    return path


@pytest.fixture
def whole(original: Path, path: Path) -> Path:
    """A ledger of one lane with something of everything in it."""
    return Path(shutil.copy(original, path))


def found(path: Path) -> str:
    return "\n".join(map(str, check(path).findings))


def exported(path: Path) -> Lines:
    out = io.StringIO()
    with closing(open_store(path)) as store:
        export(store, out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def found_in(lines: Lines) -> str:
    return "\n".join(map(str, recompute(map(line_of, lines)).findings.findings))


def rechained(lines: Lines) -> Lines:
    """The lines of an export with every link, count, head and sum formed anew over what they say."""
    header, *body, end = json.loads(json.dumps(lines))
    ledger, lanes = header["ledger"], header["lanes"]
    tips = {b: [[0, genesis(ledger, b, lane, lanes)] for lane in range(lanes)] for b in ("privacy", "impressions")}
    opened: dict[Any, int] = {}
    texts = [line for line in body if line["kind"] == "text"]
    entries = sorted(
        (line for line in body if line["kind"] in ("enrolment", "charge")), key=lambda line: line["number"]
    )
    impressions = sorted((line for line in body if line["kind"] == "impression"), key=lambda line: line["number"])
    for line in [*entries, *impressions]:
        position, lane = divmod(number := line["number"], lanes)
        tip = tips["impressions" if line["kind"] == "impression" else "privacy"][lane]
        if line["kind"] == "impression":
            account = opened.setdefault((line["item"], lane), number)
            id = bytes.fromhex(line["id"])
            link = link_of_impression(tip[1], number, id, account, line["item"], line["day"], line["micros"])
        else:
            subject = opened.setdefault(line["subject"], number)
            enrols = line["kind"] == "enrolment"
            figures = [0] * 6 if enrols else [*line["cost"], *line["total"]]
            key = bytes.fromhex(line["terms" if enrols else "guarantee"])
            release_id, subject = ("", number) if enrols else (line["release_id"], subject)
            link = link_of_charge(tip[1], number, subject, release_id, line["at"], key, *figures, line["windowed"])
            link = link_of_enrolment(link, line["subject"]) if enrols else link
        assert position == tip[0] + 1, "a gap would be found whatever else is wrong"
        tip[:] = position, link
        line["link"] = link.hex()
    end["head"]["books"] = {book: [[position, link.hex()] for position, link in ends] for book, ends in tips.items()}
    subjects = sum(line["kind"] == "enrolment" for line in entries)
    end |= {"entries": len(entries), "subjects": subjects, "impressions": len(impressions)}
    body = [header, *texts, *entries, *impressions]
    end["sha256"] = hashlib.sha256("".join(map(line_of, body)).encode()).hexdigest()
    return [*body, end]


def of_kind(lines: Lines, kind: str) -> Lines:
    return [line for line in lines if line["kind"] == kind]


def in_lane(lane: int, prefix: str = "subject") -> str:
    """A name that belongs into this one of two lanes."""
    return next(name for n in range(99) if lane_of(name := f"{prefix}-{n}", 2) == lane)


@pytest.mark.parametrize("lanes", [1, 4])
def test_chaining_an_honest_export_anew_changes_nothing(path: Path, lanes: int) -> None:
    build(path, lanes)
    lines = exported(path)
    assert rechained(lines) == lines
    assert not found_in(lines)


# The stored ends of the lanes.


@pytest.mark.parametrize("days", [-40, 40])
@pytest.mark.parametrize("book", ["privacy", "impressions"])
def test_another_time_at_the_end_of_a_lane_is_found_under_its_own_seal(whole: Path, book: str, days: int) -> None:
    """Later than the last entry, it would renew budgets before their time or hold them up."""
    with tampering(whole) as connection:
        row = connection.execute("SELECT position, link, at FROM lanes WHERE book = ?", (book,)).fetchone()
        tip = Tip(*row)._replace(at=row[2] + days * DAY)
        change = "UPDATE lanes SET at = ?, seal = ? WHERE book = ?"
        connection.execute(change, (row[2], LANES.seal_of(book, 0, *row), book))
        connection.commit()
        assert not found(whole)
        connection.execute(change, (tip.at, LANES.seal_of(book, 0, *tip), book))
    assert "the stored end of the lane is not that of its last entry" in found(whole)


# Budgets.


@pytest.mark.parametrize("sliding", [False, True])
def test_a_delta_that_is_overspent_in_one_window_is_found(path: Path, sliding: bool) -> None:
    clock = Hand()
    with PrivacyLedger.create(path, clock=clock) as ledger:
        ledger.enrol("anna", Budget(10, 3e-7, per="day", sliding=sliding), protects=ONE_USER)
        for number in range(6):
            clock.at = START + number // 3 * DAY
            ledger.charge("anna", f"r-{number}", LEAKY)
    assert not found(path)
    with tampering(path) as connection:
        connection.execute("UPDATE entries SET at = ? WHERE release_id = 'r-3'", (START + DAY - 1,))
        mend(connection)
    assert f"lane 0, entry 5: with this entry {OVERSPENT}" in found(path)
    assert OVERSPENT in found_in(exported(path))


@pytest.mark.parametrize("guarantee", [LEAKY, SMALL], ids=["delta", "epsilon"])
def test_a_budget_for_life_that_is_overspent_is_found(path: Path, guarantee: Any) -> None:
    """The charge of one who may spend more is moved to one who has spent all."""
    with PrivacyLedger.create(path, clock=Hand()) as ledger:
        ledger.enrol("anna", Budget(0.3 if guarantee is SMALL else 10, 3e-7), protects=ONE_USER)
        ledger.enrol("berta", Budget(20, 1e-5), protects=ONE_USER)
        for number in range(3):
            ledger.charge("anna", f"r-{number}", guarantee)
        ledger.charge("berta", "moved", guarantee)
    assert not found(path)
    with tampering(path) as connection:
        connection.execute("UPDATE entries SET subject = 1 WHERE release_id = 'moved'")
        mend(connection)
    assert f"lane 0, entry 6: with this entry {OVERSPENT}" in found(path)
    assert OVERSPENT in found_in(exported(path))


@pytest.mark.parametrize(("per", "length"), [("day", DAY), ("month", 31 * DAY)])
def test_a_sliding_window_ends_at_the_same_microsecond_for_those_who_verify(path: Path, per: str, length: int) -> None:
    clock = Hand()
    with PrivacyLedger.create(path, clock=clock) as ledger:
        ledger.enrol("anna", Budget(0.25, per=per, sliding=True), protects=ONE_USER)
        for number in range(4):
            clock.at = START + number * length
            ledger.charge("anna", f"r-{number}", LARGE)
        clock.at += length - 1
        before = ledger.statement("anna")
        assert [window.left.amount for window in before.windows] == [0]
        assert recompute(map(line_of, exported(path))).statement("anna", clock.at) == before
        clock.at += 1
        after = ledger.statement("anna")
        assert [window.spent.amount for window in after.windows] == [0]
        assert recompute(map(line_of, exported(path))).statement("anna", clock.at) == after
    assert not found(path)
    assert not found_in(exported(path))
    with tampering(path) as connection:
        connection.execute("UPDATE entries SET at = at - 1 WHERE release_id = 'r-3'")
        mend(connection)
    assert f"lane 0, entry 5: with this entry {OVERSPENT}" in found(path)
    assert OVERSPENT in found_in(exported(path))


# Lines of an export that no ledger would have written.


@pytest.mark.parametrize("epsilon", [1, 2])
def test_a_second_enrolment_of_the_same_subject_is_found_in_an_export(path: Path, epsilon: float) -> None:
    """It would give her a second budget."""
    with PrivacyLedger.create(path, clock=Hand()) as ledger:
        ledger.enrol("anna", Budget(1), protects=ONE_USER)
        ledger.enrol("berta", Budget(epsilon), protects=ONE_USER)
        ledger.charge("anna", "r", LARGE)
    lines = exported(path)
    for line in of_kind(lines, "enrolment"):
        line["subject"] = "anna"
    assert "for the second time" in found_in(rechained(lines))


def test_a_charge_in_another_lane_than_its_subjects_is_found_in_an_export(path: Path) -> None:
    """There nobody else's lock would keep two such charges from being made at once."""
    left, right = in_lane(0), in_lane(1)
    with PrivacyLedger.create(path, lanes=2, clock=Hand()) as ledger:
        ledger.enrol_many([left, right], Terms((Budget(1),), ONE_USER))
        ledger.charge(right, "first", SMALL)
        ledger.charge(right, "moved", SMALL)
    lines = exported(path)
    assert not found_in(rechained(lines))
    moved = of_kind(lines, "charge")[-1]
    moved |= {"subject": left, "total": moved["cost"]}
    told = found_in(rechained(lines))
    assert told.splitlines() == [
        "privacy book, lane 1, entry 3: this entry charges a subject that was not enrolled before it in its lane."
    ]


def test_an_impression_in_the_wrong_lane_is_found_in_an_export(path: Path) -> None:
    """There the same id could be counted once more."""
    with ImpressionLedger.create(path, lanes=2, clock=Hand()) as shop:
        shop.report_many([(f"impression-{number}", "item", 1_000) for number in range(8)])
    lines = exported(path)
    assert not found_in(rechained(lines))
    last = of_kind(lines, "impression")[-1]
    id = next(d for n in range(99) if lane_of_digest(d := digest(f"else-{n}"), 2) != last["number"] % 2)
    last["id"] = id.hex()
    assert "this entry belongs to another lane" in found_in(rechained(lines))


@pytest.mark.parametrize("lanes", [1, 4])
def test_a_release_that_was_charged_twice_is_found_in_an_export(path: Path, lanes: int) -> None:
    build(path, lanes)
    lines = exported(path)
    first, second = (line for line in of_kind(lines, "charge") if line["release_id"] in ("first", "second"))
    second["release_id"] = first["release_id"]
    assert found_in(rechained(lines))


@pytest.mark.parametrize("item", ["same item", "another item"])
def test_an_impression_that_was_counted_twice_is_found_in_an_export(path: Path, item: str) -> None:
    with ImpressionLedger.create(path, clock=Hand()) as shop:
        shop.report_many([("one", "same item", 1_000), ("two", item, 1_000)])
    lines = exported(path)
    assert not found_in(rechained(lines))
    one, two = of_kind(lines, "impression")
    two["id"] = one["id"]
    assert found_in(rechained(lines))


def test_the_same_release_id_of_two_subjects_is_no_repetition(path: Path) -> None:
    with PrivacyLedger.create(path, clock=Hand()) as ledger:
        for subject in ("anna", "anna 1", "1"):
            ledger.enrol(subject, Budget(1), protects=ONE_USER)
            for release_id in ("r", "1 r", "anna"):
                ledger.charge(subject, release_id, pure(0.01, ONE_USER))
    assert not found(path)
    assert not found_in(exported(path))


# Databases whose constraints were taken off.


def without_constraints(connection: sqlite3.Connection, table: LedgerTable) -> None:
    """Builds a table anew, with all its rows and indexes, but without what keeps two rows from being the same."""
    named = "SELECT sql FROM sqlite_master WHERE tbl_name = ? AND type = 'index' AND sql IS NOT NULL"
    indexes = [sql for (sql,) in connection.execute(named, (table.name,))]
    connection.execute(replace(table, name="rebuilt", unique=()).definition(TYPES))
    connection.execute(f"INSERT INTO rebuilt SELECT * FROM {table.name}")
    connection.execute(f"DROP TABLE {table.name}")
    connection.execute(f"ALTER TABLE rebuilt RENAME TO {table.name}")
    for index in indexes:
        connection.execute(index)


def mend_impressions(connection: sqlite3.Connection) -> None:
    """Every link, sum, tip and seal of a book of impressions with one lane."""
    (ledger,) = connection.execute("SELECT value FROM facts WHERE name = 'ledger'").fetchone()
    tip = Tip(0, genesis(ledger, "impressions", 0, 1), 0)
    rows = connection.execute(
        "SELECT i.number, i.id, i.account, a.item, i.day, i.micros FROM impressions i JOIN accounts a "
        "ON a.number = i.account ORDER BY i.number"
    ).fetchall()
    for row in rows:
        tip = Tip(row[0], link_of_impression(tip.link, *row), row[4] * DAY)
        connection.execute("UPDATE impressions SET link = ? WHERE number = ?", (tip.link, row[0]))
    connection.execute(
        "UPDATE lanes SET position = ?, link = ?, at = ?, seal = ? WHERE book = ? AND lane = ?",
        tip_row("impressions", 0, tip),
    )
    sums = "SELECT a.number, a.item, a.lane, count(*), sum(i.micros) FROM accounts a JOIN impressions i "
    for row in connection.execute(f"{sums} ON i.account = a.number GROUP BY a.number").fetchall():
        change = "UPDATE accounts SET impressions = ?, micros = ?, seal = ? WHERE number = ?"
        connection.execute(change, (*row[3:], ACCOUNTS.seal_of(*row), row[0]))


DOUBLED = {
    "a release charged twice": (ENTRIES, "UPDATE entries SET release_id = 'first' WHERE release_id = 'second'"),
    "a subject enrolled twice": (SUBJECTS, "UPDATE subjects SET name = 'idle' WHERE name = 'unprotected'"),
    "an impression counted twice": (
        IMPRESSIONS,
        "UPDATE impressions SET id = (SELECT id FROM impressions WHERE number = 1) WHERE number = 12",
    ),
    "an item with two accounts": (ACCOUNTS, "UPDATE accounts SET item = 'item-0' WHERE item = 'item-1'"),
}


@pytest.mark.parametrize("disguised", [False, True], ids=["plain", "disguised"])
@pytest.mark.parametrize("what", DOUBLED)
def test_what_a_database_holds_twice_is_found_where_its_constraints_are_gone(
    whole: Path, what: str, disguised: bool
) -> None:
    """Disguised, the database claims to have the constraint that it has not."""
    table, statement = DOUBLED[what]
    with tampering(whole) as connection:
        mend_impressions(connection)
        connection.commit()
        assert not found(whole), "mending what is whole changes nothing"
        without_constraints(connection, table)
        assert connection.execute(statement).rowcount
        mend(connection)
        mend_impressions(connection)
        if disguised:
            connection.execute("PRAGMA writable_schema = ON")
            connection.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", (table.definition(TYPES), table.name))
    assert found(whole)


@pytest.mark.parametrize("what", DOUBLED)
def test_what_a_database_holds_twice_is_found_by_its_rows_alone(
    whole: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a store whose tables say nothing about what they keep apart."""
    monkeypatch.setattr("tacit.ledger.stores.sqlite_files._check_tables", lambda *_: None)
    table, statement = DOUBLED[what]
    with tampering(whole) as connection:
        without_constraints(connection, table)
        connection.commit()
        assert not found(whole), "nothing is there twice yet"
        connection.execute(statement)
        mend(connection)
        mend_impressions(connection)
    assert "counted twice" in found(whole)


@pytest.mark.parametrize("table", [ENTRIES, SUBJECTS, IMPRESSIONS, ACCOUNTS], ids=lambda table: table.name)
def test_a_database_without_its_constraints_is_not_opened(whole: Path, table: LedgerTable) -> None:
    """Two processes could then charge the same release, or enrol the same subject, and both would succeed."""
    with tampering(whole) as connection:
        without_constraints(connection, table)
    assert "cannot be opened" in found(whole)
    with pytest.raises(LedgerDamaged):
        PrivacyLedger.open(whole)
