"""Any table of ratings, given which column is which."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tacit.data.assemble import Columns, Duplicates, Outside, assemble
from tacit.data.ids import Codes, Ids, natural
from tacit.data.provenance import Provenance
from tacit.data.ratings import Ratings
from tacit.data.readers import times
from tacit.data.readers.table import Kind, read_columns
from tacit.data.scale import Scale
from tacit.data.source import Source
from tacit.errors import InvalidData, InvalidParameter

if TYPE_CHECKING:
    import polars as pl

_HINT = "Say which column is which with user=, item=, rating=, time= (on the command line --user, --item, …)."
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
    """Ratings from a CSV, TSV (also .gz or .zst) or Parquet file whose columns are named here.

    Ids are whole numbers if every one is written as such, otherwise text. ``scale`` is stated, never guessed from the
    data: a bound learned from private values would itself leak.
    """
    path = Path(path)
    kinds: dict[str, Kind] = {user: "text", item: "text", rating: "number"}
    if time is not None:
        kinds[time] = "time"
    if len(kinds) != 3 + (time is not None):
        raise InvalidParameter("user, item, rating and time must be different columns.")
    frame, source = read_columns(path, kinds, separator=separator, hint=_HINT)
    if not frame.height:
        raise InvalidData(f"{path} holds no ratings: there is no row below the names of the columns.")
    columns = Columns(
        users=coded(frame[user]),
        items=coded(frame[item]),
        values=frame[rating].to_numpy(),
        times=None if time is None else times.to_array(frame[time]),
    )
    return assemble(
        columns,
        scale=scale,
        source=Source(source.path, source.first_line, rating, _DUPLICATES_HINT),
        duplicates=duplicates,
        outside=outside,
        name=name or path.name.split(".")[0],
        provenance=provenance or Provenance(source=path.name),
    )


def coded(column: "pl.Series") -> tuple[Ids, Codes]:
    """The distinct ids of a column of text, ascending, and the code of each row; whole numbers where all are such."""
    return natural(*coded_text(column))


def coded_text(column: "pl.Series") -> tuple[Ids, Codes]:
    import polars as pl

    distinct = column.unique().sort()
    codes = column.cast(pl.Enum(distinct)).to_physical().cast(pl.Int32).to_numpy()
    return np.asarray(distinct.to_list(), dtype=str), codes
