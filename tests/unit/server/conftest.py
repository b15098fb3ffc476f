"""What several tests of this folder start from."""

from pathlib import Path

import numpy as np
import pytest

from tacit.server import Listings, PrivateSelection
from tests.unit.federated_world import made
from tests.unit.server.shops import BIDS, ITEMS, PPM, Clock, Shop

__all__ = ["made"]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def shop(tmp_path: Path, clock: Clock) -> Shop:
    def make(listings: Listings | None = None, **settings: object) -> PrivateSelection:
        settings = {"explore": 0.0, "clock": clock, "rng": np.random.default_rng(1), **settings}
        target = tmp_path / f"{len(list(tmp_path.iterdir()))}.db"
        listings = Listings(ITEMS, BIDS, PPM) if listings is None else listings
        return PrivateSelection(listings, target, **settings)  # type: ignore[arg-type]

    return make
