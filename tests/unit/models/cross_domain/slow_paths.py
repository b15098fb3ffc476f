"""The slow and obvious way: similarities pair by pair, paths by recursion, predictions by loops over dictionaries."""

import math
from collections import defaultdict
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from tacit.models.cross_domain.edges import Edges
from tacit.models.cross_domain.similarities import Leg, Legs

Profile = dict[int, float]

EXAMPLE = (  # users of the worked example: item = value, in the order of time
    {0: 5.0, 1: 4.0, 2: 1.0},
    {0: 2.0, 1: 1.0, 2: 5.0},
    {1: 5.0, 3: 4.0, 4: 2.0},
    {1: 2.0, 3: 1.0, 4: 5.0},
    {3: 5.0, 5: 4.0, 4: 1.0},
    {3: 2.0, 5: 1.0, 4: 4.0},
    {1: 5.0, 3: 3.0, 4: 4.0},
    {3: 2.0, 4: 5.0, 5: 4.0},
)


def matrix(profiles: Any, n_items: int) -> Any:
    """Profiles as users x items; a value of 0 is a rating too."""
    users = np.array([user for user, profile in enumerate(profiles) for _ in profile], dtype=np.int64)
    items = np.array([item for profile in profiles for item in sorted(profile)], dtype=np.int64)
    values = np.array([profile[item] for profile in profiles for item in sorted(profile)], dtype=np.float64)
    starts = np.concatenate([[0], np.cumsum(np.bincount(users, minlength=len(profiles)))])
    return csr_array((values, items, starts), shape=(len(profiles), n_items))


def profiles_of(ratings: Any) -> list[Profile]:
    return [
        {
            int(ratings.indices[place]): float(ratings.data[place])
            for place in range(ratings.indptr[user], ratings.indptr[user + 1])
        }
        for user in range(ratings.shape[0])
    ]


def drawn_ratings(rng: np.random.Generator, users: int, items: int, share: float) -> Any:
    """Ratings of 1 to 5, each given with a chance of ``share``."""
    table = rng.integers(1, 6, size=(users, items)) * (rng.random((users, items)) < share)
    return csr_array(table.astype(np.float64))


def cosine(profiles: list[Profile], i: int, j: int, significant: int = 0) -> float:
    """The adjusted cosine, norms over all raters."""
    means = [sum(one.values()) / len(one) if one else 0.0 for one in profiles]
    both = [(p[i] - m) * (p[j] - m) for p, m in zip(profiles, means, strict=True) if i in p and j in p]
    norms = [math.sqrt(sum((p[a] - m) ** 2 for p, m in zip(profiles, means, strict=True) if a in p)) for a in (i, j)]
    if not both or norms[0] * norms[1] == 0.0:
        return 0.0
    shrunk = min(len(both), significant) / significant if significant else 1.0
    return shrunk * math.fsum(both) / (norms[0] * norms[1])


def edges_by_pairs(ratings: Any) -> Edges:
    """All edges, without shrinkage."""
    profiles, n = profiles_of(ratings), ratings.shape[1]
    raters = [{u for u, p in enumerate(profiles) if i in p} for i in range(n)]
    means = [np.mean([profiles[u][i] for u in raters[i]]) if raters[i] else 0.0 for i in range(n)]
    found: list[tuple[int, int, float, int, float]] = []
    for i in range(n):
        for j in range(n):
            if i == j or not raters[i] & raters[j]:
                continue
            agree = sum(
                (profiles[u][i] >= means[i]) == (profiles[u][j] >= means[j]) for u in sorted(raters[i] & raters[j])
            )
            similar = cosine(profiles, i, j)
            if abs(similar) > 1e-12 and agree:
                found.append((i, j, similar, agree, agree / len(raters[i] | raters[j])))
    rows, items, cosines, agreeing, shares = (np.array([edge[place] for edge in found]) for place in range(5))
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows.astype(int), minlength=n))])
    return Edges(starts, items.astype(np.int32), cosines.astype(float), agreeing.astype(np.int64), shares.astype(float))


def x_sim_by_recursion(legs: Legs) -> dict[tuple[int, int], tuple[float, float]]:
    """X-SIM and certainty of each (source item, target item, from 0), every path walked edge by edge."""
    top: dict[tuple[int, int], float] = defaultdict(float)
    bottom: dict[tuple[int, int], float] = defaultdict(float)
    out = (legs.far_source, legs.near_source, legs.bridge)
    back = (legs.near_target, legs.far_target)

    def arrive(start: int, item: int, path: list[tuple[float, int, float]]) -> None:
        weight = sum(s for _, s, _ in path)
        certainty = math.prod(share for _, _, share in path)
        key = (start, item - legs.n_source)
        top[key] += certainty * sum(c * s for c, s, _ in path) / weight
        bottom[key] += certainty

    def walk_back(start: int, item: int, path: list[tuple[float, int, float]], depth: int) -> None:
        arrive(start, item, path)
        if depth < 2:
            for outer, edge in _edges(back[depth], item, inner=True):
                walk_back(start, outer, [*path, edge], depth + 1)

    def walk_out(start: int, item: int, path: list[tuple[float, int, float]], depth: int) -> None:
        for inner, edge in _edges(out[depth], item, inner=False):
            if depth == 2:
                walk_back(start, inner, [*path, edge], 0)
            else:
                walk_out(start, inner, [*path, edge], depth + 1)

    for start in range(legs.n_source):
        for depth in range(3):  # an item has edges in the leg of its own layer only
            walk_out(start, start, [], depth)
    return {key: (top[key] / bottom[key], bottom[key]) for key in bottom}


def _edges(leg: Leg, item: int, *, inner: bool) -> list[tuple[int, tuple[float, int, float]]]:
    near, other = (leg.second, leg.first) if inner else (leg.first, leg.second)
    return [
        (int(other[e]), (float(leg.cosine[e]), int(leg.significance[e]), float(leg.share[e])))
        for e in np.flatnonzero(near == item)
    ]


def predict_by_loops(
    profiles: list[Profile],
    profile: Profile,
    times: dict[int, int] | None,
    item: int,
    n_items: int,
    *,
    k: int,
    similar: str,
    level: float | None,
    alpha: float,
    shrink: float,
    significant: int,
    scale: tuple[float, float],
) -> float:
    """One item-based prediction, the formula read aloud."""
    everything = [value for one in profiles for value in one.values()]
    means = []
    for j in range(n_items):
        own = [one[j] for one in profiles if j in one]
        means.append(sum(own) / len(own) if own else sum(everything) / len(everything))
    base = [mean + (0.0 if level is None else level) for mean in means]
    near = {j: cosine(profiles, item, j, significant) for j in range(n_items) if j != item}
    near = {j: s for j, s in near.items() if abs(s) > 1e-12}
    if similar == "rated":
        near = {j: s for j, s in near.items() if j in profile}
    best = sorted(near, key=lambda j: (-round(near[j], 12), j))[:k]
    used = [j for j in best if j in profile]
    age = dict.fromkeys(used, 1.0)
    known = [] if times is None else [times[j] for j in used if times[j] != np.iinfo(np.int64).min]
    if times is not None and known:
        order = sorted({times[j] for j in used})
        age = {j: math.exp(-alpha * (len(order) + 1 - (order.index(times[j]) + 1))) for j in used}
    if not used:
        return min(max(base[item], scale[0]), scale[1])
    top = sum(near[j] * age[j] * (profile[j] - base[j]) for j in used)
    bottom = sum(abs(near[j]) * age[j] for j in used) + shrink
    return min(max(base[item] + top / bottom, scale[0]), scale[1])
