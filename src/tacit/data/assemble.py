"""From raw columns to `Ratings`: every rating on the scale, one for each (user, item), sorted.

Readers call `assemble`. For columns in memory use `from_arrays`, and `mix` to join several sets of ratings.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.data.catalogue import Catalogue, Codes, Ids, encode, extend, known_from_ratings
from tacit.data.ratings import MISSING_TIME, UNKNOWN, Provenance, Ratings, Scale
from tacit.errors import DuplicateRatings, InvalidData, InvalidParameter, RatingOutsideScale

Duplicates: TypeAlias = Literal["error", "latest", "mean"]
Outside: TypeAlias = Literal["error", "clip"]
_LEAST = -(2**63)  # the smallest int64
_MANY_ROWS = 1 << 20  # from here on, sorting by counting is worth the import of scipy


@dataclass(frozen=True, slots=True)
class RowSource:
    """Where rows come from. An error names the location of a row, never its content."""

    path: str
    first_line: int | None = None  # the line of row 0; None if only rows are counted, as in Parquet
    rating_column: str = "rating"
    duplicates_hint: str = "Pass duplicates='latest' to keep the latest, 'mean' to average."

    def line(self, row: int) -> str:
        """The row in words: "line 7", or "row 7"."""
        return f"row {row + 1}" if self.first_line is None else f"line {row + self.first_line}"

    def at(self, row: int, column: str | None = None) -> str:
        """The location of a cell in words, with the path."""
        return f"{self.path}, {self.line(row)}" + (f", column {column!r}" if column is not None else "")


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a file, in its order. Users and items are (distinct ids in ascending order, code of each row)."""

    users: tuple[Ids, Codes]
    items: tuple[Ids, Codes]
    values: NDArray[np.float32]
    times: NDArray[np.int64] | None = None


def assemble(
    columns: Columns,
    *,
    scale: Scale,
    source: RowSource,
    name: str,
    duplicates: Duplicates = "error",
    outside: Outside = "error",
    catalogue: Catalogue | None = None,
    provenance: Provenance = UNKNOWN,
) -> Ratings:
    """Checks and sorts the columns. The ids of ``columns.items`` must include all items of ``catalogue``, if you pass one."""
    for option, value, allowed in (("duplicates", duplicates, Duplicates), ("outside", outside, Outside)):
        if value not in get_args(allowed):
            raise InvalidParameter(f"{option} must be one of {', '.join(get_args(allowed))}, not {value!r}.")
    values, times = _clip(columns.values, scale) if outside == "clip" else columns.values, columns.times
    _check_values(values, scale, source)
    (user_ids, users), (item_ids, items) = columns.users, columns.items
    if not _is_sorted(users, items):
        order = stable_order(users, items, user_ids.size, item_ids.size)
        # Sorted users follow from their counts alone. That avoids a walk through memory in random order.
        users = np.repeat(np.arange(user_ids.size, dtype=np.int32), np.bincount(users, minlength=user_ids.size))
        items = items[order]
        first = np.ones(users.size, dtype=np.bool_)  # the first row of each pair
        first[1:] = (users[1:] != users[:-1]) | (items[1:] != items[:-1])
        if first.all():
            values = values[order]
        else:
            if duplicates == "error":
                raise _duplicate_error(first, order, source)
            order, values, scale = _merge(duplicates, first, order, values, times, scale)
            users, items = users[first], items[first]
        times = None if times is None else times[order]
    starts = np.zeros(user_ids.size + 1, dtype=np.int32)
    np.cumsum(np.bincount(users, minlength=user_ids.size), out=starts[1:])
    catalogue = known_from_ratings(Catalogue(item_ids)) if catalogue is None else extend(catalogue, item_ids)
    return Ratings(starts, items, values, times, user_ids, catalogue, scale, name, provenance)


def from_arrays(
    users: ArrayLike,
    items: ArrayLike,
    ratings: ArrayLike,
    times: ArrayLike | None = None,
    *,
    scale: Scale,
    duplicates: Duplicates = "error",
    outside: Outside = "error",
    name: str = "ratings",
) -> Ratings:
    """Ratings from columns in memory: ids (whole numbers or text), values on ``scale``, times in seconds since 1970.

    Raises RatingOutsideScale for a value outside the scale, unless ``outside="clip"`` moves it to the nearer end. Values that
    are not finite or lie between two steps always raise an error.
    """
    if not isinstance(scale, Scale):
        raise InvalidParameter("scale must be a Scale: tacit.data.STARS, HALF_STARS or Scale(low, high).")
    values = _value_column(ratings)
    stamps = None if times is None else _time_column(times)
    raw = [_id_column("users", users), _id_column("items", items)]
    if any(column.shape != values.shape for column in [*raw, *([] if stamps is None else [stamps])]):
        raise InvalidData("users, items, ratings and times must be columns of one length.")
    columns = Columns(encode(raw[0]), encode(raw[1]), values, stamps)
    source = RowSource("the arrays")
    return assemble(columns, scale=scale, source=source, name=name, duplicates=duplicates, outside=outside)


def mix(
    parts: Sequence[Ratings], *, catalogue: Catalogue | None = None, listed_only: bool = False, name: str = "mix"
) -> Ratings:
    """Joins several sets of ratings of the same items by different users. Equal item ids mean the same item.

    User ids become ``"<part>:<id>"``, so users of different parts stay apart. Titles and genres come from ``catalogue`` (by
    default that of the first part). Items outside it have none; with ``listed_only`` they are dropped, with their ratings. Use
    it for the releases of MovieLens, which share their film ids.
    """
    if len({part.name for part in parts}) != len(parts) or not parts:
        raise InvalidParameter("the parts of a mix must have different names, and there must be at least one.")
    listing = catalogue or parts[0].catalogue
    if len({part.catalogue.ids.dtype.kind for part in parts} | {listing.ids.dtype.kind}) != 1:
        raise InvalidParameter("item ids must be whole numbers in every part, or text in every part.")
    if listed_only:
        parts = [part.subset(np.isin(part.catalogue.ids, listing.ids)[part.items]) for part in parts]
    labels = np.concatenate([np.char.add(f"{part.name}:", part.user_ids.astype(str)) for part in parts])
    user_ids, codes = encode(labels)
    raw_items = np.concatenate([part.catalogue.ids[part.items] for part in parts])
    known = [listing.ids] if listed_only else [listing.ids, *(part.catalogue.ids for part in parts)]
    times = [np.full(len(part), MISSING_TIME) if part.times is None else part.times for part in parts]
    columns = Columns(
        users=(user_ids, np.repeat(codes, np.concatenate([part.counts for part in parts]))),
        items=encode(raw_items, np.concatenate(known)),
        values=np.concatenate([part.values for part in parts]),
        times=None if all(part.times is None for part in parts) else np.concatenate(times),
    )
    return assemble(
        columns,
        scale=_joint_scale([part.scale for part in parts]),
        source=RowSource(name),
        name=name,
        catalogue=listing,
        provenance=Provenance("; ".join(dict.fromkeys(part.provenance.source for part in parts)), "that of every part"),
    )


def _value_column(raw: ArrayLike) -> NDArray[np.float32]:
    # The errors of numpy repeat the value, so they are not passed on or kept as a cause.
    with suppress(TypeError, ValueError, OverflowError), np.errstate(over="ignore"):
        return np.array(raw, dtype=np.float32)
    raise InvalidData("ratings must be one column of numbers.")


def _time_column(raw: ArrayLike) -> NDArray[np.int64]:
    column = _array("times", raw)
    if column.dtype.kind == "M":
        return column.astype("datetime64[s]").astype(np.int64)  # NaT becomes MISSING_TIME
    if column.size and column.dtype.kind not in "iuf":
        raise InvalidData("times must be one column of seconds since 1970, with MISSING_TIME for unknown ones.")
    if column.dtype.kind in "uf" and not np.all((column >= _LEAST) & (column < -_LEAST)):  # NaN fails too
        raise InvalidData("a time does not fit 64 bits or is not a number; pass MISSING_TIME for unknown times.")
    return column.astype(np.int64)


def _id_column(name: str, raw: ArrayLike) -> NDArray[Any]:
    column = _array(name, raw)
    if column.ndim == 1 and not column.size:
        return column.astype(np.int64 if column.dtype.kind in "iuf" else str)
    if column.dtype.kind == "O":
        column = _unbox(name, column)
    if column.ndim != 1 or column.dtype.kind not in "iuUT":
        raise InvalidData(f"{name} must be one column of whole numbers or of text, without missing values.")
    if column.dtype.kind == "u" and int(column.max()) > np.iinfo(np.int64).max:
        raise InvalidData(f"an id of {name} does not fit 64 bits; pass such ids as text.")
    return column.astype(np.int64 if column.dtype.kind in "iu" else str)


def _unbox(name: str, column: NDArray[Any]) -> NDArray[Any]:
    """A column of Python objects as whole numbers or text, or unchanged. None is not an id, and not the text "None"."""
    kinds = {type(value) for value in column.ravel().tolist()}
    if any(issubclass(kind, (bool, np.bool_)) or not issubclass(kind, (int, np.integer, str)) for kind in kinds):
        return column
    if any(issubclass(kind, str) for kind in kinds):
        return column.astype(str)
    if not all(_LEAST <= int(value) < -_LEAST for value in column.ravel().tolist()):
        raise InvalidData(f"an id of {name} does not fit 64 bits; pass such ids as text.")
    return column.astype(np.int64)


def _array(name: str, raw: ArrayLike) -> NDArray[Any]:
    with suppress(TypeError, ValueError, OverflowError):
        return np.asarray(raw)
    raise InvalidData(f"{name} must be one column.")


def _clip(values: NDArray[np.float32], scale: Scale) -> NDArray[np.float32]:
    """Moves each finite value outside the scale to its nearer end. `_check_values` refuses the others."""
    moved = np.clip(values, np.float32(scale.low), np.float32(scale.high))
    return np.where(np.isfinite(values), moved, values).astype(np.float32)


def _check_values(values: NDArray[np.float32], scale: Scale, source: RowSource) -> None:
    if values.size >= np.iinfo(np.int32).max:
        raise InvalidData(f"{source.path} holds {values.size:,} ratings; at most 2,147,483,646 fit.")
    row = scale.first_outside(values)
    if row is None:
        return
    where = source.at(row, source.rating_column)
    if not np.isfinite(values[row]):
        raise InvalidData(f"{where}: expected a number on the scale {scale}; the value is missing or not finite.")
    raise RatingOutsideScale(
        f"{where}: the rating is not on the scale, {scale}. Correct the file or pass its scale; outside='clip' (in "
        "`tacit transfer`: --outside clip) moves ratings below or above the scale to its nearer end."
    )


def _is_sorted(users: Codes, items: Codes) -> bool:
    """Whether rows are sorted by user, then item, without repeats. MovieLens files usually are, so the check pays."""
    ascends = users[1:] > users[:-1]
    ascends |= (users[1:] == users[:-1]) & (items[1:] > items[:-1])
    return bool(ascends.all())


def stable_order(users: Codes, items: Codes, n_users: int, n_items: int) -> NDArray[Any]:
    """The same as ``np.lexsort((items, users))``. It sorts many rows by counting, in half the time for 25 million rows."""
    if users.size < _MANY_ROWS:
        return np.lexsort((items, users))
    by_item = _counting_order(items, n_items)
    order: NDArray[Any] = by_item[_counting_order(users[by_item], n_users)]
    return order


def _counting_order(codes: Codes, n_codes: int) -> NDArray[Any]:
    """A stable argsort of small codes: the transpose of a matrix with one entry per row lists the rows by column."""
    from scipy.sparse import csr_array

    starts = np.arange(codes.size + 1, dtype=np.int32)
    matrix = csr_array((np.ones(codes.size, dtype=np.int8), codes, starts), shape=(codes.size, n_codes), copy=False)
    order: NDArray[Any] = matrix.tocsc().indices
    return order


def _duplicate_error(first: NDArray[np.bool_], order: NDArray[np.intp], source: RowSource) -> DuplicateRatings:
    repeats = np.flatnonzero(~first)
    earliest = repeats[np.argmin(order[repeats])]  # the first row of the file that repeats another
    return DuplicateRatings(
        f"{source.at(int(order[earliest]))} rates the same item for the same user as {source.line(int(order[earliest - 1]))}; "
        f"there are {repeats.size:,} such rows. {source.duplicates_hint}"
    )


def _merge(
    duplicates: Duplicates,
    first: NDArray[np.bool_],
    order: NDArray[np.intp],
    values: NDArray[np.float32],
    times: NDArray[np.int64] | None,
    scale: Scale,
) -> tuple[NDArray[np.intp], NDArray[np.float32], Scale]:
    """For each pair the row to keep (the latest; of equal times, the last in the file) and its value."""
    if times is not None:
        order = order[np.lexsort((times[order], np.cumsum(first)))]  # stable: equal times stay in the order of the file
    last = np.append(first[1:], True)
    if duplicates == "latest":
        return order[last], values[order[last]], scale
    starts = np.flatnonzero(first)
    sums = np.add.reduceat(values[order].astype(np.float64), starts)
    means = (sums / np.diff(np.append(starts, first.size))).astype(np.float32)
    is_on_scale = scale.first_outside(means) is None  # the mean of 3 and 4 stars is not
    return order[last], means, scale if is_on_scale else scale.without_step()


def _joint_scale(scales: Sequence[Scale]) -> Scale:
    """The smallest scale that contains all: stars and half stars give half stars."""
    low, high = min(scale.low for scale in scales), max(scale.high for scale in scales)
    steps = [scale.step for scale in scales]
    step = None if None in steps else min(step for step in steps if step is not None)
    if step is not None:
        gaps = [(scale.low - low) / step for scale in scales] + [(scale.step or step) / step for scale in scales]
        if any(abs(gap - round(gap)) > 1e-6 for gap in gaps):
            step = None
    return Scale(low, high, step)
