"""Shares of moments: whole numbers whose bound is exact, for any head; noise that is right alone and in the sum."""

import math
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse, stats

from tacit.errors import InvalidInput, InvalidParameter
from tacit.guarantees import ONE_USER, LossKind, epsilon_of_rho, rho_for, tight
from tacit.mechanisms import SYSTEM_NOISE, GramShare, PopularityShare, ReplayedNoise, moment_rhos, moment_shares
from tacit.mechanisms.moment_shares import LEAST_SD, MOST_HEAD, mark_items, row_weights
from tacit.models.moments import STEPS, gram_from
from tests.contracts.mechanism import ALARM, SECRET, chi_square

CELLS = 64
RHO, DELTA = 0.02, 1e-6
WIDE = 1 + Fraction(1, 1 << 60)


def slow_user(row: Any, head: Any = None) -> tuple[list[int], list[int]]:
    """One user's popularity numbers over all items and her vector over the head, by trying whole numbers."""
    had = {item for item, cell in enumerate(row) if math.isfinite(cell) and cell > 0}
    popularity = [root_below(STEPS**2, len(had)) if item in had else 0 for item in range(len(row))]
    if head is None:
        return popularity, []
    here = [item for item in head if item in had]
    c = len(here)
    vector = [root_below(STEPS**2, 2 * c * c) if item in had else 0 for item in head]
    vector += [STEPS // c if one in had and other in had else 0 for one, other in combinations(head, 2)]
    return popularity, vector


def root_below(square: int, times: int) -> int:
    """The largest y with times y^2 <= square, by bisection."""
    low, high = 0, square
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if times * middle**2 <= square else (low, middle)
    return low


def squares(vector: Any) -> int:
    return sum(int(cell) ** 2 for cell in vector)


def cost(vector: Any, variance: Fraction) -> Fraction:
    """The rho of a change under discrete Gaussian noise of this variance on every number."""
    return Fraction(squares(vector)) / (2 * variance)


def p_value(draws: NDArray[np.int64], variance: Fraction | float) -> float:
    """Of cells of equal probability; at deviations of a million steps the sum over a cell is the integral."""
    place = np.floor(stats.norm.cdf(draws / math.sqrt(variance)) * CELLS).astype(np.int64).clip(0, CELLS - 1)
    return chi_square(np.bincount(place, minlength=CELLS), np.full(CELLS, 1 / CELLS))


def odd_rows(rng: np.random.Generator, users: int, items: int) -> NDArray[np.float64]:
    rows = np.where(rng.random((users, items)) < rng.random((users, 1)), rng.normal(size=(users, items)) * 3, 0.0)
    rows[0], rows[1, :3], rows[2, 0], rows[3] = math.nan, math.inf, -math.inf, 1e-300
    return rows


# --- what is added up


def test_no_user_is_longer_than_the_bound_whatever_she_has() -> None:
    """Exactly, for every number of items up to 6,000, and for some beyond; and hardly shorter."""
    sizes = np.array([*range(6001), 10**5, STEPS, STEPS + 1, 1 << 22])
    for c, one, pair, single in zip(sizes.tolist(), *(part.tolist() for part in row_weights(sizes)), strict=True):
        popularity, vector = c * one**2, c * single**2 + c * (c - 1) // 2 * pair**2
        assert popularity <= 1 << 40
        assert vector <= 1 << 39
        if 1 <= c <= 6000:
            assert popularity > (1 - 2e-4) * 2**40
            assert vector > (1 - 0.012) * 2**39
    assert [part[1] for part in row_weights(np.array([0, 1]))] == [STEPS, STEPS, math.isqrt(STEPS**2 // 2)]
    assert [part[0] for part in row_weights(np.array([0, 1]))] == [0, 0, 0]


def test_weights_are_the_largest_whole_numbers_below_the_unit_row() -> None:
    for c in (*range(1, 60), 999, 1000, 1001, 4095, 4096):
        one, pair, single = (int(part[0]) for part in row_weights(np.array([c])))
        assert c * one**2 <= STEPS**2 < c * (one + 1) ** 2
        assert c * pair <= STEPS < c * (pair + 1)
        assert 2 * c**2 * single**2 <= STEPS**2 < 2 * c**2 * (single + 1) ** 2


@pytest.mark.parametrize(("items", "head"), [(4, (2, 0)), (9, (8, 1, 3, 0, 5)), (5, (4, 3, 2, 1, 0)), (6, (3,))])
def test_totals_are_the_sums_of_slow_users(items: int, head: Any, rng: np.random.Generator) -> None:
    rows = odd_rows(rng, 40, items)
    slow = [slow_user(row, head) for row in rows]
    popularity, vector = (np.sum([user[part] for user in slow], axis=0).tolist() for part in (0, 1))
    for given in (rows, rows.tolist(), sparse.csr_array(rows), sparse.csc_array(rows), sparse.coo_array(rows)):
        assert PopularityShare(items, RHO, DELTA).totals(given).tolist() == popularity
        assert GramShare(items, head, RHO, DELTA).totals(given).tolist() == vector
    assert PopularityShare(items, RHO, DELTA).totals(rows[::-1]).tolist() == popularity
    assert GramShare(items, head, RHO, DELTA).totals(rows[::-1]).tolist() == vector


def test_an_item_that_stands_twice_counts_once_and_cells_that_cancel_do_not_count() -> None:
    twice = sparse.coo_array(([1.0, 2.0, 3.0, -3.0, 5.0], ([0] * 5, [0, 0, 1, 1, 2])), shape=(1, 3))
    assert mark_items(twice, 3).toarray().tolist() == [[1, 0, 1]]
    zeros = sparse.csr_array((np.array([0.0, 7.0]), np.array([0, 2]), np.array([0, 2])), shape=(1, 3))
    assert PopularityShare(3, RHO, DELTA).totals(zeros).tolist() == [0, 0, STEPS]
    assert zeros.nnz == 2  # the caller's table stays as it is


def test_blocks_of_rows_and_of_columns_make_the_same_sums(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    rows = odd_rows(rng, 70, 23)
    head = tuple(rng.permutation(23)[:17].tolist())
    shares = PopularityShare(23, RHO, DELTA), GramShare(23, head, RHO, DELTA)
    popularity, vector = (share.totals(rows) for share in shares)
    for block in (1, 2, 16, 17, 40):
        monkeypatch.setattr("tacit.mechanisms.moment_shares._ROWS", block)
        monkeypatch.setattr("tacit.mechanisms.rating_rows._COLUMNS", block)
        assert (shares[0].totals(rows) == popularity).all()
        assert (shares[1].totals(rows) == vector).all()


def test_the_vector_of_the_worked_example() -> None:
    """w = (.6, .8) has the vector (.254558, .452548, .48) of length .707107; marks give 1/2 everywhere."""
    w = np.array([0.6, 0.8])
    vector = np.array([w[0] ** 2 / math.sqrt(2), w[1] ** 2 / math.sqrt(2), w[0] * w[1]])
    assert vector == pytest.approx([0.254558, 0.452548, 0.48], abs=1e-6)
    assert np.linalg.norm(vector) == pytest.approx(0.707107, abs=1e-6)
    assert gram_from(np.round(vector * STEPS).astype(np.int64), 2) == pytest.approx(np.outer(w, w), abs=2e-6)
    both = GramShare(2, (0, 1), RHO, DELTA).totals([[1, 1]]) / STEPS
    assert both == pytest.approx([0.5 / math.sqrt(2), 0.5 / math.sqrt(2), 0.5], abs=2e-6)


# --- what one user can change, and what that costs


def test_one_user_moves_the_sums_by_her_own_numbers_and_nobody_elses(rng: np.random.Generator) -> None:
    rows, head = odd_rows(rng, 30, 12), (7, 3, 1, 9, 0)
    for totals in (PopularityShare(12, RHO, DELTA).totals, GramShare(12, head, RHO, DELTA).totals):
        assert (totals(rows) - totals(rows[1:]) == totals(rows[:1])).all()
        assert (totals(np.insert(rows, 11, rows[5], axis=0)) - totals(rows) == totals(rows[5:6])).all()
        assert not totals(np.zeros((0, 12))).any()
        assert not totals([]).any()


@pytest.mark.parametrize("size", [1, 2, 5, 40])
def test_no_user_costs_more_than_rho_under_any_head_and_some_cost_all_of_it(
    size: int, rng: np.random.Generator
) -> None:
    """The server chooses the head, and may choose one that suits it."""
    popularity = PopularityShare(40, RHO, DELTA)
    costs: list[list[Fraction]] = [[], []]
    for _ in range(60):
        head = rng.permutation(40)[:size]
        share = GramShare(40, head, RHO, DELTA)
        row = (rng.random(40) < rng.random() ** 2).astype(float)[None]
        costs[0].append(cost(popularity.totals(row), popularity.noise_law.width))
        costs[1].append(cost(share.totals(row), share.noise_law.width))
        single = np.eye(40)[[head[0]]]
        costs[0].append(cost(popularity.totals(single), popularity.noise_law.width))
        costs[1].append(cost(share.totals(single), share.noise_law.width))
    for found in costs:
        assert max(found) <= Fraction(RHO)
        assert max(found) >= Fraction(RHO) * (1 - Fraction(1, 10**5))


def test_a_row_counts_in_full_among_the_items_of_the_head() -> None:
    """Scaled over all of its items instead, a long row would hardly count: the twin is told from the right sum."""
    row = np.ones((1, 400))
    share = GramShare(400, (7, 9), RHO, DELTA)
    assert gram_from(share.totals(row), 2) == pytest.approx(np.full((2, 2), 0.5), abs=2e-6)
    twin = 2 * (STEPS // 400)
    assert share.totals(row)[:2].sum() > 100 * twin
    assert cost(share.totals(row), share.noise_law.width) == pytest.approx(RHO, rel=1e-5)


def test_twins_that_cost_more_than_they_say_are_caught() -> None:
    """A diagonal that is not divided by the root of 2, rows that are not scaled, and noise that counts on everybody."""
    share = GramShare(3, (0, 1, 2), RHO, DELTA)
    one = share.totals([[1, 0, 0]])
    undivided = one.copy()
    undivided[:3] = np.round(one[:3] * math.sqrt(2))
    assert float(cost(undivided, share.noise_law.width)) == pytest.approx(2 * RHO, rel=1e-5)
    unscaled = mark_items([[1, 1, 1]], 3).toarray()[0] * STEPS
    alone = PopularityShare(3, RHO, DELTA)
    assert float(cost(unscaled, alone.noise_law.width)) == pytest.approx(3 * RHO)
    # ten entities, of which three may drop out and one colludes: six remain
    everybody, remain = PopularityShare(3, RHO, DELTA, honest=10), PopularityShare(3, RHO, DELTA, honest=6)
    marks = alone.totals([[1, 0, 0]])
    assert cost(marks, 6 * everybody.noise_law.width) > Fraction(RHO) * Fraction(16, 10)
    assert Fraction(RHO) / WIDE <= cost(marks, 6 * remain.noise_law.width) <= Fraction(RHO)


@pytest.mark.parametrize("honest", [1, 2, 7, 143])
def test_the_honest_shares_together_have_the_variance_that_rho_asks_for(honest: int) -> None:
    popularity, gram = PopularityShare(5, RHO, DELTA, honest), GramShare(5, (1, 4), RHO, DELTA, honest)
    wide = 1 if honest == 1 else WIDE
    assert honest * popularity.noise_law.width == wide * Fraction(1 << 40) / (2 * Fraction(RHO))
    assert honest * gram.noise_law.width == wide * Fraction(1 << 39) / (2 * Fraction(RHO))
    assert popularity.noise_law.sd == pytest.approx(1 / math.sqrt(2 * RHO * honest))
    assert gram.noise_law.sd == pytest.approx(1 / math.sqrt(4 * RHO * honest))


@pytest.mark.parametrize(("honest", "variance"), [(2, 0.5), (2, 1.0), (3, 0.5), (3, 1.0), (10, 1.0), (4, 1.5)])
def test_a_sum_of_discrete_gaussians_is_one_up_to_the_bound_of_the_proof(honest: int, variance: float) -> None:
    """At deviations near 1, where the bound can be seen; shares have deviations of at least a thousand."""
    reach = 60
    n = np.arange(-reach, reach + 1)

    def law(v: float) -> NDArray[np.float64]:
        weight = np.exp(-(n**2) / (2 * v))
        return weight / weight.sum()

    total = law(variance)
    for _ in range(honest - 1):
        total = np.convolve(total, law(variance), mode="same")
    near = np.abs(n) <= 4 * math.sqrt(honest * variance)
    apart = np.abs(np.log(total[near] / law(honest * variance)[near])).max()
    bound = 5 * (honest - 1) * math.exp(-(math.pi**2) * variance)
    assert apart <= bound + 1e-12
    assert honest > 2 or apart >= bound / 3  # the first of the terms that add up is about that, and not about 0
    for shift in (1, 2):  # the divergence of every order stays below the cost that the proof adds up
        here, there = total[shift:], total[:-shift]
        seen = (here > 1e-280) & (there > 1e-280)
        for order in (1.01, 1.5, 2.0, 5.0, 10.0):
            ratio = np.exp(order * np.log(here[seen]) + (1 - order) * np.log(there[seen])).sum()
            most = order * (shift / math.sqrt(honest * variance) + 2 * bound) ** 2 / 2
            assert math.log(ratio) / (order - 1) <= most + 1e-9


def test_what_the_sum_of_the_smallest_shares_may_be_off_is_covered_by_the_widening() -> None:
    """T and D / sqrt(hv) of the proof in logarithms, at the largest number of shares and of cells."""
    log_t = math.log(5 * ((1 << 20) - 1)) - math.pi**2 * LEAST_SD**2
    assert log_t < -9e6
    spare = math.log(2.0**-62) + math.log(2.0**-42)
    assert math.log(2) + log_t + math.log(MOST_HEAD * (MOST_HEAD + 1) / 2) / 2 < spare
    assert (1 + Fraction(1, 1 << 60)) * (1 - Fraction(1, 1 << 62)) ** 2 >= 1


# --- the rhos and the guarantee


@pytest.mark.parametrize("part", [0.15, 0.3, 0.5, 0.01, 0.99])
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 4.0, 10.0])
def test_the_two_rhos_add_up_to_what_is_afforded_and_no_more(epsilon: float, part: float) -> None:
    popularity, gram = moment_rhos(epsilon, DELTA, part)
    afforded = Fraction(rho_for(epsilon, DELTA))
    assert afforded * (1 - Fraction(1, 10**12)) <= Fraction(popularity) + Fraction(gram) <= afforded
    assert popularity == pytest.approx(part * float(afforded), rel=1e-14)


def test_the_two_releases_compose_to_the_epsilon_they_were_made_for() -> None:
    rhos = moment_rhos(1.0, DELTA)
    both = [PopularityShare(9, rhos[0], DELTA).guarantee, GramShare(9, (0, 1), rhos[1], DELTA).guarantee]
    assert 0.999999 < tight(both, DELTA, "zcdp").epsilon <= 1.0


@pytest.mark.parametrize(
    ("epsilon", "sigma", "sigma_c", "sigma_g"),
    [
        (0.5, 8.6766, None, None),
        (1.0, 4.5309, 11.6987, 3.4750),
        (2.0, 2.3816, None, None),
        (4.0, 1.2678, 3.2734, 0.9724),
        (8.0, 0.6893, None, None),
    ],
)
def test_deviations_are_those_of_the_worked_examples(
    epsilon: float, sigma: float, sigma_c: float | None, sigma_g: float | None
) -> None:
    popularity, gram = moment_rhos(epsilon, DELTA)
    found = PopularityShare(4, popularity, DELTA).noise_law.sd, GramShare(4, (0, 1), gram, DELTA).noise_law.sd
    assert 1 / math.sqrt(2 * rho_for(epsilon, DELTA)) == pytest.approx(sigma, abs=6e-5)
    assert found[0] == pytest.approx(sigma / math.sqrt(0.15), rel=8e-5)
    assert found[1] == pytest.approx(sigma / math.sqrt(1.7), rel=8e-5)
    if sigma_c is not None:
        assert found == pytest.approx((sigma_c, sigma_g), rel=5e-5)


@pytest.mark.parametrize("part", [0.0, 1.0, -0.1, 1.1, math.nan, math.inf, None, True, 5e-324])
def test_a_part_that_leaves_nothing_for_one_of_the_two_is_refused(part: Any) -> None:
    with pytest.raises(InvalidParameter):
        moment_rhos(1.0, DELTA, part)


def test_a_share_that_protects_by_itself_assumes_nothing_and_one_of_several_says_what_it_assumes() -> None:
    for make in (
        lambda honest: PopularityShare(4, RHO, DELTA, honest),
        lambda honest: GramShare(4, (0, 2), RHO, DELTA, honest),
    ):
        alone, together = make(1).guarantee, make(6).guarantee
        assert alone.assumes == frozenset()
        assert together.assumes == {
            "only the sum of the shares is seen",
            "at least 6 shares in it have noise that the adversary does not know",
        }
        for guarantee in (alone, together):
            assert guarantee.epsilon == epsilon_of_rho(RHO, DELTA)
            assert (guarantee.delta, guarantee.protects) == (DELTA, ONE_USER)
            assert guarantee.loss is not None
            assert (guarantee.loss.kind, guarantee.loss.value) == (LossKind.ZCDP, RHO)
            assert guarantee.proof in ("popularity-share", "gram-share")


# --- the noise


def test_noise_of_nobody_has_the_stated_variance_and_no_other() -> None:
    """Off by five percent it would be told: at so many draws p is below 1e-20."""
    for share, draws in (
        (PopularityShare(200_000, RHO, DELTA), lambda one: one.release([], ReplayedNoise(3)).value.steps),
        (PopularityShare(200_000, RHO, DELTA, 9), lambda one: one.release([], ReplayedNoise(4)).value.steps),
        (GramShare(700, range(630), RHO, DELTA, 4), lambda one: one.release([], ReplayedNoise(5)).value.steps),
    ):
        noise = draws(share)
        variance = float(share.noise_law.width)
        assert noise.dtype == np.int64
        assert p_value(noise, variance) > ALARM
        for factor in (0.95, 1.05):
            assert p_value(noise, variance * factor) < ALARM
        assert abs(noise.mean()) < 6 * math.sqrt(variance / noise.size)
        assert chi_square(np.bincount(noise & 255, minlength=256), np.full(256, 1 / 256)) > ALARM


def test_noise_on_the_diagonal_is_twice_that_off_it_once_the_matrix_is_read() -> None:
    share = GramShare(600, range(600), RHO, DELTA)
    read = np.stack([gram_from(share.release([], ReplayedNoise(seed)).value.steps, 600) for seed in range(4)])
    on = np.array([np.diagonal(one) for one in read])
    off = read[:, *np.triu_indices(600, 1)]
    assert off.std() == pytest.approx(share.noise_law.sd, rel=0.01)
    assert on.std() == pytest.approx(math.sqrt(2) * share.noise_law.sd, rel=0.08)  # five deviations of 2,400 draws
    assert p_value((off * STEPS).astype(np.int64).reshape(-1), share.noise_law.width) > ALARM


def test_every_number_has_noise_of_its_own() -> None:
    """One draw for all numbers, or the same draws in two shares, would cancel in a difference."""
    for share in (PopularityShare(3000, RHO, DELTA, 3), GramShare(90, range(80), RHO, DELTA, 3)):
        one, other = (share.release([], SYSTEM_NOISE).value.steps for _ in range(2))
        assert np.unique(one).size > 0.99 * one.size
        for apart in (one - other, one[1:] - one[:-1], one[: one.size // 2] - one[-(one.size // 2) :]):
            assert float(apart.std()) == pytest.approx(math.sqrt(2 * share.noise_law.width), rel=0.12)


def test_the_sum_of_honest_shares_has_the_total_variance(rng: np.random.Generator) -> None:
    rows = [(rng.random((20, 60_000)) < 0.001).astype(np.float32) for _ in range(5)]
    share = PopularityShare(60_000, RHO, DELTA, honest=4)
    total = sum(share.release(rows[h], ReplayedNoise(10 + h)).value.steps for h in range(5))
    noise = total - sum(share.totals(one) for one in rows)
    variance = 5 * Fraction(1 << 40) / (2 * Fraction(RHO)) / 4
    assert p_value(noise, variance) > ALARM
    assert p_value(noise, float(variance) * 4 / 5) < ALARM  # divided among all five
    assert p_value(noise, float(variance) / 5) < ALARM


def test_noise_does_not_depend_on_the_users() -> None:
    rows = np.eye(6)[[0, 1, 1, 5]]
    for share in (PopularityShare(6, RHO, DELTA), GramShare(6, (5, 1, 0), RHO, DELTA)):
        noisy, noise = (share.release(given, ReplayedNoise(2)).value.steps for given in (rows, []))
        assert (noisy - noise == share.totals(rows)).all()


def test_the_law_that_is_stated_is_the_law_of_the_noise() -> None:
    for share in (PopularityShare(2, RHO, DELTA, 5), GramShare(2, (0, 1), RHO, DELTA)):
        deviation = math.sqrt(share.noise_law.width)
        steps = np.array([0, int(deviation), -2 * int(deviation)])
        expected = stats.norm.pdf(steps / deviation) / deviation
        np.testing.assert_allclose(share.noise_law.pmf(steps + 7, 7), expected, rtol=1e-6)


def test_a_release_is_whole_numbers_on_the_grid_and_carries_its_guarantee() -> None:
    for share, size in ((PopularityShare(6, RHO, DELTA, 2), 6), (GramShare(6, (5, 1, 0), RHO, DELTA), 6)):
        release = share.release(np.eye(6))
        assert release.value.steps.shape == (size,)
        assert release.value.step == Fraction(1, STEPS)
        assert release.guarantee == share.guarantee
        assert share.release(np.eye(6), ReplayedNoise(1)).guarantee.promises_nothing


# --- what is refused


@pytest.mark.parametrize(
    "head",
    [
        (),
        (0, 0),
        (1, 2, 1),
        (-1,),
        (4,),
        (0, 10**30),
        (0.5,),
        (True, False),
        "01",
        [[0, 1]],
        None,
        (0, None),
        np.array([1.0, 2.0]),
        range(MOST_HEAD + 1),
    ],
    ids=str,
)
def test_a_head_that_repeats_an_item_or_leaves_the_catalogue_is_refused(head: Any) -> None:
    with pytest.raises(InvalidParameter, match="`head` must"):
        GramShare(4, head, RHO, DELTA)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, None, "1", True])
def test_a_rho_outside_its_range_is_refused(bad: Any) -> None:
    for make in (lambda: PopularityShare(4, bad, DELTA), lambda: GramShare(4, (0, 1), bad, DELTA)):
        with pytest.raises(InvalidParameter, match="rho must be"):
            make()


@pytest.mark.parametrize(
    ("name", "bad"),
    [("items", 0), ("items", 2.0), ("items", 1 << 23), ("delta", 0.0), ("delta", 1.0), ("delta", math.nan)]
    + [("honest", bad) for bad in (0, -1, 1.5, True, None, (1 << 20) + 1)],
)
def test_other_parameters_outside_their_ranges_are_refused(name: str, bad: Any) -> None:
    good: dict[str, Any] = {"items": 4, "rho": RHO, "delta": DELTA, "honest": 2, name: bad}
    with pytest.raises(InvalidParameter, match=f"{name} must"):
        PopularityShare(**good)
    with pytest.raises(InvalidParameter, match=f"{name} must"):
        GramShare(head=(0, 1), **good)


def test_noise_that_is_too_narrow_to_be_added_up_is_refused() -> None:
    most = float(Fraction(1 << 40, 2 * LEAST_SD**2))
    for honest in (1, 1000):
        PopularityShare(4, most / honest * (1 - 1e-9), DELTA, honest)
        GramShare(4, (0, 1), most / honest / 2 * (1 - 1e-9), DELTA, honest)
        with pytest.raises(InvalidParameter, match="deviation of at least 1000 steps"):
            PopularityShare(4, most / honest * (1 + 1e-9), DELTA, honest)
        with pytest.raises(InvalidParameter, match="deviation of at least 1000 steps"):
            GramShare(4, (0, 1), most / honest / 2 * (1 + 1e-9), DELTA, honest)


def test_noise_that_is_too_wide_to_be_drawn_is_refused_when_it_is_built() -> None:
    with pytest.raises(InvalidParameter):
        PopularityShare(4, 1e-25, DELTA)


def test_a_table_of_another_shape_is_refused_and_not_shown() -> None:
    ragged: Any = [[SECRET], [1.0, 2.0]]
    for rows in ([[SECRET]], [[SECRET, 1.0, 2.0]], np.zeros((0, 3)), [SECRET, 1.0], ragged):
        for share in (PopularityShare(2, RHO, DELTA), GramShare(2, (1, 0), RHO, DELTA)):
            with pytest.raises(InvalidInput) as caught:
                share.release(rows)
            assert "4242" not in str(caught.value)


def test_no_cell_is_refused_and_no_caller_is_told_of_one() -> None:
    odd: Any = [[1e308, None, "many"], [math.nan, -math.inf, 10**400]]
    big = sparse.coo_array(([1e308, 1e308, 1e-320], ([0, 0, 1], [0, 0, 1])), shape=(2, 3))
    tiny = sparse.csr_array(np.array([[np.longdouble("1e-4000"), 0, 2], [0, 0, 0]], dtype=np.longdouble))
    with np.errstate(all="raise"):
        assert PopularityShare(3, RHO, DELTA).totals(tiny).tolist() == [0, 0, STEPS]
        assert PopularityShare(3, RHO, DELTA).totals(odd).tolist() == [STEPS, 0, 0]
        assert PopularityShare(3, RHO, DELTA).totals(big).tolist() == [0, STEPS, 0]
        assert GramShare(3, (1, 0), RHO, DELTA).totals(odd).tolist() == [0, math.isqrt(STEPS**2 // 2), 0]


def test_the_module_draws_in_one_place_for_each_share() -> None:
    """A share is one vector with one call for noise, so that a crash leaves nothing half drawn."""
    calls: list[int] = []

    class Counted(ReplayedNoise):
        def draw(self, count: int) -> bytes:
            calls.append(count)
            return super().draw(count)

    GramShare(5, (0, 1), RHO, DELTA).totals(np.eye(5))
    assert not calls
    GramShare(5, (0, 1), RHO, DELTA).release(np.eye(5), Counted(1))
    assert calls
    assert moment_shares.LEAST_SD == 1000
