"""What a curator might have released of the small store, made up."""

from fractions import Fraction

import numpy as np

from tacit.guarantees import ONE_USER, Guarantee, Loss, LossKind, epsilon_of_gaussian, pure
from tacit.messages.cross_domain import TransferModel
from tacit.messages.private_slates import Popularity
from tacit.messages.store import Store
from tacit.models.cross_domain.transfer import TransferSettings, offsets
from tests.releases import message_of

NAMES = ["Action", "Comedy", "Crime", "Drama", "Horror"]


def counts_of(store: Store, epsilon: float = 1.0) -> Popularity:
    """Item number i was liked i times."""
    steps = np.arange(len(store.items), dtype=np.int64)
    return message_of(Popularity, tuple(store.items.ids.tolist()), steps, Fraction(1), pure(epsilon, ONE_USER))


def transfer_model() -> TransferModel:
    model = offsets(np.linspace(-9.0, 9.0, 8), np.linspace(20.0, 40.0, 8), 2.0, 2.0, 4, TransferSettings())
    promise = Guarantee(
        epsilon_of_gaussian(0.4, 1e-6),
        ONE_USER,
        delta=1e-6,
        proof="transfer-moments",
        loss=Loss(LossKind.GAUSSIAN, 0.4),
    )
    return message_of(TransferModel, ("a", "b", "c", "d"), ("w", "x", "y", "z"), model, promise)
