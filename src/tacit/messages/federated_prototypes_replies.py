"""What leaves an entity: one signed reply in each stage. No number of users, no loss, no time; its size follows from the manifest.

A reply is read as a whole or refused as a whole, with one of a fixed list of codes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidMessage
from tacit.messages.federated_prototypes_frame import Frame, open_frame, sign
from tacit.messages.federated_prototypes_manifest import VERSION, Manifest
from tacit.messages.federated_prototypes_terms import Mechanism
from tacit.models.moments import MOST as MOST_HEAD
from tacit.models.moments import triangle

_NAMES = ("kind", "version", "run", "catalogue", "stage", "from", "mechanism", "epsilon", "delta", "entry")
_FRAME = 4_096  # bytes of a frame beside its arrays; a message of the secure sum is a frame within a reply
_PARCEL = 2_048  # bytes that such a message has for each contributor, at most
BODY = "body"


class Code(StrEnum):
    """Why a reply is refused."""

    MALFORMED = "malformed"
    UNKNOWN_VERSION = "unknown-version"
    OTHER_RUN = "other-run"
    WRONG_CATALOGUE = "wrong-catalogue"
    UNKNOWN_ENTITY = "unknown-entity"
    RECEIVER = "receiver"
    WRONG_SIGNATURE = "wrong-signature"
    UNKNOWN_STAGE = "unknown-stage"
    EARLY = "early"
    LATE = "late"
    LEFT = "left-before"
    CONFLICT = "conflict"
    WRONG_TERMS = "wrong-terms"
    WRONG_SHAPE = "wrong-shape"
    NOT_FINITE = "not-finite"
    INDEX_RANGE = "index-out-of-range"
    INDEX_REPEATED = "index-repeated"
    VALUE_RANGE = "value-out-of-range"
    SECURE_SUM = "secure-sum"


class Refused(InvalidMessage):
    """A reply that is not taken. ``reason`` is its code; nothing of the reply itself is told."""

    def __init__(self, reason: Code, detail: str | None = None) -> None:
        super().__init__(f"the reply is refused: {reason.value}.")
        self.reason, self.detail = reason, detail


@dataclass(frozen=True, slots=True, eq=False)
class Reply:
    """One entity's reply in one stage. ``entry`` is what its ledger knows the release by, empty where nothing was released."""

    stage: str
    sender: str
    entry: str = ""
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict, repr=False)

    @property
    def body(self) -> bytes:
        """The message of the secure sum."""
        return self.arrays[BODY].tobytes()

    def signed(self, key: bytes, manifest: Manifest) -> bytes:
        """The signed frame that goes to the coordinator."""
        return sign(
            key, {**_header(manifest), "stage": self.stage, "from": self.sender, "entry": self.entry}, self.arrays
        )


def entry_of(manifest: Manifest, stage: str, sender: str) -> str:
    """What an entity's release of a stage is known by in its ledger, which other entities may share.

    Ledgers take ids of up to 128 characters; a name may have 64, so a digest stands for it.
    """
    return f"{VERSION} {manifest.run} {sha256(sender.encode()).hexdigest()[:16]} {stage}"


def most_bytes(manifest: Manifest, stage: str, head: int = 0) -> int:
    """The longest reply of a stage."""
    if stage == "prototypes":
        k, picked = manifest.k or 0, manifest.picked
        cells = manifest.items if picked is None or picked >= manifest.items else 2 * picked
        return _FRAME + 4 * k * (cells + 1)
    if stage in ("popularity", "gram"):
        return 2 * _FRAME + 8 * (manifest.items if stage == "popularity" else triangle(head))
    return 2 * _FRAME + _PARCEL * len(manifest.contributors)


def read_sender(data: bytes, manifest: Manifest) -> tuple[Frame, str, str]:
    """The frame, its sender and its stage, once its signature is checked against the roster's key."""
    try:
        frame = open_frame(data, max(most_bytes(manifest, stage, MOST_HEAD) for stage in manifest.stages))
    except InvalidMessage:
        raise Refused(Code.MALFORMED) from None
    header = frame.header
    if set(header) != set(_NAMES) or header["kind"] != "reply":
        raise Refused(Code.MALFORMED)
    if header["version"] != VERSION:
        raise Refused(Code.UNKNOWN_VERSION)
    if header["run"] != manifest.run:
        raise Refused(Code.OTHER_RUN)
    sender = header["from"]
    known = manifest.member(sender) if isinstance(sender, str) else None
    if known is None:
        raise Refused(Code.UNKNOWN_ENTITY)
    try:
        frame.verify(bytes.fromhex(known.key))
    except InvalidMessage:
        raise Refused(Code.WRONG_SIGNATURE) from None
    if not known.contributes:
        raise Refused(Code.RECEIVER)
    if header["catalogue"] != manifest.catalogue:
        raise Refused(Code.WRONG_CATALOGUE)
    if header["stage"] not in manifest.stages:
        raise Refused(Code.UNKNOWN_STAGE)
    return frame, known.name, header["stage"]


def read_reply(frame: Frame, manifest: Manifest, head: int = 0) -> Reply:
    """The reply in a frame that ``read_sender`` has let pass, if it is what the manifest asks for in this stage."""
    header = frame.header
    stage, entry = header["stage"], header["entry"]
    if any(header[name] != value or type(header[name]) is not type(value) for name, value in _header(manifest).items()):
        raise Refused(Code.WRONG_TERMS)
    releases = stage in ("prototypes", "popularity", "gram")
    if entry != (entry_of(manifest, stage, header["from"]) if releases else ""):
        raise Refused(Code.WRONG_TERMS)
    arrays = _arrays(frame, manifest, stage, head)
    if stage == "prototypes":
        _require_prototypes(arrays, manifest)
    return Reply(stage, header["from"], entry, arrays)


def shapes(manifest: Manifest, stage: str, head: int = 0) -> dict[str, tuple[str, tuple[int, ...]]] | None:
    """Type and shape of every array in the reply of a stage; None for a message of the secure sum."""
    if stage == "prototypes":
        k, picked = manifest.k or 0, manifest.picked
        sizes = {"sizes": ("f4", (k,))}
        if picked is None or picked >= manifest.items:
            return {**sizes, "values": ("f4", (k, manifest.items))}
        return {**sizes, "index": ("u4", (k, picked)), "values": ("f4", (k, picked))}
    length = {"popularity": manifest.items, "gram": triangle(head)}.get(stage)
    return None if length is None or manifest.is_secure else {"steps": ("i8", (length,))}


def _arrays(frame: Frame, manifest: Manifest, stage: str, head: int) -> dict[str, NDArray[Any]]:
    expected = shapes(manifest, stage, head)
    if expected is None:
        body = frame.arrays.get(BODY)
        if set(frame.arrays) != {BODY} or body is None or body.dtype != np.dtype("u1") or body.ndim != 1:
            raise Refused(Code.WRONG_SHAPE)
        return {BODY: body}
    if set(frame.arrays) != set(expected):
        raise Refused(Code.WRONG_SHAPE)
    try:
        return {name: frame.array(name, *form) for name, form in expected.items()}
    except InvalidMessage:
        raise Refused(Code.WRONG_SHAPE) from None


def _require_prototypes(arrays: Mapping[str, NDArray[Any]], manifest: Manifest) -> None:
    values = arrays["values"]
    if not (np.isfinite(values).all() and np.isfinite(arrays["sizes"]).all()):
        raise Refused(Code.NOT_FINITE)
    if "index" in arrays:
        index = arrays["index"]
        if (index >= manifest.items).any():
            raise Refused(Code.INDEX_RANGE)
        if (np.diff(index.astype(np.int64), axis=1) <= 0).any():  # ascending: there is one way to write it
            raise Refused(Code.INDEX_REPEATED)
    if (values < 0.0).any() or (values > np.float32(manifest.value_bound or 0.0)).any():
        raise Refused(Code.VALUE_RANGE)


def _header(manifest: Manifest) -> dict[str, Any]:
    return {
        "kind": "reply",
        "version": VERSION,
        "run": manifest.run,
        "catalogue": manifest.catalogue,
        "mechanism": manifest.mechanism.value,
        "epsilon": manifest.epsilon,
        "delta": 0.0 if manifest.mechanism is Mechanism.GRID else manifest.delta,
    }
