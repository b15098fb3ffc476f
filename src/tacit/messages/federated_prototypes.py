"""The messages of federated prototypes. Each is a signed frame: bytes that may travel by any means.

coordinator -> all           Manifest      every public constant of the run; its hash is the run's id
coordinator -> contributor   Step          opens a later stage: a head of items, or what the secure sum passes on
contributor -> coordinator   Reply         prototypes, a share of the moments, or a message of the secure sum; one in each stage
coordinator -> all           SharedModel   items' factors, or noisy moments; costs nothing more
"""

from tacit.messages.federated_prototypes_frame import Frame, open_frame, public_of, sign
from tacit.messages.federated_prototypes_manifest import Manifest
from tacit.messages.federated_prototypes_model import SharedModel
from tacit.messages.federated_prototypes_replies import Code, Refused, Reply
from tacit.messages.federated_prototypes_roster import Member, Role, catalogue_hash, role_for
from tacit.messages.federated_prototypes_steps import Step
from tacit.messages.federated_prototypes_terms import Aggregation, Mechanism, Regulariser

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
