"""How near look-alikes are to each other in a public population: what radius an epsilon per distance may be read at."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from tacit.checks import whole
from tacit.errors import InvalidParameter

_DISTANCES = 1 << 22  # held at a time: 32 MB


def cluster_diameters(
    population: NDArray[Any], size: int = 5, *, centres: int = 1500, rng: np.random.Generator
) -> NDArray[np.float64]:
    """The L1 diameters of clusters: a person drawn from the population, and the size - 1 nearest to her.

    Within a cluster of diameter R an epsilon per unit of distance is epsilon * R. ``centres`` people are drawn without
    replacement, or all are taken where there are no more.
    """
    people = np.asarray(population, dtype=np.float64)
    size, centres = whole("size", size, least=2), whole("centres", centres, least=1)
    if people.ndim != 2 or len(people) < size or not np.isfinite(people).all():
        raise InvalidParameter(f"the population must be a table of at least {size} rows of finite features.")
    drawn = rng.permutation(len(people))[:centres]
    diameters = np.empty(len(drawn))
    rows = max(1, _DISTANCES // len(people))
    for first in range(0, len(drawn), rows):
        part = slice(first, first + rows)
        nearest = np.argpartition(cdist(people[drawn[part]], people, "cityblock"), size - 1, axis=1)[:, :size]
        diameters[part] = _diameters(people[nearest])
    return diameters


def _diameters(clusters: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of each cluster (clusters x members x features): the largest distance of two members."""
    largest = np.zeros(len(clusters))
    for member in range(1, clusters.shape[1]):  # each with those before it
        apart = np.abs(clusters[:, :member] - clusters[:, member : member + 1]).sum(axis=2)
        np.maximum(largest, apart.max(axis=1), out=largest)
    return largest
