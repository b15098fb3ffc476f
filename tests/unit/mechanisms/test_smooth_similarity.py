"""Smooth similarity: the sensitivity covers every neighbour, grows slowly enough, and the noise is as wide as it says."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from tacit.audit.laplace_forms import delta_of_laplaces
from tacit.errors import InvalidInput, InvalidParameter
from tacit.guarantees import ONE_USER, Guarantee
from tacit.mechanisms import ReplayedNoise, SmoothSimilarity
from tacit.mechanisms.smooth_similarity import STEPS, pair_totals, whole_cosine
from tacit.models.cross_domain.smooth_sensitivity import smooth_sensitivity, smooth_steps
from tests.contracts.mechanism import SECRET

PAIR = ((0, 1),)


def slow(norm: float, bound: float, beta: float) -> float:
    """The maximum over t, one by one."""

    def local(t: int) -> float:
        left = norm - t * bound**2
        return min(2.0, 2.0 * bound**2 / left) if left > 0.0 else 2.0

    return max(math.exp(-beta * t) * local(t) for t in range(int(norm / bound**2) + 3))


@pytest.mark.parametrize(
    ("norm", "expected"),
    [(100, (1.44, 0.875, 0.080)), (1_000, (0.065, 0.008, 0.008)), (10_000, (0.0008, 0.0008, 0.0008))],
)
def test_the_table_of_smooth_sensitivities(norm: int, expected: tuple[float, ...]) -> None:
    """At the textbook's beta, which is enough for Laplace noise of scale 2 S* / epsilon (Nissim, Raskhodnikova and Smith 2007)."""
    for epsilon, value in zip((0.4, 1.0, 4.0), expected, strict=True):
        assert smooth_sensitivity(norm, 2.0, epsilon / (2.0 * math.log(2e6))) == pytest.approx(value, rel=0.01)


@pytest.mark.parametrize("beta", [1e-3, 0.02, 0.3, 2.0])
def test_only_the_ends_have_to_be_looked_at(beta: float) -> None:
    for norm in (0.0, 1.0, 3.9, 4.0, 4.1, 7.0, 8.0, 8.5, 100.0, 101.3, 350.0):
        assert smooth_sensitivity(norm, 2.0, beta) == pytest.approx(slow(norm, 2.0, beta), rel=1e-12)


@pytest.mark.parametrize("beta", [0.02, 0.3])
def test_it_grows_by_no_more_than_its_factor_from_neighbour_to_neighbour(beta: float) -> None:
    norms = np.linspace(0.0, 40.0, 801)
    values = np.array([smooth_steps(float(norm), beta) for norm in norms])
    assert (np.diff(values) <= 0.0).all()
    for apart in range(1, 21):  # a user moves a norm by at most 1 unit, which is 20 places here
        assert (values[:-apart] / values[apart:] <= math.exp(beta) * (1.0 + 1e-12)).all()


def test_no_user_moves_a_similarity_by_more_than_the_scale_says(rng: np.random.Generator) -> None:
    mechanism = SmoothSimilarity(2, PAIR, 1.0, 1e-6, grid=1 << 12)
    for users in (1, 2, 3, 6, 20):
        for _ in range(8):
            rows = rng.choice([-2.0, -1.0, 0.0, 0.5, 2.0], size=(users, 2))
            here = mechanism.laws(rows)[0]
            for user in range(users):
                there = mechanism.laws(np.delete(rows, user, axis=0))[0]
                reach = Fraction(1) / 2 * min(here.scale, there.scale)  # epsilon / 2 of the smaller scale
                assert abs(here.centre - there.centre) <= reach
                assert max(here.scale, there.scale) <= min(here.scale, there.scale) * Fraction(1.0 + mechanism.growth)


def test_the_bound_on_one_user_is_attained() -> None:
    for users in (5, 20, 300):
        rows = np.full((users, 2), 2.0)
        rows[-1, 1] = -2.0
        ((dot, one, other),) = pair_totals(rows, 2, 2.0, PAIR)
        assert dot / math.sqrt(one * other) == pytest.approx(1.0 - 2.0 / users, abs=1e-12)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.4, 1e-6), (1.0, 1e-6), (4.0, 1e-6), (10.0, 1e-6), (1.0, 0.01)])
def test_the_furthest_laws_stay_within_delta_and_use_much_of_it(epsilon: float, delta: float) -> None:
    growth = SmoothSimilarity(2, PAIR, epsilon, delta).growth
    assert math.log1p(growth) <= epsilon / 2.0
    missed = 0.0
    for scale in (2.0 / epsilon, 7.3, 1e3, 1e6):
        if scale >= 2.0 / epsilon:
            apart = math.floor(epsilon * scale / 2.0)
            wide, narrow = (0, scale * (1.0 + growth)), (apart, scale)
            missed = max(missed, delta_of_laplaces(wide, narrow, epsilon), delta_of_laplaces(narrow, wide, epsilon))
    assert delta / 30.0 < missed <= delta


@pytest.mark.parametrize("pairs", [1, 3])
def test_scales_of_neighbours_never_differ_by_more_than_half_of_epsilon_pays_for(pairs: int) -> None:
    """At so large a delta nothing else keeps them together: a wider law loses beta and epsilon / 2 where it is most likely."""
    mechanism = SmoothSimilarity(2, PAIR * pairs, 0.1 * pairs, 0.1 * pairs)
    assert 0.999 * mechanism.each_epsilon / 2.0 < mechanism.beta <= mechanism.each_epsilon / 2.0
    c = 1.01 * mechanism.growth
    assert c * (1.0 + 0.1 / (2.0 * math.e)) * math.exp(-0.1 / (2.0 * c)) < 0.1 / 4.0  # what delta alone would allow


def test_a_tenth_more_growth_is_too_much_for_the_bound() -> None:
    mechanism = SmoothSimilarity(2, PAIR, 1.0, 1e-6)
    c = 1.1 * mechanism.growth
    assert c * (1.0 + 1.0 / (2.0 * math.e)) * math.exp(-1.0 / (2.0 * c)) > 1e-6


def test_the_scale_is_twice_the_reach_over_epsilon_with_a_step_for_rounding() -> None:
    mechanism = SmoothSimilarity(2, PAIR, 1.0, 1e-6, grid=1000)
    many, nobody = mechanism.laws(np.full((500, 2), 2.0))[0], mechanism.laws(np.zeros((0, 2)))[0]
    assert float(many.scale) == pytest.approx(2.0 * (1000 * 2.0 / 500 + 1.0), rel=1e-6)
    assert float(nobody.scale) == pytest.approx(2.0 * (1000 * 2.0 + 1.0), rel=1e-6)
    assert (many.centre, nobody.centre) == (1000, 0)


def test_the_smaller_norm_decides() -> None:
    mechanism = SmoothSimilarity(2, PAIR, 4.0, 1e-6)
    lopsided = np.full((400, 2), 2.0)
    lopsided[100:, 1] = 0.0
    for rows in (lopsided, lopsided[:, ::-1]):
        assert mechanism.laws(rows)[0].scale == mechanism.laws(np.full((100, 2), 2.0))[0].scale


def test_pairs_share_epsilon_and_delta() -> None:
    one, three = (SmoothSimilarity(4, ((0, 1), (1, 2), (3, 0))[:m], 3.0, 3e-6) for m in (1, 3))
    assert (three.each_epsilon, three.each_delta) == (pytest.approx(1.0), pytest.approx(1e-6))
    assert three.growth < one.growth
    assert three.guarantee.epsilon == 3.0
    assert three.guarantee.delta == 3e-6
    assert three.guarantee.protects == ONE_USER
    assert Guarantee.from_json(json.loads(json.dumps(three.guarantee.to_json()))) == three.guarantee
    assert three.release(np.eye(4)).value.shape == (3,)


def test_ratings_are_cut_and_what_is_no_number_is_absent() -> None:
    odd = np.array([[math.nan, 2.0], [50.0, -math.inf], [1.0, 1.0]])
    plain = np.array([[0.0, 2.0], [2.0, -2.0], [1.0, 1.0]])
    mechanism = SmoothSimilarity(2, PAIR, 1.0, 1e-6)
    assert mechanism.laws(odd) == mechanism.laws(plain) == mechanism.laws(sparse.csr_array(plain))
    assert pair_totals(odd, 2, 2.0, PAIR) == [(-3 * STEPS**2 // 4, 5 * STEPS**2 // 4, 9 * STEPS**2 // 4)]


def test_the_cosine_is_exact_and_rounded_towards_zero() -> None:
    assert whole_cosine(3, 3, 4, 1000) == math.floor(1000 * 3 / math.sqrt(12))
    assert whole_cosine(-3, 3, 4, 1000) == -math.floor(1000 * 3 / math.sqrt(12))
    assert whole_cosine(0, 0, 4, 1000) == 0
    assert whole_cosine(2**60, 2**60, 2**60, 1 << 30) == 1 << 30


def test_noise_is_added_at_the_scale_and_the_release_cut() -> None:
    agree = np.tile([[2.0, 1.0], [-1.0, -2.0]], (100, 1))
    many = SmoothSimilarity(2, PAIR * 5000, 5000.0, 0.005)
    law = many.laws(agree)[0]
    value = many.release(agree, ReplayedNoise(5)).value
    assert np.abs(value - law.centre / many.grid).mean() == pytest.approx(float(law.scale) / many.grid, rel=0.1)
    wild = SmoothSimilarity(2, PAIR * 200, 20.0, 0.2).release(agree, ReplayedNoise(5)).value
    assert set(np.abs(wild).tolist()) >= {1.0}
    assert np.abs(wild).max() <= 1.0


def test_pairs_of_different_scales_keep_their_places() -> None:
    rows = np.zeros((3000, 4))
    rows[:, :2] = 2.0
    rows[:1500, 2], rows[:1500, 3] = 2.0, -2.0
    found = SmoothSimilarity(4, ((2, 3), (0, 1), (0, 3)), 60.0, 1e-3).release(rows, ReplayedNoise(2)).value
    np.testing.assert_allclose(found, [-1.0, 1.0, -math.sqrt(0.5)], atol=0.01)


def test_replayed_noise_promises_nothing() -> None:
    mechanism = SmoothSimilarity(2, PAIR, 1.0, 1e-6)
    assert mechanism.release(np.eye(2)).guarantee == mechanism.guarantee
    assert mechanism.release(np.eye(2), ReplayedNoise(1)).guarantee.promises_nothing


@pytest.mark.parametrize(
    "attempt",
    [
        lambda: SmoothSimilarity(2, PAIR, 0.0, 1e-6),
        lambda: SmoothSimilarity(2, PAIR, math.nan, 1e-6),
        lambda: SmoothSimilarity(2, PAIR, 1.0, 0.0),
        lambda: SmoothSimilarity(2, PAIR, 1.0, 1.0),
        lambda: SmoothSimilarity(2, PAIR, 1.0, 1e-6, bound=0.0),
        lambda: SmoothSimilarity(2, PAIR, 1.0, 1e-6, grid=0),
        lambda: SmoothSimilarity(2, (), 1.0, 1e-6),
        lambda: SmoothSimilarity(2, ((0, 0),), 1.0, 1e-6),
        lambda: SmoothSimilarity(2, ((0, 2),), 1.0, 1e-6),
        lambda: SmoothSimilarity(2, (0, 1), 1.0, 1e-6),  # type: ignore[arg-type]
        lambda: SmoothSimilarity(2, PAIR, 1e-9, 1e-6),
        lambda: smooth_sensitivity(-1.0, 2.0, 0.1),
    ],
)
def test_bad_parameters_are_refused(attempt) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidParameter):
        attempt()


@pytest.mark.parametrize("rows", [[[SECRET]], [[SECRET] * 3], SECRET, np.array([["4242", "1"]])])
def test_bad_rows_are_refused_and_not_shown(rows) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidInput) as caught:
        SmoothSimilarity(2, PAIR, 1.0, 1e-6).release(rows)
    assert "4242" not in str(caught.value)
