"""Each system wired in one process, for trying and testing: its parties speak through their real messages.

Every module has a ``simulate`` that gives an ``Outcome``: its ``guarantee`` is what was promised of what
left those who hold raw data, and ``bytes_sent`` how much that was.
"""

from typing import TYPE_CHECKING

from tacit.loading import on_demand

if TYPE_CHECKING:
    from tacit.systems import (
        cross_domain,
        federated_prototypes,
        multi_selection,
        private_selection,
        private_selection_shuffled,
        private_slates,
    )

_MODULES = [  # loaded when they are used: entities need `cryptography`, which the others do without
    "cross_domain",
    "federated_prototypes",
    "multi_selection",
    "private_selection",
    "private_selection_shuffled",
    "private_slates",
]

__all__ = [
    "cross_domain",
    "federated_prototypes",
    "multi_selection",
    "private_selection",
    "private_selection_shuffled",
    "private_slates",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = on_demand(__name__, {}, _MODULES)
