"""What leaves a device in private selection: the items that were shown, exactly; or a shuffled report; or a randomised click."""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from tacit.checks import keep
from tacit.errors import InvalidMessage
from tacit.guarantees import Release
from tacit.messages import fields
from tacit.messages.private_selection_offer import Offer, item_name
from tacit.messages.private_selection_policy import MOST_SLOTS

VERSION = 1
MOST_REPORTS = 10**6


@dataclass(frozen=True, slots=True)
class Impression:
    """These items of the offer with this token were shown, one in each slot. No score, rank, probability or time is in it."""

    token: str = field(repr=False)
    items: tuple[str, ...] = field(repr=False)

    def __post_init__(self) -> None:
        fields.hexadecimal(self.token, "$.token", length=32)
        if not isinstance(self.items, (tuple, list)):
            raise InvalidMessage("the items of an impression are a tuple of texts; of one item, (item,).")
        listed = fields.listed(list(self.items), "$.items")
        if not 1 <= len(listed) <= MOST_SLOTS:
            raise InvalidMessage(f"an impression has 1 to {MOST_SLOTS} items.")
        keep(self, items=tuple(item_name(item, "$.items") for item in listed))
        if len(set(self.items)) < len(self.items):
            raise InvalidMessage("an impression names every item once.")

    @classmethod
    def from_release(cls, release: Release[tuple[int, ...]], offer: Offer) -> "Impression":
        """The message of a release (places of candidates), and of nothing else."""
        return cls(offer.token, tuple(offer.candidates[place].item for place in release.value))

    def to_json(self) -> dict[str, Any]:
        """The impression as values for JSON."""
        return {"version": VERSION, "token": self.token, "items": list(self.items)}

    @classmethod
    def from_json(cls, value: object) -> "Impression":
        """The impression of such values, checked; InvalidMessage for anything else."""
        found = fields.members(value, "an impression", ("version", "token", "items"))
        fields.whole(found["version"], "$.version", least=VERSION, most=VERSION)
        return cls(found["token"], tuple(fields.listed(found["items"], "$.items")))


@dataclass(frozen=True, slots=True)
class ShuffledReport:
    """Item, batch and group, and a token that makes it count once. Nothing of it leads back to the offer if the token is blind."""

    batch: str
    group: str
    item: str = field(repr=False)
    token: str = field(repr=False)  # in hexadecimal digits

    def __post_init__(self) -> None:
        fields.text(self.batch, "$.batch", least=1, most=100)
        fields.hexadecimal(self.group, "$.group", length=32)
        item_name(self.item, "$.item")
        fields.hexadecimal(self.token, "$.token", least=32, most=400)

    def to_json(self) -> dict[str, Any]:
        """The report as values for JSON."""
        return {"version": VERSION, "batch": self.batch, "group": self.group, "item": self.item, "token": self.token}

    @classmethod
    def from_json(cls, value: object) -> "ShuffledReport":
        """The report of such values, checked; InvalidMessage for anything else."""
        found = fields.members(value, "a shuffled report", ("version", "batch", "group", "item", "token"))
        fields.whole(found["version"], "$.version", least=VERSION, most=VERSION)
        return cls(found["batch"], found["group"], found["item"], found["token"])


@dataclass(frozen=True, slots=True)
class Batch:
    """All reports of one group, in the order of their tokens: an order that says nothing about who sent them or when."""

    id: str
    group: str
    reports: tuple[tuple[str, str], ...] = field(repr=False)  # (token, item), ascending

    def __post_init__(self) -> None:
        fields.text(self.id, "$.id", least=1, most=100)
        fields.hexadecimal(self.group, "$.group", length=32)
        keep(self, reports=tuple((token, item) for token, item in self.reports))
        if len(self.reports) > MOST_REPORTS:
            raise InvalidMessage(f"a batch has at most {MOST_REPORTS:,} reports.")
        for token, item in self.reports:
            fields.hexadecimal(token, "$.reports.token", least=32, most=400)
            item_name(item, "$.reports.item")
        tokens = [token for token, _ in self.reports]
        if any(second <= first for first, second in pairwise(tokens)):
            raise InvalidMessage("the reports of a batch stand in rising order of their tokens, each token once.")

    def to_json(self) -> dict[str, Any]:
        """The batch as values for JSON."""
        reports = [{"item": item, "token": token} for token, item in self.reports]
        return {"version": VERSION, "id": self.id, "group": self.group, "reports": reports}

    @classmethod
    def from_json(cls, value: object) -> "Batch":
        """The batch of such values, checked; InvalidMessage for anything else."""
        found = fields.members(value, "a batch", ("version", "id", "group", "reports"))
        fields.whole(found["version"], "$.version", least=VERSION, most=VERSION)
        rows = [
            fields.members(row, "a report", ("item", "token")) for row in fields.listed(found["reports"], "$.reports")
        ]
        return cls(found["id"], found["group"], tuple((row["token"], row["item"]) for row in rows))


@dataclass(frozen=True, slots=True)
class Engagement:
    """Whether what was shown for this token was clicked, as a bit that was flipped by chance on the device. Made from a release.

    ``epsilon`` is public, and says how often it is flipped: whoever counts bits of another epsilon as his own counts wrongly.
    """

    token: str = field(repr=False)
    bit: int
    epsilon: float  # nats

    def __post_init__(self) -> None:
        fields.hexadecimal(self.token, "$.token", length=32)
        fields.whole(self.bit, "$.bit", least=0, most=1)
        keep(self, epsilon=fields.real(self.epsilon, "$.epsilon"))
        if not self.epsilon > 0.0:
            raise InvalidMessage("the epsilon of an engagement lies above 0.")

    @classmethod
    def from_release(cls, release: Release[int], token: str, epsilon: float) -> "Engagement":
        """The message of a release at ``epsilon``, which only a release that promises nothing does not name itself.

        ``epsilon`` is in nats.
        """
        if not release.guarantee.promises_nothing and release.guarantee.epsilon != epsilon:
            raise InvalidMessage("the epsilon of an engagement is that of its release.")
        return cls(token, release.value, epsilon)

    def to_json(self) -> dict[str, Any]:
        """The report as values for JSON."""
        return {"version": VERSION, "token": self.token, "bit": self.bit, "epsilon": self.epsilon}

    @classmethod
    def from_json(cls, value: object) -> "Engagement":
        """The report of such values, checked; InvalidMessage for anything else."""
        found = fields.members(value, "an engagement", ("version", "token", "bit", "epsilon"))
        fields.whole(found["version"], "$.version", least=VERSION, most=VERSION)
        return cls(found["token"], found["bit"], fields.real(found["epsilon"], "$.epsilon"))
