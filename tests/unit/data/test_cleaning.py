"""What becomes of ratings that come twice, or lie outside of their scale."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.data import MISSING_TIME, STARS, Scale, from_arrays, read_pair, read_table
from tacit.errors import DuplicateRatings, InvalidData, InvalidParameter, RatingOutsideScale


def made(values: list[float], **options: Any) -> list[float]:
    count = len(values)
    options = {"scale": STARS, **options}
    return from_arrays(["a"] * count, [f"i{place}" for place in range(count)], values, **options).values.tolist()


def test_what_lies_outside_of_the_scale_is_refused_with_its_row() -> None:
    with pytest.raises(RatingOutsideScale, match=r"row 3, column 'rating'.*outside='clip'"):
        made([1, 5, 7, 3])


def test_with_clip_it_is_moved_to_the_nearer_end() -> None:
    assert made([0, 5, 7, -1e9, 3], outside="clip") == [1, 5, 5, 1, 3]
    assert made([0.25, 4.75], scale=Scale(0.5, 4.5), outside="clip") == [0.5, 4.5]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_what_is_not_finite_is_refused_with_its_row_also_with_clip(value: float) -> None:
    for outside in ("error", "clip"):
        with pytest.raises(InvalidData, match="row 2") as refused:
            made([1, value], outside=outside)
        assert not isinstance(refused.value, RatingOutsideScale)


def test_what_lies_between_two_steps_is_refused_also_with_clip() -> None:
    with pytest.raises(RatingOutsideScale, match="row 2"):
        made([1, 2.5], outside="clip")


def test_there_is_no_other_way() -> None:
    with pytest.raises(InvalidParameter, match="outside must be one of error, clip"):
        made([1], outside="drop")


def test_values_are_clipped_in_a_copy() -> None:
    values = np.array([7.0, 1.0], dtype=np.float32)
    from_arrays(["a", "b"], ["c", "d"], values, scale=STARS, outside="clip")
    assert values.tolist() == [7.0, 1.0]


def test_files_are_clipped_alike(tmp_path: Path) -> None:
    for name in ("source", "target"):
        (tmp_path / f"{name}.csv").write_text(f"user_id,item_id,rating\nu,{name[0]}1,9\nu,{name[0]}2,4\n")
    places = (tmp_path / "source.csv", tmp_path / "target.csv")
    with pytest.raises(RatingOutsideScale, match=r"source\.csv, line 2"):
        read_pair(*places)
    assert read_pair(*places, outside="clip").target.values.tolist() == [5, 4]
    columns = {"user": "user_id", "item": "item_id", "rating": "rating", "scale": STARS}
    assert read_table(places[0], **columns, outside="clip").values.tolist() == [5, 4]


@pytest.mark.parametrize(
    ("times", "kept"),
    [
        ([5, 9, 7], 2.0),  # the latest
        ([5, 5, 5], 3.0),  # of equal times the last row
        ([9, 9, 5], 2.0),
        ([MISSING_TIME, 4, MISSING_TIME], 2.0),  # what is not known sorts first
        (None, 3.0),
    ],
    ids=["latest", "equal", "equal-first", "missing", "none"],
)
def test_of_two_ratings_of_one_item_the_latest_wins(times: list[int] | None, kept: float) -> None:
    users, items = ["a"] * 3, ["i"] * 3
    with pytest.raises(DuplicateRatings, match="row 2"):
        from_arrays(users, items, [1, 2, 3], times, scale=STARS)
    assert from_arrays(users, items, [1, 2, 3], times, scale=STARS, duplicates="latest").values.tolist() == [kept]
