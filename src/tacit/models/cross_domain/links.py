"""Which directions of taste link the domains: second moments between them, against what noise alone would show.

Where nobody rated in both domains the released block between them, source items x target items, is noise and nothing else:
independent normal numbers of deviation sigma. Its largest singular value is then above sigma (sqrt n + sqrt m + t), for an n x m
block, with a chance of at most exp(-t^2 / 2); and the same holds of what it is along any directions, as many as n and m in place of
items, that were found without it. Inside the domains the directions are found in the other two blocks, whose noise is independent.
So two numbers are compared with noise, both without looking at any rating: the whole block, and the block along what was found.
"""

import math

import numpy as np
from scipy import linalg

from tacit.models.cross_domain.transfer import Floats, strongest

MARGIN = (
    1.5  # beyond sqrt n + sqrt m: of blocks of mere noise, from 1 x 1 to 100 x 100, fewer than 1 in 1,000 have so much
)


def within(block: Floats, threshold: float, most: int) -> Floats:
    """Directions inside one domain: those above the threshold, and the strongest even if it is not."""
    values, vectors = strongest(block, -math.inf, most)
    return vectors[:, : max(1, int((values > threshold).sum()))]


def links(across: Floats, taken: Floats, given: Floats, sigma: float) -> int:
    """How many directions link the domains, of second moments between them and of directions ``taken`` from the source and
    ``given`` in the target (items x directions) that were found in the blocks inside the domains."""
    if not across.size:
        return 0
    rounding = 1e-9 * float(np.linalg.norm(across))
    return max(_above(block, sigma, rounding) for block in (across, taken.T @ across @ given))


def _above(block: Floats, sigma: float, rounding: float) -> int:
    if not block.size:
        return 0
    noise = sigma * (math.sqrt(block.shape[0]) + math.sqrt(block.shape[1]) + MARGIN)
    return int((linalg.svdvals(block, check_finite=False) > max(noise, rounding)).sum())
