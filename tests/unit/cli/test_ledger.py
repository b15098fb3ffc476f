"""`tacit ledger` as a user types it, in this process."""

import json
import re
import shutil
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tacit import cli
from tacit.guarantees import ONE_USER
from tacit.ledger import Budget, PrivacyLedger, Terms
from tacit.ledger.clock import SECOND, now
from tests.unit.ledger.small_ledger import SMALL, build

ROOT = Path(__file__).parents[3]
COMMANDS = ("init", "show", "check", "export")
Tacit = Callable[..., tuple[int, str, str]]


@pytest.fixture
def tacit(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Tacit:
    """The exit status, standard output and standard error of a call."""

    def call(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["tacit", "ledger", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        out, err = capfd.readouterr()
        return int(end.value.code or 0), out, err

    return call


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cli") / "original.db"
    build(path, 4)
    return path


@pytest.fixture
def ledger(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(original, tmp_path / "ledger.db"))


def tamper(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()


def test_every_command_has_help_with_an_example_and_its_place_in_the_docs(tacit: Tacit) -> None:
    page = (ROOT / "docs" / "command-line.md").read_text()
    for command in COMMANDS:
        status, out, _ = tacit(command, "--help")
        assert status == 0
        assert "Example: tacit ledger" in out
        assert f"tacit ledger {command}" in page


def test_init_makes_a_ledger_once(tacit: Tacit, tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    status, out, _ = tacit("init", path, "--lanes", 3)
    assert status == 0
    assert re.fullmatch(r"Created ledger [0-9a-f]{32} in .*new\.db\.\n", out)
    before = path.read_bytes()
    status, out, err = tacit("init", path)
    assert (status, out) == (1, "")
    assert re.fullmatch(r"tacit: ledger-exists: .+\n", err)
    assert path.read_bytes() == before
    assert tacit("check", path)[:2] == (0, "Sound: 0 entries of 0 subjects and 0 impressions checked.\n")
    assert "0 of 0 items" in tacit("show", path)[1]


@pytest.mark.parametrize("words", [("init", "x.db", "--lanes", 0), ("show", "x.db", "--limit", 0), ("check",)])
def test_a_wrong_call_exits_with_2(tacit: Tacit, words: tuple[object, ...]) -> None:
    status, out, err = tacit(*words)
    assert (status, out) == (2, "")
    assert re.fullmatch(r"tacit: .+\n", err)


@pytest.mark.parametrize("command", ["show", "check", "export"])
def test_a_missing_ledger_is_one_line_and_is_not_created(tacit: Tacit, tmp_path: Path, command: str) -> None:
    status, out, err = tacit(command, tmp_path / "nowhere.db")
    assert (status, out) == (1, "")
    assert re.fullmatch(r"tacit: ledger-missing: .+\n", err)
    assert not list(tmp_path.iterdir())


def test_show_tells_what_is_spent_and_left(tacit: Tacit, ledger: Path) -> None:
    status, out, err = tacit("show", ledger)
    assert (status, err) == (0, "")
    for text in (
        "for-life",
        "unprotected 4",
        "epsilon 1 in any 24 hours",
        "releases 4",
        "item-2",
        "12.000066",
        "rho 0.",
    ):
        assert text in out, text
    assert "more" not in out


def test_show_limits_its_rows_and_says_so(tacit: Tacit, tmp_path: Path) -> None:
    path = tmp_path / "many.db"
    with PrivacyLedger.create(path) as ledger:
        ledger.enrol_many([f"subject-{number:04}" for number in range(1_000)], Terms((Budget(1),), ONE_USER))
        ledger.charge("subject-0007", "first", SMALL)
    _, out, _ = tacit("show", path)
    assert "... and 980 more subjects" in out
    assert out.index("subject-0007") < out.index("subject-0999")  # the latest charge first
    _, out, _ = tacit("show", path, "--limit", 3, "--json", "-")
    assert [row["subject"] for row in json.loads(out)["statements"]] == ["subject-0007", "subject-0999", "subject-0998"]


def test_show_one_subject_with_her_charges(tacit: Tacit, ledger: Path) -> None:
    _, out, _ = tacit("show", ledger, "--subject", "for-life", "--limit", 2)
    assert "second" in out
    assert "... and 8 more charges" in out
    assert "item-" not in out
    assert "by-day" not in out
    status, out, err = tacit("show", ledger, "--subject", "nobody")
    assert (status, out) == (2, "")
    assert re.fullmatch(r"tacit: unknown-subject: .+\n", err)


def test_show_json_has_the_promised_shape(tacit: Tacit, ledger: Path) -> None:
    shown = json.loads(tacit("show", ledger, "--json", "-")[1])
    assert set(shown) == {
        "store", "ledger", "created", "lanes", "entries", "subjects", "impressions", "items", "micros", "latest", "head",
        "statements", "charges", "totals",
    }  # fmt: skip
    assert (shown["entries"], shown["subjects"], shown["impressions"]) == (71, 9, 12)
    assert (shown["items"], shown["micros"], len(shown["statements"])) == (3, "12000066", 9)
    assert shown["totals"][0] == {"item": "item-0", "impressions": 4, "micros": "4000018"}
    one = json.loads(tacit("show", ledger, "--subject", "for-life", "--limit", 1, "--json", "-")[1])
    assert [statement["subject"] for statement in one["statements"]] == ["for-life"]
    (charge,) = one["charges"]
    assert (charge["release_id"], charge["cost"]["epsilon"], charge["guarantee"]["epsilon"]) == ("second", "0.1", 0.1)


@pytest.mark.parametrize(
    "place", ["lanes SET link", "lanes SET at", "texts SET text", "subjects SET total", "accounts SET seal"]
)
def test_show_of_a_damaged_ledger_is_one_line(tacit: Tacit, ledger: Path, place: str) -> None:
    tamper(ledger, f"UPDATE {place} = 'many'")
    status, out, err = tacit("show", ledger)
    assert (status, out) == (1, "")
    assert re.fullmatch(r"tacit: ledger-damaged: .+ `tacit ledger check`.+\n", err)


def test_a_noted_head_finds_an_old_backup(tacit: Tacit, ledger: Path, tmp_path: Path) -> None:
    old, head, whole = tmp_path / "old.db", tmp_path / "head.json", tmp_path / "show.json"
    shutil.copy(ledger, old)
    with PrivacyLedger.open(ledger) as opened:
        opened.charge("for-life", "later", SMALL)
    assert tacit("show", ledger, "--head", head, "--json", whole)[0] == 0
    for noted in (head, whole):
        assert tacit("check", ledger, "--against", noted)[0] == 0
        status, out, _ = tacit("check", old, "--against", noted)
        assert status == 1
        assert "an old backup?" in out
    shutil.copy(ledger, tmp_path / "noted.txt")
    status, out, err = tacit("check", ledger, "--against", tmp_path / "noted.txt")
    assert (status, out) == (2, "")
    assert re.fullmatch(r"tacit: invalid-parameter: .+\n", err)


def test_check_tells_each_finding_in_one_line(tacit: Tacit, ledger: Path, tmp_path: Path) -> None:
    assert tacit("check", ledger)[:2] == (0, "Sound: 71 entries of 9 subjects and 12 impressions checked.\n")
    tamper(ledger, "UPDATE entries SET amount = amount + 1 WHERE release_id = 'second'")
    status, out, err = tacit("check", ledger, "--json", tmp_path / "found.json")
    assert (status, err) == (1, "")
    found = json.loads((tmp_path / "found.json").read_text())
    *lines, last = out.splitlines()
    assert last == "Not sound: 71 entries of 9 subjects and 12 impressions checked."
    assert len(lines) == len(found["findings"]) > 1
    assert all(re.fullmatch(r"privacy book, lane \d, entry \d+: .+\.", line) for line in lines)
    assert set(found) == {"sound", "entries", "subjects", "impressions", "findings", "more"}
    assert set(found["findings"][0]) == {"book", "lane", "position", "problem"}
    status, out, _ = tacit("check", ledger, "--json", "-")
    assert (status, json.loads(out)) == (1, found)


def test_check_of_a_file_of_something_else_is_no_traceback(tacit: Tacit, tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    path.write_text("this is no database " * 100)
    status, out, err = tacit("check", path)
    assert (status, err) == (1, "")
    assert out.startswith("ledger: it cannot be opened: ledger-damaged: ")


def test_an_export_can_be_checked_without_the_ledger(tacit: Tacit, ledger: Path, tmp_path: Path) -> None:
    out, head = tmp_path / "ledger.jsonl", tmp_path / "head.json"
    assert tacit("export", ledger, "--out", out) == (0, "", "")
    assert tacit("export", ledger) == (0, out.read_text(), "")
    tacit("show", ledger, "--head", head)
    ledger.unlink()
    sound = "Sound: 71 entries of 9 subjects and 12 impressions checked.\n"
    assert tacit("check", out, "--against", head) == (0, sound, "")
    lines = out.read_bytes().splitlines(keepends=True)
    for altered in (lines[:-1], [*lines[:5], b"\xff\n", *lines[5:]], [b"\r".join(lines)], []):
        out.write_bytes(b"".join(altered))
        status, told, err = tacit("check", out)
        assert (status, err) == (1, "")
        assert "Not sound" in told


def test_an_export_is_written_whole_or_not_at_all(tacit: Tacit, ledger: Path, tmp_path: Path) -> None:
    tamper(ledger, "DELETE FROM accounts")
    out = tmp_path / "ledger.jsonl"
    out.write_text("what was there")
    status, told, err = tacit("export", ledger, "--out", out)
    assert (status, told) == (1, "")
    assert re.fullmatch(r"tacit: ledger-damaged: .+\n", err)
    assert out.read_text() == "what was there"
    assert {path.name for path in tmp_path.iterdir()} == {"ledger.db", "ledger.jsonl"}
    assert tacit("export", ledger, "--out", tmp_path / "no" / "such" / "folder.jsonl")[0] == 2


def test_a_clock_that_is_behind_is_told(tacit: Tacit, tmp_path: Path) -> None:
    path = tmp_path / "ahead.db"
    with PrivacyLedger.create(path, clock=lambda: now() + 600 * SECOND) as ledger:
        ledger.enrol("anna", Budget(1), protects=ONE_USER)
    status, out, err = tacit("show", path, "--json", "-")
    assert status == 0
    assert json.loads(out)["entries"] == 1
    assert re.fullmatch(r"tacit: the clock is (9|10) minutes behind the ledger's latest entry\. .+\n", err)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:s3cret@127.0.0.1:1/ledger",
        "postgresql://127.0.0.1:1/ledger?user=me&password=s3cret",
        "postgresql://me:s3cret@@127.0.0.1:one/ledger?nonsense=s3cret",
    ],
)
def test_the_password_of_an_address_is_never_shown(tacit: Tacit, command: str, address: str) -> None:
    status, out, err = tacit(command, address)
    assert status in (1, 2)
    assert "s3cret" not in out + err
    assert re.fullmatch(r"tacit: .+\n", err)
