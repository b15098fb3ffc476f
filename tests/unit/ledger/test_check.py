"""Whatever is done to a ledger behind its back is found: every column of every table, rows lost, moved and put in."""

import random as experiment  # noqa: TID251  # the order of made-up times, no noise
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tacit.errors import InvalidParameter, LedgerError, LedgerMissing
from tacit.guarantees import ONE_USER
from tacit.ledger import Budget, Head, Period, PrivacyLedger
from tacit.ledger.budgets import NOTHING_SPENT, Cost
from tacit.ledger.chain import DAY, Tip, genesis
from tacit.ledger.entries import link_of_charge, link_of_enrolment
from tacit.ledger.stores import open_store
from tacit.ledger.stores.interface import (
    ACCOUNTS,
    ENTRIES,
    IMPRESSIONS,
    LANES,
    RELEASES,
    SUBJECTS,
    TEXTS,
    LedgerTable,
    tip_row,
)
from tacit.ledger.verification import check
from tacit.ledger.verification.books import MOST_FINDINGS as MOST
from tacit.ledger.verification.books import Findings, look_back
from tests.unit.ledger.small_ledger import LARGE, START, Hand, build

TABLES = (LANES, TEXTS, SUBJECTS, ENTRIES, RELEASES, ACCOUNTS, IMPRESSIONS)
COLUMNS = [pytest.param(table, column, id=f"{table.name}.{column}") for table in TABLES for column in table.columns]


@pytest.fixture(scope="module", params=[1, 4], ids=["1 lane", "4 lanes"])
def original(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("check") / "original.db"
    build(path, request.param)
    return path


@pytest.fixture
def ledger(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(original, tmp_path / "ledger.db"))


@contextmanager
def tampering(path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA synchronous = OFF")
    try:
        yield connection
        connection.commit()
    finally:
        connection.close()


def found(path: Path, head: Head | None = None) -> str:
    """The findings as one text; an error of the ledger's own on opening is found, too."""
    try:
        findings = check(path, head=head)
    except LedgerError as problem:
        return str(problem)
    assert findings.sound == (not findings.findings)
    return "\n".join(map(str, findings.findings))


def head_of(path: Path) -> Head:
    with PrivacyLedger.open(path) as ledger:
        return ledger.head()


def test_an_untouched_ledger_is_sound(ledger: Path) -> None:
    head = head_of(ledger)
    told: list[tuple[int, int]] = []
    findings = check(ledger, head=head, progress=lambda done, total: told.append((done, total)))
    assert findings == Findings(entries=71, subjects=9, impressions=12)
    assert told[-1] == (83, 83)
    assert findings.to_json() == {
        "sound": True, "entries": 71, "subjects": 9, "impressions": 12, "findings": [], "more": 0,
    }  # fmt: skip


def test_an_open_store_can_be_checked(ledger: Path) -> None:
    store = open_store(ledger)
    assert check(store).sound
    store.close()


def test_little_memory_and_small_batches_are_enough(ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "verification._BATCH": 3,
        "verification._MOST_TEXTS": 1,
        "verification._MOST_BYTES": 1,
        "verification.books._MOST_KNOWN": 1,
    }.items():
        monkeypatch.setattr(f"tacit.ledger.{name}", value)
    assert not found(ledger)


@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_every_altered_column_of_every_row_is_found(ledger: Path, table: LedgerTable, column: str) -> None:
    with tampering(ledger) as connection:
        keys = connection.execute(f"SELECT {', '.join(table.key)} FROM {table.name}").fetchall()
    altered = {"int": f"{column} + 1000000", "text": f"{column} || 'x'", "bytes": f"CAST({column} || x'00' AS BLOB)"}
    where = " AND ".join(f"{part} = ?" for part in table.key)
    for key in dict.fromkeys((keys[0], keys[len(keys) // 2], keys[-1])):
        with tampering(ledger) as connection:
            (kept,) = connection.execute(f"SELECT {column} FROM {table.name} WHERE {where}", key).fetchone()
            row = connection.execute(f"SELECT rowid FROM {table.name} WHERE {where}", key).fetchone()
            connection.execute(
                f"UPDATE {table.name} SET {column} = {altered[table.columns[column]]} WHERE {where}", key
            )
            now = row if table.columns[column] != "int" or column not in table.key[:1] else (row[0] + 1_000_000,)
        assert found(ledger), key
        with tampering(ledger) as connection:
            connection.execute(f"UPDATE {table.name} SET {column} = ? WHERE rowid = ?", (kept, *now))
    assert not found(ledger), "the ledger as it was is sound again"


@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_values_of_another_type_are_found_and_raise_nothing(ledger: Path, table: LedgerTable, column: str) -> None:
    garbage: dict[str, list[object]] = {"int": [b"\xff", "many", 0.5], "text": [b"\xff\xfe", "", "two\nlines"]}
    for value in garbage.get(table.columns[column], ["text", 7, b""]):
        with tampering(ledger) as connection:
            try:
                connection.execute(
                    f"UPDATE {table.name} SET {column} = ? WHERE rowid = (SELECT max(rowid) FROM {table.name})",
                    (value,),
                )
            except sqlite3.IntegrityError:
                continue  # a key of a table of SQLite takes integers only
        assert found(ledger), repr(value)


@pytest.mark.parametrize("place", ["min", "max"])
@pytest.mark.parametrize("table", [t for t in TABLES if t is not RELEASES], ids=lambda table: table.name)
def test_a_lost_row_is_found(ledger: Path, table: LedgerTable, place: str) -> None:
    with tampering(ledger) as connection:
        connection.execute(f"DELETE FROM {table.name} WHERE rowid = (SELECT {place}(rowid) FROM {table.name})")
    assert found(ledger)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_an_emptied_table_is_found(ledger: Path, table: LedgerTable) -> None:
    with tampering(ledger) as connection:
        connection.execute(f"DELETE FROM {table.name}")
    if table is RELEASES:  # the chain does not cover them: what was released may be forgotten, what was charged may not
        assert not found(ledger)
    else:
        assert found(ledger)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_row_that_was_put_in_is_found(ledger: Path, table: LedgerTable) -> None:
    new = {
        "int": "(SELECT max({0}) + 16 FROM {1})",
        "text": "(SELECT max({0}) || 'x' FROM {1})",
        "bytes": "CAST((SELECT max({0}) FROM {1}) || x'00' AS BLOB)",
    }
    values = ", ".join(new[kind].format(column, table.name) for column, kind in table.columns.items())
    with tampering(ledger) as connection:
        connection.execute(f"INSERT INTO {table.name} VALUES ({values})")
    assert found(ledger)


@pytest.mark.parametrize("table", [ENTRIES, IMPRESSIONS], ids=lambda table: table.name)
def test_rows_that_changed_places_are_found(ledger: Path, table: LedgerTable) -> None:
    with tampering(ledger) as connection:
        (lanes,) = connection.execute("SELECT value FROM facts WHERE name = 'lanes'").fetchone()
        (number,) = connection.execute(f"SELECT max(number) FROM {table.name}").fetchone()
        earlier = number - int(lanes)
        for before, after in ((number, -1), (earlier, number), (-1, earlier)):
            connection.execute(f"UPDATE {table.name} SET number = ? WHERE number = ?", (after, before))
    assert found(ledger)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE facts SET value = 'another' WHERE name = 'ledger'",
        "UPDATE facts SET value = '2' WHERE name = 'lanes'",
        "UPDATE facts SET value = 'none' WHERE name = 'lanes'",
        "UPDATE facts SET value = 'none' WHERE name = 'version'",
        "UPDATE facts SET value = 'none' WHERE name = 'created'",
        "UPDATE facts SET value = '1' WHERE name = 'version'",
        "DELETE FROM facts WHERE name = 'lanes'",
        "DELETE FROM facts WHERE name = 'created'",
        "INSERT INTO facts VALUES ('else', 'x')",
        "INSERT INTO lanes SELECT 'third', lane, position, link, at, seal FROM lanes WHERE book = 'privacy'",
        "DROP TABLE subjects",
        "DROP TABLE impressions",
    ],
)
def test_altered_foundations_are_found(ledger: Path, statement: str) -> None:
    with tampering(ledger) as connection:
        connection.execute(statement)
    assert found(ledger)


def test_findings_name_the_place_and_no_private_value(ledger: Path) -> None:
    with tampering(ledger) as connection:
        lanes = int(connection.execute("SELECT value FROM facts WHERE name = 'lanes'").fetchone()[0])
        (number,) = connection.execute("SELECT number FROM entries WHERE release_id = 'first'").fetchone()
        connection.execute("UPDATE entries SET release_id = 'secret' WHERE number = ?", (number,))
        connection.execute("UPDATE subjects SET name = 'mallory' WHERE name = 'idle'")
        connection.execute("UPDATE releases SET content = x'00'")
        connection.execute("UPDATE impressions SET micros = 77777")
    findings = check(ledger).findings
    assert ("privacy", number % lanes, number // lanes) in {(one.book, one.lane, one.position) for one in findings}
    text = "\n".join(map(str, findings))
    assert not [word for word in ("secret", "mallory", "first", "idle", "77777", "item-") if word in text]


@pytest.mark.parametrize(("table", "column"), [p for p in COLUMNS if p.values[0].columns[p.values[1]] == "text"])
def test_a_text_that_is_no_text_is_found_and_not_shown(ledger: Path, table: LedgerTable, column: str) -> None:
    with tampering(ledger) as connection:
        broken = f"CAST(CAST('mallory' || {column} AS BLOB) || x'ff' AS TEXT)"
        connection.execute(f"UPDATE {table.name} SET {column} = {broken}")
    assert found(ledger)
    assert "mallory" not in found(ledger)


def test_no_more_findings_are_told_than_one_can_read(ledger: Path) -> None:
    with tampering(ledger) as connection:
        connection.execute("UPDATE entries SET total = total + 1, link = x'00', at = at + 10000000000, windowed = 2")
    findings = check(ledger)
    assert len(findings.findings) == MOST
    assert findings.more > 0


# Those who know how links and seals are formed.


def mend(connection: sqlite3.Connection) -> None:
    """Makes every sum, link, tip and seal agree with the entries again, as one who knows the code would."""
    facts = dict(connection.execute("SELECT name, value FROM facts"))
    lanes = int(facts["lanes"])
    tips = {lane: Tip(0, genesis(facts["ledger"], "privacy", lane, lanes), 0) for lane in range(lanes)}
    spent: dict[int, tuple[Cost, int]] = {}
    for number, subject, release_id, at, key, amount, delta, unprotected, *_, windowed, _ in connection.execute(
        "SELECT * FROM entries ORDER BY number"
    ).fetchall():
        total = spent.get(subject, (NOTHING_SPENT, 0))[0] + Cost(amount, delta, unprotected)
        spent[subject] = (total, at)
        link = link_of_charge(
            tips[number % lanes].link,
            number,
            subject,
            release_id,
            at,
            key,
            amount,
            delta,
            unprotected,
            *total,
            windowed,
        )
        if not release_id:
            (name,) = connection.execute("SELECT name FROM subjects WHERE number = ?", (number,)).fetchone()
            link = link_of_enrolment(link, name)
        tips[number % lanes] = Tip(number // lanes, link, at)
        connection.execute(
            "UPDATE entries SET total = ?, total_delta = ?, total_unprotected = ?, link = ? WHERE number = ?",
            (*total, link, number),
        )
    for number, name, terms in connection.execute("SELECT number, name, terms FROM subjects").fetchall():
        total, at = spent[number]
        seal = SUBJECTS.seal_of(number, name, terms, *total, at)
        connection.execute(
            "UPDATE subjects SET total = ?, total_delta = ?, total_unprotected = ?, at = ?, seal = ? WHERE number = ?",
            (*total, at, seal, number),
        )
    for lane, tip in tips.items():
        connection.execute(
            "UPDATE lanes SET position = ?, link = ?, at = ?, seal = ? WHERE book = ? AND lane = ?",
            tip_row("privacy", lane, tip),
        )


def test_mending_what_is_whole_changes_nothing(ledger: Path) -> None:
    head = head_of(ledger)
    with tampering(ledger) as connection:
        mend(connection)
    assert not found(ledger, head)


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE entries SET amount = amount - 1 WHERE release_id = 'first'", "not the price of its guarantee"),
        ("UPDATE entries SET unprotected = 0 WHERE unprotected = 1", "not the price of its guarantee"),
        ("UPDATE entries SET delta = 0 WHERE delta > 0", "not the price of its guarantee"),
        ("UPDATE entries SET windowed = 1 - windowed", "whether its budgets have periods"),
        ("UPDATE entries SET amount = -amount WHERE release_id = 'second'", "beyond what can be charged"),
        (f"UPDATE entries SET at = {START} WHERE release_id <> ''", "more was spent in one period"),
        ("UPDATE entries SET at = 50000000 * 86400000000 WHERE release_id = 'second'", "in no calendar"),
        (
            "UPDATE entries SET guarantee = (SELECT terms FROM subjects LIMIT 1) WHERE release_id = 'second'",
            "lost, altered, or one that the terms refuse",
        ),
        (
            "UPDATE entries SET guarantee = (SELECT guarantee FROM entries WHERE unprotected = 1 LIMIT 1), amount = 0 "
            "WHERE release_id = 'second'",
            "lost, altered, or one that the terms refuse",
        ),
    ],
)
def test_false_figures_under_mended_links_are_found(ledger: Path, statement: str, problem: str) -> None:
    with tampering(ledger) as connection:
        assert connection.execute(statement).rowcount
        mend(connection)
    assert problem in found(ledger)


@pytest.mark.parametrize("sliding", [False, True])
def test_overspending_under_mended_links_is_found_where_it_happened(tmp_path: Path, sliding: bool) -> None:
    path, clock = tmp_path / "over.db", Hand()
    with PrivacyLedger.create(path, clock=clock) as ledger:
        ledger.enrol("anna", Budget(0.5, per="day", sliding=sliding), protects=ONE_USER)
        for day in range(4):
            clock.at = START + day * DAY + DAY // 2
            ledger.charge("anna", f"a{day}", LARGE)
            ledger.charge("anna", f"b{day}", LARGE)
    with tampering(path) as connection:
        assert not found(path)
        connection.execute(f"UPDATE entries SET at = {START + 2 * DAY} WHERE release_id = 'a2'")
        mend(connection)
    # The charge of noon came at midnight: fine by the calendar, too early for one that slides.
    assert bool(found(path)) is sliding
    with tampering(path) as connection:
        connection.execute(f"UPDATE entries SET at = {START + 2 * DAY - 1} WHERE release_id = 'a2'")
        mend(connection)
    assert "lane 0, entry 6: with this entry more was spent in one period" in found(path)


def test_a_cut_off_end_is_found_by_a_head(ledger: Path) -> None:
    """The latest charge is taken out with every trace of it: only what was noted elsewhere can tell."""
    head = head_of(ledger)
    with tampering(ledger) as connection:
        (number,) = connection.execute("SELECT number FROM entries WHERE release_id = 'second'").fetchone()
        connection.execute("DELETE FROM entries WHERE number = ?", (number,))
        connection.execute("DELETE FROM releases WHERE entry = ?", (number,))
        mend(connection)
    assert not found(ledger)
    assert "an old backup?" in found(ledger, head)


def test_a_rewritten_past_is_found_by_a_head(ledger: Path) -> None:
    head = head_of(ledger)
    with tampering(ledger) as connection:
        connection.execute("UPDATE entries SET release_id = 'third' WHERE release_id = 'second'")
        mend(connection)
    assert not found(ledger)
    assert "is not the one in the noted head" in found(ledger, head)


def test_the_head_of_another_ledger_is_found(ledger: Path, tmp_path: Path) -> None:
    head = head_of(ledger)
    assert "not the ledger whose head" in found(ledger, Head("else", head.books))
    assert "lanes" in found(ledger, Head(head.ledger, head.books | {"privacy": (*head.books["privacy"], (1, "00"))}))
    with PrivacyLedger.create(tmp_path / "other.db") as other:
        assert "not the ledger whose head" in found(ledger, other.head())
    for part in ({}, {"privacy": head.books["privacy"]}):  # it would seem to protect, and does not
        with pytest.raises(InvalidParameter):
            check(ledger, head=Head(head.ledger, part))
        with pytest.raises(InvalidParameter):
            PrivacyLedger.open(ledger, head=Head(head.ledger, part))


def test_sums_and_releases_with_mended_seals_are_found(ledger: Path) -> None:
    with tampering(ledger) as connection:
        number, name, terms, total, *rest, _ = connection.execute("SELECT * FROM subjects LIMIT 1").fetchone()
        seal = SUBJECTS.seal_of(number, name, terms, total - 1, *rest)
        connection.execute("UPDATE subjects SET total = total - 1, seal = ? WHERE number = ?", (seal, number))
        number, item, lane, impressions, micros, _ = connection.execute("SELECT * FROM accounts LIMIT 1").fetchone()
        seal = ACCOUNTS.seal_of(number, item, lane, impressions, micros + 1)
        connection.execute("UPDATE accounts SET micros = micros + 1, seal = ? WHERE number = ?", (seal, number))
        connection.execute("INSERT INTO releases VALUES (?, ?, ?)", (99999, b"x", RELEASES.seal_of(99999, b"x")))
    text = found(ledger)
    assert "not that of its charges" in text
    assert "not those of its entries" in text
    assert "never charged" in text


# Files that are no longer databases.


def test_a_damaged_file_is_a_finding_wherever_the_damage_is(ledger: Path) -> None:
    whole = ledger.read_bytes()
    for start in range(0, len(whole), 4096):
        ledger.write_bytes(whole[:start] + b"\xa5" * 512 + whole[start + 512 :])
        assert found(ledger), start


@pytest.mark.parametrize("keep", [0, 10, 4096, 40_000])
def test_a_truncated_file_is_found(ledger: Path, keep: int) -> None:
    ledger.write_bytes(ledger.read_bytes()[:keep])
    assert found(ledger)


def test_no_ledger_at_all_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LedgerMissing):
        check(tmp_path / "nowhere.db")


# The look back, against a slow and obvious one.


WINDOWS = [("lifetime", False), ("day", False), ("month", False), ("day", True), ("month", True)]


@pytest.mark.parametrize(("per", "sliding"), WINDOWS)
def test_what_was_spent_before_a_window_is_what_all_earlier_charges_add_up_to(per: Period, sliding: bool) -> None:
    budget = Budget(1, per=per, sliding=sliding)
    rng = experiment.Random(7)
    looking = look_back(budget)
    past: list[tuple[int, Cost]] = []
    at, spent = START, NOTHING_SPENT
    for _ in range(400):
        at += rng.choice([0, 0, 1, DAY // 50, DAY // 3, 3 * DAY])
        slow, start = NOTHING_SPENT, budget.start(at)
        for earlier, cost in past:
            if earlier < start:
                slow += cost
        assert looking.before(at, spent) == slow
        past.append((at, Cost(rng.randrange(5), rng.randrange(3), rng.randrange(2))))
        spent += past[-1][1]
