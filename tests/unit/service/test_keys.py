"""Keys in a running service: who is let in, and for how long."""

import hmac
import json
import os
import re
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import pytest

from tacit.errors import InvalidData
from tacit.service import keys as room
from tacit.service.keys import KeyRing, Scope, issue, read, revoke


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "home" / "keys.json"


def test_a_key_has_its_id_and_256_random_bits(file: Path) -> None:
    texts = [issue(file, f"key {number}", Scope.OPERATOR) for number in range(3)]
    assert all(re.fullmatch(r"tacit_[0-9a-f]{8}_[A-Za-z0-9_-]{43}", text) for text in texts)
    assert len({text[-43:] for text in texts}) == len({text[:14] for text in texts}) == 3
    assert [key.id for key in read(file)] == [text.split("_")[1] for text in texts]


def test_who_has_a_key_is_found_by_the_whole_of_it(file: Path) -> None:
    text = issue(file, "acme", Scope.STATEMENTS, items=["318", "858"])
    other = issue(file, "other", Scope.OPERATOR)
    keys = KeyRing(file)
    found = keys.find(f"Bearer {text}")
    assert found is not None
    assert (found.name, found.scope, found.items) == ("acme", Scope.STATEMENTS, ("318", "858"))
    mixed = f"{text[:14]}{other[14:]}"  # one key's id with another's secret
    last = text[:-1] + ("A" if text[-1] != "A" else "B")
    for wrong in (text, f"Basic {text}", f"Bearer  {text}", f"Bearer {text} ", f"Bearer {text}\n", f"Bearer {mixed}",
                  f"Bearer {last}", f"Bearer {text[:-1]}", f"Bearer {text}A", f"Bearer tacit_00000000_{text[15:]}",
                  "Bearer ", "", f"Bearer {found.digest}", "Bearer \xff"):  # fmt: skip
        assert keys.find(wrong) is None, wrong


def test_secrets_are_compared_in_constant_time(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By `hmac.compare_digest`, and of digests: how long it takes tells nothing of the secret."""
    text = issue(file, "acme", Scope.OPERATOR)
    keys, compared = KeyRing(file), []

    def compare(one: str, other: str) -> bool:
        compared.append((one, other))
        return one == other

    monkeypatch.setattr(hmac, "compare_digest", compare)
    wrong = text[:-1] + ("A" if text[-1] != "A" else "B")
    assert keys.find(f"Bearer {wrong}") is None
    assert keys.find(f"Bearer {text}") is not None
    kept = sha256(text.encode()).hexdigest()
    assert compared == [(kept, sha256(wrong.encode()).hexdigest()), (kept, kept)]


def test_a_key_holds_to_the_end_of_its_last_day(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = issue(file, "acme", Scope.OPERATOR, expires=date(2026, 11, 30))
    for_ever = issue(file, "always", Scope.OPERATOR)
    keys = KeyRing(file)

    class Now(datetime):
        at = datetime(2026, 11, 30, 23, 59, 59, tzinfo=UTC)

        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
            assert tz is UTC  # a day of a key is the same everywhere
            return cls.at

    monkeypatch.setattr(room, "datetime", Now)
    assert keys.find(f"Bearer {text}") is not None
    Now.at += timedelta(seconds=1)
    assert keys.find(f"Bearer {text}") is None
    assert keys.find(f"Bearer {for_ever}") is not None


def test_a_key_that_was_revoked_or_added_is_seen_when_the_file_is_read_again(file: Path) -> None:
    keys = KeyRing(file)  # there is no file yet
    text = issue(file, "acme", Scope.OPERATOR)
    assert keys.find(f"Bearer {text}") is None
    keys.refresh()
    assert keys.find(f"Bearer {text}") is not None
    revoke(file, "acme")
    keys.refresh()
    assert keys.find(f"Bearer {text}") is None
    later = issue(file, "acme", Scope.OPERATOR)  # the name is free again; the old key is not
    keys.refresh()
    assert keys.find(f"Bearer {text}") is None
    assert keys.find(f"Bearer {later}") is not None


def test_a_file_that_was_taken_away_ends_all_keys(file: Path) -> None:
    text = issue(file, "acme", Scope.OPERATOR)
    keys = KeyRing(file)
    file.unlink()
    keys.refresh()
    assert keys.find(f"Bearer {text}") is None


def test_a_file_that_did_not_change_is_not_read_again(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    issue(file, "acme", Scope.OPERATOR)
    keys = KeyRing(file)
    monkeypatch.setattr(room, "read", lambda _: pytest.fail("it was read"))
    keys.refresh()


def test_a_replaced_file_is_noticed_although_its_time_is_the_same(file: Path) -> None:
    """A backup that was put back with its old times, or two writes within one tick of the clock."""
    text = issue(file, "acme", Scope.OPERATOR)
    keys, about = KeyRing(file), file.stat()
    beside = file.with_name("new.json")
    beside.write_text(json.dumps({"format": 1, "keys": []}))
    os.utime(beside, ns=(about.st_atime_ns, about.st_mtime_ns))
    beside.replace(file)
    keys.refresh()
    assert keys.find(f"Bearer {text}") is None


def test_a_damaged_file_leaves_what_is_known_until_it_is_mended(file: Path) -> None:
    text = issue(file, "acme", Scope.OPERATOR)
    keys, sound = KeyRing(file), file.read_bytes()
    file.write_bytes(sound[:-20])
    for _ in range(2):  # it is tried again each time
        with pytest.raises(InvalidData):
            keys.refresh()
        assert keys.find(f"Bearer {text}") is not None
    file.write_bytes(sound)
    keys.refresh()
    revoke(file, "acme")
    keys.refresh()
    assert keys.find(f"Bearer {text}") is None
