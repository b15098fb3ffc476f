"""How slates of sigma I + sum of c_u c_u^T are drawn: exactly in whole numbers, or by one of the samplers in floats."""

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.errors import InvalidParameter
from tacit.mechanisms.noise import Noise
from tacit.mechanisms.samplers.determinantal import SlateSampler
from tacit.mechanisms.samplers.float_coins import NoiseCoins
from tacit.mechanisms.samplers.whole_kernel import WholeKernel
from tacit.mechanisms.slate_rows import SQUARE, STEPS
from tacit.models.dpp.dense import DenseSampler
from tacit.models.dpp.split import SplitSampler

Sampler = Literal["exact", "split", "dense"]
Draw = Callable[[int, Noise], NDArray[np.int64]]

_DENSE_ITEMS = 1 << 12
_DENSE_SIGMA = SQUARE >> 7


def require_sampler(sampler: str, items: int, sigma: int) -> None:
    """Refuses an unknown sampler, and the dense one where floats could lose the jitter beside the largest possible signal.

    That happens below 8 items 2^-52 of the largest eigenvalue, which is at most 2^30 bound: with up to 2^12 items a sigma of
    bound / 2^7 is safe for every table. What can be tested on the records themselves would be an answer about them.
    """
    if sampler not in get_args(Sampler):
        raise InvalidParameter(f"the sampler must be one of {', '.join(get_args(Sampler))}, not {sampler!r}.")
    if sampler == "dense" and (items > _DENSE_ITEMS or sigma < _DENSE_SIGMA):
        raise InvalidParameter(
            f"the dense sampler takes at most {_DENSE_ITEMS} items and an epsilon of at most 4.8: use 'exact' or 'split'."
        )


def slate_draw(table: sparse.csr_array, sigma: int, k: int, sampler: Sampler) -> Draw:
    """Draws slates of k columns of ``table``, users x items in steps; ``sigma`` is in squared steps."""
    if k == table.shape[1]:  # there is one slate
        return lambda count, noise: np.tile(np.arange(k), (count, 1))
    if sampler == "exact":
        return SlateSampler(WholeKernel(table, sigma), k).draw_many
    signal = sparse.csr_array(table.T.astype(np.float64) / STEPS)
    jitter = sigma / SQUARE
    if sampler == "split":
        split = SplitSampler(signal, jitter, k)
        return lambda count, noise: split.draw_many(count, NoiseCoins(noise))
    dense = DenseSampler((signal @ signal.T).toarray() + jitter * np.eye(table.shape[1]), k)
    return lambda count, noise: dense.draw_many(count, NoiseCoins(noise))
