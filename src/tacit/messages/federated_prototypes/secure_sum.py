"""The messages of secure sums. Each message of an entity is a frame signed with its key in the manifest.

For each upload:

    entity -> coordinator                                            coordinator -> entity
    PublicKeys       public keys and commitments, for all uploads    all messages of this kind
    SealedShares     a sealed parcel for every entity                the parcels for this entity, by sender
    MaskedUpload     one upload under masks                          the names of those who are left, sorted
    UnmaskingShares  one share for every entity that shared          -

`pack` and `unpack` carry what goes to an entity: {name: keys message}, {name: parcel}, {name: b""}. The coordinator passes these on
without a signature: parcels authenticate themselves, and entities check names by rules.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidMessage
from tacit.messages import values
from tacit.messages.federated_prototypes.frame import VERSION, Frame, open_frame, sign
from tacit.models.secure_sum import SHARE_BYTES, SumSession, check_public

_PIECE_LENGTH = 4  # bytes that give the length of a piece


@dataclass(frozen=True, slots=True)
class PublicKeys:
    """The public keys of one entity: one to seal parcels for it; for each upload a masking key and the commitment to its seed."""

    entity: str
    sealing: bytes
    masking: tuple[bytes, ...]
    commitments: tuple[bytes, ...]

    def signed(self, session: SumSession, key: bytes) -> bytes:
        body = {
            "sealing": self.sealing.hex(),
            "masking": [key.hex() for key in self.masking],
            "commitments": [commitment.hex() for commitment in self.commitments],
        }
        return _signed(session, key, "keys", self.entity, body)

    @classmethod
    def read(cls, session: SumSession, data: bytes) -> "PublicKeys":
        frame, entity = _read_secure(session, data, "keys", ("sealing", "masking", "commitments"), ())
        keys = [_bytes(frame.header["sealing"], "$.sealing")]
        for name in ("masking", "commitments"):
            listed = values.listed(frame.header[name], f"$.{name}", length=len(session.uploads))
            keys += [_bytes(key, f"$.{name}") for key in listed]
        if len(set(keys)) < len(keys):
            raise InvalidMessage("expected a different key for every purpose.")
        uploads = len(session.uploads)
        for public in keys[: 1 + uploads]:
            check_public(public)
        return cls(entity, keys[0], tuple(keys[1 : 1 + uploads]), tuple(keys[1 + uploads :]))


@dataclass(frozen=True, slots=True)
class SealedShares:
    """The parcels of one entity, by recipient."""

    entity: str
    parcels: Mapping[str, bytes] = field(repr=False)

    def signed(self, session: SumSession, key: bytes) -> bytes:
        holders = sorted(self.parcels)
        rows = np.frombuffer(b"".join(self.parcels[name] for name in holders), dtype=np.uint8)
        arrays = {"parcels": rows.reshape(len(holders), session.parcel_bytes)}
        return _signed(session, key, "shares", self.entity, {"holders": session.digest(holders)}, arrays)

    @classmethod
    def read(cls, session: SumSession, data: bytes, holders: Iterable[str]) -> "SealedShares":
        """The message, if it has a parcel for each of these entities; else InvalidMessage."""
        names = sorted(holders)
        frame, entity = _read_secure(session, data, "shares", ("holders",), ("parcels",))
        if frame.header["holders"] != session.digest(names):
            raise InvalidMessage("the parcels are not for the entities whose keys were passed on.")
        rows = frame.array("parcels", "u1", (len(names), session.parcel_bytes))
        return cls(entity, {name: row.tobytes() for name, row in zip(names, rows, strict=True)})


@dataclass(frozen=True, slots=True, eq=False)
class MaskedUpload:
    """One upload of one entity under masks. ``values`` are whole numbers modulo 2^64 and look uniform."""

    entity: str
    upload: str
    values: NDArray[np.uint64] = field(repr=False)

    def signed(self, session: SumSession, key: bytes, sharers: Iterable[str]) -> bytes:
        body = {"upload": self.upload, "sharers": session.digest(sharers)}
        return _signed(session, key, "masked", self.entity, body, {"values": self.values})

    @classmethod
    def read(cls, session: SumSession, data: bytes, upload: str, sharers: Iterable[str], cells: int) -> "MaskedUpload":
        """The message, if it is of this upload, of this length, and masked against these entities."""
        frame, entity = _read_secure(session, data, "masked", ("upload", "sharers"), ("values",))
        _require_same(frame, "upload", upload)
        _require_same(frame, "sharers", session.digest(sharers))
        return cls(entity, upload, frame.array("values", "u8", (cells,)))


@dataclass(frozen=True, slots=True)
class UnmaskingShares:
    """The shares that one entity gives when an upload closes: of a survivor's seed, or of another entity's masking key."""

    entity: str
    upload: str
    shares: Mapping[str, bytes] = field(repr=False)

    def signed(self, session: SumSession, key: bytes, survivors: Iterable[str]) -> bytes:
        names = sorted(self.shares)
        rows = np.frombuffer(b"".join(self.shares[name] for name in names), dtype=np.uint8)
        body = {"upload": self.upload, "survivors": session.digest(survivors)}
        return _signed(session, key, "unmask", self.entity, body, {"shares": rows.reshape(len(names), SHARE_BYTES)})

    @classmethod
    def read(
        cls, session: SumSession, data: bytes, upload: str, survivors: Iterable[str], sharers: Iterable[str]
    ) -> "UnmaskingShares":
        """The message, if it is about this upload and these survivors."""
        names = sorted(sharers)
        frame, entity = _read_secure(session, data, "unmask", ("upload", "survivors"), ("shares",))
        _require_same(frame, "upload", upload)
        _require_same(frame, "survivors", session.digest(survivors))
        rows = frame.array("shares", "u1", (len(names), SHARE_BYTES))
        return cls(entity, upload, {name: row.tobytes() for name, row in zip(names, rows, strict=True)})


def pack(parts: Mapping[str, bytes]) -> bytes:
    """Names and their contents as bytes, sorted by name."""
    pieces = [piece for name in sorted(parts) for piece in (name.encode(), parts[name])]
    return b"".join(len(piece).to_bytes(_PIECE_LENGTH, "little") + piece for piece in pieces)


def unpack(data: bytes) -> dict[str, bytes]:
    """The names and contents that ``pack`` wrote; InvalidMessage for anything else."""
    pieces, start = [], 0
    while start < len(data):
        end = start + _PIECE_LENGTH + int.from_bytes(data[start : start + _PIECE_LENGTH], "little")
        if end > len(data):
            raise InvalidMessage("a list of names ends within one of them.")
        pieces.append(data[start + _PIECE_LENGTH : end])
        start = end
    try:
        names = [name.decode() for name in pieces[::2]]
    except UnicodeDecodeError:
        raise InvalidMessage("a name is not a text.") from None
    if len(pieces) % 2 or any(first >= second for first, second in pairwise(names)):
        raise InvalidMessage("expected every name once, in rising order, each with its content.")
    return dict(zip(names, pieces[1::2], strict=True))


def _signed(
    session: SumSession,
    key: bytes,
    kind: str,
    entity: str,
    body: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]] | None = None,
) -> bytes:
    header = {"kind": f"secure-{kind}", "version": VERSION, "run": session.run, "entity": entity, **body}
    return sign(key, header, arrays)


def _read_secure(
    session: SumSession, data: bytes, kind: str, names: tuple[str, ...], arrays: tuple[str, ...]
) -> tuple[Frame, str]:
    """The frame, with its signature checked, and the name of its sender."""
    frame = open_frame(data)
    header = values.members(
        frame.header, f"a message of the kind secure-{kind}", ("kind", "version", "run", "entity", *names)
    )
    _require_same(frame, "kind", f"secure-{kind}")
    _require_same(frame, "version", VERSION)
    _require_same(frame, "run", session.run)
    entity = header["entity"]
    if not isinstance(entity, str) or entity not in session.roster:
        raise InvalidMessage("the sender is not an entity of this run.")
    frame.verify(session.roster[entity])
    if tuple(frame.arrays) != arrays:
        raise InvalidMessage(f"a message of the kind secure-{kind} does not have these arrays.")
    return frame, entity


def _require_same(frame: Frame, name: str, expected: str) -> None:
    if frame.header[name] != expected:
        raise InvalidMessage(f"$.{name} belongs to another message, stage or run.")


def _bytes(value: object, path: str) -> bytes:
    return bytes.fromhex(values.hexadecimal(value, path, length=64))
