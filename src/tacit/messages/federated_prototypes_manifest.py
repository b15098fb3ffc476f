"""The manifest: all public constants of a run, fixed before any data are read, signed by the coordinator. Its hash is the run's id.

manifest = Manifest(catalogue=..., items=3706, epsilon=1.0, users=600, roster=(Member("north", key), ...), coordinator=key)
"""

from dataclasses import dataclass, field
from dataclasses import fields as fields_of
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from hashlib import sha256
from typing import Any

from tacit.checks import keep, member, positive, whole
from tacit.errors import InvalidMessage, InvalidParameter
from tacit.guarantees import Guarantee
from tacit.messages import fields
from tacit.messages.federated_prototypes_frame import Frame, canonical, sign
from tacit.messages.federated_prototypes_planning import guarantee_of, rhos_of, warnings_of
from tacit.messages.federated_prototypes_roster import Member, checked_roster, key_text
from tacit.messages.federated_prototypes_terms import (
    Aggregation,
    Mechanism,
    Regulariser,
    resolved,
)
from tacit.messages.private_slates_parts import MOST_ITEMS

VERSION = "fp/1"
_MOST_SEED = 2**63 - 1
_MOST_TITLE = 200
_MOMENT = "%Y-%m-%dT%H:%M:%SZ"


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """Fields that a mechanism does not use are None, and stay so. Others left out take the default that their public numbers give.

    ``users`` is the declared order of magnitude of an entity's users, never their number. ``entities_each`` is in how many entities
    one user may be. ``fewest`` is how many contributors must be left when sums are unmasked, ``colluding`` how many of them may
    work with the coordinator, or know their own noise: with 1 or more, no entity counts on its own noise to hide it from itself.
    """

    catalogue: str = field(repr=False)
    items: int
    epsilon: float  # nats
    users: int
    roster: tuple[Member, ...] = field(repr=False)
    coordinator: str = field(repr=False)
    mechanism: Mechanism = Mechanism.MOMENTS
    title: str = ""
    delta: float | None = None  # a probability
    entities_each: int = 1
    seed: int = 0  # of public randomness only: projection, hyperplanes, starts of the factorisation
    deadline: str | None = None
    min_entities: int = 2
    # moments
    part: float | None = None
    aggregation: Aggregation | None = None
    fewest: int | None = None
    colluding: int | None = None
    # prototypes
    k: int | None = None  # how many prototypes: rows of values
    items_each: int | None = None
    value_bound: float | None = None
    l1_bound: float | None = None
    l2_bound: float | None = None
    dimension: int | None = None
    depth: int | None = None
    swaps: int | None = None
    trials: int | None = None
    picked: int | None = None
    shares: tuple[float, ...] | None = None
    lloyd: int | None = None
    # the factorisation of prototypes
    rank: int | None = None  # how many factors
    ridge: float | None = None
    regulariser: Regulariser | None = None
    zeros_observed: bool | None = None
    most_weight: float | None = None

    def __post_init__(self) -> None:
        try:
            fields.hexadecimal(self.catalogue, "catalogue", length=64)
            fields.text(self.title, "title", most=_MOST_TITLE)
        except InvalidMessage as problem:
            raise InvalidParameter(str(problem).partition(": ")[2]) from None
        keep(
            self,
            items=whole("items", self.items, least=1, most=MOST_ITEMS),
            epsilon=positive("epsilon", self.epsilon),
            users=whole("users", self.users, least=1, most=10**9),
            roster=checked_roster(self.roster),
            coordinator=key_text(self.coordinator),
            mechanism=member("mechanism", Mechanism, self.mechanism),
            entities_each=whole("entities_each", self.entities_each, least=1),
            seed=whole("seed", self.seed, least=0, most=_MOST_SEED),
            deadline=None if self.deadline is None else _moment(self.deadline),
        )
        contributors = len(self.contributors)
        if self.entities_each > len(self.roster):
            raise InvalidParameter("entities_each is at most the number of entities in the roster.")
        keep(self, min_entities=whole("min_entities", self.min_entities, least=1, most=max(1, contributors)))
        keep(self, **resolved(self))
        if self.mechanism is Mechanism.MOMENTS:
            rhos_of(self)
        guarantee_of(self)  # both refuse what no ledger could charge

    @cached_property
    def contributors(self) -> tuple[Member, ...]:
        """The members of the roster that send something."""
        return tuple(one for one in self.roster if one.contributes)

    @property
    def is_secure(self) -> bool:
        """Whether the coordinator sees sums only."""
        return self.aggregation is Aggregation.SECURE

    @property
    def honest(self) -> int:
        """So many shares, at least, in a sum that is seen, have noise that nobody who sees it knows."""
        return self.fewest - self.colluding if self.is_secure and self.fewest and self.colluding else 1

    @property
    def needed(self) -> int:
        """So many contributors must be left for the run to go on."""
        return self.min_entities if self.fewest is None else max(self.min_entities, self.fewest)

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages in which contributors reply, in their order; the model comes after them."""
        if self.mechanism is not Mechanism.MOMENTS:
            return ("prototypes",)
        if self.is_secure:
            return ("keys", "shares", "popularity", "unmask-popularity", "gram", "unmask-gram")
        return ("popularity", "gram")

    @cached_property
    def run(self) -> str:
        """The run's id: the hash of this manifest."""
        return sha256(canonical(self.to_json())).hexdigest()

    @cached_property
    def guarantee(self) -> Guarantee:
        """What a user is promised who is in as many entities as the manifest allows, by all that the run releases."""
        return guarantee_of(self)

    @cached_property
    def rhos(self) -> tuple[float, float]:
        """Of the two uploads of 'moments', in the ledger's units: they add up to what (epsilon, delta) allows."""
        return rhos_of(self)

    def warnings(self) -> tuple[str, ...]:
        """What speaks against this run, from its public constants alone; empty where nothing does."""
        return warnings_of(self)

    def member(self, name: str) -> Member | None:
        """The member of that name; None where the roster has none."""
        return self._members.get(name)

    @cached_property
    def _members(self) -> dict[str, Member]:
        return {one.name: one for one in self.roster}

    def to_json(self) -> dict[str, Any]:
        """The manifest as values for JSON."""
        found: dict[str, Any] = {"kind": "manifest", "version": VERSION}
        for one in fields_of(self):
            value = getattr(self, one.name)
            if one.name == "roster":
                value = [entity.to_json() for entity in value]
            elif isinstance(value, StrEnum):
                value = value.value
            found[one.name] = list(value) if isinstance(value, tuple) else value
        return found

    @classmethod
    def from_json(cls, value: object) -> "Manifest":
        """The manifest that ``to_json`` wrote, with everything in it stated; anything else is refused."""
        names = tuple(one.name for one in fields_of(cls))
        found = dict(fields.members(value, "a manifest", ("kind", "version", *names)))
        if (found.pop("kind"), found.pop("version")) != ("manifest", VERSION):
            raise InvalidMessage(f"expected a manifest of the protocol {VERSION}.")
        if found["shares"] is not None:
            found["shares"] = tuple(fields.listed(found["shares"], "$.shares"))
        roster = fields.listed(found["roster"], "$.roster")
        try:
            found["roster"] = tuple(Member.from_json(one) for one in roster)
            manifest = cls(**found)
        except InvalidMessage:
            raise
        except InvalidParameter as problem:
            raise InvalidMessage(f"a manifest that cannot be run: {str(problem).partition(': ')[2]}") from None
        if canonical(manifest.to_json()) != canonical(
            value
        ):  # a default left open, or 1 for 1.0, would be a second hash
            raise InvalidMessage("expected every number of the manifest to be stated, as tacit writes it.")
        return manifest

    def signed(self, key: bytes) -> bytes:
        """The message that opens the run."""
        return sign(key, self.to_json())

    @classmethod
    def from_frame(cls, frame: Frame, coordinator: bytes) -> "Manifest":
        """The manifest in a frame, if this coordinator signed it."""
        frame.verify(coordinator)
        manifest = cls.from_json(frame.header)
        if manifest.coordinator != coordinator.hex() or frame.arrays:
            raise InvalidMessage("the manifest names another coordinator than the one that signed it.")
        return manifest


def _moment(value: object) -> str:
    try:
        if isinstance(value, str) and datetime.strptime(value, _MOMENT).strftime(_MOMENT) == value:
            return value
    except ValueError:
        pass
    raise InvalidParameter("a deadline is written in UTC, as 2026-12-01T12:00:00Z.")
