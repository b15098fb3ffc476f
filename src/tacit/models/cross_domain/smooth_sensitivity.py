"""How far one user can move an adjusted cosine, here and in every database some users away (smooth sensitivity).

Ratings are centred and cut to |z| <= B; N is the smaller of the two items' squared norms. Removing a user changes the cosine by
at most 2 B^2 / N, and adding one by no more; t users away N is at least N - t B^2, and no cosine changes by more than 2:

    LS_t = min(2, 2 B^2 / (N - t B^2)),    S* = max over t of e^(-beta t) LS_t.

S* covers the change, and between neighbours it grows at most by the factor e^beta. Proof: docs/proofs/smooth-similarity.md.
"""

import math

from tacit.checks import finite, positive
from tacit.errors import InvalidParameter

MOST = 2.0  # from -1 to 1


def smooth_sensitivity(norm: float, bound: float, beta: float) -> float:
    """S* of a pair whose smaller squared norm is ``norm``, with ratings in [-bound, bound]."""
    if finite("norm", norm) < 0.0:
        raise InvalidParameter("norm is a squared length, of at least 0.")
    return smooth_steps(norm / positive("bound", bound) ** 2, positive("beta", beta))


def smooth_steps(users: float, beta: float) -> float:
    """S* where N = users B^2. The logarithm of LS_t is convex in t up to where LS_t is 2, so the largest is at an end."""
    away = max(0, math.ceil(users) - 1)  # how many users have to leave until LS_t is 2
    here = MOST if users <= 1.0 else MOST / users
    last = MOST / (users - (away - 1)) * math.exp(-beta * (away - 1)) if away > 1 else here
    return max(here, last, MOST * math.exp(-beta * away))
