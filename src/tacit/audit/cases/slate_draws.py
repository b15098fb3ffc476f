"""Drawn slates: against the law that was enumerated, and from outside. The same for every mechanism that draws slates."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.audit import check, distribution, empirical, exact
from tacit.audit.findings import Finding
from tacit.audit.twins.mislabelled import Mislabelled
from tacit.mechanisms.noise import Noise


def fits(mechanism: Any, rows: NDArray[np.float64], noise: Noise, draws: int, *, case: str) -> Finding:
    """Whether slates of these rows come as often as the law says, and not as often as one with another epsilon says."""
    drawn = places(mechanism, rows, draws, noise)
    seen = distribution.counts_of(drawn[drawn >= 0], len(mechanism.outcomes()))
    law = mechanism.pmf(rows)
    return check.sampled(
        mechanism,
        distribution.p_value(seen, law) if (drawn >= 0).all() else 0.0,
        distribution.p_value(seen, distribution.off_by(mechanism).pmf(rows)),
        loss=exact.worst_loss(np.stack([law, mechanism.pmf(rows[1:])])),  # of these rows, when the first is removed
        draws=draws,
        case=case,
    )


def from_outside(
    mechanism: Any, tables: tuple[ArrayLike, ArrayLike], noise: Noise, draws: int, *, case: str
) -> Finding:
    """A lower bound on the loss between two neighbouring tables, from ``draws`` slates of either."""
    first, second = (places(mechanism, rows, draws, noise) for rows in tables)
    return check.from_below(mechanism, empirical.lower_bound_by_label(first, second), case=case)


def places(mechanism: Any, rows: ArrayLike, count: int, noise: Noise) -> NDArray[np.int64]:
    """``count`` slates, each as its place among the outcomes; -1 if it is none of them."""
    runs = mechanism.runs if isinstance(mechanism, Mislabelled) else mechanism
    drawn = runs.prepare(rows).release_many(count, noise).value
    bits = np.array([int((1 << slate).sum()) for slate in drawn])  # subsets may be of different sizes
    known = np.array([sum(1 << item for item in slate) for slate in runs.outcomes()])
    order = np.argsort(known)
    place = order[np.minimum(np.searchsorted(known[order], bits), known.size - 1)]
    return np.where(known[place] == bits, place, -1)
