"""Averages by hand."""

import pytest

from tacit.models.cross_domain.alter_egos import column_means, levels, mean_of, row_means
from tests.unit.models.cross_domain.slow_paths import matrix

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
