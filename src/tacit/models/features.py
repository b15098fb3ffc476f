"""Features: the numeric vector that a device computes from a profile, in a public domain that bounds every distance.

The domain turns a metric guarantee into a number: for features outside it the stated distances would be false. Such
features raise InvalidFeatures before any noise is drawn. They are never repaired.

There are two feature spaces. `GenreProfile` counts liked and disliked genres. `FoldedTaste` fits the user's own
factors to their ratings, given the public factors of the items; `grouped_ridge` solves the small regressions for
that, for many users at once.
"""

from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.checks import finite, keep
from tacit.errors import InvalidFeatures, InvalidModel, InvalidParameter
from tacit.models.scorers import checked_factors

LIKED = 4.0  # a rating from here on is a like
_TOLERANCE = 1e-6  # of a block's sum
_USERS = 4096  # counted at a time, so that memory does not grow with the rows
_VALUES = 1 << 22  # numbers of the normal equations in memory at once (32 MB)


class FeatureSpace(Protocol):
    """How features are computed and where they lie. All of it is public."""

    @property
    def kind(self) -> str:
        """The name of this kind of space in a store."""

    @property
    def dimension(self) -> int:
        """How many features a user has."""

    @property
    def low(self) -> float:
        """The smallest value of a coordinate."""

    @property
    def high(self) -> float:
        """The largest value of a coordinate."""

    @property
    def diameter(self) -> float:
        """The largest L1 distance between two vectors of the domain."""

    def of(self, items: NDArray[np.integer[Any]], values: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """The features of one user who rated these item codes with these values."""
        row: NDArray[np.float64] = self.of_many(np.array([0, len(items)]), np.asarray(items), np.asarray(values))[0]
        return row

    def of_many(
        self, starts: NDArray[np.integer[Any]], items: NDArray[np.integer[Any]], values: NDArray[np.floating[Any]]
    ) -> NDArray[np.float64]:
        """The features of many users, one row each; the ratings of user u stand from starts[u] to starts[u + 1]."""

    def check(self, features: ArrayLike) -> NDArray[np.float64]:
        """``features`` as one row of floats. Raises InvalidFeatures, which shows no value, if they lie outside the domain."""

    def inside(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        """Any rows of numbers, moved into the domain: for a server that guesses around a signal."""

    def tensors(self) -> dict[str, NDArray[Any]]:
        """The arrays to store, from which the same space is built again."""


def version_of(space: FeatureSpace) -> str:
    """A digest of everything that features are computed from.

    All of it is public, so the digest tells nothing about a profile.

    Features from other genres or refitted factors are another release, with a charge of their own.
    """
    content = sha256(f"{space.kind}\n{space.dimension}\n".encode())
    for name, tensor in sorted(space.tensors().items()):
        table = np.ascontiguousarray(tensor)
        table = table.astype(table.dtype.newbyteorder("<"))  # equal bytes on every machine
        content.update(f"{name}\n{table.dtype.str}\n{table.shape}\n".encode() + table.tobytes())
    return content.hexdigest()[:32]


@dataclass(frozen=True, eq=False)
class GenreProfile(FeatureSpace):
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
            raise InvalidParameter("flags must be a table with one row for each item and one column for each genre.")
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
        """The features of many users, one row each.

        Ratings are in stars, by item codes; those of user u stand from ``starts[u]`` to ``starts[u + 1]``.
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

    def check(self, features: ArrayLike) -> NDArray[np.float64]:
        """The features as floats. Raises InvalidFeatures, which shows no value, if they lie outside their public domain."""
        row = checked_row(features, self.dimension)
        sums = row.reshape(2, self.genres).sum(axis=1)
        empty, full = np.abs(sums) <= _TOLERANCE, np.abs(sums - 1.0) <= _TOLERANCE
        if (row < 0.0).any() or (row > 1.0).any() or not (empty | full).all():
            raise InvalidFeatures(
                f"each of the two blocks of {self.genres} features must be shares of at least 0 that sum to 1, or all 0. "
                "Compute features from a profile. tacit does not repair them, because a repair would change distances."
            )
        return row

    def inside(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        """The nearest rows in the domain: how a server reads a noisy signal."""
        return scaled_blocks(rows)

    def tensors(self) -> dict[str, NDArray[Any]]:
        """The arrays, by name, from which ``from_tensors`` builds the same space again."""
        return {"flags": self.flags.astype(np.uint8), "liked_from": np.array([self.liked_from])}

    @classmethod
    def from_tensors(cls, tensors: dict[str, NDArray[Any]]) -> "GenreProfile":
        """The space from the arrays of a store. Raises InvalidModel if they do not fit."""
        return cls(tensors["flags"].astype(np.bool_), float(tensors["liked_from"][0]))


@dataclass(frozen=True, eq=False)
class FoldedTaste(FeatureSpace):
    """The taste t and generosity g that best explain a user's ratings: rating = mean + offset + g + t . factors.

    It is a ridge regression in closed form. Generosity moves all items alike: it is fitted so that it does not count
    as taste, and then dropped so that it is neither sent nor noised. The taste is clipped to the cube [-1, 1]^rank, a
    public domain; the curator scales the factors so that most users lie inside.
    """

    kind: ClassVar[str] = "folded-taste/1"
    low: ClassVar[float] = -1.0
    high: ClassVar[float] = 1.0
    factors: NDArray[np.float32]  # items x rank
    offsets: NDArray[np.float32]
    mean: float
    penalties: NDArray[np.float32]  # for generosity, then for each coordinate of taste

    def __post_init__(self) -> None:
        factors, offsets = checked_factors(self.factors, self.offsets)
        penalties = np.array(self.penalties, dtype=np.float32)
        if penalties.shape != (1 + factors.shape[1],) or not (np.isfinite(penalties) & (penalties > 0.0)).all():
            raise InvalidModel(
                "penalties must be finite and above 0: one for generosity, then one for each coordinate of taste."
            )
        penalties.flags.writeable = False
        keep(self, factors=factors, offsets=offsets, penalties=penalties, mean=finite("mean", self.mean))

    @property
    def dimension(self) -> int:
        """How many features a user has: one for each factor."""
        return int(self.factors.shape[1])

    @property
    def diameter(self) -> float:
        """The largest L1 distance between two users' features."""
        return 2.0 * self.dimension

    def of_many(
        self, starts: NDArray[np.integer[Any]], items: NDArray[np.integer[Any]], values: NDArray[np.floating[Any]]
    ) -> NDArray[np.float64]:
        """The features of many users, one row each.

        Ratings are in stars, by item codes; those of user u stand from ``starts[u]`` to ``starts[u + 1]``.
        """
        return np.clip(self.unclipped(starts, items, values), self.low, self.high)

    def unclipped(
        self, starts: NDArray[np.integer[Any]], items: NDArray[np.integer[Any]], values: NDArray[np.floating[Any]]
    ) -> NDArray[np.float64]:
        """The tastes before clipping: the curator chooses the scale by them."""
        items = np.asarray(items, dtype=np.intp)
        design = np.column_stack([np.ones(len(self.factors)), self.factors]).astype(np.float64)
        targets = np.asarray(values, dtype=np.float64) - self.mean - self.offsets[items]
        fitted = grouped_ridge(np.asarray(starts), items, targets, design, self.penalties.astype(np.float64))
        return fitted[:, 1:]

    def inside(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        """The nearest rows in the domain: how a server reads a noisy signal."""
        return np.clip(np.asarray(rows, dtype=np.float64), self.low, self.high)

    def check(self, features: ArrayLike) -> NDArray[np.float64]:
        """The features as floats. Raises InvalidFeatures, which shows no value, if they lie outside their public domain."""
        row = checked_row(features, self.dimension)
        if (np.abs(row) > 1.0).any():
            raise InvalidFeatures(
                f"each of the {self.dimension} features must lie from -1 to 1. Compute features from a profile. tacit does not "
                "repair them, because a repair would change distances."
            )
        return row

    def tensors(self) -> dict[str, NDArray[Any]]:
        """The arrays, by name, from which ``from_tensors`` builds the same space again."""
        return {
            "factors": self.factors,
            "offsets": self.offsets,
            "mean": np.array([self.mean]),
            "penalties": self.penalties,
        }

    @classmethod
    def from_tensors(cls, tensors: dict[str, NDArray[Any]]) -> "FoldedTaste":
        """The space from the arrays of a store. Raises InvalidModel if they do not fit."""
        return cls(tensors["factors"], tensors["offsets"], float(tensors["mean"][0]), tensors["penalties"])


def unit_rows(flags: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The genres of each item as a row of length 1, so that having many genres does not count as quality."""
    table = flags.astype(np.float64)
    length = np.sqrt(table.sum(axis=1, keepdims=True))
    return np.asarray(table / np.where(length > 0.0, length, 1.0), dtype=np.float64)


def scaled_blocks(values: NDArray[Any], blocks: int = 2) -> NDArray[np.float64]:
    """Rows clipped to [0, 1] and scaled so that each block sums to 1; a block of zeros becomes uniform."""
    cut = np.clip(np.asarray(values, dtype=np.float64), 0.0, 1.0).reshape(len(values), blocks, -1)
    sums = cut.sum(axis=2, keepdims=True)
    scaled = np.where(sums > 0.0, cut / np.where(sums > 0.0, sums, 1.0), 1.0 / cut.shape[2])
    return scaled.reshape(len(values), -1)


def checked_row(features: ArrayLike, dimension: int) -> NDArray[np.float64]:
    """``features`` as ``dimension`` finite floats. Errors show no value."""
    try:
        row = np.asarray(features, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidFeatures("features must be real numbers.") from None
    if row.shape != (dimension,):
        raise InvalidFeatures(
            f"expected {dimension} features in one row. Compute them with this server's feature list."
        )
    if not np.isfinite(row).all():
        raise InvalidFeatures("every feature must be a finite number.")
    return row


def moved_by_one_rating(count: float, genres: int) -> float:
    """The largest L1 distance that one more film with ``genres`` genres moves a block that holds ``count`` genre counts.

    It is 2g/(N + g), reached if the film shares no genre with the block, and 1 if the block was empty. Removing the
    film moves the block by the same distance, with N counted without it.
    """
    return 1.0 if count == 0 else 2.0 * genres / (count + genres)


def grouped_ridge(
    starts: NDArray[np.integer[Any]],
    columns: NDArray[np.integer[Any]],
    targets: NDArray[np.floating[Any]],
    design: NDArray[np.float64],
    penalties: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Many small ridge regressions at once: one row of coefficients for each group of rows, zeros for an empty group.

    A group is a user's ratings, or an item's. Group g has the rows from starts[g] to starts[g + 1]: ``targets``
    regressed on ``design[columns]``. It solves (sum a a^T + sqrt(n) diag(penalties)) x = sum a y over its n rows a.
    The root lies between one penalty per group, which is too weak for long profiles, and one per rating, which is too
    strong for them.
    """
    groups, width = len(starts) - 1, design.shape[1]
    upper, lower = np.triu_indices(width)
    products = design[:, upper] * design[:, lower]  # a group's matrix is a sum of these rows
    counts = np.diff(starts)
    shrinkage = np.sqrt(np.maximum(counts, 1))[:, None] * penalties
    solved = np.empty((groups, width))
    step, diagonal = max(1, _VALUES // upper.size), np.arange(width)
    for first in range(0, groups, step):
        part = slice(first, min(first + step, groups))
        rows = slice(int(starts[part.start]), int(starts[part.stop]))
        layout = (columns[rows], starts[part.start : part.stop + 1] - starts[part.start])
        shape = (part.stop - part.start, len(design))
        sums = sparse.csr_array((np.ones(rows.stop - rows.start), *layout), shape=shape) @ products
        matrices = np.empty((shape[0], width, width))
        matrices[:, upper, lower] = matrices[:, lower, upper] = sums
        matrices[:, diagonal, diagonal] += shrinkage[part]
        right = sparse.csr_array((targets[rows].astype(np.float64), *layout), shape=shape) @ design
        solved[part] = np.linalg.solve(matrices, right[:, :, None])[:, :, 0]
    return solved
