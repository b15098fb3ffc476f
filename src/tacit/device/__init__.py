"""The device, beside one user: her profile, the one signal that leaves, the pick that does not, the choice that is counted."""

from tacit.device.async_client import AsyncClient
from tacit.device.blind_tokens import blind
from tacit.device.choice import Choice
from tacit.device.client import Client
from tacit.device.device import Device
from tacit.device.limits import Limits, Overall
from tacit.device.multi_selection import eta_for
from tacit.device.private_selection import select
from tacit.device.profile import Profile
from tacit.device.readings import Neighbourhood, OneRating, Readings
from tacit.device.scoring import PrivateScorer
from tacit.device.slots import slot_of

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
