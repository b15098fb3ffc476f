"""A situation: what has to be known before anybody can say which system fits. All of it is public."""

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from tacit.checks import keep, member, positive, probability, whole
from tacit.errors import InvalidParameter
from tacit.messages.federated_prototypes.manifest import MOST_ENTITIES

MOST = 10**12


class Holder(StrEnum):
    """Who holds the raw data: each user's own device, several organisations each for its own users, or one trusted party."""

    DEVICE = "device"
    ENTITY = "entity"
    CURATOR = "curator"


class Wants(StrEnum):
    ITEM = "item"  # for one user, by her own taste
    SLATE = "slate"  # several items that differ, shown as they are


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """``epsilon`` (nats) and ``delta`` are all that one user may lose in a period; ``releases`` is how often something is asked for
    in it: answers to one device, impressions, slates, or models. ``delta`` is a probability, 0 where none is allowed.

    ``users`` is the whole population and ``items`` the whole catalogue, both to an order of magnitude: public figures, never
    counted. ``entities`` is how many organisations share the users, where entities hold the data.
    """

    holder: Holder
    epsilon: float
    users: int
    items: int
    releases: int = 1
    server_sees_choice: bool = False  # it must see, count or bill what was shown
    two_domains: bool = False  # tastes are known in one domain and wanted in another
    wants: Wants = Wants.ITEM
    entities: int | None = None
    delta: float = 1e-6

    def __post_init__(self) -> None:
        holder, delta = member("holder", Holder, self.holder), self.delta
        keep(
            self,
            holder=holder,
            wants=member("wants", Wants, self.wants),
            epsilon=positive("epsilon", self.epsilon),
            delta=0.0 if type(delta) in (int, float) and delta == 0 else probability("delta", delta),
            users=whole("users", self.users, least=1, most=MOST),
            items=whole("items", self.items, least=1, most=MOST),
            releases=whole("releases", self.releases, least=1, most=MOST),
        )
        for name in ("server_sees_choice", "two_domains"):
            if type(getattr(self, name)) is not bool:
                raise InvalidParameter(f"{name} must be True or False.")
        if (holder is Holder.ENTITY) != (self.entities is not None):
            raise InvalidParameter(
                "entities says how many organisations there are: it belongs to holder='entity', and only there."
            )
        if self.entities is not None:
            keep(self, entities=whole("entities", self.entities, least=1, most=min(MOST_ENTITIES, self.users)))

    @property
    def users_each(self) -> int:
        """The users of one entity, or all of them where nobody shares them."""
        return self.users // (self.entities or 1)

    def to_json(self) -> dict[str, Any]:
        """The question as JSON."""
        return {one.name: _plain(getattr(self, one.name)) for one in fields(self)}


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, StrEnum) else value
