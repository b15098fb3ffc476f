"""tacit's own file format: Parquet with the columns user, item, rating and time, and everything else in its metadata.

Any tool can read the columns. A crash or an error leaves the old file or no file, never a part of one (`tacit.files`).
"""

import base64
import io
import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.assemble import Columns, assemble
from tacit.data.catalogue import Catalogue, Codes, Ids, encode
from tacit.data.ratings import MISSING_TIME, Entities, Provenance, Ratings, Scale
from tacit.data.readers import encode_text
from tacit.data.readers.table import Kind, read_columns, to_array
from tacit.errors import InvalidData, InvalidParameter
from tacit.files import OWNER_ONLY, draft

if TYPE_CHECKING:
    import polars as pl

_FORMAT = 1
_HEAD, _USERS, _ITEMS = b"tacit", b"tacit.users", b"tacit.items"


def write(ratings: Ratings, path: str | Path) -> Path:
    """Writes one Parquet file, completely or not at all, readable by its owner only."""
    import pyarrow.parquet as pq

    path = Path(path)
    if not path.parent.is_dir():
        raise InvalidParameter(f"the folder {path.parent} does not exist.")
    with draft(path, mode=OWNER_ONLY) as temporary, temporary.open("wb") as file:
        pq.write_table(_table(ratings), file, compression="zstd")
    return path


def is_stored(path: Path) -> bool:
    """Whether `write` made this file."""
    return _HEAD in _metadata(path)


def read(path: str | Path) -> Ratings:
    """Ratings from a file that `write` made. Checks everything again."""
    path = Path(path)
    parts = _unpack(path)
    if parts is None:
        raise InvalidData(
            f"{path} was not written by tacit (format {_FORMAT}); read_table() reads other Parquet files."
        )
    head, users, items = parts
    kinds: dict[str, Kind] = {
        "user": "integer" if users["id"].dtype.is_integer() else "text",
        "item": "integer" if items["id"].dtype.is_integer() else "text",
        "rating": "number",
    }
    if head["timed"]:
        kinds["time"] = "time"
    frame, source = read_columns(path, kinds)
    genres = items.select(head["vocabulary"]).to_numpy() if head["vocabulary"] else None
    titles = tuple(items["title"].to_list()) if "title" in items.columns else None
    ids = _ids(items["id"])
    catalogue = Catalogue(ids, titles, genres, tuple(head["vocabulary"]), _rated_only(head, len(ids)))
    low, high, step = head["scale"]
    ratings = assemble(
        Columns(
            users=_codes(frame["user"], _ids(users["id"]), path),
            items=_codes(frame["item"], catalogue.ids, path),
            values=frame["rating"].to_numpy(),
            times=to_array(frame["time"]) if head["timed"] else None,
        ),
        scale=Scale(low, math.inf if high is None else high, step),
        source=source,
        name=head["name"],
        catalogue=catalogue,
        provenance=Provenance(**head["provenance"]),
    )
    if head["entities"] is None:
        return ratings
    return ratings.with_entities(Entities(head["entities"][0], tuple(head["entities"][1]), users["entity"].to_numpy()))


def _rated_only(head: dict[str, Any], count: int) -> NDArray[np.bool_] | None:
    """Which items are known only from ratings. In a file without this information, all of them, to be safe."""
    if "rated_only" in head and head["rated_only"] is None:
        return None
    mask = np.zeros(count, dtype=np.bool_)
    mask[head.get("rated_only", slice(None))] = True
    return mask


def _table(ratings: Ratings) -> Any:
    import polars as pl
    import pyarrow as pa

    if not isinstance(ratings, Ratings):
        raise InvalidParameter(f"write(ratings, path) takes Ratings, not {type(ratings).__name__}.")
    catalogue, entities, scale = ratings.catalogue, ratings.entities, ratings.scale
    head = {
        "format": _FORMAT,
        "name": ratings.name,
        "scale": [scale.low, None if scale.high == math.inf else scale.high, scale.step],
        "provenance": asdict(ratings.provenance),
        "timed": ratings.times is not None,
        "vocabulary": catalogue.vocabulary,
        "entities": None if entities is None else [entities.kind, entities.names],
        "rated_only": None if catalogue.rated_only is None else np.flatnonzero(catalogue.rated_only).tolist(),
    }
    users = pl.DataFrame({"id": ratings.user_ids} | ({} if entities is None else {"entity": entities.codes}))
    items = pl.DataFrame({"id": catalogue.ids} | ({} if catalogue.titles is None else {"title": catalogue.titles}))
    if catalogue.genres is not None:
        items = items.hstack(pl.DataFrame(catalogue.genres, schema=list(catalogue.vocabulary)))
    columns = {
        "user": _id_column(ratings.user_ids, ratings.users),
        "item": _id_column(catalogue.ids, ratings.items),
        "rating": ratings.values,
    }
    if ratings.times is not None:
        columns["time"] = pa.array(ratings.times, mask=ratings.times == MISSING_TIME)  # null in other tools
    metadata = {_HEAD: json.dumps(head).encode(), _USERS: _pack(users), _ITEMS: _pack(items)}
    return pa.table(columns).replace_schema_metadata(metadata)


def _id_column(ids: Ids, codes: Codes) -> Any:
    import pyarrow as pa

    if ids.dtype.kind == "i":
        return ids[codes]
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(ids.tolist(), type=pa.string()))


def _pack(frame: "pl.DataFrame") -> bytes:
    buffer = io.BytesIO()
    frame.write_ipc(buffer, compression="zstd")
    return base64.b64encode(buffer.getvalue())


def _metadata(path: Path) -> dict[bytes, bytes]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return dict(pq.read_schema(path).metadata or {})
    except (pa.ArrowException, OSError):
        pass
    raise InvalidData(f"{path} is not a Parquet file, or is cut off.")


def _unpack(path: Path) -> tuple[dict[str, Any], "pl.DataFrame", "pl.DataFrame"] | None:
    import polars as pl

    metadata = _metadata(path)
    try:
        head = json.loads(metadata[_HEAD])
        if head["format"] != _FORMAT:
            return None
        users, items = (pl.read_ipc(io.BytesIO(base64.b64decode(metadata[key]))) for key in (_USERS, _ITEMS))
    except (KeyError, TypeError, ValueError, pl.exceptions.PolarsError):
        return None
    return head, users, items


def _ids(column: "pl.Series") -> Ids:
    return column.to_numpy() if column.dtype.is_integer() else np.asarray(column.to_list(), dtype=str)


def _codes(column: "pl.Series", known: Ids, path: Path) -> tuple[Ids, Codes]:
    """The ids of the file's own list, and the code of each row. The list may contain ids without a row."""
    ids, codes = encode_text(column, keep_text=True) if known.dtype.kind == "U" else encode(column.to_numpy())
    known_codes = np.searchsorted(known, ids)
    if not np.all(known_codes < known.size) or not np.array_equal(known[known_codes], ids):
        raise InvalidData(
            f"{path}, column {column.name!r}: an id is missing from the list in the metadata. The file was changed."
        )
    return known, known_codes.astype(np.int32)[codes]
