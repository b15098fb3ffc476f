"""Tight composition at a stated delta, and how much each of many releases may spend (docs/proofs/composition).

``tight`` takes the best of five methods: basic composition, the Gaussian trade-off, zCDP, Renyi divergences (RDP) and privacy loss
distributions (PLD). The last two mostly use dp-accounting, which takes seconds to import, so it is imported on first use. Every
method works on counted guarantees and returns an epsilon at a delta, or None if it does not apply.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, get_args

from tacit.checks import positive, probability, whole
from tacit.errors import InvalidGuarantee, InvalidParameter
from tacit.guarantees.arithmetic import down, sqrt_down, sqrt_up, up
from tacit.guarantees.concentrated import epsilon_of_gaussian, epsilon_of_rho, largest, mu_for, rho_for, smallest
from tacit.guarantees.guarantee import (
    COMPOSITION_PROOF,
    ONE_PROFILE,
    Counted,
    Guarantee,
    Loss,
    LossKind,
    add_up,
    exceptions,
    loss_of,
    rho_exactly,
    same_unit,
)

PLD_LEAST_DELTA = 1e-10  # below it the rounding errors of a convolution by FFT would count
Method = Literal["auto", "basic", "gaussian", "zcdp", "rdp", "pld"]

_WORTH_A_DELTA = 1e-3  # the least gain in epsilon for which a smaller delta is given up
_MOST_TIMES = 2**20  # beyond that a convolution takes too long, and the count is safe anyway
_WHY_NOT = {
    "basic": "the deltas of the parts add up to more than delta. Raise delta, or use `auto`",
    "gaussian": "a part is not Gaussian. Use `auto`",
    "zcdp": "a part is known by an (epsilon, delta) alone. Use `pld`, `basic` or `auto`",
    "rdp": "a part is known by an (epsilon, delta) alone. Use `pld`, `basic` or `auto`",
    "pld": f"the parts leave less than {PLD_LEAST_DELTA:g} of delta, or too little for so many releases. Use `auto`",
}


def tight(
    guarantees: Iterable[Guarantee] | Mapping[Guarantee, int], delta: float, method: Method = "auto"
) -> Guarantee:
    """All releases together at ``delta``: the smallest epsilon that ``method`` proves, rounded up.

    A mapping says how many releases were made under each guarantee. Raises MixedUnits if they protect different units.

    ``auto`` takes the best method that applies. It is never above basic composition if the parts' own deltas fit into
    ``delta``. The method joins ``assumes``. If basic composition wins, or loses by less than a thousandth, the result keeps
    basic composition with its own, smaller delta.
    Epsilon is in nats, ``delta`` a probability.
    """
    delta = probability("delta", delta)
    if method not in get_args(Method):
        raise InvalidParameter(f"`method` must be one of {', '.join(get_args(Method))}, not {method!r}.")
    counted = tuple(Counter(guarantees).items())
    parts = [guarantee for guarantee, _ in counted]
    same_unit(parts)
    if any(part.per_distance for part in parts):
        raise InvalidGuarantee("guarantees per distance have no delta: convert them with within(...) first.")
    basic = add_up(counted)
    if any(part.promises_nothing for part in parts):
        return basic
    epsilons = {
        name: epsilon
        for name in (_METHODS if method == "auto" else (method,))
        if (epsilon := _METHODS[name](counted, delta)) is not None
    }
    if not epsilons:
        raise InvalidGuarantee(
            f"`{method}` does not apply at delta = {delta:g}: {_WHY_NOT.get(method, 'no method does')}."
        )
    best = min(epsilons, key=lambda name: epsilons[name])
    if best == "basic" or epsilons.get("basic", math.inf) <= epsilons[best] * (1.0 + _WORTH_A_DELTA):
        return basic
    return replace(
        basic if not basic.promises_nothing else parts[0],
        epsilon=epsilons[best],
        delta=delta,
        assumes=frozenset[str]().union(*(part.assumes for part in parts)) | {f"accounting: {best}"},
        proof=COMPOSITION_PROOF,
        loss=_loss_at_delta(counted),
    )


def to_approximate(guarantee: Guarantee, delta: float) -> Guarantee:
    """The smallest epsilon at ``delta`` that follows from what is known of the loss.

    Epsilon is in nats, ``delta`` a probability.
    """
    return tight([guarantee], delta)


def epsilon_each(times: int, epsilon: float, delta: float, kind: LossKind = LossKind.PURE) -> float:
    """The largest parameter of each of ``times`` releases that together stay within (epsilon, delta), rounded down.

    The parameter is that of ``kind``: epsilon, range, rho or mu.
    Epsilons are in nats, ``delta`` is a probability.
    """
    times = whole("times", times, least=1)
    return _each(times, positive("epsilon", epsilon), probability("delta", delta), LossKind(kind))


@lru_cache(maxsize=1024)
def _each(times: int, epsilon: float, delta: float, kind: LossKind) -> float:
    rho = Fraction(rho_for(epsilon, delta))
    if kind is LossKind.ZCDP:
        return down(rho / times)
    if kind is LossKind.GAUSSIAN:
        return sqrt_down(Fraction(mu_for(epsilon, delta)) ** 2 / times)
    plain = down(Fraction(epsilon) / times)
    if kind is LossKind.BOUNDED_RANGE:
        return max(plain, sqrt_down(8 * rho / times))
    concentrated = max(plain, sqrt_down(2 * rho / times))

    def fits(each: float) -> bool:
        counted = ((Guarantee(each, ONE_PROFILE, loss=Loss(LossKind.PURE, each)), times),)
        costs = (_METHODS[name](counted, delta) for name in ("pld", "rdp"))
        return any(cost is not None and cost <= epsilon for cost in costs)

    better = largest(fits, concentrated, steps=24)  # to seven digits: each step is a convolution
    return better if better > concentrated * (1.0 + _WORTH_A_DELTA) else concentrated


def times_within(each: Guarantee, epsilon: float, delta: float) -> int:
    """How many releases under ``each`` together stay within (epsilon, delta), by the best method that applies; 0 if none does.

    This also holds if releases are chosen after seeing earlier outputs, because the same loss bounds each of them.
    ``epsilon`` is in nats, ``delta`` a probability.
    """
    epsilon, delta = positive("epsilon", epsilon), probability("delta", delta)
    if each.promises_nothing or each.per_distance:
        raise InvalidGuarantee(
            "only releases that promise a fixed epsilon can be counted: state a radius with within(...)."
        )
    if each.epsilon == 0.0 and each.delta == 0.0:
        raise InvalidGuarantee("releases at epsilon = 0 cost nothing: there is no number of them to count.")

    def fits(times: int) -> bool:
        counted = ((each, times),)
        return any((cost := method(counted, delta)) is not None and cost <= epsilon for method in _METHODS.values())

    low, high = 0, 1
    while high <= _MOST_TIMES and fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _basic(counted: Counted, delta: float) -> float | None:
    total = add_up(counted)
    return total.epsilon if not total.promises_nothing and total.delta <= delta else None


def _gaussian(counted: Counted, delta: float) -> float | None:
    loss = loss_of(counted)
    if loss is None or loss.kind is not LossKind.GAUSSIAN:
        return None
    return epsilon_of_gaussian(loss.value, delta) if loss.value > 0.0 else 0.0


def _zcdp(counted: Counted, delta: float) -> float | None:
    total, outside = Fraction(0), Fraction(0)
    for guarantee, times in counted:
        rho = rho_exactly(guarantee)
        if rho is None:
            return None
        total += rho * times
        outside += Fraction(exceptions(guarantee)) * times
    left = down(Fraction(delta) - outside)
    rho_up = up(total)
    return epsilon_of_rho(rho_up, left) if left > 0.0 and math.isfinite(rho_up) else None


def _loss_at_delta(counted: Counted) -> Loss | None:
    """The loss beside a converted (epsilon, delta): only kinds that always hold, because this delta is not an exception."""
    loss = loss_of(counted)
    if loss is None or any(exceptions(guarantee) for guarantee, _ in counted):
        return None
    if loss.kind in (LossKind.PURE, LossKind.BOUNDED_RANGE):
        rho = rho_exactly(counted[0][0])  # one release: a sum would be a rho already
        return None if rho is None else Loss(LossKind.ZCDP, up(rho))
    return loss


_MOST = 300.0  # largest epsilon of one part, half the largest of all: e^(2 epsilon) must be an ordinary float
_CELLS = 1 << 16  # most cells of a grid of losses, over the whole range
_LEVELS = 24  # most different epsilons that are convolved one by one
_SLACK = 1e-3  # share of delta set aside for rounding errors that do not grow with the number of releases
_FFT = 8.0 * 2.0**-52  # error of one release at one frequency of a convolution, for each doubling of its length
_LEAST_LEFT = 0.9  # share of delta that the errors of the convolutions must leave, else nothing is claimed
MOST_TIMES = 10**9  # binomial masses have about twelve digits up to here
_LEFT_OUT = 1e-9  # the share of delta for the mass that is left out

Parts = tuple[tuple[float, int], ...]  # pure epsilons, each with the number of releases made under it


def rdp_epsilon(counted: Iterable[tuple[Guarantee, int]], delta: float) -> float | None:
    """Epsilon at ``delta`` from the sum of Renyi curves; None if a part has only an (epsilon, delta)."""
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
    """The smallest epsilon with |loss| <= epsilon (outside of ``exceptions``); infinite if there is none."""
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


def pld_epsilon(counted: Iterable[tuple[Guarantee, int]], delta: float) -> float | None:
    """Epsilon at ``delta`` from the convolved privacy losses; None if delta is too small for the arithmetic.

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
    return _pld(sqrt_up(squares), _merge_levels(parts), left)


def _merge_levels(parts: Parts) -> Parts:
    """The parts with at most a few different epsilons: neighbours are rounded up together, by at most 2 % if that is enough."""
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
        return equal_epsilon(*parts[0], delta)
    step = _step(mu, parts)
    left = delta * (1.0 - _SLACK) - _convolution_error(mu, parts, step)
    return _convolve(mu, parts, step, left) if left >= _LEAST_LEFT * delta else None


def _convolve(mu: float, parts: Parts, step: float, delta: float) -> float | None:
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


def _convolution_error(mu: float, parts: Parts, step: float) -> float:
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


def equal_epsilon(epsilon: float, times: int, delta: float) -> float | None:
    """The smallest epsilon at ``delta`` of ``times`` pure releases of ``epsilon`` each, rounded up; None for too many."""
    if times > MOST_TIMES:
        return None
    from tacit.guarantees.binomial import Responses

    responses = Responses(epsilon, times, -math.log(delta * _LEFT_OUT))
    if responses.delta(0.0) <= delta:
        return 0.0
    all_of_it = times * epsilon * (1.0 + 1e-12)
    if not responses.delta(all_of_it) <= delta:
        return None
    return smallest(lambda total: responses.delta(total) <= delta, all_of_it)


_METHODS: dict[str, Callable[[Counted, float], float | None]] = {
    "basic": _basic,
    "gaussian": _gaussian,
    "zcdp": _zcdp,
    "rdp": rdp_epsilon,
    "pld": pld_epsilon,
}
