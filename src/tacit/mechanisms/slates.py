"""What slates from a kernel sigma I + sum of c_u c_u^T share: rows, samplers, prepared draws, the noisy kernel, and their cost.

Rows are whole numbers whose squares add up to at most 2^32: sqrt(bound) is 2^16 steps, so bound is 2^32 squared steps, and sigma is
a whole number of squared steps, rounded up. What is proved with bound and sigma then holds for the whole numbers themselves.

The cost of a slate: neighbours differ in one user's c_u, with ||c_u||^2 <= bound. Write x = bound / sigma. Proofs:
docs/proofs/natural-slate.md and docs/proofs/natural-subset.md. Epsilon is rounded up, and so is sigma: more jitter costs less.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from typing import ClassVar, Generic, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.checks import keep, member, positive, probability, whole
from tacit.errors import InvalidInput, InvalidParameter
from tacit.guarantees import Guarantee, Loss, LossKind, Relation, Release, repeat
from tacit.guarantees.arithmetic import precise, sqrt_down, up_from
from tacit.guarantees.concentrated import rho_for
from tacit.guarantees.guarantee import MECHANISM, one_user
from tacit.mechanisms.inputs import bounded_rows, real_array, real_table
from tacit.mechanisms.noise import FLOATS, SYSTEM_NOISE, Noise, NoiseCoins, released
from tacit.mechanisms.samplers.integers import GridMatrix, GridNoise
from tacit.mechanisms.samplers.subsets import Draw, SlateSampler, WholeKernel
from tacit.models.dpp.samplers import DenseSampler, SplitSampler
from tacit.models.dpp.tempered import TemperedSampler

STEPS = 1 << 16  # in sqrt(bound)
SQUARE = STEPS * STEPS  # in bound
MOST_USERS = 1 << 30  # 2^30 rows of 2^32 squared steps: every sum stays below 2^62
MOST_ITEMS = 1 << 22


def whole_rows(rows: ArrayLike | sparse.csr_array, items: int, bound: float) -> sparse.csr_array:
    """Users x items in steps of sqrt(bound) / 2^16. Each row is cut independently to squares of at most 2^32.

    A bad cell counts as 0.
    """
    table = bounded_rows(rows, items, sqrt_down(Fraction(bound)), norm=2, steps=STEPS)
    if table.shape[0] >= MOST_USERS:  # the shape is the caller's, not private
        raise InvalidInput(f"a table must have fewer than {MOST_USERS} rows: whole numbers would overflow.")
    return table


def whole_sigma(sigma: float, bound: float) -> int:
    """The jitter in squared steps, rounded up: at least 1."""
    return math.ceil(Fraction(sigma) / Fraction(bound) * SQUARE)


def selected_rows(
    rows: ArrayLike | sparse.csr_array,
    items: int,
    bound: float,
    *,
    least: int,
    among: ArrayLike | None = None,
    request: ArrayLike | None = None,
) -> tuple[sparse.csr_array, NDArray[np.int64]]:
    """``whole_rows`` of the candidates ``among`` (all items if None), weighted by ``request``; and the candidates, ascending.

    A record is cut after the other columns are removed, so that it counts in full among the candidates.
    """
    weight = None if request is None else _weights(request, items)
    if among is None:
        chosen, table = np.arange(items), whole_rows(rows, items, bound)
    else:
        chosen = _candidates(among, items, least)
        raw = real_table(rows, "rows", items)
        if raw.shape[1] != items:
            raise InvalidInput(f"expected rows of {items} numbers.")
        table = whole_rows(raw[:, chosen], chosen.size, bound)
    if weight is not None:
        # towards 0, so no row grows
        size = np.abs(table.data) * weight[chosen][table.indices] // STEPS
        table = sparse.csr_array((np.sign(table.data) * size, table.indices, table.indptr), shape=table.shape)
    return table, chosen


def _candidates(among: ArrayLike, items: int, least: int) -> NDArray[np.int64]:
    chosen = np.asarray(among)
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu" or (np.diff(np.sort(chosen)) == 0).any():
        raise InvalidParameter("`among` must be a list of different items, as whole numbers.")
    if chosen.size < least or int(chosen.min()) < 0 or int(chosen.max()) >= items:
        raise InvalidParameter(f"`among` must contain at least {least} items, from 0 to {items - 1}.")
    return np.sort(chosen).astype(np.int64)


def _weights(request: ArrayLike, items: int) -> NDArray[np.int64]:
    """Weights in [0, 1] in steps of 2^-16, rounded down; a weight that is not a number counts as 0."""
    weight = real_array(request, "a request")
    if weight.shape != (items,):
        raise InvalidInput(f"`request` must have one weight for each of {items} items.")
    cut = np.clip(np.nan_to_num(weight, nan=0.0, posinf=1.0, neginf=0.0), 0.0, 1.0)
    return np.floor(cut * STEPS).astype(np.int64)


Sampler = Literal["exact", "hybrid", "split", "dense"]

MOST_PROPOSALS = 1 << 14  # rejected in a row before `hybrid` draws in floats
HYBRID_ITEMS = 10_000  # beyond, eigenvectors would take many minutes and gigabytes
_DENSE_ITEMS = 1 << 12
_DENSE_SIGMA = SQUARE >> 6


def require_sampler(sampler: str, items: int, sigma: int) -> None:
    """Raises for an unknown sampler, and for the dense one if floats could lose the jitter beside the largest possible signal.

    That can happen below 8 items 2^-52 of the largest eigenvalue, which is at most 2^30 bound. With up to 2^12 items a sigma of
    bound / 2^6 is safe for every table, with room for the rounding of the eigenvalues. The check uses public values only: a
    check of the records would reveal something about them.
    """
    if sampler not in get_args(Sampler):
        raise InvalidParameter(f"`sampler` must be one of {', '.join(get_args(Sampler))}, not {sampler!r}.")
    if sampler == "dense" and (items > _DENSE_ITEMS or sigma < _DENSE_SIGMA):
        raise InvalidParameter(
            f"the dense sampler takes at most {_DENSE_ITEMS} items and an epsilon of at most 4.17: use 'exact' or 'split'."
        )
    if sampler == "hybrid" and items > HYBRID_ITEMS:
        raise InvalidParameter(f"the hybrid sampler takes at most {HYBRID_ITEMS} items, not {items}: use 'exact'.")


def assumption(sampler: Sampler) -> str | None:
    """What a guarantee has to assume about the sampler's arithmetic; None if it is exact."""
    if sampler == "exact":
        return None
    return (
        FLOATS if sampler != "hybrid" else f"{FLOATS}, where {MOST_PROPOSALS:,} exact proposals in a row are rejected"
    )


def slate_draw(table: sparse.csr_array, sigma: int, k: int, sampler: Sampler) -> Draw:
    """Draws slates of k columns of ``table``, users x items in steps; ``sigma`` is in squared steps."""
    if k == table.shape[1]:  # there is only one slate
        return lambda count, noise: np.tile(np.arange(k), (count, 1))
    if sampler == "exact":
        return SlateSampler(WholeKernel(table, sigma), k).draw_many
    if sampler == "hybrid":
        floats = cache(lambda: slate_draw(table, sigma, k, "split"))  # set up only when it is needed
        hybrid = SlateSampler(
            WholeKernel(table, sigma), k, most=MOST_PROPOSALS, instead=lambda count, noise: floats()(count, noise)
        )
        return hybrid.draw_many
    signal = sparse.csr_array(table.T.astype(np.float64) / STEPS)
    jitter = sigma / SQUARE
    if sampler == "split":
        return draw_in_floats(SplitSampler(signal, jitter, k))
    return draw_in_floats(DenseSampler((signal @ signal.T).toarray() + jitter * np.eye(table.shape[1]), k))


def draw_in_floats(sampler: DenseSampler | SplitSampler | TemperedSampler) -> Draw:
    """Draws by a sampler that computes in floats: state ``FLOATS`` in the guarantee."""
    return lambda count, noise: sampler.draw_many(count, NoiseCoins(noise))


Slates = TypeVar("Slates", bound=Sequence[NDArray[np.int64]] | NDArray[np.int64])


class PreparedSlates(Generic[Slates]):
    """Private set-up that is done once, for any number of slates of one table of records.

    It holds private data: keep it with the records, and do not store it. ``draw(count, noise)`` gives ``count`` independent
    slates, each with its items in ascending order; ``guarantee`` is that of one slate.
    """

    def __init__(
        self,
        items: int,
        k: int | None,
        guarantee: Guarantee,
        draw: Callable[[int, Noise], Slates],
        maker: object = None,
    ) -> None:
        if maker is not MECHANISM:
            raise TypeError("only a mechanism prepares slates: call its prepare(...).")
        self.items, self.k, self.guarantee = items, k, guarantee
        self._draw = draw

    def release(self, noise: Noise = SYSTEM_NOISE) -> Release[NDArray[np.int64]]:
        """One slate, its items in ascending order."""
        return released(np.asarray(self._draw(1, noise)[0], dtype=np.int64), self.guarantee, noise)

    def release_many(self, count: int, noise: Noise = SYSTEM_NOISE) -> Release[Slates]:
        """``count`` slates of the same records. The guarantee covers all of them: basic composition, with their zCDP.

        ``guarantees.tight([release.guarantee], delta)`` turns it into a smaller epsilon at a delta.
        """
        count = whole("count", count, least=1)
        return released(self._draw(count, noise), repeat(self.guarantee, count), noise)

    def __repr__(self) -> str:
        size = "subsets" if self.k is None else f"slates of {self.k}"
        return f"PreparedSlates({size} from {self.items} items)"  # without the number of users, which is private


MOST_KERNEL_ITEMS = 1 << 14  # the matrix then takes 2 GB
_CELLS = 1 << 20  # of the matrix at a time


@dataclass(frozen=True)
class GaussianKernel:
    """sum of c c^T over users, each row cut to a squared L2 norm of ``bound``, plus symmetric discrete Gaussian noise.

    zCDP, stated as (epsilon, delta), for the whole matrix. Slates computed from it cost nothing more, however many.
    """

    name: ClassVar[str] = "gaussian-kernel"
    items: int
    epsilon: float  # nats
    delta: float  # a probability
    bound: float = 1.0
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        keep(
            self,
            items=whole("items", self.items, least=1, most=MOST_KERNEL_ITEMS),
            epsilon=positive("epsilon", self.epsilon),
            delta=probability("delta", self.delta),
            bound=positive("bound", self.bound),
            relation=member("relation", Relation, self.relation),
        )
        _ = self.noise_laws

    @cached_property
    def rho(self) -> float:
        """The zCDP that (epsilon, delta) affords, rounded down."""
        return rho_for(self.epsilon, self.delta)

    @cached_property
    def guarantee(self) -> Guarantee:
        """What one release promises: (epsilon, delta) for one user's rows; composes by its zCDP."""
        loss = Loss(LossKind.ZCDP, self.rho)
        return Guarantee(self.epsilon, one_user(self.relation), delta=self.delta, proof=self.name, loss=loss)

    @cached_property
    def noise_laws(self) -> tuple[GridNoise, GridNoise]:
        """The noise on the diagonal, and off it: each number off the diagonal is in the matrix twice, so it has half the variance.

        Rows are whole numbers of sqrt(bound) / 2^16. By the Frobenius norm, |a a^T| = |a|^2 <= 2^32, and
        |a a^T - b b^T|^2 = |a|^4 + |b|^4 - 2 (a.b)^2.
        """
        squared = SQUARE**2 * (1 if self.relation is Relation.ADD_REMOVE else 2)
        diagonal = GridNoise.gaussian(squared, rho=self.rho, step=Fraction(self.bound) / SQUARE)
        return diagonal, replace(diagonal, width=diagonal.width / 2)

    def totals(self, rows: ArrayLike | sparse.csr_array) -> NDArray[np.int64]:
        """The exact matrix in steps. Private.

        No number of it is beyond 2^32 times the number of users, which is below 2^30: an int64 holds it, and the noise.
        """
        table = whole_rows(rows, self.items, self.bound)
        by_item = table.T.tocsr()
        total = np.empty((self.items, self.items), dtype=np.int64)
        for first, last in _blocks(self.items):
            upper = (by_item[first:last] @ table[:, first:]).toarray()
            total[first:last, first:] = upper
            total[first:, first:last] = upper.T
        return total

    def release(self, rows: ArrayLike | sparse.csr_array, noise: Noise = SYSTEM_NOISE) -> Release[GridMatrix]:
        """The noisy matrix: symmetric, with noise on every pair of items, also on a pair that nobody has."""
        noisy = self.totals(rows)
        on, off = self.noise_laws
        noisy[np.diag_indices(self.items)] += on.sample(self.items, noise)
        for first, last in _blocks(self.items):
            upper = noisy[first:last, first:]
            above = np.triu(np.ones(upper.shape, dtype=np.bool_), 1)
            upper[above] += off.sample(int(above.sum()), noise)
            square = np.triu(upper[:, : last - first])
            noisy[first:last, first:last] = square + np.triu(square, 1).T
            noisy[last:, first:last] = upper[:, last - first :].T
        return released(GridMatrix(noisy, on.step), self.guarantee, noise)


def _blocks(items: int) -> list[tuple[int, int]]:
    """Stretches of rows, each of about ``_CELLS`` cells."""
    rows = max(1, _CELLS // items)
    return [(first, min(items, first + rows)) for first in range(0, items, rows)]


_BITS = 256
_MOST = 2000.0  # a larger epsilon counts as this one: the jitter is then below every float above 0 anyway


def natural_epsilon(bound: float, sigma: float) -> float:
    """log(1 + x): exact for slates of k < n items, if a user is added or removed, and also if a user is replaced."""
    return _log_sum(1, positive("bound", bound), positive("sigma", sigma), 1)


def sigma_for(epsilon: float, bound: float = 1.0) -> float:
    """The jitter at which a slate costs ``epsilon``: bound / (e^epsilon - 1)."""
    epsilon, bound = positive("epsilon", epsilon), positive("bound", bound)
    mp = precise(_BITS)
    return _usable(up_from(mp.mpf(bound) / mp.expm1(mp.mpf(min(epsilon, _MOST)))))


def subset_epsilon(bound: float, sigma: float, relation: Relation = Relation.ADD_REMOVE) -> float:
    """The cost of a subset of any size, exact.

    Added or removed: the larger of log(1 + x) - log(1 + y) and log(1 + y), y = bound / (1 + sigma). Replaced: log(1 + x).
    """
    bound, sigma = positive("bound", bound), positive("sigma", sigma)
    if member("relation", Relation, relation) is Relation.REPLACE:
        return natural_epsilon(bound, sigma)
    mp = precise(_BITS)
    empty = mp.log1p(mp.mpf(bound) / (1 + mp.mpf(sigma)))  # the empty subset, whose weight does not move
    # log (1 + x)/(1 + y) = log(1 + (x - y)/(1 + y)), and x - y = bound / (sigma (1 + sigma)): nothing cancels
    single = mp.log1p(mp.mpf(bound) / (mp.mpf(sigma) * (1 + mp.mpf(sigma) + mp.mpf(bound))))
    return up_from(max(empty, single))


def subset_sigma_for(epsilon: float, bound: float = 1.0, relation: Relation = Relation.ADD_REMOVE) -> float:
    """The jitter at which a subset of any size costs ``epsilon``."""
    if member("relation", Relation, relation) is Relation.REPLACE:
        return sigma_for(epsilon, bound)
    epsilon, bound = positive("epsilon", epsilon), positive("bound", bound)
    mp = precise(_BITS)
    plain = mp.mpf(bound) / mp.expm1(mp.mpf(min(epsilon, _MOST)))
    # bound / (sigma (1 + sigma + bound)) = e^epsilon - 1, solved for sigma without a difference; and bound / (1 + sigma) likewise
    half = 1 + mp.mpf(bound)
    single = 2 * plain / (half + mp.sqrt(half**2 + 4 * plain))
    return _usable(up_from(max(single, plain - 1)))


def subset_range(bound: float, sigma: float) -> float:
    """The range of the loss of a subset if a user is added or removed: log(1 + x), not ``subset_epsilon``."""
    return natural_epsilon(bound, sigma)


def published_epsilon(size: float, sigma: float, n: int) -> float:
    """The paper's figure for its eigenvalue step, 2 n log(1 + size / (sigma sqrt n)). It does not cover choosing the subset."""
    n = whole("n", n, least=1)
    return _log_sum(2 * n, positive("size", size), positive("sigma", sigma), n)


def published_sigma_for(epsilon: float, n: int, size: float = 1.0) -> float:
    """The jitter that the paper's figure asks for."""
    epsilon, size, n = positive("epsilon", epsilon), positive("size", size), whole("n", n, least=1)
    mp = precise(_BITS)
    each = mp.mpf(epsilon) / (2 * n)
    return _usable(up_from(mp.mpf(size) / (mp.sqrt(n) * mp.expm1(min(each, mp.mpf(_MOST))))))


@lru_cache(maxsize=1024)
def _log_sum(times: int, size: float, sigma: float, n: int) -> float:
    """times * log(1 + size / (sigma sqrt n)), rounded up."""
    mp = precise(_BITS)
    return up_from(times * mp.log1p(mp.mpf(size) / (mp.mpf(sigma) * mp.sqrt(n))))


def _usable(sigma: float) -> float:
    if not 0.0 < sigma < float("inf"):
        raise InvalidParameter("epsilon is too small: its jitter is larger than every float. Raise epsilon.")
    return sigma
