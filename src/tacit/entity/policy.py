"""What an entity agrees to, whoever asks: a manifest that asks for more is refused before anything is drawn."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tacit.checks import keep, positive, probability, whole
from tacit.errors import GuaranteeRefused, InvalidParameter
from tacit.messages.federated_prototypes_manifest import Manifest
from tacit.messages.federated_prototypes_roster import Member, entity_name, key_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The most that one run may promise to cost a user (``epsilon``, ``delta``); the ``mechanisms`` and the ``aggregation`` that
    are allowed; how many contributors there must be. None allows everything: the budget in the ledger still holds.

    ``peers`` are the entities that are known, with their public keys, learnt by a way that is not the coordinator's: it writes the
    roster, and could fill it with entities of its own. At least ``known`` contributors must be among them, this entity counted.
    Without a number, under secure sums: all but as many as may collude, and ``fewest`` at least, as the noise of the others counts
    for nothing if they were invented. Without secure sums each entity's noise suffices, and a number must be said to matter.
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
            peers=None if self.peers is None else _pinned(self.peers),
            known=None if self.known is None else whole("known", self.known, least=1),
        )
        if self.known is not None and self.peers is None:
            raise InvalidParameter("a number of known contributors needs `peers`: their names and public keys.")
        if isinstance(self.mechanisms, str):
            raise InvalidParameter("mechanisms are a tuple of names, such as ('moments', 'tree').")

    def knows(self, one: Member, name: str) -> bool:
        """Whether a member of a roster is one of the peers, with the same key, or the entity of this name itself."""
        return one.name == name or (self.peers is not None and self.peers.get(one.name) == one.key)

    def require(self, manifest: Manifest, name: str) -> None:
        """Refuses to the entity of this name a manifest that goes beyond this policy. Only public numbers are looked at."""
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
            raise GuaranteeRefused(f"this entity takes part where there are {self.contributors} contributors or more.")
        if self.peers is not None:
            known = sum(self.knows(one, name) for one in manifest.contributors)
            needed = _needed(manifest) if self.known is None else self.known
            if known < needed:
                raise GuaranteeRefused(
                    f"{known} of the {len(manifest.contributors)} contributors are peers of this entity, with the keys that it "
                    f"has; it takes part where {needed} are. Ask the others for their keys, by a way that is not the coordinator's."
                )


def _needed(manifest: Manifest) -> int:
    """Whoever is left when a sum is unmasked, at least ``honest`` of them must be real."""
    if not manifest.is_secure:
        return 1
    return max(manifest.fewest or 1, len(manifest.contributors) - (manifest.colluding or 0))


def _pinned(peers: object) -> Mapping[str, str]:
    if not isinstance(peers, Mapping):
        raise InvalidParameter(
            "peers are a mapping from the names of entities to their public keys in hexadecimal digits."
        )
    return MappingProxyType({entity_name(name): key_text(key) for name, key in peers.items()})
