"""Policies as mechanisms: laws, costs, draws, and private scores that never fail."""

import math
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tacit.device.private_selection import (
    guarantee_of,
    mechanism_of,
    private_scores,
    probabilities,
    select,
    store_scorer,
)
from tacit.errors import InvalidInput, InvalidParameter
from tacit.guarantees import ONE_PROFILE
from tacit.mechanisms import ReplayedNoise
from tacit.messages.private_selection import Bounding, Candidate, Policy, Rule
from tacit.models.items import Items
from tests.unit.device.small_world import SHOP, CountedNoise

FLOORS = tuple(round(q * 2**32) for q in (0.1, 0.1, 0.05, 0.01))
SCALED, CLIPPED = Bounding.SCALED, Bounding.CLIPPED
S, P = (4.0, 3.0, 1.0, 0.0), (2.0, 2.5, 1.5, 0.5)


def falling(public: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(sorted(public, reverse=True))


# --- laws, worked out by hand


@pytest.mark.parametrize(
    ("policy", "law"),
    [
        (Policy(Rule.RR, 4, math.log(3)), [1 / 2, 1 / 6, 1 / 6, 1 / 6]),
        (Policy(Rule.RR, 4, math.log(3), d=2), [3 / 8, 3 / 8, 1 / 8, 1 / 8]),
        (Policy(Rule.RR, 4, 5.0), [0.98018666, 0.00660445, 0.00660445, 0.00660445]),
        (Policy(Rule.PUBLIC, 4), [1, 0, 0, 0]),
        (Policy(Rule.UNIFORM, 4), [0.25] * 4),
        (Policy(Rule.RR, 4, 1.0, d=4), [0.25] * 4),
    ],
)
def test_laws_of_the_best_item(policy: Policy, law: list[float]) -> None:
    assert probabilities(policy, S, falling(P)) == pytest.approx(law, abs=1e-8)


def test_of_equal_scores_the_first_is_the_best() -> None:
    law = probabilities(Policy(Rule.RR, 3, math.log(2)), [1.0, 1.0, 1.0], (0.0, 0.0, 0.0))
    assert law == pytest.approx([1 / 2, 1 / 4, 1 / 4])
    assert probabilities(Policy(Rule.GREEDY, 3), [1.0, 2.0, 2.0], (0.0, 0.0, 0.0)).tolist() == [0, 1, 0]


def test_the_envelope_raises_the_best_to_e_to_the_epsilon_times_its_floor() -> None:
    policy = Policy(Rule.ENVELOPE, 4, math.log(10), floors=FLOORS)
    law = probabilities(policy, [0.2, 0.9, 0.1, 0.8], (0.0,) * 4)
    assert law == pytest.approx([0.1, 0.84, 0.05, 0.01], abs=1e-8)


def test_scaled_laplace_has_the_published_law() -> None:
    # on the grid of 2^20 steps the law is a sum of too many terms to list: drawn, and compared with the continuous one
    policy = Policy(Rule.LAPLACE, 4, 2 * math.log(2), bounding=SCALED)
    counts = drawn(policy, S, 4000)
    assert chi_square(counts, [0.35407457, 0.29094950, 0.19506669, 0.15990924]) > 1e-6
    assert chi_square(counts, [0.26407457, 0.38094950, 0.19506669, 0.15990924]) < 1e-6


def closed_form(rule: Rule, scores: np.ndarray, rate: float) -> np.ndarray:
    """The laws of the table, written out: shares of e^(rate s), and the average over all orders of permuting and flipping."""
    flips = np.exp(rate * (scores - scores.max()))
    if rule is Rule.GUMBEL:
        return flips / flips.sum()
    law = np.zeros(len(scores))
    for order in permutations(range(len(scores))):
        still = 1.0
        for item in order:
            law[item] += still * flips[item]
            still *= 1.0 - flips[item]
    return law / math.factorial(len(scores))


def true_epsilon(rule: Rule, lows: tuple[float, ...], width: float, rate: float) -> float:
    """The largest loss between opposite corners of the boxes."""
    worst = 0.0
    for i in range(len(lows)):
        up = np.array([low + width * (j == i) for j, low in enumerate(lows)])
        down = np.array([low + width * (j != i) for j, low in enumerate(lows)])
        worst = max(worst, math.log(closed_form(rule, up, rate)[i] / closed_form(rule, down, rate)[i]))
    return worst


@pytest.mark.parametrize("rule", [Rule.GUMBEL, Rule.PF])
@pytest.mark.parametrize("bounding", [SCALED, CLIPPED])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_noisy_rules_are_calibrated_to_their_epsilon_and_not_to_half_of_it(rule, bounding, epsilon: float) -> None:
    width = 2.0 if bounding is CLIPPED else 1.0
    public = falling(P)
    policy = Policy(rule, 4, epsilon, bounding=bounding, width=width if bounding is CLIPPED else None)
    scores = np.array([4.0, 1.0, 3.0, 0.0])
    if bounding is SCALED:
        bounded, lows = (scores - 0.0) / 4.0, (0.0,) * 4
    else:
        centres = np.array(public)
        bounded, lows = np.clip(scores, centres - 1.0, centres + 1.0), tuple(centres - 1.0)
    low, high = epsilon / (2 * width), epsilon / width
    for _ in range(60):  # the rate whose true loss is epsilon
        middle = (low + high) / 2
        low, high = (middle, high) if true_epsilon(rule, lows, width, middle) <= epsilon else (low, middle)
    law = probabilities(policy, scores, public)
    assert law == pytest.approx(closed_form(rule, bounded, low), abs=2e-6)
    assert guarantee_of(policy, public).epsilon == epsilon


def test_clipping_is_around_the_public_scores_with_the_full_width() -> None:
    policy = Policy(Rule.PF, 4, 1.0, bounding=CLIPPED, width=2.0)
    inside = probabilities(policy, [3.5, 3.0, 2.5, 1.5], (2.5, 2.0, 1.5, 0.5))
    assert probabilities(policy, [9.0, 8.0, 7.0, 6.0], (2.5, 2.0, 1.5, 0.5)) == pytest.approx(inside)
    assert probabilities(policy, [3.4, 3.0, 2.5, 1.5], (2.5, 2.0, 1.5, 0.5)) != pytest.approx(inside)


# --- costs, worked out on the device


@pytest.mark.parametrize(
    ("policy", "epsilon"),
    [
        (Policy(Rule.PUBLIC, 4), 0.0),
        (Policy(Rule.UNIFORM, 4, slots=2), 0.0),
        (Policy(Rule.GREEDY, 4), math.inf),
        (Policy(Rule.GREEDY, 1), 0.0),
        (Policy(Rule.RR, 4, 0.7), 0.7),
        (Policy(Rule.RR, 4, 0.7, d=3), 0.7),
        (Policy(Rule.RR, 4, 0.7, d=4), 0.0),
        (Policy(Rule.RR, 1, 0.7), 0.0),
        (Policy(Rule.RR, 4, 0.7, slots=3), 0.7),
        (Policy(Rule.PF, 1, 0.7, bounding=SCALED), 0.0),
        (Policy(Rule.LAPLACE, 4, 0.7, bounding=SCALED), 0.7),
        (Policy(Rule.GUMBEL, 4, 0.7, bounding=CLIPPED, width=0.1, slots=4), 0.7),
        (Policy(Rule.ENVELOPE, 4, 2.5, floors=FLOORS), 2.5),
    ],
)
def test_the_cost_is_that_of_the_mechanism(policy: Policy, epsilon: float) -> None:
    public = falling(P)[: policy.m]
    assert guarantee_of(policy, public).epsilon == epsilon == policy.cost
    assert guarantee_of(policy, public).protects == ONE_PROFILE
    assert (mechanism_of(policy, public) is None) == (epsilon in (0.0, math.inf))


STATES = [dict(enumerate(scores)) for scores in product([0.0, 0.4, 1.0], repeat=3)]


@pytest.mark.parametrize(
    "policy",
    [
        Policy(Rule.RR, 3, 1.0),
        Policy(Rule.RR, 3, 1.0, d=2),
        Policy(Rule.PF, 3, 1.0, bounding=SCALED),
        Policy(Rule.PF, 3, 1.0, bounding=CLIPPED, width=0.5),
        Policy(Rule.GUMBEL, 3, 1.0, bounding=SCALED),
        Policy(Rule.GUMBEL, 3, 1.0, bounding=CLIPPED, width=0.5),
        Policy(Rule.ENVELOPE, 3, 1.0, floors=(1 << 31, 1 << 29, 1 << 29)),
    ],
    ids=lambda policy: f"{policy.rule}-{policy.bounding}-{policy.d}",
)
def test_no_two_private_states_are_told_apart_by_more_than_epsilon(policy: Policy) -> None:
    public = (0.6, 0.4, 0.3)
    laws = np.array([probabilities(policy, list(state.values()), public) for state in STATES])
    assert laws.sum(axis=1) == pytest.approx(np.ones(len(laws)))
    loss = math.log((laws.max(axis=0) / laws.min(axis=0)).max())
    assert 0.3 < loss <= 1.0 + 1e-9


@pytest.mark.parametrize("rule", [Rule.RR, Rule.PF])
def test_slots_are_filled_one_after_the_other_for_epsilon_in_all(rule: Rule) -> None:
    policy = Policy(rule, 3, 1.0, slots=2, bounding=SCALED if rule is Rule.PF else Bounding.NONE)
    mechanism = mechanism_of(policy, (0.3, 0.2, 0.1))
    assert mechanism is not None
    laws = np.array([mechanism.pmf(list(state.values())) for state in STATES])
    assert laws.shape[1] == 6
    assert 0.3 < math.log((laws.max(axis=0) / laws.min(axis=0)).max()) <= 1.0 + 1e-9
    drawn = select(policy, [1.0, 0.5, 0.0], (0.3, 0.2, 0.1))
    assert len(set(drawn.value)) == 2
    assert drawn.guarantee.epsilon == 1.0
    with pytest.raises(InvalidParameter):
        probabilities(policy, [1.0, 0.5, 0.0], (0.3, 0.2, 0.1))


# --- draws


def drawn(policy: Policy, scores: Any, draws: int) -> np.ndarray:
    """How often each candidate was chosen."""
    public = (0.0,) * policy.m
    return np.bincount([select(policy, scores, public).value[0] for _ in range(draws)], minlength=policy.m)


def chi_square(counts: np.ndarray, law: Any) -> float:
    return float(stats.chisquare(counts, np.array(law) / np.sum(law) * counts.sum()).pvalue)


@pytest.mark.parametrize(
    "policy",
    [
        Policy(Rule.RR, 4, 1.0),
        Policy(Rule.RR, 4, 1.0, d=2),
        Policy(Rule.UNIFORM, 4),
        Policy(Rule.RR, 4, 1.0, d=4),
        Policy(Rule.PF, 4, 2.0, bounding=SCALED),
        Policy(Rule.GUMBEL, 4, 2.0, bounding=CLIPPED, width=4.0),
        Policy(Rule.ENVELOPE, 4, math.log(10), floors=FLOORS),
    ],
    ids=lambda policy: f"{policy.rule}-{policy.bounding}-{policy.d}",
)
def test_draws_have_the_stated_law_and_no_other(policy: Policy) -> None:
    law = probabilities(policy, [1.0, 3.0, 0.0, 2.0], (0.0,) * 4)
    counts = drawn(policy, [1.0, 3.0, 0.0, 2.0], 6000)
    assert chi_square(counts, law) > 1e-6
    other = np.roll(law, 1) if np.ptp(law) > 0.01 else [0.2, 0.3, 0.25, 0.25]
    assert chi_square(counts, other) < 1e-6


def test_uniform_slots_are_every_order_alike() -> None:
    policy = Policy(Rule.UNIFORM, 3, slots=2)
    drawn = [select(policy, None, (0.0,) * 3).value for _ in range(6000)]
    counts = [drawn.count(order) for order in permutations(range(3), 2)]
    assert sum(counts) == 6000
    assert stats.chisquare(counts).pvalue > 1e-6


@pytest.mark.parametrize(
    ("policy", "chosen"),
    [
        (Policy(Rule.PUBLIC, 4, slots=2), (0, 1)),
        (Policy(Rule.GREEDY, 4, slots=3), (1, 3, 0)),
        (Policy(Rule.RR, 1, 1.0), (0,)),
        (Policy(Rule.PF, 1, 1.0, bounding=SCALED), (0,)),
        (Policy(Rule.GREEDY, 1), (0,)),
    ],
)
def test_rules_without_noise_draw_none(policy: Policy, chosen: tuple[int, ...]) -> None:
    noise = CountedNoise()
    drawn = select(policy, [1.0, 3.0, 0.0, 2.0][: policy.m], falling(P)[: policy.m], noise)
    assert drawn.value == chosen
    assert noise.draws == 0


def test_without_a_cost_private_scores_are_not_needed() -> None:
    for policy in (
        Policy(Rule.PUBLIC, 4),
        Policy(Rule.UNIFORM, 4),
        Policy(Rule.RR, 4, 1.0, d=4),
        Policy(Rule.RR, 1, 1.0),
    ):
        assert select(policy, None, falling(P)[: policy.m]).guarantee.epsilon == 0.0
    with pytest.raises(InvalidInput):
        select(Policy(Rule.RR, 4, 1.0), None, falling(P))


def test_replayed_noise_promises_nothing() -> None:
    assert select(Policy(Rule.RR, 4, 1.0), S, falling(P), ReplayedNoise(1)).guarantee.promises_nothing
    assert select(Policy(Rule.GREEDY, 4), S, falling(P)).guarantee.promises_nothing


@pytest.mark.parametrize("epsilon", [1e-12, 1e-3, 39.9, 40.0])
def test_small_and_large_epsilons_neither_overflow_nor_vanish(epsilon: float) -> None:
    law = probabilities(Policy(Rule.RR, 4, epsilon), S, falling(P))
    assert law.sum() == pytest.approx(1.0)
    assert (law > 0).all()
    assert math.log(law[0] / law[1]) <= epsilon + 1e-9
    assert select(Policy(Rule.PF, 4, epsilon, bounding=SCALED), S, falling(P)).value[0] in range(4)


@pytest.mark.parametrize("public", [(), (1.0,), (1.0,) * 5, (1.0, math.nan, 0.5, 0.1), (math.inf, 1.0, 0.5, 0.1)])
def test_public_scores_are_finite_and_one_for_each_candidate(public: tuple[float, ...]) -> None:
    for use in (mechanism_of, guarantee_of):
        with pytest.raises(InvalidParameter):
            use(Policy(Rule.RR, 4, 1.0), public)


@pytest.mark.parametrize("width", [1e-300, 1e-9])
def test_boxes_that_floats_cannot_hold_are_refused_on_public_grounds(width: float) -> None:
    with pytest.raises(InvalidParameter):
        mechanism_of(Policy(Rule.PF, 2, 1.0, bounding=CLIPPED, width=width), (1e15, 0.0))


# --- private scores


CANDIDATES = tuple(
    Candidate(item, public, bid) for item, public, bid in (("a", 0.4, 2_000_000), ("b", 0.3, 1), ("c", 0.2, 500_000))
)


def test_a_private_score_is_the_bid_times_the_private_quality() -> None:
    assert private_scores(CANDIDATES, lambda: [0.5, 0.25, 1.0]).tolist() == [1.0, 0.25e-6, 0.5]


@pytest.mark.parametrize("missing", [math.nan, math.inf, -math.inf, None, 1e308, -1e308])
def test_what_is_no_number_counts_with_its_public_score(missing: Any) -> None:
    candidates = (*CANDIDATES[:2], Candidate("c", 0.2, 10**15))  # 1e308 times such a bid is none either
    assert private_scores(candidates, lambda: [0.5, 0.25, missing]).tolist() == [1.0, 0.25e-6, 0.2]


@pytest.mark.parametrize(
    "quality",
    [
        lambda: 1 / 0,
        lambda: np.linalg.inv(np.zeros((2, 2))),
        lambda: [1.0, 2.0],
        lambda: [[1.0, 2.0, 3.0]],
        lambda: ["a", "b", "c"],
        lambda: None,
        lambda: object(),
        lambda: [1.0, [2.0], 3.0],
        lambda: np.array([1.0, 2.0, 3.0 + 1j]),
    ],
)
def test_a_private_model_that_fails_gives_the_public_scores_and_no_error(quality: Any) -> None:
    assert private_scores(CANDIDATES, quality).tolist() == [0.4, 0.3, 0.2]


def test_scores_that_would_overflow_when_scaled_are_replaced_before() -> None:
    scores = private_scores(tuple(Candidate(item, 0.1) for item in "abc"), lambda: [1.7e308, -1.7e308, 5.0])
    assert scores.tolist() == [0.1, 0.1, 5.0]
    law = probabilities(Policy(Rule.PF, 3, 1.0, bounding=SCALED), scores, (0.1,) * 3)
    assert law.argmax() == 2


class Model:
    """A store's scorer: an item's code plus the first feature."""

    dimension = 8
    asked: list[int]

    def score(self, features: np.ndarray, items: np.ndarray) -> np.ndarray:
        self.asked = items.tolist()
        return (items[None, :] + features[:, :1]).astype(np.float32)


def test_the_stores_model_scores_the_items_that_the_store_knows() -> None:
    model = Model()
    quality = store_scorer(SHOP.items, model)  # type: ignore[arg-type]
    features = np.array([0.5] + [0.0] * 7)
    found = quality(features, ("50", "2", "999", "Heat (1995)", "03", "", "9" * 200, "３"))
    assert np.asarray(found)[:2].tolist() == [7.5, 0.5]
    assert np.isnan(np.asarray(found)[2:]).all()  # unknown, or no id: a title, a leading zero, other digits
    assert model.asked == [7, 0]
    named = store_scorer(Items(np.array(["a", "b"])), model)  # type: ignore[arg-type]
    assert np.asarray(named(features, ("b", "c")))[0] == 1.5
    assert np.isnan(np.asarray(named(features, ("c",)))).all()
