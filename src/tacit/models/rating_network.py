"""The rating network: three towers (liked genres, disliked genres, the item's genres), then a common trunk. Served by numpy.

Each tower g -> g -> 50 -> 50, the joined 150 -> 150 -> 75 -> 50 -> 1, ReLU between, a sigmoid times 5 at the end: 49,616 weights
for 19 genres. Training it is the curator's work (tacit.curator).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidModel
from tacit.models.classes import Classes, classes_of

TOWERS = ("liked", "disliked", "item")
TOWER_WIDTHS = (50, 50)  # after a first layer as wide as the input
TRUNK_WIDTHS = (150, 75, 50, 1)
TOP = 5.0  # the best rating
_PAIRS = 1 << 15  # (user, class) pairs that pass the trunk at a time: their layers then stay in the cache

Weights = dict[str, NDArray[np.float32]]


def shapes(genres: int) -> dict[str, tuple[int, ...]]:
    """The name and shape of every weight: '<tower>.<layer>.weight' (inputs x outputs) and '.bias', the same for 'trunk'."""
    named: dict[str, tuple[int, ...]] = {}
    widths: tuple[int, ...] = (genres, genres, *TOWER_WIDTHS)
    for tower in TOWERS:
        for layer, (inputs, outputs) in enumerate(pairwise(widths)):
            named |= {f"{tower}.{layer}.weight": (inputs, outputs), f"{tower}.{layer}.bias": (outputs,)}
    widths = (len(TOWERS) * TOWER_WIDTHS[-1], *TRUNK_WIDTHS)
    for layer, (inputs, outputs) in enumerate(pairwise(widths)):
        named |= {f"trunk.{layer}.weight": (inputs, outputs), f"trunk.{layer}.bias": (outputs,)}
    return named


def require_weights(model: str, weights: Weights, genres: int, wanted: Mapping[str, tuple[int, ...]]) -> None:
    """Refuses weights that are not those of such a model, or not finite."""
    if {name: weight.shape for name, weight in weights.items()} != wanted:
        raise InvalidModel(f"a {model} for {genres} genres has the {len(wanted)} weights of `shapes`.")
    if not all(np.isfinite(weight).all() for weight in weights.values()):
        raise InvalidModel(f"a weight of the {model} is not finite.")


@dataclass(frozen=True, eq=False)
class RatingNetwork:
    """Ratings from 0 to 5 for (genre profile, item genres)."""

    kind: ClassVar[str] = "rating-network/1"
    weights: Weights
    flags: NDArray[np.bool_]  # items x genres, public

    def __post_init__(self) -> None:
        require_weights("rating network", self.weights, self.genres, shapes(self.genres))

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

    def score(self, features: NDArray[Any], items: NDArray[np.integer[Any]]) -> NDArray[np.float32]:
        """Scores of users x items: one row of features for each user, items by their codes. Larger is better."""
        wanted, place = np.unique(self.classes.of[items], return_inverse=True)  # each class is scored once
        users = np.asarray(features, dtype=np.float32)
        # The first trunk layer is linear in the joined towers: the users' and the classes' shares are summed, not recomputed.
        user_part = self._user_part(users)
        class_part = self._class_part[wanted]
        scores = np.empty((len(users), wanted.size), dtype=np.float32)
        rows = max(1, _PAIRS // max(1, wanted.size))
        for first in range(0, len(users), rows):
            part = user_part[first : first + rows, None, :] + class_part
            scores[first : first + rows] = self._trunk(part.reshape(-1, part.shape[2])).reshape(-1, wanted.size)
        return scores[:, place.reshape(-1)]

    def tensors(self) -> dict[str, NDArray[Any]]:
        """The arrays of which ``from_tensors`` makes the same again, by name."""
        return {**self.weights, "flags": self.flags.astype(np.uint8)}

    @classmethod
    def from_tensors(cls, tensors: dict[str, NDArray[Any]]) -> "RatingNetwork":
        """The same again, from the arrays of a store; InvalidModel where they do not fit."""
        weights = {name: tensor.astype(np.float32) for name, tensor in tensors.items() if name != "flags"}
        return cls(weights, tensors["flags"].astype(np.bool_))

    def _tower(self, name: str, inputs: NDArray[np.float32]) -> NDArray[np.float32]:
        for layer in range(1 + len(TOWER_WIDTHS)):
            inputs = inputs @ self.weights[f"{name}.{layer}.weight"] + self.weights[f"{name}.{layer}.bias"]
            np.maximum(inputs, 0.0, out=inputs)
        return inputs

    def _user_part(self, users: NDArray[np.float32]) -> NDArray[np.float32]:
        width, entry = TOWER_WIDTHS[-1], self.weights["trunk.0.weight"]
        liked = self._tower("liked", users[:, : self.genres]) @ entry[:width]
        disliked = self._tower("disliked", users[:, self.genres :]) @ entry[width : 2 * width]
        joined: NDArray[np.float32] = liked + disliked + self.weights["trunk.0.bias"]
        return joined

    @cached_property
    def _class_part(self) -> NDArray[np.float32]:
        flags = self.flags[self.classes.first].astype(np.float32)
        part: NDArray[np.float32] = self._tower("item", flags) @ self.weights["trunk.0.weight"][2 * TOWER_WIDTHS[-1] :]
        return part

    def _trunk(self, joined: NDArray[np.float32]) -> NDArray[np.float32]:
        last = len(TRUNK_WIDTHS) - 1
        for layer in range(1, last + 1):
            np.maximum(joined, 0.0, out=joined)
            joined = joined @ self.weights[f"trunk.{layer}.weight"]
            joined += self.weights[f"trunk.{layer}.bias"]
        with np.errstate(over="ignore"):  # e^-x beyond all floats is a score of 0
            scores = TOP / (1.0 + np.exp(-joined))
        return scores.astype(np.float32, copy=False)
