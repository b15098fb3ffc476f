"""The manifest: all public constants of a run, who takes part, and what the run promises.

A coordinator fixes the manifest before any data are read, and signs it. Its hash is the run's id.

    manifest = Manifest(catalogue=..., items=3706, epsilon=1.0, users=600, roster=(Member("north", key), ...), coordinator=key)
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from typing import Annotated, ClassVar, Self

from msgspec import Meta

from tacit.checks import keep, member, positive, whole
from tacit.errors import InvalidMessage, InvalidParameter
from tacit.guarantees import ONE_USER, Guarantee, Loss, LossKind, epsilon_of_rho, pure, rho_for
from tacit.guarantees.arithmetic import up
from tacit.guarantees.concentrated import UNITS
from tacit.messages import values
from tacit.messages.codec import Form, Message, characters, digits
from tacit.messages.federated_prototypes.frame import KEY_BYTES, Frame, canonical_bytes, sign
from tacit.messages.federated_prototypes.terms import Aggregation, Mechanism, Regulariser, resolve
from tacit.messages.items import MOST_ITEMS, Item, checked_items

VERSION = "fp/1"
PROOF = "composition"
MOST_ENTITIES = 10_000
USERS_EACH = 20  # users for each prototype; below that an entity receives only, because its prototypes would be noise
_MOST_SEED = 2**63 - 1
_MOST_TITLE = 200
_MOMENT = "%Y-%m-%dT%H:%M:%SZ"
_LONGEST = 64
_ENTITY = rf"^[a-z0-9][a-z0-9_.-]{{0,{_LONGEST - 1}}}\Z"  # an entity's name
_ROW = 20  # items of a user, if nothing is known about users


class Role(StrEnum):
    """The part of an entity in a run."""

    CONTRIBUTOR = "contributor"
    RECEIVER = "receiver"  # sends nothing, and gets the model


@dataclass(frozen=True, slots=True)
class Member(Message):
    """An entity: its name, its public key in hexadecimal digits, and its role."""

    form: ClassVar[Form] = Form("a member of the roster")

    name: Annotated[str, Meta(pattern=_ENTITY)]
    key: Annotated[str, digits(2 * KEY_BYTES)]
    role: Role = Role.CONTRIBUTOR

    def __post_init__(self) -> None:
        keep(self, name=entity_name(self.name), key=key_text(self.key), role=member("role", Role, self.role))

    @property
    def contributes(self) -> bool:
        """Whether this entity sends something."""
        return self.role is Role.CONTRIBUTOR


@dataclass(frozen=True, kw_only=True)
class Manifest(Message):
    """The public constants of a run. Fields that the mechanism does not use stay None; others that you leave out get a default.

    - ``users``: the declared order of magnitude of an entity's users, never their number.
    - ``entities_each``: in how many entities one user may be.
    - ``fewest``: how many contributors must be left when sums are unmasked.
    - ``colluding``: how many of them may work with the coordinator, or know their own noise. It is at least 1, because an entity
      knows its own noise.
    """

    form: ClassVar[Form] = Form("a manifest", kind="manifest", version=VERSION)

    catalogue: Annotated[str, digits(64)] = field(repr=False)
    items: int
    epsilon: float  # nats
    users: int
    roster: tuple[Member, ...] = field(repr=False)
    coordinator: str = field(repr=False)
    mechanism: Mechanism = Mechanism.MOMENTS
    title: Annotated[str, characters(most=_MOST_TITLE)] = ""
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
    dimension: int | None = None  # coordinates of a projected row
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
            values.hexadecimal(self.catalogue, "catalogue", length=64)
            values.text(self.title, "title", most=_MOST_TITLE)
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
        constants = {constant.name: getattr(self, constant.name) for constant in fields(self)}
        keep(self, **resolve(constants, tuple(entity.name for entity in self.contributors)))
        if self.mechanism is Mechanism.MOMENTS:
            rhos_of(self)
        guarantee_of(self)  # both refuse what no ledger could charge

    @cached_property
    def contributors(self) -> tuple[Member, ...]:
        """The members of the roster that send something."""
        return tuple(entity for entity in self.roster if entity.contributes)

    @property
    def is_secure(self) -> bool:
        """Whether the coordinator sees sums only."""
        return self.aggregation is Aggregation.SECURE

    @property
    def honest(self) -> int:
        """The least number of shares in a visible sum whose noise is unknown to everybody who sees the sum."""
        return self.fewest - self.colluding if self.is_secure and self.fewest and self.colluding else 1

    @property
    def needed(self) -> int:
        """The number of contributors that the run needs to go on."""
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
        return sha256(canonical_bytes(self.to_json())).hexdigest()

    @cached_property
    def guarantee(self) -> Guarantee:
        """The guarantee of a user who is in as many entities as the manifest allows, for everything that the run releases."""
        return guarantee_of(self)

    @cached_property
    def rhos(self) -> tuple[float, float]:
        """The rho of each upload of 'moments', in the ledger's units. Together they are what (epsilon, delta) allows."""
        return rhos_of(self)

    def warnings(self) -> tuple[str, ...]:
        """Reasons why this run may tell nothing, from its public constants alone; empty if there are none."""
        return warnings_of(self)

    def member(self, name: str) -> Member | None:
        """The member of that name; None if the roster has none."""
        return self._members.get(name)

    @cached_property
    def _members(self) -> dict[str, Member]:
        return {entity.name: entity for entity in self.roster}

    @classmethod
    def from_json(cls, value: object) -> Self:
        """The manifest that ``to_json`` wrote, with every number stated; InvalidMessage for anything else."""
        if isinstance(value, dict) and (value.get("kind"), value.get("version")) != ("manifest", VERSION):
            raise InvalidMessage(f"expected a manifest of the protocol {VERSION}.")
        stated = super().from_json(value)
        try:
            manifest = replace(stated)  # checked, with defaults, as its coordinator constructed it
        except InvalidParameter as problem:
            raise InvalidMessage(f"a manifest that cannot be run: {str(problem).partition(': ')[2]}") from None
        # A default left open, or 1 for 1.0, would give the same run a second hash.
        if canonical_bytes(manifest.to_json()) != canonical_bytes(value):
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


def catalogue_hash(items: Sequence[Item]) -> str:
    """The hash of the common catalogue: the ids of its items, in their order."""
    try:
        return sha256(canonical_bytes(list(checked_items(list(items), least=1, most=MOST_ITEMS)))).hexdigest()
    except InvalidMessage as problem:
        raise InvalidParameter(f"a catalogue lists ids of items: {str(problem).partition(': ')[2]}") from None


def role_for(users: int, k: int) -> Role:
    """The role of an entity in a run of prototypes, by the declared order of magnitude of its users, never by their number.

    ``k`` is the number of prototypes: rows of values.
    """
    enough = whole("users", users, least=1) >= USERS_EACH * whole("k", k, least=1)
    return Role.CONTRIBUTOR if enough else Role.RECEIVER


def checked_roster(roster: object) -> tuple[Member, ...]:
    """``roster`` as a tuple, if its members have different names and keys and at least one contributes."""
    if not isinstance(roster, (tuple, list)) or not all(isinstance(entity, Member) for entity in roster):
        raise InvalidParameter("a roster is a tuple of Members: Member(name, public key in hexadecimal digits).")
    members = tuple(roster)
    if len(members) > MOST_ENTITIES:
        raise InvalidParameter(f"a roster has at most {MOST_ENTITIES:,} members.")
    if min(len({entity.name for entity in members}), len({entity.key for entity in members})) < len(members):
        raise InvalidParameter("every member of a roster has a name and a key of its own.")
    if not any(entity.contributes for entity in members):
        raise InvalidParameter("a roster needs at least one contributor.")
    return members


def entity_name(value: object) -> str:
    """``value``, if it is the name of an entity. It can be part of a file's name as well."""
    if isinstance(value, str) and re.match(_ENTITY, value):
        return value
    raise InvalidParameter(
        f"an entity's name has 1 to {_LONGEST} lower-case letters, digits, hyphens, dots or underscores, the first of them a "
        "letter or digit."
    )


def key_text(value: object) -> str:
    try:
        return values.hexadecimal(value, "a public key", length=2 * KEY_BYTES)
    except InvalidMessage:
        raise InvalidParameter(f"a public key is {2 * KEY_BYTES} hexadecimal digits in lower case.") from None


def rhos_of(manifest: "Manifest") -> tuple[float, float]:
    """The rho of the popularity and that of the Gram matrix, in whole units of 10^-12: together what (epsilon, delta) allows."""
    if manifest.delta is None or manifest.part is None:
        raise InvalidParameter("only 'moments' has two stages.")
    total = math.floor(Fraction(rho_for(manifest.epsilon, manifest.delta)) * UNITS)
    popularity = math.floor(Fraction(manifest.part) * total)
    if not 0 < popularity < total:
        raise InvalidParameter("epsilon is too small for two uploads: raise it, or take a part nearer to 1/2.")
    return popularity / UNITS, (total - popularity) / UNITS


def guarantee_of(manifest: "Manifest") -> Guarantee:
    """The guarantee of one user, for everything that the run releases about them."""
    each, assumes = manifest.entities_each, _assumptions(manifest)
    if manifest.mechanism is Mechanism.GRID or manifest.delta is None:
        return pure(up(Fraction(manifest.epsilon) * each), ONE_USER, proof=PROOF, assumes=assumes)
    # Under one noise a user's q rows move the sum q times as far, and rho grows as the square; else it is added up.
    rho = Fraction(rho_for(manifest.epsilon, manifest.delta)) * (each**2 if manifest.is_secure else each)
    delta = up(Fraction(manifest.delta) * each)
    if not delta < 1.0:
        raise InvalidParameter("entities_each times delta must stay below 1.")
    epsilon = manifest.epsilon if each == 1 else epsilon_of_rho(up(rho), delta)
    return Guarantee(epsilon, ONE_USER, delta=delta, assumes=assumes, proof=PROOF, loss=Loss(LossKind.ZCDP, up(rho)))


def warnings_of(manifest: "Manifest") -> tuple[str, ...]:
    return tuple(_moments(manifest) if manifest.mechanism is Mechanism.MOMENTS else _prototypes(manifest))


def _assumptions(manifest: "Manifest") -> frozenset[str]:
    each = manifest.entities_each
    assumptions = {"no user is in two entities" if each == 1 else f"no user is in more than {each} entities"}
    if manifest.honest > 1:
        assumptions |= {
            "only the sum of the shares is seen",
            f"at least {manifest.honest} shares in it have noise that the adversary does not know",
        }
    return frozenset(assumptions)


def _moments(manifest: "Manifest") -> list[str]:
    """A warning if no head of items can stand out: ``needed`` items must each have a popularity above three sds of the noise.

    The entries of a unit row on n items add up to at most sqrt(n), so the least popular of ``needed`` items has at most
    users / sqrt(needed), if all users had just these. With fewer than 20 needed, users are taken to have 20 items each.
    """
    contributors = len(manifest.contributors)
    sd = math.sqrt(contributors / manifest.honest / (2.0 * rhos_of(manifest)[0]))
    needed = 10 + 0.004 * manifest.items
    if needed > manifest.items:
        return [f"with {manifest.items} items no head can be found: 'moments' needs {math.ceil(needed)} or more."]
    most = contributors * manifest.users / math.sqrt(max(_ROW, needed))
    if most > 3.0 * sd:
        return []
    enough = math.ceil(manifest.users * 3.0 * sd / most)
    remedy = "" if manifest.is_secure else ", take secure sums"
    return [
        f"no information at this budget: {math.ceil(needed)} items would need a popularity above {3.0 * sd:.3g} each, and "
        f"{contributors} entities of about {manifest.users:,} users could give them {most:.3g} each, if everybody had them all. "
        f"Raise epsilon{remedy}, or find more users: several times {enough:,} in each entity."
    ]


def _prototypes(manifest: "Manifest") -> list[str]:
    """Warnings if a cluster's mean column sum does not exceed the scale of its noise: (users / k) mean value >> B1 / epsilon."""
    k, each, bound = manifest.k or 1, manifest.items_each or 1, manifest.value_bound or 1.0
    row = min(each * bound, manifest.l1_bound or math.inf)
    part = manifest.shares[4] if manifest.shares is not None else 0.5
    noise = row / (manifest.epsilon * part)
    if manifest.mechanism is Mechanism.TREE and manifest.delta is not None:
        radius = min(bound * math.sqrt(each), manifest.l2_bound or math.inf)
        noise = math.sqrt(2.0) * radius / math.sqrt(rho_for(manifest.epsilon, manifest.delta) / 2.0)
    warnings = []
    signal = manifest.users / k * row / manifest.items
    if signal <= noise:
        warnings.append(
            f"no information at this budget: about {manifest.users / k:,.0f} users for each prototype have column sums of "
            f"{signal:.3g} at most on average, and their noise is {noise:.3g}. Raise epsilon, lower k or the bounds of a row."
        )
    if manifest.users < USERS_EACH * k:
        warnings.append(
            f"entities of about {manifest.users:,} users are too small to contribute {k} prototypes ({USERS_EACH} users for each): "
            "give them the role of a receiver, or lower k."
        )
    return warnings


def _moment(value: object) -> str:
    try:
        if isinstance(value, str) and datetime.strptime(value, _MOMENT).strftime(_MOMENT) == value:
            return value
    except ValueError:
        pass
    raise InvalidParameter("a deadline is written in UTC, as 2026-12-01T12:00:00Z.")
