"""Tight composition at a stated delta, and the budget that many releases may each take (docs/proofs/composition)."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Literal, get_args

from tacit.checks import positive, probability, whole
from tacit.errors import InvalidGuarantee, InvalidParameter
from tacit.guarantees.composition import PROOF, Counted, add_up, loss_of, same_unit
from tacit.guarantees.gaussian import epsilon_of_gaussian, mu_for
from tacit.guarantees.guarantee import Guarantee, Loss, LossKind
from tacit.guarantees.neighbours import ONE_PROFILE
from tacit.guarantees.numerical import PLD_LEAST_DELTA, pld_epsilon, rdp_epsilon
from tacit.guarantees.rounding import down, sqrt_down, up
from tacit.guarantees.zcdp import epsilon_of_rho, exceptions, largest, rho_exactly, rho_for

Method = Literal["auto", "basic", "gaussian", "zcdp", "rdp", "pld"]

_WORTH_A_DELTA = 1e-3  # the least gain in epsilon for which a smaller delta is given up
_MOST_TIMES = 2**20  # beyond that a convolution takes longer than anybody waits, and the count is a safe one anyway
_WHY_NOT = {
    "basic": "the deltas of the parts add up to more than delta. Raise delta, or use `auto`",
    "gaussian": "a part is not Gaussian. Use `auto`",
    "zcdp": "a part is known by an (epsilon, delta) alone. Use `pld`, `basic` or `auto`",
    "rdp": "a part is known by an (epsilon, delta) alone. Use `pld`, `basic` or `auto`",
    "pld": f"what the parts leave of delta is below {PLD_LEAST_DELTA:g}, or too small for so many releases. Use `auto`",
}


def tight(
    guarantees: Iterable[Guarantee] | Mapping[Guarantee, int], delta: float, method: Method = "auto"
) -> Guarantee:
    """All releases together at ``delta``: the smallest epsilon that ``method`` proves, rounded up. Refuses to mix units.

    A mapping says how many releases were made under each guarantee.

    ``auto`` takes the best method that applies and is never above basic composition where the parts' own deltas fit into
    ``delta``. The method joins ``assumes``. Where basic composition wins, or loses by less than a thousandth, it is kept
    with its own smaller delta.
    Epsilon is in nats, ``delta`` a probability.
    """
    delta = probability("delta", delta)
    if method not in get_args(Method):
        raise InvalidParameter(f"the method must be one of {', '.join(get_args(Method))}, not {method!r}.")
    counted = tuple(Counter(guarantees).items())
    parts = [guarantee for guarantee, _ in counted]
    same_unit(parts)
    if any(part.per_distance for part in parts):
        raise InvalidGuarantee("a delta needs a stated radius: convert guarantees per distance with within(...) first.")
    basic = add_up(counted)
    if any(part.promises_nothing for part in parts):
        return basic
    found = {
        name: epsilon
        for name in (_METHODS if method == "auto" else (method,))
        if (epsilon := _METHODS[name](counted, delta)) is not None
    }
    if not found:
        raise InvalidGuarantee(
            f"`{method}` does not apply at delta = {delta:g}: {_WHY_NOT.get(method, 'no method does')}."
        )
    best = min(found, key=lambda name: found[name])
    if best == "basic" or found.get("basic", math.inf) <= found[best] * (1.0 + _WORTH_A_DELTA):
        return basic
    return replace(
        basic if not basic.promises_nothing else parts[0],
        epsilon=found[best],
        delta=delta,
        assumes=frozenset[str]().union(*(part.assumes for part in parts)) | {f"accounting: {best}"},
        proof=PROOF,
        loss=_carried(counted),
    )


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

    Holds when the releases are chosen after seeing earlier outputs, since each of them is bounded by the same loss.
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


_METHODS: dict[str, Callable[[Counted, float], float | None]] = {
    "basic": _basic,
    "gaussian": _gaussian,
    "zcdp": _zcdp,
    "rdp": rdp_epsilon,
    "pld": pld_epsilon,
}


def _carried(counted: Counted) -> Loss | None:
    """The loss beside a converted (epsilon, delta): only kinds that hold outright, since delta is no exception here."""
    loss = loss_of(counted)
    if loss is None or any(exceptions(guarantee) for guarantee, _ in counted):
        return None
    if loss.kind in (LossKind.PURE, LossKind.BOUNDED_RANGE):
        rho = rho_exactly(counted[0][0])  # one release: a sum would be a rho already
        return None if rho is None else Loss(LossKind.ZCDP, up(rho))
    return loss
