"""Guarantees of several releases, and changes of the unit that a guarantee protects.

``repeat`` and ``parallel`` compose (docs/proofs/composition); ``compose`` itself is in `guarantee`. ``within``,
``anywhere``, ``group`` and ``replace_from_add_remove`` convert from one unit to another (docs/proofs/conversion). Every conversion
is a theorem about *all* mechanisms with the given guarantee; a mechanism may know better about itself.
"""

import math
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

from tacit.checks import positive, whole
from tacit.errors import InvalidGuarantee, InvalidParameter
from tacit.guarantees.arithmetic import exactly, precise, up, up_from
from tacit.guarantees.guarantee import (
    ONE_PROFILE,
    Guarantee,
    Loss,
    LossKind,
    Neighbours,
    Relation,
    Unit,
    add_up,
    composite,
    exceptions,
    finite_loss,
    finite_part,
    known_loss,
    loss_of,
    rho_exactly,
    same_unit,
)

CONVERSION_PROOF = "conversion"


def repeat(guarantee: Guarantee, times: int) -> Guarantee:
    """``times`` releases under the same guarantee, of the same data."""
    return add_up([(guarantee, whole("times", times, least=1))])


def parallel(
    guarantees: Iterable[Guarantee],
    *,
    disjoint: str | None = None,
    most_per_user: int | None = None,
    stays: str | None = None,
) -> Guarantee:
    """One release per part of the population: a user pays for the parts they can be in, not for all of them.

    Say either why no user is in two parts (``disjoint``) or in how many a user may be (``most_per_user``); the reason joins
    ``assumes``. If a unit (rows, a profile, an impression, features) is *replaced*, its replacement may fall into another part.
    Then two parts change instead of one, and the two largest costs add, unless ``stays`` says why a unit stays in its part.
    """
    parts = list(guarantees)
    protects = same_unit(parts)
    allowed, reasons = _membership(disjoint, most_per_user)
    touched = allowed * protects.group
    if protects.relation is Relation.REPLACE:
        if stays is None and len(parts) > 1:
            touched *= 2
            reasons |= {f"each part's guarantee covers replacing {protects.unit} by none"}
        elif stays is not None:
            reasons |= {_reason("stays", stays)}
    return _largest(parts, touched).assuming(*reasons)


def within(guarantee: Guarantee, radius: float) -> Guarantee:
    """The local guarantee among features at most ``radius`` apart: epsilon * (radius + rounding), rounded up.

    ``radius`` is in the distance of the guarantee, such as L1; epsilon is then in nats.
    """
    radius = positive("radius", radius)
    distance = _metric(guarantee)
    return _at_distance(guarantee, radius, Neighbours.features(distance, radius), frozenset())


def anywhere(guarantee: Guarantee, diameter: float, protects: Neighbours = ONE_PROFILE) -> Guarantee:
    """The local guarantee for everyone, if all features lie in a public domain of this ``diameter``.

    ``diameter`` is in the distance of the guarantee, such as L1.
    """
    diameter = positive("diameter", diameter)
    distance = _metric(guarantee)
    if protects.unit is Unit.FEATURES or protects.group != 1:
        raise InvalidGuarantee(
            "`protects` must be one unit other than features: for features use within(...) with a radius."
        )
    if protects.relation is not Relation.REPLACE:
        raise InvalidGuarantee(
            "a distance compares the features of two people: it says nothing about a person who is added or removed."
        )
    return _at_distance(
        guarantee,
        diameter,
        protects,
        frozenset({f"features lie in a public domain of {distance} diameter {exactly(diameter)}"}),
    )


def group(guarantee: Guarantee, size: int) -> Guarantee:
    """The guarantee when ``size`` units change together: (k epsilon, delta (e^(k epsilon) - 1)/(e^epsilon - 1)), rounded up.

    Nothing is promised if that delta reaches 1.
    """
    size = whole("size", size, least=1)
    if guarantee.protects.unit is Unit.FEATURES:
        raise InvalidGuarantee("features are grouped by distance: use within(...) with a larger radius.")
    if size == 1:
        return guarantee
    return _steps(guarantee, size, replace(guarantee.protects, group=guarantee.protects.group * size))


def replace_from_add_remove(guarantee: Guarantee) -> Guarantee:
    """The guarantee when a user's rows are replaced by any others: a removal, then an addition."""
    protects = guarantee.protects
    if protects.unit is Unit.FEATURES or protects.relation is not Relation.ADD_REMOVE:
        raise InvalidGuarantee(
            f"only a guarantee for units that are added or removed can be converted, not one for '{protects}'."
        )
    return _steps(guarantee, 2, replace(protects, relation=Relation.REPLACE))


def _largest(parts: list[Guarantee], touched: int) -> Guarantee:
    """The composition of the ``touched`` largest: epsilon, delta and rho each by its own order, which covers any subset."""
    touched = min(touched, len(parts))
    if len(parts) == 1:
        return parts[0]

    def top(values: Iterable[Fraction]) -> Fraction:
        return sum(sorted(values)[-touched:], Fraction(0))

    return composite(
        parts,
        parts[0].protects,
        epsilon=top(finite_part(part.epsilon) for part in parts),
        delta=top(Fraction(part.delta) for part in parts),
        loss=_largest_loss(parts, touched),
    )


def _largest_loss(parts: list[Guarantee], touched: int) -> Loss | None:
    known = [(part, loss) for part in parts if (loss := known_loss(part)) is not None]
    if len(known) < len(parts):
        return None
    kinds = {loss.kind for _, loss in known}
    if len(kinds) == 1 and (touched == 1 or kinds == {LossKind.GAUSSIAN}):
        worst = sorted(known, key=lambda pair: pair[1].value)[-touched:]
        # What holds except with probability delta needs the delta of the result, and that is the largest of all parts.
        return loss_of([(part, 1) for part, _ in worst]) if touched > 1 else worst[0][1]
    if any(exceptions(part) for part, _ in known):
        return None
    rhos = sorted(rho for part, _ in known if (rho := rho_exactly(part)) is not None)
    return finite_loss(LossKind.ZCDP, up(sum(rhos[-touched:], Fraction(0))))


def _membership(disjoint: str | None, most_per_user: int | None) -> tuple[int, frozenset[str]]:
    if (disjoint is None) == (most_per_user is None):
        raise InvalidParameter(
            "say either why the parts share no user (disjoint) or in how many parts a user may be (most_per_user)."
        )
    if disjoint is not None:
        return 1, frozenset({_reason("disjoint", disjoint)})
    allowed = whole("most_per_user", most_per_user or 0, least=1)
    return allowed, frozenset({f"no user is in more than {allowed} of the parts"})


def _reason(name: str, text: str) -> str:
    if not isinstance(text, str) or not text.strip():
        raise InvalidParameter(f"`{name}` must give the reason in words: it becomes an assumption of the guarantee.")
    return text.strip()


def _metric(guarantee: Guarantee) -> str:
    distance = guarantee.protects.distance
    if not guarantee.per_distance or distance is None:
        raise InvalidGuarantee(
            f"only an epsilon per distance can be stated at a radius; this guarantee protects '{guarantee.protects}'."
        )
    return distance


def _at_distance(guarantee: Guarantee, distance: float, protects: Neighbours, assumptions: frozenset[str]) -> Guarantee:
    assumes = guarantee.assumes | assumptions
    epsilon = math.inf
    if not guarantee.promises_nothing:
        epsilon = up(Fraction(guarantee.epsilon) * (Fraction(distance) + Fraction(guarantee.rounding)))
        if math.isinf(epsilon):
            assumes |= {"nothing is left to promise: epsilon is beyond all numbers"}
    loss = finite_loss(LossKind.PURE, epsilon)
    return Guarantee(epsilon, protects, assumes=assumes, proof=CONVERSION_PROOF, loss=loss)


def _steps(guarantee: Guarantee, count: int, protects: Neighbours) -> Guarantee:
    """The guarantee between inputs that are ``count`` neighbouring steps apart."""
    assumes = guarantee.assumes
    if guarantee.promises_nothing:
        return Guarantee(math.inf, protects, assumes=assumes, proof=CONVERSION_PROOF)
    epsilon = up(Fraction(guarantee.epsilon) * count)
    delta = _delta_after(guarantee.epsilon, guarantee.delta, count)
    if delta >= 1.0 or math.isinf(epsilon):
        reason = f"nothing is left to promise after {count} steps: delta reaches 1 or epsilon is beyond all numbers"
        return Guarantee(math.inf, protects, assumes=assumes | {reason}, proof=CONVERSION_PROOF)
    return Guarantee(
        epsilon, protects, delta=delta, assumes=assumes, proof=CONVERSION_PROOF, loss=_loss_after(guarantee.loss, count)
    )


def _delta_after(epsilon: float, delta: float, count: int) -> float:
    """delta * (1 + e^epsilon + ... + e^((count - 1) epsilon)), rounded up and at most 1."""
    if delta == 0.0:
        return 0.0
    if epsilon == 0.0:
        return min(1.0, up(Fraction(delta) * count))
    if (count - 1) * epsilon > 800.0:
        return 1.0  # e^800 times the smallest float is above 1
    mp = precise(256)
    exact = mp.mpf(epsilon)
    return min(1.0, up_from(mp.mpf(delta) * mp.expm1(exact * count) / mp.expm1(exact), spare=100))


def _loss_after(loss: Loss | None, count: int) -> Loss | None:
    if loss is None:
        return None
    # Pure losses, ranges and Gaussian shifts pass through a chain of steps linearly, rho by the square (Bun, Steinke 2016).
    return finite_loss(loss.kind, up(Fraction(loss.value) * (count**2 if loss.kind is LossKind.ZCDP else count)))
