"""The coordinator's side of secure sums: passes keys and parcels on, adds up what is masked, and unmasks the total.

    sums = SecureSums(session)                            # session: tacit.models.secure_sum.SumSession
    sums.add_keys(message)                                # True if new, False if it was there already
    sums.close_keys()                                     # -> {entity: its `keys` message}: to all of them
    sums.add_shares(message)
    sums.close_shares()                                   # -> {entity: {sender: parcel}}: to each its own
    sums.add_masked(message, "popularity", cells)
    sums.close_upload("popularity")                       # -> the survivors: to each of them
    sums.add_unmask(message, "popularity")
    sums.total("popularity")                              # the sum over the survivors, signed whole numbers of 64 bits

`pack` and `unpack` of messages.federated_prototypes_secure carry what goes to an entity as bytes. `add_...` raises InvalidMessage
for what is no message of this run and stage, Conflict if its sender sent another before; the state is then as it was. `close_...`
and `total` raise TooFewEntities as long as too few have replied, and give the same again once they gave something. `total` raises
InconsistentShares rather than a wrong sum. Nothing is drawn here: the same messages, in any order within a stage, give the same.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from tacit.errors import Conflict, InconsistentShares, InvalidMessage, InvalidParameter, TooFewEntities
from tacit.messages.federated_prototypes_secure import Keys, Masked, Shares, Unmask
from tacit.models.secure_sum import COMMITMENT_BYTES, SumSession
from tacit.models.secure_sum.masks import public_of
from tacit.models.secure_sum.purposes import (
    KEY,
    SEED,
    add_own_mask,
    add_pair_mask,
    seed_commitment,
    share_commitment,
)
from tacit.models.secure_sum.shares import combine


@dataclass(repr=False)
class _Upload:
    """What has come for one upload."""

    masked: dict[str, bytes] = field(default_factory=dict)  # the hash of every message, by sender
    sum: NDArray[np.uint64] | None = None  # modulo 2^64, still under masks
    survivors: tuple[str, ...] = ()
    unmask: dict[str, Unmask] = field(default_factory=dict)
    answers: dict[str, bytes] = field(default_factory=dict)
    total: NDArray[np.int64] | None = None


class SecureSums:
    """The state of the coordinator in one run. It learns the totals, who took part, and nothing else."""

    def __init__(self, session: SumSession) -> None:
        self.session = session
        self._keys: dict[str, Keys] = {}
        self._key_messages: dict[str, bytes] = {}
        self._shares: dict[str, Shares] = {}
        self._share_messages: dict[str, bytes] = {}
        self._dealers: tuple[str, ...] = ()  # whose keys were passed on
        self._sharers: tuple[str, ...] = ()  # whose parcels were passed on
        self._uploads = {name: _Upload() for name in session.uploads}

    def add_keys(self, message: bytes) -> bool:
        keys = Keys.read(self.session, message)
        if not _is_new(self._key_messages, keys.entity, message, closed=self._dealers):
            return False
        self._keys[keys.entity], self._key_messages[keys.entity] = keys, message
        return True

    def close_keys(self) -> dict[str, bytes]:
        """The keys messages of all that take part from here on. They are passed on as they came, signatures and all."""
        self._dealers = self._dealers or self._enough(self._keys, "sent their keys")
        return {name: self._key_messages[name] for name in self._dealers}

    def add_shares(self, message: bytes) -> bool:
        shares = Shares.read(self.session, message, self._known(self._dealers))
        self._sender(shares.entity, self._dealers)
        if not _is_new(self._share_messages, shares.entity, message, closed=self._sharers):
            return False
        self._shares[shares.entity], self._share_messages[shares.entity] = shares, message
        return True

    def close_shares(self) -> dict[str, dict[str, bytes]]:
        """For every entity that shared, the parcels that are for it, by sender."""
        self._sharers = self._sharers or self._enough(self._shares, "sent their shares")
        return {to: {dealer: self._shares[dealer].parcels[to] for dealer in self._sharers} for to in self._sharers}

    def add_masked(self, message: bytes, upload: str, cells: int) -> bool:
        """Adds one masked upload of so many cells to the sum."""
        held = self._of(upload)
        masked = Masked.read(self.session, message, upload, self._known(self._sharers), cells)
        self._sender(masked.entity, self._sharers)
        digest = sha256(message).digest()
        if not _is_new(held.masked, masked.entity, digest, closed=held.survivors):
            return False
        if held.sum is None:
            held.sum = np.zeros(cells, dtype=np.uint64)
        elif held.sum.size != cells:
            raise InvalidParameter("all uploads of one name have the same number of cells.")
        held.sum += masked.values
        held.masked[masked.entity] = digest
        return True

    def close_upload(self, upload: str) -> tuple[str, ...]:
        """Who is left: those whose masked upload is in the sum. Nothing was unmasked if they are too few."""
        held = self._of(upload)
        held.survivors = held.survivors or self._enough(held.masked, f"sent their {upload}")
        return held.survivors

    def add_unmask(self, message: bytes, upload: str) -> bool:
        """Takes an entity's shares, if every one is what its dealer is committed to."""
        held = self._of(upload)
        unmask = Unmask.read(self.session, message, upload, self._known(held.survivors), self._sharers)
        self._sender(unmask.entity, held.survivors)
        if not _is_new(held.answers, unmask.entity, message, closed=()):
            return False
        wrong = [dealer for dealer in self._sharers if not self._is_committed(unmask, dealer, held)]
        if wrong:
            raise InvalidMessage(f"{unmask.entity} gave shares of {_shown(wrong)} that are not those it was dealt.")
        held.unmask[unmask.entity], held.answers[unmask.entity] = unmask, message
        return True

    def total(self, upload: str) -> NDArray[np.int64]:
        """The sum over the survivors of this upload, once enough of them have given their shares."""
        held = self._of(upload)
        self._known(held.survivors)
        if held.total is None:
            self._enough(held.unmask, f"helped to unmask the {upload}")
            held.total = self._unmasked(upload, held)
        return held.total.copy()

    def _unmasked(self, upload: str, held: _Upload) -> NDArray[np.int64]:
        """Takes off what pairs with the missing left in the sum, then every survivor's own mask."""
        if held.sum is None:
            raise TooFewEntities(f"nobody sent the {upload}.")
        place, total = self.session.check_upload(upload), held.sum.copy()
        secrets = {dealer: self._secret(dealer, upload, held) for dealer in self._sharers}  # all, before any is used
        for dealer, secret in secrets.items():
            if dealer in held.survivors:
                add_own_mask(self.session, total, upload, dealer, secret, subtract=True)
                continue
            for name in held.survivors:
                public = self._keys[name].masking[place]
                add_pair_mask(self.session, total, upload, name, dealer, secret, public, subtract=True)
        return total.view(np.int64)

    def _secret(self, dealer: str, upload: str, held: _Upload) -> bytes:
        """The seed of a survivor, the masking key of another: as its `keys` message said, or none."""
        plan, place = self.session.plan, self.session.check_upload(upload)
        helpers = sorted(held.unmask)[: plan.threshold]
        secret = combine({plan.index(name): held.unmask[name].shares[dealer] for name in helpers})
        keys = self._keys[dealer]
        if secret is not None and dealer in held.survivors:
            fits = seed_commitment(self.session, upload, dealer, secret) == keys.commitments[place]
        else:
            fits = secret is not None and public_of(secret) == keys.masking[place]
        if secret is None or not fits:
            raise InconsistentShares(
                f"the shares that {dealer} dealt do not give the secret it is committed to, so that there is no total. Exclude "
                f"{dealer} and run again; the budget of what was sent is spent."
            )
        return secret

    def _is_committed(self, unmask: Unmask, dealer: str, held: _Upload) -> bool:
        kind = SEED if dealer in held.survivors else KEY
        at = (2 * self.session.check_upload(unmask.upload) + kind) * COMMITMENT_BYTES
        stated = self._shares[dealer].parcels[unmask.entity][at : at + COMMITMENT_BYTES]
        share = unmask.shares[dealer]
        return stated == share_commitment(self.session, unmask.upload, kind, dealer, unmask.entity, share)

    def _of(self, upload: str) -> _Upload:
        self.session.check_upload(upload)
        return self._uploads[upload]

    def _enough(self, names: Iterable[str], what: str) -> tuple[str, ...]:
        found = tuple(sorted(names))
        if len(found) < self.session.fewest:
            raise TooFewEntities(
                f"{len(found)} entities {what}, and {self.session.fewest} are needed: nothing was unmasked. Wait for more, or give "
                "the run up."
            )
        return found

    @staticmethod
    def _known(names: tuple[str, ...]) -> tuple[str, ...]:
        if not names:
            raise InvalidMessage("the stage before this one is not closed yet.")
        return names

    @staticmethod
    def _sender(entity: str, allowed: tuple[str, ...]) -> None:
        if entity not in allowed:
            raise InvalidMessage("the sender has dropped out of this run at an earlier stage.")


def _is_new(kept: dict[str, bytes], entity: str, message: bytes, *, closed: tuple[str, ...]) -> bool:
    """Whether this is the first message of its sender; another one after it is refused, and any after the stage is closed."""
    if entity in kept:
        if kept[entity] != message:
            raise Conflict("this entity has sent another message of this kind before, which counts.")
        return False
    if closed:
        raise InvalidMessage("this message came too late: the stage is closed.")
    return True


def _shown(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} others" if len(names) > 3 else "")
