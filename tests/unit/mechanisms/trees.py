"""Trees over small boxes, with answers that a test gives."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms import FeatureBox, TreePrototypes
from tacit.mechanisms.inputs import ProfileBounds

DELTA = 1e-6
BOX = FeatureBox.cube(3, -1.0, 1.0)
PROFILES = ProfileBounds(6, 3, 5.0, l2_bound=7.0)


def tree(epsilon: float = 1.0, bounds: Any = BOX, k: int = 4, **more: Any) -> TreePrototypes:
    return TreePrototypes(bounds, k, epsilon, DELTA, **more)


def groups(rng: np.random.Generator, users: int, dimension: int = 3, spread: float = 0.05) -> NDArray[np.float64]:
    """Rows around the corners (.7, .7, ...), (-.7, .7, ...), ..."""
    signs = 1.0 - 2.0 * ((np.arange(4)[:, None] >> np.arange(dimension)) & 1)
    return 0.7 * signs[rng.integers(4, size=users)] + rng.normal(scale=spread, size=(users, dimension))
