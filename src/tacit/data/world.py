"""Synthetic ratings with tastes, genres, a long tail, times, a second domain and entities; and synthetic counts.

Popularity and taste decide who rates what, so the pattern of ratings carries information, as in real data. The same taste
decides how much a user likes an item. Two domains share the users' tastes and the meaning of genres.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args, overload

import numpy as np
from numpy.typing import NDArray

from tacit.checks import finite, positive, whole
from tacit.data.assemble import Columns, RowSource, assemble
from tacit.data.catalogue import GENRES, Catalogue
from tacit.data.pairs import TwoDomains
from tacit.data.ratings import COUNTS, GENERATED, HALF_STARS, Entities, Ratings, Scale, generator
from tacit.errors import InvalidParameter

Law: TypeAlias = Literal["lognormal", "gamma"]

# Standard deviations in stars on the scale 0.5 to 5; together about one star.
_USER_SPREAD, _ITEM_SPREAD, _TASTE_SPREAD, _NOISE = 0.35, 0.35, 0.8, 0.6
_ENTITY_SHARE = 0.2  # of the variance of tastes is between entities
_STEEPEST = 10.0  # popularity and selectivity; beyond it the arithmetic overflows
_ROUNDS = 16  # of drawing missing items; a heavy user of a small catalogue may end up with slightly fewer
_RELUCTANCE = np.float32(1.0)  # a user rates an indifferent item on one of four occasions
_PAIRS_PER_CHUNK = 1 << 18  # bounds the memory, independent of the number of users
_CELLS_PER_CHUNK = 1 << 22  # bounds the memory of a world of counts
_FIRST_DAY, _YEAR = 1_000_000_000, 31_557_600


@overload
def synthetic(
    *, users: int = ..., items: int = ..., ratings_per_user: float = ..., rank: int = ..., genres: tuple[str, ...] = ...,
    popularity: float = ..., selectivity: float = ..., scale: Scale = ..., timestamps: bool = ...,
    second_domain: Literal[False] = ..., overlap: float = ..., entities: int = ..., rng: np.random.Generator,
) -> Ratings: ...  # fmt: skip
@overload
def synthetic(
    *, users: int = ..., items: int = ..., ratings_per_user: float = ..., rank: int = ..., genres: tuple[str, ...] = ...,
    popularity: float = ..., selectivity: float = ..., scale: Scale = ..., timestamps: bool = ...,
    second_domain: Literal[True], overlap: float = ..., entities: int = ..., rng: np.random.Generator,
) -> TwoDomains: ...  # fmt: skip
def synthetic(
    *,
    users: int = 1000,
    items: int = 600,
    ratings_per_user: float = 50.0,
    rank: int = 8,
    genres: tuple[str, ...] = GENRES,
    popularity: float = 0.9,
    selectivity: float = 2.0,
    scale: Scale = HALF_STARS,
    timestamps: bool = True,
    second_domain: bool = False,
    overlap: float = 0.5,
    entities: int = 0,
    rng: np.random.Generator,
) -> Ratings | TwoDomains:
    """Ratings of synthetic users; with ``second_domain`` two domains, with a share ``overlap`` of the users in both.

    ``popularity`` is the exponent of the long tail: the item of rank r is seen r ** -popularity times as often as the first.
    ``selectivity`` is how strongly taste decides what is rated, ``entities`` the number of organisations that hold the users.
    Equal arguments and generator states give equal data.
    """
    whole("users", users, least=1)
    whole("items", items, least=2)
    whole("rank", rank, least=1)
    whole("entities", entities, least=0)
    positive("ratings_per_user", ratings_per_user)
    for name, exponent in (("popularity", popularity), ("selectivity", selectivity)):
        if abs(finite(name, exponent)) > _STEEPEST:
            raise InvalidParameter(f"{name} must lie from -{_STEEPEST:g} to {_STEEPEST:g}, not {exponent:g}.")
    generator(rng)
    if not genres or not 0.0 <= overlap <= 1.0 or not np.isfinite(scale.high):
        raise InvalidParameter("genres must not be empty, overlap must lie from 0 to 1, and the scale must be finite.")
    user_ids = np.arange(1, users + 1, dtype=np.int64)
    groups = _groups(users, entities, rng)
    people = _people(users, rank, groups, rng)
    directions = _unit_rows(rng.standard_normal((len(genres), rank)))

    def domain(name: str, first_item: int, present: NDArray[np.bool_]) -> Ratings:
        targets = np.where(present, _targets(users, items, ratings_per_user, rng), 0)
        flags = _genre_flags(items, len(genres), rng)
        mixed = flags @ directions / np.sqrt(flags.sum(axis=1, keepdims=True))
        factors = _unit_rows(mixed + 0.7 * rng.standard_normal((items, rank)) / np.sqrt(rank))
        weights = (1.0 + rng.permutation(items)) ** -popularity
        exposure = _Exposure(people.tastes, factors.astype(np.float32), weights / weights.sum(), selectivity)
        ids = np.arange(first_item, first_item + items, dtype=np.int64)
        columns = _columns(user_ids, ids, targets, exposure, people, scale, timestamps, rng)
        catalogue = Catalogue(ids, tuple(f"{name.title()} {item}" for item in ids.tolist()), flags, genres)
        ratings = assemble(
            columns, scale=scale, source=RowSource(name), name=name, catalogue=catalogue, provenance=GENERATED
        )
        return ratings if groups is None else ratings.with_entities(groups)

    if not second_domain:
        return domain("synthetic", 1, np.ones(users, dtype=np.bool_))
    side = rng.permutation(users) / users  # below overlap: in both domains; the rest is divided evenly
    in_source = side < overlap + (1 - overlap) / 2
    in_target = (side < overlap) | ~in_source
    return TwoDomains(domain("synthetic source", 1, in_source), domain("synthetic target", 1 + items, in_target))


def synthetic_counts(
    *,
    users: int = 1000,
    items: int = 200,
    rank: int = 10,
    law: Law = "lognormal",
    entities: int = 0,
    rng: np.random.Generator,
) -> Ratings:
    """Poisson counts with a low-rank rate, such as drugs given to patients: exp(U V^T), or a gamma rate of exactly that rank.

    The exponent is scaled to variance 1. Without scaling, as published, a rank of 100 gives an exponent of standard deviation
    10 and counts beyond any integer. Each user gets a random one of ``entities`` entities.
    """
    whole("users", users, least=1)
    whole("items", items, least=1)
    whole("rank", rank, least=1)
    whole("entities", entities, least=0)
    generator(rng)
    if law not in get_args(Law):
        raise InvalidParameter(f"law must be one of {', '.join(get_args(Law))}, not {law!r}.")
    if law == "lognormal":
        left, right = (rank**-0.25 * rng.standard_normal((side, rank)) for side in (users, items))
    else:
        left, right = (rng.gamma(1.0, rank**-0.5, (side, rank)) for side in (users, items))  # the mean rate is 1
    parts = []
    step = max(1, _CELLS_PER_CHUNK // items)
    for start in range(0, users, step):
        rate = left[start : start + step] @ right.T
        counts = rng.poisson(np.exp(rate) if law == "lognormal" else rate)
        rows, columns = np.nonzero(counts)
        parts.append(
            (
                rows.astype(np.int32) + np.int32(start),
                columns.astype(np.int32),
                counts[rows, columns].astype(np.float32),
            )
        )
    raters, rated, values = (np.concatenate(column) for column in zip(*parts, strict=True))
    ids = [np.arange(1, side + 1, dtype=np.int64) for side in (users, items)]
    ratings = assemble(
        Columns((ids[0], raters), (ids[1], rated), values),
        scale=COUNTS,
        source=RowSource("synthetic counts"),
        name="synthetic counts",
        provenance=GENERATED,
    )
    if not entities:
        return ratings
    names = tuple(str(number) for number in range(1, entities + 1))
    return ratings.with_entities(Entities("entity", names, rng.integers(entities, size=users, dtype=np.int32)))


@dataclass(frozen=True, slots=True)
class _People:
    tastes: NDArray[np.float32]  # users x rank, variance 1
    bias: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _Exposure:
    """Which items a user rates: popular and agreeable ones more often, each once."""

    tastes: NDArray[np.float32]  # users x rank
    factors: NDArray[np.float32]  # items x rank
    popularity: NDArray[np.float64]  # of each item, sums to 1
    selectivity: float  # how strongly taste decides what is rated; 0: not at all


def _people(users: int, rank: int, groups: Entities | None, rng: np.random.Generator) -> _People:
    tastes = rng.standard_normal((users, rank))
    if groups is not None:
        centres = rng.standard_normal((len(groups), rank))
        tastes = np.sqrt(1 - _ENTITY_SHARE) * tastes + np.sqrt(_ENTITY_SHARE) * centres[groups.codes]
    bias = _USER_SPREAD * rng.standard_normal(users)
    return _People(tastes.astype(np.float32), bias.astype(np.float32))


def _groups(users: int, entities: int, rng: np.random.Generator) -> Entities | None:
    if not entities:
        return None
    codes = rng.choice(entities, size=users, p=rng.dirichlet(np.full(entities, 3.0)))
    return Entities("entity", tuple(str(number) for number in range(1, entities + 1)), codes.astype(np.int32))


def _targets(users: int, items: int, mean: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """The number of items that each user rates: log-normal, at least 1, at most half of the catalogue."""
    spread = 0.8
    counts = rng.lognormal(np.log(mean) - spread**2 / 2, spread, users)
    return np.clip(np.rint(counts), 1, max(1, items // 2)).astype(np.int64)


def _genre_flags(items: int, genres: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """One to three genres for each item. Some genres are far more common than others."""
    share = 1.0 / np.arange(1, genres + 1)
    columns = rng.choice(genres, size=(items, 3), p=share / share.sum())
    columns[rng.random((items, 3)) > [1.0, 0.6, 0.3]] = -1  # the first genre always stays
    flags = np.zeros((items, genres + 1), dtype=np.bool_)
    flags[np.arange(items)[:, None], columns] = True
    return np.ascontiguousarray(flags[:, :genres])


def _columns(
    user_ids: NDArray[np.int64],
    item_ids: NDArray[np.int64],
    targets: NDArray[np.int64],
    exposure: _Exposure,
    people: _People,
    scale: Scale,
    timestamps: bool,
    rng: np.random.Generator,
) -> Columns:
    star = (scale.high - scale.low) / 4.5
    middle = scale.low + 0.6 * (scale.high - scale.low)
    quality = _ITEM_SPREAD * rng.standard_normal(item_ids.size)
    joined = _FIRST_DAY + rng.random(user_ids.size) * 8 * _YEAR
    users, items, values, times = [], [], [], []
    for raters, rated, affinity in _rated_pairs(targets, exposure, rng):
        noise = _NOISE * rng.standard_normal(raters.size)
        liking = people.bias[raters] + quality[rated] + _TASTE_SPREAD * affinity + noise
        users.append(raters.astype(np.int32))
        items.append(rated.astype(np.int32))
        values.append(scale.nearest(middle + star * liking))
        if timestamps:
            times.append((joined[raters] + rng.exponential(_YEAR / 6, raters.size)).astype(np.int64))
    return Columns(
        (user_ids, np.concatenate(users)),
        (item_ids, np.concatenate(items)),
        np.concatenate(values),
        np.concatenate(times) if timestamps else None,
    )


def _rated_pairs(
    targets: NDArray[np.int64], exposure: _Exposure, rng: np.random.Generator
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]]:
    """Chunks of users, items and affinities, sorted by user, then item: ``targets[u]`` items for user ``u``."""
    ends = np.cumsum(targets)
    edges = np.searchsorted(
        ends, np.arange(_PAIRS_PER_CHUNK, ends[-1] + _PAIRS_PER_CHUNK, _PAIRS_PER_CHUNK), side="right"
    )
    bounds = np.unique(np.concatenate([[0], np.minimum(edges + 1, targets.size), [targets.size]]))
    cumulative = np.cumsum(exposure.popularity)
    for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        users, items = _chunk(np.arange(low, high), targets[low:high], exposure, cumulative, rng)
        yield users, items, _affinity(exposure, users, items)


def _chunk(
    users: NDArray[np.int64],
    targets: NDArray[np.int64],
    exposure: _Exposure,
    cumulative: NDArray[np.float64],
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    n_items = exposure.popularity.size
    pairs = np.zeros(0, dtype=np.int64)  # index of the user in the chunk x items + item, ascending
    for _ in range(_ROUNDS):
        missing = targets - np.bincount(pairs // n_items, minlength=users.size)
        if not missing.any():
            break
        raters = np.repeat(np.arange(users.size), 3 * missing)
        items = np.searchsorted(cumulative, rng.random(raters.size) * cumulative[-1], side="right")
        liking = _affinity(exposure, users[raters], items) * np.float32(exposure.selectivity)
        is_rated = rng.random(raters.size, dtype=np.float32) * (1 + np.exp(_RELUCTANCE - liking)) < 1
        candidates = raters[is_rated] * n_items + items[is_rated]
        _, first = np.unique(candidates, return_index=True)
        candidates = candidates[np.sort(first)]  # in the order of drawing, so that a cut favours no item
        candidates = candidates[~np.isin(candidates, pairs, assume_unique=True)]
        rater = candidates // n_items
        rank = np.arange(rater.size) - np.searchsorted(rater, rater)
        pairs = np.sort(np.concatenate([pairs, candidates[rank < missing[rater]]]))
    return users[pairs // n_items], pairs % n_items


def _affinity(exposure: _Exposure, users: NDArray[np.int64], items: NDArray[np.int64]) -> NDArray[np.float32]:
    product: NDArray[np.float32] = np.einsum("ij,ij->i", exposure.tastes[users], exposure.factors[items])
    return product


def _unit_rows(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    rows: NDArray[np.float64] = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    return rows
