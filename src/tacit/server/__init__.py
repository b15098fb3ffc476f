"""The server: sees released values and public data only. It cannot reach a mechanism."""

from tacit.server.algorithms import Algorithm, LocalModel, Settings
from tacit.server.multi_selection import MultiSelection

__all__ = ["Algorithm", "LocalModel", "MultiSelection", "Settings"]
