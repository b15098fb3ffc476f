"""The definitions read aloud, in fractions: what the fast loops must give."""

from collections.abc import Mapping
from fractions import Fraction
from math import sqrt

import numpy as np
from scipy import sparse

Profiles = list[dict[int, int]]  # of each user: item -> rating, in whole steps

# eight users, items 0 to 2 in the source and 3 to 5 in the target
EXAMPLE: Profiles = [
    {0: 5, 1: 4, 2: 1},
    {0: 2, 1: 1, 2: 5},
    {1: 5, 3: 4, 4: 2},
    {1: 2, 3: 1, 4: 5},
    {3: 5, 5: 4, 4: 1},
    {3: 2, 5: 1, 4: 4},
    {1: 5, 3: 3, 4: 4},
    {3: 2, 4: 5, 5: 4},
]


def table(profiles: Profiles, n_items: int) -> sparse.csr_array:
    """Zeros are ratings: they are written down too."""
    starts = np.cumsum([0, *map(len, profiles)])
    cells = [sorted(profile.items()) for profile in profiles]
    items = [item for row in cells for item, _ in row]
    values = [float(value) for row in cells for _, value in row]
    return sparse.csr_array((values, np.array(items, dtype=np.int32), starts), shape=(len(profiles), n_items))


def slow_edges(
    profiles: Profiles, n_items: int, shrink: int, least: int = 1
) -> dict[tuple[int, int], tuple[float, int, float]]:
    """(i, j) -> s, S, share, for i != j with s other than 0 in exact arithmetic and S of at least ``least``."""
    raters = [
        {user: profile[item] for user, profile in enumerate(profiles) if item in profile} for item in range(n_items)
    ]
    means = [Fraction(sum(profile.values()), max(len(profile), 1)) for profile in profiles]
    item_means = [Fraction(sum(rated.values()), max(len(rated), 1)) for rated in raters]
    norms = [sum((value - means[user]) ** 2 for user, value in rated.items()) for rated in raters]
    found = {}
    for i in range(n_items):
        for j in range(n_items):
            common = raters[i].keys() & raters[j].keys()
            dot = sum((raters[i][user] - means[user]) * (raters[j][user] - means[user]) for user in common)
            agreed = sum((raters[i][user] >= item_means[i]) == (raters[j][user] >= item_means[j]) for user in common)
            if i == j or dot == 0 or agreed < least:
                continue
            cosine = float(dot) / sqrt(norms[i] * norms[j])
            if shrink:
                cosine *= min(len(common), shrink) / shrink
            found[i, j] = cosine, agreed, agreed / len(raters[i].keys() | raters[j].keys())
    return found


def slow_layers(edges: Mapping[tuple[int, int], object], n_items: int, n_source: int) -> list[int]:
    def touches(item: int, others: set[int]) -> bool:
        return any((item, other) in edges for other in others)

    domains = set(range(n_source)), set(range(n_source, n_items))
    layer = [0] * n_items
    for own, other in (domains, domains[::-1]):
        bridges = {item for item in own if touches(item, other)}
        near = {item for item in own - bridges if touches(item, bridges)}
        far = {item for item in own - bridges - near if touches(item, near)}
        for code, items in enumerate((bridges, near, far), start=1):
            for item in items:
                layer[item] = code
    return layer


def slow_best(
    edges: Mapping[tuple[int, int], tuple[float, int, float]], row: int, among: set[int], k: int, by: str = "signed"
) -> list[int]:
    """The k best of ``among`` for a row, the best first; cosines alike to twelve decimals are alike."""

    def key(item: int) -> tuple[float, int]:
        cosine = edges[row, item][0]
        return -round((abs(cosine) if by == "absolute" else cosine) * 1e12), item

    return sorted((item for item in among if (row, item) in edges), key=key)[:k]


def random_profiles(
    rng: np.random.Generator, n_users: int, n_items: int, most: int, *, constant: float = 0.1, top: int = 5
) -> Profiles:
    """Some users rate nothing, some all alike; ratings begin at 0, so that tables have zeros that are ratings."""
    found: Profiles = []
    for _ in range(n_users):
        items = rng.choice(n_items, size=rng.integers(0, most + 1), replace=False)
        values = rng.integers(0, top + 1, items.size)
        if rng.random() < constant:
            values[:] = rng.integers(0, top + 1)
        found.append({int(item): int(value) for item, value in zip(items, values, strict=True)})
    return found


def two_domains(rng: np.random.Generator, n_users: int, n_source: int, n_target: int, straddlers: float) -> Profiles:
    """Most users rate in one domain and few items, so that all layers occur."""
    found: Profiles = []
    for _ in range(n_users):
        both = rng.random() < straddlers
        low, high = (
            (0, n_source + n_target)
            if both
            else (0, n_source)
            if rng.random() < 0.5
            else (n_source, n_source + n_target)
        )
        middle = int(rng.integers(low, high))
        near = [item for item in range(middle - 2, middle + 3) if low <= item < high]
        items = rng.choice(near, size=min(3, len(near)), replace=False)
        if both:
            items = np.unique([rng.integers(0, 3), rng.integers(n_source, n_source + 3), *items[:1]])
        found.append({int(item): int(rng.integers(0, 6)) for item in items})
    return found
