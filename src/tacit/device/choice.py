"""A choice: what to show for an offer, as it was written before anything was shown."""

import json
from dataclasses import dataclass, replace
from typing import Any

from tacit.errors import InvalidMessage, InvalidParameter, TacitError
from tacit.ledger import Display
from tacit.messages.private_selection import Impression, Offer, Policy, ShuffledReport

MOST_BYTES = 1 << 24  # of an offer: 10,000 candidates with the longest of names fit


@dataclass(frozen=True, slots=True)
class Choice:
    """What to show, and nothing of why. ``policy`` is the one that was applied: a function of public data."""

    server: str
    token: str
    items: tuple[str, ...]  # one for each slot
    expires: int  # seconds since 1970
    policy: Policy
    consented: bool
    batch: str | None = None  # where the report is to be shuffled
    group: str | None = None
    report_token: str | None = None

    @property
    def item(self) -> str:
        """The item of the first slot."""
        return self.items[0]

    def impression(self) -> Impression:
        """The report of a choice that is not shuffled."""
        if self.batch is not None:
            raise InvalidParameter("this offer's report is shuffled, and must not name its token: use shuffled_report.")
        return Impression(self.token, self.items)

    def shuffled(self) -> ShuffledReport:
        """The report of a choice that is shuffled: nothing in it is of this offer alone."""
        if self.batch is None or self.group is None or self.report_token is None:
            raise InvalidParameter("a report is shuffled for an offer of a batch, and has a token of its own.")
        return ShuffledReport(self.batch, self.group, self.item, self.report_token)

    def with_token(self, report_token: str | None) -> "Choice":
        """The same choice with the blind token that its shuffled report will carry."""
        return replace(self, report_token=report_token)

    def extra(self) -> bytes:
        """What is kept of it beside the items."""
        kept = [self.policy.to_json(), self.consented, self.batch, self.group, self.report_token]
        return json.dumps(kept, separators=(",", ":")).encode()

    @classmethod
    def of(cls, display: Display) -> "Choice":
        """The choice that was written."""
        policy, consented, *rest = json.loads(display.extra)
        kept = (display.server, display.token, display.items, display.expires)
        return cls(*kept, Policy.from_json(policy), consented, *rest)

    def __repr__(self) -> str:
        return f"Choice({len(self.items)} of {self.policy.m})"  # a log that names both token and item undoes shuffling


def read_offer(offer: object) -> Offer | None:
    """The offer, if it is one; whatever a server may have sent instead is no fill, and never an error."""
    if isinstance(offer, Offer):
        return offer
    try:
        if isinstance(offer, (str, bytes)):
            if len(offer) > MOST_BYTES:
                return None
            offer = json.loads(offer, object_pairs_hook=_each_name_once)
        return Offer.from_json(offer)
    except (
        TacitError,
        TypeError,
        ValueError,
        RecursionError,
    ):  # no JSON, no UTF-8, a number of too many digits, too deep
        return None


def _each_name_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise InvalidMessage("a name stands twice in one object.")
    return found
