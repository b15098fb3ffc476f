"""`tacit ledger` as a user types it, in this process."""

import io
import json
import re
import shutil
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from tacit import cli
from tacit.cli.ledger_tables import print_overview
from tacit.guarantees import ONE_USER, approximate
from tacit.ledger import Budget, PrivacyLedger, Terms
from tacit.ledger.chain import SECOND, now
from tacit.ledger.impressions import ImpressionLedger
from tacit.ledger.overview import overview
from tacit.ledger.stores import open_store
from tests.unit.ledger.small_ledger import SMALL, build

ROOT = Path(__file__).parents[3]
COMMANDS = ("init", "show", "check", "export", "backup", "forget")
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
    shown = tacit("show", path)[1]
    assert "impression" not in shown
    assert "money" not in shown


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
    assert re.fullmatch(r"tacit: unknown-subject: .+ `tacit ledger show` lists the subjects\.\n", err)
    assert "nrol" not in err


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
    assert (charge["lane"], charge["position"]) == (charge["number"] % 4, charge["number"] // 4)
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
    assert tacit("check", ledger, "--json", tmp_path / "found.json") == (1, "", "")
    status, out, err = tacit("check", ledger)
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
    assert (status, out) == (1, "")
    assert re.fullmatch(r"tacit: ledger-missing: .+\n", err)


def test_an_export_can_be_checked_without_the_ledger(tacit: Tacit, ledger: Path, tmp_path: Path) -> None:
    out, head = tmp_path / "ledger.jsonl", tmp_path / "head.json"
    assert tacit("export", ledger, "--out", out) == (0, "", f"Wrote 71 entries and 12 impressions to {out}.\n")
    assert tacit("export", ledger) == tacit("export", ledger, "--out", "-") == (0, out.read_text(), "")
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
    status, out, err = tacit(command, address, *(["copy.db"] if command == "backup" else []))
    assert status in (1, 2)
    assert "s3cret" not in out + err
    assert re.fullmatch(r"tacit: .+\n", err)


OUTPUTS = [("export", "--out"), ("show", "--head"), ("show", "--json"), ("check", "--json"), ("backup", "--head")]


def at(path: Path) -> dict[str, bytes]:
    """All files of a folder."""
    return {file.name: file.read_bytes() for file in path.iterdir() if file.is_file()}


@pytest.mark.parametrize(("command", "option"), OUTPUTS)
def test_no_output_overwrites_a_ledger(
    tacit: Tacit, ledger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, option: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "symlink.db").symlink_to(ledger)
    (tmp_path / "hardlink").hardlink_to(ledger)
    shutil.copy(ledger, tmp_path / "another.db")
    copy = ["copy.db"] if command == "backup" else []
    before = at(tmp_path)
    beside = [f"{name}{ending}" for name in ("ledger.db", "another.db") for ending in ("-wal", "-shm", "-journal")]
    for target in ("ledger.db", "symlink.db"):
        for name in (str(ledger), "ledger.db", "./ledger.db", "symlink.db", "hardlink", "another.db", *beside):
            status, out, err = tacit(command, target, *copy, option, name)
            assert (status, out) == (2, ""), name
            assert re.fullmatch(rf"tacit: .*{option} names a ledger; name another file\.\n", err), name
            assert at(tmp_path) == before, name
    assert (tmp_path / "symlink.db").is_symlink()


@pytest.mark.parametrize(("command", "option"), OUTPUTS)
def test_an_output_that_cannot_be_written_is_told_with_its_option(
    tacit: Tacit, ledger: Path, tmp_path: Path, command: str, option: str
) -> None:
    copy = [tmp_path / "copy.db"] if command == "backup" else []
    for name in (tmp_path / "no" / "folder.json", tmp_path, "/dev/null"):
        status, out, err = tacit(command, ledger, *copy, option, name)
        assert (status, out) == (2, "")
        assert re.fullmatch(rf"tacit: .*{option}.*\n", err)
        assert [file.name for file in tmp_path.iterdir()] == ["ledger.db"]


def test_two_outputs_never_go_to_one_place(tacit: Tacit, ledger: Path, tmp_path: Path) -> None:
    one, head = tmp_path / "one.json", tmp_path / "head.json"
    for first, second in (("-", "-"), (one, one), (one, tmp_path / "." / "one.json")):
        status, out, err = tacit("show", ledger, "--json", first, "--head", second)
        assert (status, out) == (2, "")
        assert "--json and --head name the same file" in err
    assert not one.exists()
    status, out, _ = tacit("show", ledger, "--json", one, "--head", "-")
    assert (status, json.loads(out)) == (0, json.loads(one.read_text())["head"])
    head.write_text(out)
    assert tacit("check", ledger, "--against", head, "--json", head)[:2] == (2, "")  # what was noted stays
    assert head.read_text() == out
    copy = tmp_path / "copy.db"
    assert tacit("backup", ledger, copy, "--head", copy)[:2] == (2, "")
    assert not copy.exists()


def test_an_export_is_known_by_what_it_holds(tacit: Tacit, ledger: Path, tmp_path: Path) -> None:
    export, disguised = tmp_path / "exported.txt", tmp_path / "ledger.jsonl"
    tacit("export", ledger, "--out", export)
    sound = (0, "Sound: 71 entries of 9 subjects and 12 impressions checked.\n", "")
    assert tacit("check", export) == sound
    shutil.copy(ledger, disguised)
    assert tacit("check", disguised) == sound
    before = export.read_bytes()
    assert tacit("check", export, "--json", export)[:2] == (2, "")
    assert export.read_bytes() == before


def test_a_missing_export_is_one_line_without_numbers_of_the_system(tacit: Tacit, tmp_path: Path) -> None:
    (tmp_path / "folder.jsonl").mkdir()
    for name in ("nowhere.jsonl", "folder.jsonl"):
        status, out, err = tacit("check", tmp_path / name)
        assert (status, out) == (2, "")
        assert re.fullmatch(r"tacit: .+\n", err)
        assert "Errno" not in err


def test_one_is_not_several(tacit: Tacit, tmp_path: Path) -> None:
    path = tmp_path / "one.db"
    with PrivacyLedger.create(path) as ledger:
        ledger.enrol("anna", Budget(1), protects=ONE_USER)
    with ImpressionLedger.open(path) as shop:
        shop.report("first", "item", 5)
    assert tacit("check", path)[1] == "Sound: 1 entry of 1 subject and 1 impression checked.\n"
    assert "1 of 1 item " in tacit("show", path)[1]
    with PrivacyLedger.open(path) as ledger:
        ledger.enrol("berta", Budget(1), protects=ONE_USER)
    assert "... and 1 more subject;" in tacit("show", path, "--limit", 1)[1]


def test_the_latest_impression_is_a_day_and_the_latest_entry_a_time(tacit: Tacit, ledger: Path) -> None:
    out = tacit("show", ledger)[1]
    assert re.search(r"latest entry +│ 2024-11-03 03:36:00 UTC ", out)
    assert re.search(r"latest impression +│ 2024-11-06 ", out)


@pytest.mark.parametrize("width", [80, 140])
def test_tables_keep_amounts_in_one_line(tmp_path: Path, width: int, original: Path) -> None:
    path = Path(shutil.copy(original, tmp_path / "wide.db"))
    name = "the-subject-whose-name-is-far-too-long-" * 3
    with PrivacyLedger.open(path) as ledger:
        ledger.enrol(name, [Budget(3, 1e-5), Budget(2, 1e-6, per="day", sliding=True)], protects=ONE_USER)
        ledger.charge(name, "r" * 100, approximate(0.123456789, 1.23456e-7, ONE_USER))
    store = open_store(path)
    for subject in (None, name, "by-rho", "by-count"):
        text = io.StringIO()
        print_overview(Console(file=text, width=width), overview(store, subject=subject), "wide.db")
        lines = text.getvalue().splitlines()
        assert max(map(len, lines)) <= width
        if subject in (None, name):  # spent is rounded up, what is left down
            assert re.search(r"epsilon 0\.1234568 +2\.876543 ", text.getvalue())
            assert re.search(r"delta 1\.24e-07 +9\.87e-06 ", text.getvalue())
            assert re.search(r"delta 1\.24e-07 +8\.76e-07 ", text.getvalue())
        if subject is None:
            assert re.search(r"rho 0\.0\d+ +0\.\d+ ", text.getvalue())
            assert re.search(r"^the-subject-\S*… ", text.getvalue(), re.MULTILINE)
        else:
            assert "All releases of this subject together promise epsilon = " in text.getvalue()
            assert "  protects one user's rows, added or removed" in [line.rstrip() for line in lines]
    store.close()


@pytest.mark.parametrize("lanes", [1, 4])
def test_a_charge_has_the_place_that_a_finding_names(tacit: Tacit, tmp_path: Path, lanes: int) -> None:
    path = tmp_path / "places.db"
    build(path, lanes)
    (charge,) = json.loads(tacit("show", path, "--subject", "for-life", "--limit", 1, "--json", "-")[1])["charges"]
    out = tacit("show", path, "--subject", "for-life", "--limit", 1)[1]
    lane = rf"{charge['lane']} +" if lanes > 1 else ""
    assert re.search(rf"^ *{lane}{charge['position']} +2024-11-03 03:36:00 +second ", out, re.MULTILINE)
    assert bool(re.search(r"^lane +entry ", out, re.MULTILINE)) is (lanes > 1)
    tamper(path, "UPDATE entries SET amount = amount + 1 WHERE release_id = 'second'")
    assert f"lane {charge['lane']}, entry {charge['position']}: " in tacit("check", path)[1]


def test_show_json_tells_when_a_window_renews(tacit: Tacit, ledger: Path) -> None:
    shown = json.loads(tacit("show", ledger, "--json", "-")[1])
    renews = {
        row["subject"]: [(window["renews"] or "")[8:] for window in row["windows"]] for row in shown["statements"]
    }
    assert renews["by-month"][0] == "01T00:00:00.000000+00:00"
    assert renews["by-day"][0].endswith("T00:00:00.000000+00:00")
    assert renews["sliding"] == [""] * 2  # the calendar renews neither


def test_a_backup_holds_what_is_in_the_log(tacit: Tacit, ledger: Path, tmp_path: Path) -> None:
    copy, head = tmp_path / "copy.db", tmp_path / "head.json"
    with PrivacyLedger.open(ledger) as opened:  # in use: the latest charge is in the log alone
        opened.charge("for-life", "later", SMALL)
        assert (tmp_path / "ledger.db-wal").stat().st_size > 0
        status, out, err = tacit("backup", ledger, copy)
        assert (status, err) == (0, "")
        assert out.startswith(f"Wrote 72 entries and 12 impressions to {copy}.\nNow note its head: ")
        assert tacit("backup", ledger, tmp_path / "second.db", "--head", head)[0] == 0
        status, out, err = tacit("backup", ledger, tmp_path / "third.db", "--head", "-")
        assert (status, json.loads(out)) == (0, json.loads(head.read_text()))
        assert err.startswith("Wrote 72 entries")
    for file in (copy, ledger):
        assert tacit("check", file, "--against", head)[:2] == (
            0, "Sound: 72 entries of 9 subjects and 12 impressions checked.\n"
        )  # fmt: skip


def test_a_backup_overwrites_nothing_and_leaves_nothing_half_done(tacit: Tacit, ledger: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("what was there")
    before = at(tmp_path)
    for name in ("ledger.db", "notes.txt"):
        status, out, err = tacit("backup", ledger, tmp_path / name)
        assert (status, out) == (1, "")
        assert re.fullmatch(r"tacit: ledger-exists: .+\n", err)
    for wrong in (tmp_path / "no" / "folder.db", tmp_path / "ledger.db-wal", "-"):
        assert tacit("backup", ledger, wrong)[:2] == (2, "")
    status, out, err = tacit("backup", tmp_path / "nowhere.db", tmp_path / "copy.db")
    assert (status, out) == (1, "")
    assert re.fullmatch(r"tacit: ledger-missing: .+\n", err)
    status, out, err = tacit("backup", "postgresql://me@127.0.0.1:1/ledger", tmp_path / "copy.db")
    assert (status, out) == (2, "")
    assert "use pg_dump --schema=tacit" in err
    assert at(tmp_path) == before
