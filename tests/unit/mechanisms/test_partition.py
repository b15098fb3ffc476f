"""A private partition: its law, its coins with and without points, and the faults that its claim would not survive."""

import math
from collections.abc import Callable
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from mpmath import fp

from tacit.audit.exact import worst_loss
from tacit.errors import InvalidInput, InvalidParameter
from tacit.guarantees import ONE_USER, LossKind
from tacit.guarantees.arithmetic import precise
from tacit.mechanisms import SYSTEM_NOISE, PrivatePartition, ReplayedNoise
from tacit.mechanisms.partition import _distinct
from tacit.mechanisms.samplers.coins import _in_floats, binomial, rare_heads
from tests.contracts.mechanism import ALARM, chi_square

HALF = 1 << 16
LINES = [[], [5] * 3, [5] * 8, [-5] * 3 + [40_000] * 8, [-HALF, HALF], [-40_000] * 5 + [-10] * 5 + [10] * 5]


def coin(count: int, threshold: int, rate: float) -> float:
    """P(count + discrete Laplace > threshold), summed up term by term."""
    terms = range(threshold + 1 - count, threshold + 1 - count + int(80 / rate))
    return math.fsum(math.tanh(rate / 2) * math.exp(-abs(n) * rate) for n in terms)


def slow_law(
    mechanism: PrivatePartition,
    line: list[int],
    cut: Callable[[tuple[int, int]], Any] = lambda child: child[0],
    *,
    empty: bool = True,
) -> dict[tuple[tuple[int, ...], ...], float]:
    """One dimension, interval by interval. ``cut`` orders the children for the cap, by (centre, count); not ``empty``: a fault."""
    law: dict[tuple[tuple[int, ...], ...], float] = {}
    rate = mechanism.epsilon / mechanism.depth

    def descend(seen: tuple[tuple[int, ...], ...], ends: list[tuple[int, int]], chance: float) -> None:
        if len(seen) == mechanism.depth:
            law[seen] = law.get(seen, 0.0) + chance
            return
        halves = [half for low, high in ends for half in ((low, (low + high) // 2), ((low + high) // 2, high))]
        counts = [sum(low <= y < high or y == high == HALF for y in line) for low, high in halves]
        if not empty:
            halves, counts = [h for h, c in zip(halves, counts, strict=True) if c], [c for c in counts if c]
        chances = [coin(count, mechanism.threshold, rate) for count in counts]
        for heads in product((False, True), repeat=len(halves)):
            likely = math.prod(p if head else 1 - p for head, p in zip(heads, chances, strict=True))
            kept = [(sum(h) // 2, c, h) for h, c, head in zip(halves, counts, heads, strict=True) if head]
            kept = sorted(sorted(kept, key=lambda child: cut((child[0], child[1])))[: mechanism.cap])
            descend((*seen, tuple(child[0] for child in kept)), [child[2] for child in kept], chance * likely)

    descend((), [(-HALF, HALF)], 1.0)
    return law


def losses(law: Callable[[list[int]], dict[Any, float]]) -> float:
    """The worst loss between each line of points and the same with one more."""
    worst = 0.0
    for line in LINES:
        here = law(line)
        for point in (-HALF, -20_000, 5, 40_000, HALF):
            there = law([*line, point])
            outcomes = sorted(set(here) | set(there))
            worst = max(worst, worst_loss([[one.get(o, 0.0) for o in outcomes] for one in (here, there)]))
    return worst


def column(line: list[int]) -> np.ndarray:
    return np.array(line, dtype=np.int64).reshape(-1, 1)


@pytest.mark.parametrize(("depth", "cap"), [(1, 1), (1, 2), (2, 1), (2, 2), (2, 2000), (3, 1), (3, 2)])
def test_claim_is_exact_over_all_outcomes_and_pmf_equals_the_slow_law(depth: int, cap: int) -> None:
    mechanism = PrivatePartition(1, depth, 1.0, beta=0.3, cap=cap)
    laws = {}
    for line in LINES:
        outcomes = [tuple(tuple(c[0] for c in level) for level in outcome) for outcome in mechanism.outcomes()]
        laws[tuple(line)] = dict(zip(outcomes, mechanism.pmf(column(line)), strict=True))
        slow = slow_law(mechanism, line)
        assert laws[tuple(line)] == pytest.approx(slow, rel=1e-9, abs=1e-15)
    worst = losses(lambda line: dict(zip(mechanism.outcomes(), mechanism.pmf(column(line)), strict=True)))
    assert 0.999 < worst <= 1.0 + 1e-9


def test_broken_twins_are_caught_by_enumeration() -> None:
    mechanism = PrivatePartition(1, 2, 1.0, beta=0.3, cap=1)
    assert losses(lambda line: slow_law(mechanism, line)) <= 1.0 + 1e-9
    assert (
        losses(lambda line: slow_law(mechanism, line, cut=lambda child: (child[1] == 0, child[0]))) > 1.5
    )  # occupied first
    assert losses(lambda line: slow_law(mechanism, line, empty=False)) == math.inf  # no empty children
    fewer = PrivatePartition(1, 1, 2.0, beta=0.3)  # two levels that each spend it all
    assert losses(lambda line: slow_law(fewer, line)) > 1.5


@pytest.mark.parametrize("cap", [1, 2000])
def test_release_draws_from_the_law(cap: int) -> None:
    mechanism = PrivatePartition(1, 2, 3.0, beta=0.6, cap=cap)
    points = column([5] * 2 + [-40_000])
    places = {outcome: place for place, outcome in enumerate(mechanism.outcomes())}
    counts, noise = np.zeros(len(places), dtype=np.int64), ReplayedNoise(5)
    for _ in range(1_000):
        found = mechanism.release(points, noise).value[1:, 0]
        first = [int(c) for c in found if abs(c) == HALF // 2]
        outcome = tuple(tuple((c,) for c in level) for level in (first, [int(c) for c in found if abs(c) != HALF // 2]))
        counts[places[outcome]] += 1
    law = mechanism.pmf(points)
    assert chi_square(counts, law) > ALARM
    assert chi_square(counts, PrivatePartition(1, 2, 4.5, beta=0.6, cap=cap).pmf(points)) < ALARM


def test_fifty_users_at_one_point_and_a_huge_epsilon_give_the_cubes_around_them() -> None:
    points = np.tile([HALF // 4, -3 * HALF // 4], (50, 1))  # (1, -3) in a cube of half side 4
    found = PrivatePartition(2, 2, 1000.0).release(points).value
    assert (found / (HALF // 4)).tolist() == [[0, 0], [2, -2], [1, -3]]


def test_the_coin_is_that_of_whole_numbers() -> None:
    mechanism = PrivatePartition(3, 1, 0.1)
    assert mechanism.threshold == 44  # the least whole number not below 43.820266
    assert mechanism.kept(0) == pytest.approx(0.00583199, rel=1e-6)
    # between the continuous coin of threshold g, whose values are given, and that of g + 1
    whole = PrivatePartition(1, 1, 0.5, beta=0.00674)
    assert whole.threshold == 10
    for count, given in ((0, 0.00336897), (10, 0.5), (12, 0.81606028)):
        above = given * math.exp(-0.5) if count <= 10 else 1 - (1 - given) * math.exp(0.5)
        assert above - 1e-8 <= whole.kept(count) <= given + 1e-8
    assert 8 * mechanism.kept(0) <= 0.05


def test_every_level_has_its_part_of_epsilon() -> None:
    assert PrivatePartition(2, 4, 2.0).scale == 2
    assert PrivatePartition(2, 4, 2.0).guarantee.epsilon == 2.0


def test_a_face_belongs_to_the_cube_above_it() -> None:
    mechanism = PrivatePartition(1, 2, 1000.0)
    assert mechanism.release(column([0] * 50)).value[:, 0].tolist() == [0, HALF // 2, HALF // 4]
    assert mechanism.release(column([-1] * 50)).value[:, 0].tolist() == [0, -HALF // 2, -HALF // 4]
    assert mechanism.release(column([HALF // 2] * 50)).value[:, 0].tolist() == [0, HALF // 2, 3 * HALF // 4]
    assert mechanism.release(column([HALF, 2 * HALF] * 25)).value[:, 0].tolist() == [0, HALF // 2, 3 * HALF // 4]
    assert mechanism.pmf(column([0] * 50)).max() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("dimension", "depth", "epsilon"), [(1, 1, 1.0), (3, 1, 0.1), (2, 4, 3.0), (40, 8, 1.0), (5, 2, 1e-6)]
)
def test_the_coins_drawn_at_once_are_the_coins_of_empty_children(dimension: int, depth: int, epsilon: float) -> None:
    mechanism = PrivatePartition(dimension, depth, epsilon)
    for context in (precise(256), fp):
        assert float(mechanism._kept_empty(context)) == pytest.approx(float(mechanism.kept(0)), rel=1e-9)


class Always(PrivatePartition):
    """All children without a point are kept."""

    def _kept_empty(self, context: Any) -> Any:
        return 1 - context.ldexp(1, -200)


def test_points_follow_their_own_cube_among_empty_ones() -> None:
    found = Always(1, 2, 1000.0).release(column([-40_000] * 30 + [-5])).value[:, 0]
    # one point is not enough: of all children of the second level that of the lone point is not kept
    assert found.tolist() == [0, -HALF // 2, HALF // 2, -3 * HALF // 4, HALF // 4, 3 * HALF // 4]


class Often(PrivatePartition):
    """Children without a point are kept with a given probability."""

    def _kept_empty(self, context: Any) -> Any:
        return context.mpf(7) / 100 if self.dimension == 4 else context.ldexp(3, -self.dimension)


def test_every_empty_child_is_kept_equally_often_and_an_occupied_one_never() -> None:
    mechanism, noise = Often(4, 1, 1.0), ReplayedNoise(2)
    occupied = [0, 5, 9]
    sides = np.array([[bool(code >> bit & 1) for bit in (3, 2, 1, 0)] for code in occupied])
    counts = np.zeros(16, dtype=np.int64)
    draws = 4_000
    for _ in range(draws):
        cube, side = mechanism.empty_children(1, np.zeros(3, dtype=np.int64), sides, noise)
        codes = side @ np.array([8, 4, 2, 1])
        assert not cube.any()
        assert len(set(codes.tolist())) == codes.size
        counts[codes] += 1
    assert not counts[occupied].any()
    for code in set(range(16)) - set(occupied):
        assert chi_square(np.array([counts[code], draws - counts[code]]), np.array([0.07, 0.93])) > ALARM


@pytest.mark.parametrize("dimension", [56, 200])
def test_codes_of_many_dimensions_are_odd_half_of_the_time_in_every_place(dimension: int) -> None:
    mechanism, noise = Often(dimension, 1, 1.0), ReplayedNoise(4)
    nobody = np.zeros(0, dtype=np.int64), np.zeros((0, dimension), dtype=np.bool_)
    drawn = [mechanism.empty_children(1, *nobody, noise)[1] for _ in range(1_000)]
    sides = np.concatenate(drawn)
    assert abs(len(sides) / 1_000 - 3.0) < 6 * math.sqrt(3.0 / 1_000)
    assert (np.abs(sides.mean(axis=0) - 0.5) < 6.5 * 0.5 / math.sqrt(len(sides))).all()
    assert len({side.tobytes() for side in sides}) == len(sides)
    numbers = np.bincount([len(d) for d in drawn], minlength=12)[:12]
    poisson = np.array([math.exp(-3) * 3.0**k / math.factorial(k) for k in range(12)])  # the binomial to 2^-50 here
    assert chi_square(numbers, poisson) > ALARM


def test_numbers_of_heads_follow_the_binomial_law() -> None:
    noise, draws = ReplayedNoise(1), 5_000
    counts = np.bincount([binomial(6, lambda c: c.mpf(3) / 10, noise) for _ in range(draws)], minlength=7)
    law = np.array([math.comb(6, k) * 0.3**k * 0.7 ** (6 - k) for k in range(7)])
    assert chi_square(counts, law) > ALARM
    assert chi_square(counts, np.array([math.comb(6, k) * 0.35**k * 0.65 ** (6 - k) for k in range(7)])) < ALARM
    assert sorted(rare_heads(2, lambda c: 1 - c.ldexp(1, -200), noise)) == [0, 1]


def test_floats_decide_as_many_digits_do(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [(16, 0.07), (2000 << 5, 0.05 / 32), (1 << 40, 2.0**-41), (5 << 200, 2.0**-199), (3, 0.999)]
    here = [binomial(coins, lambda c, f=f: c.mpf(f), ReplayedNoise(seed)) for coins, f in cases for seed in range(40)]
    monkeypatch.setattr("tacit.mechanisms.samplers.coins._MOST", 0)
    there = [binomial(coins, lambda c, f=f: c.mpf(f), ReplayedNoise(seed)) for coins, f in cases for seed in range(40)]
    assert here == there
    assert len(set(here)) > 10


@pytest.mark.parametrize("form", ["few coins", "many coins"])
@pytest.mark.parametrize("mean", [600, 745, 1000])
def test_hundreds_of_heads_follow_the_binomial_law(mean: int, form: str) -> None:
    """e^-745 is the smallest float: P(no heads) is none."""
    coins = 24_000 if form == "few coins" else 1 << 60
    noise, draws = ReplayedNoise(mean), 1_500
    found = np.array([binomial(coins, lambda c: c.mpf(mean) / coins, noise) for _ in range(draws)])
    if form == "few coins":
        law = [
            math.exp(
                math.lgamma(coins + 1)
                - math.lgamma(k + 1)
                - math.lgamma(coins - k + 1)
                + k * math.log(mean / coins)
                + (coins - k) * math.log1p(-mean / coins)
            )
            for k in range(2 * mean)
        ]
    else:
        law = [math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)) for k in range(2 * mean)]
    ends = [0, *(mean + round(z * math.sqrt(mean)) for z in (-2, -1.3, -0.8, -0.4, 0, 0.4, 0.8, 1.3, 2)), 2 * mean]
    counts = np.array([((found >= low) & (found < high)).sum() for low, high in pairwise(ends)])
    assert counts.sum() == draws
    assert chi_square(counts, np.array([math.fsum(law[low:high]) for low, high in pairwise(ends)])) > ALARM
    spread = mean if form == "many coins" else mean * (1 - mean / coins)
    # twelve deviations around the variance, whose own is about sqrt(2 / draws) of it: groups of coins are independent
    assert abs(found.var() / spread - 1) < 12 * math.sqrt(2 / draws) / 2


def test_floats_are_not_asked_where_no_heads_at_all_is_hardly_possible() -> None:
    assert _in_floats(24_000, lambda c: c.mpf(0.031), 1 << 63) is None
    assert _in_floats(16_000, lambda c: c.mpf(0.031), 1 << 63) == 496  # e^-504: the median


def test_a_level_of_many_empty_cubes_is_drawn_in_time_and_never_with_all_coins() -> None:
    """4096 cubes of two children each, half a head for each cube at most."""
    mechanism = PrivatePartition(1, 12, 1.2, beta=0.5, cap=4096)
    nobody = np.zeros(0, dtype=np.int64), np.zeros((0, 1), dtype=np.bool_)
    chance, noise = float(mechanism.kept(0)), ReplayedNoise(3)
    for cubes in (2048, 4096):
        drawn = [len(mechanism.empty_children(cubes, *nobody, noise)[0]) for _ in range(20)]
        mean = 2 * cubes * chance
        assert mean > 745 or cubes == 2048
        assert abs(np.mean(drawn) - mean) < 6 * math.sqrt(mean * (1 - chance) / 20)
        assert len(set(drawn)) > 5


def test_no_release_is_swamped_by_empty_cubes() -> None:
    """With every coin a head all cubes of a level would be kept, up to the cap, and users' own would be lost."""
    points = column([5] * 20_000)
    found = PrivatePartition(1, 12, 1.2, beta=0.5, cap=4096).release(points, ReplayedNoise(1)).value
    assert len(found) < 200
    assert np.abs(found[:, 0] - 5).min() <= HALF >> 12


def test_coins_that_nearly_always_fall_heads_are_drawn_to_the_last_digit() -> None:
    for coins in (1, 64, 71, 301):
        for lost in (20, 200, 900):
            assert binomial(coins, lambda c, n=lost: 1 - c.ldexp(1, -n), ReplayedNoise(coins)) == coins
    noise, draws = ReplayedNoise(8), 500
    counts = np.bincount([binomial(80, lambda c: c.mpf(39) / 40, noise) for _ in range(draws)], minlength=81)[70:]
    law = np.array([math.comb(80, k) * 0.975**k * 0.025 ** (80 - k) for k in range(70, 81)])
    assert chi_square(counts, law) > ALARM


def test_ties_of_the_first_bits_are_settled_by_further_ones() -> None:
    class Edge:  # U starts with the first 64 bits of P(no heads) = 1/4: only further bits can tell
        caveat = None

        def __init__(self, rest: int) -> None:
            self.words = [(1 << 62) - 1, rest]

        def draw(self, count: int) -> bytes:
            return self.words.pop(0).to_bytes(count, "big")

    def nearly(context: Any) -> Any:
        return 1 - context.sqrt(context.ldexp(1, -2) - context.ldexp(1, -100))  # P(no heads of 2) = 1/4 - 2^-100

    assert binomial(2, nearly, Edge(0)) == 0
    assert binomial(2, nearly, Edge((1 << 64) - 1)) == 1


@pytest.mark.parametrize("dimension", [1, 4, 62, 64, 200])
@pytest.mark.parametrize("users", [0, 1, 300])
def test_any_dimension_and_any_number_of_users_give_centres_within_the_cube(dimension: int, users: int) -> None:
    points = np.random.default_rng(0).integers(-2 * HALF, 2 * HALF, (users, dimension))
    points[: users // 2] = points[:1]
    found = PrivatePartition(dimension, 5, 20.0).release(points).value
    assert found[0].tolist() == [0] * dimension
    assert found.dtype == np.int64
    assert (np.abs(found) < HALF).all()
    if users == 300:
        assert len(found) >= 6  # the crowded point is followed to the bottom
        assert np.abs(found[-1] - np.clip(points[0], -HALF, HALF)).max() <= HALF >> 5 or len(found) > 6


@pytest.mark.parametrize("differ", [0, 23, 24, 25, 29, 47, 48, 63, 64, 99])
def test_points_apart_in_one_of_many_dimensions_are_in_two_cubes(differ: int) -> None:
    points = np.full((3_000, 100), -5)
    points[2_000:, differ] = 5
    found = PrivatePartition(100, 1, 1000.0).release(points).value
    centres = np.full((3, 100), -HALF // 2)
    centres[0], centres[2, differ] = 0, HALF // 2
    assert found.tolist() == centres.tolist()


@pytest.mark.parametrize("dimension", [1, 24, 25, 41, 63, 64, 65, 130])
def test_children_are_told_apart_by_cube_and_all_sides(dimension: int) -> None:
    rng = np.random.default_rng(dimension)
    cube = np.sort(rng.choice([0, 1, 2, 1 << 16, 1 << 23, (1 << 28) - 1], 600))
    above = np.repeat(rng.random((1, dimension)) < 0.5, 600, axis=0)
    flips = rng.integers(dimension, size=(600, 2))  # one or two sides of each are turned: near neighbours only
    above[np.arange(600), flips[:, 0]] ^= True
    above[:300][np.arange(300), flips[:300, 1]] ^= True
    first, child = _distinct(cube, above)
    keys = [(int(c), sides.tobytes()) for c, sides in zip(cube, above, strict=True)]
    assert len(first) == len(set(keys))
    assert [keys[first[at]] for at in child] == keys


def test_a_side_of_one_cube_is_no_side_of_the_next() -> None:
    """A key that leaves too few bits for the sides, or too few for the cubes, puts two children together."""
    above = np.zeros((100, 49), dtype=np.bool_)
    above[:49] = np.eye(49, dtype=np.bool_)
    cube = np.zeros(100, dtype=np.int64)
    cube[50:78] = 1 << np.arange(28)
    cube[78:] = (1 << 28) - 1 - np.arange(22)
    first, child = _distinct(cube, above)
    assert len(first) == len(set(child.tolist())) == 100


def test_the_cap_holds_at_every_level_and_follows_position() -> None:
    points = np.random.default_rng(0).integers(-HALF, HALF, (4_000, 1))
    found = PrivatePartition(1, 4, 1000.0, cap=3).release(points).value[:, 0]
    assert found.tolist()[:3] == [0, -HALF // 2, HALF // 2]
    assert found.tolist()[3:6] == [-3 * HALF // 4, -HALF // 4, HALF // 4]
    assert len(found) == 1 + 2 + 3 + 3 + 3


def test_order_of_users_does_not_matter() -> None:
    points = np.random.default_rng(0).integers(-HALF, HALF, (500, 3))
    mechanism = PrivatePartition(3, 4, 50.0, beta=1e-9)
    one, other = (mechanism.release(rows, SYSTEM_NOISE).value for rows in (points, points[::-1]))
    assert one[:9].tolist() == other[:9].tolist()  # the root and its eight crowded children


@pytest.mark.parametrize(
    "wrong",
    [
        {"dimension": 0},
        {"depth": 0},
        {"depth": 17},
        {"epsilon": 0.0},
        {"epsilon": math.nan},
        {"epsilon": 1e-300},
        {"beta": 0.0},
        {"beta": 1.0},
        {"cap": 0},
        {"half_side": 3},
    ],
)
def test_parameters_outside_their_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        PrivatePartition(**({"dimension": 2, "depth": 2, "epsilon": 1.0} | wrong))


def test_points_of_another_shape_or_kind_are_refused() -> None:
    for points in (np.zeros((2, 3), dtype=np.int64), np.zeros((2, 2)), np.zeros(2, dtype=np.int64)):
        with pytest.raises(InvalidInput):
            PrivatePartition(2, 2, 1.0).release(points)
    with pytest.raises(InvalidParameter):
        PrivatePartition(3, 3, 1.0).outcomes()


def test_guarantee_is_pure_and_composes_by_levels() -> None:
    guarantee = PrivatePartition(2, 4, 2.0).guarantee
    assert guarantee.is_pure
    assert guarantee.protects == ONE_USER
    assert guarantee.loss is not None
    assert guarantee.loss.kind is LossKind.ZCDP
    assert guarantee.loss.value == 4 * 0.5**2 / 2
    assert PrivatePartition(2, 4, 2.0).release(np.zeros((0, 2), dtype=np.int64)).guarantee == guarantee
