import json

import pytest
from typer.testing import CliRunner

from tacit.cli.data import app
from tacit.data import load
from tacit.errors import InvalidData, RatingOutsideScale, TacitError
from tests.unit.data.layouts import CSV_RATINGS, rows, write_open_bandit, write_pair

COLUMNS = ["--user", "userId", "--item", "movieId", "--rating", "rating", "--scale", "0.5", "5"]


def run(*arguments: object):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text(CSV_RATINGS)
    return path


def test_import_writes_what_load_reads(file, tmp_path):
    out = tmp_path / "out.parquet"
    done = run("import", file, *COLUMNS, "--time", "timestamp", "--step", 0.5, "--out", out, "--name", "mine", "--json")
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    assert (facts["written"], facts["ratings"], facts["scale"]) == (str(out), 4, "0.5 to 5 in steps of 0.5")
    assert load(out).name == "mine"
    assert rows(load(out)) == [(1, 10, 4.0, 100), (1, 30, 2.5, 110), (7, 10, 0.5, 90), (7, 20, 5.0, 95)]


@pytest.mark.parametrize("bad", ["7,10,0.5", "1,10,4.0"])
def test_a_failed_import_writes_nothing(file, tmp_path, bad):
    file.write_text(CSV_RATINGS.replace(bad, "1,30,99"))
    before = sorted(tmp_path.iterdir())
    done = run("import", file, *COLUMNS, "--out", tmp_path / "out.parquet")
    assert done.exit_code == 1
    assert isinstance(done.exception, TacitError)
    assert sorted(tmp_path.iterdir()) == before


def test_a_failed_import_leaves_the_older_output_alone(file, tmp_path):
    out = tmp_path / "out.parquet"
    run("import", file, *COLUMNS, "--out", out)
    before = out.read_bytes()
    file.write_text(CSV_RATINGS.replace("5.0", "9.0"))
    done = run("import", file, *COLUMNS, "--out", out, "--force")
    assert isinstance(done.exception, RatingOutsideScale)
    assert out.read_bytes() == before


def test_a_wrong_call_exits_with_2(file, tmp_path):
    out = tmp_path / "out.parquet"
    for wrong in (
        ["import", file, *COLUMNS],  # no output
        ["import", tmp_path / "none.csv", *COLUMNS, "--out", out],
        ["import", file, *COLUMNS, "--out", tmp_path / "out.csv"],
        ["import", file, *COLUMNS, "--out", tmp_path / "no" / "out.parquet"],
        ["import", file, *COLUMNS[:-2], "5", "1", "--out", out],  # a scale that falls
        ["import", file, *COLUMNS, "--separator", "::", "--out", out],
        ["import", file, *COLUMNS, "--duplicates", "first", "--out", out],
        ["describe"],
    ):
        assert run(*wrong).exit_code == 2, wrong
    out.write_bytes(b"precious")
    assert run("import", file, *COLUMNS, "--out", out).exit_code == 2
    assert out.read_bytes() == b"precious"


def test_list_shows_what_is_ready(tmp_path, monkeypatch):
    monkeypatch.setenv("TACIT_DATA", str(write_pair(tmp_path / "amazon-movies-books").parent))
    entries = {entry["name"]: entry for entry in json.loads(run("list", "--json").stdout)}
    assert entries["synthetic"]["ready"]
    assert entries["amazon-movies-books"]["ready"]
    assert not entries["ml-1m"]["ready"]
    assert "redistribut" in entries["ml-1m"]["provenance"]["licence"]
    shown = run("list")
    assert shown.exit_code == 0
    assert "amazon-movies-books" in shown.stdout


def test_describe_takes_every_kind_of_data(tmp_path, monkeypatch):
    monkeypatch.setenv("TACIT_DATA", str(tmp_path))
    write_pair(tmp_path / "amazon-movies-books")
    facts = json.loads(run("describe", "amazon-movies-books", "--json").stdout)
    assert (facts["shared users"], facts["source"]["ratings"], facts["target"]["ratings"]) == (1, 2, 3)
    assert "Amazon" in run("describe", "amazon-movies-books").stdout
    assert json.loads(run("describe", "synthetic", "--json").stdout)["users"] == 1000
    assert "1,000" in run("describe", "synthetic").stdout
    folder = write_open_bandit(tmp_path / "obd")
    (folder / "random_men.parquet").rename(folder / "random_all.parquet")
    (folder / "item_context_men.csv").rename(folder / "item_context_all.csv")
    assert json.loads(run("describe", folder, "--json").stdout)["clicks"] == 1


@pytest.mark.parametrize("command", ["list", "describe", "import"])
def test_every_command_has_help_with_an_example(command):
    done = run(command, "--help")
    assert done.exit_code == 0
    assert f"Example: tacit data {command}" in done.stdout
    assert "--json" in done.stdout


def test_hints_name_the_option_that_is_wrong(file, tmp_path):
    out = tmp_path / "out.parquet"
    for wrong, option in (
        (["--step", "0.7"], "--step"),
        (["--step", "-1"], "--step"),
        (["--scale", "5", "1", "--step", "1"], "--scale"),
        (["--separator", "ä"], "--separator"),
    ):
        done = run("import", file, *COLUMNS, *wrong, "--out", out)
        assert done.exit_code == 2
        assert f"Invalid value for {option}" in done.output, done.output


def test_describing_a_plain_table_leads_to_the_import(file):
    done = run("describe", file)
    assert f"tacit data import {file}" in str(done.exception)


def test_a_header_alone_is_not_imported(file, tmp_path):
    file.write_text(CSV_RATINGS.splitlines()[0] + "\n")
    done = run("import", file, *COLUMNS, "--out", tmp_path / "out.parquet")
    assert isinstance(done.exception, InvalidData)
    assert not (tmp_path / "out.parquet").exists()


@pytest.mark.parametrize("columns", [80, None])
def test_the_list_shows_names_and_paths_whole(tmp_path, monkeypatch, columns):
    folder = tmp_path / "a folder [with] a rather long name, as they are" / "data"
    folder.mkdir(parents=True)
    write_pair(folder / "amazon-movies-books")
    monkeypatch.setenv("TACIT_DATA", str(folder))
    if columns is not None:  # as in a terminal of this width
        from rich.console import Console

        monkeypatch.setattr("tacit.cli.data.console", lambda: Console(width=columns))
    shown = run("list").stdout
    lines = [line.split("│")[1:-1] for line in shown.splitlines() if line.startswith("│")]
    where = "".join(cells[3].strip() for cells in lines).replace(" ", "")
    assert str(folder / "amazon-movies-books").replace(" ", "") in where
    assert "amazon-movies-books" in {cells[0].strip() for cells in lines}
    assert max(map(len, shown.splitlines()[:5])) <= (columns or 140)
