"""Slates from what was released: the kernel is mended so that every slate is possible, whatever the noise has made of it."""

import numpy as np
import pytest
from scipy.stats import chisquare

from tacit.models.dpp.laws import RngCoins, k_dpp_law, subsets
from tacit.models.dpp.tempered import from_counts, from_kernel, quality


@pytest.mark.parametrize("kernel", [np.zeros((4, 4)), np.diag([-5.0, -1.0, -3.0, -2.0])], ids=["zero", "below 0"])
def test_a_kernel_that_says_nothing_makes_every_slate_equally_likely(kernel: np.ndarray) -> None:
    coins = RngCoins(np.random.default_rng(3))
    drawn = [tuple(from_kernel(kernel, 2, coins=coins).tolist()) for _ in range(1_200)]
    assert chisquare([drawn.count(pair) for pair in subsets(4, 2)]).pvalue > 1e-4
    assert from_kernel(kernel, 4).tolist() == [0, 1, 2, 3]


def test_the_jitter_is_a_thousandth_of_the_largest_eigenvalue() -> None:
    kernel, coins = np.diag([1000.0, 0.0, 1.0]), RngCoins(np.random.default_rng(4))
    drawn = [int(from_kernel(kernel, 2, coins=coins)[1]) for _ in range(3_000)]  # item 0, and 1 or 2 as 1 : 2
    law = k_dpp_law(kernel + np.eye(3), 2)[:2]
    assert law == pytest.approx([1 / 3, 2 / 3], rel=2e-3)
    assert chisquare([drawn.count(1), drawn.count(2)], law / law.sum() * len(drawn)).pvalue > 1e-4


def test_no_setting_of_a_caller_makes_tiny_numbers_an_error() -> None:
    counts, features = np.array([1e-320, 1e300, 1.0]), np.array([[1e-200, 1.0], [1.0, 1e-200], [0.0, 1.0]])
    with np.errstate(all="raise"):
        assert from_counts(counts, features, 2).tolist() == [1, 0]  # beside 1e300 the others are equally bad
        assert len(from_counts(counts, features, 2, coins=RngCoins(np.random.default_rng(1)))) == 2
        assert from_kernel(np.diag([1e-300, 1.0]), 2).tolist() == [1, 0]


def test_quality_is_a_share_of_the_best() -> None:
    assert quality(np.array([5.0, -2.0, 10.0])).tolist() == [0.5, 0.0, 1.0]
    assert quality(np.array([-1.0, -2.0])).tolist() == [0.0, 0.0]
