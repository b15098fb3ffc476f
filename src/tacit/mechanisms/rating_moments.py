"""All first and second moments of users' centred ratings in two domains, with noise. Proof: docs/proofs/rating-moments.md."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.checks import keep, positive, probability, whole
from tacit.errors import InvalidParameter
from tacit.guarantees import Guarantee, Release
from tacit.mechanisms.inputs import whole_sums
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise, released
from tacit.mechanisms.rating_rows import (
    CLIP,
    COARSE,
    MOST_COLUMNS,
    RatingBounds,
    Rows,
    TotalsOnDemand,
    as_matrix,
    checked_bounds,
    checked_length,
    cut_rows,
    gaussian_claim,
    product_sums,
    require_ratings,
    stretches,
    totals_of,
    triangle,
)
from tacit.mechanisms.samplers.integers import GridNoise, NoiseKind

SHARES = (0.75, 0.10, 0.13, 0.02)  # of mu^2: products, values, counts, users


@dataclass(frozen=True, slots=True, eq=False)
class NoisyMoments:
    """Products on and above the diagonal, row by row; a sum and a count for each item; three counts of users. In steps."""

    steps: NDArray[np.int64]
    items: int
    n_source: int
    step: Fraction  # of a sum of values
    sds: tuple[float, float, float, float]  # of the noise: on products, values, counts and users

    def matrix(self) -> NDArray[np.float64]:
        """G, symmetric, its diagonal included."""
        return as_matrix(self._part(0) * float(self.step * self.step), self.items, diagonal=True)

    @property
    def values(self) -> NDArray[np.float64]:
        """d: for every item the noisy sum of centred, cut ratings."""
        return np.asarray(self._part(1) * float(self.step), dtype=np.float64)

    @property
    def counts(self) -> NDArray[np.float64]:
        """n: for every item the noisy number of its raters."""
        return self._part(2).astype(np.float64)

    @property
    def users(self) -> tuple[float, float, float]:
        """The noisy numbers of users with ratings in the source only, in the target only, and in both."""
        source, target, both = self._part(3).tolist()
        return float(source), float(target), float(both)

    def _part(self, which: int) -> NDArray[np.int64]:
        return self.steps[_slices(self.items)[which]]


@dataclass(frozen=True)
class RatingMoments:
    """G = sum of z z^T, d = sum of z, n = sum of m and three disjoint counts of users, with Gaussian noise on each.

    z are at most ``most_items`` of a user's ratings, drawn at random, centred, clipped and cut to ``norm``; m marks them. mu^2 is
    divided among G, d, n and the counts in the proportions of ``shares``.
    """

    name: ClassVar[str] = "rating-moments"
    items: int
    n_source: int
    bounds: RatingBounds
    mu: float
    delta: float  # a probability
    most_items: int = 50
    norm: float = 4.0
    shares: tuple[float, float, float, float] = SHARES

    def __post_init__(self) -> None:
        items = whole("items", self.items, least=2, most=MOST_COLUMNS)
        keep(
            self,
            items=items,
            n_source=whole("n_source", self.n_source, least=1, most=items - 1),
            bounds=checked_bounds(self.bounds),
            mu=positive("mu", self.mu),
            delta=probability("delta", self.delta),
            most_items=whole("most_items", self.most_items, least=1, most=items),
            norm=checked_length("norm", self.norm, self.bounds),
            shares=_checked_shares(self.shares),
        )
        _ = self.noise_laws

    @cached_property
    def guarantee(self) -> Guarantee:
        """What one release promises: epsilon at this delta for one user's rows; composes by its mu (Gaussian privacy)."""
        return gaussian_claim(self.name, self.mu, self.delta)

    @property
    def step(self) -> Fraction:
        """What one step of d is worth, clip / 2^13; one of G its square; n and the users are counted one by one."""
        return COARSE * self.bounds.step

    @property
    def length(self) -> int:
        """How many numbers a release has: products of two items, sums and counts of each, three totals."""
        return triangle(self.items, diagonal=True) + 2 * self.items + 3

    @cached_property
    def norm_in_steps(self) -> int:
        """The largest norm of z, in steps of clip / 2^13."""
        return self.bounds.in_steps(self.norm) // COARSE

    @cached_property
    def squared_sensitivities(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        """The most that one user's squared numbers add up to, in steps: products, values, counts, users.

        Products on and above the diagonal: (|z|^4 + sum z_i^4) / 2 <= |z|^2 (|z|^2 + clip^2) / 2.
        """
        clip = (CLIP // COARSE) ** 2
        square = min(self.norm_in_steps**2, self.most_items * clip)
        each = min(clip, square)
        return Fraction(square * (square + each), 2), Fraction(square), Fraction(self.most_items), Fraction(1)

    @cached_property
    def noise_laws(self) -> tuple[GridNoise, GridNoise, GridNoise, GridNoise]:
        """The noise on products, values, counts and users. Part i gets the share of mu^2 that ``shares`` gives it."""
        each = Fraction(self.mu) ** 2 / sum(map(Fraction, self.shares))
        steps = (self.step**2, self.step, Fraction(1), Fraction(1))
        products, values, counts, users = (
            GridNoise(NoiseKind.ROUNDED_GAUSSIAN, squared / (Fraction(share) * each), step)
            for squared, share, step in zip(self.squared_sensitivities, self.shares, steps, strict=True)
        )
        return products, values, counts, users

    @property
    def sds(self) -> tuple[float, float, float, float]:
        """The deviations of the noise on products, values, counts and users, in the units of each."""
        products, values, counts, users = (law.sd for law in self.noise_laws)
        return products, values, counts, users

    def totals(self, rows: Rows, noise: Noise = SYSTEM_NOISE) -> NDArray[np.int64]:
        """The exact sums in steps, one part after the other; ``noise`` draws which ratings of a user count. Private."""
        total = np.zeros(self.length, dtype=np.int64)
        products, values, counts, users = (total[part] for part in _slices(self.items))
        for part in stretches(rows, self.items):
            centred = self.bounds.centred(part, self.items, most_items=self.most_items, noise=noise)
            cut, _ = cut_rows(centred, self.norm_in_steps, coarse=COARSE)
            products += product_sums(cut, diagonal=True)
            values += whole_sums(cut.data, cut.indices, self.items)
            counts += np.bincount(cut.indices, minlength=self.items)
            users += _users_by_domain(cut.indices, cut.indptr, self.n_source)
        return total

    def release(self, rows: Rows, noise: Noise = SYSTEM_NOISE) -> Release[NoisyMoments]:
        """All moments, with noise on every number, also for items and pairs that nobody rated."""
        if not isinstance(rows, TotalsOnDemand):
            require_ratings(rows, self.items)
        # before any user's ratings are drawn, so that the same bytes give the same noise for all rows
        drawn = [
            law.sample(part.stop - part.start, noise)
            for part, law in zip(_slices(self.items), self.noise_laws, strict=True)
        ]
        noisy = totals_of(self, rows, noise) + np.concatenate(drawn)
        return released(NoisyMoments(noisy, self.items, self.n_source, self.step, self.sds), self.guarantee, noise)


def _slices(items: int) -> tuple[slice, slice, slice, slice]:
    pairs = triangle(items, diagonal=True)
    ends = (0, pairs, pairs + items, pairs + 2 * items, pairs + 2 * items + 3)
    products, values, counts, users = (slice(ends[i], ends[i + 1]) for i in range(4))
    return products, values, counts, users


def _users_by_domain(items: NDArray[np.int32], starts: NDArray[np.int32], n_source: int) -> NDArray[np.int64]:
    """How many users have ratings in the source only, in the target only, and in both. A user without ratings counts nowhere."""
    in_source = np.concatenate([[0], np.cumsum(items < n_source)])
    source = in_source[starts[1:]] - in_source[starts[:-1]]
    target = np.diff(starts) - source
    cells = [(source > 0) & (target == 0), (source == 0) & (target > 0), (source > 0) & (target > 0)]
    return np.array([int(cell.sum()) for cell in cells], dtype=np.int64)


def _checked_shares(shares: object) -> tuple[float, float, float, float]:
    try:
        products, values, counts, users = (positive("a share", share) for share in shares)  # type: ignore[attr-defined]
    except (TypeError, ValueError) as problem:
        if isinstance(problem, InvalidParameter):
            raise
        raise InvalidParameter("shares must be four numbers: for products, values, counts and users.") from None
    return products, values, counts, users
