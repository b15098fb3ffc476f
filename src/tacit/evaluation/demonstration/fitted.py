"""A store fitted to four users in five, and the others, who ask: multi-selection and private selection are shown with the same."""

from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.curator import fit
from tacit.data import Ratings
from tacit.data.splits import hold_out_users
from tacit.evaluation.demonstration.demonstration import Status, unheard
from tacit.messages.store import Store

USERS, EPOCHS = 100, 10
FEWEST = 3  # users who ask: one is shown, two give a standard error
NEEDED = f"it needs {FEWEST} users to ask and some more to learn from, with five ratings each."
_LEAST_RATINGS = 5  # of a user who asks, and of a listed item
_HELD_OUT = 0.2
SEED = 7  # of who asks, and of the fit


class Fitted(NamedTuple):
    """``shown`` is the user whose conversation is told, figures are means over ``asking``; none of them trained the store."""

    store: Store
    ratings: Ratings  # of those who were held out
    counts: NDArray[np.int64]  # ratings of each listed item in training
    shown: int
    asking: tuple[int, ...]
    rng: np.random.Generator

    def rated(self, user: int) -> dict[Any, float]:
        """What a held-out user rated among the listed items."""
        rows, listed = self.ratings.rows_of(user), set(self.store.items.ids.tolist())
        ids = self.ratings.catalogue.ids[self.ratings.items[rows]].tolist()
        values = self.ratings.values[rows].tolist()
        return {item: value for item, value in zip(ids, values, strict=True) if item in listed}

    def features(self) -> NDArray[np.float64]:
        """Of those who ask, one row each."""
        return np.array([self._features(user) for user in self.asking])

    def _features(self, user: int) -> NDArray[np.float64]:
        rated = self.rated(user)
        codes = np.array([self.store.items.code(item) for item in rated], dtype=np.int64)
        return np.asarray(self.store.space.of(codes, np.array(list(rated.values()))), dtype=np.float64)


def fitted(ratings: Ratings, *, status: Status = unheard) -> Fitted | None:
    """The network where there are genres and jax, matrix factors otherwise; None where too few users could ask."""
    rng = np.random.default_rng(SEED)
    split = hold_out_users(ratings, _HELD_OUT, rng=rng)
    asking = np.flatnonzero(split.test.counts >= _LEAST_RATINGS).tolist()
    if len(asking) < FEWEST:
        return None
    model = "network" if ratings.catalogue.genres is not None and find_spec("jax") is not None else "factors"
    status("fitting a model to four users in five")
    store = fit(split.train, model=model, epochs=EPOCHS, least=_LEAST_RATINGS, rng=rng, name=ratings.name)  # type: ignore[arg-type]
    places = np.searchsorted(ratings.catalogue.ids, store.items.ids)
    counts = np.bincount(split.train.items, minlength=len(ratings.catalogue))[places]
    return Fitted(store, split.test, counts, asking[0], tuple(asking[1 : USERS + 1]), rng)
