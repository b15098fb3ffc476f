"""From raw columns to `Ratings`: every rating on the scale, one for each (user, item), in order."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.data.catalogue import Catalogue, from_ratings, widened
from tacit.data.ids import Codes, Ids, encode
from tacit.data.order import stable_order
from tacit.data.provenance import UNKNOWN, Provenance
from tacit.data.ratings import Ratings
from tacit.data.scale import Scale
from tacit.data.source import Source
from tacit.errors import DuplicateRatings, InvalidData, InvalidParameter, RatingOutsideScale

Duplicates: TypeAlias = Literal["error", "latest", "mean"]
Outside: TypeAlias = Literal["error", "clip"]
_LEAST = -(2**63)  # of an int64


@dataclass(frozen=True, slots=True)
class Columns:
    """One entry for each row of a file, in its order; users and items as (distinct ids ascending, codes)."""

    users: tuple[Ids, Codes]
    items: tuple[Ids, Codes]
    values: NDArray[np.float32]
    times: NDArray[np.int64] | None = None


def assemble(
    columns: Columns,
    *,
    scale: Scale,
    source: Source,
    name: str,
    duplicates: Duplicates = "error",
    outside: Outside = "error",
    catalogue: Catalogue | None = None,
    provenance: Provenance = UNKNOWN,
) -> Ratings:
    """Checked and sorted. ``catalogue``, if given, must list no item outside ``columns.items``."""
    for name_of, value, allowed in (("duplicates", duplicates, Duplicates), ("outside", outside, Outside)):
        if value not in get_args(allowed):
            raise InvalidParameter(f"{name_of} must be one of {', '.join(get_args(allowed))}, not {value!r}.")
    values, times = _within(columns.values, scale) if outside == "clip" else columns.values, columns.times
    _check_values(values, scale, source)
    (user_ids, users), (item_ids, items) = columns.users, columns.items
    if not _in_order(users, items):
        order = stable_order(users, items, user_ids.size, item_ids.size)
        # Sorted, the users are known from their counts alone, which spares a walk through memory in random order.
        users = np.repeat(np.arange(user_ids.size, dtype=np.int32), np.bincount(users, minlength=user_ids.size))
        items = items[order]
        first = np.ones(users.size, dtype=np.bool_)  # the first row of each pair
        first[1:] = (users[1:] != users[:-1]) | (items[1:] != items[:-1])
        if first.all():
            values = values[order]
        else:
            _refuse(duplicates, first, order, source)
            order, values, scale = _merged(duplicates, first, order, values, times, scale)
            users, items = users[first], items[first]
        times = None if times is None else times[order]
    starts = np.zeros(user_ids.size + 1, dtype=np.int32)
    np.cumsum(np.bincount(users, minlength=user_ids.size), out=starts[1:])
    catalogue = from_ratings(Catalogue(item_ids)) if catalogue is None else widened(catalogue, item_ids)
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
    """Ratings from columns in memory: ids (whole numbers or text), values on ``scale``, seconds since 1970.

    What lies outside of the scale is refused, or with ``outside="clip"`` moved to its nearer end; what is not finite, or between
    two steps, is refused always.
    """
    if not isinstance(scale, Scale):
        raise InvalidParameter("scale must be a Scale: tacit.data.STARS, HALF_STARS or Scale(low, high).")
    values = _value_column(ratings)
    stamps = None if times is None else _time_column(times)
    raw = [_id_column("users", users), _id_column("items", items)]
    if any(column.shape != values.shape for column in [*raw, *([] if stamps is None else [stamps])]):
        raise InvalidData("users, items, ratings and times must be columns of one length.")
    columns = Columns(encode(raw[0]), encode(raw[1]), values, stamps)
    source = Source("the arrays")
    return assemble(columns, scale=scale, source=source, name=name, duplicates=duplicates, outside=outside)


def _value_column(raw: ArrayLike) -> NDArray[np.float32]:
    # numpy's errors repeat the value, so none is passed on, nor kept as a cause
    with suppress(TypeError, ValueError, OverflowError), np.errstate(over="ignore"):
        return np.array(raw, dtype=np.float32)
    raise InvalidData("ratings must be one column of numbers.")


def _time_column(raw: ArrayLike) -> NDArray[np.int64]:
    column = _array("times", raw)
    if column.dtype.kind == "M":
        return column.astype("datetime64[s]").astype(np.int64)  # NaT becomes MISSING_TIME
    if column.size and column.dtype.kind not in "iuf":
        raise InvalidData("times must be one column of seconds since 1970, with MISSING_TIME where one is not known.")
    if column.dtype.kind in "uf" and not np.all((column >= _LEAST) & (column < -_LEAST)):  # NaN fails too
        raise InvalidData("a time is not a number that fits; pass MISSING_TIME where it is not known.")
    return column.astype(np.int64)


def _id_column(name: str, raw: ArrayLike) -> NDArray[Any]:
    column = _array(name, raw)
    if column.ndim == 1 and not column.size:
        return column.astype(np.int64 if column.dtype.kind in "iuf" else str)
    if column.dtype.kind == "O":
        column = _unboxed(name, column)
    if column.ndim != 1 or column.dtype.kind not in "iuUT":
        raise InvalidData(f"{name} must be one column of whole numbers or of text, without gaps.")
    if column.dtype.kind == "u" and int(column.max()) > np.iinfo(np.int64).max:
        raise InvalidData(f"an id of {name} is 2**63 or more and does not fit; pass such ids as text.")
    return column.astype(np.int64 if column.dtype.kind in "iu" else str)


def _unboxed(name: str, column: NDArray[Any]) -> NDArray[Any]:
    """A column of Python objects as one of whole numbers or of text: None is no id, and is not the text "None"."""
    kinds = {type(one) for one in column.ravel().tolist()}
    if all(issubclass(kind, str) for kind in kinds):
        return column.astype(str)
    if any(issubclass(kind, (bool, np.bool_)) or not issubclass(kind, (int, np.integer, str)) for kind in kinds):
        raise InvalidData(f"{name} must be one column of whole numbers or of text, without gaps.")
    if any(issubclass(kind, str) for kind in kinds):
        return column.astype(str)
    if not all(_LEAST <= int(one) < -_LEAST for one in column.ravel().tolist()):
        raise InvalidData(f"an id of {name} is 2**63 or more and does not fit; pass such ids as text.")
    return column.astype(np.int64)


def _array(name: str, raw: ArrayLike) -> NDArray[Any]:
    with suppress(TypeError, ValueError, OverflowError):
        return np.asarray(raw)
    raise InvalidData(f"{name} must be one column.")


def _within(values: NDArray[np.float32], scale: Scale) -> NDArray[np.float32]:
    """Each finite value moved to the nearer end of the scale, where it lies outside; the rest is left to be refused."""
    moved = np.clip(values, np.float32(scale.low), np.float32(scale.high))
    return np.where(np.isfinite(values), moved, values).astype(np.float32)


def _check_values(values: NDArray[np.float32], scale: Scale, source: Source) -> None:
    if values.size >= np.iinfo(np.int32).max:
        raise InvalidData(f"{source.path} holds {values.size:,} ratings; at most 2,147,483,646 fit.")
    row = scale.first_outside(values)
    if row is None:
        return
    where = source.at(row, source.rating_column)
    if not np.isfinite(values[row]):
        raise InvalidData(f"{where}: expected a number on the scale {scale}, found none or one that is not finite.")
    raise RatingOutsideScale(
        f"{where}: the rating is not on the scale, {scale}. Mend the file or state its scale; outside='clip' (of "
        "`tacit transfer`: --outside clip) moves what is below or above it to its nearer end."
    )


def _in_order(users: Codes, items: Codes) -> bool:
    """Sorted by user, then item, without repeats: the usual state of a MovieLens file, worth the look."""
    ahead = users[1:] > users[:-1]
    ahead |= (users[1:] == users[:-1]) & (items[1:] > items[:-1])
    return bool(ahead.all())


def _refuse(duplicates: Duplicates, first: NDArray[np.bool_], order: NDArray[np.intp], source: Source) -> None:
    if duplicates != "error":
        return
    again = np.flatnonzero(~first)
    earliest = again[np.argmin(order[again])]  # the first row of the file that repeats another
    raise DuplicateRatings(
        f"{source.at(int(order[earliest]))} rates the same item for the same user as {source.place(int(order[earliest - 1]))}; "
        f"{again.size:,} such rows. {source.duplicates_hint}"
    )


def _merged(
    duplicates: Duplicates,
    first: NDArray[np.bool_],
    order: NDArray[np.intp],
    values: NDArray[np.float32],
    times: NDArray[np.int64] | None,
    scale: Scale,
) -> tuple[NDArray[np.intp], NDArray[np.float32], Scale]:
    """For each pair the row to keep (the latest; of equal times the last in the file) and its value."""
    if times is not None:
        order = order[np.lexsort((times[order], np.cumsum(first)))]  # stable: equal times stay in the order of the file
    last = np.append(first[1:], True)
    if duplicates == "latest":
        return order[last], values[order[last]], scale
    starts = np.flatnonzero(first)
    sums = np.add.reduceat(values[order].astype(np.float64), starts)
    means = (sums / np.diff(np.append(starts, first.size))).astype(np.float32)
    still = scale.first_outside(means) is None
    return order[last], means, scale if still else scale.without_step()  # the mean of 3 and 4 stars is no star
