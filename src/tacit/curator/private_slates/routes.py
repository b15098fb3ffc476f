"""The routes from likes to a slate: what each one promises, and how it draws.

`promise` is a function of public parameters alone. `set_up` checks everything public, then takes the likes, and gives back a
function that draws. Nothing that depends on a like can raise an error.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.checks import keep, positive, whole
from tacit.errors import InvalidParameter
from tacit.guarantees import Guarantee, Release
from tacit.guarantees.arithmetic import down
from tacit.mechanisms import (
    ExponentialMechanism,
    FeatureSlate,
    GaussianKernel,
    GridVector,
    GumbelTopK,
    LaplaceSum,
    NaturalSlate,
    NaturalSubset,
    Noise,
    SparseVector,
    TemperedSlate,
    VoteTotals,
)
from tacit.mechanisms.noise import NoiseCoins, promised
from tacit.mechanisms.samplers.coins import below_each
from tacit.mechanisms.slates import HYBRID_ITEMS, Sampler
from tacit.messages.private_slates import MOST_KERNEL_ITEMS
from tacit.models.dpp.samplers import SplitSampler
from tacit.models.dpp.tempered import MOST_NATS

Floats: TypeAlias = NDArray[np.float64]
Columns: TypeAlias = NDArray[np.int64]  # columns of the table of likes
Draw: TypeAlias = Callable[[Noise], Release[Any]]
SetUp: TypeAlias = Callable[[sparse.csr_array], Draw]

PUBLIC_JITTER = 0.01  # of the public k-DPP: candidates may have fewer directions than the slate has slots
SEARCH_SHARE = 10.0  # one part of ten of epsilon searches for the ceiling
MARGIN = 4.0  # scales of the noise: a count is further below the truth with probability e^-4 / 2 = 0.9 %
MOST_PEOPLE = 1 << 28  # likes of one item; if that many have room, there is nothing to search for


class Route(StrEnum):
    """How a slate is made from likes."""

    # totals of likes, and public features: k-DPP of diag(e^(theta s/2)) F F^T diag(e^(theta s/2))
    TEMPERED = "tempered"
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
WEIGHED = frozenset(Route) - {Route.TOP_K, Route.SUBSET, *ONCE}  # routes that take a personal request
FEATURED = frozenset({Route.TEMPERED, Route.FEATURE, Route.SPARSE})  # routes that need public features


@dataclass(frozen=True, slots=True)
class Options:
    """What is public about a slate besides its epsilon.

    - ``most_likes``: likes of an item beyond this number make no difference. It must be known without looking at the likes; with
      None, a tenth of epsilon searches for it.
    - ``likes_each``: what one person adds to Laplace counts at most.
    - ``candidates``: how many items a first stage keeps.
    - ``threshold``: the likes that the sparse vector asks for.
    - ``sampler``: of natural slates. The default 'hybrid' draws exactly unless thousands of proposals fail; with too many items the
      default is 'exact', which never gives up.
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
        """How many items the first stage of a route keeps. By default 100 of the top, or 50 above a threshold."""
        usual = 100 if route is Route.TWO_STAGE else 50
        return self.candidates if self.candidates is not None else min(self.items, max(usual, self.k))

    def sampler_of(self, items: int) -> Sampler:
        """How a natural slate from this many items is drawn."""
        if self.sampler is not None:
            return self.sampler
        return "hybrid" if items <= HYBRID_ITEMS else "exact"


def promise(route: Route, options: Options, delta: float = 0.0) -> Callable[[float], Guarantee]:
    """The guarantee of one release by this route, as a function of its epsilon. It is the mechanism's own."""
    _require_options(route, options, delta)
    items, k = options.items, options.k
    plain = np.eye(min(items, k + 1))  # the guarantee depends on whether there is a choice, not on the features
    match route:
        case Route.TEMPERED:
            if (most := options.most_likes) is None:
                return lambda epsilon: search_guarantee(items, k, epsilon)
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


def set_up(
    route: Route, options: Options, epsilon: float, delta: float, features: Floats | None, request: Floats | None
) -> SetUp:
    """Checks everything public; the result takes a table of likes and gives back what draws one release.

    ``request`` weighs the items by numbers from 0 to 1: public, or the requester's own.
    """
    items, k = options.items, options.k
    weighed = features if features is None or request is None else features * request[:, None]
    match route:
        case Route.TEMPERED:
            if options.most_likes is None:
                return search_then_draw(_require_features(weighed, route), k, epsilon)
            tempered = TemperedSlate(_require_features(weighed, route), k, epsilon, high=options.most_likes)
            return lambda likes: tempered.prepare(likes).release
        case Route.NATURAL | Route.PUBLISHED:
            natural = (NaturalSlate if route is Route.NATURAL else NaturalSlate.published)(
                items, k, epsilon, sampler=options.sampler_of(items)
            )
            return lambda likes: natural.prepare(likes, request=request).release
        case Route.FEATURE:
            table = _require_features(weighed, route)
            feature = FeatureSlate(table, k, epsilon)
            return lambda likes: feature.prepare(likes @ table).release
        case Route.SUBSET:
            subset = NaturalSubset(items, epsilon)
            return lambda likes: subset.prepare(likes).release
        case Route.TOP_K:
            top = GumbelTopK(VoteTotals(), k, epsilon)
            return lambda likes: lambda noise: top.release(likes, noise)
        case Route.TWO_STAGE:
            return lambda likes: lambda noise: top_then_natural(likes, options, epsilon, request, noise)
        case Route.SPARSE:
            public = _require_features(weighed, route)
            return lambda likes: lambda noise: above_then_public(likes, options, epsilon, public, noise)
        case Route.COUNTS:
            counts = LaplaceSum(items, options.likes_each, epsilon)
            return lambda likes: lambda noise: counts.release(likes, noise)
        case Route.KERNEL:
            kernel = GaussianKernel(items, epsilon, delta)
            return lambda likes: lambda noise: kernel.release(likes, noise)


# ---- The ceiling of a tempered slate: up to how many likes count, found privately if no public number is known.
#
# A tenth of epsilon finds it: half of that picks an item that many people like, half counts its likes. The rest draws the slate. If
# that many likes make more than 40 nats, theta is lowered until they make 40. Neither the item nor the count leaves.


def likes_that_fit(k: int, epsilon: float) -> float:
    """How many likes fit into 40 nats, at epsilon / k nats each; at least one."""
    return max(1.0, float(math.floor(_likes_in_nats(k, epsilon))))


def search_stages(k: int, epsilon: float) -> tuple[ExponentialMechanism, LaplaceSum, float] | None:
    """What picks an item, what counts its likes, and the epsilon that is left; None if there is no need to search.

    The three add up to epsilon exactly: ``epsilon - left`` is not rounded (Sterbenz's lemma), nor is its half.
    """
    if _likes_in_nats(k, epsilon) >= MOST_PEOPLE:
        return None
    left = epsilon - epsilon / SEARCH_SHARE
    half = (epsilon - left) / 2.0
    return ExponentialMechanism(VoteTotals(), half), LaplaceSum(1, 1.0, half), left


def search_guarantee(items: int, k: int, epsilon: float) -> Guarantee:
    """The guarantee of a slate with a search: all three stages together. Lowering theta later does not weaken it."""
    plain = np.eye(min(items, k + 1))  # the guarantee depends on whether there is a choice, not on the features
    stages = search_stages(k, epsilon)
    if stages is None or k == items:
        return _whole_range_slate(plain, k, epsilon).guarantee
    pick, count, left = stages
    return pick.guarantee.then(count.guarantee).then(_whole_range_slate(plain, k, left).guarantee)


def search_then_draw(features: Floats, k: int, epsilon: float) -> SetUp:
    """Draws slates, each with a search of its own, which its charge covers. Everything public is checked now."""
    stages, guarantee = search_stages(k, epsilon), search_guarantee(len(features), k, epsilon)
    if stages is None or k == len(features):
        whole_slate = _whole_range_slate(features, k, epsilon)
        return lambda likes: whole_slate.prepare(likes).release
    pick, count, left = stages
    # Round the features as the mechanism does, until they no longer change: below, only the range may differ.
    table, before = _whole_range_slate(features, k, left).features, features
    while not np.array_equal(table, before):
        table, before = _whole_range_slate(table, k, left).features, table
    least, margin = likes_that_fit(k, left), MARGIN / count.epsilon
    possible = np.flatnonzero(table.any(axis=1))  # items without features, or of weight 0, are in no slate

    def draw(likes: sparse.csr_array, part: sparse.csr_array, noise: Noise) -> Release[Columns]:
        counted = pick.release(part, noise).then(lambda item: count.release(part[:, [item]], noise))

        def slate(near: GridVector) -> Release[Columns]:
            ceiling = max(least, float(near.to_floats()[0]) + margin)
            return TemperedSlate.capped(table, k, left, high=ceiling).release(likes, noise)

        # The guarantee is the public one: this slate's own epsilon would reveal the ceiling.
        return counted.then(slate).under(promised(guarantee, noise))

    def set_up_draw(likes: sparse.csr_array) -> Draw:
        part = likes if possible.size == len(table) else likes[:, possible]
        return lambda noise: draw(likes, part, noise)

    return set_up_draw


def _likes_in_nats(k: int, epsilon: float) -> Fraction:
    return Fraction(MOST_NATS) * k / Fraction(epsilon)


def _whole_range_slate(features: Floats, k: int, epsilon: float) -> TemperedSlate:
    """A tempered slate that uses all of epsilon, over the range that 40 nats leave it."""
    return TemperedSlate(features, k, epsilon, high=down(_likes_in_nats(k, epsilon)))


# ---- Two stages: first candidates, then a slate among them.


def two_stages(options: Options, epsilon: float) -> tuple[GumbelTopK, NaturalSlate, Guarantee]:
    """Half of epsilon for the candidates, half for the slate among them (halves of a float are exact), and both together."""
    kept = options.kept(Route.TWO_STAGE)
    first = GumbelTopK(VoteTotals(), kept, epsilon / 2.0)
    second = NaturalSlate(kept, options.k, epsilon / 2.0, sampler=options.sampler_of(kept))
    return first, second, first.guarantee.then(second.guarantee)


def top_then_natural(
    likes: sparse.csr_array, options: Options, epsilon: float, request: Floats | None, noise: Noise
) -> Release[Columns]:
    """The most liked items by Gumbel noise, then a natural slate among them. The rows are cut again to these items."""
    first, second, _ = two_stages(options, epsilon)

    def slate(candidates: Columns) -> Release[Columns]:
        weights = None if request is None else request[candidates]
        among = second.prepare(likes[:, candidates], request=weights).release(noise)
        return among.map(lambda chosen: candidates[chosen])

    return first.release(likes, noise).map(np.sort).then(slate)


def sparse_vector(options: Options, epsilon: float) -> SparseVector:
    """The mechanism that finds items above the threshold."""
    return SparseVector(VoteTotals(), options.threshold or 0, epsilon, hits=options.kept(Route.SPARSE))


def above_then_public(
    likes: sparse.csr_array, options: Options, epsilon: float, features: Floats, noise: Noise
) -> Release[Columns]:
    """Items above a public threshold by the sparse vector, in a random order; then a k-DPP of public features among them.

    The second stage uses released candidates and public features only, so it costs nothing. If fewer than k items are found, the
    others are drawn uniformly from the rest.
    """
    mechanism = sparse_vector(options, epsilon)
    order = shuffle_items(options.items, noise)  # without it, the first items would use up the hits

    def slate(answers: tuple[bool, ...]) -> Columns:
        above = np.sort(order[: len(answers)][np.array(answers, dtype=np.bool_)])
        k = options.k
        if above.size <= k:
            rest = np.setdiff1d(np.arange(options.items), above, assume_unique=True)
            return np.sort(np.concatenate([above, rest[shuffle_items(rest.size, noise)[: k - above.size]]]))
        return np.sort(above[SplitSampler(features[above], PUBLIC_JITTER, k).draw(NoiseCoins(noise))])

    return mechanism.release(likes[:, order], noise).map(slate)


def shuffle_items(count: int, noise: Noise) -> Columns:
    """A uniformly random order of the numbers below ``count`` (Fisher and Yates), drawn from privacy noise."""
    order = np.arange(count, dtype=np.int64)
    swaps = below_each(np.arange(1, count + 1, dtype=np.int64), noise).tolist()
    for position in range(count - 1, 0, -1):
        other = swaps[position]
        order[position], order[other] = order[other], order[position]
    return order


def _require_features(features: Floats | None, route: Route) -> Floats:
    if features is None:
        raise InvalidParameter(
            f"the route {route.value!r} needs public features of the items, and this catalogue has no genres: give `features`, "
            "or ask for the route 'natural'."
        )
    return features


def _require_options(route: Route, options: Options, delta: float) -> None:
    if route is Route.SPARSE and options.threshold is None:
        raise InvalidParameter(
            "the route 'sparse' needs `threshold`: a public number of likes. Do not take it from these ratings."
        )
    if route is Route.TWO_STAGE and options.kept(route) >= options.items:
        raise InvalidParameter(
            f"the route 'two-stage' keeps {options.kept(route)} candidates, and there are only {options.items} items: ask for "
            "fewer candidates, or for the route 'natural'."
        )
    if route is Route.KERNEL and not delta > 0.0:
        raise InvalidParameter(
            "a kernel with Gaussian noise needs a delta above 0, such as 1e-6: give one, here and in the budget, or say how many "
            "slates you want."
        )
    if route is Route.KERNEL and options.items > MOST_KERNEL_ITEMS:
        raise InvalidParameter(
            f"a kernel is released for at most {MOST_KERNEL_ITEMS:,} items, not {options.items:,}: name a public part of them in "
            "`among`, or say how many slates you want."
        )
