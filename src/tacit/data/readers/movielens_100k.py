"""MovieLens 100K: ``u.data`` (tabs, no header), ``u.item`` (``|``, Latin-1, genres as flags), ``u.user`` (``|``)."""

from pathlib import Path

from tacit.data.assemble import Columns, Duplicates, assemble
from tacit.data.catalogue import Catalogue, listed
from tacit.data.genres import GENRES, genre_flags
from tacit.data.ids import encode
from tacit.data.provenance import MOVIELENS
from tacit.data.ratings import Ratings
from tacit.data.readers import times
from tacit.data.readers.lines import read_lines, whole_numbers
from tacit.data.readers.table import read_columns
from tacit.data.readers.zip_codes import with_zip_entities
from tacit.data.scale import STARS

_FLAGS = (
    "unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama", "Fantasy",
    "Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War", "Western",
)  # fmt: skip  # the order of u.genre


def ratings_file(folder: Path) -> Path | None:
    file = folder / "u.data"
    return file if file.is_file() else None


def read(folder: Path, file: Path, *, duplicates: Duplicates, zip_digits: int, name: str) -> Ratings:
    catalogue = _films(folder / "u.item") if (folder / "u.item").is_file() else None
    frame, source = read_columns(
        file,
        {"user": "small integer", "item": "small integer", "rating": "number", "time": "time"},
        separator="\t",
        names=("user", "item", "rating", "time"),
    )
    columns = Columns(
        encode(frame["user"].to_numpy()),
        encode(frame["item"].to_numpy(), None if catalogue is None else catalogue.ids),
        frame["rating"].to_numpy(),
        times.to_array(frame["time"]),
    )
    ratings = assemble(
        columns, scale=STARS, source=source, name=name, duplicates=duplicates, catalogue=catalogue, provenance=MOVIELENS
    )
    return with_zip_entities(ratings, folder / "u.user", "|", zip_digits)


def _films(path: Path) -> Catalogue:
    rows = read_lines(path, "|", 5 + len(_FLAGS))
    ids = whole_numbers(path, rows, 0, "id")
    texts = ["|".join(genre for genre, flag in zip(_FLAGS, row[5:], strict=True) if flag == "1") for row in rows]
    return listed(ids, [row[1] for row in rows], genre_flags(texts, lambda place: f"{path}, line {place + 1}"), GENRES)
