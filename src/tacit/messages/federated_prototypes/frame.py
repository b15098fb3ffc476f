"""The signed frame in which every message of federated prototypes travels.

    tacit fp/1\\n | signature, 64 bytes | length of the header, 4 bytes | header, JSON | arrays, one after the other

Ed25519 (RFC 8032) signs everything except the signature itself. Numbers are little-endian. The header is canonical JSON (sorted
names, no spaces), so equal content is equal bytes; its member ``arrays`` lists name, type and shape of each array.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from math import prod
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidMessage, InvalidParameter, MissingExtra
from tacit.messages import values

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ed25519

MAGIC = b"tacit fp/1\n"
KEY_BYTES = 32
SIGNATURE_BYTES = 64
MOST_BYTES = 64 * 1024 * 1024  # of any frame
MOST_HEADER = 8 * 1024 * 1024  # a roster of 10,000 entities has about 2 MB
TYPES = ("u1", "u4", "u8", "i8", "f4", "f8")
_ARRAYS = "arrays"
_LENGTH = 4
_BEGIN = len(MAGIC) + SIGNATURE_BYTES
_MOST_ARRAYS, _MOST_SIDE = 16, 2**32
_DEEPEST = 32
VERSION = "fp/1"


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """The content of a frame. Do not trust any of it before ``verify``."""

    header: dict[str, Any] = field(repr=False)
    arrays: dict[str, NDArray[Any]] = field(repr=False)
    signature: bytes = field(repr=False)
    content: bytes = field(repr=False)  # all that is signed, without the magic

    @property
    def digest(self) -> str:
        """The digest of everything that is signed. The same content has the same digest."""
        return sha256(MAGIC + self.content).hexdigest()

    def verify(self, public_key: bytes) -> None:
        """Raises InvalidMessage unless the holder of this key signed the frame."""
        key = _public_key(public_key)
        from cryptography.exceptions import InvalidSignature

        try:
            key.verify(self.signature, MAGIC + self.content)
        except InvalidSignature:
            raise InvalidMessage("the signature of this message was not made with the expected key.") from None

    def array(self, name: str, kind: str, shape: tuple[int, ...]) -> NDArray[Any]:
        """The array of this name, if it has this type and shape."""
        array = self.arrays.get(name)
        if array is None or array.dtype != np.dtype(f"<{kind}") or array.shape != shape:
            raise InvalidMessage(f"expected {kind} numbers in the shape {shape} at $.arrays.{name}.")
        return array


def sign(key: bytes, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]] | None = None) -> bytes:
    """A frame signed with a private key (32 bytes). The same arguments give the same bytes: Ed25519 uses no randomness."""
    listed, parts = [], []
    for name, array in (arrays or {}).items():
        kind = f"{array.dtype.kind}{array.dtype.itemsize}"
        if kind not in TYPES or array.ndim not in (1, 2):
            raise InvalidParameter(f"a frame carries vectors and matrices of {', '.join(TYPES)}, not {kind}.")
        listed.append([name, kind, list(array.shape)])
        parts.append(np.ascontiguousarray(array, dtype=f"<{kind}").tobytes())
    if _ARRAYS in header:
        raise InvalidParameter(f"'{_ARRAYS}' is the frame's own member.")
    packed = canonical_bytes({**header, _ARRAYS: listed})
    content = len(packed).to_bytes(_LENGTH, "little") + packed + b"".join(parts)
    if len(packed) > MOST_HEADER or _BEGIN + len(content) > MOST_BYTES:
        raise InvalidParameter(f"a message has at most {MOST_BYTES:,} bytes, its header {MOST_HEADER:,}.")
    return MAGIC + _private_key(key).sign(MAGIC + content) + content


def open_frame(data: bytes, most_bytes: int = MOST_BYTES) -> Frame:
    """Reads a frame. Raises InvalidMessage and no other error. It does not check the signature: call ``verify``."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise InvalidMessage("a message of a federation is bytes.")
    if len(data) > min(most_bytes, MOST_BYTES):
        raise InvalidMessage(f"a message of this kind has at most {min(most_bytes, MOST_BYTES):,} bytes.")
    data = bytes(data)
    if data[: len(MAGIC)] != MAGIC or len(data) < _BEGIN + _LENGTH:
        raise InvalidMessage("these bytes are not a message of the protocol fp/1.")
    content = data[_BEGIN:]
    length = int.from_bytes(content[:_LENGTH], "little")
    if length > MOST_HEADER or _LENGTH + length > len(content):
        raise InvalidMessage("the header is longer than the message.")
    header = _parse_header(content[_LENGTH : _LENGTH + length])
    arrays = _read_arrays(header.pop(_ARRAYS), content, _LENGTH + length)
    return Frame(header, arrays, data[len(MAGIC) : _BEGIN], content)


def canonical_bytes(value: Any) -> bytes:
    """``value`` as canonical JSON: sorted names, no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def public_of(key: bytes) -> bytes:
    """The public key (32 bytes) that belongs to a private one."""
    return _private_key(key).public_key().public_bytes_raw()


def _parse_header(packed: bytes) -> dict[str, Any]:
    try:
        if _depth(packed) > _DEEPEST:
            raise InvalidMessage("the header is nested too deeply.")
        header = json.loads(packed.decode("ascii"), parse_constant=_refuse_constant)
        if canonical_bytes(header) != packed:  # also repeated members, and numbers beyond all floats
            raise InvalidMessage("the header is not canonical JSON.")
    except InvalidMessage:
        raise
    except (ValueError, RecursionError):
        raise InvalidMessage("the header is not JSON.") from None
    if not isinstance(header, dict) or _ARRAYS not in header:
        raise InvalidMessage(f"a header is an object with a member '{_ARRAYS}'.")
    return header


def _read_arrays(listed: object, content: bytes, start: int) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {}
    entries = values.listed(listed, "$.arrays")
    if len(entries) > _MOST_ARRAYS:
        raise InvalidMessage(f"a message has at most {_MOST_ARRAYS} arrays.")
    for entry in entries:
        name, kind, shape = values.listed(entry, "$.arrays", length=3)
        values.text(name, "$.arrays", least=1, most=40)
        sides = values.listed(shape, "$.arrays")
        if kind not in TYPES or len(sides) not in (1, 2) or name in arrays:
            raise InvalidMessage("expected vectors and matrices, each name once, at $.arrays.")
        count = prod(values.whole(side, "$.arrays", least=0, most=_MOST_SIDE) for side in sides)
        end = start + count * int(kind[1:])
        if end > len(content):
            raise InvalidMessage("the message ends within an array.")
        arrays[name] = np.frombuffer(content, dtype=f"<{kind}", count=count, offset=start).reshape(sides)
        start = end
    if start != len(content):
        raise InvalidMessage("the message goes on after its last array.")
    return arrays


def _depth(packed: bytes) -> int:
    """An upper bound on how deeply JSON is nested: brackets within texts count too."""
    deepest = depth = 0
    for byte in packed.translate(None, _NO_BRACKETS):
        depth += 1 if byte in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest


_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")


def _refuse_constant(_: str) -> NoReturn:
    raise InvalidMessage("the header contains NaN or infinity.")


def _private_key(key: bytes) -> "ed25519.Ed25519PrivateKey":
    _require_key("private", key)
    private: ed25519.Ed25519PrivateKey = _ed25519().Ed25519PrivateKey.from_private_bytes(bytes(key))
    return private


def _public_key(key: bytes) -> "ed25519.Ed25519PublicKey":
    _require_key("public", key)
    public: ed25519.Ed25519PublicKey = _ed25519().Ed25519PublicKey.from_public_bytes(bytes(key))
    return public


def _require_key(kind: str, key: bytes) -> None:
    if not isinstance(key, (bytes, bytearray)) or len(key) != KEY_BYTES:
        # The error never shows the key.
        raise InvalidParameter(f"a {kind} key is {KEY_BYTES} bytes, the raw form of Ed25519.")


def _ed25519() -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise MissingExtra("signed messages need the package cryptography: pip install 'tacit[federated]'.") from None
    return ed25519
