"""The file of keys: digests only, for its owner only, whole or not at all; and who may have which key."""

import json
import os
import stat
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tacit.errors import InvalidData, InvalidParameter, UnknownName
from tacit.service.keys import Scope, issue, read, revoke


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "keys.json"


def test_the_file_holds_digests_and_no_key(file: Path) -> None:
    text = issue(file, "acme", Scope.ENTITY, entity="library-1")
    content = file.read_text()
    assert text[15:] not in content
    (kept,) = json.loads(content)["keys"]
    assert set(kept) == {"id", "name", "scope", "digest", "items", "entity", "expires"}
    assert kept["digest"] == sha256(text.encode()).hexdigest()


def test_only_its_owner_may_read_it_whatever_the_mask_says(file: Path) -> None:
    before = os.umask(0)
    try:
        issue(file, "acme", Scope.OPERATOR)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        file.chmod(0o644)
        issue(file, "other", Scope.OPERATOR)  # a file that was opened up is closed again by the next write
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        revoke(file, "other")
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    finally:
        os.umask(before)


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_beside_it(
    file: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    issue(file, "acme", Scope.OPERATOR)
    before = file.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(OSError, match="No space"):
        issue(file, "other", Scope.OPERATOR)
    with pytest.raises(OSError, match="No space"):
        revoke(file, "acme")
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize(
    ("scope", "given"),
    [
        (Scope.STATEMENTS, {}),  # would see nothing
        (Scope.OPERATOR, {"items": ["318"]}),  # sees all: naming some would look like a limit
        (Scope.ENTITY, {"items": ["318"], "entity": "e"}),
        (Scope.ENTITY, {}),
        (Scope.OPERATOR, {"entity": "e"}),
        (Scope.STATEMENTS, {"items": ["318"], "entity": "e"}),
    ],
)
def test_a_key_names_what_its_scope_is_for_and_nothing_else(file: Path, scope: Scope, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter, match="for no other key"):
        issue(file, "acme", scope, **given)
    assert not file.exists()


@pytest.mark.parametrize("name", ["", " acme", "a\nb", "a\tb", "ä", "x" * 61, "acme\n", "-acme"])
def test_odd_names_are_refused(file: Path, name: str) -> None:
    with pytest.raises(InvalidParameter, match="name of a key"):
        issue(file, name, Scope.OPERATOR)


def test_a_name_is_given_once(file: Path) -> None:
    issue(file, "acme", Scope.OPERATOR)
    before = file.read_bytes()
    with pytest.raises(InvalidParameter, match="revoke it first"):
        issue(file, "acme", Scope.STATEMENTS, items=["318"])
    assert file.read_bytes() == before


def test_only_the_key_of_that_name_is_revoked(file: Path) -> None:
    for name in ("one", "two", "three"):
        issue(file, name, Scope.OPERATOR)
    revoke(file, "two")
    assert [key.name for key in read(file)] == ["one", "three"]
    with pytest.raises(UnknownName, match="keys list"):
        revoke(file, "two")


def test_where_there_is_no_file_there_are_no_keys(file: Path) -> None:
    assert read(file) == []
    with pytest.raises(UnknownName):
        revoke(file, "acme")
    assert not file.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'{"format": 2, "keys": []}',
        b'{"format": 1}',
        b'{"format": 1, "keys": [{}]}',
        b'{"format": 1, "keys": ["x"]}',
        b'{"format": 1, "keys": {"x": 1}}',
    ],
)
def test_a_file_that_is_none_of_ours_is_told_and_never_overwritten(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    for work in (lambda: read(file), lambda: issue(file, "acme", Scope.OPERATOR), lambda: revoke(file, "acme")):
        with pytest.raises(InvalidData, match="Restore a backup"):
            work()
    assert file.read_bytes() == content


WHOLE = {"id": "a", "name": "b", "scope": "operator", "digest": "c", "items": [], "entity": "", "expires": ""}


@pytest.mark.parametrize(
    "change",
    [
        {"scope": "root"},
        {"scope": None},
        {"items": "318"},  # read as a list it would be the items 3, 1 and 8
        {"items": [318]},
        {"digest": None},
        {"digest": "\xe4"},  # cannot be compared
        {"expires": 20261130},
        {"expires": "soon"},
        {"expires": "20261130"},  # another way to write a day: as a text it is not before or after the usual one
        {"all": "yes"},
        {"id": 7},
    ],
    ids=str,
)
def test_a_key_that_was_edited_by_hand_is_refused_rather_than_guessed_at(file: Path, change: dict[str, Any]) -> None:
    file.write_text(json.dumps({"format": 1, "keys": [WHOLE]}))
    assert [key.name for key in read(file)] == ["b"]
    file.write_text(json.dumps({"format": 1, "keys": [WHOLE | change]}))
    with pytest.raises(InvalidData, match="Restore a backup"):
        read(file)


@pytest.mark.parametrize("name", ["digest", "scope", "items"])
def test_nothing_of_a_key_may_be_missing(file: Path, name: str) -> None:
    file.write_text(json.dumps({"format": 1, "keys": [{one: value for one, value in WHOLE.items() if one != name}]}))
    with pytest.raises(InvalidData):
        read(file)


def test_a_file_of_keys_that_may_not_be_read_is_told_as_that(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")  # as for everybody but root

    issue(file, "grafana", Scope.OPERATOR)
    monkeypatch.setattr(Path, "open", closed)
    with pytest.raises(InvalidData, match=r"may not be read .* chown"):
        read(file)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_keys_belong_to_the_owner_of_their_folder_and_stay_whose_they_were(file: Path) -> None:
    """The service reads them as a user of its own, who is seldom the one that adds a key."""
    os.chown(file.parent, 10001, 10001)
    issue(file, "grafana", Scope.OPERATOR)
    assert file.stat().st_uid == 10001
    os.chown(file, 10003, 10003)
    revoke(file, "grafana")
    assert (file.stat().st_uid, stat.S_IMODE(file.stat().st_mode)) == (10003, 0o600)
