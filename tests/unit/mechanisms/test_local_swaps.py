"""Private swaps: exact losses in both forms of the loops, the law of the whole transcript, and faults that must be seen."""

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.errors import InvalidInput, InvalidParameter
from tacit.guarantees import ONE_USER, LossKind
from tacit.mechanisms import SYSTEM_NOISE, LocalSwaps, ReplayedNoise
from tacit.mechanisms.local_swaps import FARTHEST, _columns, nearest_two
from tacit.mechanisms.partition import MOST_DIMENSIONS
from tests.contracts.mechanism import ALARM, chi_square, log_ratio

CANDIDATES = np.array([[0], [10], [20]])
LINES = [[], [0], [0, 10], [3, 9, 17, 0], [20] * 6, [-30]]


def slow_losses(points: Any, candidates: Any, current: Any, bound: int) -> NDArray[np.int64]:
    """Swap by swap, user by user, in Python's whole numbers."""

    def loss(centres: list[int]) -> int:
        apart = [
            [sum((int(a) - int(b)) ** 2 for a, b in zip(y, candidates[c], strict=True)) for c in centres]
            for y in points
        ]
        return sum(min(bound, *row) for row in apart)

    swapped = [
        [loss([into if place == out else int(c) for place, c in enumerate(current)]) for into in range(len(candidates))]
        for out in range(len(current))
    ]
    return np.array(swapped)


def columns(table: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.ascontiguousarray(table.T, dtype=np.float64)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("users", "dimension", "k"), [(0, 2, 3), (1, 1, 1), (40, 3, 1), (300, 2, 4), (700, 5, 2)])
def test_losses_of_all_swaps_are_those_of_whole_numbers(users: int, dimension: int, k: int, compiled: bool) -> None:
    rng = np.random.default_rng(users)
    points = rng.integers(-(1 << 16), 1 << 16, (users, dimension))
    candidates = rng.integers(-(1 << 16), 1 << 16, (7, dimension))
    current = rng.integers(0, 7, k)
    for bound in (FARTHEST, 10**9):  # the second is reached by many
        mechanism = LocalSwaps(k, 1.0, 1, loss_bound=bound)
        found = mechanism._swap_losses(columns(points), columns(candidates), current, compiled)
        assert found.dtype == np.int64
        assert (found == slow_losses(points.tolist(), candidates.tolist(), current, bound)).all()


def test_both_forms_of_the_loops_give_the_same_release(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.models.loops.plain._CELLS", 500)
    rng = np.random.default_rng(3)
    points, candidates = rng.integers(-60_000, 60_000, (900, 4)), rng.integers(-60_000, 60_000, (50, 4))
    mechanism = LocalSwaps(5, 20.0, 6)
    one, other = (mechanism.release(points, candidates, ReplayedNoise(1), compiled=c).value for c in (False, True))
    assert one.tolist() == other.tolist()


def test_blocks_of_users_are_left_out_only_where_a_candidate_is_too_far_for_all_of_them() -> None:
    rng = np.random.default_rng(5)
    for spread in (300, 3000, 30_000):
        points = rng.integers(-20_000, 20_000, (6, 2))[rng.integers(6, size=3000)] + rng.integers(
            -spread, spread, (3000, 2)
        )
        candidates = rng.integers(-40_000, 40_000, (150, 2))
        mechanism, current = LocalSwaps(4, 1.0, 1), rng.integers(0, 150, 4)
        plain, fast = (mechanism._swap_losses(columns(points), columns(candidates), current, c) for c in (False, True))
        assert (plain == fast).all()


def test_nearest_centres_are_found_in_stretches_and_ties_go_to_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    points, centres = np.array([[0], [5], [9], [100]]), np.array([[10], [0], [10]])
    for cells in (1 << 22, 1):
        monkeypatch.setattr("tacit.mechanisms.local_swaps._CELLS", cells)
        near, first, second = nearest_two(columns(points), columns(centres), 50)
        assert near.tolist() == [1, 0, 0, 0]  # the last is beyond the bound of all three
        assert first.tolist() == [0, 25, 1, 50]
        assert second.tolist() == [50, 25, 1, 50]
    assert nearest_two(columns(points), columns(centres[:1]), 50)[2].tolist() == [50] * 4


def test_one_choice_has_the_law_of_the_exponential_mechanism() -> None:
    mechanism = LocalSwaps(1, 4.0, 1, loss_bound=400)  # e = 2 in each of two choices
    assert mechanism.choice_pmf([81, 1])[1] == pytest.approx(0.598688, abs=1e-6)
    assert mechanism.rate == Fraction(2, 400)


def worst(mechanism: LocalSwaps) -> float:
    """Over all transcripts, between each line of points and the same with one more."""
    losses = [0.0]
    for line in LINES:
        here = mechanism.pmf(np.array(line, dtype=np.int64).reshape(-1, 1), CANDIDATES)
        assert here.sum() == pytest.approx(1.0)
        for point in (-10, 0, 5, 10, 20, 30):
            losses.append(log_ratio(here, mechanism.pmf(np.array([*line, point]).reshape(-1, 1), CANDIDATES)))
    return max(losses)


class TwiceTheRate(LocalSwaps):
    """As if the choices of swaps and of the last set had an epsilon of their own."""

    @property
    def rate(self) -> Fraction:  # type: ignore[override]
        return 4 * Fraction(self.epsilon) / ((self.swaps + 1) * self.loss_bound)


class Uncapped(LocalSwaps):
    """A user's loss may be above the bound that the rate is made for."""

    def _swap_losses(self, users: Any, offered: Any, current: Any, compiled: Any) -> Any:
        return LocalSwaps(self.k, self.epsilon, self.swaps)._swap_losses(users, offered, current, compiled)


def test_claim_holds_for_the_whole_transcript_and_twins_are_caught() -> None:
    assert 0.4 < worst(LocalSwaps(2, 1.0, 2, loss_bound=100)) <= 1.0
    assert worst(TwiceTheRate(2, 1.0, 2, loss_bound=100)) > 1.5
    assert worst(Uncapped(2, 1.0, 2, loss_bound=100)) > 1.5


def test_claim_is_nearly_reached_where_one_user_decides() -> None:
    # a user at one candidate and beyond the bound of all others: the loss of the swap nears its half of epsilon
    mechanism = LocalSwaps(1, 1.0, 1, loss_bound=100)
    many = np.array([[0]] + [[1000 + place] for place in range(60)])
    here, there = mechanism.pmf(np.zeros((0, 1), dtype=np.int64), many), mechanism.pmf(np.array([[0]]), many)
    assert 0.45 < log_ratio(here, there) <= 1.0  # the last choice among one set spends nothing


def test_transcripts_are_listed_in_the_order_of_their_law() -> None:
    mechanism = LocalSwaps(2, 30.0, 2, loss_bound=100)
    listed = mechanism.outcomes(3)
    law = mechanism.pmf(np.array([[0]] * 3 + [[20]] * 4), CANDIDATES)
    assert len(listed) == len(law) == 3**2 * 6**2 * 2
    likeliest = [listed[place] for place in np.argsort(-law)[:20]]
    for first, one, two, last in likeliest:
        centres = list(first)
        seen = []
        for out, into in (one, two):
            centres[out] = into
            seen.append(set(centres))
        assert seen[last[0]] == {0, 2}


def test_release_draws_from_the_law() -> None:
    points, mechanism = np.array([[0], [3], [18], [20]]), LocalSwaps(2, 12.0, 2, loss_bound=400)
    law = Counter[tuple[int, ...]]()
    for (first, one, two, last), likely in zip(mechanism.outcomes(3), mechanism.pmf(points, CANDIDATES), strict=True):
        centres, seen = list(first), []
        for out, into in (one, two):
            centres[out] = into
            seen.append(tuple(centres))
        law[seen[last[0]]] += likely  # type: ignore[assignment]
    noise = ReplayedNoise(9)
    drawn = Counter(
        tuple(mechanism.release(points, CANDIDATES, noise, compiled=False).value.tolist()) for _ in range(1_000)
    )
    places = sorted(law)
    assert set(drawn) <= set(places)
    assert chi_square(np.array([drawn[place] for place in places]), np.array([law[place] for place in places])) > ALARM


def test_the_last_choice_is_among_the_sets_seen_by_their_own_losses(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[NDArray[np.int64], Fraction]] = []
    answers = [5, 3, 7, 1]  # which pair is swapped, three times, and the set that is chosen

    def scripted(scores: NDArray[np.int64], rate: Fraction, noise: Any) -> NDArray[np.int64]:
        asked.append((scores, rate))
        return np.array([answers[len(asked) - 1]])

    monkeypatch.setattr("tacit.mechanisms.local_swaps.gumbel_choice", scripted)
    points, candidates = np.array([[1], [12], [19], [4]]), np.array([[0], [10], [20], [7]])
    mechanism = LocalSwaps(2, 3.0, 3)
    found = mechanism.release(points, candidates, ReplayedNoise(1)).value
    assert {rate for _, rate in asked} == {mechanism.rate}
    losses = [int(-scores[0, answer]) for (scores, _), answer in zip(asked[:3], answers, strict=False)]
    assert (-asked[3][0]).tolist() == [losses]
    # 5 puts candidate 1 in place of centre 1, 3 candidate 3 in place of centre 0: the second set
    assert found.tolist() == [3, 1]
    assert losses[1] == sum(min((int(y[0]) - 7) ** 2, (int(y[0]) - 10) ** 2) for y in points)


def test_a_large_epsilon_finds_the_best_centres_and_not_the_worst() -> None:
    points = np.array([[0]] * 5 + [[20]] * 5)
    for seed in range(5):
        assert set(LocalSwaps(2, 1e4, 4).release(points * 1000, CANDIDATES * 1000, ReplayedNoise(seed)).value) == {0, 2}


def test_fewer_candidates_than_centres_and_no_users_are_no_special_cases() -> None:
    found = LocalSwaps(5, 1.0, 3).release(np.zeros((0, 2), dtype=np.int64), np.array([[0, 0], [7, 7]])).value
    assert found.shape == (5,)
    assert set(found.tolist()) <= {0, 1}
    assert LocalSwaps(3, 1.0, 2).release(np.array([[1]]), np.array([[4]])).value.tolist() == [0, 0, 0]


@pytest.mark.parametrize("compiled", [False, True])
def test_points_far_out_are_moved_in_so_that_every_distance_is_a_whole_number(compiled: bool) -> None:
    most = 1 << 18
    points = np.array([[1 << 62, -(1 << 62)], [most + 1, 7], [-(1 << 30), 1 << 30], [most, -most]])
    candidates = np.array([[most, -most], [1 << 40, 3], [0, 0]])
    users, offered = _columns(points, candidates)
    assert users.T.tolist() == [[most, -most], [most, 7], [-most, most], [most, -most]]
    assert offered.T.tolist() == [[most, -most], [most, 3], [0, 0]]
    inside, aims = users.T.astype(np.int64), offered.T.astype(np.int64)
    found = LocalSwaps(2, 1.0, 1)._swap_losses(users, offered, np.array([0, 2]), compiled)
    assert (found == slow_losses(inside.tolist(), aims.tolist(), [0, 2], FARTHEST)).all()


def test_the_farthest_points_of_the_most_dimensions_are_exact_in_floats() -> None:
    far = np.full((1, MOST_DIMENSIONS), 1 << 62)
    users, offered = _columns(far, 1 - far)
    squared = ((users.T.astype(np.int64) - offered.T.astype(np.int64)) ** 2).sum()
    assert squared == MOST_DIMENSIONS * (1 << 19) ** 2 <= 1 << 53
    assert nearest_two(users, offered, math.inf)[1].tolist() == [float(squared)]


def test_without_users_all_centres_are_equally_likely() -> None:
    law = LocalSwaps(1, 1.0, 1).pmf(np.zeros((0, 1), dtype=np.int64), CANDIDATES)
    assert law == pytest.approx(np.full(9, 1 / 9))


@pytest.mark.parametrize(
    "wrong",
    [{"k": 0}, {"epsilon": 0.0}, {"epsilon": math.inf}, {"swaps": 0}, {"loss_bound": 0}, {"loss_bound": FARTHEST + 1}],
)
def test_parameters_outside_their_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        LocalSwaps(**({"k": 2, "epsilon": 1.0, "swaps": 2} | wrong))


def test_tables_of_another_shape_or_kind_are_refused() -> None:
    mechanism, good = LocalSwaps(2, 1.0, 2), np.zeros((3, 2), dtype=np.int64)
    for points, candidates in ((good, good[:0]), (good, good[:, :1]), (good.astype(float), good), (good[0], good)):
        with pytest.raises(InvalidInput):
            mechanism.release(points, candidates)
    with pytest.raises(InvalidParameter):
        mechanism.pmf(good, np.zeros((300, 2), dtype=np.int64))


def test_guarantee_is_pure_and_its_choices_compose_as_ranges() -> None:
    guarantee = LocalSwaps(2, 2.0, 3).release(np.zeros((2, 1), dtype=np.int64), CANDIDATES, SYSTEM_NOISE).guarantee
    assert guarantee.is_pure
    assert (guarantee.epsilon, guarantee.protects) == (2.0, ONE_USER)
    assert guarantee.loss is not None
    assert (guarantee.loss.kind, guarantee.loss.value) == (LossKind.ZCDP, 4 * 0.5**2 / 8)
