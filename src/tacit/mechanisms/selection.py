"""Selection of one candidate by private scores: exponential mechanism, permute-and-flip and noisy max.

The exponential mechanism draws item i with probability proportional to e^(rate * score_i), in one exact draw; adding Gumbel
noise and taking the largest has the same law (docs/proofs/exponential.md). Permute-and-flip walks through the candidates in
random order and takes one with probability e^(-rate * (best - score)). It has the law of exponential noise and is never worse
than the exponential mechanism at equal epsilon. The order of the walk and its coins are independent, so tossing all coins and
taking one of the heads at random is the same (docs/proofs/permute-and-flip.md). Noisy max adds discrete Laplace noise to every
score and names the largest, of ties the first (docs/proofs/noisy-max.md).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.checks import keep, positive
from tacit.errors import InvalidParameter
from tacit.guarantees import ONE_PROFILE, Guarantee, Loss, LossKind, Release, pure
from tacit.guarantees.arithmetic import up
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise, released
from tacit.mechanisms.samplers.coins import below, below_each, exponential_coins, few_exponential_coins
from tacit.mechanisms.samplers.integers import (
    discrete_laplace_cdf,
    discrete_laplace_pmf,
    require_drawable_discrete_laplace,
    sample_discrete_laplace,
)
from tacit.mechanisms.samplers.subsets import choose, choose_one
from tacit.mechanisms.scores import FEW, BoxedScores, Scores, ScoreSource, many_decisions, one_decision
from tacit.models.quadrature import unit_gauss_legendre

_MOST_TERMS = 1 << 25  # of a law that is summed up


@dataclass(frozen=True)
class ExponentialMechanism:
    """Selects one candidate; its privacy loss has range epsilon, so it composes at epsilon^2/8 zCDP.

    With ``calibrated`` it uses the largest rate whose true loss over the public boxes is epsilon. The range is then above epsilon.
    """

    name: ClassVar[str] = "exponential"
    scores: ScoreSource
    epsilon: float  # nats
    calibrated: bool = False

    def __post_init__(self) -> None:
        _keep_checked(self)

    @cached_property
    def guarantee(self) -> Guarantee:
        """What one selection promises: epsilon, in nats, for what the scores protect; composes by its bounded range."""
        # the losses of two outputs differ by at most 2 * rate * sensitivity; that is epsilon, unless calibrated
        reach = up(2 * self.rate * self.scores.sensitivity) if self.calibrated else self.epsilon
        return Guarantee(self.epsilon, self.scores.protects, proof=self.name, loss=Loss(LossKind.BOUNDED_RANGE, reach))

    @cached_property
    def rate(self) -> Fraction:
        """The exponent of one grid step: epsilon/sensitivity if all scores move the same way, else half of it."""
        return _rate_of(self, _exponential_loss)

    @cached_property
    def _rate(self) -> float:
        return float(self.rate)

    def pmf(self, raw: Scores) -> NDArray[np.float64]:
        """The probability of every candidate."""
        return softmax(self.scores.integers(raw), self.rate)

    def release(self, raw: Scores, noise: Noise = SYSTEM_NOISE) -> Release[int]:
        """The index of the chosen candidate."""
        row = one_decision(self.scores, raw)
        if row.size > FEW:
            return released(int(gumbel_choice(row, self.rate, noise)[0]), self.guarantee, noise)
        scores = row[0].tolist()
        best, rate = max(scores), self._rate
        exponents = [(best - score) * rate for score in scores]
        chosen = choose_one(exponents, lambda: [(best - score) * self.rate for score in scores], noise)
        return released(chosen, self.guarantee, noise)

    def release_many(self, raw: ArrayLike, noise: Noise = SYSTEM_NOISE) -> Release[NDArray[np.int64]]:
        """One choice for each row; the guarantee is that of each row's user."""
        chosen = [gumbel_choice(block, self.rate, noise) for block in many_decisions(self.scores, raw)]
        return released(np.concatenate(chosen), self.guarantee, noise)


def selection_rate(scores: ScoreSource, epsilon: float) -> Fraction:
    """The exponent per grid step that spends epsilon: epsilon/sensitivity for monotone scores, half of that otherwise."""
    return Fraction(epsilon) / (scores.sensitivity * (1 if scores.monotone else 2))


@np.errstate(all="ignore")  # Silence numpy: an error could reveal that an item is far behind
def gumbel_choice(integers: NDArray[np.int64], rate: Fraction, noise: Noise) -> NDArray[np.int64]:
    """One item for every row of whole-number scores, drawn exactly with probability proportional to e^(rate * score)."""
    behind = integers.max(axis=1, keepdims=True) - integers
    return choose(behind * float(rate), lambda row: [int(steps) * rate for steps in behind[row]], noise)


def softmax(scores: NDArray[Any], rate: Fraction | float = 1.0) -> NDArray[np.float64]:
    """The law of one choice in every row: proportional to e^(rate * score)."""
    weight = np.exp((scores - scores.max(axis=-1, keepdims=True)) * float(rate))
    law: NDArray[np.float64] = weight / weight.sum(axis=-1, keepdims=True)
    return law


@dataclass(frozen=True)
class PermuteAndFlip:
    """Selects one candidate: noisy max with exponential noise.

    With ``calibrated`` it uses the largest rate whose true loss over the public boxes is epsilon.
    """

    name: ClassVar[str] = "permute-and-flip"
    scores: ScoreSource
    epsilon: float  # nats
    calibrated: bool = False

    def __post_init__(self) -> None:
        _keep_checked(self)

    @cached_property
    def guarantee(self) -> Guarantee:
        """What one selection promises: epsilon, in nats, for what the scores protect."""
        return pure(self.epsilon, self.scores.protects, proof=self.name)

    @cached_property
    def rate(self) -> Fraction:
        """The exponent of one grid step."""
        return _rate_of(self, _permute_and_flip_loss)

    @cached_property
    def _rate(self) -> float:
        return float(self.rate)

    def pmf(self, raw: Scores) -> NDArray[np.float64]:
        """The probability of every candidate: a_i * integral over t in [0,1] of the product of (1 - a_j t), j != i.

        The integrand is a polynomial of degree k - 1, for which Gauss-Legendre quadrature with k/2 + 1 nodes is exact.
        """
        integers = self.scores.integers(raw)
        flip = np.exp((integers - integers.max(axis=-1, keepdims=True)) * self._rate)
        probability = np.zeros_like(flip)
        for node, weight in zip(*unit_gauss_legendre(flip.shape[-1] // 2 + 1), strict=True):
            survives = 1.0 - flip * node  # above 0: node < 1
            probability += weight * flip * np.prod(survives, axis=-1, keepdims=True) / survives
        return np.asarray(probability, dtype=np.float64)

    def release(self, raw: Scores, noise: Noise = SYSTEM_NOISE) -> Release[int]:
        """The index of the chosen candidate."""
        row = one_decision(self.scores, raw)
        chosen = self._choose_one(row[0].tolist(), noise) if row.size <= FEW else int(self._choose(row, noise)[0])
        return released(chosen, self.guarantee, noise)

    def release_many(self, raw: ArrayLike, noise: Noise = SYSTEM_NOISE) -> Release[NDArray[np.int64]]:
        """One choice for each row; the guarantee is that of each row's user."""
        chosen = [self._choose(block, noise) for block in many_decisions(self.scores, raw)]
        return released(np.concatenate(chosen), self.guarantee, noise)

    def _choose_one(self, row: list[int], noise: Noise) -> int:
        best, rate = max(row), self._rate
        heads = few_exponential_coins(
            [(best - score) * rate for score in row], lambda i: (best - row[i]) * self.rate, noise
        )
        standing = [item for item, head in enumerate(heads) if head]
        return standing[below(len(standing), noise)]

    def _choose(self, integers: NDArray[np.int64], noise: Noise) -> NDArray[np.int64]:
        behind = integers.max(axis=1, keepdims=True) - integers
        heads = exponential_coins(behind * self._rate, lambda i: int(behind.flat[i]) * self.rate, noise)
        counts = heads.sum(axis=1)  # at least 1: the best candidate's coin is always heads
        position = np.cumsum(counts) - counts + below_each(counts, noise)  # of one of the row's heads among all heads
        return np.asarray(heads.nonzero()[1][position], dtype=np.int64)


@dataclass(frozen=True)
class LaplaceNoisyMax:
    """Selects one candidate. Permute-and-flip selects better at the same epsilon; this mechanism is here for comparison."""

    name: ClassVar[str] = "noisy-max"
    scores: ScoreSource
    epsilon: float  # nats

    def __post_init__(self) -> None:
        keep(self, epsilon=positive("epsilon", self.epsilon))
        require_drawable_discrete_laplace(self.scale)

    @cached_property
    def guarantee(self) -> Guarantee:
        """What one selection promises: epsilon, in nats, for what the scores protect."""
        return pure(self.epsilon, self.scores.protects, proof=self.name)

    @cached_property
    def scale(self) -> Fraction:
        """The scale of the noise in grid steps: twice the sensitivity over epsilon, once if all scores move the same way."""
        return 1 / selection_rate(self.scores, self.epsilon)

    def pmf(self, raw: Scores) -> NDArray[np.float64]:
        """The probability of every candidate: a sum over the winner's noisy score. Raises InvalidParameter on very fine grids."""
        integers = self.scores.integers(raw)
        if integers.ndim == 2:
            return np.stack([self._law(row) for row in integers])
        return self._law(integers)

    def release(self, raw: Scores, noise: Noise = SYSTEM_NOISE) -> Release[int]:
        """The index of the chosen candidate."""
        return released(int(self._choose(one_decision(self.scores, raw), noise)[0]), self.guarantee, noise)

    def release_many(self, raw: ArrayLike, noise: Noise = SYSTEM_NOISE) -> Release[NDArray[np.int64]]:
        """One choice for each row; the guarantee is that of each row's user."""
        chosen = [self._choose(block, noise) for block in many_decisions(self.scores, raw)]
        return released(np.concatenate(chosen), self.guarantee, noise)

    def _choose(self, integers: NDArray[np.int64], noise: Noise) -> NDArray[np.int64]:
        noisy = integers + sample_discrete_laplace(self.scale, integers.size, noise).reshape(integers.shape)
        chosen: NDArray[np.int64] = np.argmax(noisy, axis=1)  # the first of the largest: the proof needs a fixed rule
        return chosen

    def _law(self, row: NDArray[np.int64]) -> NDArray[np.float64]:
        scale = self.scale
        reach = int(45 * scale) + 2  # beyond it less than e^-45 of the noise
        first, last = int(row.min()) - reach, int(row.max()) + reach
        require_few_terms((last - first) * row.size)
        value = np.arange(first, last + 1)[:, None]
        at_most = discrete_laplace_cdf(value - row, scale)  # candidate j's noisy score <= value
        less = discrete_laplace_cdf(value - row - 1, scale)
        law = np.empty(row.size)
        for i in range(row.size):
            # earlier candidates must be strictly less, later ones may tie
            others = np.concatenate([less[:, :i], at_most[:, i + 1 :]], axis=1).prod(axis=1)
            law[i] = np.sum(discrete_laplace_pmf(value[:, 0] - row[i], scale) * others)
        return law


def require_few_terms(terms: int) -> None:
    """Raises InvalidParameter for a law with too many terms to sum up."""
    if terms > _MOST_TERMS:
        raise InvalidParameter(
            "the law has too many terms on so fine a grid: choose fewer steps. The sampler has no such limit."
        )


@dataclass(frozen=True)
class PublicChoice:
    """Fills ``slots`` with different candidates of ``m`` without any private score, so it costs nothing.

    ``uniform`` draws them. Otherwise they are the first ones in the public order. Proof: docs/proofs/private-selection.md.
    """

    m: int
    slots: int = 1
    uniform: bool = False

    @property
    def guarantee(self) -> Guarantee:
        """A choice that reads nothing private: epsilon is 0."""
        return pure(0.0, ONE_PROFILE, proof="private-selection")

    def release(self, noise: Noise = SYSTEM_NOISE) -> Release[tuple[int, ...]]:
        """The indices of the chosen candidates, one for each slot."""
        left = list(range(self.m))
        chosen = tuple(left.pop(below(len(left), noise) if self.uniform else 0) for _ in range(self.slots))
        return released(chosen, self.guarantee, noise)


# Calibration: how large the rate of a selection may be, exactly. Its true loss over the public boxes is solved for epsilon.
#
# The loss of a candidate between two profiles is largest between opposite corners of the boxes (its own score at one edge, all
# others at the other), and largest of all for the candidate whose box lies lowest: docs/proofs/private-selection.md. With
# lambda = rate * steps, and g_j >= 0 the distance of the j-th other box from the lowest one in widths, that loss is
#
#     exponential       2 lambda + ln(1 + T e^-lambda) - ln(1 + T e^lambda),  1/T = sum of e^(lambda g_j)
#     permute-and-flip  lambda (1 + G) + ln I(1) - ln I(G),  G = max g_j < 1,  I(x) = integral of prod(1 - e^(-lambda(x - g_j)) t),
#                       t from 0 to 1; for equal boxes 2 lambda + ln(1 - (1 - e^-lambda)^k); 2 lambda if G >= 1
#
# It rises with lambda and lies between lambda and 2 lambda, so lambda lies between epsilon/2 and epsilon.
#
# Floats. No difference of near numbers is formed: 1 - a t is (1 - a) + a (1 - t), both terms at least 0, and lambda - ln 1/T
# enters through ln(1 + e^x), which is no steeper than 1. With u = 2^-53, k others, and exponents lambda g_j of which only those
# up to about lambda count, the errors of the exponential loss add up to less than (3k + 8 lambda + 40) u. The products of
# permute-and-flip have at most 64 factors of 4 u each, and nodes and weights are right to 1e-13 (tests check them with many
# digits). MARGIN is several times as much and is taken off epsilon before it is solved for: the loss at the result is truly at
# most epsilon.

MARGIN = 2.0**-35  # of epsilon, at least 2^-35 itself
_MOST_FACTORS = 64  # of permute-and-flip over unequal boxes; beyond it there is almost nothing to gain
_CLOSE = 2.0**-40

LossOfRate = Callable[[float], float]  # of lambda
LossOfGaps = Callable[[tuple[float, ...]], LossOfRate | None]  # None if nothing is gained


def _keep_checked(rule: ExponentialMechanism | PermuteAndFlip) -> None:
    keep(rule, epsilon=positive("epsilon", rule.epsilon))
    if rule.calibrated and not hasattr(rule.scores, "lows"):
        raise InvalidParameter("only scores in public boxes (scaled, or clipped around centres) can be calibrated.")


def _rate_of(rule: ExponentialMechanism | PermuteAndFlip, loss_of: LossOfGaps) -> Fraction:
    """The exponent of one grid step; calibrated, the largest known one at which ``rule`` spends epsilon over its boxes."""
    if not rule.calibrated:
        return selection_rate(rule.scores, rule.epsilon)
    source = cast(BoxedScores, rule.scores)
    steps, lowest = source.sensitivity, min(source.lows)
    plain = Fraction(rule.epsilon) / (2 * steps)
    gaps = sorted((low - lowest) / steps for low in source.lows)[1:]  # the others', in widths
    return max(plain, Fraction(_solve_rate(loss_of, tuple(gaps), rule.epsilon)) / steps)


@lru_cache(maxsize=1024)  # all arguments are public, and every decision asks for it
def _solve_rate(loss_of: LossOfGaps, gaps: tuple[float, ...], epsilon: float) -> float:
    """A lambda whose loss is at most epsilon, and within three margins of it; 0 if nothing is gained."""
    margin = MARGIN * max(1.0, epsilon)
    target = epsilon - margin
    if not target > 0.0:  # no loss is below it, and epsilon / 2 may be 0 in floats
        return 0.0
    loss = loss_of(gaps) if gaps else None
    low, high = epsilon / 2.0, epsilon
    if loss is None or not (below := loss(low) - target) <= 0.0:
        return 0.0
    if (above := loss(high) - target) <= 0.0:
        return high
    # false position with the Illinois rule; the loss of the result was computed, wherever the search went
    reached, last = below, 0
    for _ in range(100):
        if reached >= -margin or high - low <= _CLOSE * high:
            break
        middle = low + (high - low) * min(max(below / (below - above), 2.0**-30), 1.0 - 2.0**-30)
        value = loss(middle) - target
        if value <= 0.0:
            above = above / 2.0 if last < 0 else above
            low, reached, below, last = middle, value, value, -1
        else:
            below = below / 2.0 if last > 0 else below
            high, above, last = middle, value, 1
    return low


def _exponential_loss(gaps: tuple[float, ...]) -> LossOfRate:
    distance = np.array(gaps)

    def loss(rate: float) -> float:
        most = rate * gaps[-1]
        inverse = most + math.log(float(np.exp(rate * distance - most).sum()))  # ln 1/T, at least 0
        return 2.0 * rate + math.log1p(math.exp(-rate - inverse)) - _softplus(rate - inverse)

    return loss


def _softplus(x: float) -> float:
    """ln(1 + e^x)."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def _permute_and_flip_loss(gaps: tuple[float, ...]) -> LossOfRate | None:
    most = gaps[-1]
    if most == 0.0:
        return lambda rate: 2.0 * rate + _log_any_head(rate, len(gaps) + 1)
    if most >= 1.0 or len(gaps) > _MOST_FACTORS:
        return None
    distance = np.array(gaps)
    nodes, weights = unit_gauss_legendre(len(gaps) // 2 + 1)

    behind = np.stack([1.0 - distance, most - distance])

    def loss(rate: float) -> float:
        head, tail = np.exp(-rate * behind), -np.expm1(-rate * behind)  # a and 1 - a
        # the nodes are symmetric, so they serve as 1 - t as well as t
        first, second = (tail[:, None] + nodes[:, None] * head[:, None]).prod(axis=2) @ weights
        return rate * (1.0 + most) + math.log(first / second)

    return loss


def _log_any_head(rate: float, k: int) -> float:
    """ln(1 - (1 - e^-rate)^k): the log of the probability that any of k coins of e^-rate is heads."""
    if rate > 600.0:  # e^-rate is 0 in floats; 1 - (1 - a)^k <= k a, and hardly below it
        return math.log(k) - rate
    tails = k * (math.log(-math.expm1(-rate)) if rate < 0.7 else math.log1p(-math.exp(-rate)))
    return math.log1p(-math.exp(tails)) if tails < -0.7 else math.log(-math.expm1(tails))
