"""Offers and their settlement: the price that a server offered for each item, and the outcome of each report.

An offer is kept under a token until it can no longer be reported. A settlement looks up the impression, then the offer, and
counts the impression at the price of the offer. A shuffled batch is settled as a whole or not at all. Engagements are randomised
bits, one for each impression; estimates are made of them, never money.
"""

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from hashlib import sha256
from itertools import chain, pairwise
from typing import NamedTuple

from tacit.errors import Conflict, InvalidParameter, LedgerDamaged, LedgerUnavailable, TacitError
from tacit.ledger.chain import END_OF_TIME, SECOND, checked_name, day_of, digest, is_late, lane_of, lane_of_digest
from tacit.ledger.stores.interface import ACCOUNTS, BATCHES, ENGAGEMENTS, OFFERS, REFUSALS, Query, Reader, Row, Writer
from tacit.ledger.tally import REPORTED, ItemAccount, Tally, micros_of, sum_too_large

MOST_CANDIDATES = 10_000
MOST_SLOTS = 100
MOST_TOKEN = 400  # characters
OFFER = Query("SELECT content, expires, seal FROM offers WHERE id = ?", ("bytes",))
LAPSED = "SELECT id FROM offers WHERE expires < ? LIMIT 2000"
STILL_LAPSED = Query("SELECT 1 FROM offers WHERE id = ? AND expires < ?", ("bytes", "int"))


class Offered(NamedTuple):
    """An offer: each item with its price in micro-units, as (item, price), and how many of the items will be shown."""

    token: str
    prices: tuple[tuple[str, int], ...]
    context: str  # public
    expires: int  # seconds since 1970
    slots: int = 1


class OfferTerms(NamedTuple):
    """The content of a stored offer."""

    prices: dict[str, int]
    slots: int
    expires: int


def checked_offer(offered: Offered) -> Offered:
    """``offered``, if it is valid. The error repeats no token and no item."""
    if not isinstance(offered, tuple) or len(offered) != 5:
        raise InvalidParameter("an offer is Offered(token, prices, context, expires, slots).")
    token, prices, context, expires, slots = offered
    checked_name("a token", token, MOST_TOKEN)
    if not isinstance(prices, tuple) or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in prices):
        raise InvalidParameter("the prices of an offer are a tuple of (item, micros).")
    exact = tuple((checked_name("an item", item), micros_of(micros)) for item, micros in prices)
    if not 1 <= len(exact) <= MOST_CANDIDATES or len(dict(exact)) < len(exact):
        raise InvalidParameter(f"an offer has 1 to {MOST_CANDIDATES:,} items, each of them once.")
    if type(context) is not str or len(context) > 200:
        raise InvalidParameter("the context of an offer is a text of at most 200 characters.")
    if type(expires) is not int or not 0 <= expires <= END_OF_TIME // SECOND:
        raise InvalidParameter("an offer expires at a whole number of seconds since 1970, before the year 9909.")
    if type(slots) is not int or not 1 <= slots <= min(MOST_SLOTS, len(prices)):
        raise InvalidParameter(f"an offer has 1 to {MOST_SLOTS} slots, and not more than items.")
    return Offered(token, exact, context, expires, slots)


def commit_offers(
    writer: Writer, lanes: int, moment: int, offers: Sequence[Offered], ids: Sequence[bytes]
) -> list[TacitError | None]:
    """Keeps each offer once. The outcome is an error if its token stands for something else, or if it could never be settled.

    Both this and the settlement go by the ledger's time. The caller's transaction makes the offers durable.
    """
    rows = writer.ask(OFFER, [(id,) for id in ids])()
    new: dict[bytes, Row] = {}
    outcomes: list[TacitError | None] = []
    for offered, id, row in zip(offers, ids, rows, strict=True):
        content = json.dumps([offered.context, offered.slots, offered.prices], separators=(",", ":"))
        kept = row or new.get(id)
        if kept is None:
            if is_late(offered.expires, max(moment, writer.tips[lane_of_digest(id, lanes)].at)):
                outcomes.append(_too_late())
                continue
            new[id] = (content, offered.expires)
            outcomes.append(None)
        elif kept[:2] == (content, offered.expires):
            outcomes.append(None)
        else:
            outcomes.append(
                Conflict("this token was offered before, with other content. A new offer needs a new token.")
            )
    writer.insert(OFFERS, [OFFERS.sealed(id, *row) for id, row in new.items()])
    return outcomes


def read_offer(id: bytes, row: Row) -> OfferTerms:
    """The offer that OFFER found. Raises LedgerDamaged if it was altered."""
    _, content, expires = OFFERS.unsealed((id, *row))
    _, slots, prices = json.loads(content)
    return OfferTerms(dict(prices), slots, expires)


def slot_key(token: str, slot: int) -> bytes:
    """The key of the impression in one slot of an offer. The first has the digest of the token; no name has a line break."""
    return digest(f"{token}\n{slot}" if slot else token)


def _too_late() -> LedgerUnavailable:
    return LedgerUnavailable(
        "by the ledger's time this offer could not be settled any more, and must not be sent. Either its expiry is wrong, or the "
        "clock is behind, or the clock was ahead when something was counted: the ledger's time does not go back. Set the clock; "
        "then wait until it has caught up, or continue in a new ledger."
    )


log = logging.getLogger("tacit.ledger")


class Settlement(StrEnum):
    """The outcome of a report. Only ``ok`` changes anything."""

    OK = "ok"
    DUPLICATE = "duplicate"  # it was counted before
    CONFLICT = "conflict"  # the token was reported with other items, or the item was not offered
    UNKNOWN = "unknown"  # no such token
    EXPIRED = "expired"  # more than a day after the offer's expiry


class Shown(NamedTuple):
    """These items of an offer were shown, one in each slot, in this order."""

    token: str
    items: tuple[str, ...]

    @property
    def keys(self) -> list[bytes]:
        """The keys of the impressions in each slot. The first also finds the offer."""
        return [slot_key(self.token, slot) for slot in range(len(self.items))]


def checked_shown(shown: Shown | tuple[str, Iterable[str]]) -> Shown | InvalidParameter:
    """The report if it is valid, else the error, which repeats no token and no item."""
    try:
        if not isinstance(shown, tuple) or len(shown) != 2 or isinstance(shown[1], str):
            raise InvalidParameter("a report of an offer is (token, items); of one item, (token, (item,)).")
        token, items = checked_name("a token", shown[0], MOST_TOKEN), tuple(shown[1])
        if not 1 <= len(items) <= MOST_SLOTS:
            raise InvalidParameter(f"a report of an offer names 1 to {MOST_SLOTS} items.")
        return Shown(token, tuple(checked_name("an item", item, 200) for item in items))
    except TypeError:
        return InvalidParameter("the items of a report are a tuple of texts.")
    except InvalidParameter as problem:
        return problem


def commit_settlements(
    writer: Writer, lanes: int, moment: int, reports: Sequence[Shown], keys: Sequence[list[bytes]]
) -> list[Settlement | TacitError]:
    """The outcome of each report, in order; ``keys`` are those of its slots. The caller's transaction makes it durable."""
    # One slot more than was reported: a report that leaves out the last item is a different report.
    keys_and_next = [(*slots, slot_key(report.token, len(slots))) for report, slots in zip(reports, keys, strict=True)]
    impressions = writer.ask(REPORTED, [(key,) for slots in keys_and_next for key in slots])
    offers = writer.ask(OFFER, [(slots[0],) for slots in keys])
    accounts_needed = [
        [(item, lane_of_digest(key, lanes)) for item, key in zip(report.items, slots, strict=True)]
        for report, slots in zip(reports, keys, strict=True)
    ]
    tally = Tally(writer, lanes, moment, chain.from_iterable(accounts_needed))
    stored = iter(impressions())
    outcomes: list[Settlement | TacitError] = []
    for report, slots, needed, offer in zip(reports, keys_and_next, accounts_needed, offers(), strict=True):
        earlier = [next(stored) or tally.fresh.get(key) for key in slots]
        accounts = [tally.accounts[account] for account in needed]
        usable = [account for account in accounts if isinstance(account, ItemAccount)]
        if len(usable) < len(accounts):
            outcomes.append(next(account for account in accounts if isinstance(account, LedgerDamaged)))
        elif any(row is not None for row in earlier):
            outcomes.append(_repeated_settlement(earlier, usable))
        else:
            outcomes.append(_settle(tally, report, slots, offer, usable))
    tally.write()
    late = outcomes.count(Settlement.EXPIRED)
    if late:
        log.warning(
            "%d reports came too late by the ledger's time and were not counted. If devices report in time, a clock was wrong.",
            late,
        )
    return outcomes


def refuse(reason: str) -> Settlement:
    """A conflict. The reason goes to the log, which names no token and no item."""
    log.warning("a report was refused: %s", reason)
    return Settlement.CONFLICT


def _repeated_settlement(earlier: list[Row | None], accounts: list[ItemAccount]) -> Settlement:
    """The outcome of a report whose token was used before. An account in a lane stands for one item."""
    *reported, beyond_the_last = [None if row is None else row[1] for row in earlier]
    if beyond_the_last is None and reported == [account.number for account in accounts]:
        return Settlement.DUPLICATE
    return refuse("its token was reported before, with other items.")


def _settle(
    tally: Tally, report: Shown, keys: Sequence[bytes], offer: Row | None, accounts: list[ItemAccount]
) -> Settlement | TacitError:
    if offer is None:
        return Settlement.UNKNOWN
    try:
        terms = read_offer(keys[0], offer)
    except LedgerDamaged as problem:
        return problem
    if is_late(terms.expires, tally.moment_in(accounts[0].lane)):
        return Settlement.EXPIRED
    items = report.items
    if len(items) != terms.slots or len(set(items)) < len(items) or not terms.prices.keys() >= set(items):
        return refuse("its items are not those of the offer.")
    prices = [terms.prices[item] for item in items]
    if not all(account.fits(micros) for account, micros in zip(accounts, prices, strict=True)):
        return sum_too_large()
    for key, account, micros in zip(keys, accounts, prices, strict=False):  # the last key is not one of the slots
        tally.count(key, account, micros)
    return Settlement.OK


MOST_REPORTS = 10**6
BATCH = Query("SELECT digest, reports, day, seal FROM batches WHERE batch = ? AND group_id = ?", ("text", "text"))
_REFUSAL = Query("SELECT 1 FROM refusals WHERE batch = ? AND group_id = ?", ("text", "text"))


class Batched:
    """The reports of one group of a batch, in the order of their tokens, which says nothing about who came when."""

    __slots__ = ("batch", "content", "group", "keys", "prices", "reports")

    def __init__(self, batch: str, group: str, reports: Iterable[tuple[str, str]], prices: Mapping[str, int]) -> None:
        self.batch, self.group = checked_name("a batch", batch), checked_name("a group", group)
        pairs = list(reports)
        if len(pairs) > MOST_REPORTS or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
            raise InvalidParameter(f"a batch holds at most {MOST_REPORTS:,} reports (token, item).")
        for token, item in pairs:
            checked_name("a token", token, MOST_TOKEN)
            checked_name("an item", item)
        self.reports = sorted(pairs)
        self.prices = {checked_name("an item", item): micros_of(micros) for item, micros in prices.items()}
        self.content = sha256(json.dumps(self.reports, separators=(",", ":")).encode()).digest()[:16]
        # A token counts once in its batch, in any group: the group is what the sender claims.
        self.keys = [digest(f"batch\n{batch}\n{token}") for token, _ in self.reports]

    def lanes(self, lanes: int) -> list[int]:
        """The lanes of its impressions, and one for the batch itself."""
        return sorted(
            {lane_of(f"{self.batch}\n{self.group}", lanes)} | {lane_of_digest(key, lanes) for key in self.keys}
        )

    def fault(self) -> str | None:
        """Why the batch cannot be settled; None if it can."""
        if any(first[0] == second[0] for first, second in pairwise(self.reports)):
            return "its batch holds a token twice."
        if not self.prices.keys() >= {item for _, item in self.reports}:
            return "its batch holds an item without a price."
        return None


def commit_batch(writer: Writer, lanes: int, moment: int, batched: Batched) -> Settlement:
    """Counts all reports or none. A refusal is kept for good: a claim about the group may rest on its having one version.

    The caller's transaction makes the counts or the refusal durable.
    """
    settled = writer.ask(BATCH, [(batched.batch, batched.group)])
    impressions = writer.ask(REPORTED, [(key,) for key in batched.keys])
    own_lanes = [lane_of_digest(key, lanes) for key in batched.keys]
    accounts = [(item, lane) for (_, item), lane in zip(batched.reports, own_lanes, strict=True)]
    tally = Tally(writer, lanes, moment, accounts)
    (row,) = settled()
    if row is not None:
        if BATCHES.unsealed((batched.batch, batched.group, *row))[2] == batched.content:
            return Settlement.DUPLICATE
        return _refuse(writer, moment, batched, "its batch and group were settled before, with other reports.")
    reason = batched.fault()
    if reason is None and any(impression is not None for impression in impressions()):
        reason = "one of its tokens was counted in this batch before."
    if reason is not None:
        return _refuse(writer, moment, batched, reason)
    for key, (item, lane) in zip(batched.keys, accounts, strict=True):
        account = tally.accounts[item, lane]
        if not isinstance(account, ItemAccount):
            raise account
        micros = batched.prices[item]
        if not account.fits(micros):
            raise sum_too_large()  # the transaction is rolled back
        tally.count(key, account, micros)
    tally.write()
    content = (batched.content, len(batched.keys), day_of(moment))
    writer.insert(BATCHES, [BATCHES.sealed(batched.batch, batched.group, *content)])
    return Settlement.OK


def was_refused(reader: Reader, batch: str, group: str) -> bool:
    """Whether a version of this group was ever refused. A row counts, even with a wrong seal."""
    return reader.ask(_REFUSAL, [(checked_name("a batch", batch), checked_name("a group", group))])()[0] is not None


def _refuse(writer: Writer, moment: int, batched: Batched, reason: str) -> Settlement:
    row = REFUSALS.sealed(batched.batch, batched.group, day_of(moment))
    writer.insert(REFUSALS, [row], unless_there=True)  # the first one stands
    return refuse(reason)


_SHOWN = Query(
    "SELECT a.number, a.item, a.lane, a.impressions, a.micros, a.seal FROM impressions i "
    "JOIN accounts a ON a.number = i.account WHERE i.id = ?",
    ("bytes",),
)
_ENGAGED = Query("SELECT bit FROM engagements WHERE id = ?", ("bytes",))
_RECEIVED = Query("SELECT count(*), coalesce(sum(bit), 0) FROM engagements WHERE item = ?", ("text",))


class Engaged(NamedTuple):
    """A bit for the impression under this token."""

    token: str
    bit: int


class Engagements(NamedTuple):
    """How many bits came for an item, and how many of them were 1. Some were flipped at random: neither counts clicks."""

    received: int
    ones: int


def checked_engaged(token: str, bit: int) -> Engaged:
    """The engagement, if it is valid."""
    if type(bit) is not int or bit not in (0, 1):
        raise InvalidParameter("an engagement is a bit, 0 or 1.")
    return Engaged(checked_name("a token", token, MOST_TOKEN), bit)


def commit_engagements(
    writer: Writer, lanes: int, moment: int, engaged: Sequence[Engaged], ids: Sequence[bytes]
) -> list[Settlement | TacitError]:
    """The outcome of each bit, in order: one bit for an impression of one item. The caller's transaction makes it durable."""
    shown = writer.ask(_SHOWN, [(id,) for id in ids])
    further = writer.ask(_SHOWN, [(slot_key(bit.token, 1),) for bit in engaged])
    rows = writer.ask(_ENGAGED, [(id,) for id in ids])()
    outcomes: list[Settlement | TacitError] = []
    new: dict[bytes, Row] = {}
    for engagement, id, account, second, row in zip(engaged, ids, shown(), further(), rows, strict=True):
        earlier = row[0] if row is not None else new[id][2] if id in new else None
        if account is None:
            outcomes.append(Settlement.UNKNOWN)
        elif second is not None:
            outcomes.append(refuse("several items were shown, and one bit cannot tell which of them it is about."))
        elif earlier is not None:
            outcomes.append(
                Settlement.DUPLICATE if earlier == engagement.bit else refuse("its bit was another one before.")
            )
        else:
            try:
                item = ACCOUNTS.unsealed(account)[1]
            except LedgerDamaged as problem:
                outcomes.append(problem)
                continue
            day = day_of(max(moment, writer.tips[lane_of_digest(id, lanes)].at))
            new[id] = ENGAGEMENTS.sealed(id, item, engagement.bit, day)
            outcomes.append(Settlement.OK)
    writer.insert(ENGAGEMENTS, list(new.values()))
    return outcomes


def engagements_of(reader: Reader, item: str) -> Engagements:
    """The bits received for an item."""
    (row,) = reader.ask(_RECEIVED, [(item,)])()
    return Engagements(0, 0) if row is None else Engagements(int(row[0]), int(row[1]))
