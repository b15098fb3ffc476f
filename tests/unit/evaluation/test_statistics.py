"""Means, differences and verdicts against values worked out by hand, and against what repeated experiments show."""

import math

import numpy as np
import pytest

from tacit.errors import InvalidParameter
from tacit.evaluation.statistics import Estimate, Verdict, below, difference, mean, reduction


def test_the_error_of_a_mean_by_hand() -> None:
    found = mean(np.array([1.0, 2.0, 3.0, 4.0]))
    assert (found.value, found.n) == (2.5, 4)
    assert found.stderr == pytest.approx(math.sqrt(5.0 / 3.0) / 2.0)  # variance 5/3 over 4 values


def test_trials_of_one_user_count_together() -> None:
    values, users = np.array([1.0, 1.0, 3.0, 3.0]), np.array([7, 7, 9, 9])
    # residuals -1, -1, 1, 1 sum to -2 and 2: sqrt(2/1 * (4 + 4)) / 4 = 1
    assert mean(values, users).stderr == pytest.approx(1.0)
    assert mean(values).stderr == pytest.approx(1.0 / math.sqrt(3.0))


def test_with_every_user_once_clusters_change_nothing() -> None:
    values = np.random.default_rng(1).normal(size=50)
    assert mean(values, np.arange(50)[::-1]).stderr == pytest.approx(mean(values).stderr)


def test_clustered_errors_are_what_repetition_shows_and_plain_ones_are_too_small() -> None:
    rng = np.random.default_rng(2)
    means, clustered, plain = [], [], []
    for _ in range(400):
        users = rng.integers(60, size=300)
        values = rng.normal(size=60)[users] + rng.normal(scale=0.5, size=300)
        means.append(values.mean())
        clustered.append(mean(values, users).stderr)
        plain.append(mean(values).stderr)
    assert np.mean(clustered) == pytest.approx(np.std(means), rel=0.12)
    assert np.mean(plain) < 0.6 * np.std(means)


def test_paired_differences_have_smaller_errors_than_unpaired_ones() -> None:
    rng = np.random.default_rng(3)
    common = rng.normal(size=400)
    one, other = common + rng.normal(scale=0.1, size=400), common + rng.normal(scale=0.1, size=400)
    unpaired = math.hypot(mean(one).stderr, mean(other).stderr)
    assert difference(one, other).stderr < 0.2 * unpaired
    assert difference(one, other).value == pytest.approx(mean(one).value - mean(other).value)


def test_a_reduction_by_hand() -> None:
    half = reduction(np.array([1.0, 2.0]), np.array([2.0, 4.0]))
    assert (half.value, half.stderr) == (0.5, 0.0)
    even = reduction(np.array([1.0, 3.0]), np.array([2.0, 2.0]))
    assert even.value == 0.0
    assert even.stderr == pytest.approx(0.5)  # residuals (1 - 2)/2, (3 - 2)/2: sqrt(2 * 0.5) / 2


def test_the_error_of_a_reduction_is_what_repetition_shows() -> None:
    rng = np.random.default_rng(4)
    found = []
    for _ in range(400):
        other = rng.exponential(size=200)
        found.append(reduction(0.6 * other + rng.normal(scale=0.1, size=200), other))
    assert np.mean([one.stderr for one in found]) == pytest.approx(np.std([one.value for one in found]), rel=0.15)
    assert np.mean([one.value for one in found]) == pytest.approx(0.4, abs=0.002)


def test_of_nothing_there_is_no_reduction() -> None:
    assert math.isnan(reduction(np.zeros(3), np.zeros(3)).value)


def test_what_has_no_error_shows_nothing() -> None:
    alone = mean(np.array([-1.0, -1.0]), np.array([5, 5]))  # one user
    assert math.isnan(alone.stderr)
    assert not alone.below(0.0)
    assert not alone.above(-2.0)


@pytest.mark.parametrize("values", [np.zeros(0), np.zeros((2, 2))])
def test_a_mean_of_nothing_is_refused(values: np.ndarray) -> None:
    with pytest.raises(InvalidParameter):
        mean(values)


def test_below_and_above_count_standard_errors() -> None:
    found = Estimate(-0.5, 0.2, 10)
    assert found.below(0.0)
    assert not found.below(0.0, errors=3.0)
    assert found.above(-1.0)
    assert not found.above(-0.8)


def verdict(*settings: tuple[float, float], pooled: tuple[float, float]) -> Verdict:
    named = tuple((f"s{place}", Estimate(*one, 100)) for place, one in enumerate(settings))
    return Verdict(named, Estimate(*pooled, 100))


def test_a_verdict_needs_the_mean_and_bears_no_contrary_setting() -> None:
    assert verdict((-1.0, 0.1), (0.05, 0.1), pooled=(-0.5, 0.1)).holds
    assert not verdict((-0.1, 0.1), (-0.1, 0.1), pooled=(-0.1, 0.1)).holds  # not shown
    contrary = verdict((-1.0, 0.1), (0.5, 0.1), pooled=(-0.25, 0.1))
    assert not contrary.holds
    assert contrary.contrary == ["s1"]
    assert "contrary at s1" in str(contrary)


def test_a_verdict_says_whether_it_is_open_or_contrary() -> None:
    assert "[not shown]" in str(verdict((-0.1, 0.1), (0.1, 0.1), pooled=(-0.1, 0.1)))
    assert "[not shown]" not in str(verdict((-1.0, 0.1), pooled=(-1.0, 0.1)))
    against = str(verdict((0.12, 0.1), (0.12, 0.1), pooled=(0.12, 0.05)))  # by no setting alone
    assert "contrary on average" in against
    assert "[not shown]" not in against


def test_among_many_settings_a_contrary_one_must_be_clearer() -> None:
    one = ((0.19, 0.1),)  # 1.9 errors: contrary alone (1.64), not among twenty (2.81)
    assert verdict(*one, pooled=(-1.0, 0.1)).contrary
    assert not verdict(*one, *[(-1.0, 0.1)] * 19, pooled=(-1.0, 0.1)).contrary


def test_below_compares_the_trials_that_both_have() -> None:
    rng = np.random.default_rng(5)
    longer = rng.normal(size=100)
    shorter = longer[:60] + 1.0
    found = below({"a": (longer, shorter), "b": (longer, longer + 1.0)}, np.arange(100))
    assert found.holds
    assert all(one.value == pytest.approx(-1.0) and one.n == 60 for _, one in found.settings)
    assert not below({"a": (shorter, longer)}, np.arange(100)).holds
