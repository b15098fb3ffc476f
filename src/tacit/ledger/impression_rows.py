"""The impression book as rows: how an impression is linked, how an account is sealed, and the questions asked of them.

Whoever verifies a ledger uses these same functions on the exported rows. An account is what one item has in one lane: the
lane's lock then covers everything that a report touches.
"""

from hashlib import sha256
from typing import NamedTuple

from tacit.errors import LedgerDamaged
from tacit.ledger.chain import link
from tacit.ledger.stores.interface import Query, Row

BOOK = "impressions"

REPORTED = Query("SELECT number, account, day, micros FROM impressions WHERE id = ?", ("bytes",))
ACCOUNT = Query(
    "SELECT number, item, lane, impressions, micros, seal FROM accounts WHERE item = ? AND lane = ?", ("text", "int")
)


class Account(NamedTuple):
    """One item's sums in one lane, in the order of the columns."""

    number: int  # of the impression that opened it
    item: str
    lane: int
    impressions: int
    micros: int
    seal: bytes


def lane_of_impression(id: bytes, lanes: int) -> int:
    """The lane of an impression, from its digest: the same that ``lane_of`` finds from the id."""
    return id[0] % lanes


def link_of_impression(before: bytes, number: int, id: bytes, account: int, item: str, day: int, micros: int) -> bytes:
    """The link of an impression. It covers the item as well, which the row itself names only by its account."""
    # The fields joined beforehand give the same link as one by one, in half the time.
    return link(before, f"{number}\n{id.hex()}\n{account}\n{item}\n{day}\n{micros}")


def seal_of_account(number: int, item: str, lane: int, impressions: int, micros: int) -> bytes:
    return sha256(f"{number}\n{item}\n{lane}\n{impressions}\n{micros}".encode()).digest()[:8]


def sealed_account(row: Row) -> Account:
    """An account as it was read, if it is as it was written."""
    account = Account(*row)
    if seal_of_account(*account[:5]) != account.seal:
        raise LedgerDamaged("an item's account is not what was written. Run `tacit ledger check`, restore a backup.")
    return account
