from tests.unit.federated_world import made
from tests.unit.unsynced import unsynced

__all__ = ["made", "unsynced"]
