"""What an impression costs: a function of public data and of the item, in whole numbers from the bid to the bill.

A listing's score is bid times probability, in millionths of a micro-unit; listings are ranked by it, of equal ones the first
listed. Whoever is displayed owes what would have kept its rank: the score of the next in rank, and no less than the reserve at its
own probability. The next in rank is the next of *all* eligible listings, offered or not, so that no price depends on how
many are offered; and no price is above the listing's own score.
"""

from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.checks import member, whole
from tacit.errors import InvalidParameter
from tacit.messages.private_selection_offer import MOST_MICROS

PPM = 10**6  # parts of a probability
_FEW = 64  # listings
_MOST_IN_64_BITS = (1 << 63) - 1


class PriceRule(StrEnum):
    """What an impression costs its listing. No rule reads anything private but the one for comparison."""

    SECOND_PRICE_PUBLIC = "second_price_public"  # the next public score, at least the reserve
    FIRST_PRICE = "first_price"  # the own public score: reveals nothing either, but rewards bidding below one's value
    FREE = "free"  # a recommendation without money
    NOISY_PCLICK = "noisy_pclick"  # for comparison only: see `noisy_pclick_prices`


class Ranking(NamedTuple):
    """The eligible listings from first to last: their places in the listing, scores (micro-units times ppm) and prices."""

    order: tuple[int, ...]
    scores: tuple[int, ...]
    prices: tuple[int, ...]  # micro-units per impression


def ranked(
    bids_micros: ArrayLike,
    ppm: ArrayLike,
    reserve_micros: int = 0,
    rule: PriceRule | str = PriceRule.SECOND_PRICE_PUBLIC,
) -> Ranking:
    """Ranks and prices all listings that bid at least the reserve. Exact for every bid up to 10^15 micro-units."""
    rule = require_billable(rule)
    reserve = whole("reserve_micros", reserve_micros, least=0, most=MOST_MICROS)
    bids, parts = wholes("bids_micros", bids_micros, MOST_MICROS), wholes("ppm", ppm, PPM)
    if bids.shape != parts.shape:
        raise InvalidParameter("every listing has one bid and one probability.")
    return rank_whole(bids, parts, reserve, rule)


def rank_whole(bids: NDArray[np.int64], parts: NDArray[np.int64], reserve: int, rule: PriceRule) -> Ranking:
    """As ``ranked``, for numbers that have been checked."""
    if bids.size <= _FEW:
        return _ranked_few(bids.tolist(), parts.tolist(), reserve, rule)
    eligible = np.flatnonzero(bids >= reserve)
    if not eligible.size:
        return Ranking((), (), ())
    bids, parts = bids[eligible], parts[eligible]
    if (
        int(bids.max()) * int(parts.max()) > _MOST_IN_64_BITS
    ):  # then in Python's numbers, which have no end; as exact, slower
        bids, parts = bids.astype(object), parts.astype(object)
    scores = bids * parts
    order = np.argsort(-scores, kind="stable")
    scores = scores[order]
    return Ranking(
        tuple(eligible[order].tolist()), tuple(scores.tolist()), _prices(scores, parts[order], reserve, rule)
    )


def _ranked_few(bids: list[int], parts: list[int], reserve: int, rule: PriceRule) -> Ranking:
    """The same, one by one: for a few listings that is quicker."""
    all_scores = [bid * part for bid, part in zip(bids, parts, strict=True)]
    order = [place for place, bid in enumerate(bids) if bid >= reserve]
    order.sort(key=all_scores.__getitem__, reverse=True)  # stable: of equal ones the first listed stays first
    scores = [all_scores[place] for place in order]
    if rule is PriceRule.FREE:
        prices = [0] * len(order)
    elif rule is PriceRule.FIRST_PRICE:
        prices = [score // PPM for score in scores]
    else:
        owed = [reserve * parts[place] for place in order]
        prices = [max(own, after) // PPM for own, after in zip(owed, [*scores[1:], 0], strict=False)]
    return Ranking(tuple(order), tuple(scores), tuple(prices))


def _prices(scores: NDArray[np.int64], parts: NDArray[np.int64], reserve: int, rule: PriceRule) -> tuple[int, ...]:
    if rule is PriceRule.FREE:
        return (0,) * scores.size
    if rule is PriceRule.FIRST_PRICE:
        return tuple((scores // PPM).tolist())
    owed = reserve * parts  # reserve <= bid: never above the own score
    owed[:-1] = np.maximum(owed[:-1], scores[1:])
    return tuple((owed // PPM).tolist())


def require_billable(rule: PriceRule | str) -> PriceRule:
    """``rule``, unless nobody should pay by it."""
    rule = member("price_rule", PriceRule, rule)
    if rule is PriceRule.NOISY_PCLICK:
        raise InvalidParameter(
            "nobody is billed by noisy_pclick: it releases private probabilities, which costs epsilon beyond that of the choice, "
            "and a ratio of two noised probabilities is too high on average. Take second_price_public; to compare prices there is "
            "noisy_pclick_prices."
        )
    return rule


def noisy_pclick_prices(bids: ArrayLike, noised: ArrayLike, *, least: float = 1e-6) -> NDArray[np.float64]:
    """For comparison only, never for money: prices per click b_{r+1} p_{r+1} / p_r from noised private probabilities.

    Both arrays stand in the order of ranks, along their last axis; the last rank has no price. Noised probabilities below ``least``
    count as that. The noise is the caller's: 1/p_r is convex, so that the mean of the ratio is above the ratio of the means.
    """
    stakes = np.asarray(bids, dtype=np.float64)
    chances = np.maximum(np.asarray(noised, dtype=np.float64), least)
    prices: NDArray[np.float64] = stakes[..., 1:] * chances[..., 1:] / chances[..., :-1]
    return prices


def wholes(what: str, values: ArrayLike, most: int) -> NDArray[np.int64]:
    """Whole numbers from 0 to ``most`` as int64, which holds them all; truth values and floats are none."""
    try:
        array = np.asarray(values)
    except (OverflowError, ValueError):
        array = np.empty((0, 0))
    if isinstance(values, (list, tuple)) and any(isinstance(one, (bool, np.bool_)) for one in values):
        array = np.empty((0, 0))  # numpy would take a truth value among numbers for one of them
    if array.ndim == 1 and not array.size:
        return np.empty(0, dtype=np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InvalidParameter(f"{what} must be a row of whole numbers from 0 to {most:,}.")
    if int(array.min()) < 0 or int(array.max()) > most:
        raise InvalidParameter(f"{what} must lie from 0 to {most:,}.")
    return array.astype(np.int64)
