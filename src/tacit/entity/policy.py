"""What an entity agrees to: a manifest that asks for more is refused before anything is drawn."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from tacit.checks import keep, positive, probability, whole
from tacit.errors import GuaranteeRefused, InvalidParameter
from tacit.ledger import Statement
from tacit.ledger.budgets import Cost, cost_to_json
from tacit.messages.federated_prototypes.manifest import Manifest, Member, entity_name, key_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The limits of one run: its cost to a user, the mechanisms, the aggregation, and the number of contributors.

    - ``epsilon``, ``delta``: the most that a run may cost a user. ``mechanisms`` and ``aggregation``: what is allowed. None allows
      everything; the budget in the ledger still holds.
    - ``contributors``: the fewest that a run must have.
    - ``peers``: known entities with their public keys, learnt independently of the coordinator, who writes the roster and could
      fill it with invented entities.
    - ``known``: how many contributors must be peers, this entity included. By default, under secure sums: all but as many as may
      collude, and at least ``fewest``, because the noise of invented entities protects nobody. Without secure sums each entity's
      own noise suffices, and the default is 1.
    """

    epsilon: float | None = None  # nats
    delta: float | None = None  # a probability
    mechanisms: tuple[str, ...] | None = None
    aggregation: str | None = None
    contributors: int = 1
    peers: Mapping[str, str] | None = None
    known: int | None = None

    def __post_init__(self) -> None:
        keep(
            self,
            epsilon=None if self.epsilon is None else positive("the epsilon of a policy", self.epsilon),
            delta=None if self.delta is None else probability("the delta of a policy", self.delta),
            contributors=whole("contributors", self.contributors, least=1),
            peers=None if self.peers is None else _checked_peers(self.peers),
            known=None if self.known is None else whole("known", self.known, least=1),
        )
        if self.known is not None and self.peers is None:
            raise InvalidParameter("`known` needs `peers`: the names and public keys of known entities.")
        if isinstance(self.mechanisms, str):
            raise InvalidParameter("`mechanisms` must be a tuple of names, such as ('moments', 'tree').")

    def knows(self, member: Member, name: str) -> bool:
        """Whether a member of a roster is a peer with the same key, or the entity of this name itself."""
        return member.name == name or (self.peers is not None and self.peers.get(member.name) == member.key)

    def require(self, manifest: Manifest, name: str) -> None:
        """Raises GuaranteeRefused if a manifest asks more of the entity of this name than this policy allows."""
        promised = manifest.guarantee
        if self.epsilon is not None and promised.epsilon > self.epsilon:
            raise GuaranteeRefused(
                f"the run asks for epsilon = {promised.epsilon:g}; this entity allows {self.epsilon:g}."
            )
        if self.delta is not None and promised.delta > self.delta:
            raise GuaranteeRefused(f"the run asks for delta = {promised.delta:g}; this entity allows {self.delta:g}.")
        if self.mechanisms is not None and manifest.mechanism.value not in self.mechanisms:
            raise GuaranteeRefused(f"this entity does not take part in runs of '{manifest.mechanism}'.")
        if self.aggregation is not None and manifest.aggregation not in (None, self.aggregation):
            raise GuaranteeRefused(f"this entity takes part with aggregation '{self.aggregation}' only.")
        if len(manifest.contributors) < self.contributors:
            raise GuaranteeRefused(f"this entity takes part in runs of at least {self.contributors} contributors.")
        if self.peers is not None:
            known = sum(self.knows(member, name) for member in manifest.contributors)
            needed = self.known
            if needed is None:  # at least ``honest`` of those who are left when a sum is unmasked must be real
                left = len(manifest.contributors) - (manifest.colluding or 0)
                needed = max(manifest.fewest or 1, left) if manifest.is_secure else 1
            if known < needed:
                raise GuaranteeRefused(
                    f"{known} of the {len(manifest.contributors)} contributors are peers of this entity, with the keys that it "
                    f"has; it takes part if {needed} are. Ask the others for their keys, and not through the coordinator."
                )


def _checked_peers(peers: object) -> Mapping[str, str]:
    if not isinstance(peers, Mapping):
        raise InvalidParameter(
            "`peers` must be a mapping from the names of entities to their public keys in hexadecimal digits."
        )
    return MappingProxyType({entity_name(name): key_text(key) for name, key in peers.items()})


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a manifest would mean for an entity, for the people who decide.

    ``known``: the members of the roster whose keys this entity has, and itself. ``cost``: what the whole run would be charged.
    ``refusal``: why this entity would not answer, if it would not. ``joined``: whether it has answered already.
    """

    manifest: Manifest
    known: frozenset[str] = field(repr=False)
    cost: Cost
    statement: Statement
    joined: bool
    refusal: str | None

    def to_json(self) -> dict[str, Any]:
        """What `tacit entity show --json` prints."""
        manifest, terms = self.manifest, self.statement.terms
        return {
            "run": manifest.run,
            "title": manifest.title,
            "mechanism": manifest.mechanism.value,
            "aggregation": None if manifest.aggregation is None else manifest.aggregation.value,
            "fewest": manifest.fewest,
            "colluding": manifest.colluding,
            "entities_each": manifest.entities_each,
            "deadline": manifest.deadline,
            "guarantee": manifest.guarantee.to_json(),
            "roster": [{**member.to_json(), "known": member.name in self.known} for member in manifest.roster],
            "warnings": list(manifest.warnings()),
            "cost": cost_to_json(self.cost, terms),
            "windows": self.statement.to_json()["windows"],
            "joined": self.joined,
            "refusal": self.refusal,
        }
