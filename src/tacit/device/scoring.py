"""Private scores: what the items of an offer are worth to her. Every candidate gets one, whatever happens, and no error leaves."""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import UnknownName
from tacit.messages.private_selection import Candidate
from tacit.models.items import Items
from tacit.models.scorer import Scorer

MICRO = 1_000_000
_LARGEST = 1e300  # a private score beyond it is taken for no number: the difference of two such scores overflows


class PrivateScorer(Protocol):
    """How much she would like some items: from her features, and from whatever else the device knows of her.

    One number for each item, on the scale of the public ones: where there are bids the probability of a click, else the item's
    quality. The device multiplies it by the bid. What she has seen or blocked may lower an item's number and nothing else: the
    item then keeps its least probability, and nobody can tell. An item without a finite number (NaN, None, an infinity) counts
    with its public score.
    """

    def __call__(self, features: NDArray[np.float64], items: tuple[str, ...], /) -> ArrayLike: ...


def store_scorer(items: Items, scorer: Scorer) -> PrivateScorer:
    """The store's own model at her features: its utilities are the quality of items, on the scale that the server fitted.

    Where there are bids the model must give probabilities of clicks. An item that the store does not know has no number.
    """

    def quality(features: NDArray[np.float64], wanted: tuple[str, ...]) -> NDArray[np.float64]:
        found = np.full(len(wanted), np.nan)
        codes = [_code(items, item) for item in wanted]
        known = [place for place, code in enumerate(codes) if code is not None]
        if known:
            table = np.array([codes[place] for place in known], dtype=np.int64)
            found[known] = scorer.score(features[None, :], table)[0]
        return found

    return quality


def private_scores(candidates: Sequence[Candidate], quality: Callable[[], ArrayLike]) -> NDArray[np.float64]:
    """bid * quality of every candidate, whatever happens: where that is no number the candidate's public score stands.

    What is seen from outside, an error or an item left out, would be an answer to a question that the server may have crafted.
    So whatever the model raises ends here, also what is no ``Exception``: a panic of a compiled model, a cancelled task, an exit.
    An interrupt from the keyboard does too, since a model can raise that as well; it is to be pressed again.
    """
    public = np.array([one.public_score for one in candidates])
    bids = np.array([one.bid_micros / MICRO for one in candidates])
    try:
        with np.errstate(all="ignore"):
            found = np.asarray(quality())
            if found.shape != public.shape or found.dtype.kind not in "biufO":
                return public
            scores = bids * found.astype(np.float64)
            return np.where(np.abs(scores) <= _LARGEST, scores, public)  # NaN is not
    except BaseException:  # of a private model nothing is known, and neither is what it raises
        return public


def _code(items: Items, item: str) -> int | None:
    """An item's code by its id, as a text; titles are not ids."""
    try:
        if items.ids.dtype.kind not in "iu":
            return items.code(item)
        number = int(item)
        return items.code(number) if str(number) == item else None
    except (UnknownName, ValueError, OverflowError):
        return None
