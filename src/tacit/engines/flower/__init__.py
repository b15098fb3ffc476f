"""Flower carries federated prototypes: the coordinator runs a ServerApp, and each entity a ClientApp that sees no rows.

`rounds` carries the stages over any link; `server_app` and `client_app` are the two ends of a link through Flower.
Flower needs its own environment (``pip install -c flower-constraints.txt 'tacit[flower]'``). No other module of tacit
imports it.
"""

from dataclasses import dataclass, field
from enum import StrEnum

NAME = "name"  # the kind of the only question that is not a stage: the name of the node's entity


class Status(StrEnum):
    """The status of a node's answer. It comes without a reason, which could quote the entity's data."""

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
