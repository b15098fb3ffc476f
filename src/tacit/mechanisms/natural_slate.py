"""The natural slate: k items that many users like and that differ, drawn from a k-DPP. Proof: docs/proofs/natural-slate.md."""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import ClassVar, Literal, Self, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tacit.checks import keep, member, positive, whole
from tacit.errors import InvalidParameter
from tacit.guarantees import (
    ONE_USER,
    ONE_USER_REPLACED,
    Guarantee,
    Loss,
    LossKind,
    Neighbours,
    Relation,
    Release,
    nothing,
)
from tacit.guarantees.slate_bounds import natural_epsilon, published_sigma_for, sigma_for
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise
from tacit.mechanisms.prepared import Prepared
from tacit.mechanisms.samplers.whole_kernel import WholeKernel
from tacit.mechanisms.slate_draws import Sampler, assumption, require_sampler, slate_draw
from tacit.mechanisms.slate_rows import MOST_ITEMS, SQUARE, selected_rows, whole_rows, whole_sigma

Calibration = Literal["proved", "published"]
Rows: TypeAlias = ArrayLike | sparse.csr_array

LEAST_EPSILON = 1e-12
_PUBLISHED = "the paper's bound covers its eigenvalue step only, not the choice of the subset"
_MOST_OUTCOMES = 1 << 18


@dataclass(frozen=True)
class NaturalSlate:
    """Draws ``k`` of ``items``, Y with probability proportional to det L_Y, L = sigma I + sum of c_u c_u^T over the users.

    Every user's row c_u is cut to ||c_u||^2 <= ``bound``. ``redrawn`` says that slates are shown only if they pass a public
    rule: when users are replaced that costs twice, so the jitter is set for half of ``epsilon``.
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
                f"epsilon must be at least {LEAST_EPSILON:g}: below it a slate is as good as uniform, so draw it without data."
            )
        if self.calibration not in get_args(Calibration):
            raise InvalidParameter("the calibration must be 'proved' or 'published'.")
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
        """The same slate with the jitter that the paper's bound asks for. It promises nothing; ``proved`` says what it costs.

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
        return ONE_USER if self.relation is Relation.ADD_REMOVE else ONE_USER_REPLACED

    @property
    def _twice(self) -> bool:
        return self.redrawn and self.relation is Relation.REPLACE

    @property
    def _asked(self) -> float:
        """The log(1 + bound/sigma) that epsilon affords."""
        return self.epsilon / 2.0 if self._twice else self.epsilon

    @cached_property
    def guarantee(self) -> Guarantee:
        """What one slate promises: epsilon, in nats, for one user's rows; nothing, in the published calibration."""
        if self.calibration == "published":
            return nothing(self.protects, _PUBLISHED, proof=self.name)
        return self.proved

    @cached_property
    def proved(self) -> Guarantee:
        """What the theorem proves of this jitter, whichever bound it was taken from."""
        if self.k == self.items:
            return self._free
        true = natural_epsilon(SQUARE, math.nextafter(self.sigma_in_squares, 0.0))
        eta = true if self.calibration == "published" else self._asked  # the jitter was rounded up for what was asked
        # added or removed: the range is eta. Replaced: 2 eta, and so is the cost itself where slates are redrawn
        spread = eta if self.relation is Relation.ADD_REMOVE else 2.0 * eta
        loss = Loss(LossKind.BOUNDED_RANGE, spread) if math.isfinite(spread) else None
        stated = Guarantee(spread if self._twice else eta, self.protects, proof=self.name, loss=loss)
        assumed = assumption(self.sampler)
        return stated if assumed is None else stated.assuming(assumed)

    @property
    def _free(self) -> Guarantee:
        """All candidates are in the slate: there is one outcome, and it says nothing."""
        return Guarantee(0.0, self.protects, proof=self.name, loss=Loss(LossKind.BOUNDED_RANGE, 0.0))

    def outcomes(self) -> list[tuple[int, ...]]:
        """All slates, in the order of ``pmf``."""
        if math.comb(self.items, self.k) > _MOST_OUTCOMES:
            raise InvalidParameter(f"only up to {_MOST_OUTCOMES} slates can be listed; this is for small cases.")
        return list(combinations(range(self.items), self.k))

    def pmf(self, rows: Rows) -> NDArray[np.float64]:
        """The probability of every slate, from the kernel's own whole numbers; for few items."""
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
    ) -> Prepared[NDArray[np.int64]]:
        """The set-up for any number of slates of these rows.

        ``among`` restricts the slate to candidates, which must be public or themselves released. ``request`` weighs the items
        by numbers from 0 to 1, which must be public or the requester's own: the other users are then protected, the
        requester is not.
        """
        table, chosen = selected_rows(rows, self.items, self.bound, least=self.k, among=among, request=request)
        guarantee = self._free if self.k == chosen.size else self.guarantee
        draw = slate_draw(table, self.sigma_in_squares, self.k, self.sampler)
        return Prepared(chosen.size, self.k, guarantee, lambda count, noise: chosen[draw(count, noise)])
