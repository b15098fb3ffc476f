"""Central counts of clicks: exact sums, exact noise, and the cap for each user."""

import math
from itertools import product

import numpy as np
import pytest

from tacit.curator import ClickSum
from tacit.curator.clicks import TRUSTED
from tacit.errors import InvalidParameter
from tacit.guarantees import ONE_USER
from tacit.mechanisms import ReplayedNoise
from tacit.mechanisms.samplers import integers

REPORTS = [("u", "x", 1), ("u", "y", 1), ("v", "x", 1), ("w", "x", 0), ("w", "z", 1), ("v", "x", 1)]


def test_sums_are_exact_and_a_user_counts_no_more_often_than_is_said() -> None:
    assert ClickSum(["x", "y"], reports_each=1).sums(REPORTS).tolist() == [2, 0]
    assert ClickSum(["x", "y"], reports_each=2).sums(REPORTS).tolist() == [3, 1]
    assert ClickSum(["z"], reports_each=1).sums(REPORTS).tolist() == [0]  # w's first report was no click
    assert ClickSum(["z"], reports_each=2).sums(REPORTS).tolist() == [1]


def test_what_is_not_listed_or_no_bit_counts_as_no_click() -> None:
    odd = [("u", "elsewhere", 1), ("v", "x", 7), ("w", "x", None), ("t", "x", -1)]
    assert ClickSum(["x"]).sums(odd).tolist() == [0]  # type: ignore[arg-type]


@pytest.mark.parametrize("reports_each", [1, 2, 3])
def test_one_user_moves_the_sums_by_at_most_her_cap(reports_each: int) -> None:
    """Every set of up to four reports of hers, on two items: L1 distance at most c, and c is reached."""
    counted = ClickSum(["x", "y"], reports_each=reports_each)
    others = [("v", "x", 1), ("w", "y", 1)]
    base = counted.sums(others)
    moved = set()
    for count in range(5):
        for own in product([("x", 1), ("y", 1), ("x", 0)], repeat=count):
            mine = [("u", item, bit) for item, bit in own]
            moved.add(int(np.abs(counted.sums(others + mine) - base).sum()))
            moved.add(int(np.abs(counted.sums(mine + others) - base).sum()))
    assert max(moved) == reports_each


@pytest.mark.parametrize(("epsilon", "reports_each"), [(1.0, 1), (0.5, 3)])
def test_noise_hides_one_user_exactly_as_promised(epsilon: float, reports_each: int) -> None:
    """Two-sided geometric: neighbouring sums differ by at most c, and the worst ratio over outputs is e^epsilon, no less."""
    counted = ClickSum(["x"], epsilon, reports_each)
    losses = [
        math.log(counted.pmf(seen, 0) / counted.pmf(seen, moved))
        for seen in range(-30, 31)
        for moved in range(-reports_each, reports_each + 1)
    ]
    assert max(losses) == pytest.approx(epsilon, rel=1e-9)
    total = sum(counted.pmf(seen, 5) for seen in range(-400, 400))
    assert total == pytest.approx(1.0, rel=1e-9)
    assert counted.guarantee.epsilon == epsilon
    assert counted.guarantee.protects == ONE_USER
    assert TRUSTED in counted.guarantee.assumes


def test_the_error_is_that_of_two_sided_geometric_noise() -> None:
    for reports_each in (1, 5):
        counted = ClickSum(["x"], 1.0, reports_each)
        square = sum(n * n * counted.pmf(n, 0) for n in range(-800, 801))
        assert counted.sd == pytest.approx(math.sqrt(square), rel=1e-9)
        assert counted.sd == pytest.approx(math.sqrt(2.0) * reports_each, rel=0.05)  # 1.4 c at epsilon 1


def test_the_release_is_the_sum_plus_the_noise_that_was_drawn_and_negatives_are_kept() -> None:
    counted = ClickSum([f"i{n}" for n in range(400)], 0.5)
    release = counted.release([("u", "i3", 1)] + [(f"v{n}", "i3", 1) for n in range(9)], ReplayedNoise(1))
    drawn = integers.sample_discrete_laplace(counted.scale, 400, ReplayedNoise(1))
    drawn[3] += 10
    assert np.array_equal(release.value.counts, drawn)
    assert release.value.counts.dtype == np.int64
    assert (release.value.counts < 0).any()
    assert release.value.of("i3") == drawn[3]
    assert release.value.sd == counted.sd
    assert release.guarantee.promises_nothing  # replayed noise
    fresh = counted.release([]).guarantee
    assert fresh == counted.guarantee


@pytest.mark.parametrize(
    ("items", "epsilon", "reports_each"),
    [([], 1.0, 1), (["x", "x"], 1.0, 1), (["x"], 0.0, 1), (["x"], math.nan, 1), (["x"], 1.0, 0), (["x"], 1e-300, 1)],
)
def test_wrong_settings_are_refused(items: list[str], epsilon: float, reports_each: int) -> None:
    with pytest.raises(InvalidParameter):
        ClickSum(items, epsilon, reports_each)


def test_reports_of_another_shape_are_nobodys() -> None:
    reports = [
        ("u", "x"),
        7,
        None,
        ("u", "x", 1, 1),
        ("v", ["x"], 1),
        ("w", "x", np.array([1, 1])),
        ([], "x", 1),
        ({}, "x", 1),
        (np.array(["u"]), "x", 1),
        ("t", {"x"}, 1),
        ("s", "x", [1]),
        ("r", "x", 1j),
        ("q", "x", "1"),
        ("u", "x", np.True_),
    ]
    assert ClickSum(["x"]).sums(reports).tolist() == [1]  # type: ignore[arg-type]


def test_a_cap_without_end_is_refused() -> None:
    for cap in (10**6 + 1, 10**400):
        with pytest.raises(InvalidParameter):
            ClickSum(["x"], reports_each=cap)
