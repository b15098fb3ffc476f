"""An offer: candidates with public scores, in the server's order, the policy to choose by, and a token to report under.

Prices stay on the server, but in an offer whose reports are shuffled: there each item has one price in the whole batch, and the
device's group id covers it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import pairwise
from json import dumps
from struct import pack
from typing import Any

from tacit.checks import keep
from tacit.errors import InvalidMessage
from tacit.messages import fields
from tacit.messages.private_selection_policy import MOST_CANDIDATES, Policy

VERSION = 1
MOST_MICROS = 10**15
MOST_SCORE = 1e15
MOST_SECONDS = 2_900_000 * 86_400
MOST_ITEM = 128  # characters: as many as a ledger takes
_NAMES = ("version", "token", "expires", "policy", "candidates", "batch")


@dataclass(frozen=True, slots=True)
class OfferRequest:
    """What a device sends to be offered something: a public context, and her consent. The same size with and without it."""

    context: str = ""
    consent: bool = False

    def __post_init__(self) -> None:
        fields.text(self.context, "$.context", most=200)
        fields.truth(self.consent, "$.consent")

    def to_json(self) -> dict[str, Any]:
        """The request as values for JSON."""
        return {"version": VERSION, "context": self.context, "consent": int(self.consent)}

    @classmethod
    def from_json(cls, value: object) -> "OfferRequest":
        """The request of such values, checked; InvalidMessage for anything else."""
        found = fields.members(value, "a request for an offer", ("version", "context", "consent"))
        fields.whole(found["version"], "$.version", least=VERSION, most=VERSION)
        consent = fields.whole(found["consent"], "$.consent", least=0, most=1)
        return cls(fields.text(found["context"], "$.context", most=200), bool(consent))


@dataclass(frozen=True, slots=True)
class Candidate:
    """An item that may be shown, what its owner bids for a click in micro-units, and the score it has without private data.

    A public score is bid times the public probability of a click, in units of money, or in a recommendation without money the
    item's public quality: then the bid is 1,000,000, and private scores are on the same scale.
    """

    item: str
    public_score: float
    bid_micros: int = 1_000_000

    def __post_init__(self) -> None:
        item_name(self.item, "$.candidates.item")
        keep(self, public_score=fields.real(self.public_score, "$.candidates.public_score"))
        if abs(self.public_score) > MOST_SCORE:
            raise InvalidMessage(f"public scores lie within {MOST_SCORE:g} of 0.")
        fields.whole(self.bid_micros, "$.candidates.bid", least=0, most=MOST_MICROS)

    def to_json(self) -> dict[str, Any]:
        """The candidate as values for JSON."""
        return {"item": self.item, "bid": self.bid_micros, "public_score": self.public_score}

    @classmethod
    def from_json(cls, value: object) -> "Candidate":
        """The candidate of such values, checked; InvalidMessage for anything else."""
        found = fields.members(value, "a candidate", ("item", "bid", "public_score"))
        return cls(found["item"], fields.real(found["public_score"], "$.candidates.public_score"), found["bid"])


@dataclass(frozen=True, slots=True)
class BatchTerms:
    """For reports that are shuffled: the batch, the price of every candidate in it, and the public key of its tokens."""

    id: str
    prices: tuple[int, ...]  # micro-units of the currency for an impression of each candidate
    key: str = ""  # in hexadecimal digits; empty where tokens are not blind

    def __post_init__(self) -> None:
        fields.text(self.id, "$.batch.id", least=1, most=100)
        keep(self, prices=tuple(fields.whole(one, "$.batch.prices", least=0, most=MOST_MICROS) for one in self.prices))
        fields.hexadecimal(self.key, "$.batch.key", most=200)

    def to_json(self) -> dict[str, Any]:
        """The batch's terms as values for JSON."""
        return {"id": self.id, "prices": list(self.prices), "key": self.key}

    @classmethod
    def from_json(cls, value: object) -> "BatchTerms":
        """The batch's terms of such values, checked; InvalidMessage for anything else."""
        found = fields.members(value, "a batch", ("id", "prices", "key"))
        return cls(found["id"], tuple(fields.listed(found["prices"], "$.batch.prices")), found["key"])


@dataclass(frozen=True)
class Offer:
    """Nothing in it is private. A device believes no number of it: it validates, and counts the cost itself."""

    token: str = field(repr=False)  # 32 hexadecimal digits
    expires: int  # seconds since 1970
    policy: Policy
    candidates: tuple[Candidate, ...] = field(repr=False)  # in the server's order, the publicly best first
    batch: BatchTerms | None = None

    def __post_init__(self) -> None:
        fields.hexadecimal(self.token, "$.token", length=32)
        fields.whole(self.expires, "$.expires", least=0, most=MOST_SECONDS)
        keep(self, candidates=tuple(self.candidates))
        if not isinstance(self.policy, Policy) or not all(isinstance(one, Candidate) for one in self.candidates):
            raise InvalidMessage("an offer has a Policy and a list of Candidates.")
        if not 1 <= len(self.candidates) <= MOST_CANDIDATES or self.policy.m != len(self.candidates):
            raise InvalidMessage(f"an offer has 1 to {MOST_CANDIDATES:,} candidates, as many as its policy says.")
        if len({one.item for one in self.candidates}) < len(self.candidates):
            raise InvalidMessage("an offer names every item once.")
        if any(b.public_score > a.public_score for a, b in pairwise(self.candidates)):
            raise InvalidMessage("the candidates of an offer stand in falling order of their public scores.")
        if self.batch is not None:
            if not isinstance(self.batch, BatchTerms) or len(self.batch.prices) != len(self.candidates):
                raise InvalidMessage("the terms of a batch have one price for each candidate.")
            if self.policy.slots != 1:
                raise InvalidMessage("a report that is shuffled names one item: one slot.")

    @property
    def items(self) -> tuple[str, ...]:
        """The candidates' items, in the order of their public scores."""
        return tuple(one.item for one in self.candidates)

    def group_under(self, applied: Policy) -> str:
        """The group of a shuffled report: a digest of all that its randomiser depends on, and of the policy that was applied."""
        if self.batch is None:
            raise InvalidMessage("only offers of a batch have groups.")
        view = [applied.to_json(), [one.to_json() for one in self.candidates], self.batch.to_json()]
        text = dumps(_in_one_way(view), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return sha256(text.encode()).hexdigest()[:32]

    def to_json(self) -> dict[str, Any]:
        """The offer as values for JSON."""
        return {
            "version": VERSION,
            "token": self.token,
            "expires": self.expires,
            "policy": self.policy.to_json(),
            "candidates": [one.to_json() for one in self.candidates],
            "batch": None if self.batch is None else self.batch.to_json(),
        }

    @classmethod
    def from_json(cls, value: object) -> "Offer":
        """The offer of such values, checked; InvalidMessage for anything else."""
        found = fields.members(value, "an offer", _NAMES)
        fields.whole(found["version"], "$.version", least=VERSION, most=VERSION)
        listed: Sequence[object] = fields.listed(found["candidates"], "$.candidates")
        if len(listed) > MOST_CANDIDATES:
            raise InvalidMessage(f"an offer has at most {MOST_CANDIDATES:,} candidates.")
        return cls(
            found["token"],
            found["expires"],
            Policy.from_json(found["policy"]),
            tuple(Candidate.from_json(one) for one in listed),
            None if found["batch"] is None else BatchTerms.from_json(found["batch"]),
        )


def item_name(value: object, path: str) -> str:
    """The name of an item, as a ledger takes it: what can be offered can be billed."""
    item = fields.text(value, path, least=1, most=MOST_ITEM)
    if not item.isprintable():
        raise InvalidMessage(f"expected a text without line breaks or control characters at {path}.")
    return item


def _in_one_way(value: Any) -> Any:
    """With every float as the digits of its eight bytes: languages write the same number in different ways."""
    if isinstance(value, float):
        return pack(">d", value + 0.0).hex()  # there is one zero
    if isinstance(value, dict):
        return {name: _in_one_way(one) for name, one in value.items()}
    return [_in_one_way(one) for one in value] if isinstance(value, list) else value
