"""A synthetic world with what matters: tastes, genres, a long tail, times, a second domain, entities.

Who rates what depends on popularity and on taste, so that the pattern of ratings carries signal, as in real data; how
much a user likes an item depends on the same taste. Two domains share the users' tastes and the meaning of genres.
"""

from dataclasses import dataclass
from typing import Literal, overload

import numpy as np
from numpy.typing import NDArray

from tacit.checks import finite, positive, whole
from tacit.data.assemble import Columns, assemble
from tacit.data.catalogue import Catalogue
from tacit.data.draw import generator
from tacit.data.entities import Entities
from tacit.data.exposure import Exposure, rated_pairs
from tacit.data.genres import GENRES
from tacit.data.pairs import TwoDomains
from tacit.data.provenance import GENERATED
from tacit.data.ratings import Ratings
from tacit.data.scale import HALF_STARS, Scale
from tacit.data.source import Source
from tacit.errors import InvalidParameter

# Spreads in units of a star on the scale 0.5 to 5; together about one star.
_USER_SPREAD, _ITEM_SPREAD, _TASTE_SPREAD, _NOISE = 0.35, 0.35, 0.8, 0.6
_ENTITY_SHARE = 0.2  # of the variance of tastes lies between entities
_STEEPEST = 10.0  # of popularity and selectivity; beyond it nothing changes but the arithmetic overflows
_FIRST_DAY, _YEAR = 1_000_000_000, 31_557_600


@dataclass(frozen=True, slots=True)
class _People:
    tastes: NDArray[np.float32]  # users x rank, variance 1
    bias: NDArray[np.float32]


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
    """Ratings of made-up users; with ``second_domain`` two domains, where a share ``overlap`` of the users is in both.

    ``popularity`` is the exponent of the long tail (the item of rank r is seen r ** -popularity as often as the first),
    ``selectivity`` says how strongly taste decides what is rated, ``entities`` how many organisations hold the users.
    Equal arguments and generator states give equal worlds.
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
        raise InvalidParameter("genres must not be empty, overlap must lie in [0, 1], and the scale must have an end.")
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
        exposure = Exposure(people.tastes, factors.astype(np.float32), weights / weights.sum(), selectivity)
        ids = np.arange(first_item, first_item + items, dtype=np.int64)
        columns = _columns(user_ids, ids, targets, exposure, people, scale, timestamps, rng)
        catalogue = Catalogue(ids, tuple(f"{name.title()} {item}" for item in ids.tolist()), flags, genres)
        made = assemble(columns, scale=scale, source=Source(name), name=name, catalogue=catalogue, provenance=GENERATED)
        return made if groups is None else made.with_entities(groups)

    if not second_domain:
        return domain("synthetic", 1, np.ones(users, dtype=np.bool_))
    side = rng.permutation(users) / users  # below overlap: in both; the rest is shared out evenly
    in_source = side < overlap + (1 - overlap) / 2
    in_target = (side < overlap) | ~in_source
    return TwoDomains(domain("synthetic source", 1, in_source), domain("synthetic target", 1 + items, in_target))


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
    """How many items each user rates: log-normal, at least 1, at most half of the catalogue."""
    spread = 0.8
    drawn = rng.lognormal(np.log(mean) - spread**2 / 2, spread, users)
    return np.clip(np.rint(drawn), 1, max(1, items // 2)).astype(np.int64)


def _genre_flags(items: int, genres: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """One to three genres for each item, some genres far commoner than others."""
    share = 1.0 / np.arange(1, genres + 1)
    drawn = rng.choice(genres, size=(items, 3), p=share / share.sum())
    drawn[rng.random((items, 3)) > [1.0, 0.6, 0.3]] = -1  # the first always stays
    flags = np.zeros((items, genres + 1), dtype=np.bool_)
    flags[np.arange(items)[:, None], drawn] = True
    return np.ascontiguousarray(flags[:, :genres])


def _columns(
    user_ids: NDArray[np.int64],
    item_ids: NDArray[np.int64],
    targets: NDArray[np.int64],
    exposure: Exposure,
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
    for who, what, affinity in rated_pairs(targets, exposure, rng):
        noise = _NOISE * rng.standard_normal(who.size)
        liking = people.bias[who] + quality[what] + _TASTE_SPREAD * affinity + noise
        users.append(who.astype(np.int32))
        items.append(what.astype(np.int32))
        values.append(scale.nearest(middle + star * liking))
        if timestamps:
            times.append((joined[who] + rng.exponential(_YEAR / 6, who.size)).astype(np.int64))
    return Columns(
        (user_ids, np.concatenate(users)),
        (item_ids, np.concatenate(items)),
        np.concatenate(values),
        np.concatenate(times) if timestamps else None,
    )


def _unit_rows(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    rows: NDArray[np.float64] = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    return rows
