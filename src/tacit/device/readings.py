"""A metric guarantee in plain numbers: what one signal may tell about one rating, among look-alikes, about anybody.

Epsilon per unit of distance says nothing to a person. Each reading states the distance it is read at; all of them are computed
by ``tacit.guarantees``. The reading for one rating uses this user's own counts: it is for her eyes and stays on the device.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from tacit.checks import whole
from tacit.errors import InvalidParameter
from tacit.guarantees import Guarantee, anywhere, within
from tacit.guarantees.rounding import shown_up
from tacit.models.features import FeatureSpace, GenreProfile, moved_by_one_rating
from tacit.models.neighbourhood import cluster_diameters

CLUSTER = 5  # look-alikes in one neighbourhood
QUANTILES = (0.25, 0.5, 0.75)
_LEAST_RADIUS = 2.0**-20  # a step of the grid: what is nearer is one point
_PRIVATE = "readings follow from a private profile and are not written, copied or sent: show them to the user."
_SPARE = 1.0 + 2.0**-40  # shares are floats: a distance of them may be off in its last digits


@dataclass(frozen=True)
class OneRating:
    """What a signal may tell about one rating of this profile, at most: private, because it follows from the profile's counts.

    ``added``: a new rating of a film with at most ``genres`` genres. ``removed``: the one of hers that weighs most. ``moved``: the
    same, from liked to disliked or back. None where she has no such rating.
    """

    genres: int
    added: Guarantee
    removed: Guarantee | None
    moved: Guarantee | None

    def __repr__(self) -> str:
        return f"OneRating(genres={self.genres}, private)"

    def __reduce_ex__(self, _: object) -> NoReturn:
        raise InvalidParameter(_PRIVATE)


@dataclass(frozen=True)
class Neighbourhood:
    """Among look-alikes: at least a share ``quantile`` of clusters of 5 has at most the diameter that ``guarantee`` is read at."""

    quantile: float
    radius: float  # L1 distance of features
    guarantee: Guarantee

    def __str__(self) -> str:
        share, radius = f"{self.quantile:.0%} of clusters", shown_up(self.radius, 3)
        return f"among {CLUSTER} look-alikes within {radius} ({share}): {_shown(self.guarantee)}"


@dataclass(frozen=True)
class Readings:
    """One signal, read at several distances."""

    eta: Fraction  # L1 distance for one nat of loss
    signal: Guarantee  # epsilon per unit of L1 distance
    one_rating: OneRating | None  # None where features are not made of counts
    neighbourhood: tuple[Neighbourhood, ...]  # empty without a population
    anywhere: Guarantee  # this user against any other

    def __str__(self) -> str:
        lines = [f"one signal, eta = {self.eta}: {self.signal}"]
        if self.one_rating is not None:
            named = {"added": self.one_rating.added, "removed": self.one_rating.removed, "moved": self.one_rating.moved}
            lines += [f"  one rating {how}: {_shown(found)}" for how, found in named.items() if found is not None]
        lines += [f"  {one}" for one in self.neighbourhood]
        return "\n".join([*lines, f"  anybody: {_shown(self.anywhere)}"])

    def __reduce_ex__(self, _: object) -> NoReturn:
        raise InvalidParameter(_PRIVATE)


def readings_of(
    eta: Fraction,
    guarantee: Guarantee,
    space: FeatureSpace,
    ratings: tuple[NDArray[Any], NDArray[Any]],
    *,
    genres: int | None = None,
    population: NDArray[Any] | None = None,
    rng: np.random.Generator,
) -> Readings:
    """The readings of one signal for a user with these ratings, among a public population."""
    near: Sequence[Neighbourhood] = ()
    if population is not None:
        diameters = cluster_diameters(population, CLUSTER, rng=rng)
        # A cluster's own diameter, not one in between: at least the stated share of clusters lies within.
        radii = np.quantile(diameters, QUANTILES, method="inverted_cdf").tolist()
        near = [_near(guarantee, quantile, radius) for quantile, radius in zip(QUANTILES, radii, strict=True)]
    rating = one_rating(guarantee, space, *ratings, genres=genres) if isinstance(space, GenreProfile) else None
    return Readings(eta, guarantee, rating, tuple(near), anywhere(guarantee, space.diameter))


def one_rating(
    guarantee: Guarantee, space: GenreProfile, items: NDArray[Any], values: NDArray[Any], *, genres: int | None = None
) -> OneRating:
    """The rating-level reading: 2g/(N + g) in each block that a rating of a film with g genres touches."""
    most = space.most_genres if genres is None else whole("genres", genres, least=1)
    blocks = space.counts(np.array([0, len(items)]), items, values)[0].reshape(2, -1).sum(axis=1)
    own = space.flags[items].sum(axis=1)
    block = np.where(np.asarray(values) >= space.liked_from, 0, 1)
    removed, moved = [], []
    for size, place in zip(own.tolist(), block.tolist(), strict=True):
        if size <= most:
            gone = _moved(blocks[place] - size, size)  # N is counted without the film
            removed.append(gone)
            moved.append(gone + _moved(blocks[1 - place], size))
    added = max(_moved(count, size) for count in blocks for size in range(most + 1))
    return OneRating(
        most,
        _within(guarantee, added),
        _within(guarantee, max(removed)) if removed else None,
        _within(guarantee, max(moved)) if moved else None,
    )


def _moved(count: float, size: int) -> float:
    return moved_by_one_rating(count, size) if size else 0.0  # a film without genres moves nothing


def _near(guarantee: Guarantee, quantile: float, radius: float) -> Neighbourhood:
    return Neighbourhood(quantile, radius, _within(guarantee, radius))


def _within(guarantee: Guarantee, radius: float) -> Guarantee:
    return within(guarantee, max(radius, _LEAST_RADIUS) * _SPARE)


def _shown(guarantee: Guarantee) -> str:
    return "no guarantee" if guarantee.promises_nothing else f"epsilon = {shown_up(guarantee.epsilon, 3)}"
