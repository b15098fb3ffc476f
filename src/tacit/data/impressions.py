"""Items that were shown, and whether they were clicked: a log of a recommender with its own probabilities."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.ids import Codes, Ids, frozen
from tacit.data.provenance import UNKNOWN, Provenance
from tacit.errors import InvalidData


@dataclass(frozen=True, eq=False, repr=False)
class Impressions:
    """One row for each item shown. Private, as ratings are: ``repr`` shows sizes only."""

    items: Codes  # which item was shown
    positions: NDArray[np.int8]  # where, from 1
    clicks: NDArray[np.bool_]
    propensities: NDArray[np.float64]  # with what probability the logging policy showed it there
    times: NDArray[np.int64]  # seconds since 1970
    user_features: NDArray[np.int32]  # rows x features: categories as codes
    affinities: NDArray[np.float32]  # rows x items: what this user did with each candidate before
    item_ids: Ids
    item_numbers: NDArray[np.float64]  # items x numeric features
    item_categories: NDArray[np.int32]  # items x categorical features, as codes
    name: str = "impressions"
    policy: str = "unknown"
    provenance: Provenance = UNKNOWN

    def __post_init__(self) -> None:
        rows, items = self.items.size, self.item_ids.size
        lengths = {
            self.positions.size,
            self.clicks.size,
            self.propensities.size,
            self.times.size,
            len(self.user_features),
        }
        if lengths != {rows} or self.affinities.shape != (rows, items):
            raise InvalidData(
                "the columns of impressions must have one length, and affinities one column for each item."
            )
        if len(self.item_numbers) != items or len(self.item_categories) != items:
            raise InvalidData("item features must have one row for each item.")
        if rows and not 0 <= int(self.items.min()) <= int(self.items.max()) < items:
            raise InvalidData("every item code must be a place in item_ids.")
        for field in fields(self):
            value: Any = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                object.__setattr__(self, field.name, frozen(value))

    def __len__(self) -> int:
        return int(self.items.size)

    def __repr__(self) -> str:
        return f"Impressions({self.name!r}: {len(self):,} shown, {self.n_items:,} items, policy {self.policy!r})"

    @property
    def n_items(self) -> int:
        """How many items there are, shown or not."""
        return int(self.item_ids.size)
