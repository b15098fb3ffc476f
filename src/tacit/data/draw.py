"""Randomness of experiments comes from a numpy Generator that the caller passes."""

import numpy as np

from tacit.errors import InvalidParameter


def generator(rng: object) -> np.random.Generator:
    """``rng``, if it is a Generator; a seed in its place is refused."""
    if not isinstance(rng, np.random.Generator):
        raise InvalidParameter(
            f"rng must be a numpy Generator, such as np.random.default_rng(1), not of type {type(rng).__name__}."
        )
    return rng
