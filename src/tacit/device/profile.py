"""A profile: what one user rated. It lives in the memory of her device, and has no way out of it."""

import math
from collections.abc import Mapping
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from tacit.checks import finite
from tacit.errors import InvalidParameter

MOST_RATING = 1e6  # on whatever scale: far beyond it features could overflow


class Profile:
    """Ratings by item code. Its text shows nothing of it; it cannot be pickled, copied or written.

    To keep it beyond a restart is the application's part, in a place of its own: the device's file holds charges and signals only.
    """

    __slots__ = ("_ratings",)

    def __init__(self) -> None:
        self._ratings: dict[int, float] = {}

    def rate(self, ratings: Mapping[int, float]) -> None:
        """Adds ratings, or replaces earlier ones of the same items."""
        self._ratings |= ratings

    def forget(self, code: int) -> None:
        """Removes a rating, if there is one."""
        self._ratings.pop(code, None)

    def wipe(self) -> None:
        """Removes all of it."""
        self._ratings.clear()

    def ratings(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Item codes, ascending, and their ratings."""
        codes = sorted(self._ratings)
        return np.array(codes, dtype=np.int64), np.array([self._ratings[code] for code in codes], dtype=np.float64)

    def __len__(self) -> int:
        return len(self._ratings)

    def __repr__(self) -> str:
        return "Profile(private)"

    def __reduce_ex__(self, _: object) -> NoReturn:
        raise InvalidParameter("a profile is private and is not written, copied or sent: release a signal instead.")


def checked_rating(value: float, place: int) -> float:
    """A rating within public bounds; the error shows its place only, and has no context that shows more."""
    try:
        number = finite("a rating", value)
    except InvalidParameter:
        number = math.inf
    if abs(number) > MOST_RATING:
        raise InvalidParameter(f"rating {place} is not a finite number from {-MOST_RATING:,.0f} to {MOST_RATING:,.0f}.")
    return number
