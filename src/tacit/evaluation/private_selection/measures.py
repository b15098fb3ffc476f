"""What a selection is worth, in expectation and auction by auction: clicks, value, revenue, surplus; and lifts over another.

Every expectation is computed from the law of the selection, so the only error is that of the auctions drawn. Clicks are
counted by the private click probability, as the paper does (its direct method).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.evaluation.private_selection.selection_laws import Floats, Mask, response
from tacit.evaluation.private_selection.worlds import World
from tacit.evaluation.result import Row
from tacit.evaluation.statistics import Estimate, reduction

CTR, VALUE, REVENUE, SURPLUS = "CTR", "value", "revenue", "surplus"
METRICS = (CTR, SURPLUS, REVENUE, VALUE)


@dataclass(frozen=True)
class Measured:
    """One selection rule in one world: the expected figure of every auction."""

    ctr: Floats
    value: Floats
    revenue: Floats

    @property
    def surplus(self) -> Floats:
        return self.value - self.revenue

    def of(self, chosen: NDArray[np.int64]) -> "Measured":
        """Only these auctions."""
        return Measured(self.ctr[chosen], self.value[chosen], self.revenue[chosen])

    def __getitem__(self, metric: str) -> Floats:
        found = {CTR: self.ctr, VALUE: self.value, REVENUE: self.revenue, SURPLUS: self.surplus}[metric]
        return np.asarray(found, dtype=np.float64)


def measured(world: World, law: Floats, prices: Floats) -> Measured:
    """``prices`` are what each candidate pays in expectation if it is shown."""
    return Measured(
        (law * world.private).sum(axis=1), (law * world.private_scores).sum(axis=1), (law * prices).sum(axis=1)
    )


def lift(one: Measured, other: Measured, metric: str) -> Estimate:
    """By what share ``one`` is above ``other``; auctions are paired."""
    found = reduction(one[metric], other[metric])
    return Estimate(0.0 - found.value, found.stderr, found.n)


def lift_rows(
    method: str, one: Measured, other: Measured, metrics: Iterable[str], **setting: int | float | str
) -> Iterator[Row]:
    for metric in metrics:
        yield Row.of(method, f"{metric} lift", lift(one, other, metric), **setting)


def told(epsilon: float) -> float | str:
    """An epsilon in a setting: JSON has no infinity."""
    return "inf" if np.isinf(epsilon) else epsilon


def percent(found: Estimate) -> str:
    return f"{100 * found.value:+.1f} ± {100 * found.stderr:.1f} %"


def public_law(scores: Floats, mask: Mask) -> Floats:
    """The publicly best candidate, always."""
    return response(scores, np.inf, mask=mask)


def per_impression(scores: Floats, reserve: Floats, mask: Mask) -> Floats:
    """Second price: the next lower score, at least the reserve's; the last pays the reserve's."""
    return np.where(mask, np.maximum(_next(scores, mask), reserve), 0.0)


def per_click(bids: Floats, probability: Floats, reserve: float, mask: Mask) -> Floats:
    """Second price of a click: next lower score over the own click probability, at least the reserve."""
    return np.where(mask, np.maximum(_next(bids * probability, mask) / probability, reserve), 0.0)


def server_prices(world: World) -> Floats:
    """Per impression, from public data only; the reserve is the lowest bid, as in the paper."""
    return per_impression(world.public_scores, reserve(world) * world.public, world.mask)


def reserve(world: World) -> float:
    return float(world.bids[world.mask].min())


def _next(scores: Floats, mask: Mask) -> Floats:
    """For every candidate the score of the one ranked behind it, 0 for the last."""
    order = np.argsort(np.where(mask, -scores, np.inf), axis=1, kind="stable")
    falling = np.take_along_axis(np.where(mask, scores, 0.0), order, axis=1)
    behind = np.concatenate([falling[:, 1:], np.zeros((len(scores), 1))], axis=1)
    found = np.empty_like(behind)
    np.put_along_axis(found, order, behind, axis=1)
    return found
