"""Two domains with users in common: similarities, paths between items, alter egos and what is predicted from them."""

from typing import TYPE_CHECKING

from tacit.loading import on_demand

if TYPE_CHECKING:
    from tacit.models.cross_domain.honest_x_map import HonestXMap
    from tacit.models.cross_domain.item_based import ItemBased
    from tacit.models.cross_domain.least_squares import LeastSquares
    from tacit.models.cross_domain.settings import TransferSettings
    from tacit.models.cross_domain.transfer import Transfer
    from tacit.models.cross_domain.user_based import UserBased
    from tacit.models.cross_domain.x_sim import XSim

_HOMES = {
    "honest_x_map": ["HonestXMap"],
    "item_based": ["ItemBased"],
    "least_squares": ["LeastSquares"],
    "settings": ["TransferSettings"],
    "transfer": ["Transfer"],
    "user_based": ["UserBased"],
    "x_sim": ["XSim"],
}

__all__ = [
    "HonestXMap",
    "ItemBased",
    "LeastSquares",
    "Transfer",
    "TransferSettings",
    "UserBased",
    "XSim",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = on_demand(__name__, _HOMES)
