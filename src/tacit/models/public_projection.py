"""Public randomness: a Gaussian projection that anybody can draw again from its seed. Nothing private enters it."""

import numpy as np
from numpy.typing import NDArray


def gaussian_projection(items: int, dimension: int, seed: int, which: int = 0) -> NDArray[np.float64]:
    """items x dimension numbers of variance 1/dimension: squared lengths keep their mean. The ``which``-th of its seed."""
    rng = np.random.default_rng([0, seed, which])
    matrix: NDArray[np.float64] = rng.standard_normal((items, dimension)) / np.sqrt(dimension)
    return matrix


def uniform_shift(half_side: int, dimension: int, seed: int, which: int) -> NDArray[np.int64]:
    """A shift of a cube's centre, each coordinate uniform in [-half_side, half_side]; the ``which``-th of its seed."""
    rng = np.random.default_rng([1, seed, which])
    return rng.integers(-half_side, half_side, dimension, endpoint=True)
