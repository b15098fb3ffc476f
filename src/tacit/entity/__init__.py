"""An entity: one organisation that holds its users' rows. It charges, signs and sends each answer once."""

from tacit.entity.entity import Entity
from tacit.entity.fit import Tuning
from tacit.entity.policy import Policy

__all__ = ["Entity", "Policy", "Tuning"]
