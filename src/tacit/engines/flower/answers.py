"""What a node can answer. All that its process needs of tacit is here and in `tacit.engines.folders`."""

from dataclasses import dataclass, field
from enum import StrEnum

NAME = "name"  # the kind of the question that is no stage


class Status(StrEnum):
    """How a node answers. There is no text beside it: a reason could quote what the entity holds."""

    REPLY = "reply"  # the content is the entity's signed reply, or its name
    KEPT = "kept"  # the entity has the message, and nothing to reply
    WAITING = "waiting"  # the entity has not answered yet: ask again
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Answer:
    node: int
    kind: str
    status: Status
    content: bytes = field(default=b"", repr=False)
