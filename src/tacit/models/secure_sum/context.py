"""What a key, a parcel or a commitment is for, as bytes: no two purposes have the same ones."""

from hashlib import sha256

COMMITMENT_BYTES = 32


def bound(purpose: str, *parts: str | bytes) -> bytes:
    """All parts, each behind its length: ("ab", "c") and ("a", "bc") differ."""
    packed = [part.encode() if isinstance(part, str) else part for part in ("tacit secure sum/1", purpose, *parts)]
    return b"".join(len(part).to_bytes(4, "big") + part for part in packed)


def commitment(secret: bytes, purpose: str, *parts: str | bytes) -> bytes:
    """32 bytes that fix a secret and hide it, as the secret has 256 random bits or more."""
    return sha256(bound(purpose, *parts, secret)).digest()
