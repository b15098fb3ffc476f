"""A private partition of a cube: cubes with many points are halved again and again. Proof: docs/proofs/private-partition.md.

A coin decides whether a child is kept: its count plus discrete Laplace noise must exceed a whole-number threshold. Children without
a point toss the same coin, so no single outcome reveals that somebody was there.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.checks import keep, positive, probability, whole
from tacit.errors import InvalidInput, InvalidParameter
from tacit.guarantees import ONE_USER, Guarantee, LossKind, Release
from tacit.guarantees.arithmetic import up
from tacit.guarantees.guarantee import finite_loss
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise, released
from tacit.mechanisms.samplers import integers
from tacit.mechanisms.samplers.coins import rare_heads

HALF_SIDE = 1 << 16  # of the root cube, in steps: centres stay whole numbers for 16 levels
MOST_DIMENSIONS = 1 << 14
_OUTCOMES = 12  # children at one level whose subsets are enumerated

Points: TypeAlias = NDArray[np.int64]
Levels: TypeAlias = tuple[tuple[tuple[int, ...], ...], ...]  # the centres kept at each level, in order


@dataclass(frozen=True)
class PrivatePartition:
    """The centres of all cubes that were ever kept, the root's first: pure epsilon-DP for one user's point.

    ``beta`` is the expected number of empty children that are kept for each cube that is halved; ``cap`` is the largest number of
    cubes that are kept at a level.
    """

    name: ClassVar[str] = "private-partition"
    dimension: int  # coordinates of a point
    depth: int
    epsilon: float  # nats
    beta: float = 0.05
    cap: int = 2000
    half_side: int = HALF_SIDE

    def __post_init__(self) -> None:
        keep(
            self,
            dimension=whole("dimension", self.dimension, least=1, most=MOST_DIMENSIONS),
            depth=whole("depth", self.depth, least=1, most=16),
            epsilon=positive("epsilon", self.epsilon),
            beta=probability("beta", self.beta),  # below 1, or empty cubes would multiply
            cap=whole("cap", self.cap, least=1, most=1 << 20),
            half_side=whole("half_side", self.half_side, least=1, most=1 << 20),
        )
        if self.half_side % (1 << self.depth):
            raise InvalidParameter("half_side must be a multiple of 2^depth, so that all centres are whole numbers.")
        integers.require_drawable_discrete_laplace(self.scale)

    @cached_property
    def guarantee(self) -> Guarantee:
        """What the released cells promise: epsilon, in nats, for one user's rows, added or removed; composes by its zCDP."""
        # one coin a level, each of loss epsilon/depth: rho = depth (epsilon/depth)^2 / 2
        rho = up(Fraction(self.epsilon) ** 2 / (2 * self.depth))
        return Guarantee(self.epsilon, ONE_USER, proof=self.name, loss=finite_loss(LossKind.ZCDP, rho))

    @cached_property
    def scale(self) -> Fraction:
        """The scale of the noise on a count: a point counts once at every level, so each level gets epsilon / depth."""
        return self.depth / Fraction(self.epsilon)

    @cached_property
    def threshold(self) -> int:
        """g: a child is kept if its noisy count exceeds g. The smallest whole number with 2^p e^(-g epsilon/depth) / 2 <= beta."""
        return math.ceil((self.dimension * math.log(2.0) - math.log(2.0 * self.beta)) * float(self.scale))

    def kept(self, count: NDArray[np.int64] | int) -> NDArray[np.float64]:
        """The probability that a child with ``count`` points is kept; for 0 points q^(g+1) / (1 + q), q = e^(-epsilon/depth)."""
        return integers.discrete_laplace_survival(self.threshold + 1 - np.asarray(count), self.scale)

    def release(self, points: ArrayLike, noise: Noise = SYSTEM_NOISE) -> Release[Points]:
        """The centres kept, level by level, each level sorted by position: centres x dimension, in steps."""
        inside = self._inside(points)
        centres = np.zeros((1, self.dimension), dtype=np.int64)
        kept, cube = [centres], np.zeros(len(inside), dtype=np.int64)  # the cube of each point
        half = self.half_side
        for _ in range(self.depth):
            half //= 2
            above = inside >= centres[cube]
            first, child = _distinct(cube, above)  # one point of each child that has any; the child of each point
            added = integers.sample_discrete_laplace(self.scale, first.size, noise)
            heads = np.flatnonzero(np.bincount(child, minlength=first.size) + added > self.threshold)
            parents, sides = cube[first], above[first]
            extra, extra_sides = self.empty_children(len(centres), parents, sides, noise)
            sides = np.concatenate([sides[heads], extra_sides])
            children = centres[np.concatenate([parents[heads], extra])] + np.where(sides, half, -half)
            # sorted before the cut: which cubes are dropped must not tell which contain a point
            order = np.lexsort(children.T[::-1])[: self.cap]
            centres = children[order]
            kept.append(centres)
            position = np.full(first.size + 1, -1, dtype=np.int64)
            position[np.append(heads, np.full(extra.size, first.size))[order]] = np.arange(order.size)
            cube = position[:-1][child]
            inside, cube = inside[cube >= 0], cube[cube >= 0]
        return released(np.concatenate(kept), self.guarantee, noise)

    def empty_children(
        self, cubes: int, parents: NDArray[np.int64], sides: NDArray[np.bool_], noise: Noise
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The empty children that are kept: the cube of each, and in each dimension whether it is above the cube's centre.

        Each of the 2^p children of every cube tosses a coin. The coins of children that have a point, ``parents`` and ``sides``,
        do not count here: they toss their own.
        """
        codes = rare_heads(cubes << self.dimension, self._kept_empty, noise)
        cube = np.array([code >> self.dimension for code in codes], dtype=np.int64)
        size = -(-self.dimension // 8)
        digits = [(code & ((1 << self.dimension) - 1)).to_bytes(size, "big") for code in codes]
        table = np.frombuffer(b"".join(digits), dtype=np.uint8).reshape(len(codes), size)
        side = np.unpackbits(table, axis=1)[:, 8 * size - self.dimension :].astype(np.bool_)
        empty = [not (sides[parents == c] == s).all(axis=1).any() for c, s in zip(cube, side, strict=True)]
        return cube[empty], side[empty]

    def _kept_empty(self, context: Any) -> Any:
        """q^(g+1) / (1 + q), q = e^(-1/scale), without a power that would raise the error of q."""
        rate, per = context.mpf(self.scale.denominator), context.mpf(self.scale.numerator)
        return context.exp(-(self.threshold + 1) * rate / per) / (1 + context.exp(-rate / per))

    def outcomes(self) -> list[Levels]:
        """All outcomes, in the order of ``pmf``; for few dimensions and levels."""
        return sorted(self._law([]))

    def pmf(self, points: ArrayLike) -> NDArray[np.float64]:
        """The probability of every outcome."""
        law = self._law(self._inside(points).tolist())
        return np.array([law[outcome] for outcome in sorted(law)])

    def _law(self, points: list[list[int]]) -> dict[Levels, float]:
        law: dict[Levels, float] = {}
        self._branch((), ((0,) * self.dimension,), self.half_side // 2, points, 1.0, law)
        return law

    def _branch(
        self, before: Levels, cubes: Any, half: int, points: list[list[int]], chance: float, law: dict[Levels, float]
    ) -> None:
        if len(before) == self.depth:
            law[before] = law.get(before, 0.0) + chance
            return
        signs = list(product((-1, 1), repeat=self.dimension))
        children = sorted(
            tuple(c + half * s for c, s in zip(cube, sign, strict=True)) for cube in cubes for sign in signs
        )
        if len(children) > _OUTCOMES:
            raise InvalidParameter("too many outcomes to enumerate; take one dimension and at most three levels.")
        counts = [sum(_contains(child, half, point, self.half_side) for point in points) for child in children]
        heads = self.kept(np.array(counts))
        tails = integers.discrete_laplace_cdf(self.threshold - np.array(counts), self.scale)
        for coins in product((False, True), repeat=len(children)):
            likely = math.prod(float(h if coin else t) for coin, h, t in zip(coins, heads, tails, strict=True))
            kept = tuple(child for child, coin in zip(children, coins, strict=True) if coin)[: self.cap]
            self._branch((*before, kept), kept, half // 2, points, chance * likely, law)

    def _inside(self, points: ArrayLike) -> Points:
        """The points as whole numbers within the root cube; a point outside is moved to its face."""
        table = np.asarray(points)
        if table.size == 0 and table.ndim < 2:
            table = np.zeros((0, self.dimension), dtype=np.int64)
        if table.ndim != 2 or table.shape[1] != self.dimension or table.dtype.kind != "i":
            raise InvalidInput(f"points must be a table of whole numbers: {self.dimension} for each user.")
        inside: Points = np.clip(table.astype(np.int64), -self.half_side, self.half_side)
        return inside


def _distinct(cube: NDArray[np.int64], above: NDArray[np.bool_]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """One point for each different (cube, sides), and for each point the index of its own."""
    group, first = cube, np.arange(0)
    for start in range(0, above.shape[1], 24):  # fewer than 2^28 groups and 24 sides: 52 bits
        block = above[:, start : start + 24]
        key = (group << 24) + block @ (np.int64(1) << np.arange(block.shape[1], dtype=np.int64))
        _, first, group = np.unique(key, return_index=True, return_inverse=True)
    return first, group.reshape(-1)


def _contains(centre: tuple[int, ...], half: int, point: list[int], side: int) -> bool:
    """Whether a point is in the cube: its lower faces belong to it, its upper faces only at the end of the root cube."""
    return all(c - half <= y and (y < c + half or c + half == side) for c, y in zip(centre, point, strict=True))
