"""Natural slates and subsets: items that many users like and that differ, drawn from a determinantal point process.

A slate has k items (docs/proofs/natural-slate.md), a subset as many as the draw gives (docs/proofs/natural-subset.md).
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import ClassVar, Literal, Self, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.checks import keep, member, positive, whole
from tacit.errors import InvalidParameter
from tacit.guarantees import Guarantee, Loss, LossKind, Neighbours, Relation, Release, nothing
from tacit.guarantees.arithmetic import up
from tacit.guarantees.guarantee import MECHANISM, finite_loss, one_user
from tacit.mechanisms.noise import FLOATS, SYSTEM_NOISE, Noise, NoiseCoins
from tacit.mechanisms.samplers.subsets import WholeKernel, determinant
from tacit.mechanisms.slates import (
    MOST_ITEMS,
    SQUARE,
    PreparedSlates,
    Sampler,
    assumption,
    natural_epsilon,
    published_sigma_for,
    require_sampler,
    selected_rows,
    sigma_for,
    slate_draw,
    subset_range,
    subset_sigma_for,
    whole_rows,
    whole_sigma,
)
from tacit.models.dpp.samplers import UnconstrainedSampler

Calibration = Literal["proved", "published"]
Rows: TypeAlias = ArrayLike | sparse.csr_array

LEAST_EPSILON = 1e-12
_PUBLISHED = "the paper's bound covers its eigenvalue step only, not the choice of the subset"
_MOST_OUTCOMES = 1 << 18
_MOST_LISTED = 16  # items whose subsets can be listed


@dataclass(frozen=True)
class NaturalSlate:
    """Draws ``k`` of ``items``, Y with probability proportional to det L_Y, L = sigma I + sum of c_u c_u^T over the users.

    Every user's row c_u is cut to ||c_u||^2 <= ``bound``. Set ``redrawn`` if slates are shown only if they pass a public rule: if
    users are replaced that costs twice, so the jitter is set for half of ``epsilon``.
    """

    name: ClassVar[str] = "natural-slate"
    items: int
    k: int
    epsilon: float  # nats
    bound: float = 1.0
    relation: Relation = Relation.ADD_REMOVE
    sampler: Sampler = "exact"
    redrawn: bool = False
    calibration: Calibration = "proved"

    def __post_init__(self) -> None:
        items = whole("items", self.items, least=1, most=MOST_ITEMS)
        keep(
            self,
            items=items,
            k=whole("k", self.k, least=1, most=items),
            epsilon=positive("epsilon", self.epsilon),
            bound=positive("bound", self.bound),
            relation=member("relation", Relation, self.relation),
        )
        if self.epsilon < LEAST_EPSILON:
            raise InvalidParameter(
                f"epsilon must be at least {LEAST_EPSILON:g}: below it a slate is practically uniform. Draw one without data."
            )
        if self.calibration not in get_args(Calibration):
            raise InvalidParameter("`calibration` must be 'proved' or 'published'.")
        if not isinstance(self.redrawn, bool):
            raise InvalidParameter("`redrawn` must be True or False.")
        require_sampler(self.sampler, items, self.sigma_in_squares)

    @classmethod
    def published(
        cls,
        items: int,
        k: int,
        epsilon: float,
        bound: float = 1.0,
        relation: Relation = Relation.ADD_REMOVE,
        sampler: Sampler = "exact",
    ) -> Self:
        """The same slate with the jitter that the paper's bound asks for. It promises nothing; ``proved`` is what it truly costs.

        ``epsilon`` is in nats, as the paper states it.
        """
        return cls(items, k, epsilon, bound, relation, sampler, calibration="published")

    @cached_property
    def sigma_in_squares(self) -> int:
        """The jitter as the kernel holds it: bound is 2^32."""
        if self.calibration == "published":
            return whole_sigma(published_sigma_for(self.epsilon, self.items), 1.0)
        return whole_sigma(sigma_for(self._asked), 1.0)

    @property
    def sigma(self) -> float:
        """The jitter in the units of the rows squared."""
        return self.sigma_in_squares / SQUARE * self.bound

    @property
    def protects(self) -> Neighbours:
        """One user's rows, added or removed, or replaced, as ``relation`` says."""
        return one_user(self.relation)

    @property
    def _costs_double(self) -> bool:
        """Whether one slate costs 2 log(1 + bound/sigma), the whole range of its loss."""
        return self.redrawn and self.relation is Relation.REPLACE

    @property
    def _asked(self) -> float:
        """The log(1 + bound/sigma) that epsilon affords."""
        return self.epsilon / 2.0 if self._costs_double else self.epsilon

    @cached_property
    def guarantee(self) -> Guarantee:
        """What one slate promises: epsilon, in nats, for one user's rows; nothing, in the published calibration."""
        if self.calibration == "published":
            return nothing(self.protects, _PUBLISHED, proof=self.name)
        return self.proved

    @cached_property
    def proved(self) -> Guarantee:
        """What the theorem proves for this jitter, from whichever bound it was computed."""
        if self.k == self.items:
            return self._free
        true = natural_epsilon(SQUARE, math.nextafter(self.sigma_in_squares, 0.0))
        eta = true if self.calibration == "published" else self._asked  # the jitter was rounded up for what was asked
        # added or removed: the range is eta. Replaced: 2 eta, and so is the cost itself where slates are redrawn
        spread = eta if self.relation is Relation.ADD_REMOVE else 2.0 * eta
        cost, loss = spread if self._costs_double else eta, finite_loss(LossKind.BOUNDED_RANGE, spread)
        stated = Guarantee(cost, self.protects, proof=self.name, loss=loss)
        assumed = assumption(self.sampler)
        return stated if assumed is None else stated.assuming(assumed)

    @property
    def _free(self) -> Guarantee:
        """All candidates are in the slate: there is only one outcome."""
        return Guarantee(0.0, self.protects, proof=self.name, loss=Loss(LossKind.BOUNDED_RANGE, 0.0))

    def outcomes(self) -> list[tuple[int, ...]]:
        """All slates, in the order of ``pmf``."""
        if math.comb(self.items, self.k) > _MOST_OUTCOMES:
            raise InvalidParameter(f"at most {_MOST_OUTCOMES} slates can be listed: choose fewer items.")
        return list(combinations(range(self.items), self.k))

    def pmf(self, rows: Rows) -> NDArray[np.float64]:
        """The probability of every slate, from the whole numbers of the kernel; for few items."""
        slates = self.outcomes()
        kernel = WholeKernel(whole_rows(rows, self.items, self.bound), self.sigma_in_squares)
        weights = [kernel.minor(np.array(slate)) for slate in slates]
        total = sum(weights)
        return np.array([weight / total for weight in weights])

    def release(self, rows: Rows, noise: Noise = SYSTEM_NOISE) -> Release[NDArray[np.int64]]:
        """One slate, its items in ascending order. ``rows`` is users x items, dense or sparse: weights such as 0/1 likes."""
        return self.prepare(rows).release(noise)

    def prepare(
        self, rows: Rows, *, request: ArrayLike | None = None, among: ArrayLike | None = None
    ) -> PreparedSlates[NDArray[np.int64]]:
        """The set-up for any number of slates of these rows.

        ``among`` restricts the slate to candidates, which must be public or released. ``request`` weights the items by numbers
        from 0 to 1, which must be public or the requester's own: other users are then protected, the requester is not.
        """
        table, chosen = selected_rows(rows, self.items, self.bound, least=self.k, among=among, request=request)
        guarantee = self._free if self.k == chosen.size else self.guarantee
        draw = slate_draw(table, self.sigma_in_squares, self.k, self.sampler)
        return PreparedSlates(
            chosen.size, self.k, guarantee, lambda count, noise: chosen[draw(count, noise)], MECHANISM
        )


@dataclass(frozen=True)
class NaturalSubset:
    """Draws a subset Y of ``items`` with probability det L_Y / det(I + L), L = sigma I + sum of c_u c_u^T over the users.

    Every user's row c_u is cut to ||c_u||^2 <= ``bound``. The draw also decides how many items the subset has. The expected
    share of the catalogue is at least sigma / (1 + sigma), so use this for small catalogues.
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
            one_user(self.relation),
            assumes=frozenset({FLOATS}),
            proof=self.name,
            loss=Loss(LossKind.BOUNDED_RANGE, eta if added else 2.0 * self.epsilon),
        )

    def outcomes(self) -> list[tuple[int, ...]]:
        """All subsets, in the order of ``pmf``."""
        if self.items > _MOST_LISTED:
            raise InvalidParameter(f"the subsets of at most {_MOST_LISTED} items can be listed.")
        return [subset for size in range(self.items + 1) for subset in combinations(range(self.items), size)]

    def pmf(self, rows: Rows) -> NDArray[np.float64]:
        """The probability of every subset, from the whole numbers of the kernel; for few items."""
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
    ) -> PreparedSlates[list[NDArray[np.int64]]]:
        """The set-up for any number of subsets of these rows; ``request`` and ``among`` as for a natural slate."""
        table, chosen = selected_rows(rows, self.items, self.bound, least=1, among=among, request=request)
        step = float(np.sqrt(self.bound / SQUARE))
        sampler = UnconstrainedSampler(sparse.csr_array(table.T.astype(np.float64) * step), self.sigma)

        def draw(count: int, noise: Noise) -> list[NDArray[np.int64]]:
            coins = NoiseCoins(noise)
            return [chosen[positions] for positions in sampler.draw_many(count, coins)]

        return PreparedSlates(chosen.size, None, self.guarantee, draw, MECHANISM)
