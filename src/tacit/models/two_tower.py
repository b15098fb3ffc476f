"""The two-tower model: one vector for the user, one for the item, their product is the rating. Served by numpy.

User tower 2g -> 64 -> 32, item tower g -> 64 -> 32, ReLU after the first layer, score = 5 sigmoid(product + bias): 7,937 weights
for 19 genres. The items' vectors are computed once; a request costs one small tower and one matrix product. Training it is the
curator's work (tacit.curator).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.models.classes import Classes, classes_of
from tacit.models.rating_network import TOP, Weights, require_weights

TOWERS = ("user", "item")
WIDTHS = (64, 32)


def shapes(genres: int) -> dict[str, tuple[int, ...]]:
    """The name and shape of every weight: '<tower>.<layer>.weight' (inputs x outputs) and '.bias', and one 'bias'."""
    named: dict[str, tuple[int, ...]] = {"bias": (1,)}
    for tower, inputs in zip(TOWERS, (2 * genres, genres), strict=True):
        for layer, outputs in enumerate(WIDTHS):
            named |= {f"{tower}.{layer}.weight": (inputs, outputs), f"{tower}.{layer}.bias": (outputs,)}
            inputs = outputs
    return named


@dataclass(frozen=True, eq=False)
class TwoTower:
    """Ratings from 0 to 5 for (genre profile, item genres), through one product of vectors."""

    kind: ClassVar[str] = "two-tower/1"
    weights: Weights
    flags: NDArray[np.bool_]  # items x genres, public

    def __post_init__(self) -> None:
        require_weights("two-tower model", self.weights, self.genres, shapes(self.genres))

    @property
    def genres(self) -> int:
        """How many genres an item can have."""
        return int(self.flags.shape[1])

    @property
    def dimension(self) -> int:
        """How many features a user has."""
        return 2 * self.genres

    @cached_property
    def classes(self) -> Classes:
        """Which items are the same to this scorer, and get the same score."""
        return classes_of(self.flags)

    @cached_property
    def class_vectors(self) -> NDArray[np.float32]:
        """classes x 32: all that is needed of the items."""
        return self._tower("item", self.flags[self.classes.first].astype(np.float32))

    def score(self, features: NDArray[Any], items: NDArray[np.integer[Any]]) -> NDArray[np.float32]:
        """Scores of users x items: one row of features for each user, items by their codes. Larger is better."""
        wanted, place = np.unique(self.classes.of[items], return_inverse=True)  # each class is scored once
        users = self._tower("user", np.asarray(features, dtype=np.float32))
        product = users @ self.class_vectors[wanted].T + self.weights["bias"]
        with np.errstate(over="ignore"):  # e^-x beyond all floats is a score of 0
            scores: NDArray[np.float32] = TOP / (1.0 + np.exp(-product))
        return scores[:, place.reshape(-1)]

    def tensors(self) -> dict[str, NDArray[Any]]:
        """The arrays of which ``from_tensors`` makes the same again, by name."""
        return {**self.weights, "flags": self.flags.astype(np.uint8)}

    @classmethod
    def from_tensors(cls, tensors: dict[str, NDArray[Any]]) -> "TwoTower":
        """The same again, from the arrays of a store; InvalidModel where they do not fit."""
        weights = {name: tensor.astype(np.float32) for name, tensor in tensors.items() if name != "flags"}
        return cls(weights, tensors["flags"].astype(np.bool_))

    def _tower(self, name: str, inputs: NDArray[np.float32]) -> NDArray[np.float32]:
        for layer in range(len(WIDTHS)):
            if layer:
                np.maximum(inputs, 0.0, out=inputs)
            inputs = inputs @ self.weights[f"{name}.{layer}.weight"] + self.weights[f"{name}.{layer}.bias"]
        return inputs
