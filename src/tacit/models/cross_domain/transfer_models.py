"""Three models across two domains from noisy moments: a posterior along directions of taste, a bridge, and X-Map.

**Factor posterior.** Off its diagonal, the matrix of second moments on K head items has noise of deviation sigma,
whose eigenvalues end at 2 sigma sqrt K. An eigenvalue e above ``edge`` times that is kept, shrunk to sqrt(e^2 - 4 K
sigma^2): what is left of a spike in a symmetric matrix of noise, weighed by how well its eigenvector is known. With
the eigenvectors V and s_i = n_i / mean n,

    loadings of i = V_i sqrt(shrunk e) / (s_i + 0.2), scaled so that the n-weighted mean of |loadings|^2 is h v

and for a user with residuals e, with L the loadings of their rated items: taste x = (L^T L + v (1 - h) I)^-1 L^T e.
The share h of the variance v that taste explains is ``taste`` times the sum over directions of c^4, with c the cosine
of an eigenvector with the true one: c^2 = 2 shrunk e / (e + shrunk e). A direction that the noise has turned away
explains little.

An eigenvector of a taste in one domain also has weights in the other, which are noise, and two such tastes of about
equal strength come out mixed. So weights do not show whether domains are linked. The block between them does
(`links`). If it shows no more than noise, it counts as 0: every direction then lies in one domain, and only averages
are carried over.

**Bridge.** Ratings of the target are regressed on those of the source. G = sum of z z^T over users, z centred by
users' own means. Its blocks within a domain are scaled from that domain's users, u of them, to the u_B who are in
both, and the part that items' offsets alone explain, u_B (d_i / u)(d_j / u), is subtracted. The directions of both
blocks above the noise are kept, (V_S, e_S) and V_T, and

    W = V_S (e_S + l)^-1 V_S^T G_ST V_T V_T^T,    l = 2 max(median of e_S / 10, sigma)

turns a user's z_S into expected sums over the target, which are divided by the share of users who rate an item.

**X-Map on noisy moments** (`honest_x_map`). The mapping and the prediction are as published, but on cosines that were
released once: G_ij / sqrt((G_ii + a)(G_jj + a)) replaces X-SIM between the domains and similarities within the
target. The rest is post-processing: a source item is replaced by the target item of largest cosine above 0, and the
ratings of an alter ego are weighted by similarity. The base of a prediction is the shrunk offset around its domain's
mean, not the mean rating d / n as published: for an item with few ratings both are noise, and their ratio may be
anything. An arg-max over noisy numbers wastes information; `factor_posterior` is the better use of a budget.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from tacit.checks import positive, whole
from tacit.errors import InvalidParameter
from tacit.models.arrays import Floats, Ints
from tacit.models.cross_domain.transfer import (
    MOST_DIRECTIONS,
    Offsets,
    Predictor,
    TransferSettings,
    at_least_0,
    codes_within,
    links,
    offsets,
    released,
    rows_of,
    strongest,
    within,
)

_FLOOR = 0.2  # added to s_i: rarely rated items say little about their loadings
_CHUNK = 4_096  # users at a time, each with a small matrix
EDGE = 3.0  # times sigma sqrt n; noise ends at 2, but directions just above 2 still made predictions worse
MOST = 12  # directions of a bridge
NONE = -1  # marks a source item without a replacement, or no further similar item
_SHRINK = 0.2  # in the denominator: one hardly similar item must not move a prediction far
_X_MAP_CHUNK = 1_024  # users at a time in X-Map


class AroundOffsets(Predictor, ABC):
    """A model that adds taste to a base of offsets."""

    offsets: Offsets
    if TYPE_CHECKING:  # a field of one model, so it cannot be a property here

        @property
        def directions(self) -> int: ...

    @property
    def n_items(self) -> int:
        """How many items both domains have together."""
        return self.offsets.n_items

    @property
    def n_source(self) -> int:
        """How many items the source domain has; their codes come first."""
        return self.offsets.n_source

    def predict_many(self, ratings: csr_array, users: ArrayLike, items: ArrayLike) -> Floats:
        """Predicted ratings in stars for every pair (user, item), from that user's row.

        A bridge and X-Map predict items of the source by offsets and levels alone.
        """
        rows, position, codes = rows_of(ratings, users, items, self.n_items)
        level, left = self.offsets.levels(rows)
        answer = self.offsets.expected[codes] + level[position]
        if self.directions:
            answer += self._added(rows, level, left, position, codes)
        return self.offsets.on_scale(answer)

    @abstractmethod
    def _added(self, rows: csr_array, level: Floats, left: csr_array, position: Ints, codes: Ints) -> Floats:
        """What taste adds to each pair: ``position`` is its row, ``left`` the rows' residuals."""


@dataclass(frozen=True, eq=False, repr=False)
class FactorPosterior(AroundOffsets):
    """``loadings`` of the ``head`` items (ascending). All other items have none, and are predicted by their offsets."""

    offsets: Offsets
    head: Ints
    loadings: Floats
    noise: float  # variance of a rating that no direction explains
    reach: float
    crossing: int = 0  # how many directions link the domains

    @property
    def directions(self) -> int:
        """How many directions of taste stand above the noise."""
        return int(self.loadings.shape[1])

    def _added(self, rows: csr_array, level: Floats, left: csr_array, position: Ints, codes: Ints) -> Floats:
        loadings = np.zeros((self.n_items, self.directions))
        loadings[self.head] = self.loadings
        taste = self._tastes(left, loadings)[position]
        return np.asarray(np.clip(np.einsum("pr,pr->p", loadings[codes], taste), -self.reach, self.reach))

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
    """The posterior from released sums and second moments on the head. It ignores the diagonal of ``gram``."""
    base = offsets(d, n, sigma_d, sigma_n, n_source, settings)
    codes = codes_within(head, base.n_items)
    if (np.diff(codes) <= 0).any():
        raise InvalidParameter("head must be items in ascending order, each of them once.")
    matrix = symmetric(gram, codes.size)
    np.fill_diagonal(matrix, 0.0)
    sigma_gram = at_least_0("sigma_gram", sigma_gram)
    strength, vectors, cosines = above_the_noise(matrix, sigma_gram, settings)
    first = int(np.searchsorted(codes, base.n_source))  # of the head's target items
    crossing = 0
    if strength.size:
        inside = settings.edge * 2.0 * sigma_gram
        crossing = min(strength.size, _links(matrix, first, sigma_gram, inside, settings.most_directions))
    if strength.size and not crossing:  # the block between the domains is noise, which would only do harm
        matrix[:first, first:], matrix[first:, :first] = 0.0, 0.0
        strength, vectors, cosines = above_the_noise(matrix, sigma_gram, settings)
    seen = np.maximum(np.asarray(n, dtype=np.float64), sigma_n)[codes]
    explained, total = settings.explained(float((cosines**4).sum())), seen.sum()
    loadings = np.zeros((codes.size, 0))
    if strength.size and total > 0.0:
        loadings = vectors * np.sqrt(strength) / (seen / seen.mean() + _FLOOR)[:, None]
        size = float((seen * np.square(loadings).sum(axis=1)).sum() / total)
        loadings *= math.sqrt(explained * settings.rating_variance / size)
        # Taste explains no more of an item than its variance: the loadings of a rarely rated item are noise.
        most = math.sqrt(settings.rating_variance)
        loadings *= (most / np.maximum(np.linalg.norm(loadings, axis=1), most))[:, None]
    left = settings.rating_variance * (1.0 - explained)
    return FactorPosterior(base, codes, loadings, left, settings.reach, crossing if loadings.size else 0)


def above_the_noise(matrix: Floats, sigma: float, settings: TransferSettings) -> tuple[Floats, Floats, Floats]:
    """The shrunk eigenvalues above the edge, the largest first; their eigenvectors; and the cosine of each with the true one."""
    noise = 2.0 * sigma * math.sqrt(len(matrix))
    values, vectors = strongest(matrix, settings.edge * noise, settings.most_directions)
    shrunk = np.sqrt(np.square(values) - noise**2)
    return shrunk, vectors, np.sqrt(2.0 * shrunk / (values + shrunk))


def _links(matrix: Floats, first: int, sigma: float, inside: float, most: int) -> int:
    """How many directions link the domains, the items before ``first`` and the others, under noise of deviation ``sigma``.

    ``inside`` times the root of a domain's size is the threshold of the directions inside it, of which at most ``most`` count.
    """
    source, target = (
        within(block, inside * math.sqrt(len(block)), most)
        for block in (matrix[:first, :first], matrix[first:, first:])
    )
    return links(matrix[:first, first:], source, target, sigma)


@dataclass(frozen=True, eq=False, repr=False)
class Bridge(AroundOffsets):
    """Target ratings from source ratings, by a regression.

    ``weights`` (source items x directions) turn a user's centred source ratings into tastes, and ``loadings`` turn
    these into target ratings.
    """

    offsets: Offsets
    weights: Floats
    loadings: Floats  # target items x directions
    clip: float
    norm: float
    reach: float
    crossing: int = 0  # how many directions link the domains

    @property
    def directions(self) -> int:
        """How many directions of taste stand above the noise."""
        return int(self.loadings.shape[1])

    def _added(self, rows: csr_array, level: Floats, left: csr_array, position: Ints, codes: Ints) -> Floats:
        taste = self._tastes(left)[position]
        loadings = np.vstack([np.zeros((self.n_source, self.directions)), self.loadings])[codes]
        return np.asarray(np.clip(np.einsum("pr,pr->p", loadings, taste), -self.reach, self.reach))

    def _tastes(self, left: csr_array) -> Floats:
        """Residuals bounded like ratings before a release, over both domains, and then weighted for the source."""
        centred = left.copy()
        np.clip(centred.data, -self.clip, self.clip, out=centred.data)
        norm = np.sqrt(centred.multiply(centred).sum(axis=1))
        factor = self.norm / np.maximum(norm, self.norm)
        return np.asarray((centred[:, : self.n_source] @ self.weights) * factor[:, None])


def bridge(
    gram: ArrayLike,
    d: ArrayLike,
    n: ArrayLike,
    users: ArrayLike,
    sigmas: tuple[float, float, float, float],
    n_source: int,
    settings: TransferSettings,
    *,
    edge: float = EDGE,
    most: int = MOST,
) -> Bridge:
    """The bridge from G (with its diagonal), d, n and the users in (source alone, target alone, both).

    ``sigmas`` are the deviations of the four.
    """
    edge, most = positive("edge", edge), whole("most", most, least=1, most=MOST_DIRECTIONS)
    noise, sigma_d, sigma_n, sigma_users = (at_least_0("a sigma", sigma) for sigma in sigmas)
    base = own_offsets(d, n, sigma_d, sigma_n, n_source, settings)
    matrix, (both, in_source, in_target) = symmetric(gram, base.n_items), per_domain(users, sigma_users)
    sums = released("d", d, (base.n_items,))
    source, target = slice(0, base.n_source), slice(base.n_source, base.n_items)
    mean = np.concatenate([sums[source] / in_source, sums[target] / in_target])  # of z, over the users of its domain
    explained = both * np.outer(mean, mean)

    def within(part: slice, scale: float) -> tuple[Floats, Floats]:
        block = matrix[part, part] * scale - explained[part, part]
        return strongest(block, edge * noise * scale * math.sqrt(len(block)), most)

    scale = both / in_source
    strength, source_directions = within(source, scale)
    _, target_directions = within(target, both / in_target)
    if not (strength.size and target_directions.shape[1]):
        source_directions, target_directions, strength = (
            source_directions[:, :0],
            target_directions[:, :0],
            strength[:0],
        )
    ridge = 2.0 * max(0.1 * float(np.median(strength)), noise * scale) if strength.size else 1.0
    across = matrix[source, target] - explained[source, target]
    crossing = 0
    if strength.size:
        crossing = min(target_directions.shape[1], links(across, source_directions, target_directions, noise))
    weights = source_directions / (strength + ridge) @ (source_directions.T @ across @ target_directions)
    if not crossing:  # the block between the domains is noise, which would only do harm
        weights = np.zeros_like(weights)
    seen = np.maximum(np.asarray(n, dtype=np.float64)[target], max(sigma_n, 1.0)) / in_target
    return Bridge(
        base, weights, target_directions / seen[:, None], settings.clip, settings.pair_norm, settings.reach, crossing
    )


def per_domain(users: ArrayLike, sigma: float) -> tuple[float, float, float]:
    """The users in both domains, in the source and in the target; at least the deviation of their noise, and 1."""
    source, target, both = released("users", users, (3,)).tolist()
    least = max(sigma, 1.0)
    shared = max(both, least)
    return shared, max(source, 0.0) + shared, max(target, 0.0) + shared


@dataclass(frozen=True, eq=False, repr=False)
class HonestXMap(AroundOffsets):
    """X-Map on released cosines. ``replacements`` and ``similar`` items are target items counted from 0; -1 means none."""

    offsets: Offsets
    replacements: Ints
    similar: Ints  # target items x k
    cosines: Floats
    directions: int
    crossing: int = 0  # how many directions link the domains

    def _added(self, rows: csr_array, level: Floats, left: csr_array, position: Ints, codes: Ints) -> Floats:
        added = np.zeros(codes.size)
        for start in range(0, rows.shape[0], _X_MAP_CHUNK):
            moved = self._moves(rows[start : start + _X_MAP_CHUNK], level[start : start + _X_MAP_CHUNK])
            pairs = np.flatnonzero((position >= start) & (position < start + _X_MAP_CHUNK) & (codes >= self.n_source))
            added[pairs] = moved[position[pairs] - start, codes[pairs] - self.n_source]
        return added

    def _moves(self, rows: csr_array, level: Floats) -> Floats:
        """How far similar items of the alter ego move each target item from its base."""
        values, is_rated = self.alter_egos(rows)
        base = self.offsets.expected[self.n_source :] + level[:, None]
        row = np.repeat(np.arange(len(self.similar)), (self.similar != NONE).sum(axis=1))
        entries = row, self.similar[self.similar != NONE]
        weight = csr_array((self.cosines[self.similar != NONE], entries), shape=(len(self.similar),) * 2)
        above = (weight @ np.where(is_rated, values - base, 0.0).T).T
        return np.asarray(above / ((abs(weight) @ is_rated.T.astype(np.float64)).T + _SHRINK))

    def alter_egos(self, rows: csr_array) -> tuple[Floats, NDArray[np.bool_]]:
        """Users x target items: the mean of the ratings that an item replaces, real ratings first; and where there are any."""
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
    """X-Map from G (with its diagonal), d and n; ``sigmas`` are the deviations of G, d, n and of users, as released.

    ``k`` is the number of similar items. With ``anyway``, items are replaced even if nothing links the domains, for
    comparison.
    """
    k, edge = whole("k", k, least=1), positive("edge", edge)
    noise, sigma_d, sigma_n, _ = (at_least_0("a sigma", sigma) for sigma in sigmas)
    base = own_offsets(d, n, sigma_d, sigma_n, n_source, settings)
    matrix = symmetric(gram, base.n_items)
    size = np.sqrt(np.maximum(np.diag(matrix), 0.0) + max(noise, np.finfo(float).tiny))
    np.fill_diagonal(matrix, 0.0)
    values, _ = strongest(matrix, edge * noise * math.sqrt(len(matrix)), MOST_DIRECTIONS)
    cosine = np.clip(matrix / np.outer(size, size), -1.0, 1.0)
    n_target = base.n_items - base.n_source
    crossing = 0
    if values.size:
        crossing = min(values.size, _links(matrix, base.n_source, noise, edge * noise, MOST_DIRECTIONS))
    replacements = np.full(base.n_source, NONE, dtype=np.int64)
    similar = np.full((n_target, min(k, n_target)), NONE, dtype=np.int64)
    cosines = np.zeros(similar.shape)
    if values.size and n_target and base.n_source:
        across, inside = cosine[: base.n_source, base.n_source :], cosine[base.n_source :, base.n_source :]
        if crossing or anyway:  # the largest of pure noise is not a replacement
            best = across.argmax(axis=1)
            replacements = np.where(across.max(axis=1) > 0.0, best, NONE)
        # An item is not evidence for itself (a real rating of it is not a prediction either) and takes none of its k places.
        others = np.where(np.eye(n_target, dtype=np.bool_), -np.inf, inside)
        order = np.argsort(-others, axis=1, kind="stable")[:, : similar.shape[1]]
        cosines = np.take_along_axis(inside, order, axis=1)
        similar = np.where((order != np.arange(n_target)[:, None]) & (cosines != 0.0), order, NONE)
        cosines = np.where(similar != NONE, cosines, 0.0)
    return HonestXMap(base, replacements, similar, cosines, int(values.size), crossing)


def own_offsets(
    d: ArrayLike, n: ArrayLike, sigma_d: float, sigma_n: float, n_source: int, settings: TransferSettings
) -> Offsets:
    """Offsets of ratings that are centred by users' own means."""
    if settings.centre is not None:
        raise InvalidParameter(
            "these moments need ratings centred by users' own means: give settings with centre = None."
        )
    return offsets(d, n, sigma_d, sigma_n, n_source, settings)


def symmetric(gram: ArrayLike, size: int) -> Floats:
    """``gram`` as released numbers. Raises InvalidParameter unless it is symmetric."""
    matrix = released("gram", gram, (size, size))
    if not np.array_equal(matrix, matrix.T):
        raise InvalidParameter("gram must be symmetric.")
    return matrix
