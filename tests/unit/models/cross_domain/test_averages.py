"""Averages by hand."""

import numpy as np
import pytest

from tacit.errors import InvalidParameter
from tacit.models.cross_domain.alter_egos import (
    column_means,
    global_mean,
    item_average,
    less_row_means,
    levels,
    mean_of,
    row_means,
    user_and_item,
)
from tests.unit.models.cross_domain.slow_paths import matrix

SCALE = (1.0, 5.0)
TARGET = matrix([{0: 5.0, 1: 2.0}, {0: 3.0}, {}], 3)  # mean 10/3; items 4, 2, none
SOURCE = matrix([{0: 4.0}, {0: 1.0, 1: 0.0}, {}], 2)  # mean 5/3; users 4, 1/2, none


def test_means_count_zeros_and_pass_over_what_is_not_rated() -> None:
    assert mean_of(SOURCE) == pytest.approx(5 / 3)
    assert row_means(SOURCE, 9.0).tolist() == [4.0, 0.5, 9.0]
    assert column_means(TARGET, 7.0).tolist() == [4.0, 2.0, 7.0]
    assert mean_of(matrix([{}], 2)) == 0.0


def test_a_level_is_above_the_mean_of_the_domain_it_was_formed_in() -> None:
    assert levels(SOURCE) == pytest.approx([7 / 3, -7 / 6, 0.0])
    assert levels(SOURCE, mean_of(TARGET)) == pytest.approx([2 / 3, -17 / 6, 0.0])


def test_predictions() -> None:
    assert global_mean(TARGET, [0, 1], SCALE) == pytest.approx([10 / 3, 10 / 3])
    assert item_average(TARGET, [2, 1, 0], SCALE) == pytest.approx([10 / 3, 2.0, 4.0])
    found = user_and_item(TARGET, levels(SOURCE), [0, 1, 2, 1], [1, 0, 0, 1], SCALE)
    assert found == pytest.approx([13 / 3, 17 / 6, 4.0, 1.0])  # the last would be 5/6


def test_ratings_at_the_mean_are_exactly_0_apart_from_it() -> None:
    alike = matrix([{0: 0.1, 1: 0.1, 2: 0.1}, {0: 3.3, 1: 3.3, 2: 3.3}, {0: 1.0, 2: 2.0}], 3)
    assert less_row_means(alike).tolist() == [0.0] * 6 + [-0.5, 0.5]


def test_unknown_items_and_users_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="items"):
        item_average(TARGET, np.array([3]), SCALE)
    with pytest.raises(InvalidParameter, match="users"):
        user_and_item(TARGET, levels(SOURCE), [3], [0], SCALE)
