"""MovieLens 1M: ``ratings.dat`` or ``ratings.parquet``, ``movies.dat``, ``users.dat``; ``::`` between fields.

MovieLens 10M has the same layout without ``users.dat``, with half stars, and its titles are UTF-8.
"""

from pathlib import Path

from tacit.data.assemble import Columns, Duplicates, assemble
from tacit.data.catalogue import Catalogue, listed
from tacit.data.genres import GENRES, genre_flags
from tacit.data.ids import encode
from tacit.data.provenance import MOVIELENS
from tacit.data.ratings import Ratings
from tacit.data.readers import times
from tacit.data.readers.lines import read_lines, whole_numbers
from tacit.data.readers.table import Kind, is_parquet, read_columns
from tacit.data.readers.zip_codes import with_zip_entities
from tacit.data.scale import HALF_STARS, STARS

# ``::`` is read as two separators with an empty column between them: polars takes one character only.
_DAT = ("user_id", "", "movie_id", "", "rating", "", "timestamp")


def ratings_file(folder: Path) -> Path | None:
    files = [folder / "ratings.dat", folder / "ratings.parquet"]
    return next((file for file in files if file.is_file() and (folder / "movies.dat").is_file()), None)


def read(folder: Path, file: Path, *, duplicates: Duplicates, zip_digits: int, name: str) -> Ratings:
    with_users = (folder / "users.dat").is_file()
    catalogue = _films(folder / "movies.dat", "latin-1" if with_users else "utf-8")
    kinds: dict[str, Kind] = {
        "user_id": "small integer", "movie_id": "small integer", "rating": "number", "timestamp": "time",
    }  # fmt: skip
    frame, source = (
        read_columns(file, kinds) if is_parquet(file) else read_columns(file, kinds, separator=":", names=_DAT)
    )
    columns = Columns(
        encode(frame["user_id"].to_numpy()),
        encode(frame["movie_id"].to_numpy(), catalogue.ids),
        frame["rating"].to_numpy(),
        times.to_array(frame["timestamp"]),
    )
    ratings = assemble(
        columns,
        scale=STARS if with_users else HALF_STARS,
        source=source,
        name=name,
        duplicates=duplicates,
        catalogue=catalogue,
        provenance=MOVIELENS,
    )
    return with_zip_entities(ratings, folder / "users.dat", "::", zip_digits)


def _films(path: Path, encoding: str) -> Catalogue:
    rows = read_lines(path, "::", 3, encoding)
    flags = genre_flags([row[2] for row in rows], lambda place: f"{path}, line {place + 1}")
    return listed(whole_numbers(path, rows, 0, "MovieID"), [row[1] for row in rows], flags, GENRES)
