"""One entity's side of secure sums: it masks its uploads, and helps to unmask one total of each, never more.

    party = SecureParty.start(session, "north", key)      # draws all secrets; session: tacit.models.secure_sum.SumSession
    party.keys_message                                    # -> coordinator
    party.shares_message(keys)                            # {entity: its `keys` message} -> a sealed parcel for each -> coordinator
    party.receive(parcels)                                # the parcels for this entity, by sender: fixes who masks with whom
    party.masked(vector, "popularity")                    # whole numbers of 64 bits -> coordinator
    party.unmask(survivors, "popularity")                 # -> coordinator; one set of survivors for each upload, ever

Every step returns the same bytes when it is asked again in the same way, and raises Conflict when it is asked in another way. Write
`to_bytes()` to disk BEFORE a message leaves: an entity that forgets what it answered can be made to answer twice. The state holds
secrets: protect it as you protect the rows, and delete it after the run.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import Conflict, InvalidData, InvalidMessage, InvalidParameter
from tacit.messages.federated_prototypes.frame import public_of as signing_public
from tacit.messages.federated_prototypes.secure_sum import MaskedUpload, PublicKeys, SealedShares, UnmaskingShares
from tacit.models.secure_sum import (
    KEY,
    SEED,
    SHARE_BYTES,
    SumSession,
    add_own_mask,
    add_pair_mask,
    new_private,
    open_parcel,
    parcel_context,
    parcel_key,
    public_of,
    seal,
    seed_commitment,
    share_commitment,
    split,
)

_VERSION = "secure-party/1"
_NAMES = {"me", "sealing", "masking", "seeds", "peers", "sent_shares", "held", "uploaded", "answered"}


@dataclass(repr=False, eq=False)
class SecureParty:
    """The state of one entity in one run. All of it is secret."""

    session: SumSession
    me: str
    key: bytes  # of signatures
    sealing: bytes  # private keys of X25519, and seeds
    masking: tuple[bytes, ...]
    seeds: tuple[bytes, ...]
    peers: dict[str, PublicKeys] = field(default_factory=dict)  # all that take part, this entity too
    sent_shares: bytes = b""
    held: dict[str, bytes] = field(default_factory=dict)  # by dealer: its shares for this entity
    uploaded: dict[str, str] = field(default_factory=dict)  # by upload: the hash of what was masked
    answered: dict[str, tuple[str, ...]] = field(default_factory=dict)  # by upload: the survivors

    def __post_init__(self) -> None:
        if self.session.roster.get(self.me) != signing_public(self.key):
            raise InvalidParameter(
                "the roster has another key for this entity: check its name, and the key it signs with."
            )

    @classmethod
    def start(cls, session: SumSession, me: str, key: bytes) -> "SecureParty":
        """Draws the secrets of a run. Call it once per run, and keep the state."""
        uploads = range(len(session.uploads))
        return cls(
            session,
            me,
            key,
            new_private(),
            tuple(new_private() for _ in uploads),
            tuple(new_private() for _ in uploads),
        )

    @property
    def keys_message(self) -> bytes:
        """The signed message with this entity's public keys and commitments."""
        return self._keys().signed(self.session, self.key)

    def shares_message(self, keys: Mapping[str, bytes]) -> bytes:
        """A sealed parcel for each sender of these `keys` messages, this entity among them. Fixes who takes part."""
        peers = {name: PublicKeys.read(self.session, keys[name]) for name in sorted(keys)}
        if any(read.entity != name for name, read in peers.items()):
            raise InvalidMessage("keys are passed on under another name than their owner's.")
        self._check_set(peers, self.session.names, "keys")
        if peers[self.me] != self._keys():
            raise InvalidMessage("the keys that came back as this entity's are not those that it sent.")
        if self.peers:
            return self._again(peers == self.peers, self.sent_shares, "keys")
        parcels = self._parcels(peers)
        self.peers, self.sent_shares = peers, SealedShares(self.me, parcels).signed(self.session, self.key)
        return self.sent_shares

    def receive(self, parcels: Mapping[str, bytes]) -> None:
        """Opens the parcels for this entity. Fixes who has shared, and with whom this entity masks."""
        self._check_set(parcels, self.peers, "shares")
        held = {dealer: self._open(dealer, parcels[dealer]) for dealer in sorted(parcels)}
        if self.held:
            self._again(held == self.held, b"", "shares")
        self.held = held

    def masked(self, vector: NDArray[Any], upload: str) -> bytes:
        """One upload, under a mask of its own and a mask with every other entity that has shared. Does not change the vector."""
        index = self.session.check_upload(upload)
        if not self.held:
            raise InvalidParameter("receive the shares of the others first: they determine with whom to mask.")
        values = np.array(vector)
        if values.ndim != 1 or values.dtype not in (np.dtype(np.int64), np.dtype(np.uint64)):
            raise InvalidParameter("an upload is a vector of whole numbers of 64 bits.")
        values = values.view(np.uint64)
        content = sha256(values.astype("<u8").tobytes()).hexdigest()
        if self.uploaded.get(upload, content) != content:  # two vectors under one mask show their difference
            raise Conflict("another vector was masked for this upload before: masks are used once.")
        add_own_mask(self.session, values, upload, self.me, self.seeds[index])
        for name in self.held:
            if name != self.me:
                public = self.peers[name].masking[index]
                add_pair_mask(self.session, values, upload, self.me, name, self.masking[index], public)
        self.uploaded[upload] = content
        return MaskedUpload(self.me, upload, values).signed(self.session, self.key, self.held)

    def unmask(self, survivors: Iterable[str], upload: str) -> bytes:
        """A share of every survivor's seed, and a share of the masking key of each other entity that shared: never both of one."""
        index = self.session.check_upload(upload)
        names = tuple(survivors)
        if len(set(names)) < len(names):
            raise InvalidMessage("a survivor is named twice.")
        self._check_set(names, self.held, "survivors")
        if upload not in self.uploaded:
            raise InvalidMessage("this entity cannot be among the survivors of an upload that it has not sent.")
        names = tuple(sorted(names))
        if self.answered.get(upload, names) != names:
            raise Conflict(
                "other survivors were answered for this upload before: a second answer could unmask a single entity."
            )
        self.answered[upload] = names
        shares = {dealer: self._share(dealer, index, SEED if dealer in names else KEY) for dealer in self.held}
        return UnmaskingShares(self.me, upload, shares).signed(self.session, self.key, names)

    def to_bytes(self) -> bytes:
        """The state with its secrets, without what the caller has: session and key of signatures. For this entity's disk only."""
        state = {
            "version": _VERSION,
            "run": self.session.run,
            "me": self.me,
            "sealing": self.sealing.hex(),
            "masking": [key.hex() for key in self.masking],
            "seeds": [seed.hex() for seed in self.seeds],
            "peers": [
                [
                    peer.entity,
                    peer.sealing.hex(),
                    [key.hex() for key in peer.masking],
                    [key.hex() for key in peer.commitments],
                ]
                for peer in self.peers.values()
            ],
            "sent_shares": self.sent_shares.hex(),
            "held": {name: shares.hex() for name, shares in self.held.items()},
            "uploaded": self.uploaded,
            "answered": {upload: list(names) for upload, names in self.answered.items()},
        }
        return json.dumps(state, sort_keys=True).encode()

    @classmethod
    def from_bytes(cls, data: bytes, session: SumSession, key: bytes) -> "SecureParty":
        """The state that ``to_bytes`` wrote, of the same run and the same entity."""
        return cls(session, key=key, **_read_state(data, session))

    def __repr__(self) -> str:
        return f"SecureParty({self.me!r}, ...)"

    def _keys(self) -> PublicKeys:
        uploads = zip(self.session.uploads, self.seeds, strict=True)
        commitments = tuple(seed_commitment(self.session, upload, self.me, seed) for upload, seed in uploads)
        return PublicKeys(
            self.me, public_of(self.sealing), tuple(public_of(private) for private in self.masking), commitments
        )

    def _parcels(self, peers: Mapping[str, PublicKeys]) -> dict[str, bytes]:
        plan = self.session.plan
        # in the order that `_share` reads
        secrets = [secret for pair in zip(self.seeds, self.masking, strict=True) for secret in pair]
        dealt = [split(secret, plan.threshold, len(plan.names)) for secret in secrets]
        parcels = {}
        for holder, keys in peers.items():
            shares = [shares[plan.index(holder) - 1] for shares in dealt]
            commitments = self._commitments(self.me, holder, b"".join(shares))
            secret = parcel_key(self.session, self.sealing, keys.sealing, self.me, holder)
            context = parcel_context(self.session, self.me, holder, commitments)
            parcels[holder] = commitments + seal(secret, b"".join(shares), context)
        return parcels

    def _open(self, dealer: str, parcel: bytes) -> bytes:
        if len(parcel) != self.session.parcel_bytes:
            raise InvalidMessage("a parcel has the wrong length.")
        commitments, sealed = parcel[: self.session.commitments_bytes], parcel[self.session.commitments_bytes :]
        secret = parcel_key(self.session, self.sealing, self.peers[dealer].sealing, dealer, self.me)
        shares = open_parcel(secret, sealed, parcel_context(self.session, dealer, self.me, commitments))
        if commitments != self._commitments(dealer, self.me, shares):
            raise InvalidMessage(f"the shares of {dealer} are not those that it is committed to.")
        return shares

    def _commitments(self, dealer: str, holder: str, shares: bytes) -> bytes:
        kinds = [(upload, kind) for upload in self.session.uploads for kind in (SEED, KEY)]
        return b"".join(
            share_commitment(
                self.session, upload, kind, dealer, holder, shares[at * SHARE_BYTES : (at + 1) * SHARE_BYTES]
            )
            for at, (upload, kind) in enumerate(kinds)
        )

    def _share(self, dealer: str, index: int, kind: int) -> bytes:
        at = 2 * index + kind
        return self.held[dealer][at * SHARE_BYTES : (at + 1) * SHARE_BYTES]

    def _check_set(self, names: Iterable[str], among: Iterable[str], content: str) -> None:
        """The rules that make a lying server harmless: docs/proofs/secure-sum.md."""
        owners = set(names)
        if not owners <= set(among):
            raise InvalidMessage(f"the {content} include entities that cannot have any in this stage.")
        if self.me not in owners:
            raise InvalidMessage(f"the {content} leave out this entity, which has sent its own.")
        if len(owners) < self.session.fewest:
            raise InvalidMessage(
                f"the {content} are of fewer than {self.session.fewest} entities, the fewest of this run."
            )

    @staticmethod
    def _again(same: bool, answer: bytes, content: str) -> bytes:
        if not same:
            raise Conflict(f"other {content} were accepted in this run before.")
        return answer


def _read_state(data: bytes, session: SumSession) -> dict[str, Any]:
    """What ``to_bytes`` wrote, as arguments of a SecureParty."""
    try:
        state = json.loads(data)
        if (state.pop("version"), state.pop("run")) != (_VERSION, session.run):
            raise InvalidData("the stored state of a secure sum belongs to another run, or another version of tacit.")
        if set(state) != _NAMES:
            raise ValueError
        state["sealing"] = bytes.fromhex(state["sealing"])
        for name in ("masking", "seeds"):
            state[name] = _from_hex(state[name])
        state["peers"] = {
            name: PublicKeys(name, bytes.fromhex(sealing), _from_hex(masking), _from_hex(commitments))
            for name, sealing, masking, commitments in state["peers"]
        }
        state["sent_shares"] = bytes.fromhex(state["sent_shares"])
        state["held"] = {name: bytes.fromhex(shares) for name, shares in state["held"].items()}
        state["uploaded"] = dict(state["uploaded"])
        state["answered"] = {upload: tuple(names) for upload, names in state["answered"].items()}
    except (ValueError, TypeError, KeyError, AttributeError) as problem:
        if isinstance(problem, InvalidData):
            raise
        raise InvalidData(
            "the stored state of a secure sum is damaged: this entity cannot continue this run."
        ) from None
    return dict(state)


def _from_hex(texts: list[str]) -> tuple[bytes, ...]:
    return tuple(bytes.fromhex(digits) for digits in texts)
