"""Prototypes of users by a tree of hyperplanes and noisy Lloyd steps: (epsilon, delta) by zCDP.

Proof: docs/proofs/tree-prototypes.md.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.checks import keep, positive, probability, whole
from tacit.errors import InvalidParameter
from tacit.guarantees import ONE_USER, Guarantee, Loss, LossKind, Release
from tacit.guarantees.zcdp import rho_for
from tacit.mechanisms.drawn import released
from tacit.mechanisms.feature_box import FeatureBox
from tacit.mechanisms.hyperplane_tree import MOST_DEPTH, Tree, Whole, WholeRows, directions, grow
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise
from tacit.mechanisms.profile_bounds import ProfileBounds
from tacit.mechanisms.prototypes import Prototypes
from tacit.mechanisms.samplers import discrete_gaussian
from tacit.models.weighted_k_means import weighted_k_means

_COUNTS = Fraction(1, 5)  # of the tree's rho; the leaves' sums have the rest
_BRANCH = 2.0  # a node is split from this many times the minimum
_LONGEST = (
    1 << 49
)  # squared steps of a row: twice its product with a centre then stays below 2^51, and is exact in a float64
_SURE = 3.0  # deviations of a count's noise below which no node is a node

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TreePrototypes:
    """``k`` centres of users' rows with noisy sizes: a tree of ``depth`` public hyperplanes, then ``lloyd`` noisy Lloyd steps.

    (epsilon, delta) for one user's whole row, and the zCDP behind it. The number of users is private, as the rows are.
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
                "the L2 bound is above 2^24 steps of a value, and products would not be exact: give bounds a lower l2_bound."
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
            discrete_gaussian.require_drawable(variance)

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
        """What one level of counts, the leaves' sums and one Lloyd step may cost: (depth + 1, 1, lloyd) of them make rho."""
        rho = Fraction(self.rho)
        tree = rho / 2 if self.lloyd else rho
        return _COUNTS * tree / (self.depth + 1), (1 - _COUNTS) * tree, (rho - tree) / max(1, self.lloyd)

    @cached_property
    def variances(self) -> tuple[Fraction, ...]:
        """Of the noise on a node's count (in users), a leaf's sum and a Lloyd step (in steps): sensitivity^2 / (2 rho)."""
        level, sums, lloyd = self.rhos
        square = self.bounds.l2_squared_steps
        pair = self.bounds.l2_steps**2 + square  # of one user's (radius, row)
        return (1 / (2 * level), square / (2 * sums), *([pair / (2 * lloyd)] if self.lloyd else []))

    @cached_property
    def planes(self) -> Floats:
        """The public hyperplanes through the origin of the bounded rows, as columns."""
        return directions(self.seed, self.depth, self.bounds.items)

    def minimum(self, users: int) -> float:
        """The least noisy count of a node, from the root's NOISY count ``users``."""
        count, sums = (math.sqrt(variance) for variance in self.variances[:2])
        clear = 10.0 * math.sqrt(self.bounds.items) * sums / self.bounds.l2_steps
        return max(min(clear, users / (2 * self.k)), _SURE * count)

    def release(self, rows: ArrayLike | sparse.csr_array, noise: Noise = SYSTEM_NOISE) -> Release[Prototypes]:
        """The prototypes of all users' rows. Rows that were not needed are NaN, of size 0."""
        return released(self.computed(self.asked(rows, noise)), self.guarantee, noise)

    def asked(self, rows: ArrayLike | sparse.csr_array, noise: Noise = SYSTEM_NOISE) -> "NoisyAnswers":
        """The rows behind their noise. Private: it may be asked once each of what ``computed`` asks, and by nobody else."""
        return NoisyAnswers(self, WholeRows(self.bounds.bounded(rows, noise, l2=True)), noise)

    @np.errstate(all="ignore")  # a caller who has numpy raise must not be told how small a noisy number is
    def computed(self, answers: "NoisyAnswers") -> Prototypes:
        """The prototypes, from noisy answers and public numbers alone."""
        tree = grow(answers.counts, self.depth, self.minimum, _BRANCH)
        points = self._points(answers.sums(tree), tree.counts)
        weights = np.maximum(tree.counts, 1.0)
        centres, near = weighted_k_means(points, weights, self.k, seed=self.seed)
        sizes: Floats = np.bincount(near, weights=tree.counts, minlength=len(centres)).astype(np.float64)
        for _ in range(self.lloyd):
            sizes, sums = answers.clusters(np.rint(centres).astype(np.int64))
            centres = self._moved(centres, sizes, sums)
        return self._padded(centres, sizes)

    def _points(self, sums: Whole, counts: Floats) -> Floats:
        """Means, in steps, cut to the radius."""
        return self._shortened(sums / np.maximum(counts, 1.0)[:, None])

    def _moved(self, centres: Floats, sizes: Floats, sums: Whole) -> Floats:
        """The centres of which enough users are near, at their noisy means, less the part of the move that noise explains.

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

    def _shortened(self, points: Floats) -> Floats:
        norms = np.sqrt((points**2).sum(axis=1, keepdims=True))
        shortened: Floats = points * np.minimum(1.0, self.bounds.l2_steps / np.maximum(norms, 1.0))
        return shortened

    def _padded(self, centres: Floats, sizes: Floats) -> Prototypes:
        """In the units of the rows, and always k of them."""
        table, numbers = np.full((self.k, self.bounds.items), np.nan), np.zeros(self.k)
        table[: len(centres)], numbers[: len(centres)] = self._in_units(centres), sizes
        return Prototypes(table, numbers)

    def _in_units(self, points: Floats) -> Floats:
        if isinstance(self.bounds, FeatureBox):
            return self.bounds.within(points)
        most = self.bounds.value_bound
        return np.clip(points * float(self.bounds.step), -most if self.bounds.signed else 0.0, most)


@dataclass(eq=False)
class NoisyAnswers:
    """All that is read of private rows: every answer has its noise, and may be asked for as often as was paid for."""

    mechanism: TreePrototypes
    rows: WholeRows = field(repr=False)
    noise: Noise = field(repr=False)
    given: list[tuple[str, Whole]] = field(
        default_factory=list, repr=False
    )  # in the order in which they were asked for

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

    def _noisy(self, what: str, exact: Whole, variance: Fraction) -> Whole:
        if self._left.get(what, 0) < 1:
            raise InvalidParameter(f"{what} were not paid for, or have been given already.")
        self._left[what] -= 1
        noisy = exact + discrete_gaussian.sample(variance, exact.size, self.noise).reshape(exact.shape)
        self.given.append((what, noisy))
        return noisy
