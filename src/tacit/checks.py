"""Checks of public parameters. Each check raises `InvalidParameter` with the name, the allowed values and the value.

Use them for public parameters only, because the error shows the value. A check returns a plain Python number: numpy's small
integers wrap around, and a sensitivity that wraps around is a privacy fault.
"""

import math
from collections.abc import Iterable
from enum import Enum
from typing import Any, TypeVar

from tacit.errors import InvalidParameter

E = TypeVar("E", bound=Enum)
T = TypeVar("T")


def positive(name: str, value: float) -> float:
    """``value`` as a float, if it is a finite number above 0."""
    number = _number(value)
    if not 0.0 < number < math.inf:  # written so that NaN fails too
        raise InvalidParameter(f"{name} must be a finite number above 0, not {_shown(value)}.")
    return number


def finite(name: str, value: float) -> float:
    """``value`` as a float, if it is a finite number."""
    number = _number(value)
    if not -math.inf < number < math.inf:
        raise InvalidParameter(f"{name} must be a finite number, not {_shown(value)}.")
    return number


def probability(name: str, value: float) -> float:
    """``value`` as a float, if it lies strictly between 0 and 1."""
    number = _number(value)
    if not 0.0 < number < 1.0:
        raise InvalidParameter(f"{name} must lie strictly between 0 and 1, not {_shown(value)}.")
    return number


def whole(name: str, value: int, *, least: int, most: int | None = None) -> int:
    """``value`` as an int, if it is a whole number from ``least`` to ``most``."""
    number = None if isinstance(value, bool) or not hasattr(value, "__index__") else value.__index__()
    if number is None or number < least or (most is not None and number > most):
        allowed = f"at least {least}" if most is None else f"from {least} to {most}"
        raise InvalidParameter(f"{name} must be a whole number {allowed}, not {_shown(value)}.")
    return number


def member(name: str, kind: type[E], value: object) -> E:
    """``value`` as one of ``kind``."""
    try:
        return kind(value)
    except ValueError:
        allowed = ", ".join(repr(choice.value) for choice in kind)
        raise InvalidParameter(f"{name} must be one of {allowed}, not {_shown(value)}.") from None


def several(name: str, values: Iterable[T]) -> list[T]:
    """``values`` as a list. Raises InvalidParameter for text and for anything that is not a collection."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InvalidParameter(f"{name} must be a collection, such as a list or a tuple, not {type(values).__name__}.")
    return list(values)


def keep(frozen: object, **checked: object) -> None:
    """Writes checked parameters back to a frozen value that is being built."""
    for name, value in checked.items():
        object.__setattr__(frozen, name, value)


def _number(value: Any) -> float:
    """``value`` as a float, or NaN if it is not a number: every check above refuses NaN."""
    if isinstance(value, (bool, str, bytes)) or not hasattr(value, "__float__") or getattr(value, "ndim", 0) > 0:
        return math.nan
    try:
        return float(value)
    except (OverflowError, TypeError, ValueError):
        return math.nan


def _shown(value: object) -> str:
    """The value, short enough for one line."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
