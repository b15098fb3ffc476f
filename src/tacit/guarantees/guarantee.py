"""A guarantee is a value: what is promised, for whom, under which assumptions, and where the proof is.

Every mechanism has a guarantee, every release carries it, the ledger charges it and the report prints it. Nobody retypes an
epsilon. Several releases of the same data promise less than each of them: ``compose`` adds their guarantees up
(docs/proofs/composition).

``Neighbours`` says what a guarantee hides. A ``Release`` is one output of a mechanism with its guarantee. Only a mechanism makes
one, because only a mechanism knows what its output costs; everybody else derives releases from others. Messages are built from
releases and from nothing else.
"""

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import InitVar, dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from functools import reduce
from typing import Any, Generic, TypeVar

from tacit.checks import finite, keep, member, positive, whole
from tacit.errors import InvalidGuarantee, InvalidParameter, MixedUnits
from tacit.guarantees.arithmetic import exactly, shown_up, sqrt_up, up


class Unit(StrEnum):
    """What may differ between two neighbouring inputs."""

    PROFILE = "one profile"  # everything private about one user, on their own device (local model)
    USER_ROWS = "one user's rows"  # all rows of one user in a table that a trusted party holds (central model)
    FEATURES = "features"  # a numeric vector, protected according to a distance
    IMPRESSION = "one impression"  # what is private about an item shown once: was it clicked?


class Relation(StrEnum):
    """How that unit differs between neighbours."""

    ADD_REMOVE = "added or removed"
    REPLACE = "replaced by any other"


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The pairs of inputs whose difference a guarantee hides.

    ``distance`` names the distance between features and ``radius`` bounds it. Without a radius neighbours may be any distance
    apart, and the loss grows with the distance. ``group`` is the number of units that may change together.
    """

    unit: Unit
    relation: Relation
    distance: str | None = None
    radius: float | None = None
    group: int = 1

    def __post_init__(self) -> None:
        try:
            unit, relation = member("unit", Unit, self.unit), member("relation", Relation, self.relation)
        except InvalidParameter:
            raise InvalidGuarantee(_UNKNOWN_NEIGHBOURS) from None
        keep(self, unit=unit, relation=relation)
        if self.distance is not None and not (isinstance(self.distance, str) and self.distance):
            raise InvalidGuarantee(f"`distance` must be the name of a distance, such as 'L1', not {self.distance!r}.")
        if (self.unit is Unit.FEATURES) != (self.distance is not None):
            raise InvalidGuarantee("features need a distance, and no other unit has one: use Neighbours.features(...).")
        try:
            radius = None if self.radius is None else positive("radius", self.radius)
        except InvalidParameter:
            radius = -1.0
        if radius is not None and (self.distance is None or radius < 0.0):
            raise InvalidGuarantee(f"`radius` must be a finite number above 0, for features only, not {self.radius!r}.")
        try:
            keep(self, radius=radius, group=whole("group", self.group, least=1))
        except (InvalidParameter, TypeError):  # an array has __index__, but may raise TypeError
            raise InvalidGuarantee(f"`group` must be a whole number of at least 1, not {self.group!r}.") from None

    @classmethod
    def features(cls, distance: str = "L1", radius: float | None = None) -> "Neighbours":
        """Features any distance apart, or at most ``radius`` apart."""
        return cls(Unit.FEATURES, Relation.REPLACE, distance, radius)

    def __str__(self) -> str:
        if self.unit is Unit.FEATURES:
            return (
                f"features, by {self.distance} distance"
                if self.radius is None
                else (f"features within {self.distance} distance {exactly(self.radius)}")
            )
        many = f" (any group of {self.group})" if self.group > 1 else ""
        return f"{self.unit}, {self.relation}{many}"

    def to_json(self) -> dict[str, Any]:
        """The neighbours as a JSON object."""
        return {
            "unit": self.unit.value,
            "relation": self.relation.value,
            "distance": self.distance,
            "radius": self.radius,
            "group": self.group,
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Neighbours":
        """Reads what ``to_json`` wrote; raises InvalidGuarantee for anything else."""
        try:
            return cls(
                Unit(value["unit"]),
                Relation(value["relation"]),
                value.get("distance"),
                value.get("radius"),
                value.get("group", 1),
            )
        except (KeyError, ValueError, TypeError) as problem:
            if isinstance(problem, InvalidGuarantee):
                raise
            raise InvalidGuarantee(_UNKNOWN_NEIGHBOURS) from problem


_UNKNOWN_NEIGHBOURS = f"neighbours need a `unit` ({', '.join(Unit)}) and a `relation` ({', '.join(Relation)})."

ONE_PROFILE = Neighbours(Unit.PROFILE, Relation.REPLACE)
ONE_USER = Neighbours(Unit.USER_ROWS, Relation.ADD_REMOVE)
ONE_USER_REPLACED = Neighbours(Unit.USER_ROWS, Relation.REPLACE)
ONE_IMPRESSION = Neighbours(Unit.IMPRESSION, Relation.REPLACE)


def one_user(relation: Relation) -> Neighbours:
    """One user's rows, added or removed, or replaced."""
    return ONE_USER if relation is Relation.ADD_REMOVE else ONE_USER_REPLACED


COMPOSITION_PROOF = "composition"


class LossKind(StrEnum):
    """What is proved of the privacy loss ln P(y|x)/P(y|x') beyond (epsilon, delta)."""

    PURE = "pure"  # |loss| <= value for every output
    BOUNDED_RANGE = "bounded-range"  # max loss - min loss <= value over all outputs (exponential mechanism)
    ZCDP = "zcdp"  # Renyi divergence of every order a > 1 is at most value * a
    GAUSSIAN = "gaussian"  # telling x from x' is no easier than telling N(0,1) from N(value,1)


@dataclass(frozen=True, slots=True)
class Loss:
    """A proved bound on the privacy loss. Tight composition starts from it."""

    kind: LossKind
    value: float

    def __post_init__(self) -> None:
        try:
            keep(self, kind=member("kind", LossKind, self.kind))
        except InvalidParameter:
            raise InvalidGuarantee(
                f"`kind` of a loss must be one of {', '.join(LossKind)}, not {self.kind!r}."
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

    With ``per_distance`` the guarantee is metric: epsilon is *per unit of distance*, and the bound is
    e^(epsilon * (distance(x, x') + rounding)). An infinite ``epsilon`` promises nothing; ``assumes`` then gives the reason.

    ``loss`` is a further fact, for tight composition. A zCDP or Gaussian loss always holds, and delta only says where it was
    converted to epsilon. A pure loss or a range beside a delta above 0 holds except with that probability. If ``loss`` and
    (epsilon, delta) contradict each other (see ``agrees``), one of them is wrong: that raises InvalidGuarantee.
    """

    epsilon: float  # nats
    protects: Neighbours
    delta: float = 0.0
    per_distance: bool = False
    rounding: float = 0.0  # the most that rounding to a grid adds to a distance (metric guarantees only)
    assumes: frozenset[str] = frozenset()
    proof: str = ""  # the page in docs/proofs, without ".md"
    loss: Loss | None = field(default=None)

    def __post_init__(self) -> None:
        epsilon, delta, rounding = _real(self.epsilon), _real(self.delta), _real(self.rounding)
        if not epsilon >= 0.0:  # written so that NaN fails too
            raise InvalidGuarantee(f"epsilon must be at least 0, or infinite to promise nothing, not {self.epsilon!r}.")
        if not 0.0 <= delta < 1.0:
            raise InvalidGuarantee(f"delta must be at least 0 and below 1, not {self.delta!r}.")
        if not 0.0 <= rounding < math.inf or (rounding and not self.per_distance):
            raise InvalidGuarantee("rounding must be a finite distance of at least 0, and 0 without `per_distance`.")
        keep(self, epsilon=epsilon, delta=delta, rounding=rounding, assumes=_assumptions(self.assumes))
        if not isinstance(self.proof, str):
            raise InvalidGuarantee(f"`proof` must be the name of a page in docs/proofs, not {self.proof!r}.")
        if self.epsilon == math.inf and not self.assumes:
            raise InvalidGuarantee("an infinite epsilon needs a reason: state it in `assumes`.")
        if self.epsilon == math.inf and self.loss is not None:
            raise InvalidGuarantee("an infinite epsilon promises nothing, so it cannot have a `loss`.")
        if self.per_distance and (
            self.protects.distance is None or self.protects.radius is not None or self.delta != 0.0
        ):
            raise InvalidGuarantee("an epsilon per distance needs features without a radius, and delta = 0.")
        if self.protects.distance is not None and self.protects.radius is None and not self.per_distance:
            raise InvalidGuarantee(
                "features without a radius need an epsilon per distance: set `per_distance`, or state a radius."
            )
        if self.loss is not None and (self.per_distance or not agrees(epsilon, delta, self.loss)):
            raise InvalidGuarantee(
                f"a {self.loss.kind} loss of {self.loss.value!r} contradicts epsilon = {epsilon!r} at delta = {delta!r}"
                + (" per distance." if self.per_distance else ".")
            )

    @property
    def is_pure(self) -> bool:
        """Whether epsilon alone bounds the loss: no delta, and no distance."""
        return self.delta == 0.0 and not self.per_distance

    @property
    def promises_nothing(self) -> bool:
        """Whether epsilon is infinite; ``assumes`` then gives the reason."""
        return self.epsilon == math.inf

    def then(self, later: "Guarantee") -> "Guarantee":
        """Both releases together, of the same data: epsilons and deltas add. Raises MixedUnits for different units."""
        return compose([self, later])

    def assuming(self, *assumptions: str) -> "Guarantee":
        """The same guarantee with further assumptions."""
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
        """The JSON object that every command, message and export uses."""
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
        """Reads what ``to_json`` wrote; raises InvalidGuarantee for anything else."""
        try:
            metric, loss, epsilon = value["metric"], value.get("loss"), value["epsilon"]
            protects = Neighbours.from_json(value["protects"])
            if metric is not None and metric["distance"] != protects.distance:
                raise InvalidGuarantee("`metric` and `protects` must name the same distance.")
            if not isinstance(value["assumes"], list):
                raise InvalidGuarantee("`assumes` must be a list of strings.")
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


T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")

MECHANISM = object()  # what a constructor asks for; only modules of tacit.mechanisms reach it


@dataclass(frozen=True, slots=True)
class Release(Generic[T_co]):
    """What may cross a boundary.

    ``guarantee`` covers the whole value. If ``value`` holds many outputs about the same data, it is their composition; if each
    output is about another user's data, it is the guarantee of each of them.
    """

    value: T_co
    guarantee: Guarantee
    maker: InitVar[object] = None

    def __init_subclass__(cls) -> None:
        raise TypeError("Release cannot be subclassed: a subclass could skip the check that a mechanism made it.")

    def __post_init__(self, maker: object) -> None:
        if maker is not MECHANISM:
            raise TypeError(
                "only a mechanism makes a release: call its release(...), or derive one from another release by map, then, "
                "assuming or under."
            )

    def map(self, function: Callable[[T_co], U]) -> "Release[U]":
        """``function`` of the released value, under the same guarantee: post-processing costs nothing.

        ``function`` may use public values and fresh noise. It must not read private data.
        """
        return Release(function(self.value), self.guarantee, MECHANISM)

    def then(self, draw: "Callable[[T_co], Release[U]]") -> "Release[U]":
        """A second release of the same data, which may depend on this one, under the guarantee of both together."""
        later = draw(self.value)
        return Release(later.value, self.guarantee.then(later.guarantee), MECHANISM)

    def assuming(self, *assumptions: str) -> "Release[T_co]":
        """The same release with further assumptions. A release that promises nothing stays as it is."""
        if self.guarantee.promises_nothing:
            return self
        return Release(self.value, self.guarantee.assuming(*assumptions), MECHANISM)

    def under(self, stated: Guarantee) -> "Release[T_co]":
        """The same release under a guarantee that promises no more, such as the one that was charged.

        Raises InvalidGuarantee if ``stated`` promises more than this release does, or protects something else.
        """
        own, rho, stated_rho = self.guarantee, rho_exactly(self.guarantee), rho_exactly(stated)
        stronger = own.epsilon > stated.epsilon or own.delta > stated.delta
        stronger |= stated_rho is not None and (rho is None or rho > stated_rho)
        if stronger or own.protects != stated.protects:
            raise InvalidGuarantee("a release cannot be stated under a guarantee that promises more than its own.")
        return Release(self.value, stated, MECHANISM)

    def __str__(self) -> str:
        return f"release ({self.guarantee})"


def pure(epsilon: float, protects: Neighbours, *, proof: str = "", assumes: frozenset[str] = frozenset()) -> Guarantee:
    """The guarantee of epsilon-differential privacy.

    ``epsilon`` is in nats: no output is more than e^epsilon times as likely for one neighbour as for the other.
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
            f"delta must lie strictly between 0 and 1, not {delta!r}; without a delta use pure(...)."
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
    """epsilon per unit of a named distance between features: metric privacy.

    ``epsilon`` is in nats per unit of that distance.
    """
    return Guarantee(
        epsilon, Neighbours.features(distance), per_distance=True, rounding=rounding, assumes=assumes, proof=proof
    )


def nothing(protects: Neighbours, reason: str, *, proof: str = "") -> Guarantee:
    """No promise, and the reason for it."""
    per_distance = protects.distance is not None and protects.radius is None
    return Guarantee(math.inf, protects, per_distance=per_distance, assumes=frozenset({reason}), proof=proof)


def compose(guarantees: Iterable[Guarantee]) -> Guarantee:
    """All releases together, of the same data: epsilons and deltas add, rounded up. Raises MixedUnits for different units.

    This also holds if a later mechanism was chosen after seeing earlier outputs. ``loss`` keeps the most that is known of the
    sum, so that ``tight`` can start from a composition as well as from its parts.
    """
    return add_up([(guarantee, 1) for guarantee in guarantees])


Counted = Sequence[tuple[Guarantee, int]]  # each guarantee, and how many releases were made under it


def add_up(counted: Counted) -> Guarantee:
    """The composition of each guarantee as many times as counted."""
    protects = same_unit([guarantee for guarantee, _ in counted])
    if len(counted) == 1 and counted[0][1] == 1:
        return counted[0][0]
    return composite(
        [guarantee for guarantee, _ in counted],
        protects,
        epsilon=sum((finite_part(guarantee.epsilon) * times for guarantee, times in counted), Fraction(0)),
        delta=sum((Fraction(guarantee.delta) * times for guarantee, times in counted), Fraction(0)),
        loss=loss_of(counted),
    )


def loss_of(counted: Counted) -> Loss | None:
    """The most that is known of the loss of a composition.

    Pure losses become a rho: (sum of epsilon^2)/2 says more than the sum of the epsilons, which ``epsilon`` keeps anyway.
    Bounded ranges also become a rho, and never a range: if a later mechanism is chosen after an earlier output, that output
    may also decide where the later range lies, so the sum of the ranges does not bound the range of the sum. Losses that hold
    except with a probability add up only if all of them are pure, because no other kind carries an exception.
    """
    known = [(guarantee, loss, times) for guarantee, times in counted if (loss := known_loss(guarantee)) is not None]
    if len(known) < len(counted):
        return None
    if len(known) == 1 and known[0][2] == 1:
        return known[0][1]
    if all(loss.kind is LossKind.GAUSSIAN for _, loss, _ in known):
        squares = sum((Fraction(loss.value) ** 2 * times for _, loss, times in known), Fraction(0))
        return finite_loss(LossKind.GAUSSIAN, sqrt_up(squares))
    if all(exceptions(guarantee) == 0.0 for guarantee, _, _ in known):
        rhos = [(rho_exactly(guarantee), times) for guarantee, _, times in known]
        return finite_loss(LossKind.ZCDP, up(sum((rho * times for rho, times in rhos if rho is not None), Fraction(0))))
    if all(loss.kind is LossKind.PURE for _, loss, _ in known):
        total = sum((Fraction(loss.value) * times for _, loss, times in known), Fraction(0))
        return finite_loss(LossKind.PURE, up(total))
    return None


def same_unit(guarantees: Sequence[Guarantee]) -> Neighbours:
    """What all of them protect. Raises if there is no guarantee, or if two protect different things."""
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


def composite(
    parts: Sequence[Guarantee], protects: Neighbours, *, epsilon: Fraction, delta: Fraction, loss: Loss | None
) -> Guarantee:
    """The guarantee with these totals. It promises nothing if a part does, or if the totals leave nothing to promise."""
    assumes = reduce(frozenset.union, (part.assumes for part in parts))
    total, per_distance = up(epsilon), parts[0].per_distance
    rounding = max(part.rounding for part in parts)
    empty = any(part.promises_nothing for part in parts)
    if not empty and (math.isinf(total) or delta >= 1 or up(delta) >= 1.0):
        assumes |= {"nothing is left to promise: the costs add up to a delta of 1 or an epsilon beyond all numbers"}
        empty = True
    if empty:
        return Guarantee(
            math.inf, protects, per_distance=per_distance, rounding=rounding, assumes=assumes, proof=COMPOSITION_PROOF
        )
    return Guarantee(
        total,
        protects,
        delta=up(delta),
        per_distance=per_distance,
        rounding=rounding,
        assumes=assumes,
        proof=COMPOSITION_PROOF,
        loss=loss if loss is not None and not per_distance and agrees(total, up(delta), loss) else None,
    )


def known_loss(guarantee: Guarantee) -> Loss | None:
    """The stated loss, or epsilon itself if there is no delta."""
    if guarantee.promises_nothing or guarantee.per_distance:
        return None
    if guarantee.loss is None and guarantee.delta == 0.0:
        return Loss(LossKind.PURE, guarantee.epsilon)
    return guarantee.loss


def finite_loss(kind: LossKind, value: float) -> Loss | None:
    """The loss of this value; None if the value is infinite."""
    return Loss(kind, value) if math.isfinite(value) else None


def finite_part(epsilon: float) -> Fraction:
    """epsilon as a fraction, and 0 for infinity, which sums handle separately."""
    return Fraction(0) if math.isinf(epsilon) else Fraction(epsilon)


def rho_exactly(guarantee: Guarantee) -> Fraction | None:
    """The smallest rho of zCDP that follows from what is proved of the loss, without rounding; None if no rho follows.

    A pure or bounded-range loss beside a delta above 0 holds *except with probability delta*. Then so does the rho: add that
    delta up separately (``exceptions``).
    """
    if guarantee.promises_nothing or guarantee.per_distance:
        return None
    bounds = []
    if guarantee.delta == 0.0:
        bounds.append(Fraction(guarantee.epsilon) ** 2 / 2)
    if guarantee.loss is not None:
        value = Fraction(guarantee.loss.value)
        match guarantee.loss.kind:
            case LossKind.PURE | LossKind.GAUSSIAN:
                bounds.append(value**2 / 2)
            case LossKind.BOUNDED_RANGE:
                bounds.append(value**2 / 8)  # not /2: see docs/proofs/composition
            case LossKind.ZCDP:
                bounds.append(value)
    return min(bounds, default=None)


def exceptions(guarantee: Guarantee) -> float:
    """The probability outside of which the stated loss holds: delta beside a pure or bounded-range loss, else 0.

    Beside a zCDP or Gaussian loss delta only says where the loss was converted; the loss itself always holds.
    """
    loss = guarantee.loss
    return guarantee.delta if loss is not None and loss.kind in (LossKind.PURE, LossKind.BOUNDED_RANGE) else 0.0


def agrees(epsilon: float, delta: float, loss: Loss) -> bool:
    """Whether a loss can be true beside (epsilon, delta), and neither makes the other pointless.

    Without a delta a pure loss *is* epsilon, and a range, which contains 0, is at least epsilon. With a delta both hold except
    with that probability, and are at most epsilon. A rho or a Gaussian loss always agrees.
    """
    if loss.kind not in (LossKind.PURE, LossKind.BOUNDED_RANGE):
        return True
    if math.isclose(epsilon, loss.value, rel_tol=1e-12):  # each was rounded up by itself
        return True
    if delta > 0.0:
        return loss.value <= epsilon
    return loss.kind is LossKind.BOUNDED_RANGE and epsilon <= loss.value


def _real(value: object) -> float:
    """``value`` as a plain float, also if it is infinite; NaN if it is not a number."""
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
        raise InvalidGuarantee(f"`assumes` must be a collection of strings, not {value!r}.")
    if not all(isinstance(text, str) for text in value):
        raise InvalidGuarantee("`assumes` must contain strings only.")
    return frozenset(value)
