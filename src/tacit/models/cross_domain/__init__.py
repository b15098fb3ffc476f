"""Two domains with users in common: similarities and paths between items, alter egos, and predictions across domains."""

from typing import TYPE_CHECKING

from tacit.loading import lazy

if TYPE_CHECKING:
    from tacit.models.cross_domain.alter_egos import ItemBased
    from tacit.models.cross_domain.transfer import Transfer, TransferSettings
    from tacit.models.cross_domain.transfer_models import HonestXMap
    from tacit.models.cross_domain.x_sim import XSim
else:
    __getattr__, __dir__ = lazy(
        __name__,
        alter_egos="ItemBased",
        transfer="Transfer TransferSettings",
        transfer_models="HonestXMap",
        x_sim="XSim",
    )

__all__ = [
    "HonestXMap",
    "ItemBased",
    "Transfer",
    "TransferSettings",
    "XSim",
]
