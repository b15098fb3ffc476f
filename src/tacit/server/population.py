"""A population: what some people would give each listed item. The policy `auto` weighs its choices by them.

They are public, or released under a guarantee of their own: an offer is a function of them, and goes to everybody.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.checks import positive
from tacit.errors import InvalidParameter, UnknownName
from tacit.models.public_prior import DRAWS, Tastes


class Population:
    """``quality`` has a row for each person and a column for each item, on the scale of private quality: stars, or the
    probability of a click where there are bids. Of many people so many as the prior has draws are taken, evenly; fewer take turns.
    """

    def __init__(self, items: Sequence[str], quality: ArrayLike) -> None:
        table: NDArray[np.float64] = np.asarray(quality, dtype=np.float64)
        if table.ndim != 2 or not len(table) or table.shape[1] != len(items) or not np.isfinite(table).all():
            raise InvalidParameter("a population has a row of finite numbers for each person, one for each item.")
        if isinstance(items, str) or len(set(items)) < len(items):
            raise InvalidParameter("a population knows every item once.")
        people = np.arange(DRAWS) * len(table) // DRAWS if len(table) > DRAWS else np.arange(DRAWS) % len(table)
        self._places = {item: place for place, item in enumerate(items)}
        self._table = table[people].T

    def __repr__(self) -> str:
        return f"Population({len(self._places):,} items)"

    def times(self, factor: float | NDArray[np.float64]) -> "Population":
        """The same people on another scale, such as clicks for stars: one factor for all items, or one for each."""
        factors = np.array([positive("factor", one) for one in np.atleast_1d(factor).tolist()])
        if factors.shape not in ((1,), (len(self._places),)):
            raise InvalidParameter("a population is scaled by one factor, or by one for each item.")
        return Population(list(self._places), self._table.T * factors)

    def tastes(self, items: Sequence[str]) -> Tastes:
        """For candidates in this order."""
        try:
            return Tastes(self._table[[self._places[item] for item in items]])
        except KeyError:
            raise UnknownName(
                "the population does not know an item that is listed. Give it a column for every item."
            ) from None
