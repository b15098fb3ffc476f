"""MovieLens latest, latest-small, 20M, 25M, 32M: ``ratings.csv`` and ``movies.csv``, plain or compressed.

This is the path that must stay fast: 25 million rows are read in one typed pass, coded by table lookup and, being sorted
already, taken over as a CSR matrix without a sort (``benchmarks/loader.py``).
"""

from pathlib import Path

from tacit.data.assemble import Columns, Duplicates, assemble
from tacit.data.catalogue import Catalogue, listed
from tacit.data.genres import GENRES, genre_flags
from tacit.data.ids import encode
from tacit.data.provenance import MOVIELENS, MOVIELENS_LATEST
from tacit.data.ratings import Ratings
from tacit.data.readers import times
from tacit.data.readers.table import read_columns
from tacit.data.scale import HALF_STARS


def ratings_file(folder: Path) -> Path | None:
    return _file(folder, "ratings") or next(iter(sorted(folder.glob("ratings_first*.csv*"))), None)


def read(folder: Path, file: Path, *, duplicates: Duplicates, zip_digits: int, name: str) -> Ratings:
    films = _file(folder, "movies")
    catalogue = None if films is None else _films(films)
    frame, source = read_columns(
        file, {"userId": "small integer", "movieId": "small integer", "rating": "number", "timestamp": "time"}
    )
    columns = Columns(
        encode(frame.drop_in_place("userId").to_numpy()),
        encode(frame.drop_in_place("movieId").to_numpy(), None if catalogue is None else catalogue.ids),
        frame.drop_in_place("rating").to_numpy(),
        times.to_array(frame.drop_in_place("timestamp")),
    )
    return assemble(
        columns,
        scale=HALF_STARS,
        source=source,
        name=name,
        duplicates=duplicates,
        catalogue=catalogue,
        provenance=MOVIELENS_LATEST if "latest" in folder.name else MOVIELENS,
    )


def _file(folder: Path, stem: str) -> Path | None:
    files = [folder / f"{stem}.csv{compressed}" for compressed in ("", ".zst", ".gz")]
    return next((file for file in files if file.is_file()), None)


def _films(path: Path) -> Catalogue:
    frame, source = read_columns(path, {"movieId": "integer", "title": "text or none", "genres": "text or none"})
    flags = genre_flags(frame["genres"].fill_null("").to_list(), lambda place: source.at(place, "genres"))
    return listed(frame["movieId"].to_numpy(), frame["title"].fill_null("").to_list(), flags, GENRES)
