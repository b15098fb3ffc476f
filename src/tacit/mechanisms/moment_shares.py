"""One entity's share of the first and second moments of users' unit rows, with discrete Gaussian noise on every number.

Shares are added up, by secure aggregation or in the open, and the sum contains the noise once. The exact moments are whole numbers
of 2^-20: every user's numbers follow from their own row and are rounded down, so their squares add up to at most 2^40 (popularity)
or 2^39 (Gram vector), exactly. Whole numbers have the same sum in any order. Proofs: docs/proofs/popularity-share.md and
docs/proofs/gram-share.md.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.checks import keep, positive, probability, whole
from tacit.errors import InvalidInput, InvalidParameter
from tacit.guarantees import ONE_USER, Guarantee, Loss, LossKind, Release
from tacit.guarantees.arithmetic import down
from tacit.guarantees.concentrated import epsilon_of_rho, rho_for
from tacit.mechanisms.inputs import real_table, whole_sums
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise, released
from tacit.mechanisms.rating_rows import sparse_sums
from tacit.mechanisms.samplers.integers import GridNoise, GridVector, NoiseKind
from tacit.models.moments import STEPS

MOST_ITEMS, MOST_HEAD, MOST_HONEST = 1 << 22, 1 << 12, 1 << 20
LEAST_SD = 1000  # steps: the sum of several such draws is a discrete Gaussian up to e^(-9,000,000)
_ROWS = 1 << 14  # of a dense table at a time


def moment_rhos(epsilon: float, delta: float, part: float = 0.15) -> tuple[float, float]:
    """The rho of the popularity, which is ``part`` of what (epsilon, delta) affords, and the rho of the Gram matrix, the rest.

    Both are rounded down: together they never exceed ``rho_for(epsilon, delta)``.
    ``epsilon`` is in nats, ``delta`` a probability.
    """
    whole_rho, share = Fraction(rho_for(epsilon, delta)), Fraction(probability("part", part))
    popularity = down(share * whole_rho)
    gram = down(whole_rho - Fraction(popularity))
    if not (popularity > 0.0 and gram > 0.0):
        raise InvalidParameter(
            "`part` leaves one of the two moments without a rho above 0: choose a part between 0.05 and 0.95."
        )
    return popularity, gram


@dataclass(frozen=True)
class PopularityShare:
    """The sum over users of x / |x|, where x marks the items a user has: one entity's share, with its noise.

    With ``honest`` = 1 the share protects by itself. With more, only the sum of the shares protects, and only if that many shares
    in it have noise that the adversary does not know; each share then carries its part of the variance.
    """

    name: ClassVar[str] = "popularity-share"
    items: int
    rho: float  # of zCDP
    delta: float  # a probability
    honest: int = 1

    def __post_init__(self) -> None:
        _keep_checked(self)
        _ = self.noise_law

    @cached_property
    def guarantee(self) -> Guarantee:
        """What the sum of all shares promises if ``honest`` of them have secret noise: (epsilon, delta) for one user's rows."""
        return _guarantee_of(self)

    @cached_property
    def noise_law(self) -> GridNoise:
        """The noise of this share: a user's whole numbers have squares of at most 2^40 in all."""
        return _noise_of(self, STEPS**2)

    def totals(self, rows: ArrayLike | sparse.csr_array) -> NDArray[np.int64]:
        """The exact sums in steps, the same in any order of users. Private."""
        table = mark_items(rows, self.items)
        sizes = np.diff(table.indptr)
        weight, _, _ = row_weights(sizes)
        return whole_sums(np.repeat(weight, sizes), table.indices, self.items)

    def release(self, rows: ArrayLike | sparse.csr_array, noise: Noise = SYSTEM_NOISE) -> Release[GridVector]:
        """One noisy whole number for every item, also for an item that nobody has."""
        return released(self.noise_law.vector(self.totals(rows), noise), self.guarantee, noise)


@dataclass(frozen=True)
class GramShare:
    """The sum over users of w w^T, w = x / |x| on a public head of items, as one vector: an entity's share, with its noise.

    The vector holds G_ii / sqrt 2 for every item of the head, in the given order, then G_ij for i < j, row by row
    (``tacit.models.moments.gram_from`` reads it). ``honest`` is as for ``PopularityShare``. Every head keeps the bound: a user's
    row is normalised after everything outside the head is removed.
    """

    name: ClassVar[str] = "gram-share"
    items: int
    head: tuple[int, ...]
    rho: float  # of zCDP
    delta: float  # a probability
    honest: int = 1

    def __post_init__(self) -> None:
        _keep_checked(self)
        keep(self, head=_checked_head(self.head, self.items))
        _ = self.noise_law

    @cached_property
    def guarantee(self) -> Guarantee:
        """What the sum of all shares promises if ``honest`` of them have secret noise: (epsilon, delta) for one user's rows."""
        return _guarantee_of(self)

    @cached_property
    def noise_law(self) -> GridNoise:
        """The noise of this share: a user's vector has squares of at most 2^39 in all."""
        return _noise_of(self, STEPS**2 // 2)

    def totals(self, rows: ArrayLike | sparse.csr_array) -> NDArray[np.int64]:
        """The exact vector in steps, the same in any order of users. Private."""
        table = mark_items(rows, self.items)[:, np.array(self.head)]
        sizes = np.diff(table.indptr)
        _, pair, single = row_weights(sizes)
        own = whole_sums(np.repeat(single, sizes), table.indices, len(self.head))
        weighted = sparse.csr_array((np.repeat(pair, sizes), table.indices, table.indptr), shape=table.shape)
        return np.concatenate([own, sparse_sums(table, diagonal=False, weighted=weighted)])

    def release(self, rows: ArrayLike | sparse.csr_array, noise: Noise = SYSTEM_NOISE) -> Release[GridVector]:
        """One noisy whole number for every item and every pair of items of the head."""
        return released(self.noise_law.vector(self.totals(rows), noise), self.guarantee, noise)


def _guarantee_of(share: PopularityShare | GramShare) -> Guarantee:
    epsilon, loss = epsilon_of_rho(share.rho, share.delta), Loss(LossKind.ZCDP, share.rho)
    alone = Guarantee(epsilon, ONE_USER, delta=share.delta, proof=share.name, loss=loss)
    if share.honest == 1:
        return alone
    return alone.assuming(
        "only the sum of the shares is seen",
        f"at least {share.honest} shares in it have noise that the adversary does not know",
    )


def _noise_of(share: PopularityShare | GramShare, squared_sensitivity: int) -> GridNoise:
    """The noise of one share.

    A share that protects alone has a variance of sensitivity^2 / (2 rho). If ``honest`` shares protect together, they divide that
    variance, widened by 2^-60: a sum of discrete Gaussians is a discrete Gaussian up to a factor that is far smaller than this
    (docs/proofs/popularity-share.md).
    """
    total = Fraction(squared_sensitivity) / (2 * Fraction(share.rho))
    variance = total if share.honest == 1 else total * (1 + Fraction(1, 1 << 60)) / share.honest
    law = GridNoise(NoiseKind.GAUSSIAN, variance, Fraction(1, STEPS))
    if variance < LEAST_SD**2:
        raise InvalidParameter(
            f"the noise of one share must have a deviation of at least {LEAST_SD} steps of 2^-20: lower rho, or `honest`."
        )
    return law


def _keep_checked(share: PopularityShare | GramShare) -> None:
    keep(
        share,
        items=whole("items", share.items, least=1, most=MOST_ITEMS),
        rho=positive("rho", share.rho),
        delta=probability("delta", share.delta),
        honest=whole("honest", share.honest, least=1, most=MOST_HONEST),
    )


def _checked_head(head: ArrayLike, items: int) -> tuple[int, ...]:
    chosen = np.asarray(head)
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu" or not 1 <= chosen.size <= MOST_HEAD:
        raise InvalidParameter(f"`head` must be a list of 1 to {MOST_HEAD} items, as whole numbers.")
    if int(chosen.min()) < 0 or int(chosen.max()) >= items or np.unique(chosen).size < chosen.size:
        raise InvalidParameter(f"`head` must contain different items, from 0 to {items - 1}.")
    return tuple(chosen.tolist())


def row_weights(sizes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """For unit rows with c items each: 2^20 / sqrt c, 2^20 / c and 2^20 / (c sqrt 2), rounded down; 0 for an empty row.

    Only whole numbers are used. Because they are rounded down, c squares of the first add up to at most 2^40, and c squares of
    the third with c (c - 1) / 2 squares of the second to at most 2^39.
    """
    counts, position = np.unique(sizes, return_inverse=True)
    rows = [
        (math.isqrt(STEPS**2 // c), STEPS // c, math.isqrt(STEPS**2 // (2 * c * c))) if c > 0 else (0, 0, 0)
        for c in counts.tolist()
    ]
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)[position.reshape(-1)]
    return table[:, 0], table[:, 1], table[:, 2]


def mark_items(rows: ArrayLike | sparse.csr_array, items: int) -> sparse.csr_array:
    """Users x items: 1 for a cell that is a finite number above 0. Rows are read independently, and no cell raises an error."""
    big = isinstance(rows, np.ndarray) and rows.ndim == 2
    parts = [rows[i : i + _ROWS] for i in range(0, max(len(rows), 1), _ROWS)] if big else [rows]  # type: ignore[arg-type, index]
    return sparse.vstack([_mark_block(part, items) for part in parts], format="csr")


@np.errstate(all="ignore")  # Silence numpy: an error could reveal a private value
def _mark_block(rows: ArrayLike | sparse.csr_array, items: int) -> sparse.csr_array:
    table = real_table(rows, "rows", items)
    if table.shape[1] != items:
        raise InvalidInput(f"expected rows of {items} numbers.")
    had = np.isfinite(table.data) & (table.data > 0.0)
    ends = np.concatenate([[0], np.cumsum(had)])[table.indptr]
    return sparse.csr_array((np.ones(int(ends[-1]), dtype=np.int64), table.indices[had], ends), shape=table.shape)
