"""A bridge from one domain to the other: ratings of the target regressed on those of the source, from noisy second moments.

G = sum of z z^T over users, z centred by own means. Its blocks within a domain are scaled from that domain's users, u of them, to
the u_B who are in both; what items' offsets alone explain, u_B (d_i / u)(d_j / u), is taken away. Of both blocks the
directions above the noise are kept, (V_S, e_S) and V_T, and

    W = V_S (e_S + l)^-1 V_S^T G_ST V_T V_T^T,    l = 2 max(median of e_S / 10, sigma)

turns a user's z_S into expected sums over the target, which are divided by the share of users who rate an item.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from tacit.checks import positive, whole
from tacit.errors import InvalidParameter
from tacit.models.cross_domain.links import links
from tacit.models.cross_domain.offsets import Offsets, deviation, offsets
from tacit.models.cross_domain.settings import MOST_DIRECTIONS, TransferSettings
from tacit.models.cross_domain.transfer import Floats, predict_one, released, remark_on, rows_of, strongest

EDGE = 3.0  # times sigma sqrt n; noise ends at 2, but at 2 its directions still made predictions worse
MOST = 12


@dataclass(frozen=True, eq=False, repr=False)
class Bridge:
    """What a user's centred source ratings say (``weights``, source items x directions), and of what (``loadings``)."""

    offsets: Offsets
    weights: Floats
    loadings: Floats  # target items x directions
    clip: float
    norm: float
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
        """Items of the source are predicted by offsets and levels alone."""
        rows, place, codes = rows_of(ratings, users, items, self.n_items)
        level, left = self.offsets.levels(rows)
        answer = self.offsets.expected[codes] + level[place]
        if self.directions:
            taste = self._tastes(left)[place]
            loadings = np.vstack([np.zeros((self.n_source, self.directions)), self.loadings])[codes]
            answer += np.clip(np.einsum("pr,pr->p", loadings, taste), -self.reach, self.reach)
        return self.offsets.on_scale(answer)

    def _tastes(self, left: csr_array) -> Floats:
        """Bounded as ratings are before they are added up, over both domains; then the source's are weighed."""
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
    """From G (with its diagonal), d, n and the users in (source alone, target alone, both); ``sigmas`` are those of the four."""
    edge, most = positive("edge", edge), whole("most", most, least=1, most=MOST_DIRECTIONS)
    noise, sigma_d, sigma_n, sigma_users = (deviation("a sigma", sigma) for sigma in sigmas)
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
    strength, taken = within(source, scale)
    _, given = within(target, both / in_target)
    if not (strength.size and given.shape[1]):
        taken, strength, given = taken[:, :0], strength[:0], given[:, :0]
    ridge = 2.0 * max(0.1 * float(np.median(strength)), noise * scale) if strength.size else 1.0
    across = matrix[source, target] - explained[source, target]
    crossing = min(given.shape[1], links(across, taken, given, noise)) if strength.size else 0
    weights = taken / (strength + ridge) @ (taken.T @ across @ given)
    if not crossing:  # what is seen between the domains is noise: to be moved by it would be worse than not to be
        weights = np.zeros_like(weights)
    seen = np.maximum(np.asarray(n, dtype=np.float64)[target], max(sigma_n, 1.0)) / in_target
    return Bridge(base, weights, given / seen[:, None], settings.clip, settings.pair_norm, settings.reach, crossing)


def own_offsets(
    d: ArrayLike, n: ArrayLike, sigma_d: float, sigma_n: float, n_source: int, settings: TransferSettings
) -> Offsets:
    if settings.centre is not None:
        raise InvalidParameter("these moments are of ratings centred by own means: give settings with centre = None.")
    return offsets(d, n, sigma_d, sigma_n, n_source, settings)


def symmetric(gram: ArrayLike, n_items: int) -> Floats:
    matrix = released("gram", gram, (n_items, n_items))
    if not np.array_equal(matrix, matrix.T):
        raise InvalidParameter("gram must be symmetric.")
    return matrix


def per_domain(users: ArrayLike, sigma: float) -> tuple[float, float, float]:
    """The users in both domains, in the source and in the target; at least the deviation of their noise, and one."""
    source, target, both = released("users", users, (3,)).tolist()
    least = max(sigma, 1.0)
    shared = max(both, least)
    return shared, max(source, 0.0) + shared, max(target, 0.0) + shared
