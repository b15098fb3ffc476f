"""The command as a user types it: a real process, its output, its exit status."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

TACIT = Path(sys.executable).with_name("tacit")
ROOT = Path(__file__).parents[3]


def tacit(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(TACIT), *words], capture_output=True, text=True, timeout=240, check=False)


def test_version_is_printed() -> None:
    done = tacit("--version")
    assert (done.returncode, done.stdout) == (0, "tacit 0.1.0\n")


def test_a_wrong_call_exits_with_2() -> None:
    assert tacit("no-such-command").returncode == 2
    assert tacit("demo", "--no-such-option").returncode == 2


@pytest.mark.parametrize(
    "words", [("data", "describe", "no-such-data"), ("audit", "no-such-mechanism"), ("demo", "--data", "no-such")]
)
def test_a_failure_is_one_line_on_standard_error_and_exits_with_1(words: tuple[str, ...]) -> None:
    done = tacit(*words)
    assert done.returncode == 1
    assert done.stdout == ""
    assert re.fullmatch(r"tacit: unknown-name: .+\n", done.stderr)


@pytest.mark.parametrize(
    "words", [(), ("demo",), ("audit",), ("data", "list"), ("data", "describe"), ("data", "import")]
)
def test_every_command_has_help_with_an_example(words: tuple[str, ...]) -> None:
    done = tacit(*words, "--help")
    assert done.returncode == 0
    assert not words or "Example" in done.stdout


def test_every_command_has_its_place_in_the_docs() -> None:
    page = (ROOT / "docs" / "command-line.md").read_text()
    for command in ("demo", "audit", "data list", "data describe", "data import"):
        assert f"tacit {command}" in page


def test_demo_releases_adds_up_and_audits(tmp_path: Path) -> None:
    out = tmp_path / "demo.json"
    done = tacit("demo", "--data", "synthetic", "--json", str(out))
    assert done.returncode == 0, done.stderr
    assert "refused (mixed-units" in done.stdout
    shown = json.loads(out.read_text())
    assert {release["mechanism"] for release in shown["releases"]} == {
        "exponential", "gaussian-sum", "laplace-sum", "noisy-max", "permute-and-flip", "randomised-response", "sparse-vector",
        "top-k", "vector-laplace",
    }  # fmt: skip
    assert all(release["guarantee"]["epsilon"] != "inf" for release in shown["releases"])
    assert 0 < shown["total"]["epsilon"] <= 4.0  # 0.5 + 1 + 1 + 0.5 + 1 by basic composition
    assert all(row["holds"] for row in shown["audit"]["mechanisms"])
    assert all(row["caught"] for row in shown["audit"]["twins"])


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
