"""The cut of similar items as published: what is drawn is raised to Sim_k - w, and never above Sim_k."""

import numpy as np
import pytest

from tacit.mechanisms.x_map import PublishedSimilarItems


def test_w_is_0_where_the_kth_similarity_is_below_the_least_one() -> None:
    for candidates in (2, 3, 20, 1_000_000):
        assert PublishedSimilarItems(2).w(-0.3, 0.01, candidates) == 0.0
    assert PublishedSimilarItems(2, lowest=-1.0).w(-0.3, 0.01, 1_000) == pytest.approx(0.7)  # below 0 is no bound there
    assert PublishedSimilarItems(2, lowest=-0.2).w(-0.3, 0.01, 20) == 0.0


@pytest.mark.parametrize("sensitivity", [1e-3, 0.01, 1.0])
def test_where_the_kth_similarity_is_negative_nothing_is_raised_above_it(sensitivity: float) -> None:
    """k = 2 of (.5, -.3, -.5, -.8): Sim_k is -.3, and w 0. Exponents are .8 s^ / (8 SS)."""
    exponents = PublishedSimilarItems(2).exponents([[0.5, -0.3, -0.5, -0.8]], np.full((1, 4), sensitivity))
    assert (exponents * 10.0 * sensitivity)[0].tolist() == pytest.approx([0.5, -0.3, -0.3, -0.3])
