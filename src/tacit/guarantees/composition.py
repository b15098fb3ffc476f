"""Basic and parallel composition: what several releases promise together (docs/proofs/composition)."""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import reduce

from tacit.checks import whole
from tacit.errors import InvalidParameter, MixedUnits
from tacit.guarantees.guarantee import Guarantee, Loss, LossKind, agrees
from tacit.guarantees.neighbours import Neighbours, Relation
from tacit.guarantees.rounding import sqrt_up, up
from tacit.guarantees.zcdp import exceptions, rho_exactly

PROOF = "composition"
Counted = Sequence[tuple[Guarantee, int]]  # each guarantee, and how many releases were made under it


def compose(guarantees: Iterable[Guarantee]) -> Guarantee:
    """All releases together, of the same data: epsilons and deltas add, rounded up. Refuses to mix units.

    Holds when a later mechanism is chosen after seeing earlier outputs. ``loss`` keeps the most that is known of the sum,
    so that ``tight`` may start from a composition as well as from its parts.
    """
    return add_up([(guarantee, 1) for guarantee in guarantees])


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
    """One release per part of the population: a user pays for the parts she can touch, not for all of them.

    Say either why no user is in two parts (``disjoint``) or in how many she may be (``most_per_user``); the reason joins
    ``assumes``. Where a unit (rows, a profile, an impression, features) is *replaced* its replacement may fall into another
    part, so that two parts change for one: the two largest costs add, unless ``stays`` says why it stays in its part.
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


def add_up(counted: Counted) -> Guarantee:
    """The composition of each guarantee as many times as counted."""
    protects = same_unit([guarantee for guarantee, _ in counted])
    if len(counted) == 1 and counted[0][1] == 1:
        return counted[0][0]
    parts = [guarantee for guarantee, _ in counted]
    return _built(
        parts,
        protects,
        epsilon=sum((_exact(g.epsilon) * n for g, n in counted), Fraction(0)),
        delta=sum((Fraction(g.delta) * n for g, n in counted), Fraction(0)),
        loss=loss_of(counted),
    )


def loss_of(counted: Counted) -> Loss | None:
    """The most that is known of the loss of a composition.

    Pure losses become a rho: (sum of epsilon^2)/2 says more than the sum of the epsilons, which ``epsilon`` keeps anyway.
    Bounded ranges become a rho too, and never a range: where a later mechanism is chosen after an earlier output, that
    output may also decide where the later range lies, so the ranges do not bound the range of the sum. Losses that hold
    except with a probability add up as pure losses or not at all, since no other kind here carries an exception.
    """
    known = [(guarantee, loss, n) for guarantee, n in counted if (loss := _known(guarantee)) is not None]
    if len(known) < len(counted):
        return None
    if len(known) == 1 and known[0][2] == 1:
        return known[0][1]
    if all(loss.kind is LossKind.GAUSSIAN for _, loss, _ in known):
        return _finite(
            LossKind.GAUSSIAN, sqrt_up(sum((Fraction(loss.value) ** 2 * n for _, loss, n in known), Fraction(0)))
        )
    if all(exceptions(guarantee) == 0.0 for guarantee, _, _ in known):
        rhos = [(rho_exactly(guarantee), n) for guarantee, _, n in known]
        return _finite(LossKind.ZCDP, up(sum((rho * n for rho, n in rhos if rho is not None), Fraction(0))))
    if all(loss.kind is LossKind.PURE for _, loss, _ in known):
        return _finite(LossKind.PURE, up(sum((Fraction(loss.value) * n for _, loss, n in known), Fraction(0))))
    return None


def same_unit(guarantees: Sequence[Guarantee]) -> Neighbours:
    """What all of them protect; refuses none at all, and two that protect different things."""
    if not guarantees:
        raise InvalidParameter("composition needs at least one guarantee.")
    first = guarantees[0]
    for other in guarantees[1:]:
        if other.protects != first.protects or other.per_distance != first.per_distance:
            raise MixedUnits(
                f"one guarantee protects '{first.protects}', another '{other.protects}': their epsilons cannot be "
                "added. Convert them to one unit first (within, anywhere, group, replace_from_add_remove)."
            )
    return first.protects


def _largest(parts: list[Guarantee], touched: int) -> Guarantee:
    """The composition of the ``touched`` largest: epsilon, delta and rho each by its own order, which covers any subset."""
    touched = min(touched, len(parts))
    if len(parts) == 1:
        return parts[0]

    def top(values: Iterable[Fraction]) -> Fraction:
        return sum(sorted(values)[-touched:], Fraction(0))

    return _built(
        parts,
        parts[0].protects,
        epsilon=top(_exact(part.epsilon) for part in parts),
        delta=top(Fraction(part.delta) for part in parts),
        loss=_largest_loss(parts, touched),
    )


def _largest_loss(parts: list[Guarantee], touched: int) -> Loss | None:
    known = [(part, loss) for part in parts if (loss := _known(part)) is not None]
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
    return _finite(LossKind.ZCDP, up(sum(rhos[-touched:], Fraction(0))))


def _built(
    parts: Sequence[Guarantee], protects: Neighbours, *, epsilon: Fraction, delta: Fraction, loss: Loss | None
) -> Guarantee:
    """The composite with these totals; no promise where a part makes none, or where the totals promise nothing."""
    assumes = reduce(frozenset.union, (part.assumes for part in parts))
    total, per_distance = up(epsilon), parts[0].per_distance
    rounding = max(part.rounding for part in parts)
    unpromised = any(part.promises_nothing for part in parts)
    if not unpromised and (math.isinf(total) or delta >= 1 or up(delta) >= 1.0):
        assumes |= {"nothing is left to promise: the costs add up to a delta of 1 or an epsilon beyond all numbers"}
        unpromised = True
    if unpromised:
        return Guarantee(math.inf, protects, per_distance=per_distance, rounding=rounding, assumes=assumes, proof=PROOF)
    return Guarantee(
        total,
        protects,
        delta=up(delta),
        per_distance=per_distance,
        rounding=rounding,
        assumes=assumes,
        proof=PROOF,
        loss=loss if loss is not None and not per_distance and agrees(total, up(delta), loss) else None,
    )


def _known(guarantee: Guarantee) -> Loss | None:
    if guarantee.promises_nothing or guarantee.per_distance:
        return None
    if guarantee.loss is None and guarantee.delta == 0.0:
        return Loss(LossKind.PURE, guarantee.epsilon)
    return guarantee.loss


def _finite(kind: LossKind, value: float) -> Loss | None:
    return Loss(kind, value) if math.isfinite(value) else None


def _exact(epsilon: float) -> Fraction:
    return Fraction(0) if math.isinf(epsilon) else Fraction(epsilon)  # infinity is treated apart


def _membership(disjoint: str | None, most_per_user: int | None) -> tuple[int, frozenset[str]]:
    if (disjoint is None) == (most_per_user is None):
        raise InvalidParameter(
            "say either why the parts share no user (disjoint) or in how many she may be (most_per_user)."
        )
    if disjoint is not None:
        return 1, frozenset({_reason("disjoint", disjoint)})
    allowed = whole("most_per_user", most_per_user or 0, least=1)
    return allowed, frozenset({f"no user is in more than {allowed} of the parts"})


def _reason(name: str, text: str) -> str:
    if not isinstance(text, str) or not text.strip():
        raise InvalidParameter(f"{name} must say in words why it holds; it becomes an assumption of the guarantee.")
    return text.strip()
