"""X-Map on noisy second moments: the mapping and the prediction as published, on cosines that were released once and for all.

Cosines G_ij / sqrt((G_ii + a)(G_jj + a)) stand for X-SIM between the domains and for similarities within the target. The rest is
post-processing: a source item is replaced by the target item of largest cosine above 0, and ratings of what an alter ego holds
are weighed by similarity. The base of a prediction is the shrunk offset of `offsets` around its domain's mean, and not the mean
rating d / n as published: of an item that few rated both are noise, and their ratio may be anything. An arg-max over noisy numbers
wastes what they tell; `factor_posterior` is the better use of a budget.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from tacit.checks import positive, whole
from tacit.models.cross_domain.bridge import EDGE, own_offsets, symmetric
from tacit.models.cross_domain.links import links, within
from tacit.models.cross_domain.offsets import Offsets, deviation
from tacit.models.cross_domain.settings import MOST_DIRECTIONS, TransferSettings
from tacit.models.cross_domain.transfer import Codes, Floats, predict_one, remark_on, rows_of, strongest

NONE = -1  # a source item without a replacement; a place without a similar item
_SHRINK = 0.2  # in the denominator: a single dissimilar item is no reason to move far
_CHUNK = 1_024  # users at a time


@dataclass(frozen=True, eq=False, repr=False)
class HonestXMap:
    """``replacements`` are target items counted from 0, as are the rows and entries of ``similar`` items; -1 for none."""

    offsets: Offsets
    replacements: Codes
    similar: Codes  # target items x k
    cosines: NDArray[np.float64]
    directions: int
    crossing: int = 0  # of the directions, those that link the domains

    @property
    def n_items(self) -> int:
        """How many items both domains have together."""
        return self.offsets.n_items

    @property
    def n_source(self) -> int:
        """How many items the source domain has; their codes come first."""
        return self.offsets.n_source

    @property
    def remark(self) -> str:
        """In one sentence, how much taste the noise left to carry over."""
        return remark_on(self.directions, self.crossing)

    def predict(self, items: ArrayLike, values: ArrayLike, wanted: ArrayLike | None = None) -> Floats:
        """Predicted ratings, in stars, of the wanted items (all target items by default) from one user's own ratings."""
        return predict_one(self, items, values, wanted)

    def predict_many(self, ratings: csr_array, users: ArrayLike, items: ArrayLike) -> Floats:
        """Items of the source are predicted by offsets and levels alone."""
        rows, place, codes = rows_of(ratings, users, items, self.n_items)
        level, _ = self.offsets.levels(rows)
        answer = self.offsets.expected[codes] + level[place]
        if self.directions:
            for start in range(0, rows.shape[0], _CHUNK):
                moved = self._moved(rows[start : start + _CHUNK], level[start : start + _CHUNK])
                here = np.flatnonzero((place >= start) & (place < start + _CHUNK) & (codes >= self.n_source))
                answer[here] += moved[place[here] - start, codes[here] - self.n_source]
        return self.offsets.on_scale(answer)

    def _moved(self, rows: csr_array, level: Floats) -> Floats:
        """How far each target item is moved from its base by what is similar in the alter ego."""
        values, held = self.alter_egos(rows)
        base = self.offsets.expected[self.n_source :] + level[:, None]
        row = np.repeat(np.arange(len(self.similar)), (self.similar != NONE).sum(axis=1))
        places = row, self.similar[self.similar != NONE]
        weight = csr_array((self.cosines[self.similar != NONE], places), shape=(len(self.similar),) * 2)
        above = (weight @ np.where(held, values - base, 0.0).T).T
        return np.asarray(above / ((abs(weight) @ held.T.astype(np.float64)).T + _SHRINK))

    def alter_egos(self, rows: csr_array) -> tuple[Floats, NDArray[np.bool_]]:
        """Users x target items: the mean of the ratings that an item stands in for, real ones first; and where there are any."""
        mapped = np.flatnonzero(self.replacements != NONE)
        n_target = self.n_items - self.n_source
        to = csr_array((np.ones(mapped.size), (mapped, self.replacements[mapped])), shape=(self.n_source, n_target))
        rated = csr_array((np.ones(rows.nnz), rows.indices, rows.indptr), shape=rows.shape)
        count = (rated[:, : self.n_source] @ to).toarray()
        values = (rows[:, : self.n_source] @ to).toarray() / np.maximum(count, 1.0)
        real = rated[:, self.n_source :].toarray() > 0.0
        return np.where(real, rows[:, self.n_source :].toarray(), values), real | (count > 0.0)


def honest_x_map(
    gram: ArrayLike,
    d: ArrayLike,
    n: ArrayLike,
    sigmas: tuple[float, float, float, float],
    n_source: int,
    settings: TransferSettings,
    *,
    k: int = 50,
    edge: float = EDGE,
    anyway: bool = False,
) -> HonestXMap:
    """From G (with its diagonal), d and n; ``sigmas`` are the deviations of G, d, n and of users, as released.

    ``anyway``: items are replaced even where nothing is seen to link the domains, for comparison.
    """
    k, edge = whole("k", k, least=1), positive("edge", edge)
    noise, sigma_d, sigma_n, _ = (deviation("a sigma", sigma) for sigma in sigmas)
    base = own_offsets(d, n, sigma_d, sigma_n, n_source, settings)
    matrix = symmetric(gram, base.n_items)
    size = np.sqrt(np.maximum(np.diag(matrix), 0.0) + max(noise, np.finfo(float).tiny))
    np.fill_diagonal(matrix, 0.0)
    found, _ = strongest(matrix, edge * noise * math.sqrt(len(matrix)), MOST_DIRECTIONS)
    cosine = np.clip(matrix / np.outer(size, size), -1.0, 1.0)
    n_target = base.n_items - base.n_source
    crossing = min(found.size, _links(matrix, base.n_source, noise, edge)) if found.size else 0
    replacements = np.full(base.n_source, NONE, dtype=np.int64)
    similar, cosines = (
        np.full((n_target, min(k, n_target)), NONE, dtype=np.int64),
        np.zeros((n_target, min(k, n_target))),
    )
    if found.size and n_target and base.n_source:
        across, inside = cosine[: base.n_source, base.n_source :], cosine[base.n_source :, base.n_source :]
        if crossing or anyway:  # the largest of numbers that are mere noise is no replacement
            best = across.argmax(axis=1)
            replacements = np.where(across.max(axis=1) > 0.0, best, NONE)
        # the item itself is no evidence of itself (a real rating of it is no prediction either) and takes none of its k places
        others = np.where(np.eye(n_target, dtype=np.bool_), -np.inf, inside)
        order = np.argsort(-others, axis=1, kind="stable")[:, : similar.shape[1]]
        cosines = np.take_along_axis(inside, order, axis=1)
        similar = np.where((order != np.arange(n_target)[:, None]) & (cosines != 0.0), order, NONE)
        cosines = np.where(similar != NONE, cosines, 0.0)
    return HonestXMap(base, replacements, similar, cosines, int(found.size), crossing)


def _links(matrix: Floats, n_source: int, noise: float, edge: float) -> int:
    blocks = matrix[:n_source, :n_source], matrix[n_source:, n_source:]
    taken, given = (within(block, edge * noise * math.sqrt(len(block)), MOST_DIRECTIONS) for block in blocks)
    return links(matrix[:n_source, n_source:], taken, given, noise)
