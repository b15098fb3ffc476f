"""What every way from released moments to predictions has in common.

A model is made of released numbers and public constants alone. Whoever is served keeps her own ratings and computes with it.
"""

from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg
from scipy.sparse import csr_array

from tacit.errors import InvalidParameter

Floats: TypeAlias = NDArray[np.float64]
Codes: TypeAlias = NDArray[np.int64]
NO_TRANSFER = (
    "No direction of taste stands above the noise: at this budget and number of users nothing but averages is carried from the "
    "source to the target."
)
NO_LINK = (
    "none is seen to link the domains: at this budget and number of users in both, nothing but averages is carried from the source "
    "to the target. Where somebody has ratings in a domain, its own directions still tell of further items there."
)
OF_WHAT = "Directions may be of taste, but also of how high people rate, or of who rates what."


class Transfer(Protocol):
    """Items are codes of both catalogues, the source first. Predictions lie on the scale and are not rounded."""

    @property
    def n_items(self) -> int:
        """How many items both domains have together."""

    @property
    def n_source(self) -> int:
        """How many items the source domain has; their codes come first."""

    @property
    def directions(self) -> int:
        """How many directions stand above the noise; 0: predictions are averages and the user's own level."""

    @property
    def crossing(self) -> int:
        """How many of them are seen in both domains; 0: what is carried from one to the other is averages."""

    @property
    def remark(self) -> str:
        """In one sentence, how much taste the noise left to carry over."""

    def predict(self, items: ArrayLike, values: ArrayLike, wanted: ArrayLike | None = None) -> Floats:
        """For one user with these ratings: of the ``wanted`` items, or of all target items in order."""

    def predict_many(self, ratings: csr_array, users: ArrayLike, items: ArrayLike) -> Floats:
        """For every pair (user, item), from that user's row."""


def remark_on(directions: int, crossing: int) -> str:
    if directions == 0:
        return NO_TRANSFER
    found = "One direction stands" if directions == 1 else f"{directions} directions stand"
    if crossing == 0:
        return f"{found} above the noise, but {NO_LINK}"
    if directions == 1:
        return f"{found} above the noise and is seen in both domains. {OF_WHAT}"
    return f"{found} above the noise; {crossing} {'is' if crossing == 1 else 'are'} seen in both domains. {OF_WHAT}"


def predict_one(model: Transfer, items: ArrayLike, values: ArrayLike, wanted: ArrayLike | None) -> Floats:
    """One user's ``predict``, by ``predict_many``."""
    asked = np.arange(model.n_source, model.n_items, dtype=np.int64) if wanted is None else np.asarray(wanted)
    return model.predict_many(one_row(items, values, model.n_items), np.zeros(asked.size, dtype=np.int64), asked)


def one_row(items: ArrayLike, values: ArrayLike, n_items: int) -> csr_array:
    """One user's ratings as a table of one row; the items in ascending order, each once."""
    codes, numbers = codes_within(items, n_items), np.asarray(values, dtype=np.float64)
    if numbers.shape != codes.shape or not np.isfinite(numbers).all():
        raise InvalidParameter("every rated item needs one rating, a finite number.")
    order = np.argsort(codes, kind="stable")
    if (np.diff(codes[order]) == 0).any():
        raise InvalidParameter("every item is rated once.")
    return csr_array((numbers[order], codes[order], [0, codes.size]), shape=(1, n_items))


def codes_within(items: ArrayLike, n_items: int) -> Codes:
    codes = np.asarray(items)
    if codes.size == 0:
        codes = codes.astype(np.int64)
    if (
        codes.ndim != 1
        or codes.dtype.kind not in "iu"
        or (codes.size and not 0 <= codes.min() <= codes.max() < n_items)
    ):
        raise InvalidParameter(f"items must be codes from 0 to {n_items - 1}.")
    return codes.astype(np.int64)


def rows_of(ratings: csr_array, users: ArrayLike, items: ArrayLike, n_items: int) -> tuple[csr_array, Codes, Codes]:
    """The rows of the users who are asked for, each once; the place of each pair's row among them; the items."""
    if ratings.shape[1] != n_items:
        raise InvalidParameter(f"expected rows of {n_items} items.")
    codes, people = codes_within(items, n_items), codes_within(users, ratings.shape[0])
    if codes.shape != people.shape:
        raise InvalidParameter("users and items must come in pairs.")
    asked, places = np.unique(people, return_inverse=True)
    return ratings[asked].astype(np.float64), places.astype(np.int64), codes


def released(name: str, values: ArrayLike, shape: tuple[int, ...]) -> Floats:
    """Released numbers, if they are finite and come in this shape."""
    array = np.array(values, dtype=np.float64)
    if array.shape != shape or not np.isfinite(array).all():
        raise InvalidParameter(f"{name} must be finite numbers in the shape {shape}.")
    return array


def strongest(matrix: Floats, threshold: float, most: int) -> tuple[Floats, Floats]:
    """At most so many eigenvalues above the threshold, the largest first, and their eigenvectors.

    The largest entry of an eigenvector is positive: equal releases give equal models.
    """
    size = len(matrix)
    if size == 0:
        return np.zeros(0), np.zeros((0, 0))
    values, vectors = linalg.eigh(matrix, subset_by_index=(max(size - most, 0), size - 1), check_finite=False)
    rounding = 1e-9 * float(np.abs(matrix).sum(axis=1).max())  # without noise an eigenvalue of 0 is no direction
    kept = np.flatnonzero(values > max(threshold, rounding))[::-1]
    chosen = vectors[:, kept]
    return values[kept], chosen * np.sign(chosen[np.abs(chosen).argmax(axis=0), np.arange(kept.size)])
