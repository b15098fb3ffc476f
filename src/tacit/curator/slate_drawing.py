"""From likes to a release, by the route of a plan. What depends on the likes is set up once, and no part of it can be refused."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.curator.preselection import above_then_public, top_then_natural
from tacit.curator.slate_ceiling import search_then_draw
from tacit.curator.slate_plan import Plan
from tacit.curator.slate_routes import Route
from tacit.errors import InvalidParameter
from tacit.guarantees import Release
from tacit.mechanisms import (
    FeatureSlate,
    GaussianKernel,
    GumbelTopK,
    LaplaceSum,
    NaturalSlate,
    NaturalSubset,
    Noise,
    TemperedSlate,
    VoteTotals,
)

Places: TypeAlias = NDArray[np.int64]
Draw: TypeAlias = Callable[[Noise], Release[Places]]
SetUp: TypeAlias = Callable[[sparse.csr_array], Draw]
Floats: TypeAlias = NDArray[np.float64]


def drawing(plan: Plan, features: Floats | None, request: Floats | None) -> SetUp:
    """What sets a route up for a table of likes and gives back what draws one slate. All that is public is checked here and now.

    ``request`` weighs the items by numbers from 0 to 1: public, or the requester's own.
    """
    options, epsilon, route = plan.options, plan.epsilon, plan.route
    items, k = options.items, options.k
    weighed = features if features is None or request is None else features * request[:, None]
    match route:
        case Route.TEMPERED:
            if options.most_likes is None:
                return search_then_draw(_needed(weighed, route), k, epsilon)
            tempered = TemperedSlate(_needed(weighed, route), k, epsilon, high=options.most_likes)
            return lambda likes: tempered.prepare(likes).release
        case Route.NATURAL | Route.PUBLISHED:
            natural = (NaturalSlate if route is Route.NATURAL else NaturalSlate.published)(
                items, k, epsilon, sampler=options.sampler_of(items)
            )
            return lambda likes: natural.prepare(likes, request=request).release
        case Route.FEATURE:
            table = _needed(weighed, route)
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
            public = _needed(weighed, route)
            return lambda likes: lambda noise: above_then_public(likes, options, epsilon, public, noise)
        case _:
            raise InvalidParameter(f"the route {route.value!r} releases once: use popularity() or similarity().")


def counting(plan: Plan) -> Callable[[sparse.csr_array, Noise], Release[Any]]:
    """What releases once for the routes 'counts' and 'kernel'."""
    if plan.route is Route.COUNTS:
        return LaplaceSum(plan.options.items, plan.options.likes_each, plan.epsilon).release
    return GaussianKernel(plan.options.items, plan.epsilon, plan.delta).release


def _needed(features: Floats | None, route: Route) -> Floats:
    if features is None:
        raise InvalidParameter(
            f"the route {route.value!r} needs public features of the items, and this catalogue has no genres: give `features`, "
            "or ask for the route 'natural'."
        )
    return features
