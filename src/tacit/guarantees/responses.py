"""Equal pure releases, exactly: n randomised responses are the worst of all n-fold compositions (docs/proofs/composition).

With W ~ Bin(n, 1/(1 + e^e)) wrong answers the loss is (n - 2W) e, so delta(epsilon) = E[(1 - e^(epsilon - loss))_+]: a sum of
terms that are all positive, of which no digits cancel.
"""

import math

import numpy as np

from tacit.guarantees.binomial import mass, window
from tacit.guarantees.zcdp import smallest

MOST_TIMES = 10**9  # the masses have about twelve digits up to here
_FLOATS = 1e-9  # relative error granted to each mass, and the share of delta for the mass that is left out


class Responses:
    """``times`` randomised responses of ``epsilon`` each; answers of a probability below e^-log_left are left out."""

    def __init__(self, epsilon: float, times: int, log_left: float) -> None:
        wrong = math.exp(-epsilon) / (1.0 + math.exp(-epsilon))
        low, high = window(np.full(1, float(times)), wrong, log_left)
        counts = np.arange(low[0], high[0] + 1.0)
        self.losses = (times - 2.0 * counts) * epsilon
        self.losses += np.abs(self.losses) * 1e-15  # from above
        self.masses = mass(np.full_like(counts, float(times)), counts, wrong)
        self.left_out = 2.0 * math.exp(-log_left)

    def delta(self, epsilon: float) -> float:
        """delta(epsilon), rounded up."""
        gaps = np.minimum(0.0, epsilon - self.losses)
        return float(self.masses @ -np.expm1(gaps)) * (1.0 + _FLOATS) + self.left_out


def equal_epsilon(epsilon: float, times: int, delta: float) -> float | None:
    """The smallest epsilon at ``delta`` of ``times`` pure releases of ``epsilon`` each, rounded up; None for too many."""
    if times > MOST_TIMES:
        return None
    responses = Responses(epsilon, times, -math.log(delta * _FLOATS))
    if responses.delta(0.0) <= delta:
        return 0.0
    all_of_it = times * epsilon * (1.0 + 1e-12)
    if not responses.delta(all_of_it) <= delta:
        return None
    return smallest(lambda total: responses.delta(total) <= delta, all_of_it)
