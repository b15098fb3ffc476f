"""Does the sampler draw from its law? Pearson's chi-square on counts, with teeth.

A test is failed at p <= 1e-9. That is its false-alarm rate: a thousand such tests raise one false alarm in a million runs,
so nothing is retried. Its teeth: at 100,000 draws the same test must reject a law whose epsilon is off by ten percent.
"""

from collections.abc import Callable
from dataclasses import is_dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import InvalidParameter

THRESHOLD = 1e-9
DRAWS = 100_000
_LEAST_EXPECTED = 20.0  # below that Pearson's statistic is far from chi-square at p = 1e-9: such cells are pooled
_CELLS = 100

M = TypeVar("M")
Cdf = Callable[[NDArray[np.int64]], NDArray[np.float64]]


def p_value(counts: ArrayLike, law: ArrayLike) -> float:
    """How likely counts at least this far from ``law`` are, if they were drawn from it. 0 if an impossible cell was hit."""
    from scipy.stats import binom, chi2

    seen, law = np.asarray(counts), np.asarray(law, dtype=np.float64)
    if seen.shape != law.shape or seen.ndim != 1 or not abs(float(law.sum()) - 1.0) <= 1e-9 or not (law >= 0.0).all():
        raise InvalidParameter("counts and law must be of one length, and the law must add up to 1.")
    if seen.dtype.kind not in "iu":  # frequencies would make the test toothless
        raise InvalidParameter("the test needs counts, as whole numbers, not frequencies.")
    total = int(seen.sum())
    if total == 0 or seen.min() < 0:
        raise InvalidParameter("the test needs at least one draw, and no negative count.")
    if seen[law == 0.0].any():
        return 0.0
    group, rare = _groups(law * total)
    if rare.all():
        return 1.0
    often = np.zeros((2, int(group[~rare].max()) + 1))
    np.add.at(often[0], group[~rare], seen[~rare])
    np.add.at(often[1], group[~rare], law[~rare])
    expected = often[1] / often[1].sum() * often[0].sum()
    statistic = float(np.sum((often[0] - expected) ** 2 / expected)) if often[0].sum() else 0.0
    fit = float(chi2.sf(statistic, expected.size - 1)) if expected.size > 1 else 1.0
    if not rare.any():
        return fit
    # too rare for Pearson even together: whether they come too often is told exactly
    too_often = float(binom.sf(int(seen[rare].sum()) - 1, total, float(law[rare].sum())))
    return min(1.0, 2.0 * min(fit, too_often))


def counts_of(outcomes: NDArray[np.int64], cells: int) -> NDArray[np.int64]:
    """How often each outcome from 0 to ``cells`` - 1 was drawn."""
    return np.bincount(outcomes, minlength=cells)


def lattice_p_value(draws: NDArray[np.int64], cdf: Cdf, *, cells: int = _CELLS) -> float:
    """The same for whole numbers without end: P(draw <= n) = cdf(n), in about ``cells`` cells of equal probability."""
    edges = _quantiles(cdf, np.arange(1, cells) / cells)
    below = cdf(edges)
    law = np.diff(np.concatenate([[0.0], below, [1.0]]))
    return p_value(counts_of(np.searchsorted(edges, draws, side="left"), law.size), law / law.sum())


def off_by(mechanism: M, factor: float = 1.1) -> M:
    """The same mechanism with ``factor`` times the epsilon: what a test with teeth must tell from it."""
    if not is_dataclass(mechanism):
        raise InvalidParameter("only a dataclass with `epsilon` or `scale` can be moved.")
    fields: Any = mechanism
    if hasattr(mechanism, "rule"):  # its epsilon is that of the rule it repeats
        return replace(fields, rule=off_by(fields.rule, factor))  # type: ignore[no-any-return]
    if hasattr(mechanism, "values"):  # its epsilon is the sum of those of three steps
        return replace(fields, **{step: getattr(fields, step) * factor for step in ("count", "select", "values")})  # type: ignore[no-any-return]
    if hasattr(mechanism, "epsilon"):
        return replace(fields, epsilon=fields.epsilon * factor)  # type: ignore[no-any-return]
    return replace(fields, scale=fields.scale / factor)  # type: ignore[no-any-return]


def _groups(expected: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The group of each cell, small cells joined, smallest first, until they hold enough; and which are left over.

    Which cells are joined depends on the law alone, never on what was drawn.
    """
    group = np.zeros(expected.size, dtype=np.int64)
    groups, waiting, filled = 0, [], 0.0
    for place in np.argsort(expected, kind="stable"):
        waiting.append(place)
        filled += float(expected[place])
        if filled >= _LEAST_EXPECTED and (expected[place] < _LEAST_EXPECTED or len(waiting) == 1):
            group[waiting] = groups
            groups, waiting, filled = groups + 1, [], 0.0
        elif expected[place] >= _LEAST_EXPECTED:  # a large cell stands alone; the small ones keep waiting
            group[place] = groups
            groups, waiting, filled = groups + 1, waiting[:-1], filled - float(expected[place])
    rare = np.zeros(expected.size, dtype=np.bool_)
    rare[waiting] = True
    return group, rare


def _quantiles(cdf: Cdf, shares: NDArray[np.float64]) -> NDArray[np.int64]:
    """The different smallest whole numbers at which the cdf reaches the shares, by bisection."""
    reach = 1
    while not (cdf(np.array([-reach]))[0] < shares[0] and cdf(np.array([reach]))[0] >= shares[-1]):
        reach *= 2
    low = np.full(shares.size, -reach)
    high = np.full(shares.size, reach)
    while (high - low > 1).any():
        middle = low + (high - low) // 2
        reached = cdf(middle) >= shares
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    return np.unique(high)
