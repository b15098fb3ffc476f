"""Figures 2 to 5: how good the best item is, how much neighbouring users differ, how near users are to each other."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from tacit.evaluation.multi_selection import paper
from tacit.evaluation.multi_selection.losses import Floats
from tacit.evaluation.multi_selection.population import Population
from tacit.evaluation.result import Row
from tacit.evaluation.statistics import mean
from tacit.models import loops
from tacit.models.multi_selection import cluster_diameters
from tacit.models.scorers import Scorer, class_scores

CENTRES = 1500
TOP = 5  # items that a user likes most
SIZES = (5, 10, 15)
_FEWEST_PAIRS = 100  # of users within 0.1; with fewer, the nearest pairs stand for them
_DISTANCES = 1 << 22  # held at a time


def cumulative(method: str, metric: str, values: Floats, **setting: int | float | str) -> Iterator[Row]:
    """The share of values up to each of 41 points between the least and the largest."""
    for point in np.linspace(values.min(), values.max(), 41):
        share = float((values <= point).mean())
        error = float(np.sqrt(share * (1.0 - share) / len(values)))
        yield Row(method, setting | {"at": round(float(point), 6)}, f"{metric}, cumulative", share, error, len(values))


def best_rows(best: Floats, users: NDArray[np.int64]) -> Iterator[Row]:
    """Figure 2: the utility of everybody's best item."""
    yield Row.of("network", "best utility", mean(best, users))
    yield from cumulative("network", "best utility", best)


def neighbour_rows(people: Population, scorer: Scorer, notes: list[str], *, rng: np.random.Generator) -> Iterator[Row]:
    """Figures 3 to 5, over all users, look-alikes or not."""
    centres = rng.permutation(people.ratings.n_users)[:CENTRES]
    nearest, within = _neighbours(people.features, centres, paper.NEIGHBOUR_DISTANCE, rng)
    first, second = centres, within
    if (within >= 0).sum() >= _FEWEST_PAIRS:
        first, second = centres[within >= 0], within[within >= 0]
    else:
        notes.append(
            f"Figure 3: only {(within >= 0).sum()} of {len(centres):,} users have another within distance "
            f"{paper.NEIGHBOUR_DISTANCE:g}; each user's nearest neighbour is taken instead."
        )
        second = nearest[:, 1]
    apart = np.abs(people.features[first] - people.features[second]).sum(axis=1)
    lost = _difference(people, scorer, first, second)
    yield Row.of("users", "neighbour distance", mean(apart))
    yield Row.of("users", "neighbour difference", mean(lost), distance=paper.NEIGHBOUR_DISTANCE)
    yield from cumulative("users", "neighbour difference", lost)
    repeated = _duplication(people, scorer, nearest)
    yield Row.of("users", "duplication", mean(repeated), size=TOP)
    yield from cumulative("users", "duplication", repeated, size=TOP)
    for size in SIZES:
        if people.ratings.n_users < size:
            continue
        diameters = cluster_diameters(people.features, size, centres=CENTRES, rng=rng)
        inside = (diameters <= paper.CLUSTER_RADIUS).astype(np.float64)
        yield Row.of("users", "clusters within", mean(inside), size=size, radius=paper.CLUSTER_RADIUS)
        yield Row.of("users", "cluster diameter", mean(diameters), size=size)
        yield from cumulative("users", "cluster diameter", diameters, size=size)


def _neighbours(
    features: Floats, centres: NDArray[np.int64], radius: float, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each centre: itself and the 4 nearest others; and one other within the radius, drawn at random (-1: nobody)."""
    nearest = np.empty((len(centres), TOP), dtype=np.int64)
    within = np.full(len(centres), -1, dtype=np.int64)
    rows = max(1, _DISTANCES // len(features))
    for first in range(0, len(centres), rows):
        part = centres[first : first + rows]
        apart = cdist(features[part], features, "cityblock")
        apart[np.arange(len(part)), part] = -1.0  # a user is nearest to herself, also beside a twin
        order = np.argpartition(apart, TOP - 1, axis=1)[:, :TOP]
        nearest[first : first + rows] = np.take_along_axis(
            order, np.argsort(np.take_along_axis(apart, order, axis=1), axis=1), axis=1
        )
        for place, row in enumerate(apart):
            others = np.flatnonzero((row >= 0.0) & (row <= radius))
            if others.size:
                within[first + place] = rng.choice(others)
    return nearest, within


def _difference(people: Population, scorer: Scorer, first: NDArray[Any], second: NDArray[Any]) -> Floats:
    """By how much a user's mean rating of her own top 5 exceeds that of her neighbour's top 5."""
    own, other = class_scores(scorer, people.features[first]), class_scores(scorer, people.features[second])
    of = scorer.classes.of
    values = np.empty(len(first))
    for place, (mine, theirs) in enumerate(zip(_tops(scorer, own), _tops(scorer, other), strict=True)):
        values[place] = own[place][of[mine]].mean() - own[place][of[theirs]].mean()
    return values


def _duplication(people: Population, scorer: Scorer, clusters: NDArray[np.int64]) -> Floats:
    """1 - (different items) / 25 among the top 5 items of 5 neighbouring users."""
    who, place = np.unique(clusters, return_inverse=True)
    tops = _tops(scorer, class_scores(scorer, people.features[who]))
    found: Floats = (
        1.0 - np.array([len(np.unique(tops[cluster])) for cluster in place.reshape(clusters.shape)]) / TOP**2
    )
    return found


def _tops(scorer: Scorer, scores: NDArray[np.float32]) -> NDArray[np.int64]:
    """users x 5 items: by score, then by id."""
    classes = scorer.classes
    listed, kept, lengths = loops.choose().top_lists(scores, classes.sizes, classes.starts, classes.members, TOP)
    tops = np.empty((len(scores), TOP), dtype=np.int64)
    for user, (found, counts, length) in enumerate(zip(listed, kept, lengths, strict=True)):
        members = [
            classes.members[classes.starts[c] : classes.starts[c] + n]
            for c, n in zip(found[:length], counts, strict=False)
        ]
        tops[user] = np.concatenate(members)[:TOP]
    return tops
