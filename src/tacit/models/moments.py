"""First and second moments of users' unit rows, as whole numbers in one fixed layout, and what can be read from them.

A user with c items in her row has the unit row y = x / sqrt(c). Added up over users: the popularity sum of y, and on a head of
items, with w = x / sqrt(c) for the c items of the head, the Gram matrix sum of w w^T. Both are sent as whole numbers of 2^-20.
The Gram matrix is sent as one vector: G_ii / sqrt 2 for every item of the head, then G_ij for i < j, row by row. A user's vector
then has the norm |w|^2 / sqrt 2 = 1 / sqrt 2, whatever she holds. docs/proofs/gram-share.md.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from tacit.checks import positive, whole
from tacit.errors import InvalidParameter

STEPS = 1 << 20  # whole numbers in 1
FEWEST, MOST = 60, 1500  # items of a head
EDGE = 1.8  # eigenvalues of pure noise end at 2 sd sqrt(head): what is not above .9 of that is taken to be noise


@dataclass(frozen=True, eq=False)
class SharedMoments:
    """What everybody may know after the sums: public, all of it computed from the noisy release.

    ``head`` is empty where the release holds no information; the entities then stay with their own rows.
    """

    popularity: NDArray[np.float64]  # noisy sum of the unit rows, one number for each item
    head: NDArray[np.int64]  # items, ascending
    pseudo_rows: NDArray[np.float64]  # rows over the head
    popularity_sd: float  # of the noise in one number of the popularity
    gram_sd: float  # of the noise in one number of the Gram matrix off its diagonal
    seen: int  # items whose popularity is above three deviations of its noise

    @property
    def informative(self) -> bool:
        """Whether any item stood out of the noise; if not, everybody stays with their own rows."""
        return self.head.size > 0


def noise_sds(rho_popularity: float, rho_gram: float, *, shares: int = 1, honest: int = 1) -> tuple[float, float]:
    """The deviation of the noise in the sum of ``shares`` shares, for one number of the popularity and of the Gram matrix.

    Each share has 1 / ``honest`` of the variance that the rho asks for: sensitivity^2 / (2 rho), 1 and 1/2 squared.
    """
    spread = math.sqrt(whole("shares", shares, least=1) / whole("honest", honest, least=1))
    popularity, gram = positive("rho_popularity", rho_popularity), positive("rho_gram", rho_gram)
    return spread / math.sqrt(2.0 * popularity), spread / (2.0 * math.sqrt(gram))


def seen_items(popularity: ArrayLike, sd: float) -> int:
    """How many items have a noisy popularity above three deviations of the noise."""
    return int((np.asarray(popularity, dtype=np.float64) > 3.0 * sd).sum())


def head_of(popularity: ArrayLike, sd: float, items: int) -> NDArray[np.int64] | None:
    """The items whose Gram matrix is worth its noise, ascending; None where the popularity is hardly more than noise.

    .6 of the items that are seen, from 60 to 1,500. In noise alone .00135 of the items are seen: below 10 + .004 ``items`` of
    them there is no head.
    """
    noisy = np.asarray(popularity, dtype=np.float64)
    if noisy.shape != (whole("items", items, least=1),) or not np.isfinite(noisy).all():
        raise InvalidParameter(f"a popularity needs {items} finite numbers.")
    seen = seen_items(noisy, positive("sd", sd))
    if 250 * seen < 2500 + items:  # seen < 10 + .004 items, in whole numbers
        return None
    return largest(noisy, min(items, max(FEWEST, min(MOST, 6 * seen // 10))))


def largest(values: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """The places of the ``count`` largest values, ascending; of equal ones the first."""
    return np.sort(np.argsort(-values, kind="stable")[:count]).astype(np.int64)


def triangle(head: int) -> int:
    """Numbers in the vector of a Gram matrix over so many items."""
    return head * (head + 1) // 2


def gram_from(vector: NDArray[np.integer], head: int) -> NDArray[np.float64]:
    """The symmetric Gram matrix that a vector of whole numbers stands for, in units of 1."""
    if vector.shape != (triangle(head),):
        raise InvalidParameter(f"a Gram matrix over {head} items needs a vector of {triangle(head)} numbers.")
    matrix = np.zeros((head, head))
    matrix[np.triu_indices(head, 1)] = vector[head:] / STEPS
    matrix += matrix.T
    np.fill_diagonal(matrix, vector[:head] * (math.sqrt(2.0) / STEPS))
    return matrix


def pseudo_rows(gram: NDArray[np.float64], sd: float) -> NDArray[np.float64]:
    """Rows E whose Gram matrix E^T E is ``gram`` without its noise, the heaviest first.

    E = sqrt(e - t) q^T for the eigenvectors q whose eigenvalue e is above t = 1.8 sd sqrt(head): symmetric noise of deviation sd
    off the diagonal and sqrt 2 sd on it has its largest eigenvalue at 2 sd sqrt(head).
    """
    size = len(gram)
    if gram.shape != (size, size) or not np.isfinite(gram).all():
        raise InvalidParameter("a Gram matrix must be square, of finite numbers.")
    if size == 0:
        return np.zeros((0, 0))
    threshold = EDGE * positive("sd", sd) * math.sqrt(size)
    values, vectors = linalg.eigh(gram, subset_by_value=(threshold, math.inf), check_finite=False)
    order = np.argsort(-values, kind="stable")
    kept = order[values[order] > threshold]
    return np.ascontiguousarray(np.sqrt(values[kept] - threshold)[:, None] * vectors[:, kept].T)


def data_free(shared: SharedMoments, rng: np.random.Generator) -> SharedMoments:
    """A control: what would have been broadcast for a head of this size, had nobody had any items. Noise of the same size alone."""
    items, size, sd = shared.popularity.size, shared.head.size, shared.gram_sd
    popularity = rng.normal(0.0, shared.popularity_sd, items)
    upper = np.triu(rng.normal(0.0, sd, (size, size)), 1)
    gram = upper + upper.T + np.diag(rng.normal(0.0, math.sqrt(2.0) * sd, size))
    rows = pseudo_rows(gram, sd) if size else shared.pseudo_rows
    seen = seen_items(popularity, shared.popularity_sd)
    return replace(shared, popularity=popularity, head=largest(popularity, size), pseudo_rows=rows, seen=seen)


def constant(shared: SharedMoments) -> SharedMoments:
    """A control: a broadcast that says the same of every item, and weighs as much as the true one."""
    level = max(0.0, float(shared.popularity.mean()))
    rows = np.zeros((0, shared.head.size))
    if len(shared.pseudo_rows):
        rows = np.full((1, shared.head.size), math.sqrt(np.square(shared.pseudo_rows).sum() / shared.head.size))
    return replace(shared, popularity=np.full(shared.popularity.size, level), pseudo_rows=rows)
