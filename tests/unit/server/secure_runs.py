"""Secure sums with all parties in one process, and a server that tries to learn more than it may."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.entity.secure_sum import SecureParty
from tacit.messages.federated_prototypes.frame import public_of as signing_public
from tacit.messages.federated_prototypes.secure_sum import MaskedUpload, UnmaskingShares
from tacit.models import secure_sum
from tacit.models.secure_sum import (
    KEY,
    PRIME,
    SEED,
    SHARE_BYTES,
    SumSession,
    add_own_mask,
    add_pair_mask,
    combine,
    evaluate,
    public_of,
)
from tacit.server.secure_sums import SecureSums

RUN = "5e" * 32


def names(count: int) -> list[str]:
    return [f"e{place:02d}" for place in range(count)]


def key_of(name: str) -> bytes:
    return name.encode().ljust(32, b".")


def session_of(count: int, fewest: int, colluding: int = 1, run: str = RUN) -> SumSession:
    return SumSession(run, {name: signing_public(key_of(name)) for name in names(count)}, fewest, colluding)


def unsafe_session(monkeypatch: pytest.MonkeyPatch, count: int, fewest: int, colluding: int = 1) -> SumSession:
    """A session that the plan refuses, built all the same."""
    with monkeypatch.context() as patch:
        patch.setattr(secure_sum, "safe", lambda *_: True)
        return session_of(count, fewest, colluding)


def polynomial(shares: Mapping[int, bytes], threshold: int) -> list[int]:
    """The coefficients, constant term first, of the polynomial that the first shares lie on; all others must lie on it as well."""
    points = sorted(shares)[:threshold]
    found = [0] * threshold
    for one in points:  # Lagrange: product over the other points p of (x - p) / (one - p), times the value at `one`
        basis, below = [1], 1
        for other in points:
            if other != one:
                basis = [high - other * low for high, low in zip([0, *basis], [*basis, 0], strict=True)]
                below = below * (one - other) % PRIME
        scale = int.from_bytes(shares[one], "big") * pow(below, -1, PRIME)
        found = [(sofar + scale * part) % PRIME for sofar, part in zip(found, basis, strict=True)]
    assert all(evaluate(found, at, PRIME) == int.from_bytes(share, "big") for at, share in shares.items())
    return found


def check_looks_uniform(drawn: Iterable[Iterable[bytes]], bits: int) -> None:
    """Rows of draws of so many bits: every bit of a column is 1 as often as 0, and equal to that of any other column as often.

    Bounds are 6.5 standard deviations: one false alarm in 10^10 bits.
    """
    table = np.array([[np.frombuffer(one, dtype=np.uint8) for one in row] for row in drawn])
    ones = np.unpackbits(table, axis=2)[:, :, -bits:].astype(np.int64)  # runs, columns, bits
    bound = 6.5 * len(ones) ** 0.5 / 2
    assert (abs(ones.sum(axis=0) - len(ones) / 2) < bound).all()
    for column in range(1, ones.shape[1]):
        same = (ones[:, :column] == ones[:, column : column + 1]).sum(axis=0)
        assert (abs(same - len(ones) / 2) < bound).all()


def as_bytes(coefficients: Iterable[int]) -> list[bytes]:
    return [one.to_bytes(SHARE_BYTES, "big") for one in coefficients]


@dataclass
class World:
    """Entities and a server. ``between`` is done to every party after each of its steps."""

    session: SumSession
    between: Callable[[SecureParty], SecureParty] = lambda party: party
    parties: dict[str, SecureParty] = field(init=False)
    sums: SecureSums = field(init=False)
    vectors: dict[str, dict[str, NDArray[np.int64]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.sums = SecureSums(self.session)
        self.parties = {name: SecureParty.start(self.session, name, key_of(name)) for name in self.session.names}

    def step(self, name: str) -> SecureParty:
        self.parties[name] = self.between(self.parties[name])
        return self.parties[name]

    def keys(self, who: Iterable[str] | None = None) -> dict[str, bytes]:
        for name in who or self.session.names:
            assert self.sums.add_keys(self.step(name).keys_message)
        return self.sums.close_keys()

    def share(self, who: Iterable[str] | None = None) -> dict[str, dict[str, bytes]]:
        keys = self.sums.close_keys()
        for name in who or keys:
            assert self.sums.add_shares(self.step(name).shares_message(keys))
        return self.sums.close_shares()

    def receive(self) -> None:
        for name, parcels in self.sums.close_shares().items():
            self.step(name).receive(parcels)

    def upload(self, upload: str, who: Iterable[str], cells: int = 50) -> tuple[str, ...]:
        self.mask(upload, who, cells)
        return self.sums.close_upload(upload)

    def mask(self, upload: str, who: Iterable[str], cells: int = 50) -> dict[str, bytes]:
        """Each of these sends a vector of its own, with cells of both signs and of any size."""
        rng, sent = np.random.default_rng(len(self.vectors)), {}
        kept = self.vectors.setdefault(upload, {})
        for name in who:
            kept[name] = rng.integers(-(2**63), 2**63 - 1, cells, endpoint=True)
            sent[name] = self.step(name).masked(kept[name], upload)
            assert self.sums.add_masked(sent[name], upload, cells)
        return sent

    def unmask(self, upload: str, who: Iterable[str]) -> NDArray[np.int64]:
        survivors = self.sums.close_upload(upload)
        for name in who:
            assert self.sums.add_unmask(self.step(name).unmask(survivors, upload), upload)
        return self.sums.total(upload)

    def plain(self, upload: str, who: Iterable[str]) -> NDArray[np.int64]:
        """What the total must be: Python's whole numbers, taken modulo 2^64 at the end."""
        cells = zip(*(self.vectors[upload][name].tolist() for name in who), strict=True)
        return np.array([(sum(cell) + 2**63) % 2**64 - 2**63 for cell in cells], dtype=np.int64)

    def ready(self) -> "World":
        self.keys()
        self.share()
        self.receive()
        return self


@dataclass
class Liar:
    """A server that tells each entity survivors of its own choice, and knows all that some entities know."""

    world: World
    upload: str
    masked: Mapping[str, bytes]
    colluders: tuple[str, ...]
    shares: dict[tuple[str, int], dict[int, bytes]] = field(default_factory=dict)  # by dealer and kind: share by index
    twins: tuple[SecureParty, ...] = ()  # of colluders that have signed other keys, too

    def tell(self, name: str, survivors: Iterable[str]) -> None:
        """Asks one entity to unmask, and keeps what it says."""
        session, told = self.world.session, tuple(survivors)
        data = self.world.parties[name].unmask(told, self.upload)
        read = UnmaskingShares.read(session, data, self.upload, told, self.world.parties[name].held)
        for dealer, share in read.shares.items():
            self._keep(dealer, SEED if dealer in told else KEY, name, share)

    def bribe(self) -> None:
        """The colluders hand over everything they hold."""
        place = self.world.session.check_upload(self.upload)
        for name in self.colluders:
            for dealer in self.world.parties[name].held:
                for kind in (SEED, KEY):
                    self._keep(dealer, kind, name, self.world.parties[name]._share(dealer, place, kind))

    def secret(self, dealer: str, kind: int) -> bytes | None:
        """A secret of which there are shares enough."""
        found = self.shares.get((dealer, kind), {})
        threshold = self.world.session.plan.threshold
        return combine({at: found[at] for at in sorted(found)[:threshold]}) if len(found) >= threshold else None

    def sum_of(self, wanted: Iterable[str]) -> NDArray[np.int64] | None:
        """The sum over these entities, if what was learned suffices to take off all their masks."""
        session, sharers = self.world.session, self.world.sums.close_shares()
        place, group = session.check_upload(self.upload), set(wanted)
        total = np.zeros(50, dtype=np.uint64)
        for name in group:
            total += MaskedUpload.read(session, self.masked[name], self.upload, sharers, 50).values
            seed = self.secret(name, SEED)
            if seed is None:
                return None
            add_own_mask(session, total, self.upload, name, seed, subtract=True)
        colluding = [*(self.world.parties[name] for name in self.colluders), *self.twins]
        known = {public_of(party.masking[place]): party.masking[place] for party in colluding}
        for other in set(sharers) - group:
            for name in group:
                shown = self.world.parties[name].peers[other].masking[place]
                private = known[shown] if other in self.colluders else self.secret(other, KEY)
                if private is None:
                    return None
                public = self.world.parties[name].peers[name].masking[place]
                add_pair_mask(session, total, self.upload, name, other, private, public, subtract=True)
        return total.view(np.int64)

    def _keep(self, dealer: str, kind: int, holder: str, share: bytes) -> None:
        self.shares.setdefault((dealer, kind), {})[self.world.session.plan.index(holder)] = share
