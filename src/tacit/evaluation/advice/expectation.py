"""What may be expected: the closest evaluation, how far it is from the situation, and what it showed there."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from tacit.evaluation.advice.recipe import Recipe
from tacit.evaluation.advice.situation import Situation
from tacit.evaluation.curve import Curve, Level, Line, Point

_FAR = 2.0  # times: less is no distance worth a word
_BEYOND = 3.0  # times below the smallest epsilon that was tried: nothing is known there
_LITTLE, _SOME, _MOST = 0.05, 1.0 / 3.0, 2.0 / 3.0  # of the way from learning nothing to promising nothing


class Worth(IntEnum):
    """How far the private figure is on the way from learning nothing to promising nothing."""

    NOTHING = 0  # less than a twentieth of it, within two standard errors of it, or not tried at so small an epsilon
    LITTLE = 1
    SOME = 2
    MOST = 3


@dataclass(frozen=True, slots=True)
class Expectation:
    """``private`` is the best figure at no more than ``read_at``, the epsilon that so many users make of the situation's.

    ``share`` is how far it is on the way from learning nothing (0) to promising nothing (1); ``notes`` say how far all that is from
    the situation.
    """

    curve: Curve
    method: str
    private: Point
    read_at: float
    share: float | None
    worth: Worth
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        def level(one: Level) -> dict[str, Any]:
            return {"method": one.method, "value": one.value, "stderr": one.stderr}

        private = {"method": self.method, "value": self.private.value, "stderr": self.private.stderr}
        return {
            "world": self.curve.world, "users": self.curve.users, "items": self.curve.items, "entities": self.curve.entities,
            "metric": self.curve.metric, "unit": self.curve.unit, "better": str(self.curve.better),
            "measured_in": self.curve.measured_in, "read_at": self.read_at, "measured_at": self.private.epsilon,
            "private": private, "not private": level(self.curve.plain), "learns nothing": level(self.curve.nothing),
            "share": self.share, "worth": self.worth.name.lower(), "notes": list(self.notes),
        }  # fmt: skip


def expect(system: str, at: Situation, recipe: Recipe, curves: Iterable[Curve]) -> Expectation | None:
    """From the closest curve of the same system that has the recipe's method; None where there is none."""
    found = [(curve, line) for curve in curves if curve.system == system and (line := _line(curve, recipe)) is not None]
    if not found or not recipe.is_measured:
        return None
    curve, line = min(found, key=lambda one: _distance(one[0], one[1], at, recipe))
    read_at = _read_at(curve, recipe)
    private = _best(curve, line.within(read_at))
    share = curve.share(private.value)
    below = read_at * _BEYOND < min(point.epsilon for point in line.points)
    worth = _worth(share) if curve.stands_out(private) and not below else Worth.NOTHING
    return Expectation(
        curve, line.method, private, read_at, share, worth, tuple(_notes(curve, line, private, at, recipe, read_at))
    )


def _line(curve: Curve, recipe: Recipe) -> Line | None:
    if recipe.line is None:
        return curve.default
    return next((one for one in curve.lines if recipe.line in one.method), None)


def _distance(curve: Curve, line: Line, at: Situation, recipe: Recipe) -> float:
    """The sum of log ratios, of what is known on both sides."""
    pairs = [(recipe.users, curve.users), (at.items, curve.items), (at.entities, curve.entities)]
    far = sum(abs(math.log(ours / theirs)) for ours, theirs in pairs if ours and theirs)
    return far + abs(math.log(recipe.read_at / line.at(recipe.read_at).epsilon))


def _read_at(curve: Curve, recipe: Recipe) -> float:
    """Noise that hides in sums over users: half the users are as bad as half the epsilon. More than were tried are not counted."""
    if not recipe.of_sums or curve.users is None:
        return recipe.read_at
    return recipe.read_at * min(1.0, recipe.users / curve.users)


def _best(curve: Curve, within: Iterable[Point]) -> Point:
    """Whoever may spend much may spend less: where less did better, that is what can be had."""
    return max(within, key=lambda point: (curve.gain(point), point.epsilon))


def _worth(share: float | None) -> Worth:
    if share is None or share < _LITTLE:
        return Worth.NOTHING
    return Worth.LITTLE if share < _SOME else Worth.SOME if share < _MOST else Worth.MOST


def _notes(curve: Curve, line: Line, private: Point, at: Situation, recipe: Recipe, read_at: float) -> Iterator[str]:
    least, most = (end(point.epsilon for point in line.points) for end in (min, max))
    if curve.gain(private) > 0.0 and not curve.stands_out(private):
        yield "The gain is within two standard errors, if both figures are taken as independent: it may be none."
    if recipe.of_sums and curve.users is None:
        yield "The evaluation does not say how many users it had, and the noise hides among them: take the figure as a hint."
    yield from _apart("users", recipe.users, curve.users, fewer="expect less", more="more than that is not counted on")
    yield from _apart("items", at.items, curve.items, fewer="so few were not tried", more="so many were not tried")
    yield from _apart(
        "organisations", at.entities, curve.entities, fewer="expect another gain", more="expect another gain"
    )
    if read_at < recipe.read_at:
        yield (
            f"So few users at epsilon {recipe.read_at:.3g} are about as good as the evaluated ones at {read_at:.3g}: the figure is "
            "that of no larger an epsilon, where one was tried."
        )
    if read_at < least * (1.0 - 1e-9):
        yield f"The smallest epsilon that was tried is {least:.3g}, {least / read_at:.3g} times as large: expect less than that."
    if read_at > _FAR * most:
        yield f"The largest epsilon that was tried is {most:.3g}; {read_at:.3g} was not."


def _apart(what: str, ours: int | None, theirs: int | None, *, fewer: str, more: str) -> Iterator[str]:
    if ours is None or theirs is None:
        return
    ratio = ours / theirs
    if ratio < 1.0 / _FAR:
        yield f"Your {ours:,} {what} are {1 / ratio:,.3g} times fewer than the evaluated {theirs:,}: {fewer}."
    elif ratio > _FAR:
        yield f"Your {ours:,} {what} are {ratio:,.3g} times as many as the evaluated {theirs:,}: {more}."
