"""What a slate is worth: to how many it appeals, how different its films are, and how little known.

Popularity and novelty count the likes of the users that slates are made from, coverage asks users that were held out.
"""

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from tacit.evaluation.private_slates.films import Films, Floats, Items
from tacit.evaluation.result import Row
from tacit.evaluation.statistics import mean

POPULARITY = "popularity"  # likes of the slate / likes of the k most liked films
COVERAGE = "coverage"  # share of held-out users who like at least one film of the slate
GENRES = "genre diversity"  # 1 - mean cosine of the genres of two films of the slate
DISTANCE = (
    "intra-list distance"  # 1 - mean cosine of who likes two films of the slate; a film without likes is far from all
)
NOVELTY = "novelty"  # mean of -log2 of the share of users who like a film; with one like and one user more, so that it is finite
METRICS = (POPULARITY, COVERAGE, GENRES, DISTANCE, NOVELTY)


def measured(films: Films, slates: Items) -> dict[str, Floats]:
    """Every metric of every slate (slates x k)."""
    k = slates.shape[1]
    likes = films.counts[slates]
    best = np.sort(films.counts)[::-1][:k]
    return {
        POPULARITY: likes.sum(axis=1) / max(1, int(best.sum())),
        COVERAGE: covered(films, slates).mean(axis=1),
        GENRES: np.array([_apart(films.genres[slate] @ films.genres[slate].T) for slate in slates]),
        DISTANCE: np.array([_liked_apart(films, slate) for slate in slates]),
        NOVELTY: -np.log2((likes + 1.0) / (films.users + 1.0)).mean(axis=1),
    }


def covered(films: Films, slates: Items) -> NDArray[np.bool_]:
    """slates x held-out users: whether she likes a film of the slate."""
    found = np.zeros((len(slates), films.held_out.shape[0]), dtype=np.bool_)
    for place, slate in enumerate(slates):
        found[place, films.held_out_by_film[slate].indices] = True
    return found


def rows(
    method: str, setting: Mapping[str, int | float | str], values: Mapping[str, Floats], groups: Items | None = None
) -> Iterator[Row]:
    """The means over slates. ``groups``: which slates were drawn from one and the same noise, and so are not independent."""
    for metric, found in values.items():
        yield Row.of(method, metric, mean(found, groups), **setting)


def _liked_apart(films: Films, slate: Items) -> float:
    liked = films.by_film[slate]
    both = (liked @ liked.T).toarray()
    roots = np.sqrt(np.maximum(np.diagonal(both), 1.0))
    return _apart(both / np.outer(roots, roots))


def _apart(cosines: Floats) -> float:
    """1 - the mean over pairs of different films; 0 where there is no pair."""
    k = len(cosines)
    return 1.0 - float(cosines.sum() - np.trace(cosines)) / (k * (k - 1)) if k > 1 else 0.0
