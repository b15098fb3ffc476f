"""Folded taste: the device fits its own factors to its own ratings, given the public factors of the items."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.checks import finite, keep
from tacit.errors import InvalidFeatures, InvalidModel
from tacit.models.factors import checked_factors
from tacit.models.features import checked_row
from tacit.models.grouped_ridge import grouped_ridge


@dataclass(frozen=True, eq=False)
class FoldedTaste:
    """The user's taste t and generosity g that explain her ratings best: rating = mean + offset + g + t . factors.

    A ridge regression in closed form. Generosity moves all items alike: it is fitted, so that it does not pass for taste, and
    then dropped, so that it is neither sent nor noised. The taste is clipped to the cube [-1, 1]^rank, a public domain; the
    curator scales the factors so that most users lie inside.
    """

    kind: ClassVar[str] = "folded-taste/1"
    low: ClassVar[float] = -1.0
    high: ClassVar[float] = 1.0
    factors: NDArray[np.float32]  # items x rank
    offsets: NDArray[np.float32]
    mean: float
    penalties: NDArray[np.float32]  # of generosity, then of each coordinate of taste

    def __post_init__(self) -> None:
        factors, offsets = checked_factors(self.factors, self.offsets)
        penalties = np.array(self.penalties, dtype=np.float32)
        if penalties.shape != (1 + factors.shape[1],) or not (np.isfinite(penalties) & (penalties > 0.0)).all():
            raise InvalidModel("penalties must be finite and above 0: one of generosity, one of each coordinate.")
        penalties.flags.writeable = False
        keep(self, factors=factors, offsets=offsets, penalties=penalties, mean=finite("mean", self.mean))

    @property
    def n_items(self) -> int:
        """How many items there are."""
        return int(self.factors.shape[0])

    @property
    def dimension(self) -> int:
        """How many features a user has: one for each factor."""
        return int(self.factors.shape[1])

    @property
    def diameter(self) -> float:
        """The largest L1 distance of two users' features."""
        return 2.0 * self.dimension

    def of_many(
        self, starts: NDArray[np.integer[Any]], items: NDArray[np.integer[Any]], values: NDArray[np.floating[Any]]
    ) -> NDArray[np.float64]:
        """The features of many users, a row each: ratings in stars by item codes, of user u from ``starts[u]`` to
        ``starts[u + 1]``.
        """
        return np.clip(self.unclipped(starts, items, values), self.low, self.high)

    def of(self, items: NDArray[np.integer[Any]], values: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """The features of one user: her ratings in stars, by item codes."""
        row: NDArray[np.float64] = self.of_many(np.array([0, len(items)]), np.asarray(items), np.asarray(values))[0]
        return row

    def unclipped(
        self, starts: NDArray[np.integer[Any]], items: NDArray[np.integer[Any]], values: NDArray[np.floating[Any]]
    ) -> NDArray[np.float64]:
        """The tastes before they are brought into the domain: what the curator looks at to choose the scale."""
        items = np.asarray(items, dtype=np.intp)
        design = np.column_stack([np.ones(self.n_items), self.factors]).astype(np.float64)
        targets = np.asarray(values, dtype=np.float64) - self.mean - self.offsets[items]
        fitted = grouped_ridge(np.asarray(starts), items, targets, design, self.penalties.astype(np.float64))
        return fitted[:, 1:]

    def inside(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        """The nearest rows that features may be: what a server makes of a noisy signal."""
        return np.clip(np.asarray(rows, dtype=np.float64), self.low, self.high)

    def check(self, features: ArrayLike) -> NDArray[np.float64]:
        """The features as floats, if they lie in their public domain; else InvalidFeatures, which shows none of them."""
        row = checked_row(features, self.dimension)
        if (np.abs(row) > 1.0).any():
            raise InvalidFeatures(
                f"each of the {self.dimension} features must lie from -1 to 1. Build features from a profile; they are not "
                "repaired, because a repair would move distances."
            )
        return row

    def tensors(self) -> dict[str, NDArray[Any]]:
        """The arrays of which ``from_tensors`` makes the same again, by name."""
        return {
            "factors": self.factors,
            "offsets": self.offsets,
            "mean": np.array([self.mean]),
            "penalties": self.penalties,
        }

    @classmethod
    def from_tensors(cls, tensors: dict[str, NDArray[Any]]) -> "FoldedTaste":
        """The same again, from the arrays of a store; InvalidModel where they do not fit."""
        return cls(tensors["factors"], tensors["offsets"], float(tensors["mean"][0]), tensors["penalties"])
