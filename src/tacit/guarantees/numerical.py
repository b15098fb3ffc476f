"""Tight composition through dp-accounting: Renyi divergences (RDP) and privacy loss distributions (PLD).

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
from tacit.guarantees.rounding import sqrt_up, up
from tacit.guarantees.zcdp import exceptions, rho_exactly

Counted = Iterable[tuple[Guarantee, int]]

PLD_LEAST_DELTA = 1e-10  # below it the rounding errors of a convolution by FFT would count
_MOST = 300.0  # largest epsilon of one part, half the largest of all: e^(2 epsilon) must be an ordinary float
_CELLS = 1 << 16  # most cells of a grid of losses, over the whole range
_LEVELS = 24  # most different epsilons that are convolved one by one
_SLACK = 1e-3  # share of delta set aside for the rounding errors of the convolution


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
    left = Fraction(delta) - outside
    return _rdp(tuple(sorted(facts.items())), float(left) * (1.0 - 1e-15)) if left > 0 else None


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
    """
    if delta < PLD_LEAST_DELTA:
        return None
    squares = Fraction(0)
    others: Counter[tuple[float, float]] = Counter()
    for guarantee, times in counted:
        if guarantee.promises_nothing or guarantee.per_distance:
            return None
        if guarantee.loss is not None and guarantee.loss.kind is LossKind.GAUSSIAN:
            squares += Fraction(guarantee.loss.value) ** 2 * times
        else:
            outside = exceptions(guarantee)
            pure = pure_of(guarantee) if outside == guarantee.delta else guarantee.epsilon
            others[(pure, guarantee.delta)] += times
    if any(epsilon > _MOST for epsilon, _ in others):
        return None
    parts = tuple(sorted((key, times) for key, times in others.items() if key != (0.0, 0.0)))
    epsilon = _pld(sqrt_up(squares), _fewer(parts), delta)
    return epsilon if epsilon <= 2.0 * _MOST else None


def _fewer(parts: tuple[tuple[tuple[float, float], int], ...]) -> tuple[tuple[tuple[float, float], int], ...]:
    """At most a few different epsilons: neighbours are rounded up together, by at most 2 % where that is enough."""
    if len(parts) <= _LEVELS:
        return parts
    largest = max(epsilon for (epsilon, _), _ in parts)
    for ratio in (1.01, 1.02, 1.05, 1.1, 1.25, 1.5, 2.0):
        merged: Counter[float] = Counter()
        for (epsilon, _), times in parts:
            steps = math.floor(math.log(largest / epsilon) / math.log(ratio)) if epsilon > 0.0 else 10**6
            merged[max(epsilon, largest / ratio ** min(steps, 400))] += times
        if len(merged) <= _LEVELS:
            break
    # each part keeps its own delta in the total: one part of epsilon 0 carries them all
    total = min(1.0, up(sum((Fraction(delta) * times for (_, delta), times in parts), Fraction(0))))
    return (
        *sorted(((epsilon, 0.0), times) for epsilon, times in merged.items()),
        *([((0.0, total), 1)] if total else []),
    )


@lru_cache(maxsize=256)
def _pld(mu: float, parts: tuple[tuple[tuple[float, float], int], ...], delta: float) -> float:
    import numpy as np
    from dp_accounting.pld import privacy_loss_distribution as pld

    if mu == 0.0 and not parts:
        return 0.0
    step = _step(mu, parts)
    total = None
    pieces = [_two_losses(epsilon, outside, step).self_compose(times) for (epsilon, outside), times in parts]
    if mu > 0.0:
        pieces.append(pld.from_gaussian_mechanism(1.0 / mu * (1.0 - 1e-15), value_discretization_interval=step))
    for piece in pieces:
        total = piece if total is None else total.compose(piece)
    try:
        with np.errstate(all="ignore"):
            epsilon = float(total.get_epsilon_for_delta(delta * (1.0 - _SLACK))) if total is not None else 0.0
    except OverflowError:  # losses beyond what e^loss can hold
        return math.inf
    return epsilon * (1.0 + 1e-9)


def _two_losses(epsilon: float, outside: float, step: float) -> Any:
    """The worst (epsilon, outside)-private mechanism, its two losses each spread over the two nearest cells.

    The spreading ("connect the dots") never lowers the delta at any epsilon, and keeps it at the cells themselves.
    """
    from dp_accounting.pld import pld_pmf
    from dp_accounting.pld import privacy_loss_distribution as pld

    high, low = math.ceil(epsilon / step), math.floor(epsilon / step)
    cells = sorted({-high, -low, low, high})

    def delta_at(loss: float) -> float:
        if loss >= epsilon:
            return outside
        inside = -math.expm1(loss) if loss <= -epsilon else -math.expm1(loss - epsilon) / (1.0 + math.exp(-epsilon))
        return outside + (1.0 - outside) * inside

    deltas = [delta_at(cell * step) for cell in cells]
    return pld.PrivacyLossDistribution(pld_pmf.create_pmf_pessimistic_connect_dots(step, cells, deltas))


def _step(mu: float, parts: tuple[tuple[tuple[float, float], int], ...]) -> float:
    """The width of a cell: a whole fraction of the only epsilon, or small against the spread of all losses."""
    epsilons = [(epsilon, times) for (epsilon, _), times in parts if epsilon > 0.0]
    if mu == 0.0 and len(epsilons) == 1:
        return epsilons[0][0]  # both losses lie on the grid: no rounding at all
    variance = mu * mu + sum(epsilon * epsilon * times for epsilon, times in epsilons)
    sums = sum(epsilon * times for epsilon, times in epsilons)
    width = sums + mu * mu / 2.0 + 10.0 * mu
    wanted = 0.01 * variance / (sums + mu)  # spreading a loss adds at most its size times the step to the variance
    return float(max(wanted, 2.0 * width / _CELLS, 1e-12))
