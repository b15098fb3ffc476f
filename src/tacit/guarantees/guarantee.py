"""A guarantee is a value: what is promised, to whom, under which assumptions, and where the proof is.

Every mechanism has one, every release carries it, the ledger charges it, the report prints it. Nobody retypes an epsilon.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from tacit.checks import finite, keep, member
from tacit.errors import InvalidGuarantee, InvalidParameter
from tacit.guarantees.neighbours import Neighbours
from tacit.guarantees.rounding import shown_up


class LossKind(StrEnum):
    """What more than (epsilon, delta) is proved of the privacy loss ln P(y|x)/P(y|x')."""

    PURE = "pure"  # |loss| <= value for every output
    BOUNDED_RANGE = "bounded-range"  # max loss - min loss <= value over all outputs (exponential mechanism)
    ZCDP = "zcdp"  # Renyi divergence of every order a > 1 is at most value * a
    GAUSSIAN = "gaussian"  # no easier to tell apart than N(0,1) from N(value,1)


@dataclass(frozen=True, slots=True)
class Loss:
    """A proved shape of the privacy loss. Tight composition starts from it."""

    kind: LossKind
    value: float

    def __post_init__(self) -> None:
        try:
            keep(self, kind=member("the kind of a loss", LossKind, self.kind))
        except InvalidParameter:
            raise InvalidGuarantee(
                f"the kind of a loss must be one of {', '.join(LossKind)}, not {self.kind!r}."
            ) from None
        value = _real(self.value)
        if not 0.0 <= value < math.inf:
            raise InvalidGuarantee(
                f"the {self.kind} parameter must be a finite number of at least 0, not {self.value!r}."
            )
        keep(self, value=value)


@dataclass(frozen=True, slots=True)
class Guarantee:
    """For all neighbours x, x' and all sets S: P[M(x) in S] <= e^epsilon P[M(x') in S] + delta.

    Where ``per_distance`` is set the guarantee is metric: epsilon is *per unit of distance*, and the bound is
    e^(epsilon * (distance(x, x') + rounding)). ``epsilon`` is infinite where nothing is promised; ``assumes`` then says why.

    ``loss`` is a further fact, for tight composition. A zCDP or Gaussian loss holds outright, and delta is merely where it was
    converted to epsilon; a pure loss or a range beside a delta above 0 holds except with that probability. Of two claims that
    do not agree (``agrees``) one is wrong, so such a pair is refused.
    """

    epsilon: float  # nats
    protects: Neighbours
    delta: float = 0.0
    per_distance: bool = False
    rounding: float = 0.0  # what rounding to a grid may add to a distance (metric guarantees only)
    assumes: frozenset[str] = frozenset()
    proof: str = ""  # page in docs/proofs, without its ending
    loss: Loss | None = field(default=None)

    def __post_init__(self) -> None:
        epsilon, delta, rounding = _real(self.epsilon), _real(self.delta), _real(self.rounding)
        if not epsilon >= 0.0:  # written so that NaN fails too
            raise InvalidGuarantee(
                f"epsilon must be at least 0 (or infinite where nothing is promised), not {self.epsilon!r}."
            )
        if not 0.0 <= delta < 1.0:
            raise InvalidGuarantee(f"delta must be at least 0 and below 1, not {self.delta!r}.")
        if not 0.0 <= rounding < math.inf or (rounding and not self.per_distance):
            raise InvalidGuarantee("rounding is a finite distance of at least 0 and belongs to metric guarantees.")
        keep(self, epsilon=epsilon, delta=delta, rounding=rounding, assumes=_assumptions(self.assumes))
        if not isinstance(self.proof, str):
            raise InvalidGuarantee(f"a proof is named by its page, not by {self.proof!r}.")
        if self.epsilon == math.inf and not self.assumes:
            raise InvalidGuarantee("an infinite epsilon needs its reason in `assumes`.")
        if self.epsilon == math.inf and self.loss is not None:
            raise InvalidGuarantee("where nothing is promised nothing is known of the loss.")
        if self.per_distance and (
            self.protects.distance is None or self.protects.radius is not None or self.delta != 0.0
        ):
            raise InvalidGuarantee("an epsilon per distance protects features at any distance, with delta = 0.")
        if self.protects.distance is not None and self.protects.radius is None and not self.per_distance:
            raise InvalidGuarantee("features at any distance need an epsilon per distance, or state a radius.")
        if self.loss is not None and (self.per_distance or not agrees(epsilon, delta, self.loss)):
            raise InvalidGuarantee(
                f"a {self.loss.kind} loss of {self.loss.value!r} does not agree with epsilon = {epsilon!r} at delta = {delta!r}"
                + (" per distance." if self.per_distance else ".")
            )

    @property
    def is_pure(self) -> bool:
        """Whether it bounds the loss by epsilon alone: no delta, and not by distance."""
        return self.delta == 0.0 and not self.per_distance

    @property
    def promises_nothing(self) -> bool:
        """Whether epsilon is infinite; ``assumes`` then says why."""
        return self.epsilon == math.inf

    def then(self, later: "Guarantee") -> "Guarantee":
        """Both releases, of the same data: epsilons and deltas add. Refuses to mix units."""
        from tacit.guarantees.composition import compose

        return compose([self, later])

    def assuming(self, *assumptions: str) -> "Guarantee":
        """The same guarantee under further assumptions."""
        return replace(self, assumes=self.assumes | frozenset(assumptions))

    def __str__(self) -> str:
        if self.promises_nothing:
            promise = "no guarantee"
        else:
            promise = f"epsilon = {shown_up(self.epsilon, 6)}"
            if self.per_distance:
                promise += f" per unit of {self.protects.distance} distance"
            if self.rounding:
                promise += f" (+ {shown_up(self.rounding, 3)} rounding)"
            if self.delta:
                promise += f", delta = {shown_up(self.delta, 3)}"
        text = f"{promise}; protects {self.protects}"
        if self.assumes:
            text += f"; assumes {', '.join(sorted(self.assumes))}"
        return text

    def to_json(self) -> dict[str, Any]:
        """The shape that every command, message and export uses."""
        metric = {"distance": self.protects.distance, "rounding": self.rounding} if self.per_distance else None
        return {
            "epsilon": "inf" if self.promises_nothing else self.epsilon,
            "delta": self.delta,
            "metric": metric,
            "protects": self.protects.to_json(),
            "assumes": sorted(self.assumes),
            "proof": self.proof,
            "loss": None if self.loss is None else {"kind": self.loss.kind.value, "value": self.loss.value},
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Guarantee":
        """The guarantee that ``to_json`` wrote; anything else is refused."""
        try:
            metric, loss, epsilon = value["metric"], value.get("loss"), value["epsilon"]
            protects = Neighbours.from_json(value["protects"])
            if metric is not None and metric["distance"] != protects.distance:
                raise InvalidGuarantee("the distance of `metric` must be the distance that `protects` names.")
            if not isinstance(value["assumes"], list):
                raise InvalidGuarantee("`assumes` must be a list of texts.")
            return cls(
                epsilon=math.inf if epsilon == "inf" else epsilon,
                protects=protects,
                delta=value["delta"],
                per_distance=metric is not None,
                rounding=metric["rounding"] if metric is not None else 0.0,
                assumes=_assumptions(value["assumes"]),
                proof=value["proof"],
                loss=None if loss is None else Loss(LossKind(loss["kind"]), loss["value"]),
            )
        except (KeyError, TypeError, ValueError) as problem:
            if isinstance(problem, InvalidGuarantee):
                raise
            raise InvalidGuarantee(
                "a guarantee needs epsilon, delta, metric, protects, assumes and proof."
            ) from problem


def pure(epsilon: float, protects: Neighbours, *, proof: str = "", assumes: frozenset[str] = frozenset()) -> Guarantee:
    """The guarantee of epsilon-differential privacy.

    ``epsilon`` is in nats: no output is more than e^epsilon times as likely with the one neighbour as with the other.
    """
    loss = Loss(LossKind.PURE, epsilon) if 0.0 <= _real(epsilon) < math.inf else None
    return Guarantee(epsilon, protects, assumes=assumes, proof=proof, loss=loss)


def approximate(
    epsilon: float, delta: float, protects: Neighbours, *, proof: str = "", assumes: frozenset[str] = frozenset()
) -> Guarantee:
    """(epsilon, delta)-differential privacy with 0 < delta < 1.

    ``epsilon`` is in nats, ``delta`` a probability.
    """
    if not 0.0 < _real(delta) < 1.0:
        raise InvalidGuarantee(
            f"delta must lie strictly between 0 and 1, not {delta!r}; without a delta say pure(...)."
        )
    return Guarantee(epsilon, protects, delta=delta, assumes=assumes, proof=proof)


def metric(
    epsilon: float,
    *,
    distance: str = "L1",
    rounding: float = 0.0,
    proof: str = "",
    assumes: frozenset[str] = frozenset(),
) -> Guarantee:
    """epsilon per unit of a named distance between features (metric, or geographic, privacy).

    ``epsilon`` is in nats for one unit of that distance.
    """
    return Guarantee(
        epsilon, Neighbours.features(distance), per_distance=True, rounding=rounding, assumes=assumes, proof=proof
    )


def nothing(protects: Neighbours, reason: str, *, proof: str = "") -> Guarantee:
    """No promise at all, and the reason."""
    per_distance = protects.distance is not None and protects.radius is None
    return Guarantee(math.inf, protects, per_distance=per_distance, assumes=frozenset({reason}), proof=proof)


def agrees(epsilon: float, delta: float, loss: Loss) -> bool:
    """Whether a loss may stand beside (epsilon, delta): neither is a claim that the other one refutes or makes pointless.

    Without a delta a pure loss *is* epsilon, and a range, which contains 0, is at least epsilon. Beside a delta either holds
    except with that probability and is at most epsilon. Of a rho or a Gaussian loss nothing is asked.
    """
    if loss.kind not in (LossKind.PURE, LossKind.BOUNDED_RANGE):
        return True
    if math.isclose(epsilon, loss.value, rel_tol=1e-12):  # each was rounded up by itself
        return True
    if delta > 0.0:
        return loss.value <= epsilon
    return loss.kind is LossKind.BOUNDED_RANGE and epsilon <= loss.value


def _real(value: object) -> float:
    """``value`` as a plain float, also infinity; NaN where it is no number."""
    if isinstance(value, float):
        return float(value)
    if getattr(getattr(value, "dtype", None), "kind", "") == "b":
        return math.nan  # numpy's truth values
    try:
        return finite("value", value)  # type: ignore[arg-type]
    except InvalidParameter:
        return math.nan


def _assumptions(value: object) -> frozenset[str]:
    if isinstance(value, (str, bytes)) or not isinstance(value, Collection):
        raise InvalidGuarantee(f"`assumes` must be a collection of texts, not {value!r}.")
    if not all(isinstance(one, str) for one in value):
        raise InvalidGuarantee("`assumes` must hold texts and nothing else.")
    return frozenset(value)
