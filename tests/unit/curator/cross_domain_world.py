"""Two small domains whose ratings are known, and a curator of them."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tacit.data
from tacit.curator import Curator
from tacit.data.catalogue import Catalogue
from tacit.data.pairs import TwoDomains
from tacit.data.ratings import STARS, Ratings, Scale
from tacit.ledger import PrivacyLedger

# Users x items, 0 for none: items 0 to 2 are the source's, 3 to 5 the target's. Similarities, layers and X-SIM are known by hand.
TABLE = np.array(
    [
        [5, 4, 1, 0, 0, 0],
        [2, 1, 5, 0, 0, 0],
        [0, 5, 0, 4, 2, 0],
        [0, 2, 0, 1, 5, 0],
        [0, 0, 0, 5, 1, 4],
        [0, 0, 0, 2, 4, 1],
        [0, 5, 0, 3, 4, 0],
        [0, 0, 0, 2, 5, 4],
    ]
)
BY_HAND = {"least": 1, "significant": 0}


def ratings(table: NDArray[Any], first: int, name: str, **parts: Any) -> Ratings:
    """Users x items of ratings, 0 for none; the items have the ids ``first``, ``first`` + 1, ..."""
    users, items = np.nonzero(table)
    starts = np.concatenate([[0], np.cumsum((table != 0).sum(axis=1))]).astype(np.int32)
    rated_only = parts.pop("rated_only", None)
    ids = np.arange(first, first + table.shape[1])
    catalogue = parts.pop("catalogue", Catalogue(ids, rated_only=rated_only))
    values = table[users, items].astype(np.float32)
    user_ids = parts.pop("user_ids", np.arange(len(table)))
    times = parts.pop("times", None)
    scale: Scale = parts.pop("scale", STARS)
    return Ratings(starts, items.astype(np.int32), values, times, user_ids, catalogue, scale, name)


def small(table: NDArray[Any] = TABLE, cut: int = 3, **parts: Any) -> TwoDomains:
    return TwoDomains(ratings(table[:, :cut], 0, "films", **parts), ratings(table[:, cut:], cut, "books", **parts))


def world(users: int = 300, items: int = 40, **options: Any) -> TwoDomains:
    """A made-up world with a list of items."""
    rng = np.random.default_rng(7)
    options = {"ratings_per_user": 15.0, "rank": 3, "overlap": 0.5, **options}
    return tacit.data.synthetic(users=users, items=items, second_domain=True, rng=rng, **options)


def begin(ledger: Any) -> Any:
    """A ledger that nobody is in yet, as `tacit ledger init` makes it; one that is there already stays as it is."""
    if not isinstance(ledger, PrivacyLedger | str):
        PrivacyLedger.open_or_create(ledger).close()
    return ledger


def curator(folder: Path, data: Any = None, **options: Any) -> Curator:
    """With a budget of its own, or with what a ledger of nobody gives by default."""
    options = {"ledger": folder / "curator.db", **options}
    if "budget" not in options:
        begin(options["ledger"])
    return Curator(small() if data is None else data, **options)
