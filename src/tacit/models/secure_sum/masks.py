"""Masks: streams of ChaCha20 as numbers modulo 2^64, under keys that two entities agree on or that one draws for itself."""

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidMessage, MissingExtra
from tacit.models.secure_sum.context import bound

KEY_BYTES = 32
_ANY = bytes(
    range(KEY_BYTES)
)  # X25519 makes every private key a multiple of 8, and those points have orders that divide 8
_CHUNK = 1 << 17  # numbers at a time: 1 MB of mask beside the vector
_ZEROS = bytes(8 * _CHUNK)


def new_private() -> bytes:
    """A private key of X25519, or the seed of a mask: 32 bytes from the operating system."""
    return os.urandom(KEY_BYTES)


def public_of(private: bytes) -> bytes:
    """The public key of X25519, 32 bytes."""
    raw: bytes = _x25519().X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()
    return raw


def pair_key(private: bytes, public: bytes, purpose: str, *parts: str | bytes) -> bytes:
    """32 bytes that only the holders of the two private keys know, for one purpose (RFC 7748, 5869)."""
    module = _x25519()
    try:
        agreed = module.X25519PrivateKey.from_private_bytes(private).exchange(
            module.X25519PublicKey.from_public_bytes(public)
        )
    except ValueError:  # a point of small order: everybody would know the result
        raise InvalidMessage("a public key is none that a key can be agreed on with.") from None
    return _derived(agreed, bound(purpose, *parts))


def check_public(public: bytes) -> None:
    """Refuses the points of small order, with which everybody knows what is agreed on, whoever agrees."""
    pair_key(_ANY, public, "check")


def mask_key(seed: bytes, purpose: str, *parts: str | bytes) -> bytes:
    """The key of the mask that a seed stands for."""
    return _derived(seed, bound(purpose, *parts))


def add_stream(vector: NDArray[np.uint64], key: bytes, *, subtract: bool = False) -> None:
    """Adds the mask of this key to a vector, or takes it off, in place and modulo 2^64. A key masks one vector, ever."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

    # Counter and nonce 0: the key has one use. One stream has 2^38 bytes, 2^35 numbers.
    stream = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor()
    held = bytearray(8 * min(_CHUNK, vector.size))
    for start in range(0, vector.size, _CHUNK):
        part = vector[start : start + _CHUNK]
        stream.update_into(memoryview(_ZEROS)[: 8 * part.size], memoryview(held)[: 8 * part.size])
        mask = np.frombuffer(held, dtype="<u8", count=part.size)
        if subtract:
            part -= mask
        else:
            part += mask


def _derived(secret: bytes, info: bytes) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=info).derive(secret)


def _x25519() -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import x25519
    except ImportError:
        raise MissingExtra("secure sums need the package cryptography: pip install 'tacit[federated]'.") from None
    return x25519
