"""A shop with eight films and four genres, a clock that is set by hand, noise that counts its draws."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tacit.device import Device
from tacit.ledger import Budget
from tacit.mechanisms import SYSTEM_NOISE
from tacit.models.features import FeatureSpace, GenreProfile
from tacit.models.items import Items

ACTION, COMEDY, DRAMA, NONE = range(4)
FILMS = {
    2: ("Jumanji (1995)", [ACTION]),
    3: ("Heat (1995)", [ACTION, DRAMA]),
    5: ("Sabrina (1995)", [COMEDY]),
    8: ("Sabrina (1954)", [COMEDY, DRAMA]),
    13: ("Matrix, The (1999)", [ACTION]),
    21: ("Ran (1985)", [DRAMA]),
    32: ("Untold (2001)", [NONE]),
    50: ("Everything (2022)", [ACTION, COMEDY, DRAMA]),
}
BUDGET = Budget(epsilon=10, per="month")


class Shop(NamedTuple):
    items: Items
    space: FeatureSpace


def flags() -> np.ndarray:
    table = np.zeros((len(FILMS), 4), dtype=bool)
    for row, (_, genres) in enumerate(FILMS.values()):
        table[row, genres] = True
    return table


SHOP = Shop(Items(np.array(list(FILMS)), tuple(title for title, _ in FILMS.values())), GenreProfile(flags()))


class Clock:
    """Set by hand."""

    def __init__(self, *moment: int) -> None:
        self.set(*moment or (2026, 11, 16, 12))

    def set(self, *moment: int) -> None:
        self.at = int(datetime(*moment, tzinfo=UTC).timestamp()) * 1_000_000  # type: ignore[misc,arg-type]

    def __call__(self) -> int:
        return self.at


class CountedNoise:
    """The operating system's noise, and how often it was asked for."""

    caveat = None

    def __init__(self) -> None:
        self.draws = 0

    def draw(self, count: int) -> bytes:
        self.draws += 1
        return SYSTEM_NOISE.draw(count)


def opened(place: Path, **options: Any) -> Device:
    """A device in the middle of November 2026, unless its clock says otherwise."""
    return Device(place, SHOP, **{"budget": BUDGET, "clock": Clock(), **options})
