"""tacit evaluate cross-domain as a user types it."""

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from tacit.cli import app
from tacit.cli.results import print_result
from tacit.errors import InvalidParameter
from tacit.evaluation.cross_domain.synthetic import Plan, synthetic
from tacit.evaluation.result import Claim, Result, Row

TACIT = Path(sys.executable).with_name("tacit")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two files of ratings by 120 made-up users."""
    where = tmp_path_factory.mktemp("pair")
    two = synthetic(Plan(users=120, items=25, each=10.0, overlap=0.5), rng=np.random.default_rng(1))
    for name, part in (("films", two.source), ("books", two.target)):
        rows = zip(part.users.tolist(), part.items.tolist(), part.values.tolist(), strict=True)
        lines = [f"{user},{name}{item},{value:g}" for user, item, value in rows]
        (where / f"{name}.csv").write_text("\n".join(["user_id,item_id,rating", *lines]) + "\n")
    return f"{where / 'films.csv'},{where / 'books.csv'}"


def test_two_files_that_are_not_there_are_one_line_on_standard_error() -> None:
    words = [str(TACIT), "evaluate", "cross-domain", "--data", "a.csv,b.csv"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"tacit: .+\n", done.stderr)
    assert "two files of ratings joined by a comma" in done.stderr


def test_a_second_file_that_is_missing_is_said_to_be(pair: str) -> None:
    done = CliRunner().invoke(app, ["evaluate", "cross-domain", "--data", pair.split(",")[0]])
    assert isinstance(done.exception, InvalidParameter)
    assert "is one file, and there is no second" in str(done.exception)
    assert "--data source.csv,target.csv" in str(done.exception)


@pytest.mark.parametrize(
    "words", [("--trials", "3"), ("--workers", "1"), ("--look-alikes", "50"), ("--quick", "--full")]
)
def test_options_of_other_systems_are_refused(words: tuple[str, ...]) -> None:
    assert CliRunner().invoke(app, ["evaluate", "cross-domain", *words]).exit_code == 2


def test_a_run_writes_json_and_its_tables_can_be_shown(pair: str, tmp_path: Path) -> None:
    file = tmp_path / "found.json"
    done = CliRunner().invoke(
        app, ["evaluate", "cross-domain", "--data", pair, "--quick", "--seed", "3", "--json", str(file)]
    )
    assert done.exit_code == 0, done.output
    value = json.loads(file.read_text())
    assert (value["system"], value["data"], value["seed"]) == ("cross-domain", "films.csv to books.csv", 3)
    assert set(value["rows"][0]) == {"method", "setting", "metric", "value", "stderr", "n"}
    shown = io.StringIO()
    print_result(Console(file=shown, width=200), Result.from_json(value))
    for told in ("films.csv to books.csv", "NX-Map-ib, published form", "B3", "prs_valid, whole table", "NDCG@10"):
        assert told in shown.getvalue()


def test_a_reference_figure_stands_in_brackets_beside_ours() -> None:
    rows = (
        Row("B3", {"world": "w", "epsilon": 2.0}, "MAE", 0.7412, 0.0031, 150),
        Row("reference:B3", {"world": "w", "epsilon": 2.0}, "MAE", 0.741),
        Row("NX-Map-ib", {"world": "w", "epsilon": "inf"}, "MAE", 0.7),
        Row("reference:untried", {"world": "v", "epsilon": 1.0, "k": 5}, "MAE", 0.5),
    )
    claims = (Claim("somebody else", "[red] is a colour", False, "[none]"), Claim("tacit", "[blue]", True, "so"))
    claims += (Claim("reference figures", "one", False, "far"), Claim("reference figures", "two", True, "near"))
    shown = io.StringIO()
    print_result(Console(file=shown, width=160), Result("cross-domain", "w", rows, claims, {}, 1, ("a [note]",)))
    text = shown.getvalue()
    assert "0.7412 ±0.0031 (0.7410)" in text
    assert "[blue]" in text  # not taken for a style
    assert "1 of 2" in text
    assert "a [note]" in text
    assert "reference:" not in text
    assert "untried" not in text
