"""Checks of one claim, for any mechanism: by exact enumeration, by its sampler's draws, by an empirical lower bound.

They are what the suite is made of, and what to call for a mechanism of your own (docs/audit.md).
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.audit import distribution, empirical, exact
from tacit.audit.findings import By, Finding, Measure
from tacit.errors import InvalidParameter
from tacit.guarantees import Guarantee, LossKind
from tacit.guarantees.concentrated import rho_of


class Claims(Protocol):
    """Anything with a name that promises something."""

    @property
    def name(self) -> str: ...

    @property
    def guarantee(self) -> Guarantee: ...


class Finite(Claims, Protocol):
    """A mechanism with finitely many outputs, which states its law."""

    def pmf(self, raw: Any, /) -> NDArray[np.float64]: ...


def exactly(
    mechanism: Finite,
    inputs: Sequence[Any],
    pairs: ArrayLike | None = None,
    *,
    measure: Measure = Measure.EPSILON,
    case: str = "",
    reference: float | None = None,
    note: str = "",
) -> Finding:
    """The worst loss over all neighbouring pairs (all pairs of inputs, if none are given) and all outputs, against the claim.

    ``reference`` is the loss by an independent formula, given where the claim is known not to be attained.
    """
    laws = np.stack([mechanism.pmf(raw) for raw in inputs])
    claimed = claimed_of(mechanism.guarantee, measure)
    match measure:
        case Measure.EPSILON:
            loss = exact.epsilon_at(laws, mechanism.guarantee.delta, pairs)
        case Measure.RANGE:
            loss = exact.loss_range(laws, pairs)
        case Measure.RHO:
            loss = exact.zcdp(laws, pairs)
        case Measure.PER_DISTANCE:
            raise InvalidParameter("a loss per distance needs distances: see tacit.audit.cases.features.")
        case Measure.RENYI:
            raise InvalidParameter("a Renyi divergence needs an order: see tacit.audit.cases.training.")
    return judged(mechanism, case, measure, loss, reference=reference, note=note, claimed=claimed)


def judged(
    mechanism: Claims,
    case: str,
    measure: Measure,
    loss: float,
    *,
    claimed: float | None = None,
    reference: float | None = None,
    note: str = "",
) -> Finding:
    """An exact loss against the claim; ``note`` says why there is slack, if there is."""
    claimed = claimed_of(mechanism.guarantee, measure) if claimed is None else claimed
    tight = abs(claimed - loss) <= exact.TOLERANCE
    holds = loss <= claimed + exact.TOLERANCE
    return Finding(
        mechanism.name,
        case,
        mechanism.guarantee,
        By.EXACT,
        measure,
        claimed,
        loss,
        holds,
        tight,
        reference,
        "" if tight else note,
    )


def sampled(
    mechanism: Claims,
    p_value: float,
    p_value_off: float,
    *,
    loss: float,
    draws: int,
    measure: Measure = Measure.EPSILON,
    case: str = "",
    off: str = "10 %",
) -> Finding:
    """Whether the draws fit the law (p above 1e-9) and do not fit the law with an epsilon ``off`` by so much (p below it)."""
    holds = p_value > distribution.THRESHOLD and p_value_off < distribution.THRESHOLD
    claimed = claimed_of(mechanism.guarantee, measure)
    note = f"p = {p_value:.2g}; against epsilon off by {off}: p = {p_value_off:.1g}"
    return Finding(
        mechanism.name,
        case,
        mechanism.guarantee,
        By.DISTRIBUTION,
        measure,
        claimed,
        loss,
        holds and loss <= claimed + exact.TOLERANCE,
        note=note,
        p_value=p_value,
        draws=draws,
    )


def from_below(
    mechanism: Claims,
    bound: empirical.LowerBound,
    *,
    distance: float | None = None,
    case: str = "",
) -> Finding:
    """An empirical lower bound against the claim; for metric claims, per distance between the two inputs."""
    guarantee = mechanism.guarantee
    loss, measure = bound.epsilon, Measure.EPSILON
    if guarantee.per_distance:
        if distance is None:
            raise InvalidParameter("a metric claim needs the distance between the two inputs.")
        loss, measure = loss / (distance + guarantee.rounding), Measure.PER_DISTANCE
    return Finding(
        mechanism.name,
        case,
        guarantee,
        By.EMPIRICAL,
        measure,
        guarantee.epsilon,
        loss,
        loss <= guarantee.epsilon,
        note=f"event: {bound.event}",
        draws=bound.draws,
    )


def many(draw: Callable[[], ArrayLike], draws: int) -> NDArray[np.float64]:
    """``draws`` outputs of a release that is made one at a time."""
    return np.array([draw() for _ in range(draws)], dtype=np.float64)


def claimed_of(guarantee: Guarantee, measure: Measure) -> float:
    """What a guarantee says of a measure."""
    if measure is Measure.RHO:
        return rho_of(guarantee)
    if measure is Measure.RANGE:
        if guarantee.loss is None or guarantee.loss.kind is not LossKind.BOUNDED_RANGE:
            raise InvalidParameter("this guarantee claims no range of the loss.")
        return guarantee.loss.value
    if measure is Measure.RENYI:
        raise InvalidParameter("a guarantee states no Renyi divergence; say which is claimed.")
    if guarantee.per_distance is not (measure is Measure.PER_DISTANCE):
        raise InvalidParameter("an epsilon per distance is measured per distance, and no other epsilon is.")
    return guarantee.epsilon
