"""Durable writes: a file is there in full or not at all, and nothing half-written is left after an error."""

import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tacit import files

WRITERS: dict[str, Callable[[Path, bytes], object]] = {"replace": files.replace, "write_once": files.write_once}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_a_new_file_holds_the_content_and_nothing_else_is_left(tmp_path: Path, write: Callable[..., object]) -> None:
    write(tmp_path / "a", b"new")
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("a", b"new")]


def test_replace_takes_the_place_of_a_file_and_write_once_does_not(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"old")
    assert files.write_once(file, b"new") == b"old" == file.read_bytes()
    files.replace(file, b"new")
    assert file.read_bytes() == b"new"


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_content_is_on_the_disk_before_its_name_and_the_name_before_the_call_returns(
    tmp_path: Path, write: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = list[str]()
    for name in ("replace", "link"):
        original = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *paths, original=original: (steps.append("named"), original(*paths)))
    synced = os.fsync

    def fsync(handle: int) -> None:
        steps.append(os.path.basename(os.readlink(f"/proc/self/fd/{handle}"))[:3])
        synced(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    write(tmp_path / "a", b"new")
    assert steps == [".a.", "named", tmp_path.name[:3]]


@pytest.mark.parametrize(("write", "step"), [("replace", "fsync"), ("replace", "replace"), ("write_once", "link")])
def test_an_error_leaves_the_old_file_and_no_other(
    tmp_path: Path, write: str, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"old")

    def full(*arguments: object) -> None:
        raise OSError(28, "no space is left")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(OSError, match="no space"):
        WRITERS[write](file, b"new")
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("a", b"old")]


def test_an_error_inside_a_draft_leaves_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"old")
    with pytest.raises(KeyError), files.draft(file) as temporary:  # noqa: PT012
        temporary.write_bytes(b"half")
        raise KeyError
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("a", b"old")]


def test_the_umask_decides_unless_a_mode_is_named(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        files.replace(tmp_path / "shared", b"")
        files.replace(tmp_path / "private", b"", mode=files.OWNER_ONLY)
        files.replace(tmp_path / "exact", b"", mode=0o664, inherit_owner=True)
    finally:
        os.umask(before)
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    assert modes == {"shared": 0o640, "private": 0o600, "exact": 0o664}


def test_folders_are_created_only_on_request(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        files.replace(tmp_path / "a" / "b", b"")
    files.replace(tmp_path / "a" / "b", b"1", parents=True)
    assert files.write_once(tmp_path / "c" / "d", b"2", parents=True) == b"2"


def test_writers_at_once_agree_on_what_stands(tmp_path: Path) -> None:
    standing = list[bytes]()
    threads = [
        threading.Thread(target=lambda n=n: standing.append(files.write_once(tmp_path / "a", b"%d" % n)))
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert standing == [(tmp_path / "a").read_bytes()] * 8
