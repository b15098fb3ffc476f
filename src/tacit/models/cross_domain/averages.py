"""What can be said without anyone's taste: means of all ratings, of items, and of users."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.models.cross_domain.edges import ROUNDING
from tacit.models.cross_domain.weighted_sums import checked_pairs

Floats = NDArray[np.float64]
Scale = tuple[float, float]


def mean_of(ratings: Any, otherwise: float = 0.0) -> float:
    """The mean of all stored ratings, ``otherwise`` where there are none."""
    return float(np.mean(ratings.data, dtype=np.float64)) if ratings.nnz else otherwise


def row_means(ratings: Any, otherwise: float) -> Floats:
    """The mean of each row, ``otherwise`` where it is empty. For users; items are the rows of the transpose."""
    counts = np.diff(ratings.indptr)
    rows = np.repeat(np.arange(counts.size), counts)
    sums = np.bincount(rows, weights=ratings.data, minlength=counts.size)
    return np.where(counts > 0, sums / np.maximum(counts, 1), otherwise)


def column_means(ratings: Any, otherwise: float) -> Floats:
    """The mean of each column, ``otherwise`` where it is empty."""
    counts = np.bincount(ratings.indices, minlength=ratings.shape[1])
    sums = np.bincount(ratings.indices, weights=ratings.data, minlength=ratings.shape[1])
    return np.where(counts > 0, sums / np.maximum(counts, 1), otherwise)


def less_row_means(ratings: Any) -> Floats:
    """Every rating less the mean of its row, and exactly 0 where they differ by rounding only: some rate everything alike."""
    means = np.repeat(row_means(ratings, 0.0), np.diff(ratings.indptr))
    gaps: Floats = ratings.data - means
    gaps[np.abs(gaps) <= ROUNDING * (np.abs(ratings.data) + np.abs(means))] = 0.0
    return gaps


def clipped(predictions: Floats, scale: Scale) -> Floats:
    """Predictions inside the scale of ratings. They are not rounded to its steps, which would move a mean error."""
    inside: Floats = np.clip(predictions, *scale)
    return inside


def levels(ratings: Any, mean: float | None = None) -> Floats:
    """How far each user's ratings lie above ``mean``; 0 for a user without any.

    By default the mean of these same ratings. It has to be that of the domain the ratings are from: people rate books
    higher than films, and a lover of books who rates them like everybody else is no generous rater of films.
    """
    mean = mean_of(ratings) if mean is None else mean
    return row_means(ratings, mean) - mean


def global_mean(target: Any, items: Any, scale: Scale) -> Floats:
    """The mean of all ratings in the target domain, for every wanted item."""
    return clipped(np.full(np.asarray(items).size, mean_of(target)), scale)


def item_average(target: Any, items: Any, scale: Scale) -> Floats:
    """The mean rating of each wanted item; of one that nobody rated, the mean of all."""
    _, items = checked_pairs(np.zeros_like(items), items, 1, target.shape[1])
    return clipped(column_means(target, mean_of(target))[items], scale)


def user_and_item(target: Any, level: Floats, users: Any, items: Any, scale: Scale) -> Floats:
    """The mean rating of each wanted item, moved by how high the user rates (`levels`)."""
    users, items = checked_pairs(users, items, level.size, target.shape[1])
    return clipped(column_means(target, mean_of(target))[items] + level[users], scale)
