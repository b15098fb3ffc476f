"""The messages of a run after its manifest: replies of entities, steps of the coordinator, and the shared model.

An entity sends one signed reply in each stage. It holds no number of users, no loss and no time, and its size follows from the
manifest. The coordinator takes a whole reply or refuses it with one of a fixed list of codes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from tacit.checks import keep
from tacit.errors import InvalidMessage
from tacit.messages.codec import characters, read
from tacit.messages.federated_prototypes.frame import Frame, canonical_bytes, open_frame, sign
from tacit.messages.federated_prototypes.manifest import VERSION, Manifest
from tacit.messages.federated_prototypes.terms import Mechanism
from tacit.models.moments import MOST as MOST_HEAD
from tacit.models.moments import SharedMoments, triangle

HEAD, BODY = "head", "body"  # names of arrays
_NAMES = ("kind", "version", "run", "catalogue", "stage", "from", "mechanism", "epsilon", "delta", "entry")
_FRAME = 4_096  # bytes of a frame beside its arrays; a message of the secure sum is a frame within a reply
_PARCEL = 2_048  # bytes that such a message has for each contributor, at most


@dataclass(frozen=True, slots=True, eq=False)
class Reply:
    """One entity's reply in one stage. ``entry`` is the id of the release in its ledger, empty if the stage releases nothing."""

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
    """Raised for a reply that the coordinator refuses. ``reason`` is its code. The error shows nothing of the reply."""

    def __init__(self, reason: Code, detail: str | None = None) -> None:
        super().__init__(f"the reply is refused: {reason.value}.")
        self.reason, self.detail = reason, detail


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """Opens a stage for one contributor: with the head of items of a Gram matrix, or with a message of the secure sum."""

    run: str
    stage: str
    to: str
    head: NDArray[np.int64] | None = field(default=None, repr=False)
    body: bytes | None = field(default=None, repr=False)

    def signed(self, key: bytes) -> bytes:
        """The signed frame that goes to one contributor."""
        header = {"kind": "step", "version": VERSION, "run": self.run, "stage": self.stage, "to": self.to}
        if self.head is not None:
            return sign(key, header, {HEAD: self.head.astype("<u4")})
        return sign(key, header, {BODY: np.frombuffer(self.body or b"", dtype="<u1")})

    @classmethod
    def from_frame(cls, frame: Frame, manifest: Manifest) -> "Step":
        """The step in a frame whose signature you checked; InvalidMessage unless it is one of this run."""
        header: _StepHeader = read(frame.header, _StepHeader, "a step")
        stage, to = header.stage, header.to
        if header.run != manifest.run:
            raise InvalidMessage("expected a step of this run.")
        if stage not in manifest.stages[1:]:
            raise InvalidMessage("expected one of the stages of this run at $.stage.")
        if stage == "gram":
            return cls(manifest.run, stage, to, head=_head(frame, manifest.items))
        body = frame.array(BODY, "u1", frame.arrays[BODY].shape if BODY in frame.arrays else (0,))
        if set(frame.arrays) != {BODY} or body.ndim != 1:
            raise InvalidMessage("expected one array of bytes in this step.")
        return cls(manifest.run, stage, to, body=body.tobytes())


@dataclass(frozen=True, slots=True, eq=False)
class SharedModel:
    """The model that everybody gets at the end of a run: ``factors``, a row of numbers of at least 0 per item, or ``moments``.

    It follows from releases alone and costs nothing more. ``informed`` is False if the releases hold no information at this
    budget: entities then use their own rows alone. ``number`` counts the models of a run, ``contributors`` the replies in it.
    Entities can compare ``hash`` to check that they all got the same model.
    """

    run: str
    contributors: int
    number: int = 1
    informed: bool = True
    factors: NDArray[np.float32] | None = field(default=None, repr=False)
    moments: SharedMoments | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if (self.factors is None) == (self.moments is None):
            raise InvalidMessage("a model holds factors or moments.")
        if self.factors is not None:
            keep(self, factors=np.ascontiguousarray(self.factors, dtype=np.float32))
        elif self.moments is not None:
            keep(self, informed=self.moments.informative)

    @property
    def hash(self) -> str:
        """The digest of everything in the model."""
        digest = sha256(canonical_bytes(self._header()))
        for name, values in self._arrays().items():
            digest.update(canonical_bytes([name, values.dtype.str, list(values.shape)]) + values.tobytes())
        return digest.hexdigest()

    def signed(self, key: bytes) -> bytes:
        """The signed frame that goes to every member of the roster."""
        return sign(key, {**self._header(), "model": self.hash}, self._arrays())

    @classmethod
    def from_frame(cls, frame: Frame, manifest: Manifest) -> "SharedModel":
        """The model in a frame whose signature you checked; InvalidMessage unless it is one of this run."""
        header: _ModelHeader = read(frame.header, _ModelHeader, "a model")
        if header.run != manifest.run or header.contributors > len(manifest.contributors):
            raise InvalidMessage("expected a model of this run, of no more replies than it has contributors.")
        if manifest.mechanism is Mechanism.MOMENTS:
            moments = _moments(header, frame, manifest)
            model = cls(manifest.run, header.contributors, header.number, moments=moments)
        else:
            if (header.popularity_sd, header.gram_sd, header.seen) != (None, None, None):
                raise InvalidMessage("expected no figures of moments in a model of factors.")
            factors = _factors(frame, manifest)
            model = cls(manifest.run, header.contributors, header.number, header.informed, factors=factors)
        if model.informed != header.informed or header.model != model.hash:
            raise InvalidMessage("the hash of the model does not match its content.")
        return model

    def _header(self) -> dict[str, Any]:
        moments = self.moments
        return {
            "kind": "model",
            "version": VERSION,
            "run": self.run,
            "number": self.number,
            "contributors": self.contributors,
            "informed": self.informed,
            "popularity_sd": None if moments is None else moments.popularity_sd,
            "gram_sd": None if moments is None else moments.gram_sd,
            "seen": None if moments is None else moments.seen,
        }

    def _arrays(self) -> dict[str, NDArray[Any]]:
        if self.factors is not None:
            return {"factors": self.factors.astype("<f4")}
        if self.moments is None:
            return {}
        return {
            "popularity": self.moments.popularity.astype("<f8"),
            "head": self.moments.head.astype("<u4"),
            "pseudo_rows": self.moments.pseudo_rows.astype("<f4"),
        }


def entry_of(manifest: Manifest, stage: str, sender: str) -> str:
    """The id of an entity's release of a stage in its ledger, which several entities may share.

    Ids of ledgers have up to 128 characters. A name may have 64, so the id holds a digest of it.
    """
    return f"{VERSION} {manifest.run} {sha256(sender.encode()).hexdigest()[:16]} {stage}"


def most_bytes(manifest: Manifest, stage: str, head: int = 0) -> int:
    """The size of the longest reply of a stage, in bytes."""
    if stage == "prototypes":
        k, picked = manifest.k or 0, manifest.picked
        cells = manifest.items if picked is None or picked >= manifest.items else 2 * picked
        return _FRAME + 4 * k * (cells + 1)
    if stage in ("popularity", "gram"):
        return 2 * _FRAME + 8 * (manifest.items if stage == "popularity" else triangle(head))
    return 2 * _FRAME + _PARCEL * len(manifest.contributors)


def read_sender(data: bytes, manifest: Manifest) -> tuple[Frame, str, str]:
    """The frame, its sender and its stage, with the signature checked against the roster's key. Raises Refused."""
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
    entity = manifest.member(sender) if isinstance(sender, str) else None
    if entity is None:
        raise Refused(Code.UNKNOWN_ENTITY)
    try:
        frame.verify(bytes.fromhex(entity.key))
    except InvalidMessage:
        raise Refused(Code.WRONG_SIGNATURE) from None
    if not entity.contributes:
        raise Refused(Code.RECEIVER)
    if header["catalogue"] != manifest.catalogue:
        raise Refused(Code.WRONG_CATALOGUE)
    if header["stage"] not in manifest.stages:
        raise Refused(Code.UNKNOWN_STAGE)
    return frame, entity.name, header["stage"]


def read_reply(frame: Frame, manifest: Manifest, head: int = 0) -> Reply:
    """The reply in a frame that ``read_sender`` accepted. Raises Refused unless the manifest asks for it in this stage."""
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


class _StepHeader(Struct, forbid_unknown_fields=True):
    kind: Literal["step"]
    version: Literal["fp/1"]
    run: str
    stage: str
    to: Annotated[str, characters(1)]


def _head(frame: Frame, items: int) -> NDArray[np.int64]:
    """Items in ascending order, each once."""
    array = frame.arrays.get(HEAD)
    if set(frame.arrays) != {HEAD} or array is None or array.dtype != np.dtype("<u4") or array.ndim != 1:
        raise InvalidMessage("expected indices of items at $.arrays.head.")
    head = array.astype(np.int64)
    if not 1 <= len(head) <= min(MOST_HEAD, items) or head[-1] >= items or (np.diff(head) <= 0).any():
        raise InvalidMessage(
            f"expected 1 to {min(MOST_HEAD, items)} indices of items, ascending, below {items}, at $.arrays.head."
        )
    return head


class _ModelHeader(Struct, forbid_unknown_fields=True):
    kind: Literal["model"]
    version: Literal["fp/1"]
    run: str
    number: Annotated[int, Meta(ge=1, le=1_000_000)]
    contributors: Annotated[int, Meta(ge=0)]
    informed: bool
    popularity_sd: Annotated[float, Meta(ge=0)] | None
    gram_sd: Annotated[float, Meta(ge=0)] | None
    seen: Annotated[int, Meta(ge=0)] | None
    model: str  # the hash of the others, and of the arrays


def _factors(frame: Frame, manifest: Manifest) -> NDArray[np.float32]:
    factors = frame.array("factors", "f4", (manifest.items, manifest.rank or 0))
    if set(frame.arrays) != {"factors"} or not np.isfinite(factors).all() or (factors < 0.0).any():
        raise InvalidMessage("expected finite factors of at least 0.")
    return factors


def _moments(header: _ModelHeader, frame: Frame, manifest: Manifest) -> SharedMoments:
    if header.popularity_sd is None or header.gram_sd is None or header.seen is None:
        raise InvalidMessage("expected the figures popularity_sd, gram_sd and seen in a model of moments.")
    popularity = frame.array("popularity", "f8", (manifest.items,))
    head, rows = frame.arrays.get("head"), frame.arrays.get("pseudo_rows")
    if len(frame.arrays) != 3 or head is None or rows is None:
        raise InvalidMessage("expected a popularity, a head and its rows.")
    size = min(len(head), MOST_HEAD, manifest.items)
    head = frame.array("head", "u4", (size,)).astype(np.int64)
    rows = frame.array("pseudo_rows", "f4", (min(len(rows), size), size))
    if not (np.isfinite(popularity).all() and np.isfinite(rows).all()):
        raise InvalidMessage("expected finite moments.")
    if size and (head[-1] >= manifest.items or (np.diff(head) <= 0).any()):
        raise InvalidMessage("expected indices of items, ascending, at $.arrays.head.")
    if header.seen > manifest.items:
        raise InvalidMessage("expected at most as many items as the manifest has at $.seen.")
    sds = header.popularity_sd, header.gram_sd
    return SharedMoments(popularity.astype(np.float64), head, rows.astype(np.float64), *sds, header.seen)
