"""Slow, obvious laws and samplers, written from the definitions; the fast ones in the package must equal them.

Nothing here shares code with the package: laws are sums over all permutations or all noise values in 60-digit arithmetic,
samplers are the published algorithms on fractions.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise, permutations, product
from typing import Any

import mpmath
import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

_MP = mpmath.MPContext()
_MP.dps = 60


def power_of_e(exponent: Fraction) -> Any:
    """e^exponent to 60 digits."""
    return _MP.exp(_MP.mpf(exponent.numerator) / exponent.denominator)


def floats(law: Sequence[Any]) -> NDArray[np.float64]:
    return np.array([float(p) for p in law])


def randomised_response(k: int, epsilon: float, value: int) -> NDArray[np.float64]:
    truth = power_of_e(Fraction(epsilon))
    return floats([(truth if i == value else 1) / (truth + k - 1) for i in range(k)])


def softmax(scores: Sequence[int], rate: Fraction) -> list[Any]:
    weight = [power_of_e(int(score) * rate) for score in scores]
    return [w / _MP.fsum(weight) for w in weight]


def exponential(scores: Sequence[int], rate: Fraction) -> NDArray[np.float64]:
    return floats(softmax(scores, rate))


def permute_and_flip(scores: Sequence[int], rate: Fraction) -> NDArray[np.float64]:
    """Every order of walking, and in each the chance to stop at every candidate."""
    flip = [power_of_e((int(score) - int(max(scores))) * rate) for score in scores]
    law = [_MP.mpf(0)] * len(scores)
    for order in permutations(range(len(scores))):
        not_yet = _MP.mpf(1)
        for item in order:
            law[item] += not_yet * flip[item]
            not_yet *= 1 - flip[item]
    return floats([p / math.factorial(len(scores)) for p in law])


def top_k(scores: Sequence[int], k: int, rate: Fraction) -> NDArray[np.float64]:
    """In the order of ``permutations``: each pick is a softmax over those who are left."""
    law = []
    for picks in permutations(range(len(scores)), k):
        probability, left = _MP.mpf(1), list(range(len(scores)))
        for item in picks:
            probability *= softmax([scores[j] for j in left], rate)[left.index(item)]
            left.remove(item)
        law.append(probability)
    return floats(law)


def top_response(scores: Sequence[float], d: int, epsilon: float) -> NDArray[np.float64]:
    """A candidate is among the d best if fewer than d stand before it, by score and then by place."""
    best = power_of_e(Fraction(epsilon))
    weight = [
        best if sum(t > s or (t == s and j < i) for j, t in enumerate(scores)) < d else _MP.mpf(1)
        for i, s in enumerate(scores)
    ]
    return floats([w / _MP.fsum(weight) for w in weight])


def envelope(scores: Sequence[float], floors: Sequence[Fraction], epsilon: float) -> NDArray[np.float64]:
    """Raise in falling order; the last one gets what is left."""
    law = [_MP.mpf(floor.numerator) / floor.denominator for floor in floors]
    for item in sorted(range(len(scores)), key=lambda i: (-scores[i], i)):
        law[item] = min(law[item] * power_of_e(Fraction(epsilon)), law[item] + 1 - _MP.fsum(law))
    return floats(law)


def scaled(scores: Sequence[float], steps: int) -> list[int]:
    """(s - min) / (max - min) in steps, rounded down; all at the top where all are equal."""
    low, high = min(map(Fraction, scores)), max(map(Fraction, scores))
    return [steps if low == high else math.floor((Fraction(s) - low) / (high - low) * steps) for s in scores]


def peeled(
    law: Callable[[Sequence[float]], NDArray[np.float64]], scores: Sequence[float], slots: int
) -> NDArray[np.float64]:
    """In the order of ``permutations``: each pick has the law of a single selection among those who are left."""
    found = []
    for picks in permutations(range(len(scores)), slots):
        probability, left = 1.0, list(range(len(scores)))
        for item in picks:
            probability *= float(law([scores[j] for j in left])[left.index(item)])
            left.remove(item)
        found.append(probability)
    return np.array(found)


def discrete_laplace(scale: Fraction, reach: int) -> dict[int, float]:
    """P(n) for |n| <= reach, normalised by summing all of them, not by a formula."""
    weight = {n: power_of_e(-abs(n) / scale) for n in range(-reach, reach + 1)}
    total = _MP.fsum(weight.values())
    return {n: float(w / total) for n, w in weight.items()}


def discrete_gaussian(variance: Fraction, reach: int) -> dict[int, float]:
    weight = {n: power_of_e(-(n * n) / (2 * variance)) for n in range(-reach, reach + 1)}
    total = _MP.fsum(weight.values())
    return {n: float(w / total) for n, w in weight.items()}


def laplace_below(n: int, scale: Fraction) -> Any:
    """P(noise < n): the geometric series of the tail, with P(0) = (1 - q)/(1 + q)."""
    q = power_of_e(-1 / scale)
    return 1 - q**n / (1 + q) if n > 0 else q ** (1 - n) / (1 + q)


def gaussian_below(n: int, variance: Fraction) -> Any:
    """P(noise < n) for a deviation of many steps: the integral up to the half step before n."""
    deviation = _MP.sqrt(_MP.mpf(variance.numerator) / variance.denominator)
    return _MP.ncdf((_MP.mpf(n) - _MP.mpf("0.5")) / deviation)


def in_cells(below: Sequence[Any]) -> NDArray[np.float64]:
    """The law of the cells between edges, from P(value < edge)."""
    edges = [_MP.mpf(0), *below, _MP.mpf(1)]
    return floats([high - low for low, high in pairwise(edges)])


def noisy_max(scores: Sequence[int], scale: Fraction, reach: int) -> NDArray[np.float64]:
    """All combinations of noise within ``reach``; the first of the largest wins."""
    noise = discrete_laplace(scale, reach)
    values, chance = np.array(list(noise)), np.array(list(noise.values()))
    law = np.zeros(len(scores))
    for place in product(range(values.size), repeat=len(scores) - 1):
        fixed = [scores[i] + values[p] for i, p in enumerate(place)]
        weight = float(np.prod(chance[list(place)]))
        last = scores[-1] + values
        wins = last > max(fixed)
        law[-1] += weight * chance[wins].sum()
        law[int(np.argmax(fixed))] += weight * chance[~wins].sum()
    return law


def sparse_vector(
    scores: Sequence[int], threshold: int, scales: tuple[Fraction, Fraction], hits: int, reach: int
) -> dict[tuple[bool, ...], float]:
    """All values of the threshold's noise; given one, the answers are independent."""
    law: dict[tuple[bool, ...], float] = {}
    answer_noise = discrete_laplace(scales[1], reach)
    for shift, weight in discrete_laplace(scales[0], reach).items():
        yes = [sum(p for n, p in answer_noise.items() if score + n >= threshold + shift) for score in scores]
        for answers in product((False, True), repeat=len(scores)):
            probability = weight * math.prod(p if a else 1.0 - p for p, a in zip(yes, answers, strict=True))
            seen: list[bool] = []
            for answer in answers:
                if sum(seen) < hits:
                    seen.append(answer)
            law[tuple(seen)] = law.get(tuple(seen), 0.0) + probability
    return law


# Samplers of Canonne, Kamath and Steinke (2020), one value at a time.


def uniform(bound: int, noise: Any) -> int:
    size = (bound.bit_length() + 7) // 8
    while True:
        value = int.from_bytes(noise.draw(size), "big") & ((1 << bound.bit_length()) - 1)
        if value < bound:
            return value


def bernoulli(p: Fraction, noise: Any) -> bool:
    return uniform(p.denominator, noise) < p.numerator


def bernoulli_exp(gamma: Fraction, noise: Any) -> bool:
    """Heads with probability e^-gamma (Algorithm 1)."""
    while gamma > 1:
        if not bernoulli_exp(Fraction(1), noise):
            return False
        gamma -= 1
    k = 1
    while bernoulli(gamma / k, noise):
        k += 1
    return k % 2 == 1


def sample_discrete_laplace(scale: Fraction, noise: Any) -> int:
    """Algorithm 2, with scale = t/s."""
    t, s = scale.numerator, scale.denominator
    while True:
        u = uniform(t, noise)
        if not bernoulli_exp(Fraction(u, t), noise):
            continue
        v = 0
        while bernoulli_exp(Fraction(1), noise):
            v += 1
        y = (u + t * v) // s
        negative = bernoulli(Fraction(1, 2), noise)
        if not (negative and y == 0):
            return -y if negative else y


def sample_discrete_gaussian(variance: Fraction, noise: Any) -> int:
    """Algorithm 3."""
    t = math.isqrt(math.floor(variance)) + 1
    while True:
        y = sample_discrete_laplace(Fraction(t), noise)
        if bernoulli_exp((abs(y) - variance / t) ** 2 / (2 * variance), noise):
            return y


def rounded_gaussian_tail(k: NDArray[np.int64] | int, variance: Fraction) -> NDArray[np.float64]:
    """P(N >= k)."""
    return np.asarray(ndtr((0.5 - np.asarray(k, dtype=np.float64)) / math.sqrt(variance)))
