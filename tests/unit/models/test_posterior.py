"""Who may have sent a signal: hand-checked weights, cap, simplex, and draws that follow their weights."""

import numpy as np
import pytest

from tacit.models.features import scaled_blocks
from tacit.models.multi_selection import capped_draws
from tests.unit.models.posterior import look_alike_weights


def test_the_posterior_of_three_look_alikes() -> None:
    weights = look_alike_weights(np.array([0.0, 0.1]), np.array([[0.0, 0.0], [0.1, 0.0], [0.1, 0.2]]), 0.1)
    assert weights == pytest.approx([0.5761169, 0.2119416, 0.2119416], abs=1e-7)


def test_a_tiny_eta_leaves_the_nearest_look_alike_and_no_underflow() -> None:
    weights = look_alike_weights(np.array([10.0, 10.0]), np.array([[0.0, 0.0], [0.1, 0.0]]), 1e-3)
    assert weights == pytest.approx([0.0, 1.0], abs=1e-40)


def test_cap_cuts_and_scales() -> None:
    block = np.array([1.2, -0.3, 0.4])
    assert scaled_blocks(block[None], 1)[0] == pytest.approx([0.7142857, 0.0, 0.2857143], abs=1e-7)


def test_a_block_of_zeros_becomes_uniform() -> None:
    assert scaled_blocks(np.array([[-1.0, -2.0, 0.5, 0.5]]))[0] == pytest.approx([0.5, 0.5, 0.5, 0.5])


def test_capped_draws_lie_in_the_domain() -> None:
    drawn = capped_draws(np.full(38, 0.05), 0.2, 50, scaled_blocks, rng=np.random.default_rng(0))
    assert drawn.shape == (50, 38)
    assert (drawn >= 0.0).all()
    assert drawn.reshape(50, 2, 19).sum(axis=2) == pytest.approx(np.ones((50, 2)))
