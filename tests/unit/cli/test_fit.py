"""tacit fit as a user types it."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from tacit.cli import main
from tacit.data import STARS, from_arrays, write
from tacit.messages.store import Store

ROOT = Path(__file__).parents[3]


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


Run = Callable[..., Done]


@pytest.fixture
def tacit(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """The entry point of the command, in this process: loading numpy for each call would take most of the time."""

    def run(*words: str | Path) -> Done:
        monkeypatch.setattr(sys, "argv", ["tacit", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        return Done(int(ended.value.code or 0), *capfd.readouterr())

    return run


def test_the_installed_command_knows_it() -> None:
    words = [str(Path(sys.executable).with_name("tacit")), "fit", "synthetic", "--out", "no/such/folder/x"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=240, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"tacit: .+\n", done.stderr)


def test_a_store_is_written_and_printed_with_its_guarantees(tacit: Run, tmp_path: Path) -> None:
    out = tmp_path / "films.tacit"
    done = tacit("fit", "synthetic", "--model", "two-tower", "--rows", "5000", "--epochs", "1", "--out", out)
    assert done.returncode == 0, done.stderr
    store = Store.load(out)
    assert done.stdout.startswith(f"{store}\n")
    assert f"written to {out}" in done.stdout
    assert "taken as public" in done.stdout
    assert (store.name, store.scorer.kind, len(store.items)) == ("synthetic", "two-tower/1", 600)
    assert done.stderr == ""  # no bar where there is no terminal


def test_ratings_without_genres_are_fitted_by_factors_and_seeds_decide(tacit: Run, tmp_path: Path) -> None:
    users, items = np.divmod(np.arange(900), 30)
    data = write(from_arrays(users, items, 1.0 + (users + items) % 5, scale=STARS), tmp_path / "plain.parquet")
    stores = []
    for number, seed in enumerate((4, 4, 5)):
        words = ("fit", data, "--model", "factors", "--seed", str(seed), "--out", tmp_path / f"{number}.tacit")
        assert tacit(*words).returncode == 0
        stores.append(Store.load(tmp_path / f"{number}.tacit").version)
    assert stores[0] == stores[1] != stores[2]
    refused = tacit("fit", data, "--out", tmp_path / "x.tacit")
    assert refused.returncode == 2
    assert re.fullmatch(r"tacit: invalid-parameter: .+ has no genres.+factors.+\n", refused.stderr)


def test_a_file_that_is_there_is_replaced_only_by_force(tacit: Run, tmp_path: Path) -> None:
    out = tmp_path / "x.tacit"
    out.write_text("mine")
    words = ("fit", "synthetic", "--model", "factors", "--out", out)
    refused = tacit(*words)
    assert (refused.returncode, out.read_text()) == (2, "mine")
    assert "--force" in refused.stderr
    assert tacit(*words, "--force").returncode == 0
    Store.load(out)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("synthetic",), "--out"),
        (("no-such-data", "--out", "x.tacit"), "unknown-name"),
        (("synthetic", "--out", "no/such/folder/x.tacit"), "folder"),
        (("synthetic", "--out", "x.tacit", "--model", "forest"), "forest"),
        (("synthetic", "--out", "x.tacit", "--rows", "0"), "--rows"),
        (("synthetic", "--out", "x.tacit", "--epsilon", "0"), "epsilon must be"),
        (("synthetic", "--out", "x.tacit", "--epsilon", "1", "--delta", "2"), "delta must"),
        (("synthetic", "--out", "x.tacit", "--delta", "1e-6"), "give --epsilon"),
        (("synthetic", "--out", "x.tacit", "--epsilon", "1", "--epochs", "3"), "--epochs"),
        (("synthetic", "--out", "x.tacit", "--epsilon", "1", "--rows", "30"), "draws users"),
        (("synthetic", "--out", "x.tacit", "--epsilon", "1", "--model", "factors"), "fitted without noise"),
    ],
)
def test_a_wrong_call_is_one_line_and_exits_with_2(
    words: tuple[str, ...], told: str, tacit: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = tacit("fit", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"tacit: .+\n", done.stderr)
    assert told in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_missing_extra_is_told_before_any_data_is_read(
    tacit: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, words in (("jax", ()), ("jax_privacy", ("--epsilon", "4"))):
        with monkeypatch.context() as missing:
            missing.setitem(sys.modules, module, None)
            done = tacit("fit", "no-such-data", *words, "--out", tmp_path / "x.tacit")
        assert done.returncode == 1
        assert re.fullmatch(r"tacit: missing-extra: .+tacit\[train\].+\n", done.stderr)
    with monkeypatch.context() as missing:
        missing.setitem(sys.modules, "jax", None)
        assert "unknown-name" in tacit("fit", "no-such-data", "--model", "factors", "--out", tmp_path / "x").stderr


def test_the_data_is_never_overwritten(tacit: Run, tmp_path: Path) -> None:
    data = write(from_arrays([1, 1, 2], [1, 2, 1], [1.0, 5.0, 3.0], scale=STARS), tmp_path / "plain.parquet")
    before = data.read_bytes()
    done = tacit("fit", data, "--model", "factors", "--out", data, "--force")
    assert (done.returncode, data.read_bytes()) == (2, before)
    assert "same file" in done.stderr


def test_it_has_help_with_an_example_and_a_place_in_the_docs(tacit: Run) -> None:
    done = tacit("fit", "--help")
    assert done.returncode == 0
    assert "Example: tacit fit" in done.stdout
    page = (ROOT / "docs" / "command-line.md").read_text()
    assert "## `tacit fit`" in page
    for option in ("--rows", "--epsilon", "--delta", "--least", "--seed", "--force", "--model"):
        assert option in done.stdout
        assert option in page
