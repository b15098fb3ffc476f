"""The open eICU demo: the number of orders of each drug for each patient, and their hospitals."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from tacit.data.assemble import Columns, RowSource, assemble
from tacit.data.catalogue import Catalogue, encode, known_from_ratings
from tacit.data.ratings import COUNTS, EICU, Entities, Ratings
from tacit.data.readers import encode_text
from tacit.data.readers.table import Kind, read_columns
from tacit.errors import InvalidData, InvalidParameter

if TYPE_CHECKING:
    import polars as pl

Unit: TypeAlias = Literal["hospital", "region"]


def read_eicu(folder: str | Path, *, entity: Unit = "hospital") -> Ratings:
    """Patients x drug codes with the number of orders. A patient of several hospitals belongs to the first one."""
    import polars as pl

    folder = Path(folder)
    if entity not in get_args(Unit):
        raise InvalidParameter(f"entity must be hospital or region, not {entity!r}.")
    drugs = _table(folder, "medication", {
        "patientunitstayid": "integer", "drughiclseqno": "integer or none", "drugname": "text or none",
    })  # fmt: skip
    stays = _table(folder, "patient", {"patientunitstayid": "integer", "uniquepid": "text", "hospitalid": "integer"})
    # Four of ten rows lack a name, so the code is the item. Orders without a code cannot be used.
    orders = drugs.filter(pl.col("drughiclseqno").is_not_null()).join(stays, on="patientunitstayid", how="inner")
    counts = orders.group_by("uniquepid", "drughiclseqno").len("orders").sort("uniquepid", "drughiclseqno")
    users = encode_text(counts["uniquepid"])
    items = encode(counts["drughiclseqno"].to_numpy())
    columns = Columns(users, items, counts["orders"].cast(pl.Float32).to_numpy())
    ratings = assemble(
        columns,
        scale=COUNTS,
        source=RowSource(str(folder)),
        name=folder.name,
        catalogue=known_from_ratings(Catalogue(items[0], _names(orders, items[0].tolist()))),
        provenance=EICU,
    )
    return ratings.with_entities(_entities(folder, orders, ratings, entity))


def is_eicu(folder: Path) -> bool:
    """Whether a folder holds the eICU tables."""
    return _file(folder, "medication") is not None and _file(folder, "patient") is not None


def _file(folder: Path, table: str) -> Path | None:
    files = [folder / f"{table}{suffix}" for suffix in (".parquet", ".csv.gz", ".csv")]
    return next((file for file in files if file.is_file()), None)


def _table(folder: Path, table: str, kinds: dict[str, Kind]) -> "pl.DataFrame":
    file = _file(folder, table)
    if file is None:
        raise InvalidData(f"{folder} has no table {table!r}; expected {table}.parquet, {table}.csv.gz or {table}.csv.")
    return read_columns(file, kinds)[0]


def _names(orders: "pl.DataFrame", drugs: list[int]) -> tuple[str, ...]:
    """The most common name of each drug; of equally common names, the first in the alphabet."""
    import polars as pl

    common = (
        orders.filter(pl.col("drugname").is_not_null())
        .group_by("drughiclseqno", "drugname")
        .len()
        .sort(["len", "drugname"], descending=[True, False])
        .unique("drughiclseqno", keep="first", maintain_order=True)
    )
    name = dict(zip(common["drughiclseqno"], common["drugname"], strict=True))
    return tuple(str(name.get(drug, f"drug {drug}")) for drug in drugs)


def _entities(folder: Path, orders: "pl.DataFrame", ratings: Ratings, entity: Unit) -> Entities:
    """The entity of each patient's first stay with a coded drug. Stay ids rise with time, so it has the lowest id."""
    first = orders.sort("patientunitstayid").unique("uniquepid", keep="first", maintain_order=True)
    hospital = {str(patient): unit for patient, unit in zip(first["uniquepid"], first["hospitalid"], strict=True)}
    units = [hospital[str(patient)] for patient in ratings.user_ids.tolist()]
    if entity == "hospital":
        numbers, codes = encode(np.asarray(units, dtype=np.int64))
        return Entities("hospital", tuple(str(number) for number in numbers.tolist()), codes)
    table = _table(folder, "hospital", {"hospitalid": "integer", "region": "text or none"})
    region = dict(zip(table["hospitalid"], table["region"], strict=True))
    return Entities.from_labels("region", [region.get(unit) or "unknown" for unit in units])
