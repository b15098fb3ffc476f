"""Mechanisms that add noise to whole numbers of grid steps: how far inputs move the centre, and what the noise makes of it.

The centre is never taken from the mechanism's own helper: two releases of different inputs under the same replayed bytes
differ by exactly the difference of their centres, if the noise does not depend on the input. If it does, the differences
change from one replay to the next, and that is found out.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.audit.check import Claims
from tacit.guarantees import Release
from tacit.mechanisms.noise import Noise, ReplayedNoise
from tacit.mechanisms.samplers.integers import GridVector

_REPLAYS = range(2)  # for every input
_MORE_REPLAYS = range(2, 26)  # for some of them: near scales give different noise but once in a while
_SOME = 6
_FINE = 1e6  # from this variance on a sum over the lattice is an integral to 1e-7 / variance of itself


class Additive(Claims, Protocol):
    """Releases grid steps: a centre that depends on the input, plus noise that does not."""

    def release(self, raw: Any, noise: Noise, /) -> Release[GridVector]: ...


def centres(mechanism: Additive, inputs: Sequence[Any], *, closely: bool = True) -> NDArray[np.int64] | None:
    """inputs x coordinates: each input's centre less the first one's, exactly; None if the noise depends on the input.

    Without ``closely`` each is released once: noise that depends on the input is then part of the differences, and of the loss.
    """

    def replayed(seed: int, places: NDArray[np.int64]) -> NDArray[np.int64]:
        steps = np.stack([mechanism.release(inputs[place], ReplayedNoise(seed)).value.steps for place in places])
        return np.asarray(steps - steps[0])

    every = np.arange(len(inputs))
    some = np.unique(np.linspace(0, len(inputs) - 1, _SOME).astype(np.int64))
    centre = replayed(_REPLAYS[0], every)
    same = all(np.array_equal(centre, replayed(seed, every)) for seed in _REPLAYS[1:] if closely)
    more = _MORE_REPLAYS if closely else range(0)
    same = same and all(np.array_equal(centre[some], replayed(seed, some)) for seed in more)
    return centre if same else None


def shifts(centre: NDArray[np.int64], pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """The different shifts among the pairs, up to sign and order of the coordinates."""
    moved = np.sort(np.abs(centre[pairs[:, 0]] - centre[pairs[:, 1]]), axis=1)
    return np.unique(moved, axis=0)


def largest_l1(shift: NDArray[np.int64]) -> int:
    """The largest L1 norm of a shift, in whole numbers."""
    return max((sum(int(x) for x in row) for row in shift), default=0)


def largest_squares(shift: NDArray[np.int64]) -> int:
    """The largest squared L2 norm of a shift, in whole numbers of unlimited size."""
    return max((sum(int(x) ** 2 for x in row) for row in shift), default=0)


def laplace_loss(pmf: Callable[[NDArray[np.int64], int], NDArray[np.float64]], shift: int) -> float:
    """The largest ln P(y | 0) / P(y | shift): attained at the centres and beyond them, where the ratio no longer changes."""
    outputs = np.array([-1, 0, 1, shift // 2, shift - 1, shift, shift + 1], dtype=np.int64)
    return float(np.abs(np.log(pmf(outputs, 0)) - np.log(pmf(outputs, shift))).max())


def gaussian_renyi(
    pmf: Callable[[NDArray[np.int64], int], NDArray[np.float64]], shift: int, order: float, deviation: float
) -> float:
    """The Renyi divergence between the laws around ``shift`` and around 0, by summing over the lattice.

    With a deviation of many steps every h-th point is summed and counted h times, h <= deviation / 4: by Poisson summation
    that changes the sum by less than 2 e^(-2 pi^2 16) of itself.
    """
    stride = max(1, int(deviation / 4.0))
    centre, reach = round(order * shift), math.ceil(12.0 * deviation) + 1
    points = np.arange(centre - reach, centre + reach + 1, stride)
    log_p, log_q = np.log(pmf(points, shift)), np.log(pmf(points, 0))
    if order == 1.0:
        return float(stride * np.sum(np.exp(log_p) * (log_p - log_q)))
    return float(np.log(stride * np.sum(np.exp(order * log_p + (1.0 - order) * log_q))) / (order - 1.0))


def gaussian_tail(n: NDArray[np.int64] | int, variance: Fraction) -> NDArray[np.float64]:
    """P(N >= n) of the discrete Gaussian law; for large variances by the normal law at n - 1/2."""
    from scipy.special import ndtr

    deviation = math.sqrt(variance)
    at = np.asarray(n)
    if variance >= _FINE:
        return np.asarray(ndtr(-(at - 0.5) / deviation))
    reach = math.ceil(39.0 * deviation) + 1
    points = np.arange(-reach, reach + 1)
    weight = np.exp(-(points.astype(np.float64) ** 2) / float(2 * variance))
    above = np.concatenate([np.cumsum(weight[::-1])[::-1], [0.0]]) / weight.sum()
    return np.asarray(above[np.clip(at + reach, 0, above.size - 1)])


def gaussian_delta(shift: int, variance: Fraction, epsilon: float) -> float:
    """The exact delta at ``epsilon`` between the law around ``shift`` > 0 and around 0."""
    # the loss at n is (2 n shift - shift^2) / (2 variance): it exceeds epsilon from this n on
    first = math.floor(Fraction(epsilon) * variance / shift + Fraction(shift, 2)) + 1
    return float(gaussian_tail(first - shift, variance) - math.exp(epsilon) * gaussian_tail(first, variance))


def gaussian_epsilon(shift: int, variance: Fraction, delta: float) -> float:
    """The smallest epsilon that holds with ``delta`` between the law around ``shift`` > 0 and around 0."""
    low, high = 0.0, 1.0
    while gaussian_delta(shift, variance, high) > delta:
        high *= 2.0
    for _ in range(80):
        middle = (low + high) / 2.0
        low, high = (low, middle) if gaussian_delta(shift, variance, middle) <= delta else (middle, high)
    return high
