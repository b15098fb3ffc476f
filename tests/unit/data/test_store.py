import os

import numpy as np
import polars as pl
import pytest

from tacit.data import (
    COUNTS,
    MISSING_TIME,
    STARS,
    Entities,
    from_arrays,
    read,
    read_movielens,
    synthetic,
    synthetic_counts,
    write,
)
from tacit.errors import InvalidData, InvalidParameter
from tests.unit.data.layouts import same, write_1m


def test_what_is_written_is_read_back_whole(tmp_path):
    ratings = read_movielens(write_1m(tmp_path / "ml-1m", parquet=True))  # titles, genres, entities, missing times
    assert same(read(write(ratings, tmp_path / "r.parquet")), ratings)


def test_text_ids_and_ratings_without_times_are_read_back(tmp_path):
    ratings = from_arrays(["ünal", "zoe", "zoe"], ["10", "9", "007"], [1, 2, 3], scale=STARS)
    assert same(read(write(ratings, tmp_path / "r.parquet")), ratings)


def test_users_and_items_without_ratings_are_kept(tmp_path):
    ratings = synthetic(users=30, items=20, ratings_per_user=4, entities=3, rng=np.random.default_rng(1))
    part = ratings.subset(ratings.values > 4.5)
    assert same(read(write(part, tmp_path / "r.parquet")), part)


def test_an_endless_scale_is_read_back(tmp_path):
    counts = synthetic_counts(users=10, items=5, rank=2, rng=np.random.default_rng(1))
    assert read(write(counts, tmp_path / "c.parquet")).scale == COUNTS


def test_any_tool_can_read_the_columns(tmp_path):
    path = write(from_arrays([5, 3], ["x", "y"], [1, 2], [7, 8], scale=STARS), tmp_path / "r.parquet")
    frame = pl.read_parquet(path)
    assert frame["user"].to_list() == [3, 5]
    assert frame["item"].cast(pl.String).to_list() == ["y", "x"]
    assert (frame["rating"].to_list(), frame["time"].to_list()) == ([2.0, 1.0], [8, 7])


def test_only_the_owner_may_read_the_file(tmp_path):
    path = write(from_arrays([1], [1], [1], scale=STARS), tmp_path / "r.parquet")
    assert os.stat(path).st_mode & 0o077 == 0


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    import pyarrow.parquet as pq

    path = write(from_arrays([1], [1], [1], scale=STARS), tmp_path / "r.parquet")
    before = path.read_bytes()

    def fail_half_way(table, file, **options):
        file.write(b"PAR1 half of it")
        raise OSError("no space left on device")

    monkeypatch.setattr(pq, "write_table", fail_half_way)
    with pytest.raises(OSError, match="no space"):
        write(from_arrays([1], [1], [5], scale=STARS), path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["r.parquet"]


def test_a_foreign_or_broken_file_is_refused(tmp_path):
    path = tmp_path / "r.parquet"
    pl.DataFrame({"user": [1], "item": [1], "rating": [1.0]}).write_parquet(path)
    with pytest.raises(InvalidData, match="not written by tacit"):
        read(path)
    write(from_arrays([1], [1], [1], scale=STARS), path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InvalidData, match="not a Parquet file, or is cut off"):
        read(path)
    with pytest.raises(InvalidParameter, match="does not exist"):
        write(from_arrays([1], [1], [1], scale=STARS), tmp_path / "no" / "r.parquet")


def test_a_file_changed_by_hand_is_refused(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = write(from_arrays([1, 2], [1, 1], [1, 2], scale=STARS), tmp_path / "r.parquet")
    table = pq.read_table(path)
    for column, values, message in [
        ("user", [1, 9], "missing from the list"),
        ("rating", [1.0, 9.0], "row 2, column 'rating'"),
    ]:
        place = table.schema.get_field_index(column)
        changed = table.set_column(
            place, table.schema.field(place), pa.array(values, type=table.schema.field(place).type)
        )
        pq.write_table(changed, path)
        with pytest.raises(InvalidData, match=message):
            read(path)


def test_entities_must_be_one_for_each_user():
    with pytest.raises(InvalidData, match="one entity for each"):
        from_arrays([1], [1], [1], scale=STARS).with_entities(Entities.from_labels("clinic", ["a", "b"]))


def test_a_missing_time_is_null_in_the_file_and_read_back(tmp_path):
    ratings = from_arrays([1, 2], [1, 1], [1, 2], [7, MISSING_TIME], scale=STARS)
    path = write(ratings, tmp_path / "r.parquet")
    assert pl.read_parquet(path)["time"].to_list() == [7, None]
    assert same(read(path), ratings)
    unknown = from_arrays([1], [1], [1], [MISSING_TIME], scale=STARS)
    assert same(read(write(unknown, path)), unknown)
