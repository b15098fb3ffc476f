"""The messages of private slates, which leave a curator of ratings.

curator -> user, server  Slate        items, the route that drew them, and the guarantee; no score and no size of the data
curator -> server        Popularity   noisy counts of all items, once; any number of slates from them cost nothing more
curator -> server        Similarity   a noisy kernel of all items, once; slates from it are free as well
"""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Annotated, Any, ClassVar, Protocol, Self, TypeAlias

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from tacit.checks import keep
from tacit.errors import InvalidMessage
from tacit.guarantees import Release
from tacit.messages.codec import (
    ArrayMessage,
    Form,
    Message,
    Promise,
    ReleaseOnly,
    Wire,
    checked_message,
    make,
    value_of,
)
from tacit.messages.items import Item, Items, checked_items

__all__ = ["Grid", "Item", "Popularity", "Similarity", "Slate"]

MOST_KERNEL_ITEMS = 1_000  # half a million numbers: a ledger keeps no longer release
_MOST_STEPS = 2**53  # clipping after the noise is free
_MOST_PART = 2**1100  # of a fraction: 1/3 as a float, over a number of steps, has parts beyond 2^62
_LEAST_STEP, _MOST_STEP = Fraction(1, 2**960), Fraction(2**960)  # so that every number of steps is a float


@dataclass(frozen=True, slots=True)
class Slate(Message, metaclass=ReleaseOnly):
    """The items finally offered. It does not show how near any other item was.

    A slate that was drawn from private data lists its items in the order of the catalogue: an order of merit would be one more
    release.
    """

    form: ClassVar[Form] = Form("a slate", version=1)

    items: Items = field(repr=False)
    route: str
    guarantee: Promise

    def _check(self) -> None:
        """Raises InvalidMessage if an item stands twice, or the route is not a valid name."""
        keep(self, items=checked_items(self.items))
        words = self.route.split("-")
        if len(self.route) > 40 or not all(word.isascii() and word.isalnum() and word.islower() for word in words):
            raise InvalidMessage("a route is named in lower case, with hyphens, in at most 40 characters.")

    def __len__(self) -> int:
        return len(self.items)

    @classmethod
    def from_release(cls, release: Release[NDArray[np.int64]], ids: NDArray[Any], route: str) -> "Slate":
        """The message of a release: indices into the list of ids."""
        indices = np.sort(np.asarray(value_of(release)))
        return make(cls, tuple(ids[indices].tolist()), route, release.guarantee)

    @classmethod
    def from_message(cls, released: "Popularity | Similarity", chosen: NDArray[np.int64], route: str) -> "Slate":
        """A slate computed from an earlier release, in the order of ``chosen``: it costs nothing more."""
        items = checked_message(released, Popularity, Similarity).items
        return make(cls, tuple(items[index] for index in chosen.tolist()), route, released.guarantee)

    def require(self, *, k: int) -> "Slate":
        """This slate, if it has ``k`` items."""
        if len(self.items) != k:
            raise InvalidMessage(f"expected a slate of {k} items.")
        return self


class Grid(Protocol):
    """The release of a mechanism: whole numbers, each worth ``step``."""

    @property
    def steps(self) -> NDArray[np.int64]:
        """The released numbers, in whole grid steps."""

    @property
    def step(self) -> Fraction:
        """The distance of two points of the grid."""


class _Parts(Struct, forbid_unknown_fields=True):
    numerator: int  # msgspec bounds 64-bit numbers only: `_fraction` does the rest
    denominator: int


def _fraction(sent: _Parts) -> Fraction:
    parts = sent.numerator, sent.denominator
    if not all(1 <= part <= _MOST_PART for part in parts):
        raise InvalidMessage("expected two whole numbers from 1 to 2^1100 at $.step.")
    step = Fraction(*parts)
    if (step.numerator, step.denominator) != parts:
        raise InvalidMessage("expected a fraction in lowest terms at $.step.")
    return step


def _triangle(sent: list[int]) -> NDArray[np.int64]:
    """The symmetric matrix whose upper triangle is ``sent``, row by row."""
    count = int((8 * len(sent) + 1) ** 0.5) // 2
    if len(sent) != count * (count + 1) // 2:
        raise InvalidMessage("expected the upper triangle of a square matrix at $.steps.")
    upper = np.zeros((count, count), dtype=np.int64)
    upper[np.triu_indices(count)] = sent
    return np.asarray(upper + np.triu(upper, 1).T)


_int64 = partial(np.array, dtype=np.int64)
_Sent: TypeAlias = list[Annotated[int, Meta(ge=-_MOST_STEPS, le=_MOST_STEPS)]]
_SentTriangle: TypeAlias = Annotated[_Sent, Meta(max_length=MOST_KERNEL_ITEMS * (MOST_KERNEL_ITEMS + 1) // 2)]
Step: TypeAlias = Annotated[
    Fraction, Wire(_Parts, _fraction, lambda step: {"numerator": step.numerator, "denominator": step.denominator})
]


class _Counts(ArrayMessage):
    """The numbers of a release beside a public list of items."""

    __slots__ = ()
    items: Items

    def __len__(self) -> int:
        return len(self.items)

    @classmethod
    def from_release(cls, release: Release[Grid], ids: NDArray[Any]) -> Self:
        """The message of a release."""
        grid = value_of(release)
        steps = np.clip(grid.steps, -_MOST_STEPS, _MOST_STEPS)
        return make(cls, tuple(ids.tolist()), steps, grid.step, release.guarantee)


@dataclass(frozen=True, slots=True, eq=False)
class Popularity(_Counts):
    """Noisy numbers of likes, one for each item of a public list, liked or not. They may be negative or fractional."""

    form: ClassVar[Form] = Form("popularity", version=1)

    items: Items = field(repr=False)
    steps: Annotated[NDArray[np.int64], Wire(_Sent, _int64, np.ndarray.tolist, {"type": "array"})] = field(repr=False)
    step: Step  # the distance of two points of the grid, in likes
    guarantee: Promise

    def _check(self) -> None:
        """Raises InvalidMessage unless there is one number for each item."""
        keep(self, items=checked_items(self.items, least=1))
        keep(self, steps=_frozen(self.steps, (len(self.items),)), step=_checked_step(self.step))

    def counts(self) -> NDArray[np.float64]:
        """The noisy number of likes of each item, in the order of ``items``; may be negative."""
        return np.asarray(self.steps * float(self.step), dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Similarity(_Counts):
    """A noisy kernel: the sum over users of the outer products of their rows. Symmetric; some eigenvalues may be negative.

    In JSON each pair stands once: the upper triangle, row by row.
    """

    form: ClassVar[Form] = Form("similarity", version=1)

    items: Items = field(repr=False)
    steps: Annotated[
        NDArray[np.int64],
        Wire(_SentTriangle, _triangle, lambda steps: steps[np.triu_indices(len(steps))].tolist(), {"type": "array"}),
    ] = field(repr=False)
    step: Step  # the distance of two points of the grid
    guarantee: Promise

    def _check(self) -> None:
        """Raises InvalidMessage unless the matrix is symmetric and has one row for each item."""
        keep(self, items=checked_items(self.items, least=1, most=MOST_KERNEL_ITEMS))
        count = len(self.items)
        keep(self, steps=_frozen(self.steps, (count, count)), step=_checked_step(self.step))
        if not np.array_equal(self.steps, self.steps.T):
            raise InvalidMessage("a kernel must be symmetric.")

    def kernel(self) -> NDArray[np.float64]:
        """The noisy kernel, items x items, in the order of ``items``."""
        return np.asarray(self.steps * float(self.step), dtype=np.float64)


def _frozen(steps: NDArray[np.int64], shape: tuple[int, ...]) -> NDArray[np.int64]:
    if steps.dtype != np.int64 or steps.shape != shape:
        raise InvalidMessage(f"expected whole numbers in the shape {shape} at $.steps.")
    if np.abs(steps.astype(np.float64)).max() > _MOST_STEPS:
        raise InvalidMessage("a number at $.steps is beyond 2^53.")
    copy = steps.copy()
    copy.setflags(write=False)
    return copy


def _checked_step(step: Fraction) -> Fraction:
    if not _LEAST_STEP <= step <= _MOST_STEP:
        raise InvalidMessage("a step must be a fraction from 2^-960 to 2^960.")
    if max(step.numerator, step.denominator) > _MOST_PART:
        raise InvalidMessage("both parts of a step must be at most 2^1100.")
    return step
