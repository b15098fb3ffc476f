"""tacit evaluate private-selection as a user types it."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.cli.called import Command

TACIT = Path(sys.executable).with_name("tacit")


def tacit(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(TACIT), *words], capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--data", "taobao"), "known: display, search, trained, movielens-100k, open-bandit, all"),
        (("--trials", "5"), "belongs to multi-selection"),
        (("--look-alikes", "50"), "belongs to multi-selection"),
        (("--workers", "1"), "belongs to multi-selection"),
        (("--quick", "--full"), "exclude each other"),
        (("--plots", __file__), "must name a folder"),
    ],
)
def test_a_wrong_call_is_one_line_on_standard_error_and_exits_with_2(
    called: Command, words: tuple[str, ...], told: str
) -> None:
    done = called("evaluate", "private-selection", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"tacit: .+\n", done.stderr)
    assert told in done.stderr


def test_a_run_writes_tables_json_and_figures(tmp_path: Path) -> None:
    told, figures = tmp_path / "result.json", tmp_path / "figures"
    done = tacit(
        "evaluate", "private-selection", "--data", "display", "--quick", "--seed", "3", "--json", str(told), "--plots", str(figures)
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for title in ("mean candidates", "Prices from less data", "display: CTR lift", "Randomised response with a cutoff gamma",
                  "Exact calibration", "Beyond the paper", "The paper's claims", "within the reference's tolerance"):  # fmt: skip
        assert title in done.stdout
    assert "In brackets" in done.stdout
    result = json.loads(told.read_text())
    assert (result["system"], result["data"], result["seed"]) == ("private-selection", "display", 3)
    drawn = {path.name[:9] for path in figures.glob("figure-*.png")}
    assert drawn == {f"figure-{number}" for number in ("02", "03", "04", "05", "09", "11", "12", "13", "14")}


def test_json_on_standard_output_is_all_there_is(tmp_path: Path) -> None:
    done = tacit("evaluate", "private-selection", "--data", "open-bandit", "--quick", "--json", "-")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["system"] == "private-selection"
