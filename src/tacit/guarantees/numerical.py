"""Tight composition by Renyi divergences (RDP) and by privacy loss distributions (PLD), mostly through dp-accounting.

Both work on counted guarantees and return an epsilon at a delta, or None where they do not apply. dp-accounting takes
seconds to import, so it is imported on first use.
"""

import math
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from typing import Any

from tacit.guarantees.guarantee import Guarantee, LossKind
from tacit.guarantees.rounding import down, sqrt_up, up
from tacit.guarantees.zcdp import exceptions, rho_exactly

Counted = Iterable[tuple[Guarantee, int]]

Parts = tuple[tuple[float, int], ...]  # pure epsilons, each with the number of releases made under it

PLD_LEAST_DELTA = 1e-10  # below it the rounding errors of a convolution by FFT would count
_MOST = 300.0  # largest epsilon of one part, half the largest of all: e^(2 epsilon) must be an ordinary float
_CELLS = 1 << 16  # most cells of a grid of losses, over the whole range
_LEVELS = 24  # most different epsilons that are convolved one by one
_SLACK = 1e-3  # share of delta set aside for rounding errors that do not grow with the number of releases
_FFT = 8.0 * 2.0**-52  # error of one release at one frequency of a convolution, for each doubling of its length
_LEAST_LEFT = 0.9  # share of delta that the errors of the convolutions must leave, else nothing is claimed


def rdp_epsilon(counted: Counted, delta: float) -> float | None:
    """Epsilon at ``delta`` from the sum of Renyi curves; None where a part has only an (epsilon, delta)."""
    facts: Counter[tuple[float, float]] = Counter()
    outside = Fraction(0)
    for guarantee, times in counted:
        rho = rho_exactly(guarantee)
        if rho is None:
            return None
        facts[(up(rho), pure_of(guarantee))] += times
        outside += Fraction(exceptions(guarantee)) * times
    left = down(Fraction(delta) - outside)
    return _rdp(tuple(sorted(facts.items())), left * (1.0 - 1e-15)) if left > 0.0 else None


def pure_of(guarantee: Guarantee) -> float:
    """The smallest epsilon with |loss| <= epsilon (outside of ``exceptions``); infinite where there is none."""
    bounds = [guarantee.epsilon] if guarantee.delta == 0.0 else []
    if guarantee.loss is not None and guarantee.loss.kind in (LossKind.PURE, LossKind.BOUNDED_RANGE):
        bounds.append(guarantee.loss.value)  # a range contains 0: both laws have mass 1
    return min(bounds, default=math.inf)


def response_curve(order: float, epsilon: float) -> float:
    """The Renyi divergence of binary randomised response: no epsilon-private mechanism has a larger one. Rounded up.

    ln(cosh((a - 1/2) e) / cosh(e/2)) / (a - 1), in a form without cancellation.
    """
    if order * epsilon < 30.0:
        growth = 2.0 * math.sinh(order * epsilon / 2.0) * math.sinh((order - 1.0) * epsilon / 2.0)
        total = math.log1p(growth / math.cosh(epsilon / 2.0))
    else:
        total = (order - 1.0) * epsilon - math.log1p(math.exp(-epsilon)) + math.exp(-(2.0 * order - 1.0) * epsilon)
    return min(epsilon, total / (order - 1.0) * (1.0 + 1e-12))


@lru_cache(maxsize=1024)
def _rdp(facts: tuple[tuple[tuple[float, float], int], ...], delta: float) -> float:
    from dp_accounting.rdp import rdp_privacy_accountant as rdp

    orders = sorted({*rdp.DEFAULT_RDP_ORDERS, *(2.0 ** (k / 4) for k in range(24, 81))})
    curve = []
    for order in orders:
        total = 0.0
        for (rho, epsilon), times in facts:
            bound = order * rho
            total += times * (min(bound, response_curve(order, epsilon)) if math.isfinite(epsilon) else bound)
        curve.append(total * (1.0 + 1e-12))
    epsilon, _ = rdp.compute_epsilon(orders, curve, delta)
    return float(epsilon) * (1.0 + 1e-12) + 1e-12  # what floats may have lost


def pld_epsilon(counted: Counted, delta: float) -> float | None:
    """Epsilon at ``delta`` from the convolved privacy losses; None where delta is too small for its arithmetic.

    Gaussian parts are one Gaussian. Every other part is the worst mechanism of its (epsilon, delta): two losses, and
    infinity with probability delta. A bounded range or a rho that comes with a pure epsilon is taken by that epsilon.
    The deltas are subtracted first; equal epsilons are then summed exactly, and different ones convolved.
    """
    squares, outside = Fraction(0), Fraction(0)
    others: Counter[float] = Counter()
    for guarantee, times in counted:
        if guarantee.promises_nothing or guarantee.per_distance:
            return None
        if guarantee.loss is not None and guarantee.loss.kind is LossKind.GAUSSIAN:
            squares += Fraction(guarantee.loss.value) ** 2 * times
        else:
            pure = pure_of(guarantee) if exceptions(guarantee) == guarantee.delta else guarantee.epsilon
            others[pure] += times
            outside += Fraction(guarantee.delta) * times
    left = down(Fraction(delta) - outside)
    if left < PLD_LEAST_DELTA or any(epsilon > _MOST for epsilon in others):
        return None
    parts = tuple(sorted((epsilon, times) for epsilon, times in others.items() if epsilon > 0.0))
    return _pld(sqrt_up(squares), _fewer(parts), left)


def _fewer(parts: Parts) -> Parts:
    """At most a few different epsilons: neighbours are rounded up together, by at most 2 % where that is enough."""
    if len(parts) <= _LEVELS:
        return parts
    largest = max(epsilon for epsilon, _ in parts)
    merged: Counter[float] = Counter()
    for ratio in (1.01, 1.02, 1.05, 1.1, 1.25, 1.5, 2.0):
        merged = Counter()
        for epsilon, times in parts:
            steps = math.floor(math.log(largest / epsilon) / math.log(ratio))
            merged[max(epsilon, largest / ratio ** min(steps, 400))] += times
        if len(merged) <= _LEVELS:
            break
    return tuple(sorted(merged.items()))


@lru_cache(maxsize=256)
def _pld(mu: float, parts: Parts, delta: float) -> float | None:
    if not parts and mu == 0.0:
        return 0.0
    if mu == 0.0 and len(parts) == 1:
        from tacit.guarantees.responses import equal_epsilon

        return equal_epsilon(*parts[0], delta)
    step = _step(mu, parts)
    left = delta * (1.0 - _SLACK) - _error(mu, parts, step)
    return _convolved(mu, parts, step, left) if left >= _LEAST_LEFT * delta else None


def _convolved(mu: float, parts: Parts, step: float, delta: float) -> float | None:
    import numpy as np
    from dp_accounting.pld import privacy_loss_distribution as pld

    pieces = [_two_losses(epsilon, step).self_compose(times) for epsilon, times in parts]
    if mu > 0.0:
        pieces.append(pld.from_gaussian_mechanism(1.0 / mu * (1.0 - 1e-15), value_discretization_interval=step))
    total = pieces[0]
    for piece in pieces[1:]:
        total = total.compose(piece)
    try:
        with np.errstate(all="ignore"):
            epsilon = float(total.get_epsilon_for_delta(delta)) * (1.0 + 1e-9)
    except OverflowError:  # losses beyond what e^loss can hold
        return None
    return epsilon if epsilon <= 2.0 * _MOST else None


def _error(mu: float, parts: Parts, step: float) -> float:
    """What the convolutions may take from a sum of masses, in absolute terms: it grows with the number of releases.

    A transform errs by a few units in the last place at each frequency for each doubling of its length, its n-th power by n
    times that. A law that fills its window spreads the error as it spreads itself: summed over cells it grows by a small
    factor, not by the root of their number. The factor allows for thousands of times what was measured (a quarter of a unit
    in the last place for each release). Each product of two laws may err over all cells. A Gaussian alone is not convolved.
    """
    if not parts:
        return 0.0
    releases, pieces = sum(times for _, times in parts), len(parts) + (mu > 0.0)
    cells = 2.0 * sum(math.ceil(epsilon / step) * times for epsilon, times in parts)
    cells += 2.0 * (mu * mu / 2.0 + 40.0 * mu) / step + 2.0
    return _FFT * math.log2(2.0 * cells) * (16.0 * releases + 2.0 * pieces * math.sqrt(2.0 * cells))


def _two_losses(epsilon: float, step: float) -> Any:
    """The worst epsilon-private mechanism, its two losses each spread over the two nearest cells.

    The spreading ("connect the dots") never lowers the delta at any epsilon, and keeps it at the cells themselves.
    """
    from dp_accounting.pld import pld_pmf
    from dp_accounting.pld import privacy_loss_distribution as pld

    high, low = math.ceil(epsilon / step), math.floor(epsilon / step)
    cells = sorted({-high, -low, low, high})

    def delta_at(loss: float) -> float:
        if loss >= epsilon:
            return 0.0
        return -math.expm1(loss) if loss <= -epsilon else -math.expm1(loss - epsilon) / (1.0 + math.exp(-epsilon))

    deltas = [delta_at(cell * step) for cell in cells]
    return pld.PrivacyLossDistribution(pld_pmf.create_pmf_pessimistic_connect_dots(step, cells, deltas))


def _step(mu: float, parts: Parts) -> float:
    """The width of a cell: small against the spread of all losses."""
    variance = mu * mu + sum(epsilon * epsilon * times for epsilon, times in parts)
    sums = sum(epsilon * times for epsilon, times in parts)
    width = sums + mu * mu / 2.0 + 10.0 * mu
    wanted = 0.01 * variance / (sums + mu)  # spreading a loss adds at most its size times the step to the variance
    return float(max(wanted, 2.0 * width / _CELLS, 1e-12))
