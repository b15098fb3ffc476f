"""A ledger in a file has one name; a second one is that of its draft, for a moment, or a mistake."""

import subprocess
import sys
from pathlib import Path

import pytest

from tacit.errors import LedgerUnavailable
from tacit.ledger import PrivacyLedger

DIES = """
import os, sys
from tacit.ledger import PrivacyLedger
link = os.link
os.link = lambda *names: (link(*names), os._exit(7))
PrivacyLedger.create(sys.argv[1])
"""


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


def test_a_ledger_whose_creator_was_killed_after_it_was_linked_opens(tmp_path: Path) -> None:
    place = tmp_path / "a [1].db"  # the name must not be read as a pattern
    assert subprocess.run([sys.executable, "-c", DIES, place], check=False).returncode == 7
    assert place.stat().st_nlink == 2
    PrivacyLedger.open(place).close()
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".")] == []
    assert place.stat().st_nlink == 1


@pytest.mark.parametrize("digits", ["01234567", "0123456789ab"], ids=["version 0.1.0", "now"])
def test_the_draft_of_a_creation_that_was_killed_is_removed_and_any_other_second_name_is_refused(
    tmp_path: Path, digits: str
) -> None:
    place, draft = tmp_path / "a.db", tmp_path / f".a.db.{digits}"
    PrivacyLedger.create(place).close()
    draft.hardlink_to(place)
    PrivacyLedger.open(place).close()
    assert not draft.exists()
    (tmp_path / "b.db").hardlink_to(place)
    with pytest.raises(LedgerUnavailable, match="second name"):
        PrivacyLedger.open(place)
