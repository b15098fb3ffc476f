"""One entity's side of secure sums: it masks its uploads, and helps to unmask one total of each, never more.

    party = SecureParty.start(session, "north", key)      # draws all secrets; session: tacit.models.secure_sum.SumSession
    party.keys_message                                    # -> coordinator
    party.shares_message(keys)                            # {entity: its `keys` message} -> a sealed parcel for each -> coordinator
    party.receive(parcels)                                # the parcels for this entity, by sender: fixes who masks with whom
    party.masked(vector, "popularity")                    # whole numbers of 64 bits -> coordinator
    party.unmask(survivors, "popularity")                 # -> coordinator; one set of survivors for each upload, ever

Every step gives the same bytes when asked again in the same way, and refuses (Conflict) to be asked in another. Write `to_bytes()`
to disk BEFORE a message leaves: an entity that forgets what it answered can be made to answer twice. The state holds secrets: keep
it as the rows are kept, and delete it after the run.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.entity.masking_state import packed, unpacked
from tacit.errors import Conflict, InvalidMessage, InvalidParameter
from tacit.messages.federated_prototypes_frame import public_of as signing_public
from tacit.messages.federated_prototypes_secure import Keys, Masked, Shares, Unmask
from tacit.models.secure_sum import SHARE_BYTES, SumSession
from tacit.models.secure_sum.masks import new_private, public_of
from tacit.models.secure_sum.purposes import (
    KEY,
    SEED,
    add_own_mask,
    add_pair_mask,
    parcel_context,
    parcel_key,
    seed_commitment,
    share_commitment,
)
from tacit.models.secure_sum.sealing import open_parcel, seal
from tacit.models.secure_sum.shares import split


@dataclass(repr=False, eq=False)
class SecureParty:
    """The state of one entity in one run. Nothing of it may be shown."""

    session: SumSession
    me: str
    key: bytes  # of signatures
    sealing: bytes  # private keys of X25519, and seeds
    masking: tuple[bytes, ...]
    seeds: tuple[bytes, ...]
    peers: dict[str, Keys] = field(default_factory=dict)  # all that take part, this entity too
    sent_shares: bytes = b""
    held: dict[str, bytes] = field(default_factory=dict)  # by dealer: its shares for this entity
    uploaded: dict[str, str] = field(default_factory=dict)  # by upload: the hash of what was masked
    answered: dict[str, tuple[str, ...]] = field(default_factory=dict)  # by upload: the survivors

    @classmethod
    def start(cls, session: SumSession, me: str, key: bytes) -> "SecureParty":
        """Draws the secrets of a run. Call it once for a run, and keep the state."""
        if session.roster.get(me) != signing_public(key):
            raise InvalidParameter(
                "the roster has another key for this entity: check its name, and the key it signs with."
            )
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
        return self._keys().signed(self.session, self.key)

    def shares_message(self, keys: Mapping[str, bytes]) -> bytes:
        """The parcels for all whose `keys` messages these are, this entity among them. Fixes who they are."""
        found = {name: Keys.read(self.session, keys[name]) for name in sorted(keys)}
        if any(read.entity != name for name, read in found.items()):
            raise InvalidMessage("keys are passed on under another name than their owner's.")
        self._check_set(found, self.session.names, "keys")
        if found[self.me] != self._keys():
            raise InvalidMessage("the keys that came back as this entity's are not those that it sent.")
        if self.peers:
            return self._again(found == self.peers, self.sent_shares, "keys")
        parcels = self._parcels(found)
        self.peers, self.sent_shares = found, Shares(self.me, parcels).signed(self.session, self.key)
        return self.sent_shares

    def receive(self, parcels: Mapping[str, bytes]) -> None:
        """Opens the parcels for this entity. Fixes who has shared, and so with whom this entity masks."""
        self._check_set(parcels, self.peers, "shares")
        held = {dealer: self._opened(dealer, parcels[dealer]) for dealer in sorted(parcels)}
        if self.held:
            self._again(held == self.held, b"", "shares")
        self.held = held

    def masked(self, vector: NDArray[Any], upload: str) -> bytes:
        """One upload, under a mask of its own and one with every other entity that has shared. The vector itself is not changed."""
        place = self.session.check_upload(upload)
        if not self.held:
            raise InvalidParameter("receive the shares of the others first: they say with whom to mask.")
        values = np.array(vector)
        if values.ndim != 1 or values.dtype not in (np.dtype(np.int64), np.dtype(np.uint64)):
            raise InvalidParameter("an upload is a vector of whole numbers of 64 bits.")
        values = values.view(np.uint64)
        content = sha256(values.astype("<u8").tobytes()).hexdigest()
        if self.uploaded.get(upload, content) != content:  # two vectors under one mask show their difference
            raise Conflict("another vector was masked for this upload: masks are used once.")
        add_own_mask(self.session, values, upload, self.me, self.seeds[place])
        for name in self.held:
            if name != self.me:
                public = self.peers[name].masking[place]
                add_pair_mask(self.session, values, upload, self.me, name, self.masking[place], public)
        self.uploaded[upload] = content
        return Masked(self.me, upload, values).signed(self.session, self.key, self.held)

    def unmask(self, survivors: Iterable[str], upload: str) -> bytes:
        """Gives of every survivor a share of its seed, of all others that shared one of their masking key: never both of one."""
        place = self.session.check_upload(upload)
        names = tuple(survivors)
        if len(set(names)) < len(names):
            raise InvalidMessage("a survivor is named twice.")
        self._check_set(names, self.held, "survivors")
        if upload not in self.uploaded:
            raise InvalidMessage("this entity cannot be among the survivors of an upload that it has not sent.")
        names = tuple(sorted(names))
        if self.answered.get(upload, names) != names:
            raise Conflict(
                "other survivors were answered for this upload: a second answer could unmask a single entity."
            )
        self.answered[upload] = names
        shares = {dealer: self._share(dealer, place, SEED if dealer in names else KEY) for dealer in self.held}
        return Unmask(self.me, upload, shares).signed(self.session, self.key, names)

    def to_bytes(self) -> bytes:
        """The state, secrets included, without the key of signatures."""
        return packed(self)

    @classmethod
    def from_bytes(cls, data: bytes, session: SumSession, key: bytes) -> "SecureParty":
        """The state that ``to_bytes`` wrote, of the same run and the same entity."""
        party = cls(session, key=key, **unpacked(data, session))
        if session.roster.get(party.me) != signing_public(key):
            raise InvalidParameter(
                "the roster has another key for this entity: check its name, and the key it signs with."
            )
        return party

    def __repr__(self) -> str:
        return f"SecureParty({self.me!r}, ...)"

    def _keys(self) -> Keys:
        uploads = zip(self.session.uploads, self.seeds, strict=True)
        commitments = tuple(seed_commitment(self.session, upload, self.me, seed) for upload, seed in uploads)
        return Keys(self.me, public_of(self.sealing), tuple(public_of(one) for one in self.masking), commitments)

    def _parcels(self, peers: Mapping[str, Keys]) -> dict[str, bytes]:
        plan = self.session.plan
        secrets = [one for pair in zip(self.seeds, self.masking, strict=True) for one in pair]  # in the order of _share
        dealt = [split(secret, plan.threshold, len(plan.names)) for secret in secrets]
        parcels = {}
        for holder, keys in peers.items():
            shares = [shares[plan.index(holder) - 1] for shares in dealt]
            commitments = self._commitments(self.me, holder, b"".join(shares))
            secret = parcel_key(self.session, self.sealing, keys.sealing, self.me, holder)
            context = parcel_context(self.session, self.me, holder, commitments)
            parcels[holder] = commitments + seal(secret, b"".join(shares), context)
        return parcels

    def _opened(self, dealer: str, parcel: bytes) -> bytes:
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

    def _share(self, dealer: str, place: int, kind: int) -> bytes:
        at = 2 * place + kind
        return self.held[dealer][at * SHARE_BYTES : (at + 1) * SHARE_BYTES]

    def _check_set(self, names: Iterable[str], among: Iterable[str], what: str) -> None:
        """The rules that make a server's lies harmless: docs/proofs/secure-sum.md."""
        found = set(names)
        if not found <= set(among):
            raise InvalidMessage(f"the {what} are also of entities that cannot have any here.")
        if self.me not in found:
            raise InvalidMessage(f"the {what} leave out this entity, which has sent its own.")
        if len(found) < self.session.fewest:
            raise InvalidMessage(
                f"the {what} are of fewer than {self.session.fewest} entities, the fewest of this run."
            )

    @staticmethod
    def _again(same: bool, answer: bytes, what: str) -> bytes:
        if not same:
            raise Conflict(f"other {what} were accepted in this run before.")
        return answer
