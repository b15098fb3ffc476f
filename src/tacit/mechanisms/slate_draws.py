"""How slates of sigma I + sum of c_u c_u^T are drawn: exactly in whole numbers, or by one of the samplers in floats."""

from functools import cache
from typing import Literal, get_args

import numpy as np
from scipy import sparse

from tacit.errors import InvalidParameter
from tacit.mechanisms.samplers.determinantal import Draw, SlateSampler
from tacit.mechanisms.samplers.float_coins import FLOATS, NoiseCoins
from tacit.mechanisms.samplers.whole_kernel import WholeKernel
from tacit.mechanisms.slate_rows import SQUARE, STEPS
from tacit.models.dpp.dense import DenseSampler
from tacit.models.dpp.split import SplitSampler

Sampler = Literal["exact", "hybrid", "split", "dense"]

MOST_PROPOSALS = 1 << 14  # that `hybrid` sees rejected in a row before it draws in floats
HYBRID_ITEMS = 10_000  # beyond, eigenvectors would take many minutes and gigabytes
_DENSE_ITEMS = 1 << 12
_DENSE_SIGMA = SQUARE >> 6


def require_sampler(sampler: str, items: int, sigma: int) -> None:
    """Refuses an unknown sampler, and the dense one where floats could lose the jitter beside the largest possible signal.

    That happens below 8 items 2^-52 of the largest eigenvalue, which is at most 2^30 bound: with up to 2^12 items a sigma of
    bound / 2^6 is safe for every table, with room for the roundings of the eigenvalues. What can be tested on the records
    themselves would be an answer about them.
    """
    if sampler not in get_args(Sampler):
        raise InvalidParameter(f"the sampler must be one of {', '.join(get_args(Sampler))}, not {sampler!r}.")
    if sampler == "dense" and (items > _DENSE_ITEMS or sigma < _DENSE_SIGMA):
        raise InvalidParameter(
            f"the dense sampler takes at most {_DENSE_ITEMS} items and an epsilon of at most 4.17: use 'exact' or 'split'."
        )
    if sampler == "hybrid" and items > HYBRID_ITEMS:
        raise InvalidParameter(f"the hybrid sampler takes at most {HYBRID_ITEMS} items, not {items}: use 'exact'.")


def assumption(sampler: Sampler) -> str | None:
    """What a guarantee has to assume of the sampler's arithmetic; nothing where it is exact."""
    if sampler == "exact":
        return None
    return (
        FLOATS if sampler != "hybrid" else f"{FLOATS}, where {MOST_PROPOSALS:,} exact proposals in a row are rejected"
    )


def slate_draw(table: sparse.csr_array, sigma: int, k: int, sampler: Sampler) -> Draw:
    """Draws slates of k columns of ``table``, users x items in steps; ``sigma`` is in squared steps."""
    if k == table.shape[1]:  # there is one slate
        return lambda count, noise: np.tile(np.arange(k), (count, 1))
    if sampler == "exact":
        return SlateSampler(WholeKernel(table, sigma), k).draw_many
    if sampler == "hybrid":
        floats = cache(lambda: slate_draw(table, sigma, k, "split"))  # its set-up waits until it is needed, if ever
        hybrid = SlateSampler(
            WholeKernel(table, sigma), k, most=MOST_PROPOSALS, instead=lambda count, noise: floats()(count, noise)
        )
        return hybrid.draw_many
    signal = sparse.csr_array(table.T.astype(np.float64) / STEPS)
    jitter = sigma / SQUARE
    if sampler == "split":
        split = SplitSampler(signal, jitter, k)
        return lambda count, noise: split.draw_many(count, NoiseCoins(noise))
    dense = DenseSampler((signal @ signal.T).toarray() + jitter * np.eye(table.shape[1]), k)
    return lambda count, noise: dense.draw_many(count, NoiseCoins(noise))
