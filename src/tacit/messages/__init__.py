"""All that crosses a boundary between parties: frozen, versioned, validated on arrival, carrying its guarantee.

One module for each system, with its messages by name; and what a server may hold. Loaded when first used.

    from tacit.messages.private_selection import Offer, Policy, Rule
"""

from typing import TYPE_CHECKING

from tacit.loading import on_demand

if TYPE_CHECKING:
    from tacit.messages import cross_domain, federated_prototypes, multi_selection, private_selection, private_slates
    from tacit.messages.look_alikes import LookAlikes
    from tacit.messages.store import Store

_HOMES = {
    "look_alikes": ["LookAlikes"],
    "store": ["Store"],
}
_MODULES = [
    "cross_domain",
    "federated_prototypes",
    "multi_selection",
    "private_selection",
    "private_slates",
]

__all__ = [
    "LookAlikes",
    "Store",
    "cross_domain",
    "federated_prototypes",
    "multi_selection",
    "private_selection",
    "private_slates",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = on_demand(__name__, _HOMES, _MODULES)
