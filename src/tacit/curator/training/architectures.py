"""The networks as jax sees them: the same weights and the same arithmetic as those that numpy serves (tacit.models).

``predicted`` gives ratings as shares of 5. It works for rows of features beside rows of flags, and for the features of one user
beside the flags of several items.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidModel, MissingExtra, UnknownName
from tacit.models import rating_network, two_tower
from tacit.models.rating_network import RatingNetwork, Weights
from tacit.models.two_tower import TwoTower

Network: TypeAlias = RatingNetwork | TwoTower
Array: TypeAlias = Any  # of jax, which is not imported here
LARGEST = 1e6  # of a weight: products of three layers of such then stay far below the largest float


@dataclass(frozen=True, slots=True)
class Architecture:
    shapes: Callable[[int], dict[str, tuple[int, ...]]]
    predicted: Callable[[dict[str, Array], Array, Array], Array]
    build: Callable[[Weights, NDArray[np.bool_]], Network]
    last_bias: str  # the bias before the sigmoid


def architecture(kind: str) -> Architecture:
    """The network called ``kind``."""
    if kind not in _KINDS:
        raise UnknownName(f"no network is called {kind!r}; known are {', '.join(_KINDS)}.")
    return _KINDS[kind]


def initial(kind: Architecture, genres: int, rng: np.random.Generator) -> Weights:
    """Glorot's uniform law for tables, 0 for biases. Drawn by numpy: the same for the same ``rng``, whatever jax is installed."""

    def drawn(shape: tuple[int, ...]) -> NDArray[np.float32]:
        limit = math.sqrt(6.0 / sum(shape)) if len(shape) == 2 else 0.0
        return rng.uniform(-limit, limit, shape).astype(np.float32)

    return {name: drawn(shape) for name, shape in sorted(kind.shapes(genres).items())}


def built(kind: Architecture, weights: dict[str, Array], flags: NDArray[Any]) -> Network:
    """The trained network, for numpy; refused where weights have grown so large that scores are no numbers, or might be none on
    another machine: where products overflow it is up to the order of their sum."""
    trained = {name: np.array(weight, dtype=np.float32) for name, weight in weights.items()}
    if all((np.abs(weight) <= LARGEST).all() for weight in trained.values()):  # False of what is no number
        network = kind.build(trained, np.array(flags, dtype=np.bool_))
        corners = np.eye(network.dimension, dtype=np.float32)  # all likes, or all dislikes, in one genre
        with np.errstate(all="ignore"):
            scores = network.score(corners, network.classes.first)
        if np.isfinite(scores).all():
            return network
    raise InvalidModel("training diverged: lower the learning rate.")


def require(*modules: str) -> None:
    """Fails at once, and says what to install, where the extra is missing."""
    for module in modules:
        try:
            import_module(module)
        except ImportError as missing:
            raise MissingExtra('training needs jax, optax and jax-privacy: pip install "tacit[train]".') from missing


def _tower(weights: dict[str, Array], name: str, inputs: Array, layers: int, *, last_relu: bool) -> Array:
    import jax

    for layer in range(layers):
        inputs = inputs @ weights[f"{name}.{layer}.weight"] + weights[f"{name}.{layer}.bias"]
        if last_relu or layer < layers - 1:
            inputs = jax.nn.relu(inputs)
    return inputs


def _rating_network(weights: dict[str, Array], features: Array, flags: Array) -> Array:
    import jax

    genres, width = flags.shape[-1], rating_network.TOWER_WIDTHS[-1]
    inputs = (features[..., :genres], features[..., genres:], flags)
    joined = weights["trunk.0.bias"]
    for place, (tower, values) in enumerate(zip(rating_network.TOWERS, inputs, strict=True)):
        entry = weights["trunk.0.weight"][place * width : (place + 1) * width]
        layers = 1 + len(rating_network.TOWER_WIDTHS)
        joined = joined + _tower(weights, tower, values, layers, last_relu=True) @ entry
    for layer in range(1, len(rating_network.TRUNK_WIDTHS)):
        joined = jax.nn.relu(joined) @ weights[f"trunk.{layer}.weight"] + weights[f"trunk.{layer}.bias"]
    return jax.nn.sigmoid(joined[..., 0])


def _two_tower(weights: dict[str, Array], features: Array, flags: Array) -> Array:
    import jax

    user, item = (
        _tower(weights, name, inputs, len(two_tower.WIDTHS), last_relu=False)
        for name, inputs in zip(two_tower.TOWERS, (features, flags), strict=True)
    )
    return jax.nn.sigmoid((user * item).sum(axis=-1) + weights["bias"][0])


_KINDS = {
    "network": Architecture(
        rating_network.shapes, _rating_network, RatingNetwork, f"trunk.{len(rating_network.TRUNK_WIDTHS) - 1}.bias"
    ),
    "two-tower": Architecture(two_tower.shapes, _two_tower, TwoTower, "bias"),
}
