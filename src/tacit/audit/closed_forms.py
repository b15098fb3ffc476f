"""True losses by formulas that share no code with the mechanisms: they document the slack of claims that are not attained.

Selection. A candidate's chance rises with its own score and falls with the others', so the worst neighbours take one
candidate against all others, tied, from one extreme *lead* of the others to another. In units of ``rate`` per grid step:
profiles with scores anywhere in their range go from a lead of -steps to +steps; votes with n users, of whom one is added,
from n - 1 to n; of whom one is replaced, from n - 2 to n.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias

from tacit.audit.exact import ORDERS

Leads: TypeAlias = tuple[int, int]


def exponential(leads: Leads, candidates: int, rate: float) -> float:
    """ln((1 + (k-1) e^(rate b)) / (1 + (k-1) e^(rate a))): below rate (b - a), for the normaliser moves along.

    For profiles, with lambda = rate * steps = epsilon / 2: lambda + ln((1 + (k-1) e^lambda) / (e^lambda + k - 1)).
    """
    before, after = leads
    others = candidates - 1
    return math.log((1.0 + others * math.exp(rate * after)) / (1.0 + others * math.exp(rate * before)))


def exponential_rho(candidates: int, rate: float) -> float:
    """The largest Renyi divergence over its order between profiles that put j candidates at the top and the reverse.

    With r = e^rate, P(a top one) = r / (j r + k - j) and P(any other) = 1 / (j r + k - j); the reverse swaps r and 1.
    """
    top = math.exp(rate)

    def over_order(j: int, order: float) -> float:
        first, second = j * top + candidates - j, j + (candidates - j) * top
        if order == 1.0:
            return (j * top - (candidates - j)) * rate / first + math.log(second / first)
        power = (j * top**order + (candidates - j) * top ** (1.0 - order)) * (second / first) ** (order - 1.0) / first
        return math.log(power) / ((order - 1.0) * order)

    return max(over_order(j, float(order)) for j in range(1, candidates) for order in ORDERS if order * rate < 300.0)


def permute_and_flip(leads: Leads, candidates: int, rate: float) -> float:
    """For profiles 2 lambda + ln(1 - (1 - e^-lambda)^k); behind a tie the chance is e^(-rate lead) / k, and all is attained."""

    def chance(lead: int) -> float:
        coin = math.exp(-rate * abs(lead))
        return coin / candidates if lead >= 0 else (1.0 - (1.0 - coin) ** candidates) / (candidates * coin)

    return math.log(chance(leads[0]) / chance(leads[1]))


def top_k(leads: Leads, candidates: int, picks: int, rate: float) -> float:
    """The first u of the picks against all others, for the worst u: each of the first u picks pays as an exponential one."""
    before, after = (math.exp(rate * lead) for lead in leads)
    return max(
        math.fsum(
            math.log((left + (candidates - u) * after) / (left + (candidates - u) * before)) for left in range(u, 0, -1)
        )
        for u in range(1, picks + 1)
    )


def noisy_max(leads: Leads, candidates: int, rate: float) -> float:
    """By summing over the candidate's noise; the worst over its place, since ties go to the first."""
    ratio = math.exp(-rate)
    reach = math.ceil(50.0 / rate) + max(abs(lead) for lead in leads)

    def wins(lead: int, place: int) -> float:
        # at noise v it wins if those before it stay below v - lead and those after it do not exceed that
        return math.fsum(
            _laplace(v, ratio)
            * _laplace_cdf(v - lead - 1, ratio) ** place
            * _laplace_cdf(v - lead, ratio) ** (candidates - 1 - place)
            for v in range(-reach, reach + 1)
        )

    return max(math.log(wins(leads[0], place) / wins(leads[1], place)) for place in range(candidates))


def noisy_max_of_two(lead: int, rate: float) -> float:
    """Two totals, the first (which wins ties) behind by ``lead`` >= 0 or by one more.

    With q = e^-rate, P(difference of two draws >= m) is proportional to q^m ((m + c) / (1 - q) + q / (1 - q)^2) where
    c = (1 + q^2) / (1 - q^2): the loss tends to the rate as the lead grows, so the claim is attained in the limit.
    """
    q = math.exp(-rate)
    c = (1.0 + q * q) / (1.0 - q * q)

    def tail(m: int) -> float:
        return (m + c) / (1.0 - q) + q / (1.0 - q) ** 2

    return rate + math.log(tail(lead) / tail(lead + 1))


def sparse_vector(
    queries: int, hits: int, threshold: int, scales: tuple[Fraction, Fraction], corners: Sequence[tuple[Leads, Leads]]
) -> float:
    """All missed scores alike and all that hit alike; the worst over the transcripts and the corners.

    A corner is ((score of the missed, of the hits), the same for the neighbour). The claim is attained in the limit of many
    queries: ever more misses pin the noisy threshold down.
    """
    threshold_ratio, answer_ratio = (math.exp(-1.0 / float(scale)) for scale in scales)
    reach = math.ceil(50.0 * scales[0]) + 1
    stopped = [(misses, hits) for misses in range(queries - hits + 1)]
    ended = [(queries - found, found) for found in range(min(hits, queries + 1))]

    def chance(misses: int, found: int, scores: tuple[int, int]) -> float:
        return math.fsum(
            _laplace(v, threshold_ratio)
            * _laplace_cdf(threshold + v - scores[0] - 1, answer_ratio) ** misses
            * _laplace_cdf(scores[1] - threshold - v, answer_ratio) ** found
            for v in range(-reach, reach + 1)
        )

    return max(
        abs(math.log(chance(misses, found, one) / chance(misses, found, other)))
        for misses, found in stopped + ended
        for one, other in corners
    )


def _laplace(n: int, ratio: float) -> float:
    return (1.0 - ratio) / (1.0 + ratio) * ratio ** abs(n)


def _laplace_cdf(n: int, ratio: float) -> float:
    return float(ratio**-n / (1.0 + ratio)) if n < 0 else float(1.0 - ratio ** (n + 1) / (1.0 + ratio))
