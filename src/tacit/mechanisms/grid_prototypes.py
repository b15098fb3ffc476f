"""Prototypes of an entity's users by a private grid, private swaps and sparse noisy means.

Rows are projected to points of few coordinates, in whole numbers. Each point depends on its own row alone: whole numbers have the
same sum in any order, but a product in floats may change the last bits of other rows when a row is added. Epsilon is divided among
the steps exactly and rounded down, so that the sum never exceeds it. Proof: docs/proofs/grid-prototypes.md.
"""

import math
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.checks import finite, keep, positive, whole
from tacit.errors import InvalidParameter
from tacit.guarantees import ONE_USER, Guarantee, LossKind, Release
from tacit.guarantees.arithmetic import down, up
from tacit.guarantees.guarantee import finite_loss
from tacit.mechanisms.inputs import VALUE_STEPS as STEPS
from tacit.mechanisms.inputs import ProfileBounds, root_up
from tacit.mechanisms.local_swaps import LocalSwaps, nearest_two
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise, released
from tacit.mechanisms.partition import HALF_SIDE, MOST_DIMENSIONS, PrivatePartition
from tacit.mechanisms.selection import gumbel_choice
from tacit.mechanisms.sparse_recovery import Prototypes, SparseRecovery
from tacit.models.prototypes import gaussian_projection, uniform_shift

_FINAL = Fraction(1, 10)  # of epsilon for the choice among trials, taken from the values by default


@dataclass(frozen=True)
class GridShares:
    """The parts of epsilon for each step. They add up to 1.

    ``final`` is for the choice among several trials. If you leave it out, it is 0.1 with several trials, taken from ``values``, and
    0 with one trial.
    """

    candidates: float = 0.10
    swaps: float = 0.10
    count: float = 0.05  # for the number of users of each cluster
    select: float = 0.20
    values: float = 0.55
    final: float | None = None

    def __post_init__(self) -> None:
        for name in ("candidates", "swaps", "count", "select", "values"):
            keep(self, **{name: positive(f"the share `{name}`", getattr(self, name))})
        if self.final is not None and finite("the share `final`", self.final) < 0.0:
            raise InvalidParameter("the share `final` must be at least 0.")
        if abs(sum(getattr(self, part.name) or 0.0 for part in fields(self)) - 1.0) > 1e-9:
            raise InvalidParameter("the shares of epsilon must add up to 1.")

    def of(self, epsilon: float, trials: int) -> "GridEpsilons":
        """What each step may spend in each trial, rounded down: together at most epsilon.

        ``epsilon`` is in nats, and so is what each step gets.
        """
        share = {part.name: Fraction(getattr(self, part.name) or 0.0) for part in fields(self)}
        total = sum(share.values())
        if trials > 1 and self.final is None:
            share["final"] = _FINAL * total
            share["values"] -= share["final"]
        if trials == 1:  # nothing to choose among
            share["values"], share["final"] = share["values"] + share["final"], Fraction(0)
        if share["values"] <= 0 or (trials > 1 and share["final"] <= 0):
            raise InvalidParameter(
                "several trials need a share above 0 for the final choice, and one above 0 for the values."
            )
        each = {
            name: down(Fraction(epsilon) * part / total / (1 if name == "final" else trials))
            for name, part in share.items()
        }
        return GridEpsilons(trials=trials, **each)


@dataclass(frozen=True)
class GridEpsilons:
    """What each step spends: ``final`` once, all others once in every trial."""

    candidates: float
    swaps: float
    count: float
    select: float
    values: float
    final: float
    trials: int

    @property
    def total(self) -> Fraction:
        """The sum, exactly."""
        trial = sum(Fraction(part) for part in (self.candidates, self.swaps, self.count, self.select, self.values))
        return self.trials * trial + Fraction(self.final)


_FARTHEST = 1 << 24  # of a coordinate before a point is cut: its squares in 2^14 dimensions add up to at most 2^62
_BITS = 20  # after the binary point of the projection, or fewer if 64-bit sums need the room


@dataclass(frozen=True)
class GridPoints:
    """Rows within ``bounds`` times a public Gaussian matrix, cut to the ball of radius ``bounds.l2``, which is 2^16 steps."""

    bounds: ProfileBounds
    dimension: int
    seed: int
    trial: int = 0

    @cached_property
    def _matrix(self) -> tuple[NDArray[np.int64], int]:
        """The projection in whole numbers, and how many of their bits stand after the binary point."""
        per_step = HALF_SIDE / math.sqrt(self.bounds.l2_squared_steps)  # steps of a point for one step of a row
        real = gaussian_projection(self.bounds.items, self.dimension, self.seed, self.trial) * per_step
        # |sum of x_j h_j| <= |x|_1 max |h|, which is below 2^61: of 2^38 steps at most and numbers below 2^20 some bits are left
        largest = self.bounds.l1_steps * (float(np.abs(real).max()) + 1.0)
        bits = min(_BITS, 60 - math.ceil(math.log2(largest)))
        return np.rint(real * 2.0**bits).astype(np.int64), bits

    def of(self, table: sparse.csr_array) -> NDArray[np.int64]:
        """users x dimension; ``table`` holds bounded rows in steps. Private."""
        matrix, bits = self._matrix
        product = np.asarray(table @ matrix)
        size = np.minimum(np.abs(product) >> bits, _FARTHEST)
        norm = root_up((size * size).sum(axis=1))
        over = norm > HALF_SIDE
        size[over] = size[over] * HALF_SIDE // norm[over, None]  # rounded towards 0: the length is at most HALF_SIDE
        points: NDArray[np.int64] = np.sign(product) * size
        return points


_CELLS = 1 << 22  # distances at a time


@dataclass(frozen=True)
class GridPrototypes:
    """``k`` prototypes of users' rows: pure epsilon-DP for one user. The number of users stays private.

    ``users`` is the public order of magnitude of that number. ``p`` (the dimension of the projection), ``depth`` of the grid,
    ``swaps`` and ``picked`` items follow from public constants if you leave them out. ``seed`` is public: it draws no noise.
    """

    name: ClassVar[str] = "grid-prototypes"
    bounds: ProfileBounds
    k: int
    epsilon: float  # nats
    users: int
    p: int | None = None
    depth: int | None = None
    swaps: int | None = None
    trials: int = 1
    picked: int | None = None
    repetitions: int = 1
    shares: GridShares = field(default_factory=GridShares)
    seed: int = 0

    def __post_init__(self) -> None:
        users = whole("users", self.users, least=1, most=1 << 28)
        k = whole("k", self.k, least=1, most=1 << 16)
        p = max(2, math.floor(0.5 * math.log(users))) if self.p is None else self.p
        depth = max(2, math.floor(math.log2(users) / 2)) if self.depth is None else self.depth
        keep(
            self,
            k=k,
            epsilon=positive("epsilon", self.epsilon),
            users=users,
            p=whole("p", p, least=1, most=MOST_DIMENSIONS),
            depth=whole("depth", depth, least=1, most=16),
            swaps=whole("swaps", min(k, 20) if self.swaps is None else self.swaps, least=1, most=1 << 16),
            trials=whole("trials", self.trials, least=1, most=1 << 10),
            picked=whole(
                "picked",
                self.bounds.items_each if self.picked is None else self.picked,
                least=1,
                most=self.bounds.items,
            ),
            repetitions=whole("repetitions", self.repetitions, least=1, most=64),
            seed=whole("seed", self.seed, least=0, most=(1 << 63) - 1),
        )
        _ = self.partition, self.local_swaps, self.recovery  # each raises now if it cannot be drawn

    @cached_property
    def epsilons(self) -> GridEpsilons:
        """What each step spends."""
        return self.shares.of(self.epsilon, self.trials)

    @cached_property
    def guarantee(self) -> Guarantee:
        """What the whole release promises, all its steps together: epsilon, in nats, for one user's rows, added or removed."""
        spent = self.epsilons
        steps = (self.partition.guarantee, self.local_swaps.guarantee, self.recovery.guarantee)
        each = [Fraction(step.loss.value) for step in steps if step.loss is not None]
        rho = up(self.trials * (sum(each) + (self.repetitions - 1) * each[0]) + Fraction(spent.final) ** 2 / 8)
        loss = finite_loss(LossKind.ZCDP, rho) if len(each) == len(steps) else None
        return Guarantee(self.epsilon, ONE_USER, proof=self.name, loss=loss)

    @cached_property
    def partition(self) -> PrivatePartition:
        """The grid: once in every trial and repetition."""
        epsilon = down(Fraction(self.epsilons.candidates) / self.repetitions)
        return PrivatePartition(self.p or 0, self.depth or 0, epsilon)

    @cached_property
    def local_swaps(self) -> LocalSwaps:
        """The choice of k candidates, once in every trial."""
        return LocalSwaps(self.k, self.epsilons.swaps, self.swaps or 0)

    @cached_property
    def recovery(self) -> SparseRecovery:
        """Sizes and values, once in every trial. Sums are divided by at least a quarter of an even cluster's users."""
        spent = self.epsilons
        least = max(1.0, self.users / (4 * self.k))
        return SparseRecovery(self.bounds, self.k, self.picked or 0, spent.count, spent.select, spent.values, least)

    def release(self, rows: ArrayLike | sparse.csr_array, noise: Noise = SYSTEM_NOISE) -> Release[Prototypes]:
        """The prototypes of the only trial, or of a trial that is chosen privately. The path is the same without users."""
        table = self.bounds.bounded(rows, noise)
        trials = [self._trial(table, trial, noise) for trial in range(self.trials)]
        chosen = 0
        if self.trials > 1:
            bound = self.trial_loss_bound
            losses = np.array([[self.trial_loss(table, trial) for trial in trials]])
            chosen = int(gumbel_choice(-losses, Fraction(self.epsilons.final) / bound, noise)[0])
        return released(trials[chosen], self.guarantee, noise)

    def _trial(self, table: sparse.csr_array, trial: int, noise: Noise) -> Prototypes:
        points = GridPoints(self.bounds, self.p or 0, self.seed, trial).of(table)
        candidates = self._candidates(points, trial, noise)
        centres = candidates[self.local_swaps.release(points, candidates, noise).value]
        nearest, _, _ = nearest_two(points.T.astype(np.float64), centres.T.astype(np.float64), math.inf)
        return self.recovery.recover(table, nearest, noise)

    def _candidates(self, points: NDArray[np.int64], trial: int, noise: Noise) -> NDArray[np.int64]:
        """The centres of the grid, and of further grids over a cube twice as wide with a public shift."""
        centres = [self.partition.release(points, noise).value]
        wide = replace(self.partition, half_side=2 * HALF_SIDE)
        for which in range(1, self.repetitions):
            shift = uniform_shift(HALF_SIDE, self.p or 0, self.seed, self.repetitions * trial + which)
            centres.append(wide.release(points + shift, noise).value - shift)
        return np.unique(np.concatenate(centres), axis=0)

    @cached_property
    def _coarser(self) -> int:
        """How many bits the loss of a trial drops, so that one user's loss is at most 2^34 and sums fit 64 bits."""
        return max(0, (4 * self.bounds.l2_squared_steps).bit_length() - 34)

    @property
    def trial_loss_bound(self) -> int:
        """The most that one user adds to the loss of a trial: (2 R)^2, in the units of that loss."""
        return max(1, 4 * self.bounds.l2_squared_steps >> self._coarser)

    @np.errstate(all="ignore")
    def trial_loss(self, table: sparse.csr_array, trial: Prototypes) -> int:
        """The sum over users of the squared distance to the nearest prototype, at most (2 R)^2 each. Private.

        Prototypes are rounded to steps and cut to length R; numbers that were not released count as 0.
        """
        steps = np.rint(trial.filled() / float(self.bounds.step)).astype(np.int64)
        steps = np.clip(steps, -STEPS, STEPS)
        norm = root_up((steps * steps).sum(axis=1))
        over = norm > self.bounds.l2_steps
        steps[over] = np.sign(steps[over]) * (np.abs(steps[over]) * self.bounds.l2_steps // norm[over, None])
        squares, most, total = (steps * steps).sum(axis=1), 4 * self.bounds.l2_squared_steps, 0
        size = max(1, _CELLS // self.k)
        for first in range(0, table.shape[0], size):
            part = table[first : first + size]
            own = np.asarray((part * part).sum(axis=1), dtype=np.int64).reshape(-1, 1)
            apart = own - 2 * np.asarray(part @ steps.T) + squares
            total += int((np.minimum(apart.min(axis=1), most) >> self._coarser).sum())
        return total
