"""The routes from ratings to a slate, and what each promises at an epsilon: a function of public parameters alone."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from tacit.checks import keep, positive, whole
from tacit.curator.slate_ceiling import searched
from tacit.errors import InvalidParameter
from tacit.guarantees import Guarantee
from tacit.mechanisms import (
    FeatureSlate,
    GaussianKernel,
    GumbelTopK,
    LaplaceSum,
    NaturalSlate,
    NaturalSubset,
    SparseVector,
    TemperedSlate,
    VoteTotals,
)
from tacit.mechanisms.slate_draws import HYBRID_ITEMS, Sampler
from tacit.messages.private_slates_grid import MOST_KERNEL_ITEMS


class Route(StrEnum):
    """How a slate comes about."""

    TEMPERED = (
        "tempered"  # totals of likes, and public features: k-DPP of diag(e^(theta s/2)) F F^T diag(e^(theta s/2))
    )
    COUNTS = "counts"  # Laplace counts once; then any number of slates with public features
    NATURAL = "natural"  # popularity and similarity both private: k-DPP of sigma I + sum c c^T
    KERNEL = "kernel"  # sum c c^T with Gaussian noise once; then any number of slates
    FEATURE = "feature"  # natural, with c = F z for public features F
    TOP_K = "top-k"  # Gumbel top-k: popularity alone
    TWO_STAGE = "two-stage"  # Gumbel top-c, then natural among these
    SPARSE = "sparse"  # sparse vector finds items above a public threshold; a public k-DPP chooses among these
    SUBSET = "subset"  # unconstrained DPP: the size of the slate is drawn, too
    PUBLISHED = "published"  # natural with the paper's bound: for comparison, promises nothing


ONCE = frozenset({Route.COUNTS, Route.KERNEL})  # released once, for any number of slates
WEIGHED = frozenset(Route) - {
    Route.TOP_K,
    Route.SUBSET,
    Route.COUNTS,
    Route.KERNEL,
}  # routes that take a personal request
FEATURED = frozenset({Route.TEMPERED, Route.FEATURE, Route.SPARSE})  # routes that need public features


@dataclass(frozen=True, slots=True)
class Options:
    """What is public about a slate besides its epsilon.

    ``most_likes`` is the number of likes beyond which more make no difference, known without looking at the likes (None: a
    tenth of epsilon finds one). ``likes_each`` is what one person adds to Laplace counts, ``candidates`` how many items a first
    stage keeps, ``threshold`` the likes that the sparse vector asks for. ``sampler`` is that of natural slates; if it is not said,
    'hybrid', which draws exactly unless thousands of proposals fail, and with too many items 'exact', which never gives up.
    """

    items: int
    k: int = 10
    most_likes: float | None = None
    likes_each: float = 20.0
    candidates: int | None = None
    threshold: int | None = None
    sampler: Sampler | None = None

    def __post_init__(self) -> None:
        items = whole("the number of items", self.items, least=1, most=1 << 22)
        k = whole("k", self.k, least=1, most=items)
        keep(self, items=items, k=k, likes_each=positive("likes_each", self.likes_each))
        if self.most_likes is not None:
            keep(self, most_likes=positive("most_likes", self.most_likes))
        if self.candidates is not None:
            keep(self, candidates=whole("candidates", self.candidates, least=k, most=items))
        if self.threshold is not None:
            keep(self, threshold=whole("threshold", self.threshold, least=0, most=1 << 53))

    def kept(self, route: Route) -> int:
        """How many items the first stage of a route keeps: 100 of the top, 50 above a threshold, unless it is said."""
        usual = 100 if route is Route.TWO_STAGE else 50
        return self.candidates if self.candidates is not None else min(self.items, max(usual, self.k))

    def sampler_of(self, items: int) -> Sampler:
        """How a natural slate of so many items is drawn."""
        if self.sampler is not None:
            return self.sampler
        return "hybrid" if items <= HYBRID_ITEMS else "exact"


def promise(route: Route, options: Options, delta: float = 0.0) -> Callable[[float], Guarantee]:
    """The guarantee of one release by this route, as a function of its epsilon. It is the mechanism's own."""
    _require(route, options, delta)
    items, k = options.items, options.k
    plain = np.eye(
        min(items, k + 1)
    )  # what is promised does not depend on the features, only on whether there is a choice
    match route:
        case Route.TEMPERED:
            if (most := options.most_likes) is None:
                return lambda epsilon: searched(items, k, epsilon)
            return lambda epsilon: TemperedSlate.capped(plain, k, epsilon, high=most).guarantee
        case Route.COUNTS:
            return lambda epsilon: LaplaceSum(items, options.likes_each, epsilon).guarantee
        case Route.NATURAL:
            return lambda epsilon: NaturalSlate(items, k, epsilon, sampler=options.sampler_of(items)).guarantee
        case Route.KERNEL:
            return lambda epsilon: GaussianKernel(items, epsilon, delta).guarantee
        case Route.FEATURE:
            return lambda epsilon: FeatureSlate(plain, k, epsilon).guarantee
        case Route.TOP_K:
            return lambda epsilon: GumbelTopK(VoteTotals(), k, epsilon).guarantee
        case Route.TWO_STAGE:
            return lambda epsilon: two_stages(options, epsilon)[2]
        case Route.SPARSE:
            return lambda epsilon: sparse_vector(options, epsilon).guarantee
        case Route.SUBSET:
            return lambda epsilon: NaturalSubset(items, epsilon).guarantee
        case Route.PUBLISHED:
            return lambda epsilon: (
                NaturalSlate.published(items, k, epsilon, sampler=options.sampler_of(items)).guarantee
            )


def two_stages(options: Options, epsilon: float) -> tuple[GumbelTopK, NaturalSlate, Guarantee]:
    """Half of epsilon for the candidates, half for the slate among them (halves of a float are exact), and both together."""
    kept = options.kept(Route.TWO_STAGE)
    first = GumbelTopK(VoteTotals(), kept, epsilon / 2.0)
    second = NaturalSlate(kept, options.k, epsilon / 2.0, sampler=options.sampler_of(kept))
    return first, second, first.guarantee.then(second.guarantee)


def sparse_vector(options: Options, epsilon: float) -> SparseVector:
    return SparseVector(VoteTotals(), options.threshold or 0, epsilon, hits=options.kept(Route.SPARSE))


def _require(route: Route, options: Options, delta: float) -> None:
    if route is Route.SPARSE and options.threshold is None:
        raise InvalidParameter(
            "the route 'sparse' needs a threshold: a public number of likes, not one that is taken from these ratings."
        )
    if route is Route.TWO_STAGE and options.kept(route) >= options.items:
        raise InvalidParameter(
            f"the route 'two-stage' keeps {options.kept(route)} candidates, and there are only {options.items} items: ask for "
            "fewer candidates, or for the route 'natural'."
        )
    if route is Route.KERNEL and not delta > 0.0:
        raise InvalidParameter(
            "a kernel with Gaussian noise needs a delta above 0, such as 1e-6: give one, here and in the budget, or say how many "
            "slates are wanted."
        )
    if route is Route.KERNEL and options.items > MOST_KERNEL_ITEMS:
        raise InvalidParameter(
            f"a kernel is released for at most {MOST_KERNEL_ITEMS:,} items, not {options.items:,}: name a public part of them in "
            "`among`, or say how many slates are wanted."
        )
