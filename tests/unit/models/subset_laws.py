"""The law of subsets of every size, by enumeration: what the unconstrained sampler is checked against."""

from itertools import combinations

import numpy as np

from tacit.models.arrays import Floats
from tacit.models.dpp.laws import law_of_logs, log_determinants


def dpp_law(kernel: Floats, *, exact: bool = False) -> Floats:
    """P(Y) = det L_Y / det(I + L) over subsets of every size, in the order of `all_subsets`."""
    return law_of_logs(np.concatenate([log_determinants(kernel, k, exact=exact) for k in range(len(kernel) + 1)]))


def all_subsets(n: int) -> list[tuple[int, ...]]:
    """All subsets of the items 0 .. n-1: smaller ones first, then in lexicographic order."""
    return [subset for k in range(n + 1) for subset in combinations(range(n), k)]
