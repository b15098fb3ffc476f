"""The command as a user types it: a real process, its output, its exit status."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.cli.called import Command

TACIT = Path(sys.executable).with_name("tacit")
ROOT = Path(__file__).parents[3]


def tacit(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(TACIT), *words], capture_output=True, text=True, timeout=240, check=False)


def test_version_is_printed() -> None:
    done = tacit("--version")
    assert (done.returncode, done.stdout) == (0, "tacit 0.1.0\n")


def test_the_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tacit", "--version"], capture_output=True, text=True, timeout=240, check=False
    )
    assert (done.returncode, done.stdout) == (0, "tacit 0.1.0\n")
    done = subprocess.run(
        [sys.executable, "-m", "tacit", "no-such"], capture_output=True, text=True, timeout=240, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"tacit: .+\n", done.stderr)


def test_a_wrong_call_exits_with_2() -> None:
    for words in (("no-such-command",), ("demo", "--no-such-option"), ("audit", "--json", "no/such/folder/x.json")):
        done = tacit(*words)
        assert (done.returncode, done.stdout) == (2, "")
        assert re.fullmatch(r"tacit: .+\n", done.stderr)


def test_a_failing_disk_is_one_line_on_standard_error_and_exits_with_1() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no device that is always full")
    with open("/dev/full", "w") as full:
        done = subprocess.run([str(TACIT), "data", "list"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert re.fullmatch(r"tacit: .+\n", done.stderr)


@pytest.mark.parametrize(
    "words", [("data", "describe", "no-such-data"), ("audit", "no-such-mechanism"), ("demo", "--data", "no-such")]
)
def test_an_unknown_name_is_one_line_on_standard_error_and_exits_with_2(
    called: Command, words: tuple[str, ...]
) -> None:
    done = called(*words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert re.fullmatch(r"tacit: unknown-name: .+\n", done.stderr)


@pytest.mark.parametrize(
    "words", [(), ("demo",), ("audit",), ("data", "list"), ("data", "describe"), ("data", "import")]
)
def test_every_command_has_help_with_an_example(called: Command, words: tuple[str, ...]) -> None:
    done = called(*words, "--help")
    assert done.returncode == 0
    assert not words or "Example" in done.stdout


def test_every_command_has_its_place_in_the_docs() -> None:
    page = (ROOT / "docs" / "command-line.md").read_text()
    for command in ("demo", "audit", "fit", "evaluate", "data list", "data describe", "data import"):
        assert f"tacit {command}" in page


def test_audit_json_has_the_promised_shape(tmp_path: Path) -> None:
    out = tmp_path / "audit.json"
    done = tacit("audit", "randomised-response", "exponential", "--json", str(out))
    assert done.returncode == 0, done.stderr
    report = json.loads(out.read_text())
    assert {row["name"] for row in report["mechanisms"]} == {"randomised-response", "exponential"}
    for row in report["mechanisms"]:
        assert set(row) >= {"name", "claim", "by", "loss", "holds"}
        assert set(row["claim"]) >= {"epsilon", "delta", "unit"}
        assert row["by"] in {"exact", "distribution", "empirical"}
        assert row["holds"] is True
    assert report["twins"]
    assert all(set(row) >= {"name", "of", "caught"} and row["caught"] is True for row in report["twins"])
