"""Raw ids and the codes that stand for them: 0, 1, 2, … in ascending order of the id.

Ascending order matters: "score descending, item id ascending" is then the same as "score descending, code ascending".
"""

from typing import Any, NewType, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidParameter

# What the file said, a whole number or text. A new type, so that the checker keeps ids and codes (bare ints) apart.
UserId = NewType("UserId", object)
ItemId = NewType("ItemId", object)

Ids: TypeAlias = NDArray[Any]  # int64 or fixed-width text, ascending, no repeats
Codes: TypeAlias = NDArray[np.int32]

# A lookup table over the span of the ids beats sorting, as long as it is not much longer than the column itself.
_TABLE_PER_ROW, _TABLE_AT_LEAST = 4, 1 << 20


def encode(raw: Ids, known: Ids | None = None) -> tuple[Ids, Codes]:
    """The distinct ids of ``raw`` and ``known``, ascending, and for each entry of ``raw`` its place among them."""
    if known is not None and known.dtype.kind != raw.dtype.kind:
        raw, known = raw.astype(str), known.astype(str)
    parts = [raw] if known is None else [raw, known]
    filled = [part for part in parts if part.size]
    if not filled:
        return raw, np.zeros(0, dtype=np.int32)
    if raw.dtype.kind in "iu":
        low = min(int(part.min()) for part in filled)
        span = max(int(part.max()) for part in filled) - low + 1
        if span <= max(_TABLE_PER_ROW * raw.size, _TABLE_AT_LEAST):
            return _encode_by_table(raw, parts, low, span)
    ids, places = np.unique(np.concatenate(parts), return_inverse=True)
    return ids, places[: raw.size].astype(np.int32)


def _encode_by_table(raw: Ids, parts: list[Ids], low: int, span: int) -> tuple[Ids, Codes]:
    seen = np.zeros(span, dtype=np.bool_)
    for part in parts:
        seen[part - low if low else part] = True
    codes = np.cumsum(seen, dtype=np.int32) - np.int32(1)
    return np.flatnonzero(seen).astype(np.int64) + low, codes[raw - low if low else raw]


def natural(ids: Ids, codes: Codes) -> tuple[Ids, Codes]:
    """The same coding with whole numbers for text ids, if every one of them is a number written the usual way.

    "0767803434" is not: reading it as a number would lose its zeros, so such a column stays text.
    """
    try:
        numbers = ids.astype(np.int64)
    except (ValueError, OverflowError):
        return ids, codes
    if not np.array_equal(numbers.astype(str), ids):
        return ids, codes
    order = np.argsort(numbers)
    place = np.empty(order.size, dtype=np.int32)
    place[order] = np.arange(order.size, dtype=np.int32)
    return numbers[order], place[codes]


def code_of(ids: Ids, wanted: object) -> int | None:
    """The code of one id, or None."""
    if isinstance(wanted, str) != (ids.dtype.kind == "U") or isinstance(wanted, bool):
        return None
    if not isinstance(wanted, (str, int, float, np.integer, np.floating)):
        return None
    if not isinstance(wanted, str) and not -(2.0**63) <= wanted < 2.0**63:
        return None
    place = int(np.searchsorted(ids, wanted))
    return place if place < ids.size and ids[place] == wanted else None


def checked_code(kind: str, code: int, n_codes: int) -> int:
    """``code`` as an int, if there is one: numpy would take -1 for the last."""
    number = None if isinstance(code, (bool, np.bool_)) or not hasattr(code, "__index__") else code.__index__()
    if number is None or not 0 <= number < n_codes:
        raise InvalidParameter(f"no such {kind} code; {codes_allowed(n_codes)}.")
    return number


def codes_allowed(n_codes: int) -> str:
    return f"codes go from 0 to {n_codes - 1}" if n_codes else "there are none"


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """A view that cannot be written to."""
    view = array.view()
    view.flags.writeable = False
    return view
