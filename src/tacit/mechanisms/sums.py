"""Noise on sums over users, and on one user's features: discrete Laplace and discrete Gaussian, on a public grid.

Proofs: docs/proofs/vector-laplace.md, laplace-sum.md, gaussian-sum.md and bounded-counts.md.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.checks import finite, keep, member, positive, probability, whole
from tacit.errors import InvalidInput, InvalidParameter
from tacit.guarantees import ONE_USER, Guarantee, Loss, LossKind, Relation, Release, metric, pure
from tacit.guarantees.arithmetic import up
from tacit.guarantees.concentrated import rho_for
from tacit.guarantees.guarantee import one_user
from tacit.mechanisms.inputs import STEPS, bounded_row_sum, real_array
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise, released
from tacit.mechanisms.samplers.integers import GridNoise, GridVector

_SATURATION = (1 << 31) - 1  # releases fit an int32 on the wire; cutting after the noise costs nothing


@dataclass(frozen=True)
class VectorLaplace:
    """One vector of features in [low, high]^dimension plus discrete Laplace noise of ``scale`` on a grid of 2^-``grid_bits``.

    (1/scale)-metric privacy in L1: the loss between two vectors is at most (their L1 distance + rounding) / scale. A float
    scale means the binary number that it is. Use a ``Fraction`` to say 1/10 exactly, if several parties have to agree on it.
    """

    name: ClassVar[str] = "vector-laplace"
    dimension: int
    scale: float | Fraction
    low: float = 0.0  # the smallest feature: features are scores without a unit
    high: float = 1.0  # the largest feature, also a score
    grid_bits: int = 20

    def __post_init__(self) -> None:
        keep(
            self,
            dimension=whole("dimension", self.dimension, least=1, most=1 << 22),
            scale=_checked_scale(self.scale),
            low=finite("low", self.low),
            high=finite("high", self.high),
            grid_bits=whole("grid_bits", self.grid_bits, least=0, most=30),
        )
        if not self.low < self.high:
            raise InvalidParameter(f"features need low < high, not [{self.low!r}, {self.high!r}].")
        if max(abs(self.low), abs(self.high)) * 2.0**self.grid_bits > 1 << 30:
            raise InvalidParameter("low and high must lie within 2^30 grid steps: choose fewer grid_bits.")
        _ = self.noise_law

    @cached_property
    def noise_law(self) -> GridNoise:
        """The noise on each coordinate."""
        step = Fraction(1, 1 << self.grid_bits)
        return GridNoise.laplace(Fraction(self.scale) / step, step)

    @cached_property
    def guarantee(self) -> Guarantee:
        """What one release promises: epsilon, in nats, per unit of L1 distance, and how much rounding adds to a distance."""
        # each coordinate is rounded by at most half a step on both sides: distances grow by at most one step per coordinate
        rounding = up(self.dimension * self.noise_law.step)
        return metric(up(1 / Fraction(self.scale)), distance="L1", rounding=rounding, proof=self.name)

    def log_pmf(self, steps: NDArray[np.int64], features: ArrayLike) -> NDArray[np.float64]:
        """ln P(steps | features) before saturation, along the last axis."""
        noise = steps - self._steps(features)
        rate = float(1 / self.noise_law.width)
        law: NDArray[np.float64] = np.sum(np.log(np.tanh(rate / 2.0)) - np.abs(noise) * rate, axis=-1)
        return law

    def release(self, features: ArrayLike, noise: Noise = SYSTEM_NOISE) -> Release[GridVector]:
        """The noisy features."""
        noisy = np.clip(self.noise_law.add(self._steps(features), noise), -_SATURATION, _SATURATION)
        return released(GridVector(noisy, self.noise_law.step), self.guarantee, noise)

    def _steps(self, features: ArrayLike) -> NDArray[np.int64]:
        values = real_array(features, "features")
        if values.shape != (self.dimension,):
            raise InvalidInput(f"expected {self.dimension} features in one row.")
        if not np.isfinite(values).all():
            raise InvalidInput("every feature must be a finite number.")
        # clipping moves no two vectors apart, so distances only shrink; 2^bits times a float is exact
        return np.rint(np.clip(values, self.low, self.high) * 2.0**self.grid_bits).astype(np.int64)


def _checked_scale(scale: float | Fraction) -> float | Fraction:
    if not isinstance(scale, Fraction):
        return positive("scale", scale)
    if scale <= 0:
        raise InvalidParameter(f"scale must be a finite number above 0, not {scale}.")
    return scale


@dataclass(frozen=True)
class LaplaceSum:
    """The sum of users' rows, each cut to L1 norm ``bound``, plus discrete Laplace noise: pure epsilon-DP for one user."""

    name: ClassVar[str] = "laplace-sum"
    dimension: int  # numbers in a row
    bound: float
    epsilon: float  # nats
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        keep(
            self,
            dimension=whole("dimension", self.dimension, least=1, most=1 << 22),
            bound=positive("bound", self.bound),
            epsilon=positive("epsilon", self.epsilon),
            relation=member("relation", Relation, self.relation),
        )
        _ = self.noise_law

    @cached_property
    def guarantee(self) -> Guarantee:
        """What one release promises: epsilon, in nats, for one user's rows."""
        return pure(self.epsilon, one_user(self.relation), proof=self.name)

    @cached_property
    def noise_law(self) -> GridNoise:
        """The bound is 2^20 steps; replacing a row takes one out and puts one in, so it moves the sum twice as far."""
        sensitivity = STEPS * (1 if self.relation is Relation.ADD_REMOVE else 2)
        return GridNoise.laplace(sensitivity / Fraction(self.epsilon), Fraction(self.bound) / STEPS)

    def release(self, rows: ArrayLike | sparse.csr_array, noise: Noise = SYSTEM_NOISE) -> Release[GridVector]:
        """The noisy sum over all users' rows."""
        total = bounded_row_sum(rows, self.dimension, self.bound, norm=1)
        return released(self.noise_law.vector(total, noise), self.guarantee, noise)


@dataclass(frozen=True)
class GaussianSum:
    """The sum of users' rows, each cut to L2 norm ``bound``, plus discrete Gaussian noise: zCDP, stated as (epsilon, delta)."""

    name: ClassVar[str] = "gaussian-sum"
    dimension: int  # numbers in a row
    bound: float
    epsilon: float  # nats
    delta: float  # a probability
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        keep(
            self,
            dimension=whole("dimension", self.dimension, least=1, most=1 << 22),
            bound=positive("bound", self.bound),
            epsilon=positive("epsilon", self.epsilon),
            delta=probability("delta", self.delta),
            relation=member("relation", Relation, self.relation),
        )
        _ = self.noise_law

    @cached_property
    def rho(self) -> float:
        """The zCDP that (epsilon, delta) affords, rounded down."""
        return rho_for(self.epsilon, self.delta)

    @cached_property
    def guarantee(self) -> Guarantee:
        """What one release promises: (epsilon, delta) for one user's rows; composes by its zCDP."""
        loss = Loss(LossKind.ZCDP, self.rho)
        return Guarantee(self.epsilon, one_user(self.relation), delta=self.delta, proof=self.name, loss=loss)

    @cached_property
    def noise_law(self) -> GridNoise:
        """The bound is 2^20 steps; replacing a row moves the sum twice as far."""
        sensitivity = STEPS * (1 if self.relation is Relation.ADD_REMOVE else 2)
        return GridNoise.gaussian(sensitivity * sensitivity, rho=self.rho, step=Fraction(self.bound) / STEPS)

    def release(self, rows: ArrayLike | sparse.csr_array, noise: Noise = SYSTEM_NOISE) -> Release[GridVector]:
        """The noisy sum over all users' rows."""
        total = bounded_row_sum(rows, self.dimension, self.bound, norm=2)
        return released(self.noise_law.vector(total, noise), self.guarantee, noise)


User: TypeAlias = str | bytes | int

NOWHERE = -1  # the place of a report that counts nowhere; it still is one of its user's reports


@dataclass(frozen=True)
class BoundedCounts:
    """How many reports (user, place) name each of the places 0 to ``dimension`` - 1: pure epsilon-DP for one user.

    The first ``reports_each`` reports of a user count, at any place. Every place is released, also one that no report names. A
    user is a string, bytes or a whole number, so that equal users are recognised as equal.
    """

    name: ClassVar[str] = "bounded-counts"
    dimension: int  # numbers in a release
    epsilon: float  # nats
    reports_each: int = 1

    def __post_init__(self) -> None:
        keep(
            self,
            dimension=whole("dimension", self.dimension, least=1, most=1 << 22),
            epsilon=positive("epsilon", self.epsilon),
            reports_each=whole("reports_each", self.reports_each, least=1, most=10**6),
        )
        _ = self.noise_law

    @cached_property
    def guarantee(self) -> Guarantee:
        """What one release promises: epsilon, in nats, for one user's rows, added or removed."""
        return pure(self.epsilon, ONE_USER, proof=self.name)

    @cached_property
    def noise_law(self) -> GridNoise:
        """A step is one report, and a user's reports add ``reports_each`` in all, wherever they are."""
        return GridNoise.laplace(Fraction(self.reports_each) / Fraction(self.epsilon), Fraction(1))

    def totals(self, reports: Iterable[tuple[User, int]]) -> NDArray[np.int64]:
        """The exact counts. Private.

        A malformed report counts for nothing: an error would reveal it. A report without a user is skipped, because no cap could
        bound it. A report at an unknown place still is one of its user's reports.
        """
        if not isinstance(reports, Iterable) or isinstance(reports, str | bytes | Mapping):
            raise InvalidInput("reports must be a list of pairs: a user and a place.")
        counts, used = np.zeros(self.dimension, dtype=np.int64), dict[User, int]()
        for report in reports:
            user, place = _user_and_place(report)
            if user is None:
                continue
            before = used.get(user, 0)
            used[user] = before + 1
            if before < self.reports_each and 0 <= place < self.dimension:
                counts[place] += 1
        return counts

    def release(self, reports: Iterable[tuple[User, int]], noise: Noise = SYSTEM_NOISE) -> Release[GridVector]:
        """The noisy count of every place. Negative counts stay: cutting them off would raise every sum of small counts."""
        return released(self.noise_law.vector(self.totals(reports), noise), self.guarantee, noise)


def _user_and_place(report: Any) -> tuple[User | None, int]:
    """The user of a report, None if it has none, and its place. A NaN would be a new user every time, so it is no user."""
    try:
        user, place = report
    except (TypeError, ValueError):
        return None, NOWHERE
    if not isinstance(place, int | np.integer) or isinstance(place, bool):
        place = NOWHERE
    if isinstance(user, str | bytes):
        return user, int(place)
    return int(user) if isinstance(user, int | np.integer) else None, int(place)
