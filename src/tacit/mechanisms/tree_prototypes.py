"""Prototypes of users by a tree of public hyperplanes and noisy Lloyd steps: (epsilon, delta) by zCDP.

Noisy counts alone decide the shape of the tree. ``WholeRows`` reads the private rows: its codes, counts and sums are exact.
Products are computed in float64 on whole numbers whose partial sums stay below 2^53, so they are exact in any order, and no
row's result can depend on other rows. Proof: docs/proofs/tree-prototypes.md.
"""

import hashlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.checks import keep, positive, probability, whole
from tacit.errors import InvalidParameter
from tacit.guarantees import ONE_USER, Guarantee, Loss, LossKind, Release
from tacit.guarantees.concentrated import rho_for
from tacit.mechanisms.inputs import FeatureBox, ProfileBounds
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise, released
from tacit.mechanisms.samplers import integers
from tacit.mechanisms.sparse_recovery import Prototypes
from tacit.models.prototypes import weighted_k_means

MOST_DEPTH = 16  # a table of all codes has 2^16 places
_CELLS = 1 << 18  # of a dense table at a time

Whole = NDArray[np.int64]


def directions(seed: int, depth: int, dimension: int) -> NDArray[np.float64]:
    """``depth`` public directions as columns of whole numbers, about normal: sums of four bytes, so at most 512 in size.

    They come from a hash, because the stream of a generator may change with its version.
    """
    text = f"tacit hyperplanes {seed} {depth} {dimension}".encode()
    drawn = np.frombuffer(hashlib.shake_256(text).digest(4 * depth * dimension), dtype=np.int8)
    table = drawn.astype(np.int64).reshape(depth, dimension, 4).sum(axis=2)
    return np.ascontiguousarray(table.T.astype(np.float64))


class WholeRows:
    """Bounded rows of whole numbers, dense or sparse, read a stretch of users at a time. All its answers are private."""

    def __init__(self, rows: NDArray[np.int32] | sparse.csr_array) -> None:
        self._rows = rows
        self.users, self.items = rows.shape

    def codes(self, planes: NDArray[np.float64]) -> Whole:
        """The side of each hyperplane on which a row lies, as bits, the first plane's bit highest. On the plane counts as above."""
        values = 1 << np.arange(planes.shape[1])[::-1]
        return self._by_row(lambda part: (part @ planes >= 0.0) @ values)

    def nearest(self, centres: Whole) -> Whole:
        """The index of the nearest centre of each row; of ties the first."""
        lengths = np.einsum("ij,ij->i", centres, centres).astype(np.float64)
        doubled = np.ascontiguousarray(2.0 * centres.T)
        # |x - c|^2 = |x|^2 - (2 x.c - |c|^2), all of it below 2^53
        return self._by_row(lambda part: np.argmax(part @ doubled - lengths, axis=1))

    def sums(self, group: Whole, groups: int) -> Whole:
        """The sum of the rows of every group; each row is in one group."""
        total = np.zeros((groups, self.items), dtype=np.float64)
        for first, part in self._parts():
            own = group[first : first + part.shape[0]]
            member = sparse.csr_array((np.ones(own.size), (own, np.arange(own.size))), shape=(groups, own.size))
            added = member @ part
            total += added.toarray() if sparse.issparse(added) else added
        return total.astype(np.int64)

    def _by_row(self, answer: Callable[[Any], NDArray[Any]]) -> Whole:
        result = np.empty(self.users, dtype=np.int64)
        for first, part in self._parts():
            result[first : first + part.shape[0]] = answer(part)
        return result

    def _parts(self) -> Iterator[tuple[int, Any]]:
        size = max(1, _CELLS // self.items)
        for first in range(0, self.users, size):
            yield first, self._rows[first : first + size].astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """Which leaf each code belongs to, and the leaves' noisy counts."""

    leaf: Whole
    counts: NDArray[np.float64]


def grow(
    noisy_counts: Callable[[int, Whole, int], Whole], depth: int, minimum: Callable[[int], float], branch: float = 3.0
) -> Tree:
    """The tree by noisy counts: a node splits if it is large enough and both of its halves have the minimum.

    ``noisy_counts(level, group, groups)`` gives for one level the noisy number of rows whose code is in each group; a code outside
    all groups has -1. ``minimum`` is a function of the root's noisy count. A node that one plane does not split may be split by a
    later one: each level is paid for in advance, whether it is used or not.
    """
    codes = np.arange(1 << depth)
    leaf = np.zeros(codes.size, dtype=np.int64)
    counts = noisy_counts(0, leaf, 1)
    least = minimum(int(counts[0]))
    for level in range(1, depth + 1):
        large = np.flatnonzero(counts >= branch * least)
        if not large.size:
            continue
        lower = np.full(counts.size, -1, dtype=np.int64)  # the group of each large node's lower half
        lower[large] = 2 * np.arange(large.size)
        upper = (codes >> (depth - level)) & 1
        group = np.where(lower[leaf] >= 0, lower[leaf] + upper, -1)
        halves = noisy_counts(level, group, 2 * large.size).reshape(-1, 2)
        split = (halves >= least).all(axis=1)
        kept = np.full(counts.size, -1, dtype=np.int64)
        kept[large[split]] = counts.size + np.arange(int(split.sum()))
        leaf = np.where((kept[leaf] >= 0) & (upper == 1), kept[leaf], leaf)
        counts = np.concatenate([counts, halves[split, 1]])
        counts[large[split]] = halves[split, 0]
    return Tree(leaf, counts.astype(np.float64))


Floats = NDArray[np.float64]
_COUNTS = Fraction(1, 5)  # of the tree's rho; the leaves' sums have the rest
_BRANCH = 2.0  # a node is split from this many times the minimum
_LONGEST = 1 << 49  # squared steps of a row: twice its product with a centre stays below 2^51, exact in a float64
_SURE = 3.0  # deviations of a count's noise below which no node is a node


@dataclass(frozen=True)
class TreePrototypes:
    """``k`` centres of users' rows with noisy sizes: a tree of ``depth`` public hyperplanes, then ``lloyd`` noisy Lloyd steps.

    (epsilon, delta) for one user's whole row, by zCDP. The number of users is private, as the rows are.
    """

    name: ClassVar[str] = "tree-prototypes"
    bounds: ProfileBounds | FeatureBox
    k: int  # how many prototypes: rows of values
    epsilon: float  # nats
    delta: float  # a probability
    depth: int = 12
    lloyd: int = 2
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.bounds, ProfileBounds | FeatureBox):
            raise InvalidParameter("bounds must be ProfileBounds or a FeatureBox: public bounds of one user's row.")
        if self.bounds.l2_squared_steps > _LONGEST:
            raise InvalidParameter(
                "the L2 bound is above 2^24 steps of a value, so products would not be exact: give `bounds` a lower l2_bound."
            )
        keep(
            self,
            k=whole("k", self.k, least=1, most=1 << 14),
            epsilon=positive("epsilon", self.epsilon),
            delta=probability("delta", self.delta),
            depth=whole("depth", self.depth, least=1, most=MOST_DEPTH),
            lloyd=whole("lloyd", self.lloyd, least=0, most=100),
            seed=whole("seed", self.seed, least=0),
        )
        for variance in self.variances:
            integers.require_drawable_discrete_gaussian(variance)

    @cached_property
    def rho(self) -> float:
        """The zCDP that (epsilon, delta) affords, rounded down."""
        return rho_for(self.epsilon, self.delta)

    @cached_property
    def guarantee(self) -> Guarantee:
        """What the whole release promises: (epsilon, delta) for one user's rows, added or removed; composes by its zCDP."""
        return Guarantee(self.epsilon, ONE_USER, delta=self.delta, proof=self.name, loss=Loss(LossKind.ZCDP, self.rho))

    @cached_property
    def rhos(self) -> tuple[Fraction, Fraction, Fraction]:
        """The rho of one level of counts, the leaves' sums and one Lloyd step: (depth + 1, 1, lloyd) of them add up to rho."""
        rho = Fraction(self.rho)
        tree = rho / 2 if self.lloyd else rho
        return _COUNTS * tree / (self.depth + 1), (1 - _COUNTS) * tree, (rho - tree) / max(1, self.lloyd)

    @cached_property
    def variances(self) -> tuple[Fraction, ...]:
        """The variance of the noise on a node's count (users), a leaf's sum and a Lloyd step (steps): sensitivity^2 / (2 rho)."""
        level, sums, lloyd = self.rhos
        square = self.bounds.l2_squared_steps
        pair = self.bounds.l2_steps**2 + square  # of one user's (radius, row)
        return (1 / (2 * level), square / (2 * sums), *([pair / (2 * lloyd)] if self.lloyd else []))

    @cached_property
    def planes(self) -> Floats:
        """The public hyperplanes through the origin of the bounded rows, as columns."""
        return directions(self.seed, self.depth, self.bounds.items)

    def minimum(self, users: int) -> float:
        """The least noisy count of a node, from the noisy count ``users`` of the root."""
        count, sums = (math.sqrt(variance) for variance in self.variances[:2])
        clear = 10.0 * math.sqrt(self.bounds.items) * sums / self.bounds.l2_steps
        return max(min(clear, users / (2 * self.k)), _SURE * count)

    def release(self, rows: ArrayLike | sparse.csr_array, noise: Noise = SYSTEM_NOISE) -> Release[Prototypes]:
        """The prototypes of all users' rows. A prototype that was not needed is NaN, with size 0."""
        return released(self.compute(self.ask(rows, noise)), self.guarantee, noise)

    def ask(self, rows: ArrayLike | sparse.csr_array, noise: Noise = SYSTEM_NOISE) -> "NoisyAnswers":
        """Noisy answers about the rows, each at most as often as was paid for. Only ``compute`` may ask them."""
        return NoisyAnswers(self, WholeRows(self.bounds.bounded(rows, noise, l2=True)), noise)

    @np.errstate(all="ignore")  # Silence numpy: an error could reveal a noisy number
    def compute(self, answers: "NoisyAnswers") -> Prototypes:
        """The prototypes, from noisy answers and public numbers only."""
        tree = grow(answers.counts, self.depth, self.minimum, _BRANCH)
        points = self._points(answers.sums(tree), tree.counts)
        weights = np.maximum(tree.counts, 1.0)
        centres, near = weighted_k_means(points, weights, self.k, seed=self.seed)
        sizes: Floats = np.bincount(near, weights=tree.counts, minlength=len(centres)).astype(np.float64)
        for _ in range(self.lloyd):
            sizes, sums = answers.clusters(np.rint(centres).astype(np.int64))
            centres = self._move(centres, sizes, sums)
        # always k prototypes, in the units of the rows
        table, numbers = np.full((self.k, self.bounds.items), np.nan), np.zeros(self.k)
        table[: len(centres)], numbers[: len(centres)] = self._in_units(centres), sizes
        return Prototypes(table, numbers)

    def _points(self, sums: Whole, counts: Floats) -> Floats:
        """Means, in steps, cut to the radius."""
        points = sums / np.maximum(counts, 1.0)[:, None]
        norms = np.sqrt((points**2).sum(axis=1, keepdims=True))
        return np.asarray(points * np.minimum(1.0, self.bounds.l2_steps / np.maximum(norms, 1.0)))

    def _move(self, centres: Floats, sizes: Floats, sums: Whole) -> Floats:
        """Centres with enough near users move to their noisy means, less the part of the move that noise explains.

        A mean has noise of squared length (items + 1) variance / size^2 (James and Stein's estimate, towards the last centre).
        """
        sd = math.sqrt(self.variances[2])
        sure = sizes > max(2.0, sd / self.bounds.l2_steps)
        last, size = centres[sure], sizes[sure]
        move = self._points(sums[sure], size) - last
        noisy = max(0, self.bounds.items - 1) * (sd / size) ** 2
        share = np.maximum(0.0, 1.0 - noisy / np.maximum((move**2).sum(axis=1), 1e-9))
        moved = centres.copy()
        moved[sure] = last + share[:, None] * move
        return moved

    def _in_units(self, points: Floats) -> Floats:
        if isinstance(self.bounds, FeatureBox):
            return self.bounds.within(points)
        most = self.bounds.value_bound
        return np.clip(points * float(self.bounds.step), -most if self.bounds.signed else 0.0, most)


@dataclass(eq=False)
class NoisyAnswers:
    """All that is read of private rows. Every answer has noise, and each is given at most as often as it was paid for."""

    mechanism: TreePrototypes
    rows: WholeRows = field(repr=False)
    noise: Noise = field(repr=False)
    given: list[tuple[str, Whole]] = field(default_factory=list, repr=False)  # in the order of asking

    def __post_init__(self) -> None:
        self._codes = self.rows.codes(self.mechanism.planes)
        self._by_code = np.bincount(self._codes, minlength=1 << self.mechanism.depth)
        levels = {f"counts {level}": 1 for level in range(self.mechanism.depth + 1)}
        self._left = levels | {"sums": 1, "clusters": self.mechanism.lloyd}

    def counts(self, level: int, group: Whole, groups: int) -> Whole:
        """The noisy count of each group of codes; a code, and so a row, is in at most one of them."""
        inside = group >= 0
        exact = np.bincount(group[inside], weights=self._by_code[inside], minlength=groups).astype(np.int64)
        return self._noisy(f"counts {level}", exact, self.mechanism.variances[0])

    def sums(self, tree: Tree) -> Whole:
        """The noisy sum of the rows of every leaf; a row is in one of them."""
        exact = self.rows.sums(tree.leaf[self._codes], tree.counts.size)
        return self._noisy("sums", exact, self.mechanism.variances[1])

    def clusters(self, centres: Whole) -> tuple[Floats, Whole]:
        """The noisy size and the noisy sum of the rows that are nearest to each centre: one vector (radius * size, sum)."""
        radius, near = self.mechanism.bounds.l2_steps, self.rows.nearest(centres)
        sizes = np.bincount(near, minlength=len(centres))
        exact = np.column_stack([radius * sizes, self.rows.sums(near, len(centres))])
        noisy = self._noisy("clusters", exact, self.mechanism.variances[-1])
        return noisy[:, 0] / radius, noisy[:, 1:]

    def _noisy(self, name: str, exact: Whole, variance: Fraction) -> Whole:
        if self._left.get(name, 0) < 1:
            raise InvalidParameter(f"{name} were not paid for, or have been given already.")
        self._left[name] -= 1
        noisy = exact + integers.sample_discrete_gaussian(variance, exact.size, self.noise).reshape(exact.shape)
        self.given.append((name, noisy))
        return noisy
