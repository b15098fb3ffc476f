"""What a coordinator sends between the manifest and the model: which stage this is, and what its replies are computed from."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidMessage
from tacit.messages import fields
from tacit.messages.federated_prototypes_frame import Frame, sign
from tacit.messages.federated_prototypes_manifest import VERSION, Manifest
from tacit.models.moments import MOST as MOST_HEAD

_NAMES = ("kind", "version", "run", "stage", "to")
HEAD, BODY = "head", "body"


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """To one contributor, for one stage: the head of items of a Gram matrix, or a message of the secure sum."""

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
        """The step in a frame whose signature was checked, if it is one of this run."""
        found = fields.members(frame.header, "a step", _NAMES)
        stage = found["stage"]
        if (found["kind"], found["version"], found["run"]) != ("step", VERSION, manifest.run):
            raise InvalidMessage("expected a step of this run.")
        if stage not in manifest.stages[1:]:
            raise InvalidMessage("expected one of the stages of this run at $.stage.")
        to = fields.text(found["to"], "$.to", least=1)
        if stage == "gram":
            return cls(manifest.run, stage, to, head=_head(frame, manifest.items))
        body = frame.array(BODY, "u1", frame.arrays[BODY].shape if BODY in frame.arrays else (0,))
        if set(frame.arrays) != {BODY} or body.ndim != 1:
            raise InvalidMessage("expected one array of bytes in this step.")
        return cls(manifest.run, stage, to, body=body.tobytes())


def _head(frame: Frame, items: int) -> NDArray[np.int64]:
    """Items in ascending order, each once."""
    found = frame.arrays.get(HEAD)
    if set(frame.arrays) != {HEAD} or found is None or found.dtype != np.dtype("<u4") or found.ndim != 1:
        raise InvalidMessage("expected the places of some items at $.arrays.head.")
    head = found.astype(np.int64)
    if not 1 <= len(head) <= min(MOST_HEAD, items) or head[-1] >= items or (np.diff(head) <= 0).any():
        raise InvalidMessage(
            f"expected 1 to {min(MOST_HEAD, items)} places of items, ascending, below {items}, at $.arrays.head."
        )
    return head
