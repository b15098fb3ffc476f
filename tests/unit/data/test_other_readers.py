import gzip

import polars as pl
import pytest

from tacit.data import COUNTS, read_amazon, read_eicu, read_open_bandit, read_pair
from tacit.errors import DuplicateRatings, InvalidData, InvalidParameter, MissingColumn
from tests.unit.data.layouts import rows, write_eicu, write_open_bandit, write_pair


def test_a_pair_of_domains_is_read_and_the_last_of_two_opinions_counts(tmp_path):
    pair = read_amazon(write_pair(tmp_path / "pair"))
    assert rows(pair.source) == [("A1", "00x", 2.0, None), ("A2", "00x", 5.0, None)]
    assert rows(pair.target) == [("A1", "0001", 3.0, None), ("A1", "0002", 3.0, None), ("A3", "0001", 4.0, None)]
    assert pair.source.user_ids.tolist() == pair.target.user_ids.tolist() == ["A1", "A2", "A3"]
    assert pair.shared.tolist() == [0]
    assert (pair.source.name, pair.target.name) == ("movies", "books")
    assert read_amazon(tmp_path / "pair", source="books").source.name == "books"


def test_opinions_of_a_pair_may_be_averaged_or_refused(tmp_path):
    folder = write_pair(tmp_path / "pair")
    assert read_amazon(folder, duplicates="mean").source.values.tolist() == [1.5, 5.0]
    with pytest.raises(DuplicateRatings, match=r"movies\.tsv, line 4 .* as line 2"):
        read_pair(folder / "movies.tsv", folder / "books.tsv")


def test_a_drug_is_rated_by_how_often_it_was_ordered(tmp_path):
    ratings = read_eicu(write_eicu(tmp_path / "eicu"))
    assert rows(ratings) == [
        ("002-1", 500, 2.0, None),
        ("002-1", 700, 1.0, None),
        ("002-2", 500, 1.0, None),
        ("002-3", 700, 1.0, None),
    ]
    assert ratings.scale == COUNTS
    assert ratings.catalogue.titles == ("ASPIRIN", "drug 700")


def test_a_patient_of_several_hospitals_belongs_to_the_first(tmp_path):
    folder = write_eicu(tmp_path / "eicu")
    hospitals = read_eicu(folder).entities
    assert [hospitals.names[code] for code in hospitals.codes] == ["73", "56", "80"]
    assert hospitals.names == ("56", "73", "80")  # in the order of numbers
    regions = read_eicu(folder, entity="region").entities
    assert [regions.names[code] for code in regions.codes] == ["South", "West", "unknown"]
    with pytest.raises(InvalidParameter, match="hospital or region"):
        read_eicu(folder, entity="ward")


def test_the_original_compressed_csv_tables_are_read_too(tmp_path):
    folder = write_eicu(tmp_path / "eicu")
    expected = rows(read_eicu(folder))
    for table in ("medication", "patient", "hospital"):
        text = pl.read_parquet(folder / f"{table}.parquet").write_csv()
        (folder / f"{table}.parquet").unlink()
        (folder / f"{table}.csv.gz").write_bytes(gzip.compress(text.encode()))
    assert rows(read_eicu(folder)) == expected
    (folder / "patient.csv.gz").unlink()
    with pytest.raises(InvalidData, match="no table 'patient'"):
        read_eicu(folder)


def test_impressions_are_read_with_their_context(tmp_path):
    shown = read_open_bandit(write_open_bandit(tmp_path / "obd"), campaign="men")
    assert shown.items.tolist() == [1, 0]
    assert shown.positions.tolist() == [3, 1]
    assert shown.clicks.tolist() == [False, True]
    assert shown.propensities.tolist() == [0.5, 0.5]
    assert shown.times.tolist() == [1574553793, 1574553816]
    assert shown.user_features.tolist() == [[1] * 4, [0] * 4]
    assert shown.affinities.tolist() == [[0, 1], [2, 0]]
    assert shown.item_numbers.tolist() == [[-0.5], [0.25]]
    assert shown.item_categories.tolist() == [[1, 0, 0], [0, 0, 0]]
    assert repr(shown) == "Impressions('open-bandit, men': 2 shown, 2 items, policy 'random')"
    with pytest.raises(ValueError, match="read-only"):
        shown.clicks[0] = True


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("item_id", [1, 7]),
        ("position", [3, 4]),
        ("click", [0, 2]),
        ("propensity_score", [0.5, 0.0]),
        ("timestamp", ["", None]),
    ],
)
def test_a_wrong_impression_names_file_row_and_column(tmp_path, column, values):
    folder = write_open_bandit(tmp_path / "obd", **{column: values})
    row = 1 if column == "timestamp" else 2
    with pytest.raises(InvalidData, match=rf"random_men\.parquet, row {row}, column '{column}'"):
        read_open_bandit(folder, campaign="men")


def test_a_log_without_an_affinity_for_each_item_is_refused(tmp_path):
    folder = write_open_bandit(tmp_path / "obd")
    path = folder / "random_men.parquet"
    pl.read_parquet(path).drop("user-item_affinity_1").write_parquet(path)
    with pytest.raises(MissingColumn, match="user-item_affinity_1"):
        read_open_bandit(folder, campaign="men")
    with pytest.raises(InvalidParameter, match="policy must be one of random, bts"):
        read_open_bandit(folder, policy="best")
