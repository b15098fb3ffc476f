"""The device of one user: their profile, the signal that leaves, the pick that does not, the choice that is counted."""

from tacit.device.catalogue import blind
from tacit.device.client import AsyncClient, Client
from tacit.device.device import Device
from tacit.device.limits import Limits, Overall, slot_of
from tacit.device.multi_selection import Neighbourhood, OneRating, Readings, eta_for
from tacit.device.private_selection import Choice, PrivateScorer, select
from tacit.device.profile import Profile

__all__ = [
    "AsyncClient",
    "Choice",
    "Client",
    "Device",
    "Limits",
    "Neighbourhood",
    "OneRating",
    "Overall",
    "PrivateScorer",
    "Profile",
    "Readings",
    "blind",
    "eta_for",
    "select",
    "slot_of",
]
