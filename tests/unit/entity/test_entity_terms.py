"""What an entity is opened with: a whole key of the coordinator's, and terms that add up in users."""

from pathlib import Path
from typing import Any

import pytest

from tacit.entity import Entity
from tacit.errors import Conflict, InvalidParameter
from tacit.guarantees import ONE_PROFILE
from tacit.ledger import Budget, PrivacyLedger
from tacit.messages.federated_prototypes import public_of
from tests.unit.federated_world import ITEMS, key_of, rows_of


def opened(ledger: Path, **changed: Any) -> Entity:
    given: dict[str, Any] = {"coordinator": public_of(key_of("coordinator")), **changed}
    catalogue = [f"item-{place}" for place in range(ITEMS)]
    return Entity(rows_of("a"), ledger, name="a", key=key_of("a"), catalogue=catalogue, **given)


@pytest.mark.parametrize("key", [b"", b"\0" * 31, b"\0" * 33])
def test_a_part_of_the_coordinators_key_is_no_key(tmp_path: Path, key: bytes) -> None:
    with pytest.raises(InvalidParameter, match="public key is 32 bytes"):
        opened(tmp_path / "a.db", coordinator=key)
    assert not (tmp_path / "a.db").exists()


def test_releases_of_several_kinds_are_not_counted_by_pld(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="not by 'pld'"):
        opened(tmp_path / "a.db", budget=Budget(1.0, 1e-6), accounting="pld")


def test_a_subject_that_is_protected_in_another_unit_is_another_subject(tmp_path: Path) -> None:
    with PrivacyLedger.create(tmp_path / "a.db") as ledger:
        ledger.enrol("ward", Budget(1.0), protects=ONE_PROFILE)
    with pytest.raises(Conflict, match="in another unit"):
        opened(tmp_path / "a.db", subject="ward")
