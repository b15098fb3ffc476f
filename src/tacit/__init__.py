"""tacit: differentially private recommendation. People get good recommendations while nobody has to be told who they are.

Rooms are loaded when they are first used, so that ``import tacit`` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit.curator import Curator as Curator
    from tacit.curator import fit as fit
    from tacit.device import AsyncClient as AsyncClient
    from tacit.device import Client as Client
    from tacit.device import Device as Device
    from tacit.entity import Entity as Entity
    from tacit.ledger import Budget as Budget
    from tacit.messages.store import Store as Store

__version__ = "0.1.0"

_ROOMS = (
    "audit",
    "curator",
    "data",
    "device",
    "engines",
    "entity",
    "errors",
    "evaluation",
    "guarantees",
    "ledger",
    "mechanisms",
    "messages",
    "models",
    "server",
    "service",
    "shuffler",
    "systems",
)
_NAMES = {
    "AsyncClient": "tacit.device",
    "Budget": "tacit.ledger",
    "Client": "tacit.device",
    "Curator": "tacit.curator",
    "Device": "tacit.device",
    "Entity": "tacit.entity",
    "Store": "tacit.messages.store",
    "fit": "tacit.curator",
}

__all__ = ["AsyncClient", "Budget", "Client", "Curator", "Device", "Entity", "Store", "__version__", "fit", *_ROOMS]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"tacit.{name}")
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'tacit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
