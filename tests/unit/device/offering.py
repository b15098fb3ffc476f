"""Offers as a server would make them, and a device with a private taste that is set by hand."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tacit.device import Device, Limits
from tacit.messages.private_selection import BatchTerms, Candidate, Offer, Policy, Rule
from tests.unit.device.small_world import SHOP, Clock

LIKED = ("21", "3", "8", "5")  # public order; the store's own ids
PUBLIC = (0.4, 0.3, 0.2, 0.1)
EXPIRES = 1_794_834_000  # one hour after the small world's noon
RR = Policy(Rule.RR, 4, 1.0)


def token(number: int) -> str:
    return f"{number:032x}"


def offered(
    number: int = 1,
    policy: Policy = RR,
    *,
    items: Sequence[str] | None = None,
    public: Sequence[float] | None = None,
    bids: Sequence[int] | None = None,
    expires: int = EXPIRES,
    batch: BatchTerms | None = None,
) -> Offer:
    items = LIKED[: policy.m] if items is None else items
    public = PUBLIC[: policy.m] if public is None else public
    bids = [1_000_000] * len(items) if bids is None else bids
    candidates = tuple(Candidate(*one) for one in zip(items, public, bids, strict=True))
    return Offer(token(number), expires, policy, candidates, batch)


class Taste:
    """A private model: a number for each item. Counts how often it is asked, and what for."""

    def __init__(self, numbers: Mapping[str, Any] | None = None) -> None:
        self.numbers, self.asked = dict(numbers or {}), []

    def __call__(self, features: np.ndarray, items: tuple[str, ...]) -> Any:
        self.asked.append(items)
        return [self.numbers.get(item) for item in items]


FAVOURS_LAST = {"21": 0.1, "3": 0.2, "8": 0.3, "5": 0.9}


def selecting(place: Path, **options: Any) -> Device:
    """A device that consents and likes best what is publicly the last."""
    options = {"private_scorer": Taste(FAVOURS_LAST), "clock": Clock(), **options}
    device = Device(place, SHOP, **options)
    device.consent()
    return device


ANY = Limits(most_epsilon=40.0)
