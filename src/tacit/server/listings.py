"""Listings: the items that a server may offer, with what is publicly known about each. One call ranks and prices them.

    listings = Listings(["shoes", "tent"], bids_micros=[500_000, 300_000], ppm=[20_000, 45_000])
    listings.priced(reserve_micros=100_000)               # an Auction: ranked, with exact prices
    listings, people = listings_of(store, items)          # from a store: mean utilities, and the people behind them

An impression's price depends only on public data and on the item. It is computed in whole numbers from the bid to the bill.
A listing's score is its bid times its probability of a click, in millionths of a micro-unit. Listings are ranked by score; equal
scores keep the order of the list. A displayed listing owes the lowest score that would have kept its rank: the next score, but at
least the reserve times its own probability. The next score is that of the next of *all* eligible listings, offered or not, so a
price does not depend on how many are offered. No price is above the listing's own score.

Nothing in a listing is private, so errors name the reason.
"""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.checks import member, positive, whole
from tacit.errors import InvalidParameter, NoLookAlikes, UnknownName
from tacit.ledger.chain import checked_name
from tacit.messages.private_selection import MOST_CANDIDATES, MOST_MICROS
from tacit.messages.store import Store
from tacit.models.multi_selection import LinearMap, fit_ridge
from tacit.models.private_selection import DRAWS, Tastes
from tacit.models.scorers import checked_scores

ByContext = ArrayLike | Callable[[str], ArrayLike]
PPM = 10**6  # parts of a probability
MOST_LISTINGS = 10**6
MOST_QUALITY = 1e15
_ONE_UNIT = 1_000_000  # the bid of every free listing: its score is then its quality
_UNIT_SCORE = PPM * 1_000_000  # the score of one unit of money
_FEW = 64  # listings that are ranked in plain Python, which is faster than numpy for so few
_MOST_IN_64_BITS = (1 << 63) - 1
_PEOPLE = 2000  # look-alikes that a mean is taken over; more would not change it visibly


class PriceRule(StrEnum):
    """What an impression costs its listing. Only `noisy_pclick`, which cannot be billed, reads private data."""

    SECOND_PRICE_PUBLIC = "second_price_public"  # the next public score, at least the reserve
    FIRST_PRICE = "first_price"  # the listing's own public score: also reveals nothing, but rewards low bids
    FREE = "free"  # a recommendation without money
    NOISY_PCLICK = "noisy_pclick"  # for comparison only: nobody is billed by it


class Auction(NamedTuple):
    """All eligible listings, from the publicly best to the last."""

    items: tuple[str, ...]
    bids: tuple[int, ...]  # micro-units per click
    scores: NDArray[np.float64]  # in units of money, or of quality
    exact: tuple[int, ...] | None  # the same scores as whole numbers; None for free listings
    prices: tuple[int, ...]  # micro-units per impression


class Listings:
    """``items`` with a bid per click in micro-units and a public probability of a click in parts per million.

    ``ppm`` is a row of whole numbers, or a function of the public context that returns one. For recommendations without money use
    ``Listings.free(items, quality)``: a quality is any finite number; ``quality`` may be a function of the context too.
    """

    def __init__(self, items: Sequence[str], bids_micros: ArrayLike, ppm: ByContext) -> None:
        self.items = _checked_items(items)
        self._bids = _whole_numbers("bids_micros", bids_micros, MOST_MICROS)
        if self._bids.size != len(self.items):
            raise InvalidParameter("every listing needs one bid.")
        self._values, self._free = ppm, False  # probabilities, or qualities of free listings
        self._rows = {item: row for row, item in enumerate(self.items)}
        self._fixed = None if callable(ppm) else self._checked_values(ppm)

    @classmethod
    def free(cls, items: Sequence[str], quality: ByContext) -> "Listings":
        """Items to recommend without payment. An item's public score is its quality."""
        listings = cls(items, np.full(len(items), _ONE_UNIT), np.zeros(len(items), dtype=np.int64))
        listings._values, listings._free = quality, True
        listings._fixed = None if callable(quality) else listings._checked_values(quality)
        return listings

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        return f"Listings({len(self):,} {'to recommend' if self._free else 'with bids'})"

    @property
    def without_money(self) -> bool:
        """Whether the listings have qualities instead of bids, so that nothing is billed."""
        return self._free

    @property
    def same_in_every_context(self) -> bool:
        """Whether the public values do not depend on the context."""
        return self._fixed is not None

    def billed_by(self, rule: PriceRule | str | None) -> PriceRule:
        """``rule``, checked; by default second_price_public, or free for free listings."""
        usual = PriceRule.FREE if self._free else PriceRule.SECOND_PRICE_PUBLIC
        checked = usual if rule is None else require_billable(rule)
        if self._free and checked is not PriceRule.FREE:
            raise InvalidParameter("listings without bids are free: leave price_rule out, or pass 'free'.")
        return checked

    def priced(
        self,
        context: str = "",
        among: Sequence[str] | None = None,
        reserve_micros: int = 0,
        rule: PriceRule = PriceRule.SECOND_PRICE_PUBLIC,
    ) -> Auction:
        """Ranks and prices all eligible listings. With ``among`` only these items take part."""
        values = self._fixed
        if values is None:
            values = self._checked_values(self._values(context))  # type: ignore[operator]
        rows = None if among is None else self._rows_of(among)
        bids = self._bids if rows is None else self._bids[rows]
        values = values if rows is None else values[rows]
        if self._free:
            best_first = np.argsort(-values, kind="stable")
            order, scores = best_first.tolist(), values[best_first].astype(np.float64)
            ranking = Ranking(tuple(order), (), (0,) * len(order))
        else:
            ranking = rank_whole(bids, values.astype(np.int64, copy=False), reserve_micros, rule)
            # Rounding to the nearest float keeps the order.
            scores = np.array(ranking.scores, dtype=np.float64) / _UNIT_SCORE
        if len(ranking.order) > MOST_CANDIDATES:
            raise InvalidParameter(
                f"an auction takes at most {MOST_CANDIDATES:,} listings, and {len(ranking.order):,} are eligible. "
                "Choose some with among=, or raise the reserve."
            )
        ranked_rows = ranking.order if rows is None else [int(rows[index]) for index in ranking.order]
        return Auction(
            tuple(self.items[row] for row in ranked_rows),
            tuple(self._bids[list(ranked_rows)].tolist()),
            scores,
            None if self._free else ranking.scores,
            ranking.prices,
        )

    def _rows_of(self, items: Sequence[str]) -> NDArray[np.int64]:
        is_slate = isinstance(items, (Sequence, np.ndarray)) and not isinstance(items, str)
        wanted: list[str] = list(items) if is_slate else []
        if not is_slate or not all(isinstance(item, str) for item in wanted) or len(set(wanted)) < len(wanted):
            raise InvalidParameter("among must be a sequence of different items.")
        try:
            return np.array([self._rows[item] for item in wanted], dtype=np.int64)
        except KeyError:
            raise UnknownName("a slate holds an item that is not listed. List it first, with its bid.") from None

    def _checked_values(self, values: ArrayLike) -> NDArray[np.int64] | NDArray[np.float64]:
        checked: NDArray[np.int64] | NDArray[np.float64]
        if not self._free:
            checked = _whole_numbers("ppm", values, PPM)
        else:
            try:
                checked = np.array(values, dtype=np.float64)
            except (TypeError, ValueError):
                checked = np.full(1, np.nan)
            if checked.ndim != 1 or not (np.abs(checked) <= MOST_QUALITY).all():
                raise InvalidParameter(f"qualities must be finite numbers from -{MOST_QUALITY:g} to {MOST_QUALITY:g}.")
        if checked.size != len(self.items):
            raise InvalidParameter(f"every listing needs one {'quality' if self._free else 'probability'}.")
        checked.setflags(write=False)
        return checked


class Ranking(NamedTuple):
    """The eligible listings from first to last: their rows, scores (micro-units times ppm) and prices."""

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
    bids, parts = _whole_numbers("bids_micros", bids_micros, MOST_MICROS), _whole_numbers("ppm", ppm, PPM)
    if bids.shape != parts.shape:
        raise InvalidParameter("every listing needs one bid and one probability.")
    return rank_whole(bids, parts, reserve, rule)


def rank_whole(bids: NDArray[np.int64], parts: NDArray[np.int64], reserve: int, rule: PriceRule) -> Ranking:
    """`ranked` for numbers that have been checked."""
    if bids.size <= _FEW:
        return _rank_few(bids.tolist(), parts.tolist(), reserve, rule)
    eligible = np.flatnonzero(bids >= reserve)
    if not eligible.size:
        return Ranking((), (), ())
    bids, parts = bids[eligible], parts[eligible]
    if int(bids.max()) * int(parts.max()) > _MOST_IN_64_BITS:  # Python's integers are slower, and as exact
        bids, parts = bids.astype(object), parts.astype(object)
    scores = bids * parts
    order = np.argsort(-scores, kind="stable")
    scores = scores[order]
    return Ranking(
        tuple(eligible[order].tolist()), tuple(scores.tolist()), _prices(scores, parts[order], reserve, rule)
    )


def _rank_few(bids: list[int], parts: list[int], reserve: int, rule: PriceRule) -> Ranking:
    """The same in plain Python."""
    all_scores = [bid * part for bid, part in zip(bids, parts, strict=True)]
    order = [row for row, bid in enumerate(bids) if bid >= reserve]
    order.sort(key=all_scores.__getitem__, reverse=True)  # stable: of equal scores the first listed stays first
    scores = [all_scores[row] for row in order]
    if rule is PriceRule.FREE:
        prices = [0] * len(order)
    elif rule is PriceRule.FIRST_PRICE:
        prices = [score // PPM for score in scores]
    else:
        reserves = [reserve * parts[row] for row in order]
        prices = [max(least, after) // PPM for least, after in zip(reserves, [*scores[1:], 0], strict=False)]
    return Ranking(tuple(order), tuple(scores), tuple(prices))


def _prices(scores: NDArray[np.int64], parts: NDArray[np.int64], reserve: int, rule: PriceRule) -> tuple[int, ...]:
    if rule is PriceRule.FREE:
        return (0,) * scores.size
    if rule is PriceRule.FIRST_PRICE:
        return tuple((scores // PPM).tolist())
    owed = reserve * parts  # reserve <= bid: never above the listing's own score
    owed[:-1] = np.maximum(owed[:-1], scores[1:])
    return tuple((owed // PPM).tolist())


def require_billable(rule: PriceRule | str) -> PriceRule:
    """``rule``, unless it is for comparison only."""
    rule = member("price_rule", PriceRule, rule)
    if rule is PriceRule.NOISY_PCLICK:
        raise InvalidParameter(
            "nobody is billed by noisy_pclick: it releases private probabilities, which costs epsilon beyond that of the choice, "
            "and a ratio of two noisy probabilities is too high on average. Use second_price_public."
        )
    return rule


def _whole_numbers(name: str, values: ArrayLike, most: int) -> NDArray[np.int64]:
    """Whole numbers from 0 to ``most`` as int64. Booleans and floats are not accepted."""
    try:
        array = np.asarray(values)
    except (OverflowError, ValueError):
        array = np.empty((0, 0))
    if isinstance(values, (list, tuple)) and any(isinstance(value, (bool, np.bool_)) for value in values):
        array = np.empty((0, 0))  # numpy would turn a boolean among numbers into a number
    if array.ndim == 1 and not array.size:
        return np.empty(0, dtype=np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InvalidParameter(f"{name} must be a row of whole numbers from 0 to {most:,}.")
    if int(array.min()) < 0 or int(array.max()) > most:
        raise InvalidParameter(f"{name} must lie from 0 to {most:,}.")
    return array.astype(np.int64)


def _checked_items(items: Sequence[str]) -> tuple[str, ...]:
    """Names that a ledger accepts, without repeats."""
    if isinstance(items, str) or len(items) > MOST_LISTINGS:
        raise InvalidParameter(f"listings are a sequence of at most {MOST_LISTINGS:,} items.")
    checked = tuple(checked_name("an item", item) for item in items)
    if len(set(checked)) < len(checked):
        raise InvalidParameter("every item may be listed once only.")
    return checked


class Population:
    """What a sample of people would give each item. The policy `auto` uses it as its prior.

    ``quality`` has one row per person and one column per item, on the scale of private quality: stars, or the probability of a
    click for listings with bids. It must be public or released under a guarantee of its own, because every offer depends on it.
    `auto` uses a fixed number of people: an even sample of a larger population; the people of a smaller one are repeated.
    """

    def __init__(self, items: Sequence[str], quality: ArrayLike) -> None:
        table: NDArray[np.float64] = np.asarray(quality, dtype=np.float64)
        if table.ndim != 2 or not len(table) or table.shape[1] != len(items) or not np.isfinite(table).all():
            raise InvalidParameter("a population needs a row of finite numbers for each person, one number per item.")
        if isinstance(items, str) or len(set(items)) < len(items):
            raise InvalidParameter("the items of a population must be a sequence that names each item once.")
        people = np.arange(DRAWS) * len(table) // DRAWS if len(table) > DRAWS else np.arange(DRAWS) % len(table)
        self._rows = {item: row for row, item in enumerate(items)}
        self._table = table[people].T

    def __repr__(self) -> str:
        return f"Population({len(self._rows):,} items)"

    def times(self, factor: float | NDArray[np.float64]) -> "Population":
        """The same people on another scale, such as clicks instead of stars: one factor for all items, or one for each."""
        factors = np.array([positive("factor", value) for value in np.atleast_1d(factor).tolist()])
        if factors.shape not in ((1,), (len(self._rows),)):
            raise InvalidParameter("scale a population by one factor, or by one for each item.")
        return Population(list(self._rows), self._table.T * factors)

    def tastes(self, items: Sequence[str]) -> Tastes:
        """The tastes of these people for ``items``, in this order."""
        try:
            return Tastes(self._table[[self._rows[item] for item in items]])
        except KeyError:
            raise UnknownName(
                "the population does not know an item that is listed. Give it a column for every item."
            ) from None


def listings_of(store: Store, items: Sequence[int | str]) -> tuple[Listings, Population]:
    """Free listings of these items (ids or titles) with their mean utility as quality, and the people it is the mean of.

    Both come from the store's look-alikes, whom the store's guarantee protects. A device that scores with the same store's model
    (``Device(..., scorer=store.scorer)``) has its private quality on this scale.
    """
    if isinstance(items, str) or not len(items):
        raise InvalidParameter("name at least one item to offer, by id or title.")
    people = _sample_people(store)
    codes = store.items.codes(items)
    scores = _scores(store, people, codes)
    names = [str(store.items.id(int(code))) for code in codes]
    return Listings.free(names, scores.mean(axis=0)), Population(names, scores)


def quality_map(store: Store, items: Sequence[int | str]) -> LinearMap:
    """A linear approximation of the store's model: one row of numbers per item, from features to quality.

    For devices that choose from offers without holding the whole model. Like the listings, it depends on the store's look-alikes.
    """
    people = _sample_people(store)
    return fit_ridge(people, _scores(store, people, store.items.codes(items)), np.ones(len(people)))


def best_items(store: Store, most: int) -> list[int | str]:
    """The ids of the items with the highest mean utility; of items that the model cannot tell apart, one."""
    people = _sample_people(store)
    firsts = store.scorer.classes.first
    means = _scores(store, people, firsts).mean(axis=0)
    return [store.items.id(int(firsts[row])) for row in np.argsort(-means, kind="stable")[:most]]


def _sample_people(store: Store) -> NDArray[np.float32]:
    people = store.look_alikes
    if not len(people):
        raise NoLookAlikes("without look-alikes a store has no mean utilities: pass Listings instead.")
    return people[_even_sample(store)]


def _even_sample(store: Store) -> NDArray[np.int64]:
    """An even sample of the look-alikes; a look-alike that stands for several people comes up in proportion to its size."""
    count, sizes = len(store.look_alikes), store.look_alike_sizes
    if sizes is None:
        return np.arange(0, count, -(-count // _PEOPLE))
    running = np.cumsum(sizes, dtype=np.float64)
    rows: NDArray[np.int64] = np.searchsorted(running, (np.arange(_PEOPLE) + 0.5) / _PEOPLE * running[-1])
    return rows


def _scores(store: Store, people: NDArray[np.float32], codes: NDArray[Any]) -> NDArray[np.float64]:
    return checked_scores(store.scorer.score(people, codes), (len(people), len(codes))).astype(np.float64)
