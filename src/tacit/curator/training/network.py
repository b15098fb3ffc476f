"""Training without privacy: Adam on the squared error of rating / 5, in bounded memory.

The tables of users' features and items' flags are the only ones that the program holds besides the rows; of the rows themselves
one chunk at a time is gathered (codes and ratings, never rows x features). Each epoch adds one order of the rows: 4 bytes a row.
"""

import math
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.checks import positive, whole
from tacit.curator.training.architectures import Architecture, Array, Network, architecture, built, initial, require
from tacit.curator.training.rows import Rows, check_rows, check_tables
from tacit.models.rating_network import TOP

Progress: TypeAlias = Callable[
    [int, int, float], None
]  # rows done, rows in all, the error in stars over the last chunk

_FALLS_FROM = 5  # the epoch, counted from 0, after which the learning rate falls by e^-0.1 each


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
    """A network that predicts ``rows`` from users' ``features`` and items' ``flags``. Not private; same ``rng``, same network.

    ``kind`` is "network" or "two-tower"; ``chunk`` is how many batches are handed over at a time and changes nothing else.
    """
    chosen = architecture(kind)
    epochs, batch = whole("epochs", epochs, least=0), whole("batch", batch, least=1)
    chunk, learning_rate = whole("chunk", chunk, least=1), positive("learning_rate", learning_rate)
    check_tables(features, flags)
    check_rows(rows, len(features), len(flags))
    require("jax", "optax")
    import jax.numpy as jnp
    import optax

    weights = {name: jnp.asarray(weight) for name, weight in initial(chosen, flags.shape[1], rng).items()}
    state = (weights, optax.scale_by_adam().init(weights))
    tables = (jnp.asarray(features, dtype=jnp.float32), jnp.asarray(flags, dtype=jnp.float32))
    update = _compiled(chosen)
    done, total = 0, epochs * len(rows.values)
    for epoch in range(epochs):
        rate = learning_rate * math.exp(0.1 * min(0, _FALLS_FROM - epoch))
        for part, size in _chunks(rows, batch, chunk, rng):
            state, errors = update(state, tables, rate, part)
            done += size
            if progress is not None:
                progress(done, total, TOP * math.sqrt(float(errors.sum()) / size))
    return built(chosen, state[0], flags)


def _chunks(
    rows: Rows, batch: int, chunk: int, rng: np.random.Generator
) -> Iterator[tuple[tuple[NDArray[Any], ...], int]]:
    """One epoch: (users, items, values, is a row), each chunk x batch, and how many rows these are. The end is padded."""
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
def _compiled(kind: Architecture) -> Callable[..., tuple[Any, Array]]:
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

        # a batch of padding must not even carry on by Adam's momentum
        state, total = jax.lax.cond(real.any(), learn, lambda state: (state, jnp.float32(0.0)), state)
        return state, total

    def chunk(state: Any, tables: tuple[Array, Array], rate: Array, part: tuple[Array, ...]) -> tuple[Any, Array]:
        state, errors = jax.lax.scan(partial(step, tables, rate), state, part)
        return state, errors

    compiled: Callable[..., tuple[Any, Array]] = jax.jit(chunk)
    return compiled
