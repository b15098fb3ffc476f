"""Every user's gradient, cut to a norm, in whole grid steps, computed for those who are asked for (`RowsOnDemand`).

A row must depend on its own user and on nobody else, to the last bit, or the sum moves by more than one row when one user leaves.
So users are computed one after the other by one small program (``lax.map``) and not side by side: in a common matrix product the
last bits of a user's row were seen to change with who else was in it. The program has one size, padded with nobody, and runs on
the processor: both matter as much as the order does.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.curator.training.architectures import Architecture, Array
from tacit.curator.training.rows import RowsByUser
from tacit.mechanisms.grid import STEPS
from tacit.models.rating_network import TOP

_TOGETHER = 32  # users handed over at a time


@dataclass(frozen=True, eq=False, repr=False)
class Gradients:
    """The gradients of all users at given weights, in steps of clip / 2^20. At most ``rows_per_user`` rows of each count."""

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
        compute = _compiled(self.kind)
        for first in range(0, users.size, _TOGETHER):
            chosen = users[first : first + _TOGETHER]
            part = tuple(_padded(column) for column in (self.features[chosen], *self.chosen_rows(chosen)))
            with on_cpu():  # not around the yield, which would leave the setting to whoever asks
                rows = np.asarray(compute(self.weights, self.flags, self.clip, part))
            yield rows[: chosen.size]

    def chosen_rows(self, users: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.bool_]]:
        """Users x rows_per_user: items, values, and which of these places hold a row.

        Of a user with more rows, every so-many-th from a start that moves with the step: no randomness, and nothing that depends
        on other users. What is no item of the catalogue or no number counts as no row, because refusing it would tell.
        """
        starts, wanted = self.rows.starts, self.rows_per_user
        first = np.asarray(starts[users], dtype=np.int64)[:, None]
        count = np.asarray(starts[users + 1], dtype=np.int64)[:, None] - first
        place = np.arange(wanted)[None, :]
        spread = (self.step + place * count // wanted) % np.maximum(count, 1)
        place = np.where(count > wanted, spread, place)
        real = place < count
        index = np.where(real, first + place, 0)
        items, values = (np.asarray(column[index]) if len(column) else index for column in self.rows[1:])
        real &= (items >= 0) & (items < len(self.flags)) & np.isfinite(values)
        items, values = np.where(real, items, 0), np.clip(np.where(real, values, 0.0), 0.0, TOP)
        return items.astype(np.int32), values.astype(np.float32), real


def on_cpu() -> AbstractContextManager[Any]:
    """The processor, also where jax was built for a graphics card: there sums may be formed in another order each time."""
    import jax

    context: AbstractContextManager[Any] = jax.default_device(jax.devices("cpu")[0])
    return context


def _padded(column: NDArray[Any]) -> NDArray[Any]:
    """As many rows as one call takes; those of nobody are all 0."""
    whole = np.zeros((_TOGETHER, *column.shape[1:]), dtype=np.float32 if column.dtype.kind == "f" else column.dtype)
    whole[: len(column)] = column
    return whole


@lru_cache(maxsize=8)
def _compiled(kind: Architecture) -> Callable[..., Array]:
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
            share, _ = clip_pytree(slope, clip, rescale_to_unit_norm=True)  # what is not finite becomes 0
        return jnp.trunc(ravel_pytree(share)[0] * STEPS).astype(jnp.int32)

    def rows(weights: dict[str, Array], flags: Array, clip: Array, users: tuple[Array, ...]) -> Array:
        return jax.lax.map(lambda user: row(weights, flags, clip, user), users)

    compiled: Callable[..., Array] = jax.jit(rows)
    return compiled
