"""Everything that crosses a boundary between parties: frozen, versioned, validated on arrival, carrying its guarantee.

Each system has a module with its messages by name, and ``store`` has the data that a server holds. Loaded on first use.

    from tacit.messages.private_selection import Offer, Policy, Rule
"""

from typing import TYPE_CHECKING

from tacit.loading import lazy

if TYPE_CHECKING:
    from tacit.messages import cross_domain, federated_prototypes, multi_selection, private_selection, private_slates
    from tacit.messages.store import LookAlikes, Store
else:
    __getattr__, __dir__ = lazy(
        __name__,
        "cross_domain federated_prototypes multi_selection private_selection private_slates",
        store="LookAlikes Store",
    )

__all__ = [
    "LookAlikes",
    "Store",
    "cross_domain",
    "federated_prototypes",
    "multi_selection",
    "private_selection",
    "private_slates",
]
