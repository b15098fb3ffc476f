"""Gaussian sums over random samples of the users, repeated many times: the step of private training, and what it costs.

The cost is computed by Renyi divergences of whole orders, rounded up. Every user is in a sample with probability ``rate``, by a
coin of their own. The noise's deviation is ``multiplier`` times the bound of one user's row. The formulas hold for the discrete
law as for the continuous one. Proof: docs/proofs/sampled-gaussian.md.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import product
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.checks import keep, positive, probability, whole
from tacit.errors import InvalidInput, InvalidParameter
from tacit.guarantees import ONE_USER, Guarantee, Release, approximate
from tacit.guarantees.arithmetic import precise, up_from
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise, released
from tacit.mechanisms.samplers.coins import bernoulli
from tacit.mechanisms.samplers.integers import GridNoise, GridVector, NoiseKind

_CELLS = 1 << 21  # of a table at a time
MOST_STEPS = 10**7
MOST_MULTIPLIER = 2.0**30
_BITS = 256
_MARGIN = 2.0**-64  # added to epsilon, for what 256 bits may lose of a difference of terms below 2^100
# 2, 3, 4, ..., then every 8 %: leaving an order out may raise epsilon a little, and epsilon stays valid
_ORDERS: NDArray[np.int64] = np.unique(np.concatenate([np.arange(2, 65), np.geomspace(64, 4096, 55).astype(np.int64)]))


@runtime_checkable
class RowsOnDemand(Protocol):
    """The rows of all users, computed only for the users of a sample.

    Each row may depend on its own user, on earlier releases and on public values. It must not depend on who else is in the
    sample, not even in its last bit.
    """

    @property
    def n_users(self) -> int:
        """The number of users."""

    def of(self, users: NDArray[np.int64], /) -> Iterable[NDArray[np.integer[Any]]]:
        """Tables of whole numbers that together have one row for each of ``users``, in their order."""


@dataclass(frozen=True)
class SampledGaussian:
    """``steps`` sums of rows, each over a fresh random sample of the users, each with discrete Gaussian noise.

    (epsilon, delta) for one user, all steps together. Rows are whole numbers of grid steps; a row's L2 norm is cut to
    2^``grid_bits`` steps, which are worth ``bound``. A user is in a sample with probability ``rate``, by a coin of their own.
    """

    name: ClassVar[str] = "sampled-gaussian"
    dimension: int
    epsilon: float  # nats
    delta: float
    rate: Fraction
    steps: int
    bound: float = 1.0
    grid_bits: int = 20

    def __post_init__(self) -> None:
        keep(
            self,
            dimension=whole("dimension", self.dimension, least=1, most=1 << 22),
            epsilon=positive("epsilon", self.epsilon),
            delta=probability("delta", self.delta),
            rate=checked_rate(self.rate),
            steps=whole("steps", self.steps, least=1, most=MOST_STEPS),
            bound=positive("bound", self.bound),
            grid_bits=whole("grid_bits", self.grid_bits, least=0, most=20),  # squares of 2^22 cells then fit an int64
        )
        _ = self.noise_law

    @cached_property
    def guarantee(self) -> Guarantee:
        """What all ``steps`` releases together promise. Each release carries it, and so does everything computed from them."""
        return approximate(self.epsilon, self.delta, ONE_USER, proof=self.name)

    @cached_property
    def noise_multiplier(self) -> float:
        """The noise's deviation over the bound, as small as (epsilon, delta) allows, rounded up."""
        return multiplier_for(self.epsilon, self.delta, self.rate, self.steps)

    @property
    def bound_in_steps(self) -> int:
        """The largest norm of a row, in grid steps."""
        return 1 << self.grid_bits

    @cached_property
    def noise_law(self) -> GridNoise:
        """The noise on each number of one step: its deviation is ``noise_multiplier`` times the bound."""
        variance = (Fraction(self.noise_multiplier) * self.bound_in_steps) ** 2
        return GridNoise(NoiseKind.GAUSSIAN, variance, Fraction(self.bound) / self.bound_in_steps)

    def renyi(self, order: int) -> float:
        """The Renyi divergence of a whole order that one step may cost, rounded up."""
        return renyi_of_sampled(order, self.noise_multiplier, self.rate)

    def pmf(self, steps: ArrayLike, rows: ArrayLike) -> NDArray[np.float64]:
        """The probability that one step releases ``steps`` (outputs x dimension): a sum over all samples of a few users."""
        table = self.cut(rows)
        outputs = np.asarray(steps, dtype=np.int64).reshape(-1, self.dimension)
        law = np.zeros(len(outputs))
        for sampled in product((False, True), repeat=len(table)):
            chance = self.rate ** sum(sampled) * (1 - self.rate) ** (len(table) - sum(sampled))
            total = table[np.array(sampled, dtype=np.bool_)].sum(axis=0)
            law += float(chance) * self.noise_law.pmf(outputs - total).prod(axis=1)
        return law

    def sample(self, n_users: int, noise: Noise = SYSTEM_NOISE) -> NDArray[np.int64]:
        """The users of one step. Secret: a reader of the release must not see it."""
        return np.flatnonzero(bernoulli(self.rate, n_users, noise))

    def release(self, rows: ArrayLike | RowsOnDemand, noise: Noise = SYSTEM_NOISE) -> Release[GridVector]:
        """One step: the noisy sum over a sample of all users' rows. Call it at most ``steps`` times for one guarantee.

        The guarantee covers all steps together: charge it once, before the first step, and do not add it up.
        """
        if isinstance(rows, RowsOnDemand):
            sampled = self.sample(rows.n_users, noise)
            parts: Iterable[ArrayLike] = rows.of(sampled)
        else:
            table = self._whole(rows)
            sampled = self.sample(len(table), noise)
            parts = (table[sampled],)
        total, summed = np.zeros(self.dimension, dtype=np.int64), 0
        for part in parts:
            image = self.cut(part)
            total += image.sum(axis=0)
            summed += len(image)
        if summed != sampled.size:  # a user with two rows would exceed the bound
            raise InvalidInput("the source of rows must give exactly one row for each user of the sample.")
        return released(self.noise_law.vector(total, noise), self.guarantee, noise)

    def cut(self, rows: ArrayLike) -> NDArray[np.int64]:
        """Every row cut independently, in whole numbers: its L2 norm is then at most 2^grid_bits, exactly."""
        table, most = self._whole(rows), self.bound_in_steps
        image = np.empty(table.shape, dtype=np.int64)
        for first in range(0, len(table), 1 + _CELLS // self.dimension):
            part = image[first : first + 1 + _CELLS // self.dimension]
            np.clip(_as_int64(table[first : first + len(part)]), -most, most, out=part)
            for row, square in enumerate(np.einsum("ij,ij->i", part, part).tolist()):
                if square > most * most:
                    # |cell| * most / norm, rounded down: the norm of the result is at most ``most``, with no float in the way
                    norm = math.isqrt(square - 1) + 1
                    part[row] = np.sign(part[row]) * (np.abs(part[row]) * most // norm)
        return image

    def _whole(self, rows: ArrayLike) -> NDArray[np.integer[Any]]:
        try:
            table = np.asarray(rows)
        except ValueError:
            raise InvalidInput("rows must be a table: one row for each user, all of one length.") from None
        if table.shape == (0,):
            table = np.zeros((0, self.dimension), dtype=np.int64)
        if table.ndim != 2 or table.shape[1] != self.dimension or table.dtype.kind not in "iu":
            raise InvalidInput(f"expected rows of {self.dimension} whole numbers, one row for each user.")
        return table


def _as_int64(table: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Whole numbers as int64; larger numbers become the largest int64."""
    if table.dtype == np.uint64:
        table = np.minimum(table, np.uint64(np.iinfo(np.int64).max))
    return table.astype(np.int64)


# ---- The cost of all steps together.


def checked_rate(rate: Fraction | float) -> Fraction:
    """The probability of being sampled, above 0 and at most 1, as an exact fraction of at most 64 bits."""
    allowed = isinstance(rate, (int, float, Fraction)) and not isinstance(rate, bool) and 0 < rate <= 1
    exact = Fraction(rate) if allowed else Fraction(0)
    if not allowed or exact.denominator >= 1 << 64:
        raise InvalidParameter("`rate` must be above 0 and at most 1, and a fraction whose denominator is below 2^64.")
    return exact


def renyi_of_sampled(order: int, multiplier: float, rate: Fraction | float) -> float:
    """The Renyi divergence of whole ``order`` that one step costs at most, in either direction, rounded up.

    1/(a-1) ln sum_l C(a,l) (1-r)^(a-l) r^l e^(l(l-1) / 2 m^2)
    """
    order = whole("order", order, least=2, most=int(_ORDERS[-1]))
    return _renyi(order, positive("multiplier", multiplier), checked_rate(rate))


def epsilon_of_sampled(multiplier: float, rate: Fraction | float, steps: int, delta: float) -> float:
    """The epsilon at ``delta`` of all ``steps`` steps together, rounded up. A step may depend on the outputs of earlier ones."""
    steps = whole("steps", steps, least=1, most=MOST_STEPS)
    return _epsilon(positive("multiplier", multiplier), checked_rate(rate), steps, probability("delta", delta))


def multiplier_for(epsilon: float, delta: float, rate: Fraction | float, steps: int) -> float:
    """The noise multiplier with which ``steps`` steps stay within (epsilon, delta): the smallest one to nine digits, rounded up."""
    steps = whole("steps", steps, least=1, most=MOST_STEPS)
    return _multiplier(positive("epsilon", epsilon), probability("delta", delta), checked_rate(rate), steps)


@lru_cache(maxsize=4096)
def _renyi(order: int, multiplier: float, rate: Fraction) -> float:
    return max(0.0, up_from(_exact_renyi(precise(_BITS), order, multiplier, rate), spare=100))


@lru_cache(maxsize=4096)
def _epsilon(multiplier: float, rate: Fraction, steps: int, delta: float) -> float:
    # Every order gives a valid epsilon, so floats may choose it and only the last evaluation has to be exact.
    order = int(_ORDERS[int(np.argmin(_guesses(multiplier, rate, steps, delta)))])
    mp = precise(_BITS)
    total = steps * _exact_renyi(mp, order, multiplier, rate)
    log_delta = mp.log(mp.mpf(delta))
    epsilon = total + mp.log1p(-mp.mpf(1) / order) - (log_delta + mp.log(mp.mpf(order))) / (order - 1)
    return max(0.0, up_from(epsilon + _MARGIN, spare=100))


@lru_cache(maxsize=1024)
def _multiplier(epsilon: float, delta: float, rate: Fraction, steps: int) -> float:
    def guess(multiplier: float) -> float:
        return float(_guesses(multiplier, rate, steps, delta).min())

    low, high = 2.0**-20, MOST_MULTIPLIER
    if guess(high) > epsilon * (1.0 - 1e-9):
        raise InvalidParameter(f"no noise gives epsilon = {epsilon!r} at delta = {delta!r} here: raise one of them.")
    while high / low > 1.0 + 1e-10:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if guess(middle) <= epsilon else (middle, high)
    extra = 1e-10
    while _epsilon(high, rate, steps, delta) > epsilon:  # floats erred on the wrong side
        high *= 1.0 + extra
        extra *= 2.0
    return high


def _exact_renyi(mp: Any, order: int, multiplier: float, rate: Fraction) -> Any:
    """As an mpmath number. 1 is taken out of the sum: all its terms are then positive, and no digits are lost."""
    sampled, spread = mp.mpf(rate.numerator) / rate.denominator, 2 * mp.mpf(multiplier) ** 2
    left = 1 - sampled if rate < 1 else mp.mpf(0)
    total = mp.mpf(0)
    for size in range(2, order + 1) if rate < 1 else (order,):
        weight = math.comb(order, size) * left ** (order - size) * sampled**size
        total += weight * mp.expm1(size * (size - 1) / spread)
    return mp.log1p(total) / (order - 1)


def _guesses(multiplier: float, rate: Fraction, steps: int, delta: float) -> NDArray[np.float64]:
    """The epsilon of every order, in floats."""
    with np.errstate(over="ignore"):
        renyi = np.array([_log_sum(int(order), multiplier, float(rate)) for order in _ORDERS]) / (_ORDERS - 1.0)
        return np.asarray(
            steps * renyi + np.log1p(-1.0 / _ORDERS) - (math.log(delta) + np.log(_ORDERS)) / (_ORDERS - 1.0)
        )


def _log_sum(order: int, multiplier: float, rate: float) -> float:
    """ln(1 + sum), in floats, to choose an order."""
    from scipy.special import gammaln

    if rate == 1.0:
        return order * (order - 1.0) / (2.0 * multiplier**2)
    size = np.arange(2, order + 1, dtype=np.float64)
    growth = size * (size - 1.0) / (2.0 * multiplier**2)
    log_expm1 = np.where(growth > 30.0, growth, np.log(np.expm1(np.minimum(growth, 30.0))))
    logs = gammaln(order + 1.0) - gammaln(size + 1.0) - gammaln(order - size + 1.0)
    logs += (order - size) * math.log1p(-rate) + size * math.log(rate) + log_expm1
    top = float(logs.max())
    return float(np.logaddexp(0.0, top + np.log(np.exp(logs - top).sum())))
