"""tacit evaluate private-slates as a user types it."""

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from tacit.cli import app
from tacit.cli.results import print_result
from tacit.data import GENRES
from tacit.evaluation.part import Part
from tacit.evaluation.private_slates import diversified
from tacit.evaluation.result import Claim, Result, Row
from tests.unit.cli.called import Command

TACIT = Path(sys.executable).with_name("tacit")


def tacit(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(TACIT), *words], capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A MovieLens folder of 80 made-up users and 120 films."""
    rng = np.random.default_rng(1)
    where = tmp_path_factory.mktemp("films")
    films = [f"{i},Film {i} (1999),{GENRES[i % 18]}|{GENRES[(i * i + 5) % 18]}" for i in range(1, 121)]
    (where / "movies.csv").write_text("\n".join(["movieId,title,genres", *films]) + "\n")
    ratings = [
        f"{user},{film},{rng.integers(2, 11) / 2},{10**9 + film}"
        for user in range(1, 81)
        for film in np.sort(rng.choice(np.arange(1, 121), 25, replace=False))
    ]
    (where / "ratings.csv").write_text("\n".join(["userId,movieId,rating,timestamp", *ratings]) + "\n")
    return where


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--data", "taobao"), "no data set, file or folder 'taobao'"),
        (("--trials", "5"), "belongs to multi-selection; private-slates has no such option"),
        (("--look-alikes", "50"), "belongs to multi-selection"),
        (("--workers", "1"), "belongs to multi-selection"),
        (("--quick", "--full"), "exclude each other"),
        (("--plots", __file__), "must name a folder"),
    ],
)
def test_a_wrong_call_is_one_line_on_standard_error_and_exits_with_2(
    called: Command, words: tuple[str, ...], told: str
) -> None:
    done = called("evaluate", "private-slates", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"tacit: .+\n", done.stderr)
    assert told in done.stderr


def test_a_run_writes_json_and_figures_and_its_tables_can_be_shown(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        diversified, "run", lambda effort, *, seed, progress: Part()
    )  # trains a network: tested elsewhere
    words = ("evaluate", "private-slates", "--data", str(folder), "--quick", "--seed", "3", "--json", "-", "--plots")
    app([*words, str(tmp_path)], standalone_mode=False)
    value = json.loads(capsys.readouterr().out)  # and nothing else
    assert (value["system"], value["data"], value["seed"]) == ("private-slates", folder.name, 3)
    assert {"method", "setting", "metric", "value", "stderr", "n"} == set(value["rows"][0])
    assert {path.stem for path in tmp_path.glob("*.png")} >= {
        "privacy-utility", "privacy-diversity", "utility-diversity", "epsilon-catalogue", "many-slates", "tempered-stability"
    }  # fmt: skip
    shown = io.StringIO()
    print_result(Console(file=shown, width=200), Result.from_json(value))
    text = " ".join(shown.getvalue().split())
    for title in ("Every user several times", "as the catalogue grows", "Many slates together",
                  "up to the limit of floats", "The paper's claims", "Beyond the paper"):  # fmt: skip
        assert title in text
    for method in ("natural slate, published bound", "tempered slate", "Gaussian kernel, then k-DPP", "sparse vector"):
        assert method in text
    assert "64 users to make slates from, 16 held out, 120 films" in text


def test_a_reference_figure_stands_in_brackets_beside_ours() -> None:
    rows = (
        Row("natural slate", {"epsilon": 1.0}, "popularity", 0.2345, 0.0071, 150),
        Row("reference:natural slate", {"epsilon": 1.0}, "popularity", 0.237),
        Row("something else", {"world": "w"}, "another figure", 12345.0),
    )
    claims = (Claim("somebody", "[red] is a colour", False, "[none]"),)
    shown = io.StringIO()
    print_result(Console(file=shown, width=160), Result("private-slates", "films", rows, claims, {}, 1, ("a [note]",)))
    text = shown.getvalue()
    assert "0.2345 ±0.0071 (0.2370)" in text
    assert re.search(r"another figure\s.*\s12,345", text, flags=re.S)
    assert "The paper's claims: 0 of 1 hold" in text
    assert "[red] is a colour" in text  # not taken for a style
    assert "reference:" not in text
