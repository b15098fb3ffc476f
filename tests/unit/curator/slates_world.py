"""A few films whose likes are known, and a curator of them."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.curator import Curator
from tacit.data.catalogue import Catalogue
from tacit.data.ratings import STARS, Ratings
from tacit.ledger import Budget
from tacit.mechanisms import SYSTEM_NOISE

GENRES = ("Action", "Comedy", "Drama", "Horror", "War", "Western")
FILMS = 12
USERS = 40


def catalogue(films: int = FILMS, unlisted: tuple[int, ...] = ()) -> Catalogue:
    """Films 1, 2, ...; film i has the genres i and i + 1, in turn. Those at ``unlisted`` places are known by ratings alone."""
    flags = np.zeros((films, len(GENRES)), dtype=np.bool_)
    places = np.arange(films)
    flags[places, places % len(GENRES)] = flags[places, (places + 1 + places // 6) % len(GENRES)] = True
    hidden = np.isin(places, unlisted)
    titles = tuple(f"Film {film}" for film in range(1, films + 1))
    return Catalogue(np.arange(1, films + 1), titles, flags, GENRES, hidden if unlisted else None)


def ratings(likes: NDArray[Any], **parts: Any) -> Ratings:
    """Users x films of ratings in stars, 0 for none."""
    users, films = likes.shape
    starts = np.concatenate([[0], np.cumsum((likes != 0).sum(axis=1))]).astype(np.int32)
    _, items = np.nonzero(likes)
    values = likes[likes != 0].astype(np.float32)
    ids = parts.pop("user_ids", np.arange(users))
    unlisted = parts.pop("unlisted", ())
    return Ratings(
        starts,
        items.astype(np.int32),
        values,
        None,
        ids,
        catalogue(films, unlisted),
        STARS,
        **{"name": "films", **parts},
    )


def some_ratings(**parts: Any) -> Ratings:
    """Film i is liked by the fewer users the larger i is, and the first four by nearly all."""
    place, user = np.meshgrid(np.arange(FILMS), np.arange(USERS))
    return ratings(np.where((user * 7 + place * 3) % USERS < USERS - 3 * place, 5, 2), **parts)


def curator(folder: Path, data: Ratings | None = None, **options: Any) -> Curator:
    options = {"budget": Budget(epsilon=100), "ledger": folder / "curator.db", **options}
    return Curator(some_ratings() if data is None else data, **options)


class CountedNoise:
    """The operating system's noise, and how often it was asked for."""

    caveat = None

    def __init__(self) -> None:
        self.draws = 0

    def draw(self, count: int) -> bytes:
        self.draws += 1
        return SYSTEM_NOISE.draw(count)


class FailingNoise:
    """A machine that stops when noise is to be drawn."""

    caveat = None

    def draw(self, count: int) -> bytes:
        raise KeyboardInterrupt
