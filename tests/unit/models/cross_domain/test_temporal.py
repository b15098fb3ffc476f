"""Weights of ratings by the rank of their time."""

import math

import numpy as np
import pytest

from tacit.models.cross_domain.alter_egos import MISSING, decay, dense_ranks


def test_ranks_are_dense_within_each_group() -> None:
    groups = np.array([1, 0, 1, 1, 0, 1])
    times = np.array([50, 9, 7, 50, MISSING, 8])
    ranks, last = dense_ranks(groups, times)
    assert ranks.tolist() == [3, 2, 1, 3, 1, 2]  # a missing time comes first
    assert last.tolist() == [3, 2, 3, 3, 2, 3]


def test_the_latest_is_one_step_old() -> None:
    groups = np.array([0, 0, 0, 2])
    weights = decay(groups, np.array([100, 300, 100, -5]), 0.5)
    assert weights == pytest.approx([math.exp(-1.0), math.exp(-0.5), math.exp(-1.0), math.exp(-0.5)])


def test_a_group_without_times_has_no_age() -> None:
    groups = np.array([0, 0, 1, 1])
    times = np.array([MISSING, MISSING, MISSING, 3])
    assert decay(groups, times, 1.0) == pytest.approx([1.0, 1.0, math.exp(-2.0), math.exp(-1.0)])
    assert decay(groups, None, 1.0) == 1.0
    assert decay(groups, times, 0.0) == 1.0
    assert np.size(decay(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), 1.0)) == 0
