"""A ledger in a file has one name; a second one is that of its draft, for a moment, or a mistake."""

from pathlib import Path

import pytest

from tacit.errors import LedgerUnavailable
from tacit.ledger import PrivacyLedger


def test_a_draft_that_its_creator_removes_meanwhile_is_no_reason_to_refuse_the_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ledger is put in its place by a second name of its draft, for a moment: who opens it then sees both."""
    place, draft = tmp_path / "a.db", tmp_path / ".a.db.01234567"
    PrivacyLedger.create(place).close()
    draft.hardlink_to(place)
    names = Path.glob

    def late(self: Path, pattern: str) -> list[Path]:
        found = list(names(self, pattern))
        draft.unlink()
        return found

    monkeypatch.setattr(Path, "glob", late)
    PrivacyLedger.open(place).close()
    assert not draft.exists()


def test_the_draft_of_a_creation_that_was_killed_is_removed_and_any_other_second_name_is_refused(
    tmp_path: Path,
) -> None:
    place, draft = tmp_path / "a.db", tmp_path / ".a.db.01234567"
    PrivacyLedger.create(place).close()
    draft.hardlink_to(place)
    PrivacyLedger.open(place).close()
    assert not draft.exists()
    (tmp_path / "b.db").hardlink_to(place)
    with pytest.raises(LedgerUnavailable, match="second name"):
        PrivacyLedger.open(place)
