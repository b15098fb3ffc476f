"""Divergences of binomial counts, from above: what n randomised responses, or n shuffled reports, lose.

``Responses`` is the worst n-fold composition of equal pure releases (docs/proofs/composition). ``Decoys`` and ``Blanket`` bound
shuffled reports (docs/proofs/shuffle-amplification): both are hockey-stick divergences of small count vectors. Ranges of counts
are cut where the mass left out is known; that mass is added to delta, and so is what floats may lose. Binomial masses are in
float64, to about twelve digits.
"""

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_FLOATS = 1e-9  # relative error granted to each mass or tail of a sum


class Responses:
    """``times`` randomised responses of ``epsilon`` each; answers of a probability below e^-log_left are left out.

    With W ~ Bin(n, 1/(1 + e^e)) wrong answers the loss is (n - 2W) e, so delta(epsilon) = E[(1 - e^(epsilon - loss))_+]: a sum
    of positive terms, in which no digits cancel.
    """

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


class Decoys:
    """n - 1 other reports. Each is, with probability ``cover``, a coin that looks like the user's own report.

    C ~ Bin(n-1, cover), A ~ Bin(C, 1/2), D ~ Bernoulli(e^e0 / (1 + e^e0)): the observer sees (A + D, C - A + 1 - D) or the
    same with D and 1 - D swapped. Feldman, McMillan and Talwar (2021) have cover = e^-e0 for every randomiser.
    """

    def __init__(self, epsilon0: float, n: int, cover: float, log_left: float) -> None:
        self.epsilon0 = epsilon0
        self.counts, self.weights, self.left_out = masses(n - 1, cover, log_left)

    def delta(self, epsilon: float) -> float:
        """delta(epsilon), rounded up."""
        if epsilon >= self.epsilon0:
            return 0.0
        shrunk = math.exp(-self.epsilon0)
        gain = -math.expm1(epsilon - self.epsilon0) / (1.0 + shrunk)  # pe - e^epsilon qe
        loss = (math.exp(epsilon) - shrunk) / (1.0 + shrunk)  # e^epsilon pe - qe
        # Given C = c the likelihood ratio rises with the first count i, so the worst set is {i >= first}, that is, all i whose
        # complement c + 1 - i is below (c + 1) gain / (gain + loss): delta_c = gain P(A >= first - 1) - loss P(A >= first).
        first = self.counts + 2.0 - np.ceil((self.counts + 1.0) * (gain / (gain + loss)))
        high = gain * at_least(self.counts, first - 1.0, 0.5)
        low = loss * at_least(self.counts, first, 0.5)
        terms = np.maximum(0.0, high - low) + _FLOATS * 1e-2 * (high + low)
        return min(1.0, float(self.weights @ terms) * (1.0 + _FLOATS) + self.left_out)


class Blanket:
    """n reports by k-ary randomised response: the privacy blanket of Balle, Bell, Gascon and Nissim (2019).

    delta <= E[(a N0 - b N1 - c Nr)_+] / n with a = e^e0 - e^e, b = e^(e + e0) - 1, c = e^e - 1 and (N0, N1, Nr) multinomial over
    n trials with p, p, (k-2) p, p = 1/(e^e0 + k - 1). Given M = N0 + N1 = m the law of N0 is Bin(m, 1/2) and that of Nr is
    Bin(n - m, (k-2) p / (1 - 2p)), independent: only the N0 at which the sign depends on Nr need both.
    """

    def __init__(self, epsilon0: float, n: int, k: int, log_left: float) -> None:
        self.epsilon0, self.n, self.log_left = epsilon0, n, log_left
        each = math.exp(-epsilon0) / (1.0 + (k - 1) * math.exp(-epsilon0))
        self.pairs, self.weights, self.left_out = masses(n, 2.0 * each, log_left)
        self.share = (k - 2) / (k - 2 + math.expm1(epsilon0))  # (k-2) p / (1 - 2p)
        self.rest = n - self.pairs
        self.low, self.high = window(self.rest, self.share, log_left) if k > 2 else (0.0 * self.rest, 0.0 * self.rest)
        self.most = window(self.pairs, 0.5, log_left)[1]

    def delta(self, epsilon: float) -> float:
        """delta(epsilon), rounded up."""
        if epsilon >= self.epsilon0:
            return 0.0
        scale = math.exp(-self.epsilon0)  # a, b and c are kept times e^-e0, so that no e0 overflows
        a, b, c = -math.expm1(epsilon - self.epsilon0), math.exp(epsilon) - scale, math.expm1(epsilon) * scale
        # a N0 - b N1 - c Nr > 0 is N1 < (a M - c Nr)/(a + b): stated for N1, which is small where e^epsilon is large
        start = self.pairs + 1.0 - np.ceil((a * self.pairs - c * self.low) / (a + b))  # below: never positive
        settled = self.pairs + 1.0 - np.ceil((a * self.pairs - c * self.high) / (a + b))  # from here: whatever Nr is
        total = float(self.weights @ (self._sum_settled(a, b, c, settled) + self._sum_between(a, b, c, start, settled)))
        # Left out: M, N0 above its window (both at most a per report) and Nr outside of its window (at most a + c).
        left_out = a * self.left_out + (3.0 * a + 2.0 * c) * math.exp(-self.log_left)
        try:
            return min(1.0, (total / self.n * (1.0 + _FLOATS) + left_out) / scale)
        except (OverflowError, ZeroDivisionError):
            return 1.0

    def _sum_settled(self, a: float, b: float, c: float, first: Floats) -> Floats:
        """The sum over N0 >= first, where the positive part is the linear form itself.

        sum over i >= h of (i - m/2) P(N0 = i) = (h/2) P(N0 = h) turns it into one mass and one tail.
        """
        mean = self.rest * self.share
        high = (a + b) * (np.maximum(first, 0.0) / 2.0) * mass(self.pairs, first, 0.5)
        low = ((b - a) * self.pairs / 2.0 + c * mean) * at_least(self.pairs, first, 0.5)
        result: Floats = np.maximum(0.0, high - low) + _FLOATS * 1e-1 * (high + np.abs(low))
        return result

    def _sum_between(self, a: float, b: float, c: float, start: Floats, settled: Floats) -> Floats:
        """The sum over start <= N0 < settled, where Nr decides: E (v - c Nr)_+ by one mass and one tail of Nr."""
        total = np.zeros_like(self.pairs)
        stop = np.minimum(settled, self.most + 1.0)
        for shift in range(int(np.max(stop - start, initial=0.0))):
            rows = np.flatnonzero(start + shift < stop)
            count, pairs, rest = start[rows] + shift, self.pairs[rows], self.rest[rows]
            value = a * pairs - (a + b) * (pairs - count)
            last = np.minimum(np.ceil(value / c) - 1.0, rest)  # the largest Nr that leaves something
            below = at_least(rest, rest - last, 1.0 - self.share)
            high = c * (last + 1.0) * (1.0 - self.share) * mass(rest, last + 1.0, self.share)
            low = (value - c * rest * self.share) * below
            terms = np.maximum(0.0, high + low) + _FLOATS * 1e-1 * (high + np.abs(low))
            total[rows] += mass(pairs, count, 0.5) * terms
        return total


def window(n: Floats, share: float, log_left: float) -> tuple[Floats, Floats]:
    """(low, high), whole numbers: a Bin(n, share) count lies outside on either side with probability at most e^-log_left.

    Bernstein: P(X - mean >= t) <= exp(-t^2 / (2 (variance + t/3))), solved for t.
    """
    reach = log_left / 3.0 + np.sqrt(log_left**2 / 9.0 + 2.0 * log_left * n * share * (1.0 - share))
    low = np.maximum(0.0, np.floor(n * share - reach))
    return low, np.minimum(n, np.ceil(n * share + reach))


def masses(n: int, share: float, log_left: float) -> tuple[Floats, Floats, float]:
    """(counts, masses, mass left out) of Bin(n, share), restricted to its window and scaled to sum to 1 there.

    Scaling only raises the masses, so an expectation over them plus the mass left out is never too small.
    """
    if not 0.0 < share < 1.0:  # an e^-epsilon that floats cannot tell from 0 or 1
        return np.array([float(n) * share]), np.ones(1), n * math.ulp(1.0)
    low, high = window(np.full(1, float(n)), share, log_left)
    counts = np.arange(low[0], high[0] + 1.0)
    steps = np.log((n - counts[:-1]) / (counts[:-1] + 1.0)) + math.log(share / (1.0 - share))
    logs = np.concatenate(([0.0], np.cumsum(steps)))
    weights = np.exp(logs - logs.max())
    left_out = int(low[0] > 0.0) + int(high[0] < n)  # numpy's truths do not add up
    return counts, weights / weights.sum(), left_out * math.exp(-log_left)


def mass(n: Floats, count: Floats, share: float) -> Floats:
    """P(X = count) for X ~ Bin(n, share) with 0 < share < 1, by Loader's saddle point (2000); 0 outside of 0..n."""
    with np.errstate(all="ignore"):
        rest = n - count
        log = (
            _stirling(n)
            - _stirling(count)
            - _stirling(rest)
            - _deviance(count, n * share)
            - _deviance(rest, n * (1.0 - share))
            + 0.5 * np.log(n / (2.0 * math.pi * count * rest))
        )
        log = np.where(count == 0.0, n * math.log1p(-share), np.where(rest == 0.0, n * math.log(share), log))
        result: Floats = np.where((count < 0.0) | (rest < 0.0), 0.0, np.exp(log))
    return result


def at_least(n: Floats, count: Floats, share: float) -> Floats:
    """P(X >= count) for X ~ Bin(n, share)."""
    from scipy.special import betainc

    inside = (count > 0.0) & (count <= n)
    first, second = np.where(inside, count, 1.0), np.where(inside, n - count + 1.0, 1.0)
    result: Floats = np.where(inside, betainc(first, second, share), np.where(count <= 0.0, 1.0, 0.0))
    return result


def _stirling(n: Floats) -> Floats:
    """ln n! - ln(sqrt(2 pi n) (n/e)^n), for n >= 1."""
    from scipy.special import gammaln

    small = np.clip(n, 1.0, 16.0)
    direct = gammaln(small + 1.0) - (small + 0.5) * np.log(small) + small - 0.5 * math.log(2.0 * math.pi)
    square = np.maximum(n, 1.0) ** -2.0
    series = (1.0 / 12 - (1.0 / 360 - (1.0 / 1260 - (1.0 / 1680 - square / 1188) * square) * square) * square) / n
    result: Floats = np.where(n <= 16.0, direct, series)
    return result


def _deviance(count: Floats, mean: Floats) -> Floats:
    """count ln(count/mean) + mean - count."""
    excess = count - mean
    result: Floats = count * np.log1p(excess / mean) - excess
    return result
