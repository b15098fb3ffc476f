"""What each key, mask, parcel and commitment of a run is bound to: run, upload, and the names of those concerned."""

import numpy as np
from numpy.typing import NDArray

from tacit.models.secure_sum.context import bound, commitment
from tacit.models.secure_sum.masks import add_stream, mask_key, pair_key
from tacit.models.secure_sum.session import SumSession

SEED, KEY = 0, 1  # the two kinds of share: of the seed of the own mask, and of the key that pairs agree with


def seed_commitment(session: SumSession, upload: str, entity: str, seed: bytes) -> bytes:
    """What the `keys` message says about a seed, so that a wrong one is recognised."""
    return commitment(seed, "seed", session.run, upload, entity)


def share_commitment(session: SumSession, upload: str, kind: int, dealer: str, holder: str, share: bytes) -> bytes:
    """What a parcel says openly about a share in it, so that a wrong one is recognised when it is given back."""
    return commitment(share, "share", session.run, upload, ("seed", "key")[kind], dealer, holder)


def parcel_key(session: SumSession, private: bytes, public: bytes, dealer: str, holder: str) -> bytes:
    """The key of the parcel from ``dealer`` to ``holder``; the one in the other direction has another."""
    return pair_key(private, public, "parcel", session.run, dealer, holder)


def parcel_context(session: SumSession, dealer: str, holder: str, commitments: bytes) -> bytes:
    return bound("parcel", session.run, dealer, holder, commitments)


def add_own_mask(
    session: SumSession,
    vector: NDArray[np.uint64],
    upload: str,
    entity: str,
    seed: bytes,
    *,
    subtract: bool = False,
) -> None:
    """Adds the mask that an entity draws for itself, in place."""
    add_stream(vector, mask_key(seed, "own mask", session.run, upload, entity), subtract=subtract)


def add_pair_mask(
    session: SumSession,
    vector: NDArray[np.uint64],
    upload: str,
    entity: str,
    other: str,
    private: bytes,
    public: bytes,
    *,
    subtract: bool = False,
) -> None:
    """Adds the mask that ``entity`` shares with ``other``, in place: the first by name adds what the second takes off.

    The keys are the private one of either and the public one of the other.
    """
    first, second = sorted((entity, other))
    key = pair_key(private, public, "pair mask", session.run, upload, first, second)
    add_stream(vector, key, subtract=subtract != (entity == second))
