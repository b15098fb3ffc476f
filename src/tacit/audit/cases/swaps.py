"""Private swaps: every transcript of few candidates, points on a line and the same with one more."""

import math
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.audit import check, distribution, empirical, exact
from tacit.audit.cases import Case, Draws, FromOutside, Twin
from tacit.audit.findings import By, Finding, Measure
from tacit.audit.twins.prototypes import SwapsPaidOnce
from tacit.guarantees import Guarantee, Release
from tacit.mechanisms import LocalSwaps
from tacit.mechanisms.local_swaps import FARTHEST
from tacit.mechanisms.noise import Noise
from tacit.mechanisms.partition import HALF_SIDE

_NAME = LocalSwaps.name
_CANDIDATES = (-HALF_SIDE, 0, HALF_SIDE)
_LINES: tuple[tuple[int, ...], ...] = ((), (0, 0, -HALF_SIDE))
_MORE = (30_000, HALF_SIDE)


@dataclass(frozen=True)
class _OfTwo:
    """One centre of two candidates, both ends of the line."""

    rule: LocalSwaps

    @property
    def name(self) -> str:
        return self.rule.name

    @property
    def guarantee(self) -> Guarantee:
        return self.rule.guarantee

    def release(self, points: NDArray[np.int64], noise: Noise) -> Release[NDArray[np.int64]]:
        return self.rule.release(points, _column((-HALF_SIDE, HALF_SIDE)), noise)


def cases() -> list[Case]:
    return [
        Case(_NAME, By.EXACT, _enumerated(LocalSwaps(2, 1.0, 2))),
        Case(_NAME, By.EXACT, _enumerated(LocalSwaps(1, 3.0, 1))),
        Case(_NAME, By.DISTRIBUTION, _sampler),
        *(look.case() for look in from_outside()),
    ]


def twins() -> list[Twin]:
    return [
        Twin(
            SwapsPaidOnce.name,
            _NAME,
            "the epsilon of all swaps is spent by each",
            _enumerated(SwapsPaidOnce(LocalSwaps(2, 1.0, 2))),
        ),
        *(look.twin() for look in from_outside()),
    ]


def from_outside() -> list[FromOutside]:
    return [FromOutside(_OfTwo(LocalSwaps(1, 2.0, 1)), _empirical)]


def _column(line: tuple[int, ...]) -> NDArray[np.int64]:
    return np.array(line, dtype=np.int64).reshape(-1, 1)


def _enumerated(mechanism: Any) -> Any:
    def run(noise: Noise, draws: Draws) -> Finding:
        real: LocalSwaps = getattr(mechanism, "real", mechanism)
        loss = reference = 0.0
        for line in _LINES:
            for point in _MORE:
                lines = (line, (*line, point))
                laws = [mechanism.pmf(_column(one), _column(_CANDIDATES)) for one in lines]
                loss = max(loss, exact.worst_loss(laws))
                reference = max(reference, exact.worst_loss([_slow_law(real, one) for one in lines]))
        return check.judged(
            mechanism,
            f"{len(_CANDIDATES)} candidates, {real.k} centre{'s' * (real.k > 1)}, {real.swaps} swaps, one point added",
            Measure.EPSILON,
            loss,
            reference=reference,
            note="losses move together, and the normaliser with them",
        )

    return run


def _slow_law(mechanism: LocalSwaps, line: tuple[int, ...]) -> list[float]:
    """The same law by brute force: the loss of every set of centres anew, user by user."""
    rate = mechanism.epsilon / (mechanism.swaps + 1) / FARTHEST
    places = range(len(_CANDIDATES))

    def loss(centres: tuple[int, ...]) -> int:
        return sum(min((y - _CANDIDATES[c]) ** 2 for c in centres) for y in line)

    def descend(centres: tuple[int, ...], losses: list[int], chance: float) -> list[float]:
        if len(losses) == mechanism.swaps:
            return [chance * p for p in _softmax([-rate * one for one in losses])]
        after = [(*centres[:out], into, *centres[out + 1 :]) for out in range(mechanism.k) for into in places]
        losses_after = [loss(one) for one in after]
        chances = _softmax([-rate * one for one in losses_after])
        return [
            end
            for one, its, p in zip(after, losses_after, chances, strict=True)
            for end in descend(one, [*losses, its], chance * p)
        ]

    starts = list(product(places, repeat=mechanism.k))
    return [end for start in starts for end in descend(start, [], 1.0 / len(starts))]


def _softmax(exponents: list[float]) -> list[float]:
    weights = [math.exp(one - max(exponents)) for one in exponents]
    return [weight / math.fsum(weights) for weight in weights]


def _released_law(mechanism: LocalSwaps, line: tuple[int, ...]) -> NDArray[np.float64]:
    """Of the one centre that is released, of a mechanism with one centre."""
    law = np.zeros(len(_CANDIDATES))
    for transcript, chance in zip(
        mechanism.outcomes(len(_CANDIDATES)), mechanism.pmf(_column(line), _column(_CANDIDATES)), strict=True
    ):
        swaps, (last,) = transcript[1:-1], transcript[-1]
        law[swaps[last][1]] += chance
    return law


def _sampler(noise: Noise, draws: Draws) -> Finding:
    """Which centre is released, of points that are far apart, against its law."""
    mechanism, line = LocalSwaps(1, 3.0, 2), (HALF_SIDE,) * 2
    counts = distribution.counts_of(_drawn(mechanism, line, noise, draws.single), len(_CANDIDATES))

    def fit(law: LocalSwaps) -> float:
        return distribution.p_value(counts, _released_law(law, line))

    more = (*line, -HALF_SIDE)
    return check.sampled(
        mechanism,
        fit(mechanism),
        fit(distribution.off_by(mechanism, 1.3)),
        loss=exact.worst_loss([_released_law(mechanism, line), _released_law(mechanism, more)]),
        draws=int(counts.sum()),
        case="one centre of three candidates, 2 swaps",
        off="30 %",
    )


def _drawn(mechanism: Any, line: tuple[int, ...], noise: Noise, count: int) -> NDArray[np.int64]:
    points, candidates = _column(line), _column(_CANDIDATES)
    return np.array([int(mechanism.release(points, candidates, noise).value[0]) for _ in range(count)])


def _empirical(mechanism: Any, noise: Noise, draws: Draws) -> Finding:
    """Nobody, then a point at one end: which candidate is the centre?"""
    first, second = (
        np.array([int(mechanism.release(_column(line), noise).value[0]) for _ in range(2 * draws.single)])
        for line in ((), (HALF_SIDE,))
    )
    return check.from_below(mechanism, empirical.lower_bound_by_label(first, second), case="one point added")
