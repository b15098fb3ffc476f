"""The rating network written out pair by pair, in plain loops over layers: slow and obvious. And weights to run it with."""

import math

import numpy as np
from numpy.typing import NDArray

from tacit.models.scorers import Weights, shapes

GENRES = 19


def random_weights(rng: np.random.Generator, genres: int = GENRES) -> Weights:
    """Weights large enough that scores spread over the scale, small enough that they do not saturate."""
    return {
        name: rng.normal(scale=1.4 / math.sqrt(shape[0]) if len(shape) == 2 else 0.1, size=shape).astype(np.float32)
        for name, shape in shapes(genres).items()
    }


def random_profiles(rng: np.random.Generator, users: int, genres: int = GENRES) -> NDArray[np.float64]:
    return np.concatenate([rng.dirichlet(np.full(genres, 0.5), users) for _ in range(2)], axis=1)


def rating(weights: Weights, profile: NDArray[np.float64], flags: NDArray[np.bool_]) -> float:
    """The network's rating of one item by one user, in float64."""
    genres = flags.size

    def layer(name: str, inputs: list[float]) -> list[float]:
        weight, bias = weights[f"{name}.weight"].astype(float), weights[f"{name}.bias"].astype(float)
        return [
            sum(x * w for x, w in zip(inputs, column, strict=True)) + b
            for column, b in zip(weight.T, bias, strict=True)
        ]

    def relu(values: list[float]) -> list[float]:
        return [max(0.0, value) for value in values]

    joined: list[float] = []
    for tower, inputs in (("liked", profile[:genres]), ("disliked", profile[genres:]), ("item", flags.astype(float))):
        values = inputs.tolist()
        for number in range(3):
            values = relu(layer(f"{tower}.{number}", values))
        joined += values
    for number in range(3):
        joined = relu(layer(f"trunk.{number}", joined))
    (last,) = layer("trunk.3", joined)
    return 5.0 / (1.0 + math.exp(-last))
