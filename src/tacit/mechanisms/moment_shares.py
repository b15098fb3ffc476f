"""One entity's share of the first and second moments of users' unit rows, with discrete Gaussian noise on every number.

Shares are added up, by secure aggregation or in the open; the noise is in the sum once. docs/proofs/popularity-share.md and
docs/proofs/gram-share.md.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.checks import keep, positive, probability, whole
from tacit.errors import InvalidParameter
from tacit.guarantees import ONE_USER, Guarantee, Loss, LossKind, Release
from tacit.guarantees.rounding import down
from tacit.guarantees.zcdp import epsilon_of_rho, rho_for
from tacit.mechanisms.drawn import released
from tacit.mechanisms.grid import GridVector
from tacit.mechanisms.moment_sums import gram_sums, popularity_sums
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise
from tacit.mechanisms.samplers import discrete_gaussian
from tacit.models.moments import STEPS, triangle

MOST_ITEMS, MOST_HEAD, MOST_HONEST = 1 << 22, 1 << 12, 1 << 20
LEAST_SD = 1000  # steps: the sum of several such draws is a discrete Gaussian up to e^(-9,000,000)


def moment_rhos(epsilon: float, delta: float, part: float = 0.15) -> tuple[float, float]:
    """The rho of the popularity, which gets ``part`` of what (epsilon, delta) affords, and that of the Gram matrix, the rest.

    Both are rounded down: they never add up to more than ``rho_for(epsilon, delta)``.
    ``epsilon`` is in nats, ``delta`` a probability.
    """
    whole_rho, share = Fraction(rho_for(epsilon, delta)), Fraction(probability("part", part))
    popularity = down(share * whole_rho)
    gram = down(whole_rho - Fraction(popularity))
    if not (popularity > 0.0 and gram > 0.0):
        raise InvalidParameter(
            "this part leaves one of the two moments no rho above 0: take a part between .05 and .95."
        )
    return popularity, gram


@dataclass(frozen=True)
class PopularityShare:
    """The sum over users of x / |x|, where x marks the items a user has: one entity's share, with its noise.

    ``honest`` = 1: the share protects by itself. More: only the sum protects, and only if so many shares in it have noise that
    the adversary does not know; each then carries that part of the variance.
    """

    name: ClassVar[str] = "popularity-share"
    items: int
    rho: float  # of zCDP
    delta: float  # a probability
    honest: int = 1

    def __post_init__(self) -> None:
        _keep_checked(self)
        _require_wide(self.variance_in_steps)

    @cached_property
    def guarantee(self) -> Guarantee:
        """What the sum of all shares promises, if ``honest`` of them have noise that nobody else knows: (epsilon,
        delta) for one user's rows.
        """
        return _guarantee(self.name, self.rho, self.delta, self.honest)

    @cached_property
    def variance_in_steps(self) -> Fraction:
        """Of the noise of this share: a user's whole numbers have squares of at most 2^40 in all."""
        return _variance(STEPS**2, self.rho, self.honest)

    @property
    def sd(self) -> float:
        """Of the noise of this share in one number, in units of 1."""
        return math.sqrt(self.variance_in_steps) / STEPS

    def pmf(self, steps: NDArray[np.int64] | int, total: int) -> NDArray[np.float64]:
        """The probability that one number, which truly is ``total`` steps, is released as ``steps``."""
        return discrete_gaussian.pmf(np.asarray(steps) - total, self.variance_in_steps)

    def totals(self, rows: ArrayLike | sparse.csr_array) -> NDArray[np.int64]:
        """The exact sums in steps, the same in any order of users. Private."""
        return popularity_sums(rows, self.items)

    def release(self, rows: ArrayLike | sparse.csr_array, noise: Noise = SYSTEM_NOISE) -> Release[GridVector]:
        """One noisy whole number for every item, also for those nobody has."""
        noisy = self.totals(rows) + discrete_gaussian.sample(self.variance_in_steps, self.items, noise)
        return released(GridVector(noisy, Fraction(1, STEPS)), self.guarantee, noise)


@dataclass(frozen=True)
class GramShare:
    """The sum over users of w w^T, w = x / |x| on a public head of items, as one vector: an entity's share, with its noise.

    The vector holds G_ii / sqrt 2 for every item of the head, in the order given, then G_ij for i < j, row by row
    (``tacit.models.moments.gram_from`` reads it). ``honest`` as for the popularity. Any head keeps the bound: a user's row is
    normalised after everything outside the head is gone.
    """

    name: ClassVar[str] = "gram-share"
    items: int
    head: tuple[int, ...]
    rho: float  # of zCDP
    delta: float  # a probability
    honest: int = 1

    def __post_init__(self) -> None:
        _keep_checked(self)
        keep(self, head=_checked_head(self.head, self.items))
        _require_wide(self.variance_in_steps)

    @cached_property
    def guarantee(self) -> Guarantee:
        """What the sum of all shares promises, if ``honest`` of them have noise that nobody else knows: (epsilon,
        delta) for one user's rows.
        """
        return _guarantee(self.name, self.rho, self.delta, self.honest)

    @cached_property
    def variance_in_steps(self) -> Fraction:
        """Of the noise of this share: a user's vector has squares of at most 2^39 in all."""
        return _variance(STEPS**2 // 2, self.rho, self.honest)

    @property
    def sd(self) -> float:
        """Of the noise of this share in one number of the vector, in units of 1."""
        return math.sqrt(self.variance_in_steps) / STEPS

    @property
    def length(self) -> int:
        """How many numbers a share has: the products of the head's items, two by two."""
        return triangle(len(self.head))

    def pmf(self, steps: NDArray[np.int64] | int, total: int) -> NDArray[np.float64]:
        """The probability that one number of the vector, which truly is ``total`` steps, is released as ``steps``."""
        return discrete_gaussian.pmf(np.asarray(steps) - total, self.variance_in_steps)

    def totals(self, rows: ArrayLike | sparse.csr_array) -> NDArray[np.int64]:
        """The exact vector in steps, the same in any order of users. Private."""
        return gram_sums(rows, self.items, self.head)

    def release(self, rows: ArrayLike | sparse.csr_array, noise: Noise = SYSTEM_NOISE) -> Release[GridVector]:
        """One noisy whole number for every item and every pair of items of the head."""
        noisy = self.totals(rows) + discrete_gaussian.sample(self.variance_in_steps, self.length, noise)
        return released(GridVector(noisy, Fraction(1, STEPS)), self.guarantee, noise)


def _guarantee(name: str, rho: float, delta: float, honest: int) -> Guarantee:
    loss = Loss(LossKind.ZCDP, rho)
    alone = Guarantee(epsilon_of_rho(rho, delta), ONE_USER, delta=delta, proof=name, loss=loss)
    if honest == 1:
        return alone
    return alone.assuming(
        "only the sum of the shares is seen",
        f"at least {honest} shares in it have noise that the adversary does not know",
    )


def _variance(squared_sensitivity: int, rho: float, honest: int) -> Fraction:
    """Of one share's noise on one number, in steps squared, as an exact fraction.

    Alone, sensitivity^2 / (2 rho). Where ``honest`` shares protect together, that divided among them, and wider by 2^-60: the sum
    of discrete Gaussians is a discrete Gaussian up to a factor that is far smaller than this (docs/proofs/popularity-share.md).
    """
    total = Fraction(squared_sensitivity) / (2 * Fraction(rho))
    return total if honest == 1 else total * (1 + Fraction(1, 1 << 60)) / honest


def _keep_checked(share: PopularityShare | GramShare) -> None:
    keep(
        share,
        items=whole("items", share.items, least=1, most=MOST_ITEMS),
        rho=positive("rho", share.rho),
        delta=probability("delta", share.delta),
        honest=whole("honest", share.honest, least=1, most=MOST_HONEST),
    )


def _require_wide(variance: Fraction) -> None:
    discrete_gaussian.require_drawable(variance)
    if variance < LEAST_SD**2:
        raise InvalidParameter(
            f"the noise of one share must have a deviation of at least {LEAST_SD} steps of 2^-20: lower rho, or `honest`."
        )


def _checked_head(head: ArrayLike, items: int) -> tuple[int, ...]:
    chosen = np.asarray(head)
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu" or not 1 <= chosen.size <= MOST_HEAD:
        raise InvalidParameter(f"a head must be a list of 1 to {MOST_HEAD} items, as whole numbers.")
    if int(chosen.min()) < 0 or int(chosen.max()) >= items or np.unique(chosen).size < chosen.size:
        raise InvalidParameter(f"a head must name different items, from 0 to {items - 1}.")
    return tuple(chosen.tolist())
