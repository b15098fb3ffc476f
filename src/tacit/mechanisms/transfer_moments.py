"""What a transfer of taste between two domains is computed from, in one release of two steps. Proof:
docs/proofs/transfer-moments.md.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.checks import keep, positive, probability, whole
from tacit.errors import InvalidParameter
from tacit.guarantees import Guarantee, Release
from tacit.guarantees.rounding import sqrt_down
from tacit.mechanisms.drawn import released
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise
from tacit.mechanisms.offset_sums import NoisyOffsets, OffsetSums
from tacit.mechanisms.pair_moments import NoisyPairs, PairMoments
from tacit.mechanisms.products import MOST_COLUMNS
from tacit.mechanisms.rating_bounds import RatingBounds
from tacit.mechanisms.totals import Rows, gaussian_claim


@dataclass(frozen=True, slots=True, eq=False)
class NoisyTransfer:
    """Both steps of one release. Items from 0 to ``n_source`` - 1 are the source's, the rest the target's."""

    offsets: NoisyOffsets
    pairs: NoisyPairs | None  # None where no head was asked for
    n_source: int

    @property
    def head(self) -> NDArray[np.int64]:
        """The items of G, ascending."""
        return np.zeros(0, dtype=np.int64) if self.pairs is None else self.pairs.head

    def matrix(self) -> NDArray[np.float64]:
        """G on the head, with 0 on the diagonal."""
        return np.zeros((0, 0)) if self.pairs is None else self.pairs.matrix()

    @property
    def pair_sd(self) -> float:
        """Of the noise on a number of G; 0 without a head."""
        return 0.0 if self.pairs is None else self.pairs.sd


@dataclass(frozen=True)
class TransferMoments:
    """``OffsetSums`` of all items; then ``PairMoments`` of the ``head_size`` items whose noisy counts are largest.

    ``mu`` is the Gaussian loss of both steps together; ``offset_share`` of its square goes to the first. Both steps centre ratings
    in the same way. Without a head (``head_size`` = 0) the first step has it all.
    """

    name: ClassVar[str] = "transfer-moments"
    items: int
    n_source: int
    bounds: RatingBounds
    mu: float
    delta: float  # a probability
    head_size: int
    offset_share: float = 0.2
    offset_norm: float = 4.0
    mask: float = 0.5
    pair_norm: float = 4.0

    def __post_init__(self) -> None:
        items = whole("items", self.items, least=2)
        keep(
            self,
            items=items,
            n_source=whole("n_source", self.n_source, least=1, most=items - 1),
            mu=positive("mu", self.mu),
            delta=probability("delta", self.delta),
            head_size=whole("head_size", self.head_size, least=0, most=MOST_COLUMNS),
            offset_share=probability("offset_share", self.offset_share),
        )
        if self.head_size == 1:
            raise InvalidParameter("head_size must be 0, for no pairs at all, or at least 2.")
        _ = self.offsets  # what its parts refuse is refused here
        if self.head_size:
            _ = self.pairs(range(min(items, self.head_size)))

    @cached_property
    def guarantee(self) -> Guarantee:
        """What both sums together promise: epsilon at this delta for one user's rows in both domains."""
        return gaussian_claim(self.name, self.mu, self.delta)

    @cached_property
    def mus(self) -> tuple[float, float]:
        """The Gaussian losses of the two steps, rounded down: their squares add up to at most mu^2."""
        if not self.head_size:
            return self.mu, 0.0
        square = Fraction(self.mu) ** 2
        first = sqrt_down(Fraction(self.offset_share) * square)
        return first, sqrt_down(square - Fraction(first) ** 2)

    @cached_property
    def offsets(self) -> OffsetSums:
        """The first step."""
        return OffsetSums(self.items, self.bounds, self.mus[0], self.delta, norm=self.offset_norm, mask=self.mask)

    def pairs(self, head: "range | NDArray[np.int64]") -> PairMoments:
        """The second step, on a head that the first one chose."""
        chosen = tuple(int(item) for item in head)
        return PairMoments(self.items, chosen, self.bounds, self.mus[1], self.delta, norm=self.pair_norm)

    def head_of(self, offsets: NoisyOffsets) -> NDArray[np.int64]:
        """The items of largest noisy count, ascending; among equals those of lower code. From released numbers alone."""
        counts = offsets.steps[self.items :]
        order = np.argsort(-counts, kind="stable")
        return np.sort(order[: self.head_size]).astype(np.int64)

    def release(self, rows: Rows, noise: Noise = SYSTEM_NOISE) -> Release[NoisyTransfer]:
        """Both steps, one after the other: one release under one guarantee."""
        offsets = self.offsets.release(rows, noise).value
        pairs = self.pairs(self.head_of(offsets)).release(rows, noise).value if self.head_size else None
        return released(NoisyTransfer(offsets, pairs, self.n_source), self.guarantee, noise)
