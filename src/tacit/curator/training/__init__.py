"""Fitting the networks of tacit.models from ratings: as they are, or privately with one user as the unit.

Needs the extra ``train`` (jax, optax, jax-privacy), which is imported when training starts. What comes out is served by numpy.
"""

from tacit.curator.training.network import train_network
from tacit.curator.training.private import train_privately
from tacit.curator.training.rows import Rows, RowsByUser

__all__ = ["Rows", "RowsByUser", "train_network", "train_privately"]
