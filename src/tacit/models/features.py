"""Features: the numeric vector that a device computes from a profile, in a public domain that bounds every distance.

The domain is what turns a metric guarantee into a number: outside it the stated distances would be false, so features outside
are refused before any noise is drawn, never repaired.
"""

from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.checks import finite, keep
from tacit.errors import InvalidFeatures, InvalidParameter

LIKED = 4.0  # a rating from here on is a like
_TOLERANCE = 1e-6  # of a block's sum
_USERS = 4096  # whose ratings are counted in one go: memory does not grow with the rows


class FeatureSpace(Protocol):
    """What features are made of and where they lie. All of it is public."""

    @property
    def kind(self) -> str:
        """The name by which a stored space is read again."""

    @property
    def dimension(self) -> int:
        """How many features a user has."""

    @property
    def low(self) -> float:
        """The least value of a coordinate."""

    @property
    def high(self) -> float:
        """The largest value of a coordinate."""

    @property
    def diameter(self) -> float:
        """The largest L1 distance between two vectors of the domain."""

    def of(self, items: NDArray[np.integer[Any]], values: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """The features of one user who rated these item codes with these values."""

    def of_many(
        self, starts: NDArray[np.integer[Any]], items: NDArray[np.integer[Any]], values: NDArray[np.floating[Any]]
    ) -> NDArray[np.float64]:
        """The features of many users, one row each; user u holds the ratings from starts[u] to starts[u + 1]."""

    def check(self, features: ArrayLike) -> NDArray[np.float64]:
        """``features`` as one row of floats, if they lie in the domain; else InvalidFeatures, which shows no value."""

    def inside(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        """Any rows of numbers, brought into the domain: for a server that guesses around a signal."""

    def tensors(self) -> dict[str, NDArray[Any]]:
        """What has to be stored to build the same space again."""


def version_of(space: FeatureSpace) -> str:
    """A digest of all that features are made from: public, so that it tells nothing about a profile.

    Features from other genres or refitted factors are another release, with a charge of their own.
    """
    content = sha256(f"{space.kind}\n{space.dimension}\n".encode())
    for name, tensor in sorted(space.tensors().items()):
        table = np.ascontiguousarray(tensor)
        table = table.astype(table.dtype.newbyteorder("<"))  # the same on every machine
        content.update(f"{name}\n{table.dtype.str}\n{table.shape}\n".encode() + table.tobytes())
    return content.hexdigest()[:32]


def unit_rows(flags: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The genres of each item as a row of length 1: how many genres an item has shall not count as its quality."""
    table = flags.astype(np.float64)
    length = np.sqrt(table.sum(axis=1, keepdims=True))
    return np.asarray(table / np.where(length > 0.0, length, 1.0), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class GenreProfile:
    """How a user's liked films (rating >= 4) and disliked films are spread over genres: two blocks, each summing to 1.

    A film with g genres adds 1 to each of g counts. A user without likes has a first block of zeros.
    """

    kind: ClassVar[str] = "genre-profile/1"
    low: ClassVar[float] = 0.0
    high: ClassVar[float] = 1.0
    diameter: ClassVar[float] = 4.0  # two simplices, each of L1 diameter 2
    flags: NDArray[np.bool_]  # items x genres
    liked_from: float = LIKED

    def __post_init__(self) -> None:
        flags = np.array(self.flags, dtype=np.bool_)
        if flags.ndim != 2 or not flags.shape[1]:
            raise InvalidParameter("flags must be a table: one row for each item, one column for each genre.")
        flags.flags.writeable = False
        keep(self, flags=flags, liked_from=finite("liked_from", self.liked_from))

    @property
    def genres(self) -> int:
        """How many genres there are."""
        return int(self.flags.shape[1])

    @property
    def dimension(self) -> int:
        """How many features a user has: two for each genre."""
        return 2 * self.genres

    @cached_property
    def most_genres(self) -> int:
        """The largest number of genres of one item."""
        return int(self.flags.sum(axis=1).max(initial=0))

    def counts(
        self, starts: NDArray[np.integer[Any]], items: NDArray[np.integer[Any]], values: NDArray[np.floating[Any]]
    ) -> NDArray[np.float64]:
        """Genre counts: users x (genres of liked items, genres of disliked items)."""
        liked = np.asarray(values) >= self.liked_from
        shape = (len(starts) - 1, self.flags.shape[0])
        table = self.flags.astype(np.float64)
        blocks = [
            sparse.csr_array((mask.astype(np.float64), items, starts), shape=shape) @ table for mask in (liked, ~liked)
        ]
        return np.concatenate(blocks, axis=1)

    def of_many(
        self, starts: NDArray[np.integer[Any]], items: NDArray[np.integer[Any]], values: NDArray[np.floating[Any]]
    ) -> NDArray[np.float64]:
        """The features of many users, a row each: ratings in stars by item codes, of user u from ``starts[u]`` to
        ``starts[u + 1]``.
        """
        features = np.empty((len(starts) - 1, self.dimension))
        for first in range(0, len(features), _USERS):
            part = starts[first : first + _USERS + 1]
            rows = slice(int(part[0]), int(part[-1]))
            counts = self.counts(part - part[0], items[rows], values[rows]).reshape(-1, 2, self.genres)
            totals = counts.sum(axis=2, keepdims=True)
            shares = counts / np.where(totals > 0, totals, 1.0)
            features[first : first + _USERS] = shares.reshape(-1, self.dimension)
        return features

    def of(self, items: NDArray[np.integer[Any]], values: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """The features of one user: her ratings in stars, by item codes."""
        row: NDArray[np.float64] = self.of_many(np.array([0, len(items)]), np.asarray(items), np.asarray(values))[0]
        return row

    def check(self, features: ArrayLike) -> NDArray[np.float64]:
        """The features as floats, if they lie in their public domain; else InvalidFeatures, which shows none of them."""
        row = checked_row(features, self.dimension)
        sums = row.reshape(2, self.genres).sum(axis=1)
        empty, full = np.abs(sums) <= _TOLERANCE, np.abs(sums - 1.0) <= _TOLERANCE
        if (row < 0.0).any() or (row > 1.0).any() or not (empty | full).all():
            raise InvalidFeatures(
                f"each of the two blocks of {self.genres} features must have shares of at least 0 that sum to 1 (or be all 0). "
                "Build features from a profile; they are not repaired, because a repair would move distances."
            )
        return row

    def inside(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        """The nearest rows that features may be: what a server makes of a noisy signal."""
        return scaled_blocks(rows)

    def tensors(self) -> dict[str, NDArray[Any]]:
        """The arrays of which ``from_tensors`` makes the same again, by name."""
        return {"flags": self.flags.astype(np.uint8), "liked_from": np.array([self.liked_from])}

    @classmethod
    def from_tensors(cls, tensors: dict[str, NDArray[Any]]) -> "GenreProfile":
        """The same again, from the arrays of a store; InvalidModel where they do not fit."""
        return cls(tensors["flags"].astype(np.bool_), float(tensors["liked_from"][0]))


def scaled_blocks(values: NDArray[Any], blocks: int = 2) -> NDArray[np.float64]:
    """Rows cut to [0, 1] and scaled so that each block sums to 1; a block of zeros becomes uniform."""
    cut = np.clip(np.asarray(values, dtype=np.float64), 0.0, 1.0).reshape(len(values), blocks, -1)
    sums = cut.sum(axis=2, keepdims=True)
    scaled = np.where(sums > 0.0, cut / np.where(sums > 0.0, sums, 1.0), 1.0 / cut.shape[2])
    return scaled.reshape(len(values), -1)


def checked_row(features: ArrayLike, dimension: int) -> NDArray[np.float64]:
    """``features`` as ``dimension`` finite floats; the error shows none of them."""
    try:
        row = np.asarray(features, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidFeatures("features must be real numbers.") from None
    if row.shape != (dimension,):
        raise InvalidFeatures(
            f"expected {dimension} features in one row. Rebuild them with this server's feature list."
        )
    if not np.isfinite(row).all():
        raise InvalidFeatures("every feature must be a finite number.")
    return row


def moved_by_one_rating(count: float, genres: int) -> float:
    """The most L1 distance that adding a film with ``genres`` genres moves a block that holds ``count`` genre counts.

    2g/(N + g), attained where the film shares no genre with the block; 1 where the block was empty. Removing the film again
    is the same distance, with N counted without it.
    """
    return 1.0 if count == 0 else 2.0 * genres / (count + genres)
