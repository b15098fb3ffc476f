"""Predictions without anyone's taste, by hand."""

import numpy as np
import pytest

from tacit.errors import InvalidParameter
from tacit.evaluation.cross_domain.plain import global_mean, item_average, user_and_item
from tacit.evaluation.cross_domain.user_based import less_row_means
from tacit.models.cross_domain.alter_egos import levels
from tests.unit.models.cross_domain.slow_paths import matrix
from tests.unit.models.cross_domain.test_averages import SOURCE, TARGET

SCALE = (1.0, 5.0)


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
