"""Keys that are added and revoked at the same time, by processes that do not know of each other."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tacit.service.keys import Scope, issue, read, revoke


def test_what_was_revoked_does_not_come_back_by_what_is_added_meanwhile(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    for number in range(20):
        issue(file, f"old {number}", Scope.OPERATOR)
    with ThreadPoolExecutor(4) as threads:
        changes = [threads.submit(revoke, file, f"old {number}") for number in range(20)]
        changes += [threads.submit(issue, file, f"new {number}", Scope.OPERATOR) for number in range(20)]
        for change in changes:
            change.result()
    assert {key.name for key in read(file)} == {f"new {number}" for number in range(20)}
