"""Two stages: first which items are candidates, then a slate among these. Nothing here can fail because of a rating."""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.curator.slate_routes import Options, sparse_vector, two_stages
from tacit.guarantees import Release
from tacit.mechanisms import Noise
from tacit.mechanisms.drawn import released
from tacit.mechanisms.samplers.float_coins import NoiseCoins
from tacit.mechanisms.samplers.uniform import below_each
from tacit.models.dpp.split import SplitSampler

PUBLIC_JITTER = 0.01  # of the public k-DPP: candidates may have fewer directions than the slate has slots

Places = NDArray[np.int64]


def top_then_natural(
    likes: sparse.csr_array, options: Options, epsilon: float, request: NDArray[np.float64] | None, noise: Noise
) -> Release[Places]:
    """The most liked items by Gumbel noise, then a natural slate among them, from rows that are cut anew on these items."""
    first, second, both = two_stages(options, epsilon)
    candidates = np.sort(first.release(likes, noise).value)
    wishes = None if request is None else request[candidates]
    slate = second.prepare(likes[:, candidates], request=wishes).release(noise)
    return released(candidates[slate.value], both, noise)


def above_then_public(
    likes: sparse.csr_array, options: Options, epsilon: float, features: NDArray[np.float64], noise: Noise
) -> Release[Places]:
    """Items above a public threshold by the sparse vector, in an order that is drawn; then a k-DPP of public features among them.

    The second stage looks at released candidates and public features only: it costs nothing. Where fewer than k were found, the
    others are drawn uniformly from all the rest.
    """
    mechanism = sparse_vector(options, epsilon)
    order = shuffled(options.items, noise)  # or items with small numbers would use up the hits
    answers = np.array(mechanism.release(likes[:, order], noise).value, dtype=np.bool_)
    found = np.sort(order[: answers.size][answers])
    k = options.k
    if found.size <= k:
        rest = np.setdiff1d(np.arange(options.items), found, assume_unique=True)
        drawn = rest[shuffled(rest.size, noise)[: k - found.size]]
        return released(np.sort(np.concatenate([found, drawn])), mechanism.guarantee, noise)
    chosen = SplitSampler(features[found], PUBLIC_JITTER, k).draw(NoiseCoins(noise))
    return released(np.sort(found[chosen]), mechanism.guarantee, noise)


def shuffled(count: int, noise: Noise) -> Places:
    """A uniform order of so many places (Fisher and Yates), drawn from privacy noise."""
    order = np.arange(count, dtype=np.int64)
    swaps = below_each(np.arange(1, count + 1, dtype=np.int64), noise).tolist()
    for place in range(count - 1, 0, -1):
        other = swaps[place]
        order[place], order[other] = order[other], order[place]
    return order
