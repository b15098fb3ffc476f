"""The settings, the offsets and the test for links that all models across domains from released moments share.

A model consists of released numbers and public constants. Users keep their own ratings and compute with it.

**Offsets.** Released are d = sum of w y and n = sum of w over users, for y the centred ratings of an item and w a
user's factor. Then

    offset of i = d n t / (n^2 t + sigma_d^2 + v n)        t: variance of offsets; v: of ratings

is the posterior mean of an offset given d ~ N(n * offset, sigma_d^2 + v n). n is floored at sigma_n. Offsets,
domains' means and a user's own level are the prediction without any taste.

**Links.** Second moments between the domains show which directions of taste link them. If nobody rated in both
domains, the released block between them, source items x target items, is only noise: independent normal numbers of
deviation sigma. The largest singular value of an n x m block of noise exceeds sigma (sqrt n + sqrt m + t) with a
probability of at most exp(-t^2 / 2). The same holds for the block along any directions that were found without it,
with their numbers in place of n and m. The directions inside the domains come from the other two blocks, whose noise
is independent. So `links` compares two things with noise, without looking at any rating: the whole block, and the
block along these directions.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg
from scipy.sparse import csr_array

from tacit.checks import finite, keep, positive, probability, whole
from tacit.errors import InvalidParameter
from tacit.models.arrays import Floats, Ints

NO_TRANSFER = (
    "No direction of taste stands above the noise: at this budget and number of users, only averages are carried from the source "
    "to the target."
)
NO_LINK = (
    "no direction links the domains: at this budget and number of users in both, only averages are carried from the source to the "
    "target. If a user has ratings in a domain, its own directions still help to predict further items there."
)
OF_WHAT = "A direction may be taste, but also how high people rate, or who rates what."
MOST_HEAD = 2_000  # items with second moments: 2 million numbers, and an eigenproblem that takes seconds
MOST_DIRECTIONS = 64
LEAST_RATINGS = 5  # of a user in a domain; with fewer, their ratings there are left out
_STARS = 4.0  # the width of the scale that the defaults are for, 1 to 5
_CENTRE = 0.7  # of the way from low to high: about the mean of ratings that people chose to give
_HEAD = 0.1  # items of the head per user and unit of mu: the noise of more items hides more than they tell
_EVEN = 1_500.0  # users * mu at which offsets would take all of the budget; above it they need a smaller share
_LEAST_SHARE, _MOST_SHARE = 0.2, 0.85
MARGIN = 1.5  # beyond sqrt n + sqrt m: fewer than 1 in 1,000 blocks of noise, from 1 x 1 to 100 x 100, exceed it


class Transfer(Protocol):
    """A model across two domains.

    Items are codes of both catalogues, the source first. Predictions lie on the scale and are not rounded.
    """

    @property
    def n_items(self) -> int:
        """How many items both domains have together."""

    @property
    def n_source(self) -> int:
        """How many items the source domain has; their codes come first."""

    @property
    def directions(self) -> int:
        """How many directions stand above the noise. With 0, predictions are averages and the user's own level."""

    @property
    def crossing(self) -> int:
        """How many of them are seen in both domains. With 0, only averages are carried from one to the other."""

    @property
    def remark(self) -> str:
        """One sentence on how much taste the noise left to carry over."""

    def predict(self, items: ArrayLike, values: ArrayLike, wanted: ArrayLike | None = None) -> Floats:
        """Predictions in stars for one user with these ratings: of the ``wanted`` items, or of all target items in order."""

    def predict_many(self, ratings: csr_array, users: ArrayLike, items: ArrayLike) -> Floats:
        """Predictions in stars for every pair (user, item), from that user's row."""


@dataclass(frozen=True, slots=True)
class TransferSettings:
    """Public constants of a release of moments and of all models from it. Fix them before any rating is read.

    All lengths are in units of the scale. ``users`` is a public order of magnitude of the number of users: it decides
    how large the head is and how the budget is shared, unless ``head`` and ``offset_share`` say so. The defaults are
    one compromise for MovieLens-1M cut in two by genre, a small pair of Amazon domains and synthetic worlds of 1,000
    to 20,000 users; `for_scale` carries them over from 1 to 5 stars to any other scale.
    """

    low: float = 1.0  # the lowest rating, in stars
    high: float = 5.0  # the highest rating, in stars
    # Subtracted from every rating. None: each user's own mean, which says nothing about the domains' means.
    centre: float | None = 3.8
    clip: float = 2.0  # bound on a centred rating
    offset_norm: float = 4.0  # bound on the norm of a user's (centred ratings, mask for each rating)
    mask: float = 0.5
    pair_norm: float = 4.0  # bound on the norm of a user's centred ratings on the head
    users: int = 10_000
    head: int | None = None
    offset_share: float | None = None  # share of mu^2 for the offsets; the rest is for the second moments
    offset_variance: float = 0.12  # of items' means, around the mean of their domain
    rating_variance: float = 0.73  # of a rating, around the user's level and the item's offset
    level_share: float = 1.0  # of a user's level in the source, expected in the target (beta)
    level_ratings: float = 3.0  # pseudo-ratings at the mean for every user: few ratings say little about a level
    taste: float = 0.04  # share of a rating's variance that a direction known without noise explains
    most_directions: int = 8
    edge: float = 1.05  # times the edge of the noise: smaller eigenvalues count as noise
    reach: float = 1.5  # the most that taste may add to a prediction

    def __post_init__(self) -> None:
        low, high = finite("low", self.low), finite("high", self.high)
        if not low < high:
            raise InvalidParameter(f"low must be below high, not {self.low!r} and {self.high!r}.")
        centre = None if self.centre is None else finite("centre", self.centre)
        if centre is not None and not low <= centre <= high:
            raise InvalidParameter(
                f"centre must lie from low to high, or be None for each user's own mean, not {self.centre!r}."
            )
        names = ("clip", "offset_norm", "mask", "pair_norm", "offset_variance", "rating_variance", "taste", "reach")
        keep(
            self,
            low=low,
            high=high,
            centre=centre,
            users=whole("users", self.users, least=1),
            head=None if self.head is None else whole("head", self.head, least=0, most=MOST_HEAD),
            offset_share=None if self.offset_share is None else probability("offset_share", self.offset_share),
            level_share=at_least_0("level_share", self.level_share),
            level_ratings=at_least_0("level_ratings", self.level_ratings),
            most_directions=whole("most_directions", self.most_directions, least=1, most=MOST_DIRECTIONS),
            edge=positive("edge", self.edge),
            **{name: positive(name, getattr(self, name)) for name in names},
        )
        if self.edge < 1.0:
            raise InvalidParameter(f"edge must be at least 1, where the noise ends, not {self.edge!r}.")
        if self.taste >= 1.0:
            raise InvalidParameter(f"taste must be below 1, because it is a share of the variance, not {self.taste!r}.")

    @classmethod
    def for_scale(cls, low: float, high: float, *, users: int = 10_000) -> "TransferSettings":
        """The defaults, stretched from 1 to 5 to ``low`` to ``high``. Bounds are in stars, variances in squared stars."""
        low, high = finite("low", low), finite("high", high)
        if not low < high:
            raise InvalidParameter(f"low must be below high, not {low!r} and {high!r}.")
        unit = (high - low) / _STARS
        return cls(
            low=low,
            high=high,
            centre=low + _CENTRE * (high - low),
            clip=2.0 * unit,
            offset_norm=4.0 * unit,
            mask=0.5 * unit,
            pair_norm=4.0 * unit,
            users=users,
            offset_variance=0.12 * unit**2,
            rating_variance=0.73 * unit**2,
            reach=1.5 * unit,
        )

    @property
    def rest(self) -> float:
        """The level of an unknown user if the domains' means are not released either."""
        return self.low + _CENTRE * (self.high - self.low) if self.centre is None else self.centre

    def head_size(self, items: int, mu: float) -> int:
        """How many of so many items get second moments, at a whole budget of ``mu``, that of Gaussian privacy."""
        items, mu = whole("items", items, least=0), positive("mu", mu)
        wanted = math.ceil(min(_HEAD * self.users * mu, MOST_HEAD)) if self.head is None else self.head
        return min(items, wanted) if min(items, wanted) > 1 else 0  # a pair has two items

    def share_of_offsets(self, mu: float) -> float:
        """The offsets' share of mu^2, with ``mu`` that of Gaussian privacy.

        As mu grows, the share falls more slowly than mu^2 grows, so neither part ever gets less.
        """
        mu = positive("mu", mu)
        if self.offset_share is not None:
            return self.offset_share
        return min(_MOST_SHARE, max(_LEAST_SHARE, _EVEN / (self.users * mu)))

    def explained(self, known: float) -> float:
        """The share of a rating's variance that ``known`` directions explain: at most half of it."""
        return min(0.5, self.taste * known)


class Predictor:
    """The members that all models here have in common."""

    @property
    def remark(self: Transfer) -> str:
        """One sentence on how much taste the noise left to carry over."""
        return remark_on(self.directions, self.crossing)

    def predict(self: Transfer, items: ArrayLike, values: ArrayLike, wanted: ArrayLike | None = None) -> Floats:
        """Predicted ratings in stars, of the wanted items (by default all target items), from one user's own ratings."""
        asked = np.arange(self.n_source, self.n_items, dtype=np.int64) if wanted is None else np.asarray(wanted)
        return self.predict_many(one_row(items, values, self.n_items), np.zeros(asked.size, dtype=np.int64), asked)


@dataclass(frozen=True, eq=False, repr=False)
class Offsets(Predictor):
    """``values`` for every item, around the ``means`` of its domain (source, target). By itself the simplest transfer.

    A user's level is the mean of (rating - mean of the domain - offset) over their k ratings, times ``share`` k / (k
    + ``few``).
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
        """How many items both domains have together."""
        return int(self.values.size)

    @property
    def directions(self) -> int:
        """0: offsets carry no taste."""
        return 0

    @property
    def crossing(self) -> int:
        """0: offsets carry no taste."""
        return 0

    @property
    def expected(self) -> Floats:
        """The expected rating of every item by an unknown user."""
        of_domain = np.where(np.arange(self.n_items) < self.n_source, self.means[0], self.means[1])
        return np.asarray(of_domain + self.values)

    def levels(self, ratings: csr_array) -> tuple[Floats, csr_array]:
        """Each row's level, and its ratings less what is expected and less the mean of these differences."""
        count = np.diff(ratings.indptr)
        left = ratings.data - self.expected[ratings.indices]
        row = np.repeat(np.arange(count.size), count)
        mean = np.bincount(row, left, count.size) / np.maximum(count, 1)
        level = self.share * mean * count / np.maximum(count + self.few, 1)
        return level, csr_array((left - mean[row], ratings.indices, ratings.indptr), shape=ratings.shape)

    def predict_many(self, ratings: csr_array, users: ArrayLike, items: ArrayLike) -> Floats:
        """Predicted ratings in stars for every pair (user, item), from that user's row."""
        rows, position, codes = rows_of(ratings, users, items, self.n_items)
        level, _ = self.levels(rows)
        return self.on_scale(self.expected[codes] + level[position])

    def on_scale(self, values: Floats) -> Floats:
        """Values clipped to the scale."""
        return np.clip(values, self.low, self.high)


def offsets(
    d: ArrayLike, n: ArrayLike, sigma_d: float, sigma_n: float, n_source: int, settings: TransferSettings
) -> Offsets:
    """Offsets from the noisy sums of all items, the source first, and the deviations of their noise.

    If ratings are centred by a constant, the mean of a domain is that constant plus (sum of d) / (sum of n). The
    items' sums are then taken around it, which adds the noise of n to that of d. If ratings are centred by users' own
    means, they say nothing about the domains' means.
    """
    n = released("n", n, np.shape(n))
    if n.ndim != 1:
        raise InvalidParameter("n must be a row with one number for each item.")
    d = released("d", d, n.shape)
    n_source = whole("n_source", n_source, least=0, most=n.size)
    sigma_d, sigma_n = at_least_0("sigma_d", sigma_d), at_least_0("sigma_n", sigma_n)
    variance, mean = np.full(n.size, sigma_d**2), [0.0, 0.0]
    seen = np.maximum(n, sigma_n)
    if settings.centre is not None:
        for side, domain in enumerate((slice(0, n_source), slice(n_source, n.size))):
            # The domain's sum uses n as released: with the floor it would include unrated items.
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
        1.0 if own else settings.level_share,  # only users' own means tell their levels, so they count in full
        0.0 if own else settings.level_ratings,
        settings.low,
        settings.high,
    )


def within(block: Floats, threshold: float, most: int) -> Floats:
    """The directions inside one domain: those above the threshold, and always the strongest."""
    values, vectors = strongest(block, -math.inf, most)
    return vectors[:, : max(1, int((values > threshold).sum()))]


def links(across: Floats, source_directions: Floats, target_directions: Floats, sigma: float) -> int:
    """How many directions link the domains.

    ``across`` are the second moments between them. The directions inside each domain (items x directions) come from
    the other two blocks.
    """
    if not across.size:
        return 0
    rounding = 1e-9 * float(np.linalg.norm(across))
    return max(_above(block, sigma, rounding) for block in (across, source_directions.T @ across @ target_directions))


def _above(block: Floats, sigma: float, rounding: float) -> int:
    """How many singular values of a block exceed those of noise."""
    if not block.size:
        return 0
    noise = sigma * (math.sqrt(block.shape[0]) + math.sqrt(block.shape[1]) + MARGIN)
    return int((linalg.svdvals(block, check_finite=False) > max(noise, rounding)).sum())


def remark_on(directions: int, crossing: int) -> str:
    """The remark for so many directions above the noise, and so many seen in both domains."""
    if directions == 0:
        return NO_TRANSFER
    start = "One direction stands" if directions == 1 else f"{directions} directions stand"
    if crossing == 0:
        return f"{start} above the noise, but {NO_LINK}"
    if directions == 1:
        return f"{start} above the noise and is seen in both domains. {OF_WHAT}"
    return f"{start} above the noise; {crossing} {'is' if crossing == 1 else 'are'} seen in both domains. {OF_WHAT}"


def one_row(items: ArrayLike, values: ArrayLike, n_items: int) -> csr_array:
    """One user's ratings as a table of one row, items ascending, each once."""
    codes, numbers = codes_within(items, n_items), np.asarray(values, dtype=np.float64)
    if numbers.shape != codes.shape or not np.isfinite(numbers).all():
        raise InvalidParameter("every rated item must have one rating, a finite number.")
    order = np.argsort(codes, kind="stable")
    if (np.diff(codes[order]) == 0).any():
        raise InvalidParameter("an item is rated twice: give one rating for each item.")
    return csr_array((numbers[order], codes[order], [0, codes.size]), shape=(1, n_items))


def codes_within(items: ArrayLike, n_items: int) -> Ints:
    """``items`` as codes. Raises InvalidParameter unless all are from 0 to n_items - 1."""
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


def rows_of(ratings: csr_array, users: ArrayLike, items: ArrayLike, n_items: int) -> tuple[csr_array, Ints, Ints]:
    """The rows of the users who are asked for, each once; for each pair the position of its row; and the items."""
    if ratings.shape[1] != n_items:
        raise InvalidParameter(f"ratings must have {n_items} columns, one for each item.")
    codes, people = codes_within(items, n_items), codes_within(users, ratings.shape[0])
    if codes.shape != people.shape:
        raise InvalidParameter("users and items must have the same length.")
    asked, positions = np.unique(people, return_inverse=True)
    return ratings[asked].astype(np.float64), positions.astype(np.int64), codes


def released(name: str, values: ArrayLike, shape: tuple[int, ...]) -> Floats:
    """Released numbers as a copy. Raises InvalidParameter unless they are finite and have this shape."""
    array = np.array(values, dtype=np.float64)
    if array.shape != shape or not np.isfinite(array).all():
        raise InvalidParameter(f"{name} must be finite numbers in the shape {shape}.")
    return array


def strongest(matrix: Floats, threshold: float, most: int) -> tuple[Floats, Floats]:
    """At most ``most`` eigenvalues above the threshold, the largest first, and their eigenvectors.

    The largest entry of an eigenvector is positive, so that equal releases give equal models.
    """
    size = len(matrix)
    if size == 0:
        return np.zeros(0), np.zeros((0, 0))
    values, vectors = linalg.eigh(matrix, subset_by_index=(max(size - most, 0), size - 1), check_finite=False)
    # an eigenvalue of 0 is not a direction, even without noise
    rounding = 1e-9 * float(np.abs(matrix).sum(axis=1).max())
    kept = np.flatnonzero(values > max(threshold, rounding))[::-1]
    chosen = vectors[:, kept]
    return values[kept], chosen * np.sign(chosen[np.abs(chosen).argmax(axis=0), np.arange(kept.size)])


def at_least_0(name: str, value: float) -> float:
    """``value`` as a finite float of at least 0."""
    number = finite(name, value)
    if number < 0.0:
        raise InvalidParameter(f"{name} must be at least 0, not {value!r}.")
    return number
