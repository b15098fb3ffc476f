"""The natural subset: as many items as the draw gives, liked by many and different. Proof: docs/proofs/natural-subset.md."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.checks import keep, member, positive, whole
from tacit.errors import InvalidParameter
from tacit.guarantees import ONE_USER, ONE_USER_REPLACED, Guarantee, Loss, LossKind, Relation, Release
from tacit.guarantees.rounding import up
from tacit.guarantees.slate_bounds import subset_range, subset_sigma_for
from tacit.mechanisms.natural_slate import LEAST_EPSILON, Rows
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise
from tacit.mechanisms.prepared import Prepared
from tacit.mechanisms.samplers.float_coins import FLOATS, NoiseCoins
from tacit.mechanisms.samplers.whole_kernel import WholeKernel, determinant
from tacit.mechanisms.slate_rows import MOST_ITEMS, SQUARE, selected_rows, whole_rows, whole_sigma
from tacit.models.dpp.unconstrained import UnconstrainedSampler

_MOST_LISTED = 16  # items whose subsets can be listed


@dataclass(frozen=True)
class NaturalSubset:
    """Draws a subset Y of ``items`` with probability det L_Y / det(I + L), L = sigma I + sum of c_u c_u^T over the users.

    Every user's row c_u is cut to ||c_u||^2 <= ``bound``. How many items it has is part of the draw: at least a share of
    sigma / (1 + sigma) of the catalogue is expected, so this is for small catalogues.
    """

    name: ClassVar[str] = "natural-subset"
    items: int
    epsilon: float  # nats
    bound: float = 1.0
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        keep(
            self,
            items=whole("items", self.items, least=1, most=MOST_ITEMS),
            epsilon=positive("epsilon", self.epsilon),
            bound=positive("bound", self.bound),
            relation=member("relation", Relation, self.relation),
        )
        if self.epsilon < LEAST_EPSILON:
            raise InvalidParameter(f"epsilon must be at least {LEAST_EPSILON:g}.")

    @cached_property
    def sigma_in_squares(self) -> int:
        """The jitter in squared steps, of which ``bound`` has 2^32; rounded up."""
        return whole_sigma(self._least_sigma, self.bound)

    @property
    def _least_sigma(self) -> float:
        return subset_sigma_for(self.epsilon, self.bound, self.relation)

    @property
    def sigma(self) -> float:
        """The jitter in the units of the rows squared, rounded up."""
        return up(Fraction(self.sigma_in_squares, SQUARE) * Fraction(self.bound))

    @cached_property
    def guarantee(self) -> Guarantee:
        """What one subset promises: epsilon, in nats, for one user's rows; composes by its bounded range."""
        added = self.relation is Relation.ADD_REMOVE
        # the range is log(1 + bound/sigma), which is more than epsilon where users are added; twice epsilon where replaced
        eta = max(self.epsilon, subset_range(self.bound, self._least_sigma))
        return Guarantee(
            self.epsilon,
            ONE_USER if added else ONE_USER_REPLACED,
            assumes=frozenset({FLOATS}),
            proof=self.name,
            loss=Loss(LossKind.BOUNDED_RANGE, eta if added else 2.0 * self.epsilon),
        )

    def outcomes(self) -> list[tuple[int, ...]]:
        """All subsets, in the order of ``pmf``."""
        if self.items > _MOST_LISTED:
            raise InvalidParameter(f"only the subsets of up to {_MOST_LISTED} items can be listed.")
        return [subset for size in range(self.items + 1) for subset in combinations(range(self.items), size)]

    def pmf(self, rows: Rows) -> NDArray[np.float64]:
        """The probability of every subset, from the kernel's own whole numbers; for few items."""
        subsets = self.outcomes()
        kernel = WholeKernel(whole_rows(rows, self.items, self.bound), self.sigma_in_squares)
        square = Fraction(self.bound) / SQUARE  # what a squared step is worth
        # L = square M with M in whole numbers: det L_Y = square^|Y| det M_Y, over square^n to keep whole numbers
        whole_part, parts = square.numerator, square.denominator
        weights = [
            (kernel.minor(np.array(subset)) if subset else 1)
            * whole_part ** len(subset)
            * parts ** (self.items - len(subset))
            for subset in subsets
        ]
        everything = [[int(cell) for cell in row] for row in kernel.products(np.arange(self.items)[None, :])[0]]
        for i, row in enumerate(everything):
            for j in range(self.items):
                row[j] = whole_part * (row[j] + (self.sigma_in_squares if i == j else 0)) + (parts if i == j else 0)
        total = determinant(everything)  # det(I + L), in the same units
        return np.array([weight / total for weight in weights])

    def release(self, rows: Rows, noise: Noise = SYSTEM_NOISE) -> Release[NDArray[np.int64]]:
        """One subset, its items in ascending order; it may be empty."""
        return self.prepare(rows).release(noise)

    def prepare(
        self, rows: Rows, *, request: ArrayLike | None = None, among: ArrayLike | None = None
    ) -> Prepared[list[NDArray[np.int64]]]:
        """The set-up for any number of subsets of these rows; ``request`` and ``among`` as for a natural slate."""
        table, chosen = selected_rows(rows, self.items, self.bound, least=1, among=among, request=request)
        step = float(np.sqrt(self.bound / SQUARE))
        sampler = UnconstrainedSampler(sparse.csr_array(table.T.astype(np.float64) * step), self.sigma)

        def draw(count: int, noise: Noise) -> list[NDArray[np.int64]]:
            coins = NoiseCoins(noise)
            return [chosen[places] for places in sampler.draw_many(count, coins)]

        return Prepared(chosen.size, None, self.guarantee, draw)
