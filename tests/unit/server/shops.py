"""A shop of four listings."""

import json
import sqlite3
from collections.abc import Callable

from tacit.messages.private_selection import Offer, OfferRequest
from tacit.server import PrivateSelection

DAY = 86_400 * 10**6
ITEMS = ["a", "b", "c", "d"]
BIDS = [2_000_000, 1_500_000, 4_000_000, 500_000]
PPM = [50_000, 80_000, 20_000, 100_000]
PRICES = {"a": 80_000, "b": 100_000, "c": 50_000, "d": 40_000}
CONSENT = OfferRequest("", consent=True)
Shop = Callable[..., PrivateSelection]


class Clock:
    def __init__(self) -> None:
        self.at = 20_000 * DAY + 12_345_678_901

    def __call__(self) -> int:
        return self.at


def stored_offers(shop: PrivateSelection) -> list[tuple[list[object], int]]:
    path = shop.ledger._store.path  # type: ignore[attr-defined]
    with sqlite3.connect(path) as connection:
        rows = connection.execute("SELECT content, expires FROM offers").fetchall()
    return [(json.loads(content), expires) for content, expires in rows]


def offered(shop: PrivateSelection, request: OfferRequest | str = CONSENT, **more: object) -> Offer:
    offer = shop.offer(request, **more)  # type: ignore[arg-type]
    assert offer is not None
    return offer
