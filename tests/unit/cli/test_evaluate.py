"""tacit evaluate as a user types it."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tacit.data import synthetic, write
from tests.unit.cli.called import Command

TACIT = Path(sys.executable).with_name("tacit")
ROOT = Path(__file__).parents[3]


def tacit(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(TACIT), *words], capture_output=True, text=True, timeout=240, check=False)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("evaluate", "no-such-system"), "unknown-name"),
        (("evaluate", "multi-selection", "--data", "no-such-data", "--quick"), "unknown-name"),
        (("evaluate", "multi-selection", "--quick", "--full"), "Invalid value"),
        (("evaluate", "multi-selection", "--trials", "1"), "Invalid value"),
        (("evaluate", "multi-selection", "--json", "no/such/folder/x.json"), "Invalid value"),
        (("evaluate", "multi-selection", "--plots", __file__), "Invalid value"),
        (("evaluate",), "Missing argument"),
    ],
)
def test_a_wrong_call_is_one_line_on_standard_error_and_exits_with_2(
    called: Command, words: tuple[str, ...], code: str
) -> None:
    done = called(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"tacit: .+\n", done.stderr)
    assert code in done.stderr


def test_help_has_an_example_and_the_docs_have_a_place() -> None:
    done = tacit("evaluate", "--help")
    assert done.returncode == 0
    assert "Example: tacit evaluate multi-selection" in " ".join(done.stdout.split())
    page = (ROOT / "docs" / "command-line.md").read_text()
    assert "## `tacit evaluate`" in page
    assert "tacit evaluate multi-selection" in page


def test_a_run_writes_tables_json_and_figures(tmp_path: Path) -> None:
    data, told, figures = tmp_path / "world.parquet", tmp_path / "result.json", tmp_path / "figures"
    write(synthetic(users=120, items=60, ratings_per_user=30, rng=np.random.default_rng(1)), data)
    words = (
        "evaluate",
        "multi-selection",
        "--data",
        str(data),
        "--quick",
        "--trials",
        "3",
        "--workers",
        "1",
        "--seed",
        "7",
    )
    done = tacit(*words, "--json", str(told), "--plots", str(figures))
    assert done.returncode == 0, done.stderr
    for title in (
        "d_i: regret of the slate",
        "d_f: regret of the item",
        "The paper's claims",
        "Beyond the paper, against ig-sig",
        "trials per second",
    ):
        assert title in done.stdout
    assert "paper" in done.stdout
    result = json.loads(told.read_text())
    assert (result["system"], result["seed"]) == ("multi-selection", 7)
    assert any(row["method"] == "paper:sat-realuser" for row in result["rows"])
    assert {"paper", "claim", "holds", "evidence"} == set(result["claims"][0])
    assert len(list(figures.glob("figure-*.png"))) == 10
