"""An entity: beside one organisation's users. What leaves it is charged, signed, and sent once."""

from tacit.entity.entity import Entity
from tacit.entity.fitting import Tuning
from tacit.entity.policy import Policy

__all__ = ["Entity", "Policy", "Tuning"]
