"""Privacy against utility: how good a system is in one world, by epsilon, between what learns nothing and what promises nothing.

Every system's figures come in this one shape, so that a report can draw them side by side, and advice can look for the closest.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

ERRORS = 2.0  # by so many standard errors a gain has to stand out
_SAME = 1e-9  # of an epsilon: what rounding may make of it
NATS, NATS_PER_DISTANCE, NATS_EACH = "epsilon", "epsilon per unit of L1 distance", "epsilon of one impression"


class Better(StrEnum):
    HIGHER = "higher"
    LOWER = "lower"


def share_of_way(value: float, nothing: float, plain: float, better: Better) -> float | None:
    """How far a value is on the way from one figure (0) to a better one (1); None where the other is no better."""
    way = plain - nothing if better is Better.HIGHER else nothing - plain
    return (value - nothing) / (plain - nothing) if way > 0.0 else None


class Role(StrEnum):
    """What a line stands for. A published mode is drawn at the epsilon that it claims, which may not be proved."""

    DEFAULT = "default"
    OTHER = "other"
    PUBLISHED = "published"


@dataclass(frozen=True, slots=True)
class Point:
    """A figure at an epsilon, in nats (or nats per unit of distance: the curve says). ``stderr`` is None where none is known."""

    epsilon: float
    value: float
    stderr: float | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One private method: its points, by epsilon."""

    method: str
    role: Role
    points: tuple[Point, ...]

    def at(self, epsilon: float) -> Point:
        """The point whose epsilon is closest, by ratio."""
        return min(self.points, key=lambda point: abs(math.log(point.epsilon / epsilon)))

    def within(self, epsilon: float) -> tuple[Point, ...]:
        """The points that spend no more than this; the smallest one where all spend more."""
        found = tuple(point for point in self.points if point.epsilon <= epsilon * (1.0 + _SAME))
        return found or (min(self.points, key=lambda point: point.epsilon),)


@dataclass(frozen=True, slots=True)
class Level:
    """A method that has no epsilon: it promises nothing, or it uses nobody's data."""

    method: str
    value: float
    stderr: float | None = None


@dataclass(frozen=True, slots=True)
class Curve:
    """``users`` and ``items``: how large the world is, None where that has no meaning. ``nothing`` learns nothing about the user
    whom it serves from others or from her; ``plain`` may use everything and promises nothing."""

    system: str
    world: str
    metric: str
    unit: str
    better: Better
    lines: tuple[Line, ...]  # the first is tacit's default
    plain: Level
    nothing: Level
    told_at: float  # the epsilon that a table tells, where it tells one: a usual one for this system
    users: int | None = None
    items: int | None = None
    entities: int | None = None
    measured_in: str = NATS

    @property
    def default(self) -> Line:
        """tacit's default mode."""
        return self.lines[0]

    @property
    def told(self) -> Point:
        """The default at the epsilon that a table tells, or the closest one that was tried."""
        return self.default.at(self.told_at)

    def share(self, value: float) -> float | None:
        """How far a value is on the way from ``nothing`` (0) to ``plain`` (1); None where ``plain`` is no better."""
        return share_of_way(value, self.nothing.value, self.plain.value, self.better)

    def gain(self, point: Point) -> float:
        """By how much it is better than ``nothing``, in the unit of the metric; below 0 where it is worse."""
        return (point.value - self.nothing.value) * (1.0 if self.better is Better.HIGHER else -1.0)

    def stands_out(self, point: Point) -> bool:
        """Whether the gain is more than two standard errors, of both figures as if they were independent.

        They are of the same trials, so that this asks for more than need be.
        """
        return self.gain(point) > ERRORS * math.hypot(point.stderr or 0.0, self.nothing.stderr or 0.0)

    def to_json(self) -> dict[str, Any]:
        """The value as JSON; `from_json` reads it."""

        def point(one: Point) -> dict[str, Any]:
            return {"epsilon": one.epsilon, "value": one.value, "stderr": one.stderr}

        def level(one: Level) -> dict[str, Any]:
            return {"method": one.method, "value": one.value, "stderr": one.stderr}

        return {
            "system": self.system, "world": self.world, "users": self.users, "items": self.items, "entities": self.entities,
            "metric": self.metric, "unit": self.unit, "better": str(self.better), "measured_in": self.measured_in,
            "lines": [
                {"method": one.method, "role": str(one.role), "points": [point(each) for each in one.points]}
                for one in self.lines
            ],
            "plain": level(self.plain), "nothing": level(self.nothing), "told_at": self.told_at,
        }  # fmt: skip

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Curve":
        """What `to_json` wrote."""
        lines = tuple(
            Line(one["method"], Role(one["role"]), tuple(Point(**each) for each in one["points"])) for one in value["lines"]
        )  # fmt: skip
        return cls(
            value["system"], value["world"], value["metric"], value["unit"], Better(value["better"]), lines,
            Level(**value["plain"]), Level(**value["nothing"]), value["told_at"], value["users"], value["items"], value["entities"],
            value["measured_in"],
        )  # fmt: skip
