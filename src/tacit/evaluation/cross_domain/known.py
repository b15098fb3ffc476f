"""What every method starts from, computed once for a split: target ratings, similar items, X-SIM, levels of the asked users."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.evaluation.cross_domain.splits import Floats, Held, Ints
from tacit.models.cross_domain.alter_egos import (
    AlterEgos,
    ItemBased,
    alter_egos,
    item_based,
    levels,
    mean_of,
    replacements,
)
from tacit.models.cross_domain.similarities import Layers, Legs, edges_of, layers, pruned
from tacit.models.cross_domain.x_sim import XSim, x_sim


@dataclass(frozen=True, eq=False, repr=False)
class Known:
    """``shrink``: co-raters from which a similarity counts fully (W). ``k_ext``: edges that an item keeps on each path."""

    held: Held
    shrink: int = 50
    k_ext: int = 10
    by: Literal["signed", "absolute"] = "signed"
    listed: int = 200  # users of whom all items are predicted

    def __repr__(self) -> str:
        return f"Known({self.held!r}, shrink={self.shrink}, k_ext={self.k_ext})"

    @property
    def scale(self) -> tuple[float, float]:
        return self.held.low, self.held.high

    @cached_property
    def source(self) -> sparse.csr_array:
        """Of the asked users, one row for each."""
        return self.held.source

    @cached_property
    def times(self) -> Ints | None:
        """Of what the asked users rated in the source."""
        if self.held.times is None:
            return None
        table = self.held.ratings
        rows = sparse.csr_array((np.arange(table.nnz) + 1, table.indices, table.indptr), shape=table.shape)
        places = rows[self.held.asked][:, : self.held.n_source]
        found: Ints = self.held.times[places.data - 1]
        return found

    @cached_property
    def all_source(self) -> sparse.csr_array:
        """Of all users."""
        return sparse.csr_array(self.held.ratings[:, : self.held.n_source])

    @cached_property
    def target(self) -> sparse.csr_array:
        """Of all users; asked ones have none."""
        return sparse.csr_array(self.held.ratings[:, self.held.n_source :])

    @cached_property
    def level(self) -> Floats:
        """How far an asked user's mean lies above the mean of the target domain."""
        return levels(self.source, mean_of(self.target))

    @cached_property
    def level_in_source(self) -> Floats:
        """How far it lies above the mean of the domain that it was formed in."""
        return levels(self.source, mean_of(self.all_source))

    @cached_property
    def items(self) -> ItemBased:
        return item_based(self.target, self.shrink)

    @cached_property
    def _edges(self) -> Any:
        return edges_of(self.held.ratings, shrink=self.shrink)

    @cached_property
    def layers(self) -> Layers:
        return layers(self._edges, self.held.n_source)

    @cached_property
    def legs(self) -> Legs:
        return pruned(self._edges, self.layers, self.held.n_source, k=self.k_ext, by=self.by)

    @cached_property
    def x(self) -> XSim:
        return x_sim(self.legs)

    @cached_property
    def replacement(self) -> NDArray[np.int32]:
        """NX-Map's: the target item of largest X-SIM above 0."""
        return replacements(self.x)

    @cached_property
    def egos(self) -> AlterEgos:
        return self.egos_of(self.replacement)

    def egos_of(self, replacement: Any, centres: tuple[Floats, Floats] | None = None) -> AlterEgos:
        return alter_egos(self.source, replacement, self.held.n_target, times=self.times, centres=centres)

    def table(self, predict: Callable[[Ints, Ints], Floats]) -> Floats:
        """Predictions by asked user and target item, both from 0; NaN where none was made: see `Held.pairs`."""
        users, items = self.held.pairs(self.listed)
        scores = np.full((self.held.asked.size, self.held.n_target), np.nan)
        scores[users, items] = predict(users, items)
        return scores
