"""The arithmetic of secure sums: whole numbers modulo 2^64, added up under masks so that only the total is seen.

It follows the protocol of Bonawitz et al. (2017) with primitives of the package `cryptography`: X25519, HKDF,
ChaCha20, ChaCha20-Poly1305. The messages between the parties are in `messages`, `entity` and `server`.
docs/proofs/secure-sum.md proves what holds and says when it does not.

The file has five parts: the session and its plan; the masks, keys and commitments of a run, each bound to run, upload
and names; Shamir's secret sharing; sealed parcels; and streams of masks.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.checks import keep, whole
from tacit.errors import InvalidMessage, InvalidParameter, MissingExtra

__all__ = ["COMMITMENT_BYTES", "SHARE_BYTES", "SumPlan", "SumSession", "least_fewest"]

COMMITMENT_BYTES = 32
MOST_NAMES = 10_000
_NONCE = 12
PARCEL_EXTRA = _NONCE + 16  # bytes of nonce and tag beside the content
PRIME = 2**521 - 1
SECRET_BYTES = 32
SHARE_BYTES = 66
_RUN_DIGITS = 64
KEY_BYTES = 32
# Any private key shows whether a public key is a point of small order: X25519 makes every private key a multiple of 8, and
# these points have orders that divide 8.
_ANY_PRIVATE = bytes(range(KEY_BYTES))
_CHUNK = 1 << 17  # numbers at a time: 1 MB of mask in memory beside the vector
_ZEROS = bytes(8 * _CHUNK)
SEED, KEY = 0, 1  # kinds of share: of the seed of an entity's own mask, and of the key that pairs agree with


@dataclass(frozen=True, slots=True)
class SumSession:
    """What all parties of one secure sum know: the run's id, who contributes, and the uploads to be summed.

    ``run`` has 64 hexadecimal digits, ``roster`` has the Ed25519 keys of the entities by name. Raises
    InvalidParameter if the sum is not safe: see SumPlan.
    """

    run: str
    roster: Mapping[str, bytes] = field(repr=False)
    fewest: int
    colluding: int
    uploads: tuple[str, ...] = ("popularity", "gram")
    plan: "SumPlan" = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.run, str) or len(self.run) != _RUN_DIGITS or set(self.run) - set("0123456789abcdef"):
            raise InvalidParameter(f"the id of a run must be {_RUN_DIGITS} hexadecimal digits in lower case.")
        roster = {name: bytes(self.roster[name]) for name in sorted(self.roster)}
        if any(len(key) != KEY_BYTES for key in roster.values()) or len(set(roster.values())) < len(roster):
            raise InvalidParameter(f"every entity needs a public key of its own, of {KEY_BYTES} bytes.")
        uploads = tuple(self.uploads)
        if (
            not uploads
            or len(set(uploads)) < len(uploads)
            or not all(isinstance(name, str) and name for name in uploads)
        ):
            raise InvalidParameter("uploads must be at least one name, and all different.")
        plan = SumPlan(tuple(roster), self.fewest, self.colluding)
        keep(self, roster=roster, fewest=plan.fewest, colluding=plan.colluding, uploads=uploads, plan=plan)

    @property
    def names(self) -> tuple[str, ...]:
        """The entities that take part, in the order of the plan."""
        return self.plan.names

    @property
    def commitments_bytes(self) -> int:
        """Bytes of the open part of a parcel.

        For every upload it has the commitment to a share of the seed, then of the masking key.
        """
        return 2 * len(self.uploads) * COMMITMENT_BYTES

    @property
    def parcel_bytes(self) -> int:
        """Bytes of a sealed parcel of shares."""
        return self.commitments_bytes + 2 * len(self.uploads) * SHARE_BYTES + PARCEL_EXTRA

    def digest(self, names: Iterable[str]) -> str:
        """A digest of a set of entities of this run."""
        return commitment(b"", "names", self.run, *sorted(names)).hex()

    def check_upload(self, upload: str) -> int:
        """The position of an upload among the uploads."""
        if upload not in self.uploads:
            raise InvalidParameter(f"unknown upload; known uploads: {', '.join(self.uploads)}.")
        return self.uploads.index(upload)


@dataclass(frozen=True, slots=True)
class SumPlan:
    """The names of the entities, sorted, how many must stay, and how many may collude with the server.

    Of H entities at least `fewest` stay to the end, and at most `colluding` tell the server all they know. A seed is
    shared so that `threshold` = `fewest` shares recover it. A plan raises InvalidParameter if a server that tells
    different entities different stories could get a total with fewer than `fewest - colluding` honest entities in it.
    Proof and attack: docs/proofs/secure-sum.md.
    """

    names: tuple[str, ...]
    fewest: int
    colluding: int

    def __post_init__(self) -> None:
        names = tuple(self.names)
        if not all(isinstance(name, str) and name for name in names) or any(
            first >= second for first, second in pairwise(names)
        ):
            raise InvalidParameter("names must be texts in sorted order, each of them once.")
        entities = whole("the number of entities", len(names), least=1, most=MOST_NAMES)
        colluding = whole("colluding", self.colluding, least=1)  # every entity knows its own noise, and may be curious
        if entities - colluding < 2:
            raise InvalidParameter(
                f"a secure sum of {entities} entities hides nothing from {colluding} colluding ones: at least {colluding + 2} "
                "must take part, so that they cannot see a single entity's numbers. Add entities, or do without a secure sum."
            )
        fewest = whole("fewest", self.fewest, least=1, most=entities)
        if not safe(entities, fewest, colluding):
            least = least_fewest(entities, colluding)
            raise InvalidParameter(
                f"fewest = {fewest} of {entities} entities is not safe with {colluding} colluding: a server that tells entities "
                f"different drop-outs could unmask too small a sum. fewest must be from {least} to {entities}."
            )
        keep(self, names=names, fewest=fewest, colluding=colluding)

    @property
    def threshold(self) -> int:
        """How many shares recover a secret."""
        return self.fewest

    def index(self, name: str) -> int:
        """The point, from 1 to H, at which this entity's shares evaluate the polynomial."""
        return self.names.index(name) + 1


def safe(entities: int, fewest: int, colluding: int) -> bool:
    """Whether the server learns at most one total, whatever it tells the entities.

    That total includes at least ``fewest - colluding`` honest entities.
    """
    honest = fewest - colluding
    # The server may tell each honest entity other drop-outs, at most (entities - fewest) of them. To make the total too small,
    # (entities - fewest + 1) entities would have to be reported missing by `honest` others each, which is more reports than there
    # are. It follows that 2 * fewest > entities + colluding, so there is one total.
    return honest >= 2 and honest > (entities - fewest) ** 2


def least_fewest(entities: int, colluding: int) -> int:
    """The smallest safe `fewest`; `entities` itself is always safe."""
    missing = 0
    while safe(entities, entities - missing - 1, colluding):
        missing += 1
    return entities - missing


def seed_commitment(session: SumSession, upload: str, entity: str, seed: bytes) -> bytes:
    """The commitment to a seed in the `keys` message; it shows a wrong seed."""
    return commitment(seed, "seed", session.run, upload, entity)


def share_commitment(session: SumSession, upload: str, kind: int, dealer: str, holder: str, share: bytes) -> bytes:
    """The commitment to a share in the open part of a parcel; it shows a wrong share when it is given back."""
    return commitment(share, "share", session.run, upload, ("seed", "key")[kind], dealer, holder)


def parcel_key(session: SumSession, private: bytes, public: bytes, dealer: str, holder: str) -> bytes:
    """The key of the parcel from ``dealer`` to ``holder``. The other direction has another key."""
    return pair_key(private, public, "parcel", session.run, dealer, holder)


def parcel_context(session: SumSession, dealer: str, holder: str, commitments: bytes) -> bytes:
    """The context that seals a parcel from ``dealer`` to ``holder``."""
    return bound("parcel", session.run, dealer, holder, commitments)


def add_own_mask(
    session: SumSession,
    vector: NDArray[np.uint64],
    upload: str,
    entity: str,
    seed: bytes,
    *,
    subtract: bool = False,
) -> None:
    """Adds the mask that an entity draws for itself, in place."""
    add_stream(vector, mask_key(seed, "own mask", session.run, upload, entity), subtract=subtract)


def add_pair_mask(
    session: SumSession,
    vector: NDArray[np.uint64],
    upload: str,
    entity: str,
    other: str,
    private: bytes,
    public: bytes,
    *,
    subtract: bool = False,
) -> None:
    """Adds the mask that ``entity`` shares with ``other``, in place: the first by name adds it, the second subtracts it.

    The keys are the private key of one and the public key of the other.
    """
    first, second = sorted((entity, other))
    key = pair_key(private, public, "pair mask", session.run, upload, first, second)
    add_stream(vector, key, subtract=subtract != (entity == second))


def bound(purpose: str, *parts: str | bytes) -> bytes:
    """Bytes that bind a key, parcel or commitment to its purpose.

    Each part follows its length, so that ("ab", "c") and ("a", "bc") differ.
    """
    packed = [part.encode() if isinstance(part, str) else part for part in ("tacit secure sum/1", purpose, *parts)]
    return b"".join(len(part).to_bytes(4, "big") + part for part in packed)


def commitment(secret: bytes, purpose: str, *parts: str | bytes) -> bytes:
    """32 bytes that fix a secret without showing it. The secret must have at least 256 random bits."""
    return sha256(bound(purpose, *parts, secret)).digest()


def split(secret: bytes, threshold: int, count: int) -> list[bytes]:
    """Shamir's secret sharing of 32 bytes: the shares of holders 1 to ``count``, of ``SHARE_BYTES`` each.

    Share i is a random polynomial of degree threshold - 1 at the point i, modulo the prime 2^521 - 1; the secret is
    the polynomial at 0. Any ``threshold`` shares give the secret. Fewer are uniform and independent of it; beside
    commitments this holds for bounded computing power.
    """
    polynomial = [int.from_bytes(secret, "big"), *(_draw_below_prime() for _ in range(threshold - 1))]
    return [evaluate(polynomial, at, PRIME).to_bytes(SHARE_BYTES, "big") for at in range(1, count + 1)]


def combine(shares: Mapping[int, bytes]) -> bytes | None:
    """The secret, or None if these shares are not of one secret of 32 bytes. Give exactly as many as the threshold says.

    A wrong share gives a wrong secret without an error: compare the result with a commitment.
    """
    points = tuple(sorted(shares))
    values = [int.from_bytes(shares[point], "big") for point in points]
    secret = sum(weight * value for weight, value in zip(weights(points, PRIME), values, strict=True)) % PRIME
    return secret.to_bytes(SECRET_BYTES, "big") if secret < 2 ** (8 * SECRET_BYTES) else None


def evaluate(polynomial: list[int], at: int, prime: int) -> int:
    """Horner's rule; the constant term comes first."""
    value = 0
    for coefficient in reversed(polynomial):
        value = (value * at + coefficient) % prime
    return value


@lru_cache(maxsize=8)  # all secrets of one upload are combined from the same holders
def weights(points: tuple[int, ...], prime: int) -> tuple[int, ...]:
    """Lagrange weights: the value at 0 is the sum of weight times value, for a polynomial of degree below the number of points."""
    result = []
    for point in points:
        above = below = 1
        for other in points:
            if other != point:
                above, below = above * other % prime, below * (other - point) % prime
        result.append(above * pow(below, -1, prime) % prime)
    return tuple(result)


def _draw_below_prime() -> int:
    """A uniform number below the prime, from the operating system."""
    while True:
        number = int.from_bytes(os.urandom(SHARE_BYTES), "big") >> (8 * SHARE_BYTES - 521)
        if number < PRIME:
            return number


def seal(key: bytes, content: bytes, context: bytes) -> bytes:
    """The content in a parcel that only one entity can open (ChaCha20-Poly1305, RFC 8439).

    Opening needs the same ``context``, which is not sent.
    """
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    nonce = os.urandom(_NONCE)  # a key seals once, but an entity restored from a backup may seal again
    return nonce + ChaCha20Poly1305(key).encrypt(nonce, content, context)


def open_parcel(key: bytes, parcel: bytes, context: bytes) -> bytes:
    """The content of a parcel. Raises InvalidMessage if it was changed or is for another purpose."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    try:
        return ChaCha20Poly1305(key).decrypt(parcel[:_NONCE], parcel[_NONCE:], context)
    except (InvalidTag, ValueError):
        raise InvalidMessage("a parcel does not open: it was changed, or is for another entity or run.") from None


def new_private() -> bytes:
    """A private key of X25519, or the seed of a mask: 32 bytes from the operating system."""
    return os.urandom(KEY_BYTES)


def public_of(private: bytes) -> bytes:
    """The public key (X25519, 32 bytes) of a private key."""
    raw: bytes = _x25519().X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()
    return raw


def pair_key(private: bytes, public: bytes, purpose: str, *parts: str | bytes) -> bytes:
    """32 bytes for one purpose that only the holders of the two private keys know (RFC 7748, 5869)."""
    module = _x25519()
    try:
        agreed = module.X25519PrivateKey.from_private_bytes(private).exchange(
            module.X25519PublicKey.from_public_bytes(public)
        )
    except ValueError:  # a point of small order: anyone would know the result
        raise InvalidMessage("a public key is not a valid X25519 key: no secret can be agreed on with it.") from None
    return _derive(agreed, bound(purpose, *parts))


def check_public(public: bytes) -> None:
    """Raises InvalidMessage for points of small order, with which anyone knows the agreed key."""
    pair_key(_ANY_PRIVATE, public, "check")


def mask_key(seed: bytes, purpose: str, *parts: str | bytes) -> bytes:
    """The key of the mask of a seed."""
    return _derive(seed, bound(purpose, *parts))


def add_stream(vector: NDArray[np.uint64], key: bytes, *, subtract: bool = False) -> None:
    """Adds the mask of this key to a vector, or subtracts it, in place and modulo 2^64. Use a key for one vector only.

    The mask is a stream of ChaCha20, read as numbers modulo 2^64.
    """
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

    # Counter and nonce are 0, because the key has one use. One stream has 2^38 bytes, that is 2^35 numbers.
    stream = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor()
    buffer = bytearray(8 * min(_CHUNK, vector.size))
    for start in range(0, vector.size, _CHUNK):
        part = vector[start : start + _CHUNK]
        stream.update_into(memoryview(_ZEROS)[: 8 * part.size], memoryview(buffer)[: 8 * part.size])
        mask = np.frombuffer(buffer, dtype="<u8", count=part.size)
        if subtract:
            part -= mask
        else:
            part += mask


def _derive(secret: bytes, info: bytes) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=info).derive(secret)


def _x25519() -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import x25519
    except ImportError:
        raise MissingExtra("secure sums need the package cryptography: pip install 'tacit[federated]'.") from None
    return x25519
