"""Training networks from ratings without privacy: Adam on the squared error of rating / 5, in bounded memory.

`train_network` trains on one row per rating; `tacit.curator.private_training` trains with one user as the unit of privacy. Both
need the extra ``train`` (jax, optax, jax-privacy), which is imported when training starts. numpy serves the result.

Besides the rows, the program holds only the tables of users' features and items' flags. It gathers one chunk of the rows at a time
(codes and ratings, never rows x features). Each epoch adds one order of the rows: 4 bytes a row.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.checks import positive, whole
from tacit.errors import InvalidData, InvalidInput, InvalidModel, InvalidParameter, MissingExtra, UnknownName
from tacit.models import scorers
from tacit.models.scorers import BEST_RATING as TOP
from tacit.models.scorers import RatingNetwork, TwoTower, Weights

__all__ = ["Rows", "RowsByUser", "train_network"]

Network: TypeAlias = RatingNetwork | TwoTower
Array: TypeAlias = Any  # of jax, which is not imported here
Progress: TypeAlias = Callable[[int, int, float], None]  # rows done, rows in all, error in stars over the last chunk

LARGEST = 1e6  # of a weight: products of three layers of such then stay far below the largest float
_CHECKED = 1 << 22  # rows checked at a time
_FALLS_FROM = 5  # the epoch, counted from 0, after which the learning rate falls by e^-0.1 each


class Rows(NamedTuple):
    """Row i: the user with code ``users[i]`` gave the item with code ``items[i]`` the rating ``values[i]``.

    The columns may be in memory or mapped from a file.
    """

    users: NDArray[np.integer[Any]]
    items: NDArray[np.integer[Any]]
    values: NDArray[np.floating[Any]]


class RowsByUser(NamedTuple):
    """The same rows gathered by user: user u has those from starts[u] to starts[u + 1] of ``items`` and ``values``."""

    starts: NDArray[np.integer[Any]]
    items: NDArray[np.integer[Any]]
    values: NDArray[np.floating[Any]]

    @property
    def n_users(self) -> int:
        return len(self.starts) - 1


@dataclass(frozen=True, slots=True)
class Architecture:
    """A network as jax sees it: the same weights and the same arithmetic as the one that numpy serves (`tacit.models`).

    ``predicted`` gives ratings as shares of 5. It takes rows of features beside rows of flags, or the features of one user beside
    the flags of several items.
    """

    shapes: Callable[[int], dict[str, tuple[int, ...]]]
    predicted: Callable[[dict[str, Array], Array, Array], Array]
    build: Callable[[Weights, NDArray[np.bool_]], Network]
    last_bias: str  # the bias before the sigmoid


def train_network(
    features: NDArray[Any],
    flags: NDArray[Any],
    rows: Rows,
    *,
    kind: str = "network",
    epochs: int = 10,
    batch: int = 500,
    learning_rate: float = 1e-3,
    chunk: int = 200,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> Network:
    """A network that predicts ``rows`` from users' ``features`` and items' ``flags``. Not private. Same ``rng``, same network.

    ``kind`` is "network" or "two-tower". ``chunk`` is how many batches are handed to jax at a time; it does not change the result.
    """
    chosen = architecture(kind)
    epochs, batch = whole("epochs", epochs, least=0), whole("batch", batch, least=1)
    chunk, learning_rate = whole("chunk", chunk, least=1), positive("learning_rate", learning_rate)
    check_tables(features, flags)
    check_rows(rows, len(features), len(flags))
    require("jax", "optax")
    import jax.numpy as jnp
    import optax

    weights = {name: jnp.asarray(weight) for name, weight in initial_weights(chosen, flags.shape[1], rng).items()}
    state = (weights, optax.scale_by_adam().init(weights))
    tables = (jnp.asarray(features, dtype=jnp.float32), jnp.asarray(flags, dtype=jnp.float32))
    update = _compile(chosen)
    done, total = 0, epochs * len(rows.values)
    for epoch in range(epochs):
        rate = learning_rate * math.exp(0.1 * min(0, _FALLS_FROM - epoch))
        for part, size in _chunks(rows, batch, chunk, rng):
            state, errors = update(state, tables, rate, part)
            done += size
            if progress is not None:
                progress(done, total, TOP * math.sqrt(float(errors.sum()) / size))
    return build_network(chosen, state[0], flags)


def _chunks(
    rows: Rows, batch: int, chunk: int, rng: np.random.Generator
) -> Iterator[tuple[tuple[NDArray[Any], ...], int]]:
    """One epoch: (users, items, values, is a row), each chunk x batch, and the number of rows. The last chunk is padded."""
    count = len(rows.values)
    order = np.arange(count, dtype=np.int32 if count <= np.iinfo(np.int32).max else np.int64)
    rng.shuffle(order)
    batches = -(-count // batch)
    size = batch * min(chunk, batches)
    for first in range(0, count, size):
        chosen = order[first : first + size]
        padded = np.zeros(size, dtype=order.dtype)
        padded[: chosen.size] = chosen
        gathered = (
            rows.users[padded].astype(np.int32),
            rows.items[padded].astype(np.int32),
            rows.values[padded].astype(np.float32),
            np.arange(size) < chosen.size,
        )
        yield tuple(column.reshape(-1, batch) for column in gathered), chosen.size


@lru_cache(maxsize=8)
def _compile(kind: Architecture) -> Callable[..., tuple[Any, Array]]:
    """(state, tables, learning rate, chunk) -> (state, summed squared error of each batch)."""
    import jax
    import jax.numpy as jnp
    import optax

    adam = optax.scale_by_adam()

    def squared(weights: dict[str, Array], features: Array, flags: Array, values: Array, real: Array) -> Array:
        error = kind.predicted(weights, features, flags) - values / TOP
        total = jnp.sum(jnp.where(real, error * error, 0.0))
        return total / jnp.maximum(real.sum(), 1), total

    def step(tables: tuple[Array, Array], rate: Array, state: Any, part: tuple[Array, ...]) -> tuple[Any, Array]:
        users, items, values, real = part

        def learn(state: Any) -> tuple[Any, Array]:
            weights, moments = state
            slope, total = jax.grad(squared, has_aux=True)(weights, tables[0][users], tables[1][items], values, real)
            moves, moments = adam.update(slope, moments)
            weights = jax.tree.map(lambda weight, move: weight - rate * move, weights, moves)
            return (weights, moments), total

        # Skip batches of padding: otherwise Adam's momentum would still change the weights.
        state, total = jax.lax.cond(real.any(), learn, lambda state: (state, jnp.float32(0.0)), state)
        return state, total

    def chunk(state: Any, tables: tuple[Array, Array], rate: Array, part: tuple[Array, ...]) -> tuple[Any, Array]:
        state, errors = jax.lax.scan(partial(step, tables, rate), state, part)
        return state, errors

    compiled: Callable[..., tuple[Any, Array]] = jax.jit(chunk)
    return compiled


def architecture(kind: str) -> Architecture:
    """The network called ``kind``."""
    if kind not in _KINDS:
        raise UnknownName(f"unknown network {kind!r}; known networks: {', '.join(_KINDS)}.")
    return _KINDS[kind]


def initial_weights(kind: Architecture, genres: int, rng: np.random.Generator) -> Weights:
    """Glorot's uniform law for tables, 0 for biases. numpy draws them: the same ``rng`` gives the same weights with any jax."""

    def draw(shape: tuple[int, ...]) -> NDArray[np.float32]:
        limit = math.sqrt(6.0 / sum(shape)) if len(shape) == 2 else 0.0
        return rng.uniform(-limit, limit, shape).astype(np.float32)

    return {name: draw(shape) for name, shape in sorted(kind.shapes(genres).items())}


def build_network(kind: Architecture, weights: dict[str, Array], flags: NDArray[Any]) -> Network:
    """The trained network, for numpy.

    Raises InvalidModel if weights are so large that scores are not finite numbers here, or may not be on another machine: whether
    products overflow depends on the order of their sum.
    """
    trained = {name: np.array(weight, dtype=np.float32) for name, weight in weights.items()}
    if all((np.abs(weight) <= LARGEST).all() for weight in trained.values()):  # False for NaN
        network = kind.build(trained, np.array(flags, dtype=np.bool_))
        corners = np.eye(network.dimension, dtype=np.float32)  # all likes, or all dislikes, in one genre
        with np.errstate(all="ignore"):
            scores = network.score(corners, network.classes.first)
        if np.isfinite(scores).all():
            return network
    raise InvalidModel("training diverged: lower the learning rate.")


def require(*modules: str) -> None:
    """Raises MissingExtra, with what to install, if one of these modules is missing."""
    for module in modules:
        try:
            import_module(module)
        except ImportError as missing:
            raise MissingExtra('training needs jax, optax and jax-privacy: pip install "tacit[train]".') from missing


def check_tables(features: NDArray[Any], flags: NDArray[Any]) -> None:
    """Raises unless the tables are users x (2 genres) and items x genres. Looks at shapes and types only."""
    if not _of_kind(flags, "biuf") or flags.ndim != 2 or not flags.size:
        raise InvalidParameter("flags must be a table: one row for each item, one column for each genre.")
    if not _of_kind(features, "iuf") or features.ndim != 2 or features.shape[1] != 2 * flags.shape[1]:
        raise InvalidParameter(
            f"features must be a table: one row for each user, {2 * flags.shape[1]} columns for {flags.shape[1]} genres."
        )


def check_rows(rows: Rows, n_users: int, n_items: int) -> None:
    """Raises unless every code is in its table and every rating lies from 0 to 5. Reads in parts, so that files stay on disk."""
    if not len(rows.users) == len(rows.items) == len(rows.values) or not len(rows.values):
        raise InvalidData("users, items and values must be columns of one length, with at least one rating.")
    for first in range(0, len(rows.values), _CHECKED):
        users, items, values = (np.asarray(column[first : first + _CHECKED]) for column in rows)
        for name, codes, size in (("user", users, n_users), ("item", items, n_items)):
            if codes.dtype.kind not in "iu" or not 0 <= int(codes.min()) <= int(codes.max()) < size:
                raise InvalidData(f"every {name} code must be a whole number below {size:,}.")
        if not 0.0 <= float(values.min()) <= float(values.max()) <= TOP:  # written so that NaN fails too
            raise InvalidData(f"every rating must lie from 0 to {TOP:g}: rescale them first.")


def check_rows_by_user(rows: RowsByUser, n_users: int) -> None:
    """Raises unless the columns have one length and fit the users of the features.

    It does not look at the content of rows: an error about it would reveal something about a user (see `private_training`).
    """
    kinds = zip(rows, ("iu", "iu", "iuf"), strict=True)
    # types are public, contents are not
    if not all(_of_kind(column, kind) and column.ndim == 1 for column, kind in kinds):
        raise InvalidInput(
            "starts, items and values must be numpy arrays of one axis: whole numbers, whole numbers (item codes), and ratings."
        )
    starts = rows.starts
    if len(rows.items) != len(rows.values) or starts.shape != (n_users + 1,):
        raise InvalidParameter(
            "rows need columns of one length, and starts for each user of the features and one more."
        )
    if starts[0] != 0 or starts[-1] != len(rows.items) or np.any(starts[1:] < starts[:-1]):
        raise InvalidParameter("starts must rise from 0 to the number of rows.")


def _of_kind(column: object, kinds: str) -> bool:
    return isinstance(column, np.ndarray) and column.dtype.kind in kinds


def _tower(weights: dict[str, Array], name: str, inputs: Array, layers: int, *, last_relu: bool) -> Array:
    import jax

    for layer in range(layers):
        inputs = inputs @ weights[f"{name}.{layer}.weight"] + weights[f"{name}.{layer}.bias"]
        if last_relu or layer < layers - 1:
            inputs = jax.nn.relu(inputs)
    return inputs


def _rating_network(weights: dict[str, Array], features: Array, flags: Array) -> Array:
    import jax

    genres, width = flags.shape[-1], scorers.TOWER_WIDTHS[-1]
    inputs = (features[..., :genres], features[..., genres:], flags)
    joined = weights["trunk.0.bias"]
    for index, (tower, values) in enumerate(zip(scorers.TOWERS, inputs, strict=True)):
        entry = weights["trunk.0.weight"][index * width : (index + 1) * width]
        layers = 1 + len(scorers.TOWER_WIDTHS)
        joined = joined + _tower(weights, tower, values, layers, last_relu=True) @ entry
    for layer in range(1, len(scorers.TRUNK_WIDTHS)):
        joined = jax.nn.relu(joined) @ weights[f"trunk.{layer}.weight"] + weights[f"trunk.{layer}.bias"]
    return jax.nn.sigmoid(joined[..., 0])


def _two_tower(weights: dict[str, Array], features: Array, flags: Array) -> Array:
    import jax

    user, item = (
        _tower(weights, name, inputs, len(scorers.WIDTHS), last_relu=False)
        for name, inputs in zip(scorers.TWO_TOWERS, (features, flags), strict=True)
    )
    return jax.nn.sigmoid((user * item).sum(axis=-1) + weights["bias"][0])


_KINDS = {
    "network": Architecture(
        scorers.shapes, _rating_network, RatingNetwork, f"trunk.{len(scorers.TRUNK_WIDTHS) - 1}.bias"
    ),
    "two-tower": Architecture(scorers.two_tower_shapes, _two_tower, TwoTower, "bias"),
}
