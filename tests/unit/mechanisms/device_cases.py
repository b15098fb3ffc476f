"""Cases of the mechanisms that choose on a device: top response, envelope, peeling, and selections from scores in boxes."""

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.audit.twins.private_selection import HalfWidth
from tacit.mechanisms import (
    ClippedScores,
    Envelope,
    ExponentialMechanism,
    LaplaceNoisyMax,
    Peeling,
    PermuteAndFlip,
    ProfileScores,
    ScaledScores,
    TopResponse,
)
from tests.contracts.mechanism import SECRET, MechanismCase
from tests.unit.mechanisms import reference
from tests.unit.mechanisms.cases import profiles

BAD_SHAPES: tuple[Any, ...] = (
    [],
    [[]],
    [SECRET],
    [SECRET] * 7,
    [[SECRET] * 4, [0.0] * 4],
    [[[SECRET]]],
    SECRET,
    ["4242 is not a number", 0.0, 0.0, 0.0],
    [[SECRET], [SECRET, 1.0]],
    [object(), SECRET],
    None,
)
LEVELS = (1.0, 0.5, 0.0)


class TopResponseCase(MechanismCase):
    epsilon = 1.2

    def make(self, epsilon: float) -> Any:
        return TopResponse(4, 2, epsilon)

    def twin(self) -> Any:
        class WeightOfOne(TopResponse):
            """The weight that leaves the d best together, not each, e^epsilon times as likely as one of the others."""

            best_weight = property(lambda self: super(WeightOfOne, self).best_weight * self.d)  # type: ignore[assignment]

        return WeightOfOne(4, 2, self.epsilon)

    def pairs(self) -> Iterable[tuple[Any, Any]]:
        return profiles(4, LEVELS)

    def reference(self, mechanism: Any, raw: Any) -> NDArray[np.float64]:
        return reference.top_response(raw, 2, self.epsilon)

    def bad_parameters(self) -> Sequence[Callable[[], object]]:
        return [
            *(lambda m=m: TopResponse(m, 1, 1.0) for m in (0, -3, 2.5, True, None, (1 << 20) + 1)),
            *(lambda d=d: TopResponse(4, d, 1.0) for d in (0, -1, 5, 1.5, True, None)),
            lambda: TopResponse(4, 2, 40.5),
        ]

    def bad_inputs(self) -> Sequence[Any]:
        return BAD_SHAPES


class EnvelopeCase(TopResponseCase):
    floors = tuple(round(share * 2**32) for share in (0.1, 0.2, 0.05, 0.15))

    def make(self, epsilon: float) -> Any:
        return Envelope(self.floors, epsilon)

    def twin(self) -> Any:
        class RaisedByTwiceEpsilon(Envelope):
            """May raise a floor by e^(2 epsilon)."""

            raises = property(lambda self: Envelope(self.floors, 2 * self.epsilon).raises)  # type: ignore[assignment]

        return RaisedByTwiceEpsilon(self.floors, self.epsilon)

    def reference(self, mechanism: Any, raw: Any) -> NDArray[np.float64]:
        return reference.envelope(raw, [Fraction(floor, 2**32) for floor in self.floors], self.epsilon)

    def bad_parameters(self) -> Sequence[Callable[[], object]]:
        return [
            *(lambda bad=bad: Envelope((bad, 1 << 31), 1.0) for bad in (0, -1, 0.5, True, None, (1 << 32) + 1)),
            lambda: Envelope((), 1.0),
            lambda: Envelope((1 << 31, (1 << 31) + 1), 1.0),  # more than 1
            lambda: Envelope((1 << 30, 1 << 29), 0.9),  # 3/8 e^0.9 is less than 1
            lambda: Envelope((1,) * 10_001, 40.0),
            lambda: Envelope(self.floors, 40.5),
        ]


class PeelingCase(TopResponseCase):
    """Two slots of four candidates by top response: the claim is attained."""

    epsilon = 2.0
    slots = 2

    def make(self, epsilon: float) -> Any:
        return Peeling(TopResponse(4, 1, epsilon), self.slots)

    def twin(self) -> Any:
        class EveryPickAtFullPrice(Peeling):
            """Spends all of epsilon at every pick."""

            each = property(lambda self: self.epsilon)  # type: ignore[assignment]

        return EveryPickAtFullPrice(TopResponse(4, 1, self.epsilon), self.slots)

    def reference(self, mechanism: Any, raw: Any) -> NDArray[np.float64]:
        return reference.peeled(lambda scores: reference.top_response(scores, 1, self.epsilon / 2), raw, self.slots)

    def outcomes(self, mechanism: Any, raw: Any, noise: Any, draws: int) -> NDArray[np.int64]:
        picks = mechanism.release_many(np.tile(raw, (draws, 1)), noise).value
        place = {order: index for index, order in enumerate(mechanism.outcomes())}
        return np.array([place[tuple(order)] for order in picks.tolist()])

    def bad_parameters(self) -> Sequence[Callable[[], object]]:
        rule = TopResponse(4, 1, 1.0)
        return [
            *(lambda slots=slots: Peeling(rule, slots) for slots in (0, -1, 5, 1.5, True, None)),
            lambda: Peeling(
                PermuteAndFlip(ProfileScores(0.0, 1.0), 1.0), 2
            ),  # how many candidates there are is not known
            lambda: Peeling(Envelope(EnvelopeCase.floors, 2.0), 2),  # type: ignore[arg-type]
            lambda: Peeling(None, 2),  # type: ignore[arg-type]
        ]


class PeelingScaledCase(PeelingCase):
    """Scores are scaled anew for the second slot."""

    epsilon = 6.0

    def make(self, epsilon: float) -> Any:
        return Peeling(PermuteAndFlip(ScaledScores(4, steps=2), epsilon), self.slots)

    def twin(self) -> Any:
        class MonotoneByMistake(ScaledScores):
            monotone = property(lambda self: True)  # type: ignore[assignment]

            def among(self, left: Sequence[int]) -> ScaledScores:
                return MonotoneByMistake(len(left), self.steps)

        return Peeling(PermuteAndFlip(MonotoneByMistake(4, steps=2), self.epsilon), self.slots)

    def reference(self, mechanism: Any, raw: Any) -> NDArray[np.float64]:
        rate = Fraction(self.epsilon) / 2 / 4
        return reference.peeled(lambda scores: reference.permute_and_flip(reference.scaled(scores, 2), rate), raw, 2)

    def documented_loss(self) -> float:
        return self.worst_loss(self.make(self.epsilon))  # no closed form; the audit has an independent enumeration


class ScaledExponentialCase(TopResponseCase):
    """Scaled scores of three candidates, calibrated: the claim is attained."""

    epsilon = 3.0

    def make(self, epsilon: float) -> Any:
        return ExponentialMechanism(ScaledScores(3, steps=2), epsilon, calibrated=True)

    def twin(self) -> Any:
        class TenPercentMore(ExponentialMechanism):
            rate = property(lambda self: super(TenPercentMore, self).rate * Fraction(11, 10))  # type: ignore[assignment]
            guarantee = property(lambda self: ScaledExponentialCase().make(self.epsilon).guarantee)  # type: ignore[assignment]

        return TenPercentMore(ScaledScores(3, steps=2), self.epsilon, calibrated=True)

    def pairs(self) -> Iterable[tuple[Any, Any]]:
        return profiles(3, LEVELS)

    def chosen_input(self) -> Any:
        return [1.0, 0.5, 0.0]

    def reference(self, mechanism: Any, raw: Any) -> NDArray[np.float64]:
        return reference.exponential(reference.scaled(raw, 2), mechanism.rate)

    def bad_parameters(self) -> Sequence[Callable[[], object]]:
        make = type(self.make(1.0))
        return [
            *(lambda bad=bad: make(ScaledScores(bad), 1.0) for bad in (0, -1, 1.5, True, None, 10_001)),
            *(lambda bad=bad: make(ScaledScores(2, steps=bad), 1.0) for bad in (0, 1.5, (1 << 24) + 1)),
            *(
                lambda bad=bad: make(ClippedScores((0.0, bad), 1.0), 1.0)
                for bad in (math.nan, math.inf, None, "1", 2e9)
            ),
            *(
                lambda bad=bad: make(ClippedScores((0.0, 1.0), bad), 1.0)
                for bad in (0.0, -1.0, math.nan, math.inf, 1e-12)
            ),
            lambda: make(ClippedScores((), 1.0), 1.0),
            lambda: make(ClippedScores((1e308, -1e308), 1e308), 1.0),
            lambda: make(ClippedScores((0.0,), 5e-324), 1.0),
        ]


class ClippedPermuteAndFlipCase(ScaledExponentialCase):
    """Clipped scores around centres that differ, calibrated: the claim is attained. Scores beyond the edges are cut."""

    centres = (0.0, 0.25, 0.5)

    def make(self, epsilon: float) -> Any:
        return PermuteAndFlip(ClippedScores(self.centres, 1.0, steps=4), epsilon, calibrated=True)

    def twin(self) -> Any:
        class PlainHalfWidth(HalfWidth):
            """Half of the width for the sensitivity."""

        return PermuteAndFlip(PlainHalfWidth(self.centres, 1.0, steps=4), self.epsilon)

    def pairs(self) -> Iterable[tuple[Any, Any]]:
        return profiles(3, (-9.0, -0.5, 0.0, 0.6, 1.0))

    def chosen_input(self) -> Any:
        return [-0.5, 0.6, 1.0]

    def reference(self, mechanism: Any, raw: Any) -> NDArray[np.float64]:
        steps = [
            round(4 * c) + math.floor(4 * (min(max(s, c - 0.5), c + 0.5) - c + 0.5))
            for s, c in zip(raw, self.centres, strict=True)
        ]
        return reference.permute_and_flip(steps, mechanism.rate)


class ScaledNoisyMaxCase(ScaledExponentialCase):
    """Laplace noise is never calibrated."""

    def make(self, epsilon: float) -> Any:
        return LaplaceNoisyMax(ScaledScores(2, steps=2), epsilon)

    def twin(self) -> Any:
        class MonotoneByMistake(ScaledScores):
            monotone = property(lambda self: True)  # type: ignore[assignment]

        return LaplaceNoisyMax(MonotoneByMistake(2, steps=2), self.epsilon)

    def pairs(self) -> Iterable[tuple[Any, Any]]:
        return profiles(2, LEVELS)

    def chosen_input(self) -> Any:
        return [1.0, 0.0]

    def reference(self, mechanism: Any, raw: Any) -> NDArray[np.float64]:
        return reference.noisy_max(reference.scaled(raw, 2), 4 / Fraction(self.epsilon), reach=50)

    def documented_loss(self) -> float:
        from tests.unit.mechanisms.cases import NoisyMaxCase

        return NoisyMaxCase().documented_loss()  # the corners of the unit square are the same
