"""Exact calibration: the loss at the solved rate is epsilon, in 150 digits never above it, at the worst corner of all."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import mpmath
import numpy as np
import pytest

from tacit.audit import exact
from tacit.audit.twins.private_selection import EqualBoxes, HighestBox
from tacit.errors import InvalidParameter
from tacit.guarantees import LossKind
from tacit.mechanisms import (
    ClippedScores,
    ExponentialMechanism,
    PermuteAndFlip,
    ProfileScores,
    ScaledScores,
    VoteTotals,
    selection,
)
from tacit.models.quadrature import unit_gauss_legendre

MP = mpmath.MPContext()
MP.dps = 150  # sums with alternating signs lose some
KINDS = (ExponentialMechanism, PermuteAndFlip)


def exponential(scores: Sequence[int], rate: Any, place: int) -> Any:
    return 1 / MP.fsum(MP.exp(rate * (score - scores[place])) for score in scores)


def permute_and_flip(scores: Sequence[int], rate: Any, place: int) -> Any:
    """The product of (1 - a_j t), multiplied out and integrated term by term."""
    coins = [MP.exp(rate * (score - max(scores))) for score in scores]
    polynomial = [MP.mpf(1)]
    for coin in coins[:place] + coins[place + 1 :]:
        polynomial = [a - coin * b for a, b in zip([*polynomial, 0], [0, *polynomial], strict=True)]
    return coins[place] * MP.fsum(value / (power + 1) for power, value in enumerate(polynomial))


LAWS: dict[Any, Callable[[Sequence[int], Any, int], Any]] = {
    ExponentialMechanism: exponential,
    PermuteAndFlip: permute_and_flip,
}


def true_loss(mechanism: Any, place: int) -> Any:
    """ln of the ratio between the corners of one candidate, to many digits."""
    lows, steps = mechanism.scores.lows, mechanism.scores.steps
    rate = MP.mpf(mechanism.rate.numerator) / mechanism.rate.denominator
    raised = [low + steps * (other == place) for other, low in enumerate(lows)]
    lowered = [low + steps * (other != place) for other, low in enumerate(lows)]
    law = LAWS[type(mechanism)]
    return MP.log(law(raised, rate, place) / law(lowered, rate, place))


def sources(rng: np.random.Generator) -> list[Any]:
    spread = [tuple(rng.uniform(0.0, reach, k)) for k in (2, 3, 7, 15) for reach in (0.01, 0.5, 0.97)]
    return [
        *(ScaledScores(k) for k in (2, 3, 4, 15, 40)),
        *(ClippedScores(centres, 1.0) for centres in spread),
        ClippedScores((5.0, 5.0, 5.0), 0.1),
        ClippedScores((0.0, 1e-7, 3.0), 1.0),  # farther apart than a width
        ClippedScores((0.0, 1e9), 1.0),
        *(
            ClippedScores((0.0, gap), 1.0) for gap in (1.0, 1.1, 1.2, 1.9)
        ),  # around a width, where nothing is left to gain
        *(ClippedScores((0.0, 0.5, gap), 1.0) for gap in (0.999, 1.0, 1.2)),
        ScaledScores(3, steps=1),
    ]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [1e-9, 0.1, 1.0, 5.0, 40.0, 300.0, 5000.0])
def test_in_exact_arithmetic_the_loss_is_never_above_epsilon_and_hardly_below(
    kind: Any, epsilon: float, rng: np.random.Generator
) -> None:
    for source in sources(rng):
        mechanism = kind(source, epsilon, calibrated=True)
        lowest = int(np.argmin(source.lows))
        loss = true_loss(mechanism, lowest)
        assert loss <= MP.mpf(epsilon) * (1 + MP.mpf(10) ** -80)
        plain = Fraction(epsilon) / (2 * source.steps)
        assert mechanism.rate >= plain
        assert mechanism.rate <= 2 * plain
        if mechanism.rate > plain:
            assert loss >= epsilon - 4 * selection.MARGIN * max(1.0, epsilon)
        if len(source.lows) <= 7:  # the candidate whose box lies lowest loses most
            others = [true_loss(mechanism, place) for place in range(len(source.lows))]
            assert max(others) <= loss + MP.mpf(10) ** -80


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_inside_the_boxes_is_worse_than_their_corners(kind: Any) -> None:
    source = ClippedScores((0.0, 0.3, 0.45), 1.0, steps=20)
    mechanism = kind(source, 2.0, calibrated=True)
    axes = [np.linspace(c - 0.6, c + 0.6, 7) for c in source.centres]
    found = exact.worst_loss([mechanism.pmf(point) for point in product(*axes)])
    assert found == pytest.approx(2.0, abs=1e-9)


@pytest.mark.parametrize(
    ("kind", "k", "one", "five"),
    [
        (PermuteAndFlip, 2, 1.24, 1.73),
        (PermuteAndFlip, 4, 1.03, 1.46),
        (PermuteAndFlip, 15, 1.00, 1.09),
        (ExponentialMechanism, 2, 2.00, 2.00),
        (ExponentialMechanism, 4, 1.35, 1.58),
        (ExponentialMechanism, 15, 1.07, 1.17),
    ],
)
def test_what_it_gains_over_the_plain_rate(kind: Any, k: int, one: float, five: float) -> None:
    for epsilon, gain in ((1.0, one), (5.0, five)):
        better, plain = kind(ScaledScores(k), epsilon, calibrated=True), kind(ScaledScores(k), epsilon)
        assert float(better.rate / plain.rate) == pytest.approx(gain, abs=0.005)
        assert better.guarantee.epsilon == plain.guarantee.epsilon == epsilon


@pytest.mark.parametrize("kind", KINDS)
def test_two_candidates_become_randomised_response(kind: Any) -> None:
    law = kind(ScaledScores(2), 1.0, calibrated=True).pmf([0.2, 0.9])
    assert law[1] == pytest.approx(math.e / (math.e + 1.0), abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_the_corner_of_the_lowest_box_is_the_worst_of_all(kind: Any, rng: np.random.Generator) -> None:
    for _ in range(40):
        k = int(rng.integers(2, 9))
        centres = tuple(rng.uniform(0.0, rng.choice([0.1, 0.8, 2.0]), k))
        mechanism = kind(ClippedScores(centres, 1.0), float(rng.choice([0.3, 2.0, 9.0])))
        losses = [true_loss(mechanism, place) for place in range(k)]
        order = np.argsort(mechanism.scores.lows, kind="stable")
        falling = [losses[place] for place in order]
        assert all(a >= b - MP.mpf(10) ** -80 for a, b in pairwise(falling))


def test_another_corner_or_other_boxes_would_claim_too_little() -> None:
    source = ClippedScores((0.0, 0.25, 0.5), 1.0, steps=4)
    assert true_loss_of(HighestBox, source) > 4.0
    assert true_loss_of(EqualBoxes, source) > 3.5


def true_loss_of(kind: Any, source: ClippedScores) -> float:
    broken = kind(source, 3.0)
    base = ExponentialMechanism if kind is HighestBox else PermuteAndFlip
    low, width = np.array(source.centres) - 0.5, np.eye(3)
    corners = [*(low + width), *(low + 1.0 - width)]
    assert exact.worst_loss([base(source, 3.0, calibrated=True).pmf(point) for point in corners]) <= 3.0
    return exact.worst_loss([broken.pmf(point) for point in corners])


def test_boxes_a_width_apart_leave_permute_and_flip_nothing_to_gain() -> None:
    apart, nearly = (PermuteAndFlip(ClippedScores((0.0, gap), 1.0), 2.0, calibrated=True) for gap in (1.0, 0.9))
    assert apart.rate == PermuteAndFlip(apart.scores, 2.0).rate
    assert nearly.rate > PermuteAndFlip(nearly.scores, 2.0).rate


def test_very_many_unequal_boxes_keep_the_plain_rate() -> None:
    many = ClippedScores(tuple(0.001 * place for place in range(70)), 1.0)
    assert PermuteAndFlip(many, 9.0, calibrated=True).rate == PermuteAndFlip(many, 9.0).rate
    assert ExponentialMechanism(many, 9.0, calibrated=True).rate > ExponentialMechanism(many, 9.0).rate


@pytest.mark.parametrize("kind", KINDS)
def test_one_candidate_and_a_vanishing_epsilon_keep_the_plain_rate(kind: Any) -> None:
    tiny = [(ScaledScores(3), epsilon) for epsilon in (1e-13, selection.MARGIN, 1e-300, 1e-323, 5e-324)]
    tiny += [(ClippedScores((0.0, 0.3), 1.0), epsilon) for epsilon in (1e-300, 5e-324)]
    for source, epsilon in ((ScaledScores(1), 1.0), *tiny):
        assert kind(source, epsilon, calibrated=True).rate == kind(source, epsilon).rate


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("source", [ProfileScores(0.0, 1.0), VoteTotals()])
def test_only_known_boxes_can_be_calibrated(kind: Any, source: Any) -> None:
    with pytest.raises(InvalidParameter, match="public boxes"):
        kind(source, 1.0, calibrated=True)


def test_a_calibrated_exponential_mechanism_states_its_range_which_is_above_epsilon() -> None:
    mechanism = ExponentialMechanism(ScaledScores(4, steps=2), 1.0, calibrated=True)
    loss = mechanism.guarantee.loss
    assert loss is not None
    assert loss.kind is LossKind.BOUNDED_RANGE
    assert loss.value == pytest.approx(1.3457, abs=1e-4)
    inputs = [np.array(point) for point in product((0.0, 0.5, 1.0), repeat=4)]
    assert exact.loss_range([mechanism.pmf(point) for point in inputs]) == pytest.approx(loss.value, abs=1e-9)
    plain = ExponentialMechanism(ScaledScores(4), 1.0).guarantee.loss
    assert plain is not None
    assert plain.value == 1.0


def test_nodes_and_weights_are_right_to_thirteen_digits() -> None:
    for count in (2, 8, 17, 33):
        nodes, weights = unit_gauss_legendre(count)
        for node, weight in zip(nodes, weights, strict=True):
            true = MP.findroot(lambda x, n=count: MP.legendre(n, x), MP.mpf(2 * node - 1))
            slope = count * (true * MP.legendre(count, true) - MP.legendre(count - 1, true)) / (true**2 - 1)
            assert abs((1 + true) / 2 / MP.mpf(node) - 1) < 1e-13
            assert abs(1 / ((1 - true**2) * slope**2) / MP.mpf(weight) - 1) < 1e-13
        np.testing.assert_allclose(nodes, 1.0 - nodes[::-1], rtol=0.0, atol=2.0**-52)  # so they stand for 1 - t as well


def test_the_same_boxes_are_solved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first = PermuteAndFlip(ClippedScores((0.0, 0.123), 1.0), 1.5, calibrated=True).rate
    before = selection._solve_rate.cache_info().misses
    again = PermuteAndFlip(ClippedScores((7.0, 7.123), 1.0), 1.5, calibrated=True)  # the same boxes, elsewhere
    assert again.rate == pytest.approx(first)
    assert PermuteAndFlip(again.scores, 1.5, calibrated=True).rate == again.rate
    assert selection._solve_rate.cache_info().misses - before <= 1
