"""Users with tastes that mean the same in two domains: rank 5, three in ten users in both, about thirty ratings on each side.

Of the world that reference figures are of only this description is left: spreads were chosen here so that averages and least
squares have about its errors. Figures are therefore compared with care; directions are what counts.
"""

from dataclasses import dataclass

import numpy as np

from tacit.data import STARS, TwoDomains, from_arrays
from tacit.evaluation.cross_domain.splits import Floats, Ints

RANK = 5
_MIDDLE, _USERS, _ITEMS, _TASTE, _NOISE = 3.5, 0.33, 0.43, 0.82, 0.63  # in stars
_LEAST = 5
_PERIOD = 1_000_000  # seconds


@dataclass(frozen=True, slots=True)
class Plan:
    """``drift``: how far, in radians, a user's taste turns from the first rating to the last."""

    users: int = 2000
    items: int = 300  # in each domain
    overlap: float = 0.3
    each: float = 30.0  # ratings of a user in a domain
    popularity: float = 0.65  # the item of rank r is rated r ** -popularity as often as the first
    drift: float = 0.0


def synthetic(plan: Plan, *, rng: np.random.Generator) -> TwoDomains:
    """Equal plans and generator states give equal worlds."""
    tastes, later = rng.standard_normal((2, plan.users, RANK))
    bias = _USERS * rng.standard_normal(plan.users)
    side = rng.permutation(plan.users) / plan.users  # below overlap: in both; the rest is shared out evenly
    in_source = side < plan.overlap + (1.0 - plan.overlap) / 2.0
    in_target = (side < plan.overlap) | ~in_source
    parts = []
    for place, present in enumerate((in_source, in_target)):
        factors = rng.standard_normal((plan.items, RANK))
        factors /= np.linalg.norm(factors, axis=1, keepdims=True)
        quality = _ITEMS * rng.standard_normal(plan.items)
        users, items = _rated(plan, np.flatnonzero(present), rng)
        when = rng.random(users.size)
        # the target is asked about at the end: there taste has turned all the way
        turned = plan.drift * (when if place == 0 else np.ones(users.size))
        taste = np.cos(turned)[:, None] * tastes[users] + np.sin(turned)[:, None] * later[users]
        liking = bias[users] + quality[items] + _TASTE * np.einsum("ur,ur->u", taste, factors[items])
        values = STARS.nearest(_MIDDLE + liking + _NOISE * rng.standard_normal(users.size))
        parts.append(
            from_arrays(
                users, items + place * plan.items, values, (when * _PERIOD).astype(np.int64), scale=STARS,
                name=f"synthetic {('source', 'target')[place]}",
            )
        )  # fmt: skip
    return TwoDomains.align(*parts)


def _rated(plan: Plan, users: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Who rates what: so many items of each user, drawn without repeats by popularity (the largest Gumbel keys)."""
    weights: Floats = -plan.popularity * np.log(1.0 + rng.permutation(plan.items))
    count = np.clip(rng.poisson(plan.each, users.size), _LEAST, plan.items)
    keys = weights + rng.gumbel(size=(users.size, plan.items))
    order = np.argsort(-keys, axis=1, kind="stable")
    taken = np.arange(plan.items) < count[:, None]
    return np.repeat(users, count), order[taken]
