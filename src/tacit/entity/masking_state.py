"""The state of a party in a secure sum as bytes, for the disk of the entity that it belongs to. It holds secrets."""

import json
from typing import TYPE_CHECKING, Any

from tacit.errors import InvalidData
from tacit.messages.federated_prototypes_secure import Keys
from tacit.models.secure_sum import SumSession

if TYPE_CHECKING:
    from tacit.entity.masking import SecureParty

_VERSION = "secure-party/1"
_NAMES = {"me", "sealing", "masking", "seeds", "peers", "sent_shares", "held", "uploaded", "answered"}


def packed(party: "SecureParty") -> bytes:
    """All but what the caller has anyway: the session, and the key of signatures."""
    state = {
        "version": _VERSION,
        "run": party.session.run,
        "me": party.me,
        "sealing": party.sealing.hex(),
        "masking": [one.hex() for one in party.masking],
        "seeds": [one.hex() for one in party.seeds],
        "peers": [
            [one.entity, one.sealing.hex(), [key.hex() for key in one.masking], [key.hex() for key in one.commitments]]
            for one in party.peers.values()
        ],
        "sent_shares": party.sent_shares.hex(),
        "held": {name: shares.hex() for name, shares in party.held.items()},
        "uploaded": party.uploaded,
        "answered": {upload: list(names) for upload, names in party.answered.items()},
    }
    return json.dumps(state, sort_keys=True).encode()


def unpacked(data: bytes, session: SumSession) -> dict[str, Any]:
    """What ``packed`` wrote, as arguments of a SecureParty."""
    try:
        state = json.loads(data)
        if (state.pop("version"), state.pop("run")) != (_VERSION, session.run):
            raise InvalidData("the stored state of a secure sum is of another run, or another version of tacit.")
        if set(state) != _NAMES:
            raise ValueError
        state["sealing"] = bytes.fromhex(state["sealing"])
        for name in ("masking", "seeds"):
            state[name] = tuple(bytes.fromhex(one) for one in state[name])
        state["peers"] = {
            name: Keys(name, bytes.fromhex(sealing), _bytes(masking), _bytes(commitments))
            for name, sealing, masking, commitments in state["peers"]
        }
        state["sent_shares"] = bytes.fromhex(state["sent_shares"])
        state["held"] = {name: bytes.fromhex(shares) for name, shares in state["held"].items()}
        state["uploaded"] = dict(state["uploaded"])
        state["answered"] = {upload: tuple(names) for upload, names in state["answered"].items()}
    except (ValueError, TypeError, KeyError, AttributeError) as problem:
        if isinstance(problem, InvalidData):
            raise
        raise InvalidData(
            "the stored state of a secure sum is damaged: this entity can answer no more in this run."
        ) from None
    return dict(state)


def _bytes(digits: list[str]) -> tuple[bytes, ...]:
    return tuple(bytes.fromhex(one) for one in digits)
