"""Offers as the tests of settlements make them."""

from pathlib import Path
from typing import Any

from tacit.ledger import Offered, Settlement
from tacit.ledger.chain import SECOND
from tests.unit.ledger.impression_reference import rows
from tests.unit.ledger.small_ledger import START

OK, DUPLICATE, CONFLICT, UNKNOWN, EXPIRED = Settlement
EXPIRES = START // SECOND + 3_600
FAR = EXPIRES + 9 * 86_400
TOKEN = "5f3a" * 8
PRICES = (("apple", 80_000), ("pear", 100_000), ("fig", 0))


def offered(token: str = TOKEN, *, slots: int = 1, expires: int = EXPIRES, prices: Any = PRICES) -> Offered:
    return Offered(token, prices, "fruit", expires, slots)


def everything(path: Path) -> list[Any]:
    tables = ("impressions", "accounts", "lanes", "offers", "batches", "engagements")
    return [rows(path, f"SELECT * FROM {table} ORDER BY 1, 2") for table in tables]
