"""Readers: any table of ratings whose columns you name, and pairs of such tables with shared users.

The modules of this package read the public data sets. Every reader returns complete, checked data or raises an error.
"""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tacit.data.assemble import Columns, Duplicates, Outside, RowSource, assemble
from tacit.data.catalogue import Codes, Ids, whole_number_ids
from tacit.data.pairs import TwoDomains
from tacit.data.ratings import AMAZON, STARS, Provenance, Ratings, Scale
from tacit.data.readers.table import Kind, read_columns, to_array
from tacit.errors import InvalidData, InvalidParameter

if TYPE_CHECKING:
    import polars as pl

_HINT = "Name the columns with user=, item=, rating=, time= (on the command line --user, --item, …)."
_DUPLICATES_HINT = (
    "Pass duplicates='latest' to keep the latest, 'mean' to average (on the command line --duplicates latest|mean)."
)


def read_table(
    path: str | Path,
    *,
    user: str,
    item: str,
    rating: str,
    time: str | None = None,
    scale: Scale,
    separator: str | None = None,
    duplicates: Duplicates = "error",
    outside: Outside = "error",
    name: str | None = None,
    provenance: Provenance | None = None,
) -> Ratings:
    """Ratings from a CSV, TSV (also .gz or .zst) or Parquet file. You name the columns and the scale.

    Ids are whole numbers if all of them are spelled as such, otherwise text. tacit never guesses the ``scale`` from the data: a
    bound learned from private values would itself leak.
    """
    path = Path(path)
    kinds: dict[str, Kind] = {user: "text", item: "text", rating: "number"}
    if time is not None:
        kinds[time] = "time"
    if len(kinds) != 3 + (time is not None):
        raise InvalidParameter("user, item, rating and time must be different columns.")
    frame, source = read_columns(path, kinds, separator=separator, hint=_HINT)
    if not frame.height:
        raise InvalidData(f"{path} holds no ratings: there is no row below the header.")
    columns = Columns(
        users=encode_text(frame[user]),
        items=encode_text(frame[item]),
        values=frame[rating].to_numpy(),
        times=None if time is None else to_array(frame[time]),
    )
    return assemble(
        columns,
        scale=scale,
        source=RowSource(source.path, source.first_line, rating, _DUPLICATES_HINT),
        duplicates=duplicates,
        outside=outside,
        name=name or path.name.split(".")[0],
        provenance=provenance or Provenance(source=path.name),
    )


def encode_text(column: "pl.Series", *, keep_text: bool = False) -> tuple[Ids, Codes]:
    """The distinct ids of a column of text, ascending, and the code of each row.

    If every id is a whole number, the ids become whole numbers, unless ``keep_text`` is true.
    """
    import polars as pl

    distinct = column.unique().sort()
    codes = column.cast(pl.Enum(distinct)).to_physical().cast(pl.Int32).to_numpy()
    ids = np.asarray(distinct.to_list(), dtype=str)
    return (ids, codes) if keep_text else whole_number_ids(ids, codes)


def read_pair(
    source: str | Path,
    target: str | Path,
    *,
    user: str = "user_id",
    item: str = "item_id",
    rating: str = "rating",
    time: str | None = None,
    scale: Scale = STARS,
    separator: str | None = None,
    duplicates: Duplicates = "error",
    outside: Outside = "error",
    provenance: Provenance | None = None,
) -> TwoDomains:
    """Two domains from two files with the same columns. Equal user ids mean the same person."""
    domain = partial(
        read_table, user=user, item=item, rating=rating, time=time, scale=scale, separator=separator,
        duplicates=duplicates, outside=outside, provenance=provenance,
    )  # fmt: skip
    return TwoDomains.align(domain(source), domain(target))


def read_amazon(folder: str | Path, *, duplicates: Duplicates = "latest", source: str = "movies") -> TwoDomains:
    """Amazon films and books. A twelfth of all pairs occur twice, some with different ratings; by default the last row counts."""
    folder = Path(folder)
    if source not in ("movies", "books"):
        raise InvalidParameter(f"source must be movies or books, not {source!r}.")
    target = "books" if source == "movies" else "movies"
    return read_pair(folder / f"{source}.tsv", folder / f"{target}.tsv", duplicates=duplicates, provenance=AMAZON)


def is_amazon(folder: Path) -> bool:
    """Whether a folder holds the Amazon pair."""
    return (folder / "movies.tsv").is_file() and (folder / "books.tsv").is_file()
