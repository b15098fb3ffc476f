"""Private training: one example is one user. Her features and all her rows move together; the catalogue is public.

Each step takes a random sample of the users and the gradient of each one's mean error over some of her rows, cut to a norm; these
are summed and made noisy by `SampledGaussian`. All that follows (Adam, the falling learning rate) sees releases alone. There is no
early stopping and nothing is tuned on the data. What holds and why: docs/proofs/sampled-gaussian.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.checks import positive, whole
from tacit.curator.training.architectures import Network, architecture, built, initial, require
from tacit.curator.training.gradients import Gradients, on_cpu
from tacit.curator.training.rows import RowsByUser, check_rows_by_user, check_tables
from tacit.guarantees import Guarantee
from tacit.guarantees.sampled_gaussian import checked_rate
from tacit.mechanisms import SYSTEM_NOISE, Noise, SampledGaussian

Progress: TypeAlias = Callable[[int, int], None]  # steps done, steps in all; never an error, which nobody has paid for

MOST_ROWS = 4096  # of one user in one step
PUBLIC = "the catalogue and all settings of the training are public"
_FIRST_GUESS = 0.7  # of 5: films are known to be rated around 3.5 stars, so no budget is spent on learning that


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
) -> tuple[Network, Guarantee]:
    """A network and what it promises: (epsilon, delta) for one user's rows, added or removed, all steps together.

    ``rng`` draws the first weights, which are public, and nothing else. Settings must not be chosen by looking at these rows;
    the defaults were chosen on public MovieLens data. A ``rate`` of w / (number of users) makes steps of about w users, and
    makes that number public. "two-tower" has a sixth of the weights of "network": as good here, and far faster.
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
        first = initial(chosen, flags.shape[1], rng)
        first[chosen.last_bias] = np.full(1, math.log(_FIRST_GUESS / (1.0 - _FIRST_GUESS)), dtype=np.float32)
        weights, shaped = ravel_pytree(first)
        adam = optax.adam(optax.cosine_decay_schedule(learning_rate, mechanism.steps))
        moments = adam.init(weights)
        table = jnp.asarray(flags, dtype=jnp.float32)
        gradients = Gradients(chosen, features, table, rows, clip=clip, rows_per_user=rows_per_user)
        guarantee = mechanism.guarantee
        for step in range(mechanism.steps):
            release = mechanism.release(gradients.at(shaped(weights), step), noise)
            guarantee = release.guarantee  # of all steps together; of none where the noise promises nothing
            # Adam does not care for the scale of what it is given: noise of deviation 1 needs no number of users
            slope = (release.value.to_floats() / (clip * mechanism.noise_multiplier)).astype(np.float32)
            moves, moments = adam.update(slope, moments)
            weights = optax.apply_updates(weights, moves)
            if progress is not None:
                progress(step + 1, mechanism.steps)
    return built(chosen, shaped(weights), flags), guarantee.assuming(PUBLIC)
