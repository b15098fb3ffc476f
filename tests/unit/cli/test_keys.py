"""`tacit keys` as a user types it, in this process."""

import re
import stat
from pathlib import Path

import pytest

from tacit.service.keys import KeyRing, Scope, read
from tests.unit.cli.called import Command

ROOT = Path(__file__).parents[3]


@pytest.fixture
def tacit(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    monkeypatch.chdir(tmp_path)
    return Command(monkeypatch, capfd)


def test_a_key_is_printed_once_and_alone_and_works(tacit: Command, tmp_path: Path) -> None:
    done = tacit("keys", "add", "grafana", "--scope", "operator")
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert (
        str(Path("tacit-home", "keys.json")) in done.stderr
    )  # where it was put, which need not be where a service looks
    assert re.fullmatch(r"tacit_[0-9a-f]{8}_[\w-]{43}\n", done.stdout)  # it can be piped into a file
    file = tmp_path / "tacit-home" / "keys.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    found = KeyRing(file).find(f"Bearer {done.stdout.strip()}")
    assert found is not None
    assert (found.name, found.scope) == ("grafana", Scope.OPERATOR)
    assert done.stdout.strip() not in file.read_text()


def test_keys_are_listed_with_what_they_may_do_and_until_when(tacit: Command, tmp_path: Path) -> None:
    file = ("--keys", tmp_path / "my keys.json")
    texts = [
        tacit("keys", "add", "grafana", "--scope", "operator", "--expires", "2027-06-30", *file).stdout,
        tacit("keys", "add", "acme", "--scope", "statements", "--item", "318", "--item", "858", *file).stdout,
        tacit("keys", "add", "library", "--scope", "entity", "--entity", "library-1", *file).stdout,
        tacit("keys", "add", "many", "--scope", "statements",
              *[word for number in range(9) for word in ("--item", number)], *file).stdout,
    ]  # fmt: skip
    done = tacit("keys", "list", *file)
    assert done == (
        0,
        "grafana\toperator\t-\tuntil 2027-06-30\n"
        "acme\tstatements\t318, 858\tuntil revoked\n"
        "library\tentity\tlibrary-1\tuntil revoked\n"
        "many\tstatements\t0, 1, 2, 3, 4 ...\tuntil revoked\n",
        "",
    )
    for text in texts:
        assert text.strip()[15:] not in done.stdout
    assert len(read(tmp_path / "my keys.json")[-1].items) == 9


def test_a_key_is_revoked_by_its_name(tacit: Command, tmp_path: Path) -> None:
    for name in ("one", "two"):
        tacit("keys", "add", name, "--scope", "operator")
    assert tacit("keys", "revoke", "one") == (0, "Revoked one.\n", "")
    assert tacit("keys", "list").stdout == "two\toperator\t-\tuntil revoked\n"
    again = tacit("keys", "revoke", "one")
    assert (again.returncode, again.stdout) == (2, "")
    assert re.fullmatch(r"tacit: unknown-name: .+keys list.+\n", again.stderr)


def test_without_keys_none_are_listed(tacit: Command, tmp_path: Path) -> None:
    assert tacit("keys", "list") == (0, "", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("add", "acme"), "--scope"),
        (("add", "--scope", "operator"), "NAME"),
        (("add", "acme", "--scope", "root"), "'operator', 'statements', 'entity'"),
        (("add", "acme", "--scope", "statements"), "name items"),
        (("add", "acme", "--scope", "operator", "--item", "1"), "name items"),
        (("add", "acme", "--scope", "entity"), "name an entity"),
        (("add", "a/b", "--scope", "operator"), "name of a key"),
        (("add", "acme", "--scope", "operator", "--expires", "tomorrow"), "--expires"),
        (("revoke",), "NAME"),
        (("revoke", "nobody"), "unknown-name"),
        (("lend", "acme"), "lend"),
    ],
)
def test_a_wrong_call_is_one_line_and_exits_with_2(
    tacit: Command, tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    done = tacit("keys", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"tacit: .+\n", done.stderr)
    assert told in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_file_is_one_line_and_exits_with_1(tacit: Command, tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    file.write_text("{}")
    for words in (("list",), ("add", "acme", "--scope", "operator"), ("revoke", "acme")):
        done = tacit("keys", *words, "--keys", file)
        assert (done.returncode, done.stdout) == (1, "")
        assert re.fullmatch(r"tacit: invalid-data: .+Restore a backup.+\n", done.stderr)
    assert file.read_text() == "{}"


@pytest.mark.parametrize("command", ["add", "list", "revoke"])
def test_every_command_has_help_with_an_example_and_a_place_in_the_docs(tacit: Command, command: str) -> None:
    done = tacit("keys", command, "--help")
    assert (done.returncode, f"Example: tacit keys {command}" in done.stdout) == (0, True)
    page = (ROOT / "docs" / "command-line.md").read_text()
    assert "## `tacit keys`" in page
    assert command in page.partition("## `tacit keys`")[2].partition("\n## ")[0]
