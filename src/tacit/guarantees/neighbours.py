"""What a guarantee hides: the difference between two neighbouring inputs."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tacit.checks import keep, member, positive, whole
from tacit.errors import InvalidGuarantee, InvalidParameter
from tacit.guarantees.arithmetic import exactly


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
