"""Laws for all inputs: what every mechanism must do on anything that hypothesis can think of."""

import json
import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import sparse

from tacit.audit import boxed_forms
from tacit.errors import InvalidParameter
from tacit.guarantees import Guarantee, Relation
from tacit.mechanisms import (
    ClippedScores,
    Envelope,
    ExponentialMechanism,
    GaussianSum,
    GumbelTopK,
    LaplaceNoisyMax,
    LaplaceSum,
    Peeling,
    PermuteAndFlip,
    ProfileScores,
    RandomisedResponse,
    ReplayedNoise,
    ScaledScores,
    SparseVector,
    TopResponse,
    VectorLaplace,
    VoteTotals,
)
from tacit.mechanisms.inputs import STEPS, bounded_row_sum
from tacit.mechanisms.samplers.coins import exponential_coins, few_exponential_coins
from tacit.mechanisms.samplers.subsets import choose, choose_one
from tests.unit.mechanisms.scripted import ScriptedNoise, further, native

MP = mpmath.MPContext()
MP.prec = 2000
epsilons = st.floats(min_value=1e-3, max_value=30.0)
scores = st.lists(st.floats(min_value=0.0, max_value=1.0), min_size=1, max_size=8)
selections = st.sampled_from([ExponentialMechanism, PermuteAndFlip, LaplaceNoisyMax])
SOURCE = ProfileScores(0.0, 1.0, steps=6)


def exp(exponent: Fraction) -> Any:
    return MP.exp(MP.mpf(exponent.numerator) / exponent.denominator)


# --- laws


@settings(deadline=None)
@given(selections, epsilons, scores)
def test_a_law_sums_to_one_and_leaves_no_candidate_out(kind: Any, epsilon: float, raw: list[float]) -> None:
    epsilon = max(epsilon, 0.05) if kind is LaplaceNoisyMax else epsilon
    law = kind(SOURCE, epsilon).pmf(raw)
    assert abs(law.sum() - 1.0) < 1e-9
    assert (law > 0.0).all()


@settings(deadline=None)
@given(selections, st.floats(min_value=0.05, max_value=30.0), scores, scores)
def test_no_pair_of_profiles_and_no_output_exceeds_the_claim(
    kind: Any, epsilon: float, here: list[float], there: list[float]
) -> None:
    size = min(len(here), len(there))
    mechanism = kind(SOURCE, epsilon)
    loss = np.log(mechanism.pmf(here[:size])) - np.log(mechanism.pmf(there[:size]))
    assert float(np.abs(loss).max()) <= mechanism.guarantee.epsilon + 1e-9
    if kind is ExponentialMechanism:
        assert float(np.ptp(loss)) <= mechanism.guarantee.epsilon + 1e-9


@settings(deadline=None)
@given(selections, st.floats(min_value=0.05, max_value=10.0), st.data())
def test_no_user_and_no_output_exceeds_the_claim_on_votes(kind: Any, epsilon: float, data: st.DataObject) -> None:
    votes = st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=3, max_size=3)
    table = np.array(data.draw(st.lists(votes, max_size=5)), dtype=np.float64).reshape(-1, 3)
    row = np.array([data.draw(votes)])
    source = VoteTotals(most=data.draw(st.sampled_from([0.5, 1.0, 7.0])), steps=data.draw(st.sampled_from([1, 4])))
    mechanism = kind(source, epsilon)
    loss = np.log(mechanism.pmf(table)) - np.log(mechanism.pmf(np.concatenate([table, row])))
    assert float(np.abs(loss).max()) <= epsilon + 1e-9


@settings(deadline=None)
@given(selections, st.floats(min_value=0.05, max_value=30.0), scores, st.data())
def test_a_better_score_never_makes_its_candidate_less_likely(
    kind: Any, epsilon: float, raw: list[float], data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(raw) - 1))
    better = list(raw)
    better[place] = data.draw(st.floats(min_value=raw[place], max_value=1.0))
    before, after = (kind(SOURCE, epsilon).pmf(scores) for scores in (raw, better))
    assert after[place] >= before[place] - 1e-12
    assert all(after[i] <= before[i] + 1e-12 for i in range(len(raw)) if i != place)


@settings(deadline=None)
@given(st.sampled_from([ExponentialMechanism, PermuteAndFlip]), epsilons, scores, st.randoms(use_true_random=False))
def test_permuting_candidates_permutes_the_law(kind: Any, epsilon: float, raw: list[float], shuffle: Any) -> None:
    """Not so for noisy max, whose ties go to the first candidate."""
    order = list(range(len(raw)))
    shuffle.shuffle(order)
    law = kind(SOURCE, epsilon).pmf(raw)
    moved = kind(SOURCE, epsilon).pmf([raw[i] for i in order])
    np.testing.assert_allclose(moved, law[order], rtol=1e-9)


@settings(deadline=None, max_examples=50)
@given(
    st.floats(min_value=0.05, max_value=10.0), st.lists(st.floats(0.0, 1.0), min_size=3, max_size=4), st.integers(1, 3)
)
def test_the_law_of_ordered_picks_sums_to_one_and_its_first_pick_is_the_exponential_mechanism(
    epsilon: float, raw: list[float], k: int
) -> None:
    mechanism = GumbelTopK(SOURCE, k, epsilon)
    law = mechanism.pmf(raw)
    assert abs(law.sum() - 1.0) < 1e-9
    first = np.bincount([picks[0] for picks in mechanism.outcomes(len(raw))], law, len(raw))
    np.testing.assert_allclose(first, ExponentialMechanism(SOURCE, epsilon / k).pmf(raw), rtol=1e-9)


@settings(deadline=None, max_examples=40)
@given(
    st.floats(min_value=0.3, max_value=10.0),
    st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=3),
    st.data(),
)
def test_no_transcript_exceeds_the_claim(epsilon: float, here: list[float], data: st.DataObject) -> None:
    there = [data.draw(st.sampled_from([0.0, 0.5, 1.0])) for _ in here]
    mechanism = SparseVector(
        ProfileScores(0.0, 1.0, steps=2), data.draw(st.integers(-2, 4)), epsilon, hits=data.draw(st.integers(1, 3))
    )
    laws = [mechanism.pmf(raw) for raw in (here, there)]
    assert float(np.abs(np.log(laws[0]) - np.log(laws[1])).max()) <= epsilon + 1e-9


@settings(deadline=None)
@given(st.integers(2, 1 << 20), st.floats(min_value=0.0, max_value=40.0, exclude_min=True))
def test_randomised_response_stays_within_its_claim_in_fractions(k: int, epsilon: float) -> None:
    truth = RandomisedResponse(k, epsilon).truth
    ratio = truth * (k - 1) / (1 - truth)
    assert ratio >= 1
    assert ratio.numerator <= exp(Fraction(epsilon)) * ratio.denominator


@settings(deadline=None)
@given(
    st.floats(min_value=0.01, max_value=100.0),
    st.integers(0, 6),
    st.lists(st.floats(-2.0, 3.0), min_size=3, max_size=3),
    st.lists(st.floats(-2.0, 3.0), min_size=3, max_size=3),
    st.lists(st.integers(-300, 300), min_size=3, max_size=3),
)
def test_metric_loss_is_within_distance_and_rounding(
    scale: float, grid_bits: int, here: list[float], there: list[float], output: list[int]
) -> None:
    mechanism = VectorLaplace(3, scale, low=-1.0, high=2.0, grid_bits=grid_bits)
    steps = np.array([output])
    loss = float((mechanism.log_pmf(steps, here) - mechanism.log_pmf(steps, there))[0])
    distance = sum(abs(a - b) for a, b in zip(here, there, strict=True))
    allowed = mechanism.guarantee.epsilon * (distance + mechanism.guarantee.rounding)
    assert loss <= allowed * (1 + 1e-9) + 1e-9


# --- guarantees


@settings(deadline=None)
@given(epsilons, st.sampled_from(list(Relation)))
def test_guarantees_survive_json(epsilon: float, relation: Relation) -> None:
    votes = VoteTotals(relation=relation)
    for mechanism in (
        ExponentialMechanism(votes, epsilon),
        PermuteAndFlip(votes, epsilon),
        GumbelTopK(votes, 3, epsilon),
        SparseVector(votes, 2, epsilon),
        RandomisedResponse(3, epsilon),
        LaplaceSum(2, 1.0, epsilon, relation),
        GaussianSum(2, 1.0, 1.0, 1e-6, relation),
        VectorLaplace(4, epsilon),
    ):
        assert Guarantee.from_json(json.loads(json.dumps(mechanism.guarantee.to_json()))) == mechanism.guarantee


# --- decisions beside the true probability


@settings(deadline=None, max_examples=150)
@given(
    st.lists(st.tuples(st.integers(0, 1 << 22), st.integers(-2, 2)), min_size=1, max_size=8),
    st.fractions(min_value=Fraction(1, 10**9), max_value=2, max_denominator=10**9),
    st.integers(0, (1 << 64) - 1),
)
def test_coins_beside_their_probability_are_decided_like_the_truth(
    draws: list[tuple[int, int]], rate: Fraction, rest: int
) -> None:
    exact = [min(steps * rate, steps * rate % 30) for steps, _ in draws]
    words = [
        max(0, min(65535, int(MP.floor(MP.ldexp(exp(-x), 16))) + away))
        for x, (_, away) in zip(exact, draws, strict=True)
    ]
    truth = [
        bool(MP.mpf(word) * MP.ldexp(1, 64) + rest < MP.ldexp(exp(-x), 80))
        for word, x in zip(words, exact, strict=True)
    ]
    floats = np.array([float(x) for x in exact])
    script = [native(words, 2), *[further(rest)] * 20]
    assert exponential_coins(floats, lambda i: exact[i], ScriptedNoise(*script)).tolist() == truth
    assert few_exponential_coins(floats.tolist(), lambda i: exact[i], ScriptedNoise(*script)) == truth


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.fractions(min_value=0, max_value=50, max_denominator=10**6), min_size=2, max_size=6),
    st.data(),
)
def test_choices_beside_an_edge_are_decided_like_the_truth(exponents: list[Fraction], data: st.DataObject) -> None:
    exact = [x - min(exponents) for x in exponents]
    weights = [exp(-x) for x in exact]
    edges = [MP.fsum(weights[: i + 1]) / MP.fsum(weights) for i in range(len(weights) - 1)]
    away = data.draw(st.sampled_from([-(1 << 21), -(1 << 20), -1000, -1, 1, 1000, 1 << 20, 1 << 21]))
    word = int(MP.floor(MP.ldexp(data.draw(st.sampled_from(edges)), 64))) + away
    assume(0 <= word < 1 << 64)
    rest = data.draw(st.integers(0, (1 << 64) - 1))
    u = MP.ldexp(MP.mpf(word), -64) + MP.ldexp(MP.mpf(rest), -128)
    truth = sum(bool(edge <= u) for edge in edges)
    floats = [float(x) for x in exact]
    assert choose(np.array([floats]), lambda row: exact, ScriptedNoise(native([word], 8), further(rest))).tolist() == [
        truth
    ]
    assert choose_one(floats, lambda: exact, ScriptedNoise(native([word], 8), further(rest))) == truth


# --- rows on the grid


any_float = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.floats(-3.0, 3.0),
    st.sampled_from([0.0, -0.0, 5e-324, 1.7e308, -1.7e308, math.inf, math.nan]),
)
tables = arrays.arrays(np.float64, st.tuples(st.integers(0, 6), st.just(4)), elements=any_float)
bounds = st.one_of(st.floats(1e-3, 1e3), st.sampled_from([5e-324, 1e-300, 1e300, 1.0]))


@settings(deadline=None, max_examples=200)
@given(tables, bounds, st.sampled_from([1, 2]))
def test_every_row_moves_the_sum_by_its_own_image_whose_norm_is_within_the_bound(
    table: np.ndarray, bound: float, norm: int
) -> None:
    before = table.copy()
    images = [[int(s) for s in bounded_row_sum(row[None, :], 4, bound, norm)] for row in table]
    for image in images:
        assert sum(abs(s) ** norm for s in image) <= STEPS**norm
    total = bounded_row_sum(table, 4, bound, norm)
    assert total.tolist() == [sum(column) for column in zip(*images, strict=True)] if images else not total.any()
    np.testing.assert_array_equal(table, before)


@settings(deadline=None, max_examples=200)
@given(tables, bounds, st.sampled_from([1, 2]), st.data())
def test_sparse_tables_with_duplicates_and_zeros_have_the_sum_of_the_dense_one(
    table: np.ndarray, bound: float, norm: int, data: st.DataObject
) -> None:
    values, columns, starts = [], [], [0]
    for row in table:
        order = data.draw(st.permutations(range(4)))
        for column in order:
            if row[column] != 0.0 or data.draw(st.booleans()):
                values.append(row[column])
                columns.append(column)
        if data.draw(st.booleans()):  # a duplicate that adds nothing
            values.append(0.0)
            columns.append(order[0])
        starts.append(len(values))
    messy = sparse.csr_array(
        (np.array(values, dtype=np.float64), np.array(columns, dtype=np.int64), starts), shape=table.shape
    )
    np.testing.assert_array_equal(bounded_row_sum(messy, 4, bound, norm), bounded_row_sum(table, 4, bound, norm))
    assert messy.data.size == len(values)


@settings(deadline=None)
@given(tables, st.sampled_from([0.5, 1.0, 3.0]), st.sampled_from([1, 7, 1 << 20]))
def test_totals_of_votes_are_sums_over_users_and_one_user_moves_them_one_way(
    table: np.ndarray, most: float, steps: int
) -> None:
    source = VoteTotals(most, steps)
    images = [source.integers(row[None, :]) for row in table]
    for image in images:
        assert image.min() >= 0
        assert image.max() <= source.sensitivity
    np.testing.assert_array_equal(source.integers(table), sum(images, np.zeros(4, dtype=np.int64)))
    np.testing.assert_array_equal(source.integers(sparse.csr_array(table)), source.integers(table))


@settings(deadline=None)
@given(
    st.floats(-1e300, 1e300),
    st.floats(1e-200, 1e300),
    st.integers(1, 1 << 24),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20),
)
def test_profile_scores_never_leave_the_grid_and_keep_their_order(
    low: float, width: float, steps: int, raw: list[float]
) -> None:
    high = low + width
    assume(low < high < math.inf)
    raw = [*sorted(raw), low, high]
    integers = ProfileScores(low, high, steps).integers(raw)
    assert integers.min() >= 0
    assert integers.max() <= steps
    assert (np.diff(integers[:-2]) >= 0).all()


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32), selections, st.lists(st.floats(0.0, 1.0), min_size=1, max_size=6))
def test_the_same_bytes_give_the_same_choice(seed: int, kind: Any, raw: list[float]) -> None:
    mechanism = kind(ProfileScores(0.0, 1.0), 1.0)
    assert mechanism.release(raw, ReplayedNoise(seed)).value == mechanism.release(raw, ReplayedNoise(seed)).value


# --- selection on a device: any float at all is a private score

anything = st.floats(allow_nan=True, allow_infinity=True)


@settings(deadline=None)
@given(st.lists(anything, min_size=1, max_size=8), st.integers(1, 1 << 24))
def test_scaled_scores_lie_in_the_unit_box_and_keep_their_order(raw: list[float], steps: int) -> None:
    found = ScaledScores(len(raw), steps=steps).integers(raw)
    assert found.min() >= 0
    assert found.max() == steps
    known = [(score, place) for score, place in zip(raw, found.tolist(), strict=True) if not math.isnan(score)]
    places = [place for _, place in sorted(known)]
    assert all(a <= b for a, b in pairwise(places))


@settings(deadline=None)
@given(st.data(), st.floats(min_value=1e-300, max_value=1e300), st.integers(1, 1 << 24))
def test_clipped_scores_never_leave_their_box(data: Any, width: float, steps: int) -> None:
    centres = data.draw(st.lists(anything, min_size=1, max_size=6))
    raw = data.draw(st.lists(anything, min_size=len(centres), max_size=len(centres)))
    try:
        source = ClippedScores(tuple(centres), width, steps=steps)
    except InvalidParameter:
        assume(False)
    above = source.integers(raw) - np.array(source.lows)
    assert above.min() >= 0
    assert above.max() <= steps
    assert (source.integers(np.full(len(centres), math.inf)) - np.array(source.lows) == steps).all()


@settings(deadline=None)
@given(st.floats(min_value=1e-3, max_value=40.0), st.lists(anything, min_size=2, max_size=7), st.data())
def test_top_response_tells_no_two_profiles_apart(epsilon: float, raw: list[float], data: Any) -> None:
    m = len(raw)
    mechanism = TopResponse(m, data.draw(st.integers(1, m)), epsilon)
    other = data.draw(st.lists(anything, min_size=m, max_size=m))
    here, there = mechanism.pmf(raw), mechanism.pmf(other)
    assert abs(here.sum() - 1.0) < 1e-9
    assert np.abs(np.log(here / there)).max() <= mechanism.guarantee.epsilon + 1e-12
    assert (np.sort(here) == np.sort(there)).all()  # exactly d are the best, whatever the scores are
    assert 0 <= mechanism.release(raw, ReplayedNoise(1)).value < m


@settings(deadline=None)
@given(
    st.sampled_from([ExponentialMechanism, PermuteAndFlip]),
    st.lists(st.floats(min_value=0.0, max_value=1.5), min_size=2, max_size=9),
    st.floats(min_value=1e-3, max_value=40.0),
)
def test_a_calibrated_rate_is_no_lower_than_the_plain_one_and_loses_no_more_than_epsilon(
    kind: Any, centres: list[float], epsilon: float
) -> None:
    source = ClippedScores(tuple(centres), 1.0, steps=1 << 10)
    rate = kind(source, epsilon, calibrated=True).rate
    assert rate >= kind(source, epsilon).rate
    lost = boxed_forms.over_corners(boxed_forms.LAWS[kind.name], source.lows, source.steps, float(rate))
    assert lost <= epsilon + 1e-9


@settings(deadline=None)
@given(st.lists(st.integers(1, 1 << 28), min_size=2, max_size=9), st.floats(min_value=0.05, max_value=40.0), st.data())
def test_an_envelope_keeps_its_floors_and_its_ceilings(floors: list[int], epsilon: float, data: Any) -> None:
    try:
        mechanism = Envelope(tuple(floors), epsilon)
    except InvalidParameter:
        assume(False)
    raw = data.draw(st.lists(anything, min_size=len(floors), max_size=len(floors)))
    weights = mechanism.weights(raw)
    assert sum(weights) == 1 << 64
    e = exp(Fraction(epsilon))
    for floor, weight in zip(floors, weights, strict=True):
        assert floor << 32 <= weight <= e * (floor << 32)


@settings(deadline=None, max_examples=40)
@given(st.lists(anything, min_size=2, max_size=6), st.data())
def test_slots_hold_different_candidates(raw: list[float], data: Any) -> None:
    m = len(raw)
    slots = data.draw(st.integers(1, m))
    boxes = ClippedScores(tuple(0.1 * place for place in range(m)), 0.5)
    for rule in (TopResponse(m, 1, 1.0), PermuteAndFlip(ScaledScores(m), 1.0), ExponentialMechanism(boxes, 1.0)):
        picks = Peeling(rule, slots).release(raw, ReplayedNoise(3)).value.tolist()
        assert len(set(picks)) == slots
        assert set(picks) <= set(range(m))
