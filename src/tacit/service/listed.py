"""What private selection offers: an operator's list with bids, or the items that are liked most, which nobody pays for."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidData, TacitError
from tacit.messages.store import Store
from tacit.models.local_models import LinearMap
from tacit.server import Listings, Population, listings_of
from tacit.server.store_listings import best_items, quality_map

_COLUMNS = ["item", "bid_micros", "ppm"]
_PPM = 1e6


@dataclass(frozen=True)
class Listed:
    """The listings, whom `auto` weighs its choices by, and how a device values the same items by itself."""

    listings: Listings
    population: Population
    codes: NDArray[np.int32]
    map: LinearMap


def listed_by(store: Store, listings: Path | None, liked: Mapping[int | str, float], offered: int) -> Listed:
    """``liked`` are released counts, if there are any: without a list of the operator's, the ``offered`` most liked items are."""
    if listings is not None:
        return _bids_of(store, listings)
    most = sorted(liked, key=lambda item: -liked[item])[:offered]
    return _free(store, most or best_items(store, offered))


def _free(store: Store, ids: Sequence[int | str]) -> Listed:
    listings, people = listings_of(store, ids)
    return Listed(listings, people, store.items.codes(ids), quality_map(store, ids))


def _bids_of(store: Store, file: Path) -> Listed:
    """From a CSV with a bid and a public probability of a click for each item.

    Her own probability is taken to stand to the public one as what the model expects of her stands to what it expects of everybody.
    """
    names, bids, ppm = _read(file)
    ids = [_id(store, name, file) for name in names]
    free, people = listings_of(store, ids)
    priced = free.priced()
    means = dict(zip(priced.items, priced.scores.tolist(), strict=True))
    items = [str(id) for id in ids]
    least = 1.0 / _PPM  # a factor is above 0: what is never clicked is, once in a million times
    factors = np.array([max(rate, 1) / _PPM / max(means[item], least) for item, rate in zip(items, ppm, strict=True)])
    own = LinearMap(quality_map(store, ids).matrix * factors[:, None])
    return Listed(Listings(items, bids, ppm), people.times(factors), store.items.codes(ids), own)


def _read(file: Path) -> tuple[list[str], list[int], list[int]]:
    try:
        with file.open(newline="", encoding="utf-8") as lines:
            rows = csv.DictReader(lines)
            if rows.fieldnames != _COLUMNS:
                raise InvalidData(f"{file} must have the columns {','.join(_COLUMNS)}.")
            found = [(row["item"], _whole(row["bid_micros"]), _whole(row["ppm"])) for row in rows if _complete(row)]
    except TacitError:
        raise
    except (ValueError, csv.Error):
        raise InvalidData(f"{file}: each row has an item and two whole numbers, in millionths.") from None
    if not found:
        raise InvalidData(f"{file} lists nothing.")
    names, bids, ppm = zip(*found, strict=True)
    return list(names), list(bids), list(ppm)


def _complete(row: Mapping[Any, Any]) -> bool:
    if None in row or None in row.values():  # a value too many, or too few
        raise ValueError
    return True


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError
    return int(text)


def _id(store: Store, name: str, file: Path) -> int | str:
    number = store.items.ids.dtype.kind in "iu"
    try:
        return store.items.id(store.items.code(int(name) if number else name))
    except (TacitError, ValueError):
        raise InvalidData(f"{file} lists {name!r}, which is no item of the model.") from None
