"""Users' rows as points of few coordinates: a public projection of bounded rows, in whole numbers.

Each point depends on its own row alone: whole numbers add up to the same in any order, where a product in floats may change the
last bits of other rows when one more row stands below them.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.mechanisms.partition import HALF_SIDE
from tacit.mechanisms.profile_bounds import ProfileBounds, root_up
from tacit.models.public_projection import gaussian_projection

_FARTHEST = 1 << 24  # of a coordinate before a point is cut: its squares in 2^14 dimensions add up to at most 2^62
_BITS = 20  # after the binary point of the projection, or as many as 64-bit sums leave room for


@dataclass(frozen=True)
class GridPoints:
    """Rows within ``bounds`` times a public Gaussian matrix, cut to the ball of radius ``bounds.l2``, which is 2^16 steps."""

    bounds: ProfileBounds
    dimension: int
    seed: int
    trial: int = 0

    @cached_property
    def _matrix(self) -> tuple[NDArray[np.int64], int]:
        """The projection in whole numbers, and how many of their bits stand after the binary point."""
        per_step = HALF_SIDE / math.sqrt(self.bounds.l2_squared_steps)  # steps of a point for one step of a row
        real = gaussian_projection(self.bounds.items, self.dimension, self.seed, self.trial) * per_step
        # |sum of x_j h_j| <= |x|_1 max |h|, which is below 2^61: of 2^38 steps at most and numbers below 2^20 some bits are left
        largest = self.bounds.l1_steps * (float(np.abs(real).max()) + 1.0)
        bits = min(_BITS, 60 - math.ceil(math.log2(largest)))
        return np.rint(real * 2.0**bits).astype(np.int64), bits

    def of(self, table: sparse.csr_array) -> NDArray[np.int64]:
        """users x dimension; ``table`` holds bounded rows in steps. Private."""
        matrix, bits = self._matrix
        product = np.asarray(table @ matrix)
        size = np.minimum(np.abs(product) >> bits, _FARTHEST)
        norm = root_up((size * size).sum(axis=1))
        over = norm > HALF_SIDE
        size[over] = size[over] * HALF_SIDE // norm[over, None]  # rounded towards 0: the length is at most HALF_SIDE
        points: NDArray[np.int64] = np.sign(product) * size
        return points
