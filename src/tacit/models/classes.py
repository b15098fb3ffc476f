"""Classes of items: items with equal features have equal scores, so a model scores each class once."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Classes:
    """Which items are alike. Classes are numbered by their smallest item code, members ascend.

    The order of a ranking is always (score descending, item code ascending), also across classes with equal scores.
    """

    of: NDArray[np.int32]  # the class of each item

    @cached_property
    def members(self) -> NDArray[np.int32]:
        """All items, class by class, ascending within a class."""
        return np.argsort(self.of, kind="stable").astype(np.int32)

    @cached_property
    def starts(self) -> NDArray[np.int32]:
        """Class c holds members[starts[c]:starts[c + 1]]."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int32)

    @cached_property
    def sizes(self) -> NDArray[np.int32]:
        """How many items each class has."""
        return np.bincount(self.of, minlength=0).astype(np.int32)

    @cached_property
    def first(self) -> NDArray[np.int32]:
        """The smallest item of each class: the one that is scored for all."""
        return self.members[self.starts[:-1]]

    def __len__(self) -> int:
        return int(self.sizes.size)

    @property
    def n_items(self) -> int:
        """How many items there are in all classes."""
        return int(self.of.size)


def classes_of(vectors: NDArray[Any]) -> Classes:
    """Items (rows) with equal vectors in one class."""
    _, first, inverse = np.unique(vectors, axis=0, return_index=True, return_inverse=True)
    rank = np.empty(first.size, dtype=np.int32)
    rank[np.argsort(first, kind="stable")] = np.arange(first.size, dtype=np.int32)  # number by smallest member
    return Classes(rank[inverse.reshape(-1)])


def each_alone(n_items: int) -> Classes:
    """Every item a class of its own: for models that know items by name, not by features."""
    return Classes(np.arange(n_items, dtype=np.int32))
