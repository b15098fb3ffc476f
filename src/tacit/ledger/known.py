"""What never changes and is looked up again and again: terms by their digest, the price of a guarantee under them."""

import json
from typing import NamedTuple

from tacit.errors import GuaranteeRefused, InvalidParameter, LedgerDamaged
from tacit.guarantees import Guarantee
from tacit.ledger.accounting import allowance, price
from tacit.ledger.amounts import NOTHING_SPENT, Cost
from tacit.ledger.budgets import Terms
from tacit.ledger.chain import digest
from tacit.ledger.entries import TEXT, canonical
from tacit.ledger.stores.interface import Reader, Writer

_MOST = 10_000  # entries kept in memory
_MOST_CHARACTERS = 65_536  # of a guarantee's text


class Agreed(NamedTuple):
    """Terms, and what they allow in one window of each budget."""

    terms: Terms
    allowances: tuple[Cost, ...]
    windowed: int  # 1 where a charge has to look back in time
    nothing: tuple[Cost, ...]  # spent before any window, for those that need not look back
    most: int  # what their totals may reach
    most_delta: int

    @classmethod
    def to(cls, terms: Terms) -> "Agreed":
        allowances = tuple(allowance(budget, terms) for budget in terms.budgets)
        most, most_delta = min(one.amount for one in allowances), min(one.delta for one in allowances)
        return cls(terms, allowances, int(terms.windowed), (NOTHING_SPENT,) * len(allowances), most, most_delta)


class Priced(NamedTuple):
    """A guarantee as the ledger writes it."""

    cost: Cost
    digest: bytes
    text: str


class Known:
    """A cache of facts that do not change, and of the texts that this process knows to be in the store."""

    def __init__(self) -> None:
        self._written: set[bytes] = set()  # digests of texts that a finished transaction has written
        self._being_written: set[bytes] = set()
        self._agreed: dict[bytes, Agreed] = {}
        self._priced: dict[tuple[int, bytes], tuple[object, Priced]] = {}

    def unwritten(self, texts: dict[bytes, str]) -> list[tuple[bytes, str]]:
        """Those of the texts that this transaction has to write; ``committed`` says when it has."""
        new = [(key, text) for key, text in texts.items() if key not in self._written]
        self._being_written = {key for key, _ in new}
        return new

    def committed(self) -> None:
        """The transaction is on the disk, and with it the texts it wrote."""
        if self._being_written:
            self._written = (self._written if len(self._written) < _MOST else set()) | self._being_written
            self._being_written = set()

    def begin(self) -> None:
        """A transaction starts; what an earlier one was about to write when it failed was not written."""
        self._being_written = set()

    def forget_written(self) -> None:
        """What this process wrote may be gone."""
        self._written = set()

    def agreed(self, reader: Reader | Writer, key: bytes) -> Agreed:
        """The terms of this digest."""
        found = self._agreed.get(key)
        if found is None:
            found = Agreed.to(read_terms(reader, key))
            _remember(self._agreed, key, found)
        return found

    def priced(self, guarantee: object, key: bytes, terms: Terms) -> Priced:
        """What ``guarantee`` costs under the terms of this digest; raises where it cannot be charged."""
        found = self._priced.get(
            (id(guarantee), key)
        )  # by identity: hashing a guarantee takes longer than all the rest
        if found is not None:
            return found[1]
        if not isinstance(guarantee, Guarantee):
            raise InvalidParameter("a charge is made for a Guarantee: pass the mechanism's or the release's.")
        text = canonical(guarantee.to_json())
        if len(text) > _MOST_CHARACTERS:
            raise GuaranteeRefused("the guarantee's assumptions are too long to be kept. State them more shortly.")
        priced = Priced(price(guarantee, terms), digest(text), text)
        _remember(self._priced, (id(guarantee), key), (guarantee, priced))  # kept, so that its identity stays its own
        return priced


def read_terms(reader: Reader | Writer, key: bytes) -> Terms:
    try:
        return Terms.from_json(json.loads(read_text(reader, key)))
    except (ValueError, InvalidParameter) as problem:
        raise LedgerDamaged(
            "a subject's terms cannot be read. Run `tacit ledger check`, restore a backup."
        ) from problem


def read_guarantee(reader: Reader | Writer, key: bytes) -> Guarantee:
    try:
        return Guarantee.from_json(json.loads(read_text(reader, key)))
    except (ValueError, InvalidParameter) as problem:
        raise LedgerDamaged("a guarantee cannot be read. Run `tacit ledger check`, restore a backup.") from problem


def read_text(reader: Reader | Writer, key: bytes) -> str:
    """The text of this digest, if it is as it was written."""
    (row,) = reader.ask(TEXT, [(key,)])()
    if row is None or not isinstance(row[0], str) or digest(row[0]) != key:
        raise LedgerDamaged("a text is not what was written. Run `tacit ledger check`, restore a backup.")
    return str(row[0])


def _remember(cache: dict, key: object, value: object) -> None:  # type: ignore[type-arg]
    if len(cache) >= _MOST:
        cache.clear()
    cache[key] = value
