"""Inverse-propensity terms, formed on the device: what one impression says about another way to choose.

The probability of what was shown depends on private scores, so neither it nor a single term may leave the device. Terms leave as a
sum over many users, with noise (tacit.curator.counterfactual), for which each is bounded by a public number: a mechanism that
gives every one of m candidates at least 1 / (d e^epsilon + m - d) has no larger inverse.
"""

import math

from tacit.checks import positive, whole
from tacit.errors import InvalidParameter


def most_weight(m: int, epsilon: float, d: int = 1) -> float:
    """The largest inverse propensity of rr(m, d): d e^epsilon + m - d. Public; d = m is the uniform choice, whose inverse is m."""
    m = whole("m", m, least=1)
    d = whole("d", d, least=1, most=m)
    if d == m:
        return float(m)
    try:
        return d * math.exp(positive("epsilon", epsilon)) + (m - d)
    except OverflowError:
        raise InvalidParameter(
            "this epsilon bounds nothing: the inverse of so small a probability is too large."
        ) from None


def term(reward: float, target_probability: float, propensity: float, most: float) -> float:
    """reward * target_probability / propensity, within [0, ``most``]: on average the reward under the target.

    For a reward in [0, 1] the cut at ``most`` only catches rounding. The target's probability may be private too, such as greedy on
    the device; it is 0 for whatever was not offered, which is why only targets among the m offered candidates come out right.
    Nothing is refused here: what is no number, or lies outside its range, is brought into it.
    """
    ratio = _within(reward, 1.0) * _within(target_probability, 1.0) / max(_within(propensity, 1.0), 1e-300)
    return min(ratio, most)


def _within(value: float, most: float) -> float:
    return min(max(value, 0.0), most) if value == value else 0.0  # NaN is 0
