"""The rules that are compared, as laws over a world's candidates at an epsilon: name to law."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.evaluation.private_selection.selection_laws import (
    Floats,
    Law,
    Mask,
    calibrated_box_rate,
    calibrated_rate,
    clipped,
    permute_and_flip,
    response,
    scaled,
    scaled_flip_loss,
    scaled_softmax_loss,
    softmax,
)
from tacit.evaluation.private_selection.worlds import World
from tacit.models.private_selection import PolicyChoice, Spread, choose

RR, PF_SCALED, GUMBEL_SCALED = "rr", "pf scaled", "gumbel scaled"
WIDTHS = (0.5, 1.0, 2.0, 8.0)  # of clipping, in units of the median public score
_BANDS = (1, 2, 4, 8, 16, 32)  # of sizes: small auctions need not be computed as wide as the largest


@dataclass(frozen=True)
class Scored:
    """What a rule sees: private and public scores of candidates that fill each row from the left."""

    private: Floats
    public: Floats
    mask: Mask

    @cached_property
    def unit(self) -> float:
        """The median public score: public, so that widths may be told in it."""
        return float(np.median(self.public[self.mask]))

    @cached_property
    def sizes(self) -> Floats:
        return np.asarray(self.mask.sum(axis=1), dtype=np.float64)


Rule = Callable[[Scored, float], Floats]


def by_value(world: World) -> Scored:
    """Scores are bid times click probability."""
    return Scored(world.private_scores, world.public_scores, world.mask)


def by_click(world: World) -> Scored:
    return Scored(world.private, world.public, world.mask)


def rr(scored: Scored, epsilon: float) -> Floats:
    return response(scored.private, epsilon, mask=scored.mask)


def scaled_noise(scored: Scored, epsilon: float, *, law: Law = permute_and_flip, exact: bool = False) -> Floats:
    """Noise on scores scaled to [0,1]; at an infinite epsilon the best candidate. ``exact``: at the calibrated rate."""
    inside = scaled(scored.private, scored.mask)
    if np.isinf(epsilon):
        return response(inside, epsilon, mask=scored.mask)
    loss = scaled_flip_loss if law is permute_and_flip else scaled_softmax_loss
    rate = calibrated_rate(epsilon, scored.sizes, loss) if exact else np.full(len(inside), epsilon / 2.0)
    return banded(law, inside, rate, scored.mask)


def clipped_noise(
    scored: Scored, epsilon: float, *, width: float, law: Law = permute_and_flip, exact: bool = False
) -> Floats:
    """Noise on scores clipped to a box around the public score; at an infinite epsilon the largest, which may not be the best."""
    wide = width * scored.unit
    inside = clipped(scored.private, scored.public, wide)
    if np.isinf(epsilon):
        return response(inside, epsilon, mask=scored.mask)
    if exact:
        rate = np.zeros(len(inside))
        for rows, high in _bands(scored.mask):
            rate[rows] = calibrated_box_rate(epsilon, scored.public[rows, :high], wide, law, scored.mask[rows, :high])
    else:
        rate = np.full(len(inside), epsilon / (2.0 * wide))
    return banded(law, inside, rate, scored.mask)


def banded(law: Law, scores: Floats, rate: Floats, mask: Mask) -> Floats:
    """The law of every row, computed in bands of rows of like size."""
    found = np.zeros(scores.shape)
    for rows, high in _bands(mask):
        found[rows, :high] = law(scores[rows, :high], rate[rows], mask[rows, :high])
    return found


def _bands(mask: Mask) -> Iterator[tuple[NDArray[np.int64], int]]:
    """Rows of like size, and a width that all of their candidates are within."""
    sizes = mask.sum(axis=1)
    for low, high in zip((0, *_BANDS), (*_BANDS, max(mask.shape[1], _BANDS[-1])), strict=True):
        rows = np.flatnonzero((sizes > low) & (sizes <= high))
        if rows.size:
            yield rows, high


def clipped_name(width: float) -> str:
    return f"pf clipped {width:g}"


SWEPT: dict[str, Rule] = {
    RR: rr,
    PF_SCALED: scaled_noise,
    **{clipped_name(width): partial(clipped_noise, width=width) for width in WIDTHS},
}
GUMBEL: dict[str, Rule] = {
    GUMBEL_SCALED: partial(scaled_noise, law=softmax),
    "gumbel clipped 1": partial(clipped_noise, width=1.0, law=softmax),
}


def choose_many(
    public: Floats,
    sizes: NDArray[np.integer[Any]],
    spread: Spread,
    epsilon: float,
    *,
    bids: Floats | None = None,
    most_d: int = 1,
) -> list[PolicyChoice]:
    """`choose` for each of many auctions: rows of falling scores, of which the first ``sizes`` are real."""
    return [
        choose(row[:size], spread, epsilon, bids=None if bids is None else bids[auction, :size], most_d=most_d)
        for auction, (row, size) in enumerate(zip(public, sizes.tolist(), strict=True))
    ]
