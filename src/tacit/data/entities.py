"""Which organisation holds which user: a hospital, a region, a ZIP digit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.ids import Codes, frozen
from tacit.errors import InvalidData


@dataclass(frozen=True, eq=False, repr=False)
class Entities:
    """One entity for each user; ``codes[user]`` is a place in ``names``."""

    kind: str  # "hospital", "region", "ZIP digit"
    names: tuple[str, ...]
    codes: Codes

    def __post_init__(self) -> None:
        if self.codes.size and not 0 <= int(self.codes.min()) <= int(self.codes.max()) < len(self.names):
            raise InvalidData(f"every user must belong to one of the {len(self.names)} entities.")
        object.__setattr__(self, "codes", frozen(self.codes.astype(np.int32, copy=False)))

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"Entities({len(self):,} of kind {self.kind!r})"

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Users of each entity."""
        return np.bincount(self.codes, minlength=len(self)).astype(np.int64)

    def select(self, users: NDArray[Any]) -> "Entities":
        """The entities of these users, by their codes, in that order."""
        return Entities(self.kind, self.names, self.codes[users])

    @classmethod
    def from_labels(cls, kind: str, labels: Sequence[str]) -> "Entities":
        """Entities in ascending order of name, from one label for each user."""
        names, codes = np.unique(np.asarray(labels, dtype=str), return_inverse=True)
        return cls(kind, tuple(str(name) for name in names), codes.astype(np.int32))
