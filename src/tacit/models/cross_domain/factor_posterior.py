"""Directions of taste from noisy second moments, and a user's posterior along them.

Off its diagonal the matrix of second moments on K head items has noise of deviation sigma, whose eigenvalues end at 2 sigma sqrt K.
An eigenvalue e above ``edge`` times that is kept, shrunk to sqrt(e^2 - 4 K sigma^2): what is left of a spike in a symmetric
matrix of noise once it is weighed by how well its eigenvector is known. With the eigenvectors V and s_i = n_i / mean n,

    loadings of i = V_i sqrt(shrunk e) / (s_i + 0.2), scaled so that the n-weighted mean of |loadings|^2 is h v

and for a user with residuals e, L the loadings of what she rated: taste x = (L^T L + v (1 - h) I)^-1 L^T e. The share h of the
variance v that taste explains is ``taste`` times the sum over directions of c^4, c the cosine of an eigenvector with the
true one: c^2 = 2 shrunk e / (e + shrunk e). A direction that the noise has turned away explains little.

An eigenvector of a taste in one domain has weights in the other, too, which are noise, and two such tastes that are about as strong
come out mixed: weights do not tell whether domains are linked. The block between them does (`links`). Where it shows no
more than noise it is taken to be 0, so that every direction lies in one domain, and nothing is carried over but averages.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from tacit.errors import InvalidParameter
from tacit.models.cross_domain.links import links, within
from tacit.models.cross_domain.offsets import Offsets, deviation, offsets
from tacit.models.cross_domain.settings import TransferSettings
from tacit.models.cross_domain.transfer import (
    Codes,
    Floats,
    codes_within,
    predict_one,
    released,
    remark_on,
    rows_of,
    strongest,
)

_FLOOR = 0.2  # of s_i: what is hardly rated says little of its loadings
_CHUNK = 4_096  # users at a time: each has a small matrix


@dataclass(frozen=True, eq=False, repr=False)
class FactorPosterior:
    """``loadings`` of the ``head`` items (ascending); all other items have none, and are predicted by their offsets."""

    offsets: Offsets
    head: Codes
    loadings: Floats
    noise: float  # variance of a rating that no direction explains
    reach: float
    crossing: int = 0  # of the directions, those that link the domains

    @property
    def n_items(self) -> int:
        return self.offsets.n_items

    @property
    def n_source(self) -> int:
        return self.offsets.n_source

    @property
    def directions(self) -> int:
        return int(self.loadings.shape[1])

    @property
    def remark(self) -> str:
        return remark_on(self.directions, self.crossing)

    def predict(self, items: ArrayLike, values: ArrayLike, wanted: ArrayLike | None = None) -> Floats:
        return predict_one(self, items, values, wanted)

    def predict_many(self, ratings: csr_array, users: ArrayLike, items: ArrayLike) -> Floats:
        rows, place, codes = rows_of(ratings, users, items, self.n_items)
        level, left = self.offsets.levels(rows)
        answer = self.offsets.expected[codes] + level[place]
        if self.directions:
            loadings = np.zeros((self.n_items, self.directions))
            loadings[self.head] = self.loadings
            taste = self._tastes(left, loadings)
            answer += np.clip(np.einsum("pr,pr->p", loadings[codes], taste[place]), -self.reach, self.reach)
        return self.offsets.on_scale(answer)

    def _tastes(self, left: csr_array, loadings: Floats) -> Floats:
        """Each row's posterior mean along the directions."""
        rank = self.directions
        squares = np.einsum("ia,ib->iab", loadings, loadings).reshape(len(loadings), rank * rank)
        tastes = np.zeros((left.shape[0], rank))
        for start in range(0, left.shape[0], _CHUNK):
            part = left[start : start + _CHUNK]
            rated = csr_array((np.ones(part.nnz), part.indices, part.indptr), shape=part.shape)
            precision = (rated @ squares).reshape(-1, rank, rank) + self.noise * np.eye(rank)
            tastes[start : start + _CHUNK] = np.linalg.solve(precision, (part @ loadings)[..., None])[..., 0]
        return tastes


def factor_posterior(
    d: ArrayLike,
    n: ArrayLike,
    sigma_d: float,
    sigma_n: float,
    head: ArrayLike,
    gram: ArrayLike,
    sigma_gram: float,
    n_source: int,
    settings: TransferSettings,
) -> FactorPosterior:
    """From released sums and second moments on the head. The diagonal of ``gram`` is not used."""
    base = offsets(d, n, sigma_d, sigma_n, n_source, settings)
    codes = codes_within(head, base.n_items)
    if (np.diff(codes) <= 0).any():
        raise InvalidParameter("the head must be items in ascending order, each once.")
    matrix = released("gram", gram, (codes.size, codes.size))
    if not np.array_equal(matrix, matrix.T):
        raise InvalidParameter("gram must be symmetric.")
    np.fill_diagonal(matrix, 0.0)
    sigma_gram = deviation("sigma_gram", sigma_gram)
    strength, vectors, cosines = above_the_noise(matrix, sigma_gram, settings)
    first = int(np.searchsorted(codes, base.n_source))  # of the head's target items
    crossing = min(strength.size, _links(matrix, first, sigma_gram, settings)) if strength.size else 0
    if strength.size and not crossing:  # what is seen between the domains is noise: to be moved by it only does harm
        matrix[:first, first:], matrix[first:, :first] = 0.0, 0.0
        strength, vectors, cosines = above_the_noise(matrix, sigma_gram, settings)
    seen = np.maximum(np.asarray(n, dtype=np.float64), sigma_n)[codes]
    explained, total = settings.explained(float((cosines**4).sum())), seen.sum()
    loadings = np.zeros((codes.size, 0))
    if strength.size and total > 0.0:
        loadings = vectors * np.sqrt(strength) / (seen / seen.mean() + _FLOOR)[:, None]
        size = float((seen * np.square(loadings).sum(axis=1)).sum() / total)
        loadings *= math.sqrt(explained * settings.rating_variance / size)
        # taste explains no more of any item than there is: a hardly rated item's loadings are noise
        most = math.sqrt(settings.rating_variance)
        loadings *= (most / np.maximum(np.linalg.norm(loadings, axis=1), most))[:, None]
    left = settings.rating_variance * (1.0 - explained)
    return FactorPosterior(base, codes, loadings, left, settings.reach, crossing if loadings.size else 0)


def _links(matrix: Floats, first: int, sigma: float, settings: TransferSettings) -> int:
    inside = [
        within(block, settings.edge * 2.0 * sigma * math.sqrt(len(block)), settings.most_directions)
        for block in (matrix[:first, :first], matrix[first:, first:])
    ]
    return links(matrix[:first, first:], inside[0], inside[1], sigma)


def above_the_noise(matrix: Floats, sigma: float, settings: TransferSettings) -> tuple[Floats, Floats, Floats]:
    """The shrunk eigenvalues above the edge, the largest first; their eigenvectors; the cosine of each with the true one."""
    noise = 2.0 * sigma * math.sqrt(len(matrix))
    values, vectors = strongest(matrix, settings.edge * noise, settings.most_directions)
    shrunk = np.sqrt(np.square(values) - noise**2)
    return shrunk, vectors, np.sqrt(2.0 * shrunk / (values + shrunk))
