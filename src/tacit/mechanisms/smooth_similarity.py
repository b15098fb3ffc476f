"""Single similarities of items with noise scaled to their smooth sensitivity: what scaling to a local one was meant to be.

Everything that decides the promise is in whole numbers, but for the scale itself, whose rounding has room. Proof:
docs/proofs/smooth-similarity.md.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.checks import keep, positive, probability, whole
from tacit.errors import InvalidInput, InvalidParameter
from tacit.guarantees import ONE_USER, Guarantee, Release, approximate
from tacit.guarantees.rounding import down
from tacit.guarantees.zcdp import largest
from tacit.mechanisms.arrays import real_table
from tacit.mechanisms.drawn import released
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise
from tacit.mechanisms.samplers import discrete_laplace
from tacit.models.cross_domain.smooth_sensitivity import smooth_steps

STEPS = 1 << 15  # of a rating's bound; squares of 2^30 users still fit 62 bits
_MOST_USERS = 1 << 30
_ROOM = 1e-9  # what floats may do to a scale or to a ratio of two scales: a thousand times their error


class NoisyLaw(NamedTuple):
    """Of one released similarity, in grid steps: discrete Laplace noise of this scale is added to this centre."""

    centre: int
    scale: Fraction


@dataclass(frozen=True)
class SmoothSimilarity:
    """The adjusted cosines of public ``pairs`` of items, each with noise; (epsilon, delta) for all of them together.

    Rows are users x items: ratings less the user's own mean, cut to [-bound, bound]. ``grid`` steps make 1.
    """

    name: ClassVar[str] = "smooth-similarity"
    items: int
    pairs: tuple[tuple[int, int], ...]
    epsilon: float  # nats
    delta: float  # a probability
    bound: float = 2.0
    grid: int = 1 << 20

    def __post_init__(self) -> None:
        keep(
            self,
            items=whole("items", self.items, least=2),
            epsilon=positive("epsilon", self.epsilon),
            delta=probability("delta", self.delta),
            bound=positive("bound", self.bound),
            grid=whole("grid", self.grid, least=1, most=1 << 30),
        )
        keep(self, pairs=checked_pairs(self.pairs, self.items))
        if self.each_epsilon == 0.0 or self.each_delta == 0.0 or self.growth == 0.0:
            raise InvalidParameter("epsilon or delta is too small for so many pairs: raise it, or list fewer pairs.")
        discrete_laplace.require_drawable(self._scale(0))

    @cached_property
    def guarantee(self) -> Guarantee:
        """What all pairs together promise: (epsilon, delta) for one user's rows, added or removed."""
        return approximate(self.epsilon, self.delta, ONE_USER, proof=self.name)

    @cached_property
    def each_epsilon(self) -> float:
        """Of one pair: epsilons and deltas add up."""
        return down(Fraction(self.epsilon) / len(self.pairs))

    @cached_property
    def each_delta(self) -> float:
        """The delta of one pair."""
        return down(Fraction(self.delta) / len(self.pairs))

    @cached_property
    def growth(self) -> float:
        """The most by which the scales of two neighbours may differ, as e^beta - 1."""
        return _growth(self.each_epsilon, self.each_delta)

    @property
    def beta(self) -> float:
        """How much the smooth sensitivity may grow with each further user, in nats."""
        return math.log1p(self.growth)

    def laws(self, rows: ArrayLike | sparse.csr_array) -> list[NoisyLaw]:
        """What is released of every pair, before it is cut to [-1, 1]. Not private."""
        totals = pair_totals(rows, self.items, self.bound, self.pairs)
        norms = [min(one, other) for _, one, other in totals]
        scales = {norm: self._scale(norm) for norm in set(norms)}
        return [
            NoisyLaw(whole_cosine(*total, self.grid), scales[norm]) for total, norm in zip(totals, norms, strict=True)
        ]

    def release(self, rows: ArrayLike | sparse.csr_array, noise: Noise = SYSTEM_NOISE) -> Release[NDArray[np.float64]]:
        """The noisy similarity of every pair, cut to [-1, 1]."""
        laws = self.laws(rows)
        steps = np.array([law.centre for law in laws], dtype=np.int64)
        alike: dict[Fraction, list[int]] = {}
        for place, law in enumerate(laws):
            alike.setdefault(law.scale, []).append(place)
        for scale, places in alike.items():
            steps[places] += discrete_laplace.sample(scale, len(places), noise)
        return released(np.clip(steps, -self.grid, self.grid) / self.grid, self.guarantee, noise)

    def _scale(self, norm: int) -> Fraction:
        """2 (grid S* + 1) / epsilon. The 1 covers rounding, and leaves the growth from neighbour to neighbour at e^beta."""
        reach = self.grid * smooth_steps(norm / STEPS**2, self.beta - 2.0 * _ROOM) + 1.0
        return Fraction(reach * (1.0 + _ROOM)) * 2 / Fraction(self.each_epsilon)


@lru_cache(maxsize=256)
def _growth(epsilon: float, delta: float) -> float:
    """The largest c with c (1 + epsilon / 2e) e^(-epsilon / 2c) <= delta and 1 + c <= e^(epsilon / 2)."""
    factor = 1.0 + epsilon / (2.0 * math.e)

    def fits(c: float) -> bool:
        log_missed = math.log(c) + math.log(factor) - epsilon / (2.0 * c)
        return log_missed <= math.log(delta) - _ROOM and math.log1p(c) <= epsilon / 2.0 - 4.0 * _ROOM

    found = largest(fits, epsilon / (2.0 * math.log(2.0 / delta)))
    return found if math.log1p(found) > 1e3 * _ROOM else 0.0


def whole_cosine(dot: int, one: int, other: int, grid: int) -> int:
    """dot / sqrt(one * other) in whole steps of 1 / grid, rounded towards 0; 0 where an item has no norm."""
    if one == 0 or other == 0:
        return 0
    size = math.isqrt(dot * dot * grid * grid // (one * other))
    return size if dot > 0 else -size


def pair_totals(
    rows: ArrayLike | sparse.csr_array, items: int, bound: float, pairs: tuple[tuple[int, int], ...]
) -> list[tuple[int, int, int]]:
    """z_i . z_j, |z_i|^2 and |z_j|^2 of every pair, exactly, with ratings in whole steps of bound / STEPS, rounded towards 0."""
    table = real_table(rows, "rows", items)
    if table.shape[1] != items:
        raise InvalidInput(f"expected rows of {items} items: ratings less their user's mean.")
    if table.shape[0] > _MOST_USERS:
        raise InvalidInput("more than 2^30 users are not taken at once.")
    share = np.clip(np.nan_to_num(table.data, nan=0.0), -bound, bound) / bound
    steps = sparse.csr_array((np.trunc(share * STEPS).astype(np.int64), table.indices, table.indptr), table.shape)
    used, place = np.unique(np.array(pairs, dtype=np.int64), return_inverse=True)
    kept = steps[:, used]
    gram = sparse.csr_array(kept.T @ kept)
    norms = gram.diagonal()
    first, second = place.reshape(-1, 2).T
    picked = gram[first, second]
    dots = picked.toarray().ravel() if sparse.issparse(picked) else np.asarray(picked).ravel()
    return [(int(dot), int(norms[i]), int(norms[j])) for dot, i, j in zip(dots, first, second, strict=True)]


def checked_pairs(pairs: Iterable[tuple[int, int]], items: int) -> tuple[tuple[int, int], ...]:
    """Pairs of different items as plain numbers."""
    try:
        found = tuple(
            (
                whole("an item of a pair", i, least=0, most=items - 1),
                whole("an item of a pair", j, least=0, most=items - 1),
            )
            for i, j in pairs
        )
    except (TypeError, ValueError):
        raise InvalidParameter("pairs are a list of two items each, as their columns.") from None
    if not found or any(i == j for i, j in found):
        raise InvalidParameter("at least one pair is needed, and each of two different items.")
    return found
