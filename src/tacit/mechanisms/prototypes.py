"""What prototype mechanisms release: privatised centres of an entity's users, with their noisy sizes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Prototypes:
    """``centres`` k x items in the units of the rows, NaN where a number was not released; ``sizes`` k noisy numbers of users.

    Noise may have made sizes negative or fractional. What the noise was added to is whole numbers, which floats hold exactly.
    """

    centres: NDArray[np.float64]
    sizes: NDArray[np.float64]

    @property
    def count(self) -> int:
        """How many prototypes there are: k."""
        return len(self.sizes)

    def filled(self, value: float = 0.0) -> NDArray[np.float64]:
        """The centres with ``value`` in place of numbers that were not released."""
        return np.where(np.isnan(self.centres), value, self.centres)
