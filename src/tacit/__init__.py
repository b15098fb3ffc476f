"""tacit: differentially private recommendation. It recommends well and limits, provably, what anyone can learn about
one person.

``import tacit`` is quick: each package is loaded on first use.
"""

from typing import TYPE_CHECKING

from tacit.loading import lazy

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
    from tacit.messages import Store
else:
    __getattr__, __dir__ = lazy(
        __name__,
        "audit curator data device engines entity errors evaluation guarantees ledger mechanisms messages models server "
        "service shuffler systems",
        curator="Curator fit",
        device="AsyncClient Client Device",
        entity="Entity",
        ledger="Budget",
        messages="Store",
    )

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
