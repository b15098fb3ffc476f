"""Items as factors: a utility is the scalar product of a user's taste with an item's factors. Served by numpy."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.checks import finite, keep
from tacit.errors import InvalidModel
from tacit.models.classes import Classes, classes_of

TOP = 5.0  # the best rating


@dataclass(frozen=True, eq=False)
class FactorScorer:
    """Ratings from 0 to 5: mean + the item's offset + features . the item's factors, clipped.

    The features are those of `FoldedTaste`. How generous a user is moves all her ratings alike, so it is no part of them.
    """

    kind: ClassVar[str] = "factors/1"
    factors: NDArray[np.float32]  # items x rank
    offsets: NDArray[np.float32]
    mean: float

    def __post_init__(self) -> None:
        factors, offsets = checked_factors(self.factors, self.offsets)
        keep(self, factors=factors, offsets=offsets, mean=finite("mean", self.mean))

    @property
    def dimension(self) -> int:
        """How many features a user has."""
        return int(self.factors.shape[1])

    @cached_property
    def classes(self) -> Classes:
        """Each item alone, unless two have the same numbers (as all items have that no rating taught anything about)."""
        return classes_of(np.column_stack([self.factors, self.offsets]))

    def score(self, features: NDArray[Any], items: NDArray[np.integer[Any]]) -> NDArray[np.float32]:
        """Scores of users x items: one row of features for each user, items by their codes. Larger is better."""
        # Each class once: a product of matrices may round two equal columns differently.
        wanted, place = np.unique(self.classes.of[items], return_inverse=True)
        first = self.classes.first[wanted]
        scores: NDArray[np.float32] = np.asarray(features, dtype=np.float32) @ self.factors[first].T
        scores += self.offsets[first] + np.float32(self.mean)
        np.clip(scores, 0.0, TOP, out=scores)
        return scores[:, place.reshape(-1)]

    def tensors(self) -> dict[str, NDArray[Any]]:
        """The arrays of which ``from_tensors`` makes the same again, by name."""
        return {"factors": self.factors, "offsets": self.offsets, "mean": np.array([self.mean])}

    @classmethod
    def from_tensors(cls, tensors: dict[str, NDArray[Any]]) -> "FactorScorer":
        """The same again, from the arrays of a store; InvalidModel where they do not fit."""
        return cls(tensors["factors"], tensors["offsets"], float(tensors["mean"][0]))


def checked_factors(factors: ArrayLike, offsets: ArrayLike) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Own copies that cannot be written to, if every item has finite factors and one finite offset."""
    table, column = np.array(factors, dtype=np.float32), np.array(offsets, dtype=np.float32)
    if table.ndim != 2 or not table.shape[1] or column.shape != table.shape[:1]:
        raise InvalidModel("factors must be a table, one row for each item, with one offset for each row.")
    if not (np.isfinite(table).all() and np.isfinite(column).all()):
        raise InvalidModel("a factor or an offset is not finite.")
    table.flags.writeable = column.flags.writeable = False
    return table, column
