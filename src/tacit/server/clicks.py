"""How often something was clicked, from bits that devices flipped by chance. Nobody can be charged per click.

Charging per click would need each click exactly, and what a person reacts to is as private as what she was chosen for: a price
per click is therefore not offered. What is offered is how many clicks there were, with an error that is known. An offer of one
candidate costs no epsilon, but its click is an answer about that candidate: the epsilon of the bit is all that protects it.
"""

import math
from typing import NamedTuple

from tacit.checks import positive, whole
from tacit.errors import InvalidParameter


class ClickEstimate(NamedTuple):
    """``clicks`` among ``received`` impressions, without bias: it may be negative, or above what was received.

    ``sd`` is the standard deviation that chance on the devices gives it.
    """

    clicks: float
    sd: float
    received: int


def click_estimate(received: int, ones: int, epsilon: float) -> ClickEstimate:
    """From ``ones`` among ``received`` bits, each kept with probability p = e^epsilon / (1 + e^epsilon) and flipped otherwise.

    (ones - n (1-p)) / (2p - 1), where n is the number of bits that were *received*. The number of impressions in its place
    counts a bit that never came as a flipped one: with a tenth of 10,000 missing that is 582 clicks too few at epsilon = 1.
    ``epsilon`` is in nats; the estimate is a number of clicks.
    """
    n, y = whole("received", received, least=0), whole("ones", ones, least=0)
    if y > n:
        raise InvalidParameter("there cannot be more ones than bits.")
    half = positive("epsilon", epsilon) / 2.0
    # 1 - p = (1 - tanh(epsilon/2)) / 2, and p (1-p) = 1 / (2 cosh(epsilon/2))^2
    flipped, kept = (1.0 - math.tanh(half)) / 2.0, math.tanh(half)
    spread = math.sqrt(n) / (2.0 * math.sinh(half)) if half < 350.0 else 0.0
    return ClickEstimate((y - n * flipped) / kept, spread, n)


def reward(bit: int, epsilon: float) -> float:
    """One flipped bit as an estimate of the click behind it, without bias."""
    return click_estimate(1, bit, epsilon).clicks
