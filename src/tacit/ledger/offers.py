"""Offers: what a server promised to charge for which item, under a token, kept until nobody can report it any more."""

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

from tacit.errors import Conflict, InvalidParameter, LedgerDamaged, LedgerUnavailable, TacitError
from tacit.ledger.booking import micros_of
from tacit.ledger.chain import digest
from tacit.ledger.clock import END_OF_TIME, SECOND
from tacit.ledger.impression_rows import lane_of_impression
from tacit.ledger.names import name
from tacit.ledger.stores.interface import Query, Row, Writer
from tacit.ledger.stores.schema import OFFERS

GRACE = 86_400  # seconds after its expiry in which an offer can still be reported
MOST_CANDIDATES = 10_000
MOST_SLOTS = 100
MOST_TOKEN = 400  # characters
OFFER = Query("SELECT content, expires, seal FROM offers WHERE id = ?", ("bytes",))
LAPSED = "SELECT id FROM offers WHERE expires < ? LIMIT 2000"
STILL_LAPSED = Query("SELECT 1 FROM offers WHERE id = ? AND expires < ?", ("bytes", "int"))


class Offered(NamedTuple):
    """What was offered: each item with its price in micro-units, as (item, price); how many of them are to be shown."""

    token: str
    prices: tuple[tuple[str, int], ...]
    context: str  # public
    expires: int  # seconds since 1970
    slots: int = 1


class Terms(NamedTuple):
    """What a stored offer says."""

    prices: dict[str, int]
    slots: int
    expires: int


def checked_offer(offered: Offered) -> Offered:
    """``offered``, if it could stand in the ledger; the reason why not repeats no token and no item."""
    if not isinstance(offered, tuple) or len(offered) != 5:
        raise InvalidParameter("an offer is Offered(token, prices, context, expires, slots).")
    token, prices, context, expires, slots = offered
    name("a token", token, MOST_TOKEN)
    if not isinstance(prices, tuple) or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in prices):
        raise InvalidParameter("the prices of an offer are a tuple of (item, micros).")
    exact = tuple((name("an item", item), micros_of(micros)) for item, micros in prices)
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
    """Keeps each offer, once; the error where its token stands for something else, or where it could never be settled.

    Whether it could is judged as its settlement will be, by the ledger's time. The caller's transaction makes it durable.
    """
    rows = writer.ask(OFFER, [(id,) for id in ids])()
    new: dict[bytes, Row] = {}
    outcomes: list[TacitError | None] = []
    for offered, id, row in zip(offers, ids, rows, strict=True):
        content = _content(offered)
        kept = row or new.get(id)
        if kept is None:
            if is_late(offered.expires, max(moment, writer.tips[lane_of_impression(id, lanes)].at)):
                outcomes.append(_too_late())
                continue
            new[id] = (content, offered.expires, seal_of_offer(id, content, offered.expires))
            outcomes.append(None)
        elif kept[:2] == (content, offered.expires):
            outcomes.append(None)
        else:
            outcomes.append(
                Conflict("this token was offered before, with other content. A new offer needs a new token.")
            )
    writer.insert(OFFERS, [(id, *row) for id, row in new.items()])
    return outcomes


def sealed_offer(id: bytes, row: Row) -> Terms:
    """What OFFER found, if it is as it was written."""
    content, expires, seal = row
    if type(content) is not str or type(expires) is not int or seal_of_offer(id, content, expires) != seal:
        raise LedgerDamaged("an offer is not what was written. Run `tacit ledger check`, restore a backup.")
    _, slots, prices = json.loads(content)
    return Terms(dict(prices), slots, expires)


def slot_key(token: str, slot: int) -> bytes:
    """The key of the impression in one slot of an offer: for the first, the digest of the token. No name has a line break."""
    return digest(f"{token}\n{slot}" if slot else token)


def is_late(expires: int, moment: int) -> bool:
    """Whether what expired then can no longer be reported."""
    return (expires + GRACE) * SECOND < moment


def _too_late() -> LedgerUnavailable:
    return LedgerUnavailable(
        "by the ledger's time this offer could not be settled any more, and must not be sent. Either its expiry is wrong, or the "
        "clock is behind, or it was ahead when something was counted: the ledger's time does not go back. Mend the clock; then "
        "wait until it has caught up, or go on in a new ledger."
    )


def lapsed_before(moment: int) -> int:
    """What expires before this second is late at ``moment``."""
    return -((GRACE * SECOND - moment) // SECOND)  # rounded up


def _content(offered: Offered) -> str:
    return json.dumps([offered.context, offered.slots, offered.prices], separators=(",", ":"))


def seal_of_offer(id: bytes, content: str, expires: int) -> bytes:
    return sha256(id + f"{expires}\n{content}".encode()).digest()[:8]
