"""A curator's account in its ledger: one subject for all users of some ratings."""

import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.data.catalogue import Catalogue
from tacit.errors import InvalidGuarantee, InvalidMessage, InvalidParameter
from tacit.guarantees import Guarantee, Release
from tacit.ledger import Accounting, Budget, Head, PrivacyLedger
from tacit.ledger.account import Account, Encoding, OtherRequest, Proposal, Wording, known_terms
from tacit.ledger.chain import Clock, checked_name
from tacit.ledger.privacy import MOST_BYTES
from tacit.ledger.stores import Target
from tacit.mechanisms import NaturalSlate, Noise
from tacit.mechanisms.noise import promised
from tacit.messages.items import MOST_ITEMS, checked_items

PUBLISHED = "published"
OF_TWO_DOMAINS = ("moments", "prs_valid")  # the first words of release ids of two domains that the ledger keeps
NAMED_AFTER_DATA = "users of "  # the first words of subjects named after their data
_LONGEST_ID = 100  # characters of a request_id: it is a part of a name in the ledger
_SALT = 32  # characters
_NUMBER = 18  # most bytes of a released number: 2^53 has 16 digits; a sign, a comma
_FRAME = 2_000  # most bytes besides ids, numbers and the guarantee: digests, names of members, a step
_NOTHING = b"null"  # kept after a failed draw
_NAMED = 5  # subjects that an error names
_LOOKED_AT = 1000  # subjects at most: a ledger may hold millions of people

T = TypeVar("T")


class JsonMessage(Protocol):
    """A message that can be written as JSON."""

    def to_json(self) -> dict[str, Any]:
        """The message as a JSON object."""


class RequestDigest(NamedTuple):
    """What was asked for: a digest of the public parameters, and the requester's own weights.

    The ledger keeps the weights as a salted digest, so that an id used again by another person does not give away what was drawn
    for the first one. Someone who reads the ledger can at most try out what may have been asked.
    """

    digest: str
    weights: bytes = b""


@dataclass(frozen=True, slots=True)
class ReleaseKind:
    """The kind of releases that an account is kept for.

    ``reasons`` maps a name to the list of reasons it stands for in `unprotected`. ``concentrated`` chooses the accounting of
    budgets with a delta (see `Proposal`). With ``late`` terms are agreed with the first charge, if it fits, and a new subject
    in a ledger that has others must be named.
    """

    budget: Budget
    wording: Wording
    concentrated: bool
    reasons: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    late: bool = False


class CuratorAccount(Account[RequestDigest, Any]):
    """An account whose releases are JSON messages. It states the guarantee of the curator's noise before anything is charged."""

    noise: Noise

    @classmethod
    def open(
        cls,
        ledger: Target | PrivacyLedger,
        subject: str,
        kind: ReleaseKind,
        *,
        budget: Budget | Sequence[Budget] | None,
        accounting: Accounting | str | None,
        unprotected: Collection[str],
        named: bool,
        head: Head | None,
        noise: Noise,
        clock: Clock,
    ) -> Self:
        """The account of the users of some ratings; ``named`` says that the caller chose the subject's name."""
        if not isinstance(unprotected, str):  # the proposal refuses a single text
            unprotected = [reason for name in unprotected for reason in kind.reasons.get(name, (name,))]
        require = require_named if kind.late else require_unrelated
        account = cls.agree(
            ledger,
            subject,
            Proposal(kind.budget, budget, accounting, unprotected, kind.concentrated),
            wording=kind.wording,
            encoding=_JSON,
            clock=clock,
            head=head,
            at_first_charge=kind.late,
            require_new=None if named else lambda opened: require(opened, subject),
        )
        account.noise = noise
        return account

    def promise(self, guarantee: Guarantee, assumptions: tuple[str, ...]) -> Guarantee:
        """The guarantee that a release will carry with this account's noise. It is charged before anything is drawn."""
        stated = guarantee if guarantee.promises_nothing else guarantee.assuming(*assumptions)
        return promised(stated, self.noise)

    def release_message(
        self,
        release_id: str,
        asked: RequestDigest,
        guarantee: Guarantee,
        *,
        draw: Callable[[], Release[T]],
        message: Callable[[Release[T]], JsonMessage],
    ) -> Any:
        """Charges and draws a release, and keeps it as a message; or finds the kept one. Returns the message's JSON, as read."""

        def content() -> bytes:
            return self.pack(message(self.restate(draw(), guarantee)).to_json())

        return self.release(release_id, asked, guarantee, content)

    def restate(self, release: Release[T], charged: Guarantee) -> Release[T]:
        """The release under the guarantee that was charged.

        A release that promises less is a bug of the program: it raises InvalidParameter, and nothing leaves.
        """
        try:
            return release.under(charged)
        except InvalidGuarantee:
            raise InvalidParameter("a release promises less than was charged for it: it is not sent.") from None

    def require_room(self, id_bytes: NDArray[np.int64], named: int, numbers: int, guarantee: Guarantee) -> None:
        """Refuses a message of ``named`` ids and ``numbers`` numbers if it may be too long to keep. Call it before the charge."""
        most = int(id_bytes[-named:].sum()) + _NUMBER * numbers + self._frame(guarantee)
        if named > MOST_ITEMS or most > MOST_BYTES:
            raise InvalidParameter(
                f"a message of {named:,} of these items may be longer than what is sent and kept ({MOST_ITEMS:,} items, "
                f"{MOST_BYTES:,} bytes): name a public part of them in `among`, or give them shorter ids."
            )

    def require_size(self, most: int, guarantee: Guarantee) -> None:
        """Refuses a message if ``most`` bytes and its guarantee may be too long to keep. Call it before the charge."""
        if most + self._frame(guarantee) > MOST_BYTES:
            raise InvalidParameter(
                f"a release of so many items may be longer than what a ledger keeps ({MOST_BYTES:,} bytes): leave items out of "
                "the catalogues, or give them shorter ids."
            )

    def _frame(self, guarantee: Guarantee) -> int:
        return len(self.pack(guarantee.to_json())) + _FRAME

    def digest(self, *parts: object) -> str:
        """A digest of public parameters; the ledger must not show what a person asked for."""
        return sha256("\n".join(map(repr, parts)).encode()).hexdigest()

    def pack(self, message: dict[str, Any]) -> bytes:
        """A message as compact JSON."""
        return json.dumps(message, separators=(",", ":"), allow_nan=False).encode()


def require_ids(catalogue: Catalogue, items: str) -> None:
    """Raises now for ids of ``items`` that messages would refuse after the draw: that error would reveal what was drawn."""
    try:
        checked_items(catalogue.ids.tolist(), most=len(catalogue))
    except InvalidMessage:
        raise InvalidParameter(
            f"the ids of {items} must be whole numbers from -2^53 to 2^53, or texts of 1 to 200 characters, for messages to carry "
            "them: give the catalogue shorter ids."
        ) from None


def checked_id(request_id: str) -> str:
    """``request_id``, if a ledger can keep a release under it."""
    return checked_name("a request_id", request_id, _LONGEST_ID)


def require_named(ledger: PrivacyLedger, subject: str) -> None:
    """Refuses a new subject named after its data in a ledger that has others.

    After a file was renamed they would be the same people, with a second budget. Other subjects may be names of persons, and are
    not shown.
    """
    names = list(islice(ledger.subjects(), _LOOKED_AT))
    if names and known_terms(ledger, subject) is None:  # in this order: another process may just have enrolled it
        known = [repr(name) for name in names if name.startswith(NAMED_AFTER_DATA)]
        others = ", ".join(known[:_NAMED]) or "others"
        if known and (len(known) > _NAMED or len(known) < len(names)):
            others += " and others"
        raise InvalidParameter(
            f"this ledger does not know {subject!r}, a name made from the files or data sets. It knows {others}. "
            "The same people must have the same name, or they get a second budget: name them with subject='...', on the command "
            "line --subject NAME. Use a new name only if the ledger knows none of these people."
        )


def require_unrelated(ledger: PrivacyLedger, subject: str) -> None:
    """Refuses a new subject named after its data, if the ledger keeps releases of two domains and its data set is one of them.

    The name alone does not tell: "rock and roll" may be one data set.
    """
    data = subject.removeprefix(NAMED_AFTER_DATA)
    for known in list(ledger.subjects()):
        pair = known.removeprefix(NAMED_AFTER_DATA)
        if pair == known or not (pair.startswith(f"{data} and ") or pair.endswith(f" and {data}")):
            continue
        with closing(ledger.stored(known)) as kept:
            of_two = any(stored.release_id.split(" ")[0] in OF_TWO_DOMAINS for stored in kept)
        if of_two:
            raise InvalidParameter(
                f"this ledger knows {known!r}, and {data!r} is one of these two domains: its people would get a second budget. "
                f"Give them the same name, subject={known!r}; or another name, if the ledger knows none of these people."
            )


def _pack(asked: RequestDigest, drawn: bytes | None) -> bytes:
    salt = os.urandom(16).hex()
    return f"{asked.digest}\n{salt}{_seal(salt, asked.weights)}\n".encode() + (_NOTHING if drawn is None else drawn)


def _unpack(kept: bytes, asked: RequestDigest) -> Any:
    digest, seal, message = kept.decode().split("\n", 2)
    content = json.loads(message)
    if digest != asked.digest or seal[_SALT:] != _seal(seal[:_SALT], asked.weights):
        raise OtherRequest
    return content


def _seal(salt: str, weights: bytes) -> str:
    return sha256(salt.encode() + weights).hexdigest()


_JSON = Encoding(_pack, _unpack)


def wording(release: str, retry: str = "") -> Wording:
    """The words for releases of this name; ``retry`` is added to what to do after a failed draw."""
    return Wording(
        release,
        release_id="request_id",
        data="ratings",
        reused=f"this request_id was used before, for a {release} of another kind or for another request. A new {release} needs a "
        "new id.",
        retry=f"ask with a new one{retry}",
    )


SLATES = ReleaseKind(
    Budget(epsilon=1.0),
    wording("slate", " (counts or a kernel: with another epsilon, or by popularity or similarity with a request_id)"),
    concentrated=True,
    reasons={PUBLISHED: tuple(NaturalSlate.published(2, 1, 1.0).guarantee.assumes)},
)
