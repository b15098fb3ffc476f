"""Checks of public parameters, one wording for all: name, what was given, what is allowed.

Only public parameters pass through here, so the offending value may be shown.
"""

import math

from tacit.errors import InvalidParameter


def positive(name: str, value: float) -> float:
    """``value`` as a float, if it is a finite number above 0."""
    if not (_is_number(value) and 0.0 < value < math.inf):  # written so that NaN fails too
        raise InvalidParameter(f"{name} must be a finite number above 0, not {value!r}.")
    return float(value)


def finite(name: str, value: float) -> float:
    """``value`` as a float, if it is a finite number."""
    if not (_is_number(value) and -math.inf < value < math.inf):
        raise InvalidParameter(f"{name} must be a finite number, not {value!r}.")
    return float(value)


def probability(name: str, value: float) -> float:
    """``value`` as a float, if it lies strictly between 0 and 1."""
    if not (_is_number(value) and 0.0 < value < 1.0):
        raise InvalidParameter(f"{name} must lie strictly between 0 and 1, not {value!r}.")
    return float(value)


def whole(name: str, value: int, *, least: int, most: int | None = None) -> int:
    """``value`` as an int, if it is a whole number from ``least`` to ``most``."""
    allowed = f"at least {least}" if most is None else f"from {least} to {most}"
    if (
        isinstance(value, bool)
        or not hasattr(value, "__index__")
        or value < least
        or (most is not None and value > most)
    ):
        raise InvalidParameter(f"{name} must be a whole number {allowed}, not {value!r}.")
    return int(value)


def _is_number(value: object) -> bool:
    return hasattr(value, "__float__") and not isinstance(value, bool)
