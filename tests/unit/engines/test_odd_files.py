"""What else may lie in a folder: long names, pipes, damaged notes. It stops nobody."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tacit.engines.folders import new_key, read_key, read_public
from tacit.errors import InvalidData, InvalidParameter
from tacit.messages.federated_prototypes import public_of
from tests.unit.federated_world import key_of


def test_keys_are_written_once_and_for_their_owner(tmp_path: Path) -> None:
    file = tmp_path / "north.key"
    before = os.umask(0)
    try:
        public = new_key(file)
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert public_of(read_key(file)) == public == read_public(f"{file}.pub") == read_public(public.hex())
    content = file.read_bytes()
    with pytest.raises(InvalidParameter, match="never overwritten"):
        new_key(file)
    assert file.read_bytes() == content
    file.chmod(0o640)
    with pytest.raises(InvalidParameter, match="other users"):
        read_key(file)
    for wrong in (b"", b"xyz", b"00" * 31, b"\xff"):
        file.chmod(0o600)
        file.write_bytes(wrong)
        with pytest.raises(InvalidData) as caught:
            read_key(file)
        assert "xyz" not in str(caught.value)


def test_what_is_shown_of_a_run_is_json(made: Any) -> None:
    files = made("tree", receivers=("z",))
    status = files.folder.status()
    assert json.loads(json.dumps(status)) == status
    assert (status["contributors"], status["receivers"], status["model"]) == (["a", "b", "c"], ["z"], None)
    assert key_of("coordinator").hex() not in json.dumps(status)


@pytest.mark.parametrize("stem", ["x" * 250, "ü" * 120, "y" * 181, "z" * 180])
def test_a_long_name_in_the_inbox_stops_nothing(made: Any, stem: str) -> None:
    files = made("tree")
    (files.place / "inbox" / f"{stem}.fp").write_bytes(b"nonsense")
    files.carry()
    _, taken = files.step()
    assert taken.rejected == {f"{stem}.fp": "malformed"}
    assert taken.closed == ["prototypes"]
    assert list((files.place / "inbox").iterdir()) == []
    (moved,) = (files.place / "rejected").iterdir()
    assert moved.read_bytes() == b"nonsense"
    assert moved.name.startswith(stem[:40])
    assert moved.name.endswith(".malformed.fp")


def test_two_long_names_that_begin_alike_are_both_kept(made: Any) -> None:
    files = made("tree")
    for end in "ab":
        (files.place / "inbox" / f"{'x' * 240}{end}.fp").write_bytes(end.encode())
    files.step()
    assert sorted(file.read_bytes() for file in (files.place / "rejected").iterdir()) == [b"a", b"b"]


def test_a_name_that_is_no_text_can_be_told(made: Any) -> None:
    files = made("tree")
    name = os.fsencode(files.place / "inbox") + b"/\xff.fp"
    try:
        with open(name, "wb") as out:
            out.write(b"nonsense")
    except OSError:
        pytest.skip("this file system has no such names")
    _, taken = files.step()
    assert [told.encode() for told in taken.rejected] == [b"\\udcff.fp"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_or_a_folder_in_the_inbox_is_rejected_and_not_waited_for(made: Any) -> None:
    files = made("tree")
    os.mkfifo(files.place / "inbox" / "pipe.fp")
    (files.place / "inbox" / "folder.fp" / "within").mkdir(parents=True)
    code = (
        "import sys; from tacit.engines.coordinator import CoordinatorFolder; "
        "print(CoordinatorFolder(sys.argv[1]).step(bytes.fromhex(sys.argv[2]))[1].rejected)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(files.place), files.world.key.hex()],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.strip() == "{'folder.fp': 'malformed', 'pipe.fp': 'malformed'}"
    files.carry()
    assert files.step()[1].closed == ["prototypes"]


def test_what_cannot_be_moved_away_keeps_nobody_from_being_taken(made: Any) -> None:
    files = made("tree")
    (files.place / "inbox" / "a0.fp").write_bytes(b"nonsense")
    (files.place / "rejected" / "a0.malformed.fp" / "within").mkdir(parents=True)
    files.carry()
    _, taken = files.step()
    assert taken.rejected == {"a0.fp": "malformed"}
    assert taken.closed == ["prototypes"]


@pytest.mark.parametrize("note", ["5", "null", '"abc"', "{}", "[1]", "[[]]", "", "\udcff", "[" * 100_000])
def test_a_damaged_note_of_who_was_there_is_said_to_be_damaged(made: Any, note: str) -> None:
    files = made("moments", aggregation="none")
    files.carry()
    files.step()
    (files.place / "stages" / "popularity" / "closed").write_bytes(note.encode(errors="surrogateescape"))
    for look in (files.step, files.folder.status):
        with pytest.raises(InvalidData, match="Restore a backup"):
            look()


def test_a_note_that_is_damaged_while_a_stage_is_closed_is_found(made: Any) -> None:
    files = made("tree")
    (files.place / "stages" / "prototypes").mkdir(parents=True)
    files.carry()
    run = files.folder.rebuild
    files.folder.rebuild = lambda key: (run(key), (files.place / "stages" / "prototypes" / "closed").write_text("5"))[0]
    with pytest.raises(InvalidData, match="Restore a backup"):
        files.folder.step(files.world.key)
