"""Each system in one process, for trying and testing: its parties exchange their real messages.

Every module has a function ``simulate``. It returns a ``Transcript``: its ``guarantee`` covers everything that left the parties
with raw data, and ``bytes_sent`` is how much that was.
"""

from typing import TYPE_CHECKING

from tacit.loading import lazy

if TYPE_CHECKING:
    from tacit.systems import (
        cross_domain,
        federated_prototypes,
        multi_selection,
        private_selection,
        private_slates,
        transcript,
    )
else:
    __getattr__, __dir__ = lazy(
        __name__, "cross_domain federated_prototypes multi_selection private_selection private_slates transcript"
    )

__all__ = [
    "cross_domain",
    "federated_prototypes",
    "multi_selection",
    "private_selection",
    "private_slates",
    "transcript",
]
