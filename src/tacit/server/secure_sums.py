"""The coordinator's side of secure sums: forwards keys and parcels, adds up masked uploads, and unmasks the total.

    sums = SecureSums(session)                            # session: tacit.models.secure_sum.SumSession
    sums.add_keys(message)                                # True if new, False if it was accepted before
    sums.close_keys()                                     # -> {entity: its `keys` message}: send all to everyone
    sums.add_shares(message)
    sums.close_shares()                                   # -> {entity: {sender: parcel}}: send each entity its own
    sums.add_masked(message, "popularity", cells)
    sums.close_upload("popularity")                       # -> the survivors: send the list to each of them
    sums.add_unmask(message, "popularity")
    sums.total("popularity")                              # the sum over the survivors, signed 64-bit integers

`pack` and `unpack` of messages.federated_prototypes.secure_sum turn what goes to an entity into bytes. `add_...` raises
InvalidMessage for a message that does not belong to this run and stage, and Conflict if its sender sent a different one before;
both leave the state unchanged. `close_...` and `total` raise TooFewEntities until enough entities have replied, and then always
return the same. `total` raises InconsistentShares rather than return a wrong sum. Nothing is drawn here: the same messages, in
any order within a stage, give the same results.

The second half turns summed shares into what is broadcast. First the popularity says whether there is a head of items worth a
Gram matrix; then that matrix is published as pseudo-rows. Both follow from noisy sums, so they cost no privacy.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.checks import positive, whole
from tacit.errors import Conflict, InconsistentShares, InvalidMessage, InvalidParameter, TooFewEntities
from tacit.messages.federated_prototypes.secure_sum import MaskedUpload, PublicKeys, SealedShares, UnmaskingShares
from tacit.models.moments import STEPS, SharedMoments, gram_from, head_of, noise_sds, pseudo_rows, seen_items, triangle
from tacit.models.secure_sum import (
    COMMITMENT_BYTES,
    KEY,
    SEED,
    SumSession,
    add_own_mask,
    add_pair_mask,
    combine,
    public_of,
    seed_commitment,
    share_commitment,
)


@dataclass(repr=False)
class _Upload:
    """What has arrived for one upload."""

    masked: dict[str, bytes] = field(default_factory=dict)  # the hash of each message, by sender
    sum: NDArray[np.uint64] | None = None  # modulo 2^64, still under masks
    survivors: tuple[str, ...] = ()
    unmask: dict[str, UnmaskingShares] = field(default_factory=dict)
    answers: dict[str, bytes] = field(default_factory=dict)
    total: NDArray[np.int64] | None = None


class SecureSums:
    """The state of the coordinator in one run. It learns the totals and who took part, and nothing else."""

    def __init__(self, session: SumSession) -> None:
        self.session = session
        self._keys: dict[str, PublicKeys] = {}
        self._key_messages: dict[str, bytes] = {}
        self._shares: dict[str, SealedShares] = {}
        self._share_messages: dict[str, bytes] = {}
        self._dealers: tuple[str, ...] = ()  # whose keys were forwarded
        self._sharers: tuple[str, ...] = ()  # whose parcels were forwarded
        self._uploads = {name: _Upload() for name in session.uploads}

    def add_keys(self, message: bytes) -> bool:
        """Takes one entity's public keys."""
        keys = PublicKeys.read(self.session, message)
        if not _is_new(self._key_messages, keys.entity, message, closed=self._dealers):
            return False
        self._keys[keys.entity], self._key_messages[keys.entity] = keys, message
        return True

    def close_keys(self) -> dict[str, bytes]:
        """The `keys` messages of all entities that take part from here on, unchanged and with their signatures."""
        self._dealers = self._dealers or self._enough(self._keys, "sent their keys")
        return {name: self._key_messages[name] for name in self._dealers}

    def add_shares(self, message: bytes) -> bool:
        """Takes one entity's encrypted shares of its secrets."""
        shares = SealedShares.read(self.session, message, self._require_closed(self._dealers))
        self._require_sender(shares.entity, self._dealers)
        if not _is_new(self._share_messages, shares.entity, message, closed=self._sharers):
            return False
        self._shares[shares.entity], self._share_messages[shares.entity] = shares, message
        return True

    def close_shares(self) -> dict[str, dict[str, bytes]]:
        """The parcels addressed to every entity that sent shares, by sender."""
        self._sharers = self._sharers or self._enough(self._shares, "sent their shares")
        return {to: {dealer: self._shares[dealer].parcels[to] for dealer in self._sharers} for to in self._sharers}

    def add_masked(self, message: bytes, upload: str, cells: int) -> bool:
        """Adds one masked upload of ``cells`` numbers to the sum."""
        state = self._of(upload)
        masked = MaskedUpload.read(self.session, message, upload, self._require_closed(self._sharers), cells)
        self._require_sender(masked.entity, self._sharers)
        digest = sha256(message).digest()
        if not _is_new(state.masked, masked.entity, digest, closed=state.survivors):
            return False
        if state.sum is None:
            state.sum = np.zeros(cells, dtype=np.uint64)
        elif state.sum.size != cells:
            raise InvalidParameter("all uploads of one name must have the same number of cells.")
        state.sum += masked.values
        state.masked[masked.entity] = digest
        return True

    def close_upload(self, upload: str) -> tuple[str, ...]:
        """The survivors: the entities whose masked upload is in the sum. If they are too few, nothing is unmasked."""
        state = self._of(upload)
        state.survivors = state.survivors or self._enough(state.masked, f"sent their {upload}")
        return state.survivors

    def add_unmask(self, message: bytes, upload: str) -> bool:
        """Takes an entity's shares if each matches its dealer's commitment."""
        state = self._of(upload)
        unmask = UnmaskingShares.read(
            self.session, message, upload, self._require_closed(state.survivors), self._sharers
        )
        self._require_sender(unmask.entity, state.survivors)
        if not _is_new(state.answers, unmask.entity, message, closed=()):
            return False
        wrong = [dealer for dealer in self._sharers if not self._is_committed(unmask, dealer, state)]
        if wrong:
            raise InvalidMessage(
                f"{unmask.entity} gave shares of {_first_three(wrong)} that are not those it was dealt."
            )
        state.unmask[unmask.entity], state.answers[unmask.entity] = unmask, message
        return True

    def total(self, upload: str) -> NDArray[np.int64]:
        """The sum over the survivors of this upload, once enough of them have sent their shares."""
        state = self._of(upload)
        self._require_closed(state.survivors)
        if state.total is None:
            self._enough(state.unmask, f"helped to unmask the {upload}")
            state.total = self._unmask(upload, state)
        return state.total.copy()

    def _unmask(self, upload: str, state: _Upload) -> NDArray[np.int64]:
        """Removes the pair masks shared with missing entities and every survivor's own mask from the sum."""
        if state.sum is None:
            raise TooFewEntities(f"nobody sent the {upload}.")
        index, total = self.session.check_upload(upload), state.sum.copy()
        secrets = {dealer: self._secret(dealer, upload, state) for dealer in self._sharers}  # all, before any is used
        for dealer, secret in secrets.items():
            if dealer in state.survivors:
                add_own_mask(self.session, total, upload, dealer, secret, subtract=True)
                continue
            for name in state.survivors:
                public = self._keys[name].masking[index]
                add_pair_mask(self.session, total, upload, name, dealer, secret, public, subtract=True)
        return total.view(np.int64)

    def _secret(self, dealer: str, upload: str, state: _Upload) -> bytes:
        """The seed of a survivor, or the masking key of a missing entity. It must match the entity's `keys` message."""
        plan, index = self.session.plan, self.session.check_upload(upload)
        helpers = sorted(state.unmask)[: plan.threshold]
        secret = combine({plan.index(name): state.unmask[name].shares[dealer] for name in helpers})
        keys = self._keys[dealer]
        if secret is not None and dealer in state.survivors:
            fits = seed_commitment(self.session, upload, dealer, secret) == keys.commitments[index]
        else:
            fits = secret is not None and public_of(secret) == keys.masking[index]
        if secret is None or not fits:
            raise InconsistentShares(
                f"the shares that {dealer} dealt do not give the secret it is committed to, so there is no total. Exclude "
                f"{dealer} and run again; the budget of the sent uploads is spent."
            )
        return secret

    def _is_committed(self, unmask: UnmaskingShares, dealer: str, state: _Upload) -> bool:
        kind = SEED if dealer in state.survivors else KEY
        at = (2 * self.session.check_upload(unmask.upload) + kind) * COMMITMENT_BYTES
        stated = self._shares[dealer].parcels[unmask.entity][at : at + COMMITMENT_BYTES]
        share = unmask.shares[dealer]
        return stated == share_commitment(self.session, unmask.upload, kind, dealer, unmask.entity, share)

    def _of(self, upload: str) -> _Upload:
        self.session.check_upload(upload)
        return self._uploads[upload]

    def _enough(self, names: Iterable[str], done: str) -> tuple[str, ...]:
        entities = tuple(sorted(names))
        if len(entities) < self.session.fewest:
            raise TooFewEntities(
                f"{len(entities)} entities {done}, and {self.session.fewest} are needed: nothing was unmasked. Wait for more, or "
                "give up the run."
            )
        return entities

    @staticmethod
    def _require_closed(names: tuple[str, ...]) -> tuple[str, ...]:
        if not names:
            raise InvalidMessage("the previous stage is not closed yet.")
        return names

    @staticmethod
    def _require_sender(entity: str, allowed: tuple[str, ...]) -> None:
        if entity not in allowed:
            raise InvalidMessage("the sender dropped out of this run at an earlier stage.")


def _is_new(kept: dict[str, bytes], entity: str, message: bytes, *, closed: tuple[str, ...]) -> bool:
    """Whether this is the first message of its sender. Raises if it differs from an earlier one, or if the stage is closed."""
    if entity in kept:
        if kept[entity] != message:
            raise Conflict("this entity already sent a different message of this kind; the first one counts.")
        return False
    if closed:
        raise InvalidMessage("this message came too late: the stage is closed.")
    return True


def _first_three(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} others" if len(names) > 3 else "")


MomentShares = Mapping[str, NDArray[np.int64]]  # by entity, in whole steps


@dataclass(frozen=True, eq=False)
class HeadChoice:
    """The noisy popularity and the head of items chosen from it. The head is empty if the popularity is hardly more than
    noise.
    """

    popularity: NDArray[np.float64] = field(repr=False)
    sd: float  # of the noise in it
    seen: int
    head: NDArray[np.int64] = field(repr=False)

    @property
    def informative(self) -> bool:
        """Whether a Gram matrix is requested. If not, the run ends here and every entity fits its own rows only."""
        return self.head.size > 0


def choose_head(total: ArrayLike, items: int, sd: float) -> HeadChoice:
    """The head, from the sum of the popularity shares in whole steps; ``sd`` is the standard deviation of the noise in the
    sum.
    """
    steps = _whole_numbers(total, whole("items", items, least=1), "popularity")
    popularity = steps / STEPS
    head = head_of(popularity, sd, items)
    return HeadChoice(
        popularity,
        positive("sd", sd),
        seen_items(popularity, sd),
        np.zeros(0, dtype=np.int64) if head is None else head,
    )


def no_information(choice: HeadChoice, gram_sd: float) -> SharedMoments:
    """What is broadcast without a head or without a second sum: the popularity, and no pseudo-rows."""
    no_head = np.zeros(0, dtype=np.int64)
    return SharedMoments(
        choice.popularity, no_head, np.zeros((0, 0)), choice.sd, positive("gram_sd", gram_sd), choice.seen
    )


def shared_moments(choice: HeadChoice, total: ArrayLike, gram_sd: float) -> SharedMoments:
    """What is broadcast: the popularity, the head, and pseudo-rows from the sum of the Gram shares."""
    if not choice.informative:
        return no_information(choice, gram_sd)
    size = choice.head.size
    gram = gram_from(_whole_numbers(total, triangle(size), "Gram"), size)
    rows = pseudo_rows(gram, gram_sd)
    return SharedMoments(choice.popularity, choice.head, rows, choice.sd, gram_sd, choice.seen)


class MomentShift(NamedTuple):
    """How far the moments move without one entity, each relative to its size: 0 if the entity agrees with the others."""

    popularity: float  # of the mean share
    head: float  # the share of the head that the others would not have chosen
    rows: float  # of the mean E^T E of the pseudo-rows


def moments_influence(
    popularity: MomentShares, gram: MomentShares, rhos: tuple[float, float]
) -> dict[str, MomentShift]:
    """Compares the moments of all entities with those of all but one, for shares in the open that carry all their noise.

    It compares means instead of sums, because leaving one of n out always changes a sum. The noise of a share moves the moments
    too: for entities with few users it is most of the shift. ``gram`` always covers the head that was chosen from all entities;
    it is empty if there was none.
    """
    if len(popularity) < 2:
        raise InvalidParameter("influence compares the model with and without an entity: at least 2 are needed.")
    mean, head = _mean(popularity), _head(popularity, rhos)
    denoised = _denoise(gram, rhos) if len(gram) > 1 else None
    shifts = {}
    for name in sorted(popularity):
        lost = np.setdiff1d(head, _head(popularity, rhos, name)).size
        shifts[name] = MomentShift(
            relative_change(mean, _mean(popularity, name)),
            lost / head.size if head.size else 0.0,
            relative_change(denoised, _denoise(gram, rhos, name)) if denoised is not None and name in gram else 0.0,
        )
    return shifts


def _total(shares: MomentShares, without: str | None) -> tuple[NDArray[np.int64], int]:
    kept = [share for name, share in shares.items() if name != without]
    return np.asarray(np.add.reduce(kept, dtype=np.int64)), len(kept)


def _mean(shares: MomentShares, without: str | None = None) -> NDArray[np.float64]:
    total, count = _total(shares, without)
    return np.asarray(total / (STEPS * count))


def _head(shares: MomentShares, rhos: tuple[float, float], without: str | None = None) -> NDArray[np.int64]:
    total, count = _total(shares, without)
    return choose_head(total, total.size, noise_sds(*rhos, shares=count)[0]).head


def _denoise(shares: MomentShares, rhos: tuple[float, float], without: str | None = None) -> NDArray[np.float64]:
    """The mean Gram matrix of the pseudo-rows. Unlike the rows themselves, it has no arbitrary signs or order."""
    total, count = _total(shares, without)
    size = (math.isqrt(8 * total.size + 1) - 1) // 2
    rows = pseudo_rows(gram_from(total, size), noise_sds(*rhos, shares=count)[1])
    return np.asarray(rows.T @ rows) / count


def relative_change(of_all: NDArray[np.float64], without: NDArray[np.float64]) -> float:
    """How far a result moves without an entity, relative to its size; 0 for a result that is all 0."""
    size = float(np.linalg.norm(of_all))
    return float(np.linalg.norm(of_all - without)) / size if size > 0.0 else 0.0


def _whole_numbers(total: ArrayLike, length: int, name: str) -> NDArray[np.int64]:
    """A sum as signed 64-bit integers. A sum modulo 2^64 is reinterpreted as the numbers from -2^63 to 2^63 - 1."""
    steps = np.asarray(total)
    if steps.dtype == np.uint64:
        steps = steps.view(np.int64)
    if steps.dtype != np.int64 or steps.shape != (length,):
        raise InvalidMessage(f"the {name} sum must be {length} 64-bit integers.")
    return steps
