"""Private training of networks: one example is one user, with their features and all their rows. The catalogue is public.

Each step takes a random sample of the users and the gradient of each user's mean error over some of their rows, cut to a norm.
`SampledGaussian` sums these and adds noise. Everything after that (Adam, the falling learning rate) sees only releases. There is no
early stopping, and nothing is tuned on the data. Proof: docs/proofs/sampled-gaussian.md.
"""

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.checks import positive, whole
from tacit.curator.training import (
    Architecture,
    Array,
    Network,
    RowsByUser,
    architecture,
    build_network,
    check_rows_by_user,
    check_tables,
    initial_weights,
    require,
)
from tacit.guarantees import Release
from tacit.mechanisms import SYSTEM_NOISE, Noise, SampledGaussian
from tacit.mechanisms.inputs import STEPS
from tacit.mechanisms.sampled_gaussian import checked_rate
from tacit.models.scorers import BEST_RATING as TOP

__all__ = ["train_privately"]

Progress: TypeAlias = Callable[[int, int], None]  # steps done, steps in all; never an error, which nobody has paid for

MOST_ROWS = 4096  # of one user in one step
PUBLIC = "the catalogue and all settings of the training are public"
_FIRST_GUESS = 0.7  # of 5: films are known to be rated around 3.5 stars, so no budget is spent on learning that
_TOGETHER = 32  # users handed over at a time


def train_privately(
    features: NDArray[Any],
    flags: NDArray[Any],
    rows: RowsByUser,
    *,
    epsilon: float,
    delta: float,
    rate: Fraction | float = Fraction(1, 16),
    steps: int = 200,
    clip: float = 0.03,
    rows_per_user: int = 32,
    learning_rate: float = 1e-2,
    kind: str = "network",
    noise: Noise = SYSTEM_NOISE,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> Release[Network]:
    """A network under (epsilon, delta) for one user's rows, added or removed, over all steps together.

    ``rng`` draws the first weights, which are public, and nothing else. Do not choose settings by looking at these rows; the
    defaults were chosen on public MovieLens data. A ``rate`` of w / (number of users) makes steps of about w users, and makes that
    number public. "two-tower" has a sixth of the weights of "network": it is as good here, and far faster.
    """
    chosen = architecture(kind)
    rows_per_user, clip = whole("rows_per_user", rows_per_user, least=1, most=MOST_ROWS), positive("clip", clip)
    learning_rate = positive("learning_rate", learning_rate)
    check_tables(features, flags)
    check_rows_by_user(rows, len(features))
    dimension = sum(math.prod(shape) for shape in chosen.shapes(flags.shape[1]).values())
    mechanism = SampledGaussian(dimension, epsilon, delta, checked_rate(rate), steps, bound=clip)
    require("jax", "optax", "jax_privacy")
    import jax.numpy as jnp
    import optax
    from jax.flatten_util import ravel_pytree

    with on_cpu():
        first = initial_weights(chosen, flags.shape[1], rng)
        first[chosen.last_bias] = np.full(1, math.log(_FIRST_GUESS / (1.0 - _FIRST_GUESS)), dtype=np.float32)
        weights, shaped = ravel_pytree(first)
        adam = optax.adam(optax.cosine_decay_schedule(learning_rate, mechanism.steps))
        moments = adam.init(weights)
        table = jnp.asarray(flags, dtype=jnp.float32)
        gradients = Gradients(chosen, features, table, rows, clip=clip, rows_per_user=rows_per_user)
        for step in range(mechanism.steps):
            release = mechanism.release(gradients.at(shaped(weights), step), noise)
            # Adam ignores the scale of its input, so noise of deviation 1 needs no number of users
            slope = (release.value.to_floats() / (clip * mechanism.noise_multiplier)).astype(np.float32)
            moves, moments = adam.update(slope, moments)
            weights = optax.apply_updates(weights, moves)
            if progress is not None:
                progress(step + 1, mechanism.steps)
    # The guarantee of each step's release covers all steps together.
    return release.map(lambda _: build_network(chosen, shaped(weights), flags)).assuming(PUBLIC)


@dataclass(frozen=True, eq=False, repr=False)
class Gradients:
    """The gradients of all users at given weights, each cut to a norm, in whole steps of clip / 2^20 (`RowsOnDemand`).

    At most ``rows_per_user`` rows of each user count. A gradient must depend on its own user alone, to the last bit: otherwise the
    sum moves by more than one row when one user leaves. So one small program computes users one after the other (``lax.map``), not
    side by side: in a common matrix product, the last bits of a user's row changed with the other users in it. The program has one
    fixed size, padded with empty users, and runs on the processor; both matter as much as the order.
    """

    kind: Architecture
    features: NDArray[Any]
    flags: Array  # on the device, as float32
    rows: RowsByUser
    clip: float
    rows_per_user: int
    weights: dict[str, Array] = field(default_factory=dict)
    step: int = 0

    def at(self, weights: dict[str, Array], step: int) -> "Gradients":
        return replace(self, weights=weights, step=step)

    @property
    def n_users(self) -> int:
        return self.rows.n_users

    def of(self, users: NDArray[np.int64]) -> Iterator[NDArray[np.int32]]:
        compute = _compile(self.kind)
        for first in range(0, users.size, _TOGETHER):
            chosen = users[first : first + _TOGETHER]
            part = tuple(_pad(column) for column in (self.features[chosen], *self.chosen_rows(chosen)))
            with on_cpu():  # not around the yield, which would leave the setting on for the caller
                rows = np.asarray(compute(self.weights, self.flags, self.clip, part))
            yield rows[: chosen.size]

    def chosen_rows(self, users: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.bool_]]:
        """Users x rows_per_user: items, values, and which of these cells hold a row.

        Of a user with more rows, it takes every n-th from a start that moves with the step: no randomness, and no dependence on
        other users. A row with an unknown item or a value that is not a number is left out: an error would reveal it.
        """
        starts, wanted = self.rows.starts, self.rows_per_user
        first = np.asarray(starts[users], dtype=np.int64)[:, None]
        count = np.asarray(starts[users + 1], dtype=np.int64)[:, None] - first
        position = np.arange(wanted)[None, :]
        spread = (self.step + position * count // wanted) % np.maximum(count, 1)
        position = np.where(count > wanted, spread, position)
        real = position < count
        index = np.where(real, first + position, 0)
        items, values = (np.asarray(column[index]) if len(column) else index for column in self.rows[1:])
        real &= (items >= 0) & (items < len(self.flags)) & np.isfinite(values)
        items, values = np.where(real, items, 0), np.clip(np.where(real, values, 0.0), 0.0, TOP)
        return items.astype(np.int32), values.astype(np.float32), real


def _pad(column: NDArray[Any]) -> NDArray[Any]:
    """As many rows as one call takes; rows of nobody are 0."""
    whole = np.zeros((_TOGETHER, *column.shape[1:]), dtype=np.float32 if column.dtype.kind == "f" else column.dtype)
    whole[: len(column)] = column
    return whole


@lru_cache(maxsize=8)
def _compile(kind: Architecture) -> Callable[..., Array]:
    """(weights, flags, clip, users' features and rows) -> users x weights, whole numbers of clip / 2^20, rounded towards 0."""
    import jax
    import jax.numpy as jnp
    from jax.flatten_util import ravel_pytree
    from jax_privacy.clipping import clip_pytree

    def error(weights: dict[str, Array], flags: Array, user: tuple[Array, ...]) -> Array:
        features, items, values, real = user
        away = kind.predicted(weights, features, flags[items]) - values / TOP
        return jnp.sum(jnp.where(real, away * away, 0.0)) / jnp.maximum(real.sum(), 1)

    def row(weights: dict[str, Array], flags: Array, clip: Array, user: tuple[Array, ...]) -> Array:
        slope = jax.grad(error)(weights, flags, user)
        with warnings.catch_warnings():  # jax-privacy 2.0 calls a norm by a name that optax is about to drop
            warnings.filterwarnings("ignore", "optax.global_norm", DeprecationWarning)
            share, _ = clip_pytree(slope, clip, rescale_to_unit_norm=True)  # a gradient that is not finite becomes 0
        return jnp.trunc(ravel_pytree(share)[0] * STEPS).astype(jnp.int32)

    def rows(weights: dict[str, Array], flags: Array, clip: Array, users: tuple[Array, ...]) -> Array:
        return jax.lax.map(lambda user: row(weights, flags, clip, user), users)

    compiled: Callable[..., Array] = jax.jit(rows)
    return compiled


def on_cpu() -> AbstractContextManager[Any]:
    """Runs jax on the processor, even if it was built for a graphics card, where the order of sums may change between runs."""
    import jax

    context: AbstractContextManager[Any] = jax.default_device(jax.devices("cpu")[0])
    return context
