"""Ridge logistic models of clicks on Open Bandit: by what is public (item, position), and with what is private (user) as well."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.data import Impressions

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Floats = NDArray[np.float64]

RIDGE = 10.0  # with a hundred clicks to learn from, more would be fitted than is there
_POSITIONS = 3
_CATEGORIES = 16  # of one user feature, at most
_CELLS = 2_000_000  # values of a design that are held at a time


def click_model(log: Impressions, chosen: NDArray[np.bool_], other: Impressions, *, private: bool) -> Any:
    """Fitted to the chosen impressions of a log and to all of another of the same campaign.

    Codes of user categories are a log's own, so the other log teaches about items, positions and affinities only.
    """
    from scipy.sparse import vstack
    from sklearn.linear_model import LogisticRegression

    rows, others = np.flatnonzero(chosen), np.arange(len(other))
    designs = [
        design(log, rows, log.items[rows], private=private),
        design(other, others, other.items, private=private, known=False),
    ]
    model = LogisticRegression(C=1.0 / RIDGE, solver="lbfgs", max_iter=1000)
    return model.fit(vstack(designs, format="csr"), np.concatenate([log.clicks[rows], other.clicks]))


def scores(model: Any, log: Impressions, chosen: NDArray[np.bool_], *, private: bool) -> Floats:
    """The click probability of every item in each of the chosen impressions."""
    rows = np.flatnonzero(chosen)
    found = np.empty((rows.size, log.n_items))
    held = max(1, _CELLS // (log.n_items * 32))
    for first in range(0, rows.size, held):
        part = rows[first : first + held]
        items = np.tile(np.arange(log.n_items), part.size)
        chances = model.predict_proba(design(log, np.repeat(part, log.n_items), items, private=private))[:, 1]
        found[first : first + held] = chances.reshape(part.size, log.n_items)
    return found


def design(
    log: Impressions, rows: NDArray[Any], items: NDArray[Any], *, private: bool, known: bool = True
) -> "csr_array":
    """One row for each (impression, item): item, its features, position; if private, affinity, and user by item features.

    User features alone move all items alike and change no choice; they are there for the fit. If not ``known``, they are 0.
    """
    from scipy.sparse import csr_array

    categories = log.item_categories[items]
    sizes = (log.item_categories.max(axis=0) + 1).tolist()
    numbers = (log.item_numbers - log.item_numbers.mean(axis=0)) / log.item_numbers.std(axis=0)
    ones = np.ones(rows.size)
    columns = [items, np.full(rows.size, log.n_items), log.n_items + log.positions[rows]]
    values = [ones, numbers[items, 0], ones]
    width = log.n_items + 1 + _POSITIONS
    for feature, size in enumerate(sizes):
        columns.append(width + categories[:, feature])
        values.append(ones)
        width += size
    if private:
        columns.append(np.full(rows.size, width))
        values.append(np.log1p(log.affinities[rows, items].astype(np.float64)))
        width += 1
        for user in log.user_features[rows].T:
            for code, size in ((0, 1), *((categories[:, feature], size) for feature, size in enumerate(sizes))):
                columns.append(width + user * size + code)
                values.append(ones * known)
                width += _CATEGORIES * size
    placed = np.stack(columns, axis=1)
    starts = np.arange(rows.size + 1) * placed.shape[1]
    return csr_array((np.stack(values, axis=1).ravel(), placed.ravel(), starts), shape=(rows.size, width))
