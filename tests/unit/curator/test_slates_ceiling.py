"""The ceiling of a tempered slate: found with a tenth of epsilon, never told, and wide enough for likes by the thousand."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from tacit.curator import plan
from tacit.curator.private_slates.routes import (
    MARGIN,
    likes_that_fit,
    search_guarantee,
    search_stages,
    search_then_draw,
)
from tacit.errors import InvalidParameter
from tacit.guarantees import ONE_USER, LossKind
from tacit.ledger import Budget
from tacit.mechanisms import SYSTEM_NOISE, ExponentialMechanism, LaplaceSum, ReplayedNoise, TemperedSlate
from tests.unit.curator.slates_world import FILMS, USERS, CountedNoise, curator, ratings, some_ratings

EPSILONS = (1e-4, 0.01, 0.1, 0.3, 1 / 3, 0.7, 1.0, 3.0, 10.0, 123.456, 1e6)


def votes(counts: list[int]) -> sparse.csr_array:
    """Likes with these totals; user u likes every item that has more than u of them."""
    user, item = np.nonzero(np.arange(max(counts))[:, None] < np.array(counts))
    return sparse.csr_array((np.ones(user.size), (user, item)), shape=(max(counts), len(counts)))


@pytest.fixture
def highs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, float]]:
    """The epsilon and the ceiling of every slate that is drawn."""
    seen: list[tuple[float, float]] = []
    capped = TemperedSlate.capped.__func__  # type: ignore[attr-defined]

    def noted(cls: type, features: Any, k: int, epsilon: float, **settings: Any) -> Any:
        seen.append((epsilon, settings["high"]))
        return capped(cls, features, k, epsilon, **settings)

    monkeypatch.setattr(TemperedSlate, "capped", classmethod(noted))
    return seen


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_three_stages_cost_epsilon_exactly(epsilon: float) -> None:
    found = search_stages(5, epsilon)
    assert found is not None
    pick, count, left = found
    assert pick.epsilon == count.epsilon == pytest.approx(epsilon / 20, rel=1e-14)
    assert Fraction(pick.epsilon) + Fraction(count.epsilon) + Fraction(left) == Fraction(epsilon)
    promised = search_guarantee(40, 5, epsilon)
    assert (promised.epsilon, promised.delta, promised.protects) == (epsilon, 0.0, ONE_USER)
    assert promised.proof == "composition"
    assert TemperedSlate(np.eye(6), 5, 0.1, high=1.0).guarantee.assumes <= promised.assumes
    # ranges of epsilon/20 and 0.9 epsilon, and a pure loss of epsilon/20 between them
    rho = (Fraction(pick.epsilon) ** 2 + Fraction(left) ** 2) / 8 + Fraction(count.epsilon) ** 2 / 2
    assert promised.loss is not None
    assert promised.loss.kind is LossKind.ZCDP
    assert 0 <= Fraction(promised.loss.value) - rho <= rho / 2**50
    assert (pick.scores.sensitivity, pick.scores.monotone, count.bound, count.dimension) == (1, True, 1.0, 1)


def test_many_slates_add_up_by_what_is_known_of_all_stages() -> None:
    budget, natural = Budget(1.0, 1e-6), 0.01395869  # the range of each of a thousand natural slates
    found = plan(items=3_883, slates=1_000, delta=1e-6, route="tempered")
    assert found.epsilon == pytest.approx(natural / (0.9**2 + 5 * 0.05**2) ** 0.5, rel=1e-5)
    assert found.total.epsilon <= budget.epsilon


def test_both_searches_get_the_noise_and_only_the_item_that_was_picked(
    monkeypatch: pytest.MonkeyPatch, highs: list[tuple[float, float]]
) -> None:
    seen: list[tuple[str, float, Any, Any, Any]] = []

    def spy(kind: Any, name: str) -> None:
        release = kind.release

        def noted(self: Any, rows: Any, *noise: Any) -> Any:
            found = release(self, rows, *noise)
            seen.append((name, self.epsilon, rows, found.value, *noise))
            return found

        monkeypatch.setattr(kind, "release", noted)

    for kind, name in ((ExponentialMechanism, "pick"), (LaplaceSum, "count"), (TemperedSlate, "slate")):
        spy(kind, name)
    likes, noise = votes([10, 3_000, 20, 10, 0, 10]), CountedNoise()
    slate = search_then_draw(np.eye(6), 2, 1.0)(likes)(noise)
    (first, half, rows, item, a), (second, other, column, counted, b), (third, left, table, places, c) = seen
    assert (first, second, third) == ("pick", "count", "slate")
    assert a is b is c is noise
    assert half == other == pytest.approx(0.05)
    assert rows is table is likes
    assert item == 1
    assert np.array_equal(column.toarray(), likes.toarray()[:, [1]])
    ((asked, high),) = highs
    assert asked == pytest.approx(0.9)
    assert half + other + asked == 1.0
    assert high == pytest.approx(counted.to_floats()[0] + 80.0)  # four times the scale of 20
    assert left == pytest.approx(40 * 2 / high)  # lowered from 0.9: theta is 40 / high
    assert np.array_equal(slate.value, places)


def test_the_ceiling_is_the_noisy_count_and_a_margin(highs: list[tuple[float, float]]) -> None:
    draw = search_then_draw(np.eye(6), 2, 3.0)(votes([10, 3_000, 20, 10, 0, 10]))
    for _ in range(400):
        draw(SYSTEM_NOISE)
    error = np.array([high for _, high in highs]) - 3_000 - MARGIN * 20 / 3
    # Laplace noise of scale 20/3: the mean size of it is 6.67 with a deviation of 0.33, its mean 0 with one of 0.47
    assert 4.7 < np.abs(error).mean() < 8.7
    assert abs(error.mean()) < 3.0


def test_few_likes_leave_theta_as_it_is(highs: list[tuple[float, float]]) -> None:
    draw = search_then_draw(np.eye(6), 2, 0.5)(votes([10, 30, 20, 10, 0, 10]))
    for _ in range(50):
        draw(SYSTEM_NOISE)
    # 40 nats hold 177 likes. The count is 10 to 30, the margin 160: noise of scale 40 may lie above, and never below
    assert min(high for _, high in highs) == likes_that_fit(2, 0.45) == 177.0
    assert likes_that_fit(2, 1e6) == 1.0
    assert likes_that_fit(10, 0.9) == 444.0


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 10.0, 1_000.0])
def test_thousands_of_likes_do_not_make_items_alike(epsilon: float) -> None:
    counts = [5_000 if item in (4, 11, 17) else 2_000 for item in range(20)]
    found = plan(3, epsilon, items=20, rank=20)
    draw = found.set_up(np.eye(20))(votes(counts))
    # 40 nats over at most 5,800 likes: 3,000 likes less are a chance of 1e-9 for each of 17 items
    assert [draw(SYSTEM_NOISE).value.tolist() for _ in range(15)] == [[4, 11, 17]] * 15


def test_more_epsilon_is_no_worse() -> None:
    counts = [100 * (20 - item) for item in range(20)]
    likes, top = votes(counts), sum(counts[:3])
    mean = []
    for epsilon in (0.001, 0.1, 1.0, 10.0):
        draw = search_then_draw(np.eye(20), 3, epsilon)(likes)
        mean.append(np.mean([sum(counts[place] for place in draw(SYSTEM_NOISE).value) / top for _ in range(60)]))
    assert mean[0] < 0.75 < 0.95 < mean[1]  # the first is nearly uniform: 0.55, and a little more
    assert min(mean[1:]) > max(mean[1:]) - 0.03


def test_likes_of_items_that_can_be_in_no_slate_are_not_searched(highs: list[tuple[float, float]]) -> None:
    request = np.array([1.0, 0.0, 0.5, 1.0, 0.5, 0.0])
    draw = plan(2, 3.0, items=6).set_up(np.eye(6), request)(votes([10, 9_000, 20, 800, 0, 10]))
    slates = [draw(SYSTEM_NOISE).value.tolist() for _ in range(15)]
    assert all(700 < high < 1_000 for _, high in highs)
    assert all(3 in slate and not {1, 5} & set(slate) for slate in slates)


def test_what_is_promised_does_not_tell_the_ceiling() -> None:
    promised = set()
    for counts in ([5_000, 3, 3, 3], [3, 3, 3, 3], [800, 700, 600, 5]):
        draw = search_then_draw(np.eye(4), 2, 3.0)(votes(counts))
        promised |= {draw(SYSTEM_NOISE).guarantee for _ in range(5)}
    assert promised == {search_guarantee(4, 2, 3.0)}
    assert search_then_draw(np.eye(4), 2, 3.0)(votes([3, 3, 3, 3]))(ReplayedNoise(1)).guarantee.promises_nothing


def test_one_user_more_or_less_changes_nothing_that_can_be_seen(tmp_path: Path) -> None:
    everything = np.full((USERS, FILMS), 5)
    whole = some_ratings()
    tables = [whole, *(whole.select_users(np.arange(count)) for count in (USERS - 1, 1))]
    tables += [ratings(everything), ratings(everything[:-1])]
    seen = set()
    for number, table in enumerate(tables):
        with curator(tmp_path, table, ledger=tmp_path / f"{number}.db") as holder:
            made = holder.plan(4, 5.0)
            slate = holder.slate(4, 5.0)
            seen.add((made.route, made.why, made.epsilon, slate.guarantee, len(slate), repr(holder)))
            with pytest.raises(InvalidParameter) as refused:
                holder.slate(7, 5.0, route="tempered")
            seen.add(str(refused.value))
    assert len(seen) == 2


@pytest.mark.parametrize("epsilon", [1e-4, 1.0, 200.0, 1e5])
def test_no_table_of_likes_is_refused(epsilon: float) -> None:
    set_up = search_then_draw(np.eye(5), 2, epsilon)
    none = sparse.csr_array((0, 5))
    for likes in (none, sparse.csr_array((3, 5)), votes([1, 0, 0, 0, 0]), votes([9] * 5), votes([20_000, 0, 0, 0, 1])):
        with np.errstate(all="raise"):
            slate = set_up(likes)(SYSTEM_NOISE).value
        assert len(set(slate.tolist())) == 2


def test_what_is_wrong_with_features_is_refused_before_likes_are_seen() -> None:
    with pytest.raises(InvalidParameter):
        search_then_draw(np.ones((5, 2)), 2, 1.0)  # of rank 1
    nearly = np.ones((5, 2)) + 1e-7 * np.eye(5)[:, :2]
    with pytest.raises(InvalidParameter, match="nearly dependent"):
        search_then_draw(nearly, 2, 1.0)


def test_where_all_likes_have_room_nothing_is_searched(highs: list[tuple[float, float]]) -> None:
    epsilon = 40 * 2 / 2**28
    assert search_stages(2, epsilon) is None
    assert search_stages(2, epsilon * 1.001) is not None
    assert search_stages(1, epsilon / 2 * 1.001) is not None  # its noise can be drawn
    assert search_guarantee(6, 2, epsilon) == TemperedSlate(np.eye(6), 2, epsilon, high=1.0).guarantee
    release = search_then_draw(np.eye(6), 2, epsilon)(votes([3] * 6))(SYSTEM_NOISE)
    assert release.guarantee.epsilon == epsilon
    assert highs == []
    assert plan(2, 1.0, 10**8, items=6, route="tempered").each.epsilon == pytest.approx(1e-8)


def test_a_slate_of_all_items_needs_no_search_and_costs_nothing() -> None:
    noise = CountedNoise()
    release = search_then_draw(np.eye(3), 3, 1.0)(votes([5, 1, 2]))(noise)
    assert release.value.tolist() == [0, 1, 2]
    assert release.guarantee.epsilon == search_guarantee(3, 3, 1.0).epsilon == 0.0
    assert noise.draws == 0


def test_a_public_number_of_likes_is_not_searched_for(highs: list[tuple[float, float]]) -> None:
    found = plan(2, 0.5, items=6, most_likes=50.0)
    mechanism = TemperedSlate(np.eye(6), 2, 0.5, high=50.0)
    assert found.each == mechanism.guarantee
    highs.clear()
    release = found.set_up(np.eye(6))(votes([10, 3_000, 20, 10, 0, 10]))(SYSTEM_NOISE)
    assert release.guarantee == mechanism.guarantee
    assert highs == []
    # and it is the one that was given: 40 nats apart up to 50 likes, alike beyond
    made = plan(2, 3.0, items=6, most_likes=50.0)
    draw = made.set_up(np.eye(6))(votes([0, 3_000, 50, 0, 50, 0]))
    slates = {tuple(draw(SYSTEM_NOISE).value.tolist()) for _ in range(60)}
    assert slates == {(1, 2), (1, 4), (2, 4)}  # one of them is missed with a chance of 3 (2/3)^60
