"""The worked example in numbers that were found by hand: means, cosines without a common liking, and single paths."""

import numpy as np
import pytest

from tacit.models.cross_domain.alter_egos import column_means, item_based, row_means
from tacit.models.cross_domain.edges import By
from tacit.models.cross_domain.similarities import edges_of, layers, pruned
from tacit.models.cross_domain.x_sim import x_sim
from tests.unit.models.cross_domain.slow_paths import EXAMPLE, matrix

RATINGS = matrix(EXAMPLE, 6)


def test_means_of_users_and_items() -> None:
    users = [3.333333, 2.666667, 3.666667, 2.666667, 3.333333, 2.333333, 4.0, 3.666667]
    assert row_means(RATINGS, 0.0) == pytest.approx(users, abs=5e-7)
    assert column_means(RATINGS, 0.0) == pytest.approx([3.5, 3.4, 3.0, 2.833333, 3.5, 3.0], abs=5e-7)


def test_cosines_of_every_pair() -> None:
    """Also of 0-2 and 1-2, on which nobody agrees: they have a cosine, and no edge."""
    found = item_based(RATINGS, 0).cosines(np.arange(6))
    expected = {
        (0, 1): 0.487660, (0, 2): -0.919145, (1, 2): -0.649934, (1, 3): 0.070796,
        (1, 4): -0.348613, (3, 4): -0.842032, (3, 5): 0.211779, (4, 5): -0.511199,
    }  # fmt: skip
    for first in range(6):
        for second in range(first + 1, 6):
            assert found[first, second] == pytest.approx(expected.get((first, second), 0.0), abs=5e-7)


@pytest.mark.parametrize(
    ("by", "value", "certainty"),
    [("signed", 0.127189, 0.125), ("absolute", -0.429906, 0.020833)],
    ids=["1-3-5", "1-4-5"],
)
@pytest.mark.parametrize("way", ["enumerate", "quadrature"])
def test_single_paths_from_1_to_5(by: By, value: float, certainty: float, way: str) -> None:
    """With one edge each the best by s are 1-3 and 5-3, by |s| 1-4 and 5-4: one path, and X-SIM is its value."""
    edges = edges_of(RATINGS, shrink=0)
    found = x_sim(pruned(edges, layers(edges, 3), 3, 1, by), way)
    assert found.values[1, 2] == pytest.approx(value, abs=5e-7)
    assert found.certainty[1, 2] == pytest.approx(certainty, abs=5e-7)
