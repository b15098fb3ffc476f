"""From one unit of protection to another: metric to local, one to many, added-or-removed to replaced (docs/proofs/conversion).

Every conversion is a theorem about *all* mechanisms with the given guarantee; a mechanism may know better of itself.
"""

import math
from dataclasses import replace
from fractions import Fraction

from tacit.checks import positive, whole
from tacit.errors import InvalidGuarantee
from tacit.guarantees.accounting import tight
from tacit.guarantees.guarantee import Guarantee, Loss, LossKind
from tacit.guarantees.neighbours import ONE_PROFILE, Neighbours, Relation, Unit
from tacit.guarantees.rounding import exactly, precise, up, up_from

PROOF = "conversion"


def within(guarantee: Guarantee, radius: float) -> Guarantee:
    """The local guarantee among features at most ``radius`` apart: epsilon * (radius + rounding), rounded up.

    ``radius`` is in the distance of the guarantee, such as L1; epsilon is then in nats.
    """
    radius = positive("radius", radius)
    distance = _metric(guarantee)
    return _at(guarantee, radius, Neighbours.features(distance, radius), frozenset())


def anywhere(guarantee: Guarantee, diameter: float, protects: Neighbours = ONE_PROFILE) -> Guarantee:
    """The local guarantee of everyone, where all features lie in a public domain of this ``diameter``.

    ``diameter`` is in the distance of the guarantee, such as L1.
    """
    diameter = positive("diameter", diameter)
    distance = _metric(guarantee)
    if protects.unit is Unit.FEATURES or protects.group != 1:
        raise InvalidGuarantee("the whole domain protects one unit, not features: use within(...) for a radius.")
    if protects.relation is not Relation.REPLACE:
        raise InvalidGuarantee(
            "a distance compares one person's features with another's: it says nothing of a person who is added or removed."
        )
    return _at(
        guarantee,
        diameter,
        protects,
        frozenset({f"features lie in a public domain of {distance} diameter {exactly(diameter)}"}),
    )


def group(guarantee: Guarantee, size: int) -> Guarantee:
    """The guarantee when ``size`` units change together: (k epsilon, delta (e^(k epsilon) - 1)/(e^epsilon - 1)), rounded up.

    No promise is left where that delta reaches 1.
    """
    size = whole("size", size, least=1)
    if guarantee.protects.unit is Unit.FEATURES:
        raise InvalidGuarantee("features are grouped by distance: use within(...) with a larger radius.")
    if size == 1:
        return guarantee
    return _steps(guarantee, size, replace(guarantee.protects, group=guarantee.protects.group * size))


def replace_from_add_remove(guarantee: Guarantee) -> Guarantee:
    """The guarantee when a user's rows are replaced by any others: one removal, then one addition."""
    protects = guarantee.protects
    if protects.unit is Unit.FEATURES or protects.relation is not Relation.ADD_REMOVE:
        raise InvalidGuarantee(
            f"only a guarantee for units added or removed can be converted, not one for '{protects}'."
        )
    return _steps(guarantee, 2, replace(protects, relation=Relation.REPLACE))


def to_approximate(guarantee: Guarantee, delta: float) -> Guarantee:
    """The smallest epsilon at ``delta`` that follows from what is known of the loss.

    Epsilon is in nats, ``delta`` a probability.
    """
    return tight([guarantee], delta)


def _metric(guarantee: Guarantee) -> str:
    distance = guarantee.protects.distance
    if not guarantee.per_distance or distance is None:
        raise InvalidGuarantee(
            f"only an epsilon per distance has a radius to state; this one protects '{guarantee.protects}'."
        )
    return distance


def _at(guarantee: Guarantee, distance: float, protects: Neighbours, assumptions: frozenset[str]) -> Guarantee:
    assumes = guarantee.assumes | assumptions
    epsilon = math.inf
    if not guarantee.promises_nothing:
        epsilon = up(Fraction(guarantee.epsilon) * (Fraction(distance) + Fraction(guarantee.rounding)))
        if math.isinf(epsilon):
            assumes |= {"nothing is left to promise: epsilon is beyond all numbers"}
    loss = Loss(LossKind.PURE, epsilon) if math.isfinite(epsilon) else None
    return Guarantee(epsilon, protects, assumes=assumes, proof=PROOF, loss=loss)


def _steps(guarantee: Guarantee, count: int, protects: Neighbours) -> Guarantee:
    """The guarantee between inputs that are ``count`` neighbouring steps apart."""
    assumes = guarantee.assumes
    if guarantee.promises_nothing:
        return Guarantee(math.inf, protects, assumes=assumes, proof=PROOF)
    epsilon = up(Fraction(guarantee.epsilon) * count)
    delta = _delta_after(guarantee.epsilon, guarantee.delta, count)
    if delta >= 1.0 or math.isinf(epsilon):
        reason = f"nothing is left to promise after {count} steps: delta reaches 1 or epsilon is beyond all numbers"
        return Guarantee(math.inf, protects, assumes=assumes | {reason}, proof=PROOF)
    return Guarantee(
        epsilon, protects, delta=delta, assumes=assumes, proof=PROOF, loss=_loss_after(guarantee.loss, count)
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
    value = up(Fraction(loss.value) * (count**2 if loss.kind is LossKind.ZCDP else count))
    return Loss(loss.kind, value) if math.isfinite(value) else None
