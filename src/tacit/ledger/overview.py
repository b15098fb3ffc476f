"""An overview of a ledger: its size, its head, the latest statements, and the items displayed most."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from heapq import nlargest
from typing import Any

from tacit.errors import InvalidParameter, LedgerDamaged, TacitError
from tacit.guarantees import Guarantee
from tacit.ledger.book import read_head
from tacit.ledger.budgets import Cost, Statement, cost_to_json
from tacit.ledger.chain import Head, as_text, now
from tacit.ledger.entries import PriceList, read_guarantee, read_statement
from tacit.ledger.stores.interface import LedgerStore, Reader
from tacit.ledger.tally import ItemTotal, totals


@dataclass(frozen=True, slots=True)
class PastCharge:
    """One charge of a subject."""

    lane: int
    position: int  # in its lane, as findings name it
    at: int
    release_id: str
    cost: Cost
    guarantee: Guarantee


@dataclass(frozen=True, slots=True)
class Overview:
    """A ledger at one moment. ``statements`` and ``totals`` are a part of all: the latest, and the most displayed."""

    ledger: str
    created: str
    lanes: int
    head: Head
    latest: int  # the time of the latest entry of both books; 0 if there is none
    latest_charge: int  # of the privacy book alone
    latest_impression: int  # of the impression book alone; impressions keep the day only
    subjects: int
    items: int
    micros: int
    subject: str | None  # that the caller asked for
    statements: tuple[Statement, ...]
    charges: tuple[PastCharge, ...]  # of that subject, the latest first
    totals: tuple[ItemTotal, ...]

    @property
    def entries(self) -> int:
        return sum(position for position, _ in self.head.books["privacy"])

    @property
    def impressions(self) -> int:
        return sum(position for position, _ in self.head.books["impressions"])

    def to_json(self) -> dict[str, Any]:
        """The overview as values for JSON. Money is text in micro-units, costs are exact decimals."""
        return {
            "ledger": self.ledger,
            "created": self.created,
            "lanes": self.lanes,
            "entries": self.entries,
            "subjects": self.subjects,
            "impressions": self.impressions,
            "items": self.items,
            "micros": str(self.micros),
            "latest": as_text(self.latest) if self.latest else None,
            "head": self.head.to_json(),
            "statements": [_with_renewals(statement) for statement in self.statements],
            "charges": [
                {
                    "number": charge.position * self.lanes + charge.lane,
                    "lane": charge.lane,
                    "position": charge.position,
                    "at": as_text(charge.at),
                    "release_id": charge.release_id,
                    "cost": cost_to_json(charge.cost, self.statements[0].terms),
                    "guarantee": charge.guarantee.to_json(),
                }
                for charge in self.charges
            ],
            "totals": [total.to_json() for total in self.totals],
        }


def _with_renewals(statement: Statement) -> dict[str, Any]:
    """A statement as values for JSON, and for each window when the calendar opens the next one."""
    value = statement.to_json()
    for window, shown in zip(statement.windows, value["windows"], strict=True):
        renews = window.budget.renews(statement.at)
        shown["renews"] = None if renews is None else as_text(renews)
    return value


def overview(
    store: LedgerStore, *, subject: str | None = None, limit: int = 20, clock: Callable[[], int] = now
) -> Overview:
    """The ledger as it is now: statements of the ``limit`` subjects charged last, or of one subject with its latest charges."""
    try:
        with store.read() as reader:
            return _overview(reader, store, subject, limit, clock())
    except TacitError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as problem:  # values of the wrong kind
        raise LedgerDamaged("rows are lost or damaged. Run `tacit ledger check`, then restore a backup.") from problem


def _overview(reader: Reader, store: LedgerStore, subject: str | None, limit: int, moment: int) -> Overview:
    prices = PriceList()
    ((created,),) = reader.stream("SELECT value FROM facts WHERE name = 'created'")
    latest = {book: int(at) for book, at in reader.stream("SELECT book, max(at) FROM lanes GROUP BY book")}
    ((subjects,),) = reader.stream("SELECT count(*) FROM subjects")
    names = [subject] if subject is not None else [name for (name,) in list(reader.stream(_LATEST, (limit,)))]
    statements = tuple(read_statement(reader, prices, store.lanes, name, moment) for name in names)
    charges = () if subject is None else _charges(reader, store.lanes, subject, limit)
    items, micros, most = _items(reader, limit if subject is None else 0)
    return Overview(
        ledger=store.ledger,
        created=str(created),
        lanes=store.lanes,
        head=read_head(reader, store.ledger),
        latest=max(latest.values()),
        latest_charge=latest["privacy"],
        latest_impression=latest["impressions"],
        subjects=int(subjects),
        items=items,
        micros=micros,
        subject=subject,
        statements=statements,
        charges=charges,
        totals=most,
    )


_LATEST = "SELECT name FROM subjects ORDER BY at DESC, number DESC LIMIT ?"
_CHARGES = (
    "SELECT e.number, e.at, e.release_id, e.amount, e.delta, e.unprotected, e.guarantee FROM entries e "
    "JOIN subjects s ON s.number = e.subject WHERE s.name = ? AND e.release_id <> '' ORDER BY e.number DESC LIMIT ?"
)


def _charges(reader: Reader, lanes: int, subject: str, limit: int) -> tuple[PastCharge, ...]:
    guarantees: dict[bytes, Guarantee] = {}
    charges = []
    for number, at, release_id, amount, delta, unprotected, key in list(reader.stream(_CHARGES, (subject, limit))):
        if key not in guarantees:
            guarantees[key] = read_guarantee(reader, key)
        position, lane = divmod(number, lanes)
        charges.append(PastCharge(lane, position, at, release_id, Cost(amount, delta, unprotected), guarantees[key]))
    return tuple(charges)


def _items(reader: Reader, limit: int) -> tuple[int, int, tuple[ItemTotal, ...]]:
    """The number of items, the sum that is owed for them, and the items displayed most."""
    items = micros = 0
    most: list[ItemTotal] = []
    for total in totals(reader):
        items += 1
        micros += total.micros
        most.append(total)
        if len(most) > 4 * limit + 1_000:
            most = nlargest(limit, most, key=lambda total: total.impressions)
    return items, micros, tuple(nlargest(limit, most, key=lambda total: total.impressions))


def read_noted_head(text: str) -> Head:
    """A head from a file that `tacit ledger show` wrote with `--head` or `--json`."""
    try:
        value = json.loads(text)
    except ValueError as problem:
        raise InvalidParameter(
            "the file of the noted head is not JSON. Write one with `tacit ledger show --head`."
        ) from problem
    return Head.from_json(value.get("head", value) if isinstance(value, dict) else value)
