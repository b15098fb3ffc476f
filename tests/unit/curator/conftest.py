import pytest

from tacit.data.pairs import TwoDomains
from tests.unit.curator.cross_domain_world import world
from tests.unit.unsynced import unsynced

__all__ = ["unsynced"]


@pytest.fixture(scope="module")
def domains() -> TwoDomains:
    return world(120, 15)
