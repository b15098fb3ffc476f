"""The steps of prototypes by a grid, run as black boxes: draws follow the laws, audits stay under the claims and near them."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.audit.empirical import lower_bound_by_label, lower_bound_by_threshold
from tacit.mechanisms import GridPrototypes, LocalSwaps, Noise, PrivatePartition, ProfileBounds, SparseRecovery
from tests.contracts.mechanism import ALARM, chi_square

pytestmark = pytest.mark.statistical

HALF = 1 << 16
CANDIDATES = np.array([[0], [10], [20]])


def kept_cubes(mechanism: PrivatePartition, line: list[int], draws: int, noise: Noise) -> NDArray[np.int64]:
    """The place of each drawn outcome in the list of all outcomes."""
    places = {outcome: place for place, outcome in enumerate(mechanism.outcomes())}
    points = np.array(line, dtype=np.int64).reshape(-1, 1)
    drawn = np.empty(draws, dtype=np.int64)
    for draw in range(draws):
        found = [int(c) for c in mechanism.release(points, noise).value[1:, 0]]
        levels = [
            [c for c in found if (abs(c) % (HALF >> level)) == HALF >> (level + 1)] for level in range(mechanism.depth)
        ]
        drawn[draw] = places[tuple(tuple((c,) for c in level) for level in levels)]
    return drawn


@pytest.mark.parametrize("cap", [1, 2, 2000])
def test_partitions_follow_their_law(cap: int, noise: Noise) -> None:
    mechanism, line = PrivatePartition(1, 2, 3.0, beta=0.6, cap=cap), [5, 5, -40_000]
    counts = np.bincount(kept_cubes(mechanism, line, 4_000, noise), minlength=len(mechanism.outcomes()))
    points = np.array(line).reshape(-1, 1)
    assert chi_square(counts, mechanism.pmf(points)) > ALARM
    assert chi_square(counts, PrivatePartition(1, 2, 4.0, beta=0.6, cap=cap).pmf(points)) < ALARM


def test_the_coin_of_a_child_is_audited_close_to_its_claim(noise: Noise) -> None:
    mechanism = PrivatePartition(1, 1, 1.0, beta=0.6)
    one, two = (kept_cubes(mechanism, line, 8_000, noise) for line in ([], [5]))
    assert 0.5 < lower_bound_by_label(one, two).epsilon <= 1.0
    broken = PrivatePartition(1, 1, 2.0, beta=0.6)  # claims 1 and spends 2
    one, two = (kept_cubes(broken, line, 8_000, noise) for line in ([], [5]))
    assert lower_bound_by_label(one, two).epsilon > 1.0


def clusters(users_each: int, k: int) -> NDArray[np.int64]:
    """Many clusters at once, each of which is a draw of its own."""
    return np.repeat(np.arange(k), users_each)


@pytest.mark.parametrize(("epsilon", "holds"), [(1.0, True), (2.0, False)])
def test_sizes_are_audited_close_to_their_claim(epsilon: float, holds: bool, noise: Noise) -> None:
    k = 20_000
    mechanism = SparseRecovery(ProfileBounds(1, 1, 1.0), k, 1, epsilon, 1.0, 1.0)
    one, two = (mechanism.release(np.ones((users * k, 1)), clusters(users, k), noise).value.sizes for users in (2, 3))
    found = lower_bound_by_threshold(one, two).epsilon
    assert found > 0.5
    assert (found <= 1.0) == holds


@pytest.mark.parametrize(("epsilon", "holds"), [(1.0, True), (2.0, False)])
def test_the_first_pick_is_audited_close_to_its_claim(epsilon: float, holds: bool, noise: Noise) -> None:
    k, items = 20_000, 12
    mechanism = SparseRecovery(ProfileBounds(items, items, 1.0), k, 1, 1.0, epsilon, 1.0)
    picks = []
    for row in (np.eye(items)[:1] * 0.0, np.eye(items)[:1]):  # nobody likes anything, or one user likes item 0
        centres = mechanism.release(np.tile(row, (k, 1)), clusters(1, k), noise).value.centres
        picks.append(np.argmin(np.isnan(centres), axis=1))
    found = lower_bound_by_label(*picks).epsilon
    assert found > 0.5
    assert (found <= 1.0) == holds


def test_swaps_follow_their_law_and_stay_under_their_claim(noise: Noise) -> None:
    mechanism = LocalSwaps(1, 1.0, 1, loss_bound=100)
    draws = []
    for line in ([5], [5, 0]):
        points = np.array(line).reshape(-1, 1)
        drawn = [int(mechanism.release(points, CANDIDATES, noise, compiled=False).value[0]) for _ in range(3_000)]
        law = (
            mechanism.pmf(points, CANDIDATES).reshape(3, 3).sum(axis=0)
        )  # first centre, then the one that takes its place
        assert chi_square(np.bincount(drawn, minlength=3), law) > ALARM
        draws.append(np.array(drawn))
    assert lower_bound_by_label(*draws).epsilon <= 1.0


def whole(epsilon: float) -> Callable[[int, int, Noise], NDArray[np.float64]]:
    mechanism = GridPrototypes(ProfileBounds(2, 2, 1.0), 1, epsilon, 10, p=1, depth=1, swaps=1)

    def totals(users: int, draws: int, noise: Noise) -> NDArray[np.float64]:
        rows = np.ones((users, 2))
        found = (mechanism.release(rows, noise).value for _ in range(draws))
        return np.array([one.sizes[0] + one.centres.sum() for one in found])

    return totals


def test_the_whole_mechanism_stays_under_its_claim(noise: Noise) -> None:
    totals = whole(1.0)
    assert lower_bound_by_threshold(totals(0, 500, noise), totals(1, 500, noise)).epsilon <= 1.0
    broken = whole(60.0)  # claims 1 and spends 60
    assert lower_bound_by_threshold(broken(0, 500, noise), broken(1, 500, noise)).epsilon > 1.0
