"""Cases of natural slates and subsets for the contract: all tables of few likes, and a reference in fractions."""

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import combinations, permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.guarantees import Relation
from tacit.mechanisms import NaturalSlate, NaturalSubset
from tests.contracts.mechanism import SECRET, MechanismCase
from tests.unit.mechanisms.cases import BAD_ROWS, added, replaced

STEPS = 1 << 16


def places(mechanism: Any, chosen: Iterable[Any]) -> NDArray[np.int64]:
    """Slates as their places in the list of outcomes."""
    place = {slate: index for index, slate in enumerate(mechanism.outcomes())}
    return np.array([place[tuple(slate.tolist())] for slate in chosen])


def cut(row: Sequence[float]) -> list[int]:
    """A row of 0/1 likes in steps, by the slow way: one over the root of their number, rounded down against a root rounded up."""
    likes = sum(row)
    if likes == 0:
        return [0] * len(row)
    square = int(likes) * STEPS * STEPS
    root = math.isqrt(square) + (math.isqrt(square) ** 2 < square)
    return [int(like) * (STEPS if likes == 1 else STEPS * STEPS // root) for like in row]


def kernel(rows: Any, items: int, sigma: Fraction) -> list[list[Fraction]]:
    """sigma I + sum of c c^T, written out; one is 2^32 squared steps."""
    found = [[sigma * (i == j) for j in range(items)] for i in range(items)]
    for row in np.asarray(rows).tolist():
        steps = cut(row)
        for i in range(items):
            for j in range(items):
                found[i][j] += Fraction(steps[i] * steps[j], STEPS * STEPS)
    return found


def minor(matrix: list[list[Fraction]], slate: tuple[int, ...]) -> Fraction:
    total = Fraction(0)
    for order in permutations(slate):
        swaps = sum(order[i] > order[j] for i in range(len(order)) for j in range(i + 1, len(order)))
        total += (-1) ** swaps * math.prod((matrix[i][j] for i, j in zip(slate, order, strict=True)), start=Fraction(1))
    return total


def jitter(epsilon: float) -> Fraction:
    """1 / (e^epsilon - 1) in squared steps, rounded up, by floats: right to within a step."""
    return Fraction(math.ceil(STEPS * STEPS / math.expm1(epsilon)), STEPS * STEPS)


class NaturalSlateCase(MechanismCase):
    """Two of three items, tables of up to two users and one more."""

    epsilon = 1.0
    relation = Relation.ADD_REMOVE

    def make(self, epsilon: float) -> Any:
        return NaturalSlate(3, 2, epsilon, relation=self.relation)

    def twin(self) -> Any:
        class HalfTheNorm(NaturalSlate):
            """Takes half a row's norm for the whole of it: a quarter of the jitter."""

            sigma_in_squares = property(lambda self: super(HalfTheNorm, self).sigma_in_squares // 4)  # type: ignore[assignment]

        return HalfTheNorm(3, 2, self.epsilon, relation=self.relation)

    def pairs(self) -> Iterable[tuple[Any, Any]]:
        return added(2, 3)

    def reference(self, mechanism: Any, raw: Any) -> NDArray[np.float64]:
        matrix = kernel(raw, 3, jitter(self.epsilon))
        weights = [minor(matrix, slate) for slate in combinations(range(3), 2)]
        return np.array([float(weight / sum(weights)) for weight in weights])

    def documented_loss(self) -> float:
        # a first user likes one item: the slate of the other two keeps its weight, and the normaliser rises by 1 + 2x/3
        return math.log1p(2.0 / 3.0 * math.expm1(self.epsilon))

    def chosen_input(self) -> Any:
        return np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]])

    def outcomes(self, mechanism: Any, raw: Any, noise: Any, draws: int) -> NDArray[np.int64]:
        return places(mechanism, mechanism.prepare(raw).release_many(draws, noise).value)

    def bad_parameters(self) -> Sequence[Callable[[], object]]:
        return [
            *(lambda n=n: NaturalSlate(n, 1, 1.0) for n in (0, -1, 1.5, True, None, (1 << 22) + 1)),
            *(lambda k=k: NaturalSlate(5, k, 1.0) for k in (0, -1, 6, 1.5, True, None)),
            *(lambda b=b: NaturalSlate(5, 2, 1.0, b) for b in (0.0, -1.0, math.nan, math.inf, None)),
            *(lambda s=s: NaturalSlate(5, 2, 1.0, sampler=s) for s in ("mcmc", None, "Exact")),
            *(lambda r=r: NaturalSlate(5, 2, 1.0, redrawn=r) for r in (None, 1, "yes")),
            lambda: NaturalSlate(5, 2, 1.0, calibration="guessed"),  # type: ignore[arg-type]
            lambda: NaturalSlate(5, 2, 1e-13),
            lambda: NaturalSlate(5, 2, 5.0, sampler="dense"),
            lambda: NaturalSlate(5000, 2, 1.0, sampler="dense"),
            lambda: NaturalSlate(60, 30, 1.0).outcomes(),
        ]

    def bad_inputs(self) -> Sequence[Any]:
        return BAD_ROWS


class NaturalSlateReplacedCase(NaturalSlateCase):
    """The bound is attained: one user's only item becomes another one."""

    relation = Relation.REPLACE

    def pairs(self) -> Iterable[tuple[Any, Any]]:
        return replaced(1, 3)

    def documented_loss(self) -> float:
        return self.epsilon


class NaturalSubsetCase(NaturalSlateCase):
    """Subsets of two items; the bound is attained by a first user with one item."""

    def make(self, epsilon: float) -> Any:
        return NaturalSubset(2, epsilon, relation=self.relation)

    def twin(self) -> Any:
        class HalfTheNorm(NaturalSubset):
            sigma_in_squares = property(lambda self: super(HalfTheNorm, self).sigma_in_squares // 4)  # type: ignore[assignment]

        return HalfTheNorm(2, self.epsilon, relation=self.relation)

    def pairs(self) -> Iterable[tuple[Any, Any]]:
        return added(2, 2)

    def reference(self, mechanism: Any, raw: Any) -> NDArray[np.float64]:
        x = math.expm1(self.epsilon)
        sigma = 1.0 / x if self.relation is Relation.REPLACE else max(math.sqrt(1.0 + 1.0 / x) - 1.0, 1.0 / x - 1.0)
        matrix = kernel(raw, 2, Fraction(math.ceil(sigma * STEPS * STEPS), STEPS * STEPS))
        weights = [minor(matrix, slate) for size in range(3) for slate in combinations(range(2), size)]
        return np.array([float(weight / sum(weights)) for weight in weights])

    def documented_loss(self) -> float:
        return self.epsilon

    def chosen_input(self) -> Any:
        return np.array([[1.0, 1.0], [1.0, 0.0]])

    def bad_parameters(self) -> Sequence[Callable[[], object]]:
        return [
            *(lambda n=n: NaturalSubset(n, 1.0) for n in (0, -1, 1.5, True, None, (1 << 22) + 1)),
            *(lambda b=b: NaturalSubset(5, 1.0, b) for b in (0.0, -1.0, math.nan, math.inf, None)),
            lambda: NaturalSubset(5, 1e-13),
            lambda: NaturalSubset(17, 1.0).outcomes(),
        ]

    def bad_inputs(self) -> Sequence[Any]:
        return [SECRET, [SECRET], [[SECRET]], [[SECRET, 1.0, 2.0]], [[[SECRET]]], [[1.0], [SECRET, 2.0]]]


class NaturalSubsetReplacedCase(NaturalSubsetCase):
    relation = Relation.REPLACE

    def pairs(self) -> Iterable[tuple[Any, Any]]:
        return replaced(1, 2)
