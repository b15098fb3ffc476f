"""Listings: the items that a server may offer, with what is publicly known of each. Ranked and priced in one go.

Nothing in a listing is private, so that mistakes in it are told with their reason.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import InvalidParameter, UnknownName
from tacit.ledger.names import name
from tacit.messages.private_selection import MOST_CANDIDATES
from tacit.messages.private_selection_offer import MOST_MICROS
from tacit.server.pricing import PPM, PriceRule, Ranking, rank_whole, require_billable, wholes

ByContext = ArrayLike | Callable[[str], ArrayLike]
MOST_LISTINGS = 10**6
MOST_QUALITY = 1e15
_ONE = 1_000_000  # the bid of an item in a recommendation without money: its score is its quality
_SCORE = PPM * 1_000_000  # a score of one unit of money


class Priced(NamedTuple):
    """Eligible listings from the publicly best to the last: the whole auction, before anything is cut off."""

    items: tuple[str, ...]
    bids: tuple[int, ...]  # micro-units per click
    scores: NDArray[np.float64]  # in units of money, or of quality
    exact: tuple[int, ...] | None  # the same scores as whole numbers, where there is money
    prices: tuple[int, ...]  # micro-units per impression


class Listings:
    """``items`` with a bid per click in micro-units and a public probability of a click in parts per million.

    ``ppm`` is a row of whole numbers, or a function of the public context that returns one. For recommendations without money
    say ``Listings.free(items, quality)``: the quality is any finite number, or a function of the context.
    """

    def __init__(self, items: Sequence[str], bids_micros: ArrayLike, ppm: ByContext) -> None:
        self.items = _names(items)
        self._bids = wholes("bids_micros", bids_micros, MOST_MICROS)
        if self._bids.size != len(self.items):
            raise InvalidParameter("every listing has one bid.")
        self._known, self._quality = ppm, False
        self._places = {item: place for place, item in enumerate(self.items)}
        self._fixed = None if callable(ppm) else self._checked(ppm)

    @classmethod
    def free(cls, items: Sequence[str], quality: ByContext) -> "Listings":
        """Items to recommend, nobody pays: the public score is the item's quality."""
        listings = cls(items, np.full(len(items), _ONE), np.zeros(len(items), dtype=np.int64))
        listings._known, listings._quality = quality, True
        listings._fixed = None if callable(quality) else listings._checked(quality)
        return listings

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        return f"Listings({len(self):,} {'to recommend' if self._quality else 'with bids'})"

    @property
    def without_money(self) -> bool:
        """Whether they have a quality and no bids, so that nothing is billed."""
        return self._quality

    @property
    def same_in_every_context(self) -> bool:
        """Whether every context is offered the same."""
        return self._fixed is not None

    def billed_by(self, rule: PriceRule | str | None) -> PriceRule:
        """The rule by which these are priced: that which is given, if it can be."""
        usual = PriceRule.FREE if self._quality else PriceRule.SECOND_PRICE_PUBLIC
        found = usual if rule is None else require_billable(rule)
        if self._quality and found is not PriceRule.FREE:
            raise InvalidParameter("listings without bids are free: nobody can be billed for them.")
        return found

    def priced(
        self,
        context: str = "",
        among: Sequence[str] | None = None,
        reserve_micros: int = 0,
        rule: PriceRule = PriceRule.SECOND_PRICE_PUBLIC,
    ) -> Priced:
        """All eligible listings, ranked and priced. With ``among`` the auction is held among these items alone."""
        known = self._fixed
        if known is None:
            known = self._checked(self._known(context))  # type: ignore[operator]
        places = None if among is None else self._among(among)
        bids = self._bids if places is None else self._bids[places]
        known = known if places is None else known[places]
        if self._quality:
            best_first = np.argsort(-known, kind="stable")
            order, scores = best_first.tolist(), known[best_first].astype(np.float64)
            ranking = Ranking(tuple(order), (), (0,) * len(order))
        else:
            ranking = rank_whole(bids, known.astype(np.int64, copy=False), reserve_micros, rule)
            # rounded to the nearest float, which never turns the order round
            scores = np.array(ranking.scores, dtype=np.float64) / _SCORE
        if len(ranking.order) > MOST_CANDIDATES:
            raise InvalidParameter(
                f"an auction is held among at most {MOST_CANDIDATES:,} listings, and {len(ranking.order):,} are eligible. "
                "Name those of this one with among=, or raise the reserve."
            )
        where = ranking.order if places is None else [int(places[place]) for place in ranking.order]
        return Priced(
            tuple(self.items[place] for place in where),
            tuple(self._bids[list(where)].tolist()),
            scores,
            None if self._quality else ranking.scores,
            ranking.prices,
        )

    def _among(self, items: Sequence[str]) -> NDArray[np.int64]:
        is_slate = isinstance(items, (Sequence, np.ndarray)) and not isinstance(items, str)
        wanted: list[str] = list(items) if is_slate else []
        if not is_slate or not all(isinstance(item, str) for item in wanted) or len(set(wanted)) < len(wanted):
            raise InvalidParameter("a slate is a sequence of items, each of them once.")
        try:
            return np.array([self._places[item] for item in wanted], dtype=np.int64)
        except KeyError:
            raise UnknownName("a slate holds an item that is not listed. List it first, with its bid.") from None

    def _checked(self, known: ArrayLike) -> NDArray[np.int64] | NDArray[np.float64]:
        found: NDArray[np.int64] | NDArray[np.float64]
        if not self._quality:
            found = wholes("ppm", known, PPM)
        else:
            try:
                found = np.array(known, dtype=np.float64)
            except (TypeError, ValueError):
                found = np.full(1, np.nan)
            if found.ndim != 1 or not (np.abs(found) <= MOST_QUALITY).all():
                raise InvalidParameter(f"qualities must be finite numbers within {MOST_QUALITY:g} of 0.")
        if found.size != len(self.items):
            raise InvalidParameter(f"every listing has one {'quality' if self._quality else 'probability'}.")
        found.setflags(write=False)
        return found


def _names(items: Sequence[str]) -> tuple[str, ...]:
    """Names as a ledger takes them; each is there once."""
    if isinstance(items, str) or len(items) > MOST_LISTINGS:
        raise InvalidParameter(f"listings are a sequence of at most {MOST_LISTINGS:,} items.")
    checked = tuple(name("an item", item) for item in items)
    if len(set(checked)) < len(checked):
        raise InvalidParameter("every item is listed once.")
    return checked
