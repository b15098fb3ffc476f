"""Federated prototypes carried by Flower: the coordinator's side is a ServerApp, an entity's side a ClientApp that sees
no rows.

`rounds` carries the stages over any link; `server_app` and `client_app` are the two ends of a link through Flower.
Flower needs its own environment (``pip install -c flower-constraints.txt 'tacit[flower]'``); nothing else in tacit
imports it.
"""

from dataclasses import dataclass, field
from enum import StrEnum

NAME = "name"  # the kind of the one question that is not a stage: which entity a node belongs to


class Status(StrEnum):
    """How a node answers. A status has no text with it: a reason could quote what the entity holds."""

    REPLY = "reply"  # the content is the entity's signed reply, or its name
    KEPT = "kept"  # the entity has the message, and nothing to reply
    WAITING = "waiting"  # the entity has not answered yet: ask again
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Answer:
    """A node's answer to one question."""

    node: int
    kind: str
    status: Status
    content: bytes = field(default=b"", repr=False)
