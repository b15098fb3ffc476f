"""Readers of single JSON values, for messages that are read member by member. An error shows a path and a type, never a value.

This module loads no other room, so a node that only carries messages of a federation loads nothing that could reach a row.
"""

import math
import re
from collections.abc import Collection
from typing import Any

from tacit.errors import InvalidMessage

TEXT = r"^[^\ud800-\udfff]*\Z"  # half of a surrogate pair cannot be written as UTF-8


def members(value: object, title: str, names: Collection[str]) -> dict[str, Any]:
    """``value``, if it is an object with these members and no others."""
    if not isinstance(value, dict) or set(value) != set(names):
        raise InvalidMessage(f"{title} must be an object with {', '.join(names)}, and nothing else.")
    return value


def whole(value: object, path: str, *, least: int, most: int) -> int:
    """``value``, if it is a whole number in these bounds. 1.0 and true are not whole numbers."""
    if type(value) is not int or not least <= value <= most:
        raise InvalidMessage(f"expected a whole number from {least} to {most} at {path}.")
    return value


def listed(value: object, path: str, *, length: int | None = None) -> list[Any]:
    """``value``, if it is a list (of that length)."""
    if not isinstance(value, list) or (length is not None and len(value) != length):
        raise InvalidMessage(f"expected a list{'' if length is None else f' of {length}'} at {path}.")
    return value


def real(value: object, path: str) -> float:
    """``value`` as a float, if it is a finite number."""
    try:
        if type(value) in (int, float) and math.isfinite(value):  # type: ignore[arg-type]
            return float(value)  # type: ignore[arg-type]
    except OverflowError:
        pass
    raise InvalidMessage(f"expected a finite number at {path}.")


def text(value: object, path: str, *, least: int = 0, most: int = 200) -> str:
    """``value``, if it is a text of ``least`` to ``most`` characters that can be written as UTF-8."""
    if isinstance(value, str) and least <= len(value) <= most and re.match(TEXT, value):
        return value
    raise InvalidMessage(f"expected a text of {least} to {most} characters at {path}.")


def hexadecimal(value: object, path: str, *, length: int | None = None, least: int = 0, most: int = 200) -> str:
    """``value``, if it is an even number of lower-case hexadecimal digits."""
    least, most = (least, most) if length is None else (length, length)
    digits = isinstance(value, str) and not set(value) - set("0123456789abcdef")
    if isinstance(value, str) and digits and least <= len(value) <= most and len(value) % 2 == 0:
        return value
    count = f"{least}" if least == most else f"{least} to {most}"
    raise InvalidMessage(f"expected {count} hexadecimal digits in lower case at {path}.")
