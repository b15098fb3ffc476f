"""The device, beside one user: her profile, the one signal that leaves, and the pick that does not."""

from tacit.device.device import Device
from tacit.device.multi_selection import eta_for
from tacit.device.profile import Profile
from tacit.device.readings import Neighbourhood, OneRating, Readings
from tacit.device.slots import slot_of

__all__ = ["Device", "Neighbourhood", "OneRating", "Profile", "Readings", "eta_for", "slot_of"]
