from tests.unit.unsynced import unsynced

__all__ = ["unsynced"]
