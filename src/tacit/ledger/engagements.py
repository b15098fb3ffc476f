"""Engagements: randomised bits, one for each impression, and how many of them came. Estimates are made of them, never money."""

from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

from tacit.errors import InvalidParameter, LedgerDamaged, TacitError
from tacit.ledger.clock import day_of
from tacit.ledger.impression_rows import lane_of_impression, sealed_account
from tacit.ledger.names import name
from tacit.ledger.offers import MOST_TOKEN, slot_key
from tacit.ledger.settling import Settlement, refuse
from tacit.ledger.stores.interface import Query, Reader, Row, Writer
from tacit.ledger.stores.schema import ENGAGEMENTS

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
    """How many bits came for an item, and how many of them were 1. Chance has flipped some: neither number is of clicks."""

    received: int
    ones: int


def checked_engaged(token: str, bit: int) -> Engaged:
    if type(bit) is not int or bit not in (0, 1):
        raise InvalidParameter("an engagement is a bit, 0 or 1.")
    return Engaged(name("a token", token, MOST_TOKEN), bit)


def commit_engagements(
    writer: Writer, lanes: int, moment: int, engaged: Sequence[Engaged], ids: Sequence[bytes]
) -> list[Settlement | TacitError]:
    """The outcome of each bit, in order: one bit for one impression of one item. The caller's transaction makes it durable."""
    shown = writer.ask(_SHOWN, [(id,) for id in ids])
    further = writer.ask(_SHOWN, [(slot_key(one.token, 1),) for one in engaged])
    rows = writer.ask(_ENGAGED, [(id,) for id in ids])()
    outcomes: list[Settlement | TacitError] = []
    new: dict[bytes, Row] = {}
    for one, id, account, second, row in zip(engaged, ids, shown(), further(), rows, strict=True):
        earlier = row[0] if row is not None else new[id][2] if id in new else None
        if account is None:
            outcomes.append(Settlement.UNKNOWN)
        elif second is not None:
            outcomes.append(refuse("one bit cannot tell which of several items it is about."))
        elif earlier is not None:
            outcomes.append(Settlement.DUPLICATE if earlier == one.bit else refuse("its bit was another one before."))
        else:
            try:
                item = sealed_account(account).item
            except LedgerDamaged as problem:
                outcomes.append(problem)
                continue
            day = day_of(max(moment, writer.tips[lane_of_impression(id, lanes)].at))
            new[id] = (id, item, one.bit, day, seal_of_engagement(id, item, one.bit, day))
            outcomes.append(Settlement.OK)
    writer.insert(ENGAGEMENTS, list(new.values()))
    return outcomes


def seal_of_engagement(id: bytes, item: str, bit: int, day: int) -> bytes:
    return sha256(id + f"{item}\n{bit}\n{day}".encode()).digest()[:8]


def engagements_of(reader: Reader, item: str) -> Engagements:
    (row,) = reader.ask(_RECEIVED, [(item,)])()
    return Engagements(0, 0) if row is None else Engagements(int(row[0]), int(row[1]))
