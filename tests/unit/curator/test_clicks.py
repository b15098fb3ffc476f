"""Central counts of clicks, and central sums of inverse-propensity terms: exact sums, exact noise, and the cap for each user."""

import math
from collections import deque
from decimal import Decimal
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest

from tacit.curator import ClickSum, TermSum
from tacit.curator.clicks import TRUSTED
from tacit.errors import InvalidParameter
from tacit.guarantees import ONE_USER
from tacit.mechanisms import ReplayedNoise
from tacit.mechanisms.grid import STEPS, bounded_row_sum
from tacit.mechanisms.samplers import discrete_laplace

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
    drawn = discrete_laplace.sample(counted.scale, 400, ReplayedNoise(1))
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


def test_terms_are_cut_to_their_bound_and_to_the_cap_before_they_are_added() -> None:
    summed = TermSum(most_weight=4.0, epsilon=1.0, reports_each=2)
    assert summed.mechanism.bound == 8.0
    terms = {"u": [3.0, 4.5, 100.0], "v": [math.nan, 1.0], "w": [-5.0], "x": [], "y": [math.inf]}
    exact = 3.0 + 4.0 + 1.0 + 4.0
    noise = discrete_laplace.sample(summed.mechanism.scale_in_steps, 1, ReplayedNoise(3))[0] * 8.0 / (1 << 20)
    release = summed.release(terms, ReplayedNoise(3))
    assert release.value == pytest.approx(exact + noise, abs=1e-4)
    assert summed.guarantee.epsilon == 1.0
    assert summed.guarantee.protects == ONE_USER
    assert TRUSTED in summed.guarantee.assumes
    assert release.guarantee.promises_nothing
    assert summed.release({}).guarantee == summed.guarantee


def test_noise_on_terms_is_as_wide_as_one_user_may_weigh() -> None:
    summed = TermSum(most_weight=10.0, epsilon=0.5, reports_each=3)
    assert summed.sd == pytest.approx(math.sqrt(2.0) * 10.0 * 3 / 0.5)
    drawn = [summed.release({}, ReplayedNoise(seed)).value for seed in range(800)]
    assert float(np.std(drawn)) == pytest.approx(summed.sd, rel=0.2)


def test_wrong_terms_are_refused() -> None:
    for wrong in ({"most_weight": 0.0}, {"most_weight": 1.0, "epsilon": 0.0}, {"most_weight": 1.0, "reports_each": 0}):
        with pytest.raises(InvalidParameter):
            TermSum(**wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        TermSum(1.0).release([1.0])  # type: ignore[arg-type]


def test_terms_that_are_no_numbers_count_as_none_and_refuse_nobody() -> None:
    """Refusing them would be an answer about her; a number too large for a float is cut to the bound like any other."""
    summed = TermSum(most_weight=4.0, reports_each=2)
    odd: list[object] = [
        ["text"],
        [None],
        [1j],
        ["3.0", math.nan],
        None,
        7.0,
        "12",
        {},
        [-math.inf, -1e-300],
        [[1.0, 2.0]],
        {1.0, 2.0},
        [{1.0}, Decimal("sNaN")],
        np.array([1j, 2.0]),
        np.array(["3.0", "4.0"]),
    ]
    assert summed._rows({str(place): own for place, own in enumerate(odd)}).tolist() == [[0.0]] * len(odd)  # type: ignore[misc]
    whole = {"huge": [10**400, -(10**400)], "array": np.array([1.0, 9.0, 3.0]), "small": np.array([np.float32(0.5)])}
    whole |= {
        "deque": deque([1.0, 0.5, 4.0]),
        "share": (Fraction(1, 4), 2, 4.0),
        "objects": np.array([10**400, None]),
    }
    assert summed._rows(whole).tolist() == [[4.0], [5.0], [0.5], [1.5], [2.25], [4.0]]  # type: ignore[arg-type]


@pytest.mark.parametrize(("most_weight", "reports_each"), [(4.0, 1), (0.1, 3), (1.0 / 3.0, 7), (1e300, 2)])
def test_one_users_terms_move_the_sum_by_its_bound_exactly(most_weight: float, reports_each: int) -> None:
    """In whole steps of the grid: the noise hides 2^20 of them, and the bound of a product of floats may be rounded."""
    summed = TermSum(most_weight, reports_each=reports_each)
    levels = (most_weight, most_weight / 3.0, -most_weight, math.inf, math.nan, 1e308, 0.0)
    others = {"v": [most_weight] * 9, "w": [0.1 * most_weight]}
    base = bounded_row_sum(summed._rows(others), 1, summed.mechanism.bound, norm=1)
    moved = [
        int((bounded_row_sum(summed._rows(others | {"u": own}), 1, summed.mechanism.bound, norm=1) - base)[0])
        for own in [*([level] * (reports_each + 2) for level in levels), *permutations(levels, 3)]
    ]
    assert min(moved) == 0
    assert STEPS - 1 <= max(moved) <= STEPS


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
            TermSum(1.0, reports_each=cap)
        with pytest.raises(InvalidParameter):
            ClickSum(["x"], reports_each=cap)
