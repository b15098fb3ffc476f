"""Parcels that only one entity can open, and only as they were packed: ChaCha20-Poly1305 (RFC 8439)."""

import os

from tacit.errors import InvalidMessage

_NONCE = 12
PARCEL_EXTRA = _NONCE + 16  # bytes beyond the content: nonce and tag


def seal(key: bytes, content: bytes, context: bytes) -> bytes:
    """The content, encrypted; ``context`` is not sent and must be the same at opening."""
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    nonce = os.urandom(_NONCE)  # though a key seals once: an entity restored from a backup may seal again
    return nonce + ChaCha20Poly1305(key).encrypt(nonce, content, context)


def open_parcel(key: bytes, parcel: bytes, context: bytes) -> bytes:
    """What was sealed. Refuses a parcel that was changed, or meant for another purpose."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    try:
        return ChaCha20Poly1305(key).decrypt(parcel[:_NONCE], parcel[_NONCE:], context)
    except (InvalidTag, ValueError):
        raise InvalidMessage("a parcel does not open: it was changed, or is meant for another entity or run.") from None
