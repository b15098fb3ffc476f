"""The messages of federated prototypes. Each is a signed frame: bytes that may travel by any means.

coordinator -> all           Manifest      every public constant of the run; its hash is the run's id
coordinator -> contributor   Step          opens a later stage: a head of items, or what the secure sum passes on
contributor -> coordinator   Reply         prototypes, a share of the moments, or a message of the secure sum; one in each stage
coordinator -> all           SharedModel   items' factors, or noisy moments; costs nothing more
"""

from typing import TYPE_CHECKING

from tacit.loading import lazy

if TYPE_CHECKING:
    from tacit.messages.federated_prototypes.frame import Frame, open_frame, public_of, sign
    from tacit.messages.federated_prototypes.manifest import Manifest, Member, Role, catalogue_hash, role_for
    from tacit.messages.federated_prototypes.replies import Code, Refused, Reply, SharedModel, Step
    from tacit.messages.federated_prototypes.terms import Aggregation, Mechanism, Regulariser
else:  # loaded on first use: a node that carries messages opens frames, and loads no more than that
    __getattr__, __dir__ = lazy(
        __name__,
        frame="Frame open_frame public_of sign",
        manifest="Manifest Member Role catalogue_hash role_for",
        replies="Code Refused Reply SharedModel Step",
        terms="Aggregation Mechanism Regulariser",
    )

__all__ = [
    "Aggregation",
    "Code",
    "Frame",
    "Manifest",
    "Mechanism",
    "Member",
    "Refused",
    "Regulariser",
    "Reply",
    "Role",
    "SharedModel",
    "Step",
    "catalogue_hash",
    "open_frame",
    "public_of",
    "role_for",
    "sign",
]
