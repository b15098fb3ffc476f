"""Private set-up that is done once, and any number of releases drawn from it. What is inside never leaves it otherwise."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.checks import whole
from tacit.guarantees import Guarantee, Release, repeat
from tacit.mechanisms.drawn import released
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise

Slates = TypeVar("Slates", bound=Sequence[NDArray[np.int64]] | NDArray[np.int64])


class Prepared(Generic[Slates]):
    """Slates of one table of records. It holds private data: keep it where the records are, and store it nowhere.

    ``draw(count, noise)`` gives ``count`` independent slates, each with its items in ascending order; ``guarantee`` is that of
    one slate.
    """

    def __init__(self, items: int, k: int | None, guarantee: Guarantee, draw: Callable[[int, Noise], Slates]) -> None:
        self.items, self.k, self.guarantee = items, k, guarantee
        self._draw = draw

    def release(self, noise: Noise = SYSTEM_NOISE) -> Release[NDArray[np.int64]]:
        """One slate: its items in ascending order, which says nothing."""
        return released(np.asarray(self._draw(1, noise)[0], dtype=np.int64), self.guarantee, noise)

    def release_many(self, count: int, noise: Noise = SYSTEM_NOISE) -> Release[Slates]:
        """``count`` slates of the same records. The guarantee covers all of them: basic composition, with their zCDP beside it.

        ``guarantees.tight([release.guarantee], delta)`` turns that into the smaller epsilon at a delta.
        """
        count = whole("count", count, least=1)
        return released(self._draw(count, noise), repeat(self.guarantee, count), noise)

    def __repr__(self) -> str:
        size = "subsets" if self.k is None else f"slates of {self.k}"
        return f"Prepared({size} from {self.items} items)"  # not how many users: whether one is there is private
