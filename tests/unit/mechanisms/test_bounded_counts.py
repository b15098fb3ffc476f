"""Counts of reports: of each user the first few, whoever reports in between, and nothing that is odd."""

import math
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

from tacit.mechanisms import BoundedCounts, ReplayedNoise
from tacit.mechanisms.samplers import integers
from tacit.mechanisms.sums import NOWHERE


@pytest.mark.parametrize("each", [1, 2, 3])
def test_one_user_moves_the_counts_by_her_cap_exactly_and_nobody_elses_reports_move(each: int) -> None:
    """Every list of up to five reports of hers, put into others' at every place: she moves what she moves alone."""
    mechanism = BoundedCounts(2, 1.0, each)
    others = [("v", 0), ("w", 1), ("v", 1), ("v", 0)]
    base = mechanism.totals(others)
    most = 0
    for size in range(6):
        for places in product((0, 1, NOWHERE), repeat=size):
            hers = [("u", place) for place in places]
            alone = mechanism.totals(hers)
            moved = [mechanism.totals([*others[:at], *hers, *others[at:]]) - base for at in range(5)]
            turns = [report for pair in zip(hers, others, strict=False) for report in pair] + others[size:] + hers[4:]
            assert all((one == alone).all() for one in [*moved, mechanism.totals(turns) - base])
            most = max(most, int(np.abs(alone).sum()))
    assert most == each


def test_the_order_of_users_does_not_matter_and_that_of_her_own_reports_does() -> None:
    mechanism = BoundedCounts(2, 1.0)
    reports = [("u", 0), ("v", 1), ("w", 1)]
    assert {tuple(mechanism.totals(list(order)).tolist()) for order in permutations(reports)} == {(1, 2)}
    assert mechanism.totals([("u", 0), ("u", 1)]).tolist() == [1, 0]
    assert mechanism.totals([("u", 1), ("u", 0)]).tolist() == [0, 1]


@pytest.mark.parametrize(
    "place", [NOWHERE, 2, -2, 10**40, True, 0.0, 1.5, math.nan, math.inf, "0", None, [0]], ids=repr
)
def test_a_place_that_there_is_not_counts_nowhere_and_is_one_of_her_reports(place: Any) -> None:
    mechanism = BoundedCounts(2, 1.0)
    assert mechanism.totals([("u", place)]).tolist() == [0, 0]
    assert mechanism.totals([("u", place), ("u", 0)]).tolist() == [0, 0]
    assert mechanism.totals([("v", place), ("u", 0)]).tolist() == [1, 0]


@pytest.mark.parametrize(
    "report", [(None, 0), (math.nan, 0), (1.0, 0), ([], 0), ({}, 0), ("u",), ("u", 0, 1), 7, None, ""], ids=repr
)
def test_a_report_of_nobody_counts_for_nothing_and_refuses_nobody_else(report: Any) -> None:
    """A NaN is no user: it is another one every time, and the cap would bound nothing."""
    assert BoundedCounts(2, 1.0).totals([report, report, ("v", 1), report]).tolist() == [0, 1]


def test_users_and_places_of_numpy_are_those_of_python() -> None:
    mechanism = BoundedCounts(3, 1.0)
    assert mechanism.totals([(np.int64(7), np.int32(2)), (7, 1), (np.uint8(7), 0)]).tolist() == [0, 0, 1]
    assert mechanism.totals(np.array([[7, 2], [7, 1], [8, 1]])).tolist() == [0, 1, 1]  # type: ignore[arg-type]
    assert mechanism.totals(report for report in [(b"u", 0), (b"u", 1)]).tolist() == [1, 0, 0]


def test_all_places_get_noise_named_or_not_and_negative_counts_stay() -> None:
    mechanism = BoundedCounts(500, 0.5, 2)
    release = mechanism.release([("u", 3)] * 5, ReplayedNoise(4))
    drawn = integers.sample_discrete_laplace(mechanism.noise_law.width, 500, ReplayedNoise(4))
    drawn[3] += 2
    assert np.array_equal(release.value.steps, drawn)
    assert release.value.step == 1
    assert (drawn < 0).any()


@pytest.mark.parametrize(("epsilon", "each"), [(1.0, 1), (0.3, 4), (40.0, 1)])
def test_the_deviation_is_that_of_the_law(epsilon: float, each: int) -> None:
    mechanism = BoundedCounts(1, epsilon, each)
    seen = np.arange(-2000, 2001)
    law = mechanism.noise_law.pmf(seen)
    assert law.sum() == pytest.approx(1.0, abs=1e-12)
    assert mechanism.noise_law.sd == pytest.approx(math.sqrt(float((law * seen**2).sum())), rel=1e-9)
