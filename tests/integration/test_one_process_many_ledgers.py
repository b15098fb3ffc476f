"""Several ledgers of one process on one file: opening one more must not drop the locks that the others hold."""

import subprocess
import sys
from pathlib import Path

from tacit.guarantees import ONE_PROFILE, pure
from tacit.ledger import Budget, DisplayLedger, PrivacyLedger, Terms

# Opens, writes and closes as a whole: whoever closes last folds the log into the file and removes it.
OTHER = """
import sys
from tacit.ledger import DisplayLedger
with DisplayLedger.open(sys.argv[1]) as displays:
    displays.consent(sys.argv[2] == "1")
"""


def test_another_process_that_closes_leaves_the_log_to_those_who_are_still_there(tmp_path: Path) -> None:
    place = tmp_path / "device.db"
    with PrivacyLedger.create(place) as ledger:
        ledger.enrol_many(["me"], Terms.of(Budget(1000), ONE_PROFILE))
        ledger.charge("me", "before", pure(1.0, ONE_PROFILE))
        for turn in range(4):
            with DisplayLedger.open(place), PrivacyLedger.open(place):
                pass  # a second and a third look at the same file
            subprocess.run([sys.executable, "-c", OTHER, str(place), str(turn % 2)], check=True, timeout=60)
            assert (tmp_path / "device.db-wal").exists()
            ledger.charge("me", f"turn {turn}", pure(1.0, ONE_PROFILE))
        assert ledger.statement("me").charges == 5
    with PrivacyLedger.open(place) as again:
        assert again.statement("me").charges == 5
