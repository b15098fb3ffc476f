"""Items' offsets and domains' means from noisy sums, and a user's own level: what is predicted where no taste is known.

Released are d = sum of w y and n = sum of w over users, for y the centred ratings of an item and w a user's factor. Then

    offset of i = d n t / (n^2 t + sigma_d^2 + v n)        t: variance of offsets; v: of ratings

is the posterior mean of an offset given d ~ N(n * offset, sigma_d^2 + v n). n is floored at sigma_n.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from tacit.checks import finite, whole
from tacit.errors import InvalidParameter
from tacit.models.cross_domain.settings import TransferSettings
from tacit.models.cross_domain.transfer import NO_TRANSFER, Floats, predict_one, released, rows_of


@dataclass(frozen=True, eq=False, repr=False)
class Offsets:
    """``values`` for every item, around ``means`` of its domain (source, target). By itself the simplest transfer.

    A user's level is the mean of (rating - mean of the domain - offset) over her k ratings, times ``share`` k / (k + ``few``).
    """

    n_source: int
    values: Floats
    means: tuple[float, float]
    share: float
    few: float
    low: float
    high: float

    @property
    def n_items(self) -> int:
        return int(self.values.size)

    @property
    def directions(self) -> int:
        return 0

    @property
    def crossing(self) -> int:
        return 0

    @property
    def remark(self) -> str:
        return NO_TRANSFER

    @property
    def expected(self) -> Floats:
        """Of every item, by somebody of whom nothing is known."""
        of_domain = np.where(np.arange(self.n_items) < self.n_source, self.means[0], self.means[1])
        return np.asarray(of_domain + self.values)

    def levels(self, ratings: csr_array) -> tuple[Floats, csr_array]:
        """Each row's level, and what is left of its ratings without the mean of their differences."""
        count = np.diff(ratings.indptr)
        left = ratings.data - self.expected[ratings.indices]
        row = np.repeat(np.arange(count.size), count)
        mean = np.bincount(row, left, count.size) / np.maximum(count, 1)
        level = self.share * mean * count / np.maximum(count + self.few, 1)
        return level, csr_array((left - mean[row], ratings.indices, ratings.indptr), shape=ratings.shape)

    def predict(self, items: ArrayLike, values: ArrayLike, wanted: ArrayLike | None = None) -> Floats:
        return predict_one(self, items, values, wanted)

    def predict_many(self, ratings: csr_array, users: ArrayLike, items: ArrayLike) -> Floats:
        rows, place, codes = rows_of(ratings, users, items, self.n_items)
        level, _ = self.levels(rows)
        return self.on_scale(self.expected[codes] + level[place])

    def on_scale(self, values: Floats) -> Floats:
        return np.clip(values, self.low, self.high)


def offsets(
    d: ArrayLike, n: ArrayLike, sigma_d: float, sigma_n: float, n_source: int, settings: TransferSettings
) -> Offsets:
    """From the noisy sums of all items, the source first, and the deviations of their noise.

    Where ratings are centred by a constant, the mean of a domain is that constant and (sum of d) / (sum of n); the items' sums
    are then taken around it, which adds the noise of n to that of d. Centred by own means they tell nothing of domains.
    """
    n = released("n", n, np.shape(n))
    if n.ndim != 1:
        raise InvalidParameter("n must be one number for each item.")
    d = released("d", d, n.shape)
    n_source = whole("n_source", n_source, least=0, most=n.size)
    sigma_d, sigma_n = deviation("sigma_d", sigma_d), deviation("sigma_n", sigma_n)
    variance, mean = np.full(n.size, sigma_d**2), [0.0, 0.0]
    seen = np.maximum(n, sigma_n)
    if settings.centre is not None:
        for side, domain in enumerate((slice(0, n_source), slice(n_source, n.size))):
            # the floor of n would count unrated items in, so the domain's sum is taken of n as it is released
            least = max(sigma_n * np.sqrt(max(n[domain].size, 1)), np.finfo(float).tiny)
            mean[side] = float(np.clip(d[domain].sum() / max(n[domain].sum(), least), -settings.clip, settings.clip))
            d[domain] -= mean[side] * n[domain]
            variance[domain] += (mean[side] * sigma_n) ** 2
    spread, of_rating = settings.offset_variance, settings.rating_variance
    values = d * seen * spread / np.maximum(seen**2 * spread + variance + of_rating * seen, np.finfo(float).tiny)
    own, widest = settings.centre is None, settings.high - settings.low
    return Offsets(
        n_source,
        np.clip(values, -widest, widest),
        (settings.rest + mean[0], settings.rest + mean[1]),
        1.0 if own else settings.level_share,  # own means alone tell of levels: none of it may be left out
        0.0 if own else settings.level_ratings,
        settings.low,
        settings.high,
    )


def deviation(name: str, value: float) -> float:
    number = finite(name, value)
    if number < 0.0:
        raise InvalidParameter(f"{name} must be at least 0, not {value!r}.")
    return number
