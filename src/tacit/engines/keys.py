"""Keys in files: 32 raw bytes in hexadecimal digits, readable by their owner only; and the public key that belongs to each."""

import os
from pathlib import Path

from tacit.errors import InvalidData, InvalidParameter
from tacit.messages.federated_prototypes_frame import KEY_BYTES, public_of

_PRIVATE = 0o600
_PUBLIC = ".pub"


def new_key(file: str | os.PathLike[str]) -> bytes:
    """Draws a private key, writes it to a file that must not be there yet, and its public key beside it; returns the latter."""
    key = os.urandom(KEY_BYTES)
    public = public_of(key)
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE)
    except FileExistsError:
        raise InvalidParameter(
            "there is a file of that name already, and a key is never overwritten: name another."
        ) from None
    with os.fdopen(handle, "w", encoding="ascii") as content:
        content.write(key.hex() + "\n")
        content.flush()
        os.fsync(content.fileno())
    Path(f"{os.fspath(file)}{_PUBLIC}").write_text(public.hex() + "\n", encoding="ascii")
    return public


def read_key(file: str | os.PathLike[str]) -> bytes:
    """The private key in a file. Refuses a file that others may read."""
    mode = os.stat(file).st_mode
    if os.name == "posix" and mode & 0o077:
        raise InvalidParameter("the key's file can be read by others: chmod 600 it, or draw a new key.")
    return _digits(Path(file).read_bytes(), "a private key")


def read_public(text_or_file: str) -> bytes:
    """A public key: 64 hexadecimal digits, or a file that holds them."""
    text = text_or_file.strip()
    if len(text) == 2 * KEY_BYTES and not os.path.exists(text):
        return _digits(text.encode(), "a public key")
    return _digits(Path(text_or_file).read_bytes(), "a public key")


def _digits(content: bytes, what: str) -> bytes:
    try:
        key = bytes.fromhex(content.decode("ascii").strip())
    except (UnicodeDecodeError, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise InvalidData(f"expected {what}: {2 * KEY_BYTES} hexadecimal digits.")
    return key
