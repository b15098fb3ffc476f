"""The fields of a JSON message, strictly: every one is there, none is unknown, each has its own type. No value is ever shown."""

import math
from collections.abc import Collection
from typing import Any

from tacit.errors import InvalidMessage


def members(value: object, what: str, names: Collection[str]) -> dict[str, Any]:
    """``value``, if it is an object with these members and no others."""
    if not isinstance(value, dict) or set(value) != set(names):
        raise InvalidMessage(f"{what} must be an object with {', '.join(names)}, and nothing else.")
    return value


def whole(value: object, path: str, *, least: int, most: int) -> int:
    """A whole number; a truth value, or 1.0, is none."""
    if type(value) is not int or not least <= value <= most:
        raise InvalidMessage(f"expected a whole number from {least} to {most} at {path}.")
    return value


def truth(value: object, path: str) -> bool:
    if type(value) is not bool:
        raise InvalidMessage(f"expected true or false at {path}.")
    return value


def listed(value: object, path: str, *, length: int | None = None) -> list[Any]:
    if not isinstance(value, list) or (length is not None and len(value) != length):
        raise InvalidMessage(f"expected a list{'' if length is None else f' of {length}'} at {path}.")
    return value


def real(value: object, path: str) -> float:
    """A finite number."""
    if type(value) not in (int, float):
        raise InvalidMessage(f"expected a finite number at {path}.")
    try:
        number = float(value)  # type: ignore[arg-type]
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InvalidMessage(f"expected a finite number at {path}.")
    return number


def number_in_text(value: object, path: str, *, most: int) -> int:
    """A whole number of at least 0 written in digits: a browser's numbers are exact to 2^53 only."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 20:
        number = int(value)
        if number <= most and str(number) == value:
            return number
    raise InvalidMessage(f"expected a whole number, as a text of digits without leading zeros, at {path}.")


def text(value: object, path: str, *, least: int = 0, most: int = 200) -> str:
    """A text of so many characters that can be written as UTF-8."""
    if isinstance(value, str) and least <= len(value) <= most:
        try:
            value.encode()
        except UnicodeEncodeError:  # half a surrogate pair
            pass
        else:
            return value
    raise InvalidMessage(f"expected a text of {least} to {most} characters at {path}.")


def hexadecimal(value: object, path: str, *, length: int | None = None, least: int = 0, most: int = 200) -> str:
    """An even number of lower-case hexadecimal digits."""
    least, most = (least, most) if length is None else (length, length)
    if (
        isinstance(value, str)
        and least <= len(value) <= most
        and len(value) % 2 == 0
        and not set(value) - set("0123456789abcdef")
    ):
        return value
    count = f"{least}" if least == most else f"{least} to {most}"
    raise InvalidMessage(f"expected {count} hexadecimal digits in lower case at {path}.")
