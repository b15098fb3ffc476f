"""The worlds that are tried: tastes that are made up, films and books, films cut in two by genre, or any pair of files."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.data import Ratings, TwoDomains, available, load, load_ratings, read_pair, store
from tacit.data.readers import is_amazon
from tacit.data.readers.movielens import is_movielens
from tacit.data.readers.table import is_parquet
from tacit.errors import InvalidParameter

SYNTHETIC = "synthetic"
AMAZON, ML_1M, ML_100K, ML_SMALL = "amazon-movies-books", "movielens-1m", "movielens-100k", "movielens-small"
NAMES = {AMAZON: "amazon-movies-books", ML_1M: "ml-1m", ML_100K: "ml-100k", ML_SMALL: "movielens-small"}
LEAST = {ML_1M: 300, AMAZON: 5}  # ratings of an item, or it is left out, as in the reference
_ENDINGS = (".tsv", ".csv", ".tsv.gz", ".csv.gz", ".tsv.zst", ".csv.zst", ".parquet")


@dataclass(frozen=True, eq=False)
class World:
    """``known``: reference figures are of this world."""

    name: str
    two: TwoDomains
    known: bool = False


def by_genre(ratings: Ratings) -> TwoDomains:
    """Films in two domains: genres by their number of films, taken in turn; a film goes where more of its genres are.

    With as many on both sides, films of an even id are source. Ids and genres are public, so the division is.
    """
    flags = ratings.catalogue.genres
    if flags is None:
        raise InvalidParameter(f"{ratings.name!r} lists no genres, which it would be cut in two by; MovieLens does.")
    first = np.zeros(flags.shape[1], dtype=np.bool_)
    first[np.argsort(-flags.sum(axis=0), kind="stable")[::2]] = True
    ahead = flags[:, first].sum(axis=1) - flags[:, ~first].sum(axis=1)
    even = np.asarray(ratings.catalogue.ids).astype(np.int64) % 2 == 0
    return TwoDomains.by_items(ratings, (ahead > 0) | ((ahead == 0) & even))


def rated(two: TwoDomains, least: int = 1) -> TwoDomains:
    """Without items of fewer ratings; without users left empty. In use a catalogue is public, and is not chosen like this."""
    sides = [_rated(part, least) for part in (two.source, two.target)]
    kept = (sides[0].counts > 0) | (sides[1].counts > 0)
    return TwoDomains(sides[0].select_users(kept), sides[1].select_users(kept))


def named(name: str) -> World:
    """One of `NAMES`, found through ``TACIT_DATA`` or, of movielens-small, in its package."""
    found = load(NAMES[name])
    least = LEAST.get(name, 1)
    if isinstance(found, TwoDomains):
        return World(name, rated(found, least), known=name == AMAZON)
    if not isinstance(found, Ratings):
        raise InvalidParameter(f"{name!r} holds no ratings.")
    return World(f"{name} by genre", rated(by_genre(found), least), known=name in (ML_1M, ML_100K))


def default_names() -> list[str]:
    """Pairs and films that ``TACIT_DATA`` has; otherwise the films that come with a package, if it is installed."""
    ready = {entry.name for entry in available() if entry.ready}
    found = [name for name in (AMAZON, ML_100K, ML_1M) if NAMES[name] in ready]
    return found if found or NAMES[ML_SMALL] not in ready else [ML_SMALL]


def other(data: str | Path) -> World:
    """Two files, ``source,target``; a folder with two files of ratings, in order of their names; or a folder of MovieLens."""
    text = str(data)
    if "," in text:
        files = [Path(part.strip()) for part in text.split(",")]
    elif Path(text).is_dir() and not (is_movielens(Path(text)) or is_amazon(Path(text))):
        files = sorted(one for one in Path(text).iterdir() if one.name.endswith(_ENDINGS))
    elif Path(text).is_file() and not (is_parquet(Path(text)) and store.is_stored(Path(text))):
        raise InvalidParameter(f"{text} is one file, and there is no second: name both, --data source.csv,target.csv.")
    else:
        return _films(text)
    if len(files) != 2 or not all(one.is_file() for one in files):
        raise InvalidParameter(
            f"{text!r} must be two files of ratings joined by a comma, source first, or a folder with two such files (columns "
            "user_id, item_id, rating from 1 to 5; others by `tacit data import` first); or one of "
            + ", ".join([SYNTHETIC, *NAMES])
            + "."
        )
    if all(is_parquet(one) and store.is_stored(one) for one in files):  # from `tacit data import`: any scale
        two = TwoDomains.align(load_ratings(files[0]), load_ratings(files[1]))
    else:
        two = read_pair(files[0], files[1], duplicates="latest")
    return World(f"{files[0].name} to {files[1].name}", rated(two))


def _films(text: str) -> World:
    found = load(text)
    if isinstance(found, TwoDomains):
        return World(Path(text).name, rated(found))
    if not isinstance(found, Ratings):
        raise InvalidParameter(f"{text!r} holds no ratings.")
    return World(f"{found.name} by genre", rated(by_genre(found)))


def _rated(ratings: Ratings, least: int) -> Ratings:
    enough = ratings.item_counts >= least
    rows: NDArray[np.bool_] = enough[ratings.items]
    part = ratings.subset(rows)
    places = np.cumsum(enough, dtype=np.int32) - np.int32(1)
    return replace(
        part, items=places[part.items], catalogue=part.catalogue.select(np.flatnonzero(enough).astype(np.int32))
    )
