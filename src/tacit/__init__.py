"""tacit: differentially private recommendation. People get good recommendations while nobody has to be told who they are.

Rooms are loaded when they are first used, so that ``import tacit`` is quick.
"""

from typing import TYPE_CHECKING

from tacit.loading import on_demand

if TYPE_CHECKING:
    from tacit import (
        audit,
        curator,
        data,
        device,
        engines,
        entity,
        errors,
        evaluation,
        guarantees,
        ledger,
        mechanisms,
        messages,
        models,
        server,
        service,
        shuffler,
        systems,
    )
    from tacit.curator import Curator, fit
    from tacit.device import AsyncClient, Client, Device
    from tacit.entity import Entity
    from tacit.ledger import Budget
    from tacit.messages.store import Store

__version__ = "0.1.0"

__all__ = [
    "AsyncClient",
    "Budget",
    "Client",
    "Curator",
    "Device",
    "Entity",
    "Store",
    "__version__",
    "audit",
    "curator",
    "data",
    "device",
    "engines",
    "entity",
    "errors",
    "evaluation",
    "fit",
    "guarantees",
    "ledger",
    "mechanisms",
    "messages",
    "models",
    "server",
    "service",
    "shuffler",
    "systems",
]
_HOMES = {
    "curator": ["Curator", "fit"],
    "device": ["AsyncClient", "Client", "Device"],
    "entity": ["Entity"],
    "ledger": ["Budget"],
    "messages.store": ["Store"],
}
_ROOMS = [name for name in __all__ if name.islower() and name not in ("__version__", "fit")]

if not TYPE_CHECKING:
    __getattr__, __dir__ = on_demand(__name__, _HOMES, _ROOMS)
