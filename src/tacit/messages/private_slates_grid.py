"""What is released once, for any number of slates: noisy counts, or a noisy kernel, as whole numbers of grid steps."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.checks import keep
from tacit.errors import InvalidMessage
from tacit.guarantees import Guarantee, Release
from tacit.messages import fields
from tacit.messages.private_slates_parts import MOST_ITEMS, Item, checked_guarantee, checked_items, read_guarantee

VERSION = 1
MOST_KERNEL_ITEMS = 1_000  # half a million numbers: what a ledger keeps of one release
_MOST_STEPS = 2**53  # cutting after the noise is free
_MOST_PART = 2**1100  # a float over a number of steps has parts up to there: 1/3 is one, and its parts are beyond 2^62
_LEAST_STEP, _MOST_STEP = Fraction(1, 2**960), Fraction(2**960)  # so that no number of steps is beyond all floats
_NAMES = ("version", "items", "steps", "step", "guarantee")


class Grid(Protocol):
    """Whole numbers, each worth ``step``."""

    @property
    def steps(self) -> NDArray[np.int64]:
        """The released numbers, in whole grid steps."""

    @property
    def step(self) -> Fraction:
        """The distance of two points of the grid."""


@dataclass(frozen=True, slots=True, eq=False)
class Popularity:
    """Noisy numbers of likes, one for each item of a public list, liked or not. They may be negative, and are no whole numbers."""

    items: tuple[Item, ...] = field(repr=False)
    steps: NDArray[np.int64] = field(repr=False)
    step: Fraction  # the distance of two points of the grid, in likes
    guarantee: Guarantee

    def __post_init__(self) -> None:
        keep(self, items=checked_items(self.items, least=1))
        keep(self, steps=_frozen(self.steps, (len(self.items),)), step=_checked_step(self.step))
        checked_guarantee(self.guarantee)

    def __len__(self) -> int:
        return len(self.items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Popularity) and _same(self, other)

    __hash__ = None  # type: ignore[assignment]

    def counts(self) -> NDArray[np.float64]:
        """The noisy number of likes of each item, in the order of ``items``; may be negative."""
        return np.asarray(self.steps * float(self.step), dtype=np.float64)

    @classmethod
    def from_release(cls, release: Release[Grid], ids: NDArray[Any]) -> "Popularity":
        """The message of a release, and of nothing else."""
        return cls(tuple(ids.tolist()), _cut(release.value.steps), release.value.step, release.guarantee)

    def to_json(self) -> dict[str, Any]:
        """The counts as values for JSON."""
        return _to_json(self, self.steps)

    @classmethod
    def from_json(cls, value: object) -> "Popularity":
        """The counts of such values, checked; InvalidMessage for anything else."""
        items, steps, step, guarantee = _from_json(value, "popularity", MOST_ITEMS)
        if len(steps) != len(items):
            raise InvalidMessage(f"expected {len(items)} numbers at $.steps.")
        return cls(items, steps, step, guarantee)


@dataclass(frozen=True, slots=True, eq=False)
class Similarity:
    """A noisy kernel: the sum over users of the outer products of their rows. Symmetric; some eigenvalues may be negative."""

    items: tuple[Item, ...] = field(repr=False)
    steps: NDArray[np.int64] = field(repr=False)
    step: Fraction  # the distance of two points of the grid
    guarantee: Guarantee

    def __post_init__(self) -> None:
        keep(self, items=checked_items(self.items, least=1, most=MOST_KERNEL_ITEMS))
        count = len(self.items)
        keep(self, steps=_frozen(self.steps, (count, count)), step=_checked_step(self.step))
        if not np.array_equal(self.steps, self.steps.T):
            raise InvalidMessage("a kernel must be symmetric.")
        checked_guarantee(self.guarantee)

    def __len__(self) -> int:
        return len(self.items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Similarity) and _same(self, other)

    __hash__ = None  # type: ignore[assignment]

    def kernel(self) -> NDArray[np.float64]:
        """The noisy kernel, items x items, in the order of ``items``."""
        return np.asarray(self.steps * float(self.step), dtype=np.float64)

    @classmethod
    def from_release(cls, release: Release[Grid], ids: NDArray[Any]) -> "Similarity":
        """The message of a release, and of nothing else."""
        return cls(tuple(ids.tolist()), _cut(release.value.steps), release.value.step, release.guarantee)

    def to_json(self) -> dict[str, Any]:
        """Each pair once: the upper triangle, row by row."""
        return _to_json(self, self.steps[np.triu_indices(len(self.items))])

    @classmethod
    def from_json(cls, value: object) -> "Similarity":
        """The kernel of such values, checked; InvalidMessage for anything else."""
        items, steps, step, guarantee = _from_json(value, "similarity", MOST_KERNEL_ITEMS)
        count = len(items)
        if len(steps) != count * (count + 1) // 2:
            raise InvalidMessage(f"expected {count * (count + 1) // 2} numbers at $.steps.")
        upper = np.zeros((count, count), dtype=np.int64)
        upper[np.triu_indices(count)] = steps
        return cls(items, upper + np.triu(upper, 1).T, step, guarantee)


def _to_json(message: Popularity | Similarity, steps: NDArray[np.int64]) -> dict[str, Any]:
    return {
        "version": VERSION,
        "items": list(message.items),
        "steps": steps.tolist(),
        "step": {"numerator": message.step.numerator, "denominator": message.step.denominator},
        "guarantee": message.guarantee.to_json(),
    }


def _from_json(value: object, what: str, most: int) -> tuple[tuple[Item, ...], NDArray[np.int64], Fraction, Guarantee]:
    found = fields.members(value, what, _NAMES)
    fields.whole(found["version"], "$.version", least=VERSION, most=VERSION)
    items = checked_items(fields.listed(found["items"], "$.items"), least=1, most=most)
    numbers = fields.listed(found["steps"], "$.steps")
    for number in numbers:
        fields.whole(number, "$.steps", least=-_MOST_STEPS, most=_MOST_STEPS)
    worth = fields.members(found["step"], "a step", ("numerator", "denominator"))
    parts = worth["numerator"], worth["denominator"]
    if any(type(part) is not int or not 1 <= part <= _MOST_PART for part in parts):
        raise InvalidMessage("expected two whole numbers from 1 to 2^1100 at $.step.")
    step = Fraction(*parts)
    if (step.numerator, step.denominator) != parts:
        raise InvalidMessage("expected a fraction in lowest terms at $.step.")
    return items, np.array(numbers, dtype=np.int64), step, read_guarantee(found["guarantee"])


def _cut(steps: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.clip(steps, -_MOST_STEPS, _MOST_STEPS)


def _frozen(steps: object, shape: tuple[int, ...]) -> NDArray[np.int64]:
    if not isinstance(steps, np.ndarray) or steps.dtype != np.int64 or steps.shape != shape:
        raise InvalidMessage(f"expected whole numbers in the shape {shape} at $.steps.")
    if np.abs(steps.astype(np.float64)).max() > _MOST_STEPS:
        raise InvalidMessage("a number at $.steps is beyond 2^53.")
    copy = steps.copy()
    copy.setflags(write=False)
    return copy


def _checked_step(step: object) -> Fraction:
    if not isinstance(step, Fraction) or not _LEAST_STEP <= step <= _MOST_STEP:
        raise InvalidMessage("a step must be a fraction from 2^-960 to 2^960.")
    if max(step.numerator, step.denominator) > _MOST_PART:
        raise InvalidMessage("both parts of a step must be at most 2^1100.")
    return step


def _same(one: Popularity | Similarity, other: Popularity | Similarity) -> bool:
    return (one.items, one.step, one.guarantee) == (other.items, other.step, other.guarantee) and np.array_equal(
        one.steps, other.steps
    )
