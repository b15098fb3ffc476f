"""`tacit models` as a user types it, in this process."""

import json
import re
import shutil
from pathlib import Path

import pytest

from tacit.service import versions as room
from tacit.service.versions import current, publish, versions
from tests.unit.cli.called import Command
from tests.unit.server.small_store import small_store
from tests.unit.service.released import counts_of, transfer_model

ROOT = Path(__file__).parents[3]
STORE = small_store(20, look_alikes=5)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two versions; the newer one is served."""
    models = tmp_path_factory.mktemp("models") / "models"
    with pytest.MonkeyPatch.context() as clock:
        for number, at in enumerate((1_790_000_000, 1_790_086_400)):
            clock.setattr(room, "time", lambda at=at: at)
            publish(
                models, small_store(20, look_alikes=5, seed=number), releases={f"counts-{number}": counts_of(STORE)}
            )
    return models


@pytest.fixture
def models(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "tacit-home" / "models"))


@pytest.fixture
def tacit(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    monkeypatch.chdir(tmp_path)
    return Command(monkeypatch, capfd)


def test_versions_are_listed_the_newest_first_and_the_served_one_is_marked(tacit: Command, models: Path) -> None:
    new, old = (one.name for one in versions(models))
    assert tacit("models", "list") == (
        0,
        f"* {new}\t2026-09-22 14:13\tsmall\tcounts-1\n  {old}\t2026-09-21 14:13\tsmall\tcounts-0\n",
        "",
    )
    assert tacit("models", "use", old) == (0, f"{old} is served now.\n", "")
    assert current(models).name == old
    assert [line[0] for line in tacit("models", "list").stdout.splitlines()] == [" ", "*"]


def test_where_nothing_is_published_that_is_said(tacit: Command, tmp_path: Path) -> None:
    assert tacit("models", "list", "--models", "none") == (0, "Nothing is published in none.\n", "")
    done = tacit("models", "tidy", "--models", "none")
    assert done.returncode == 1
    assert re.fullmatch(r"tacit: invalid-model: nothing is published in none.+tacit fit.+\n", done.stderr)
    assert list(tmp_path.iterdir()) == []


def test_every_file_of_every_version_is_checked(tacit: Command, models: Path) -> None:
    new, old = (one.name for one in versions(models))
    done = tacit("models", "check")
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == sorted(f"{one}: 3 files, all unchanged." for one in (new, old))
    (models / old / "counts-0").write_text("{}")
    done = tacit("models", "check")
    assert done.returncode == 1
    assert f"{new}: 3 files, all unchanged." in done.stdout  # the others are told all the same
    assert re.search(rf"{old}.*was changed", done.stdout + done.stderr)


def test_a_damaged_manifest_does_not_escape_the_check(tacit: Command, models: Path) -> None:
    new, old = (one.name for one in versions(models))
    manifest = models / old / "manifest.json"
    manifest.write_text(manifest.read_text().replace("counts-0", "counts-9"))
    done = tacit("models", "check")
    assert done.returncode == 1
    assert re.search(rf"{old}.*manifest", done.stdout + done.stderr)
    assert new in done.stdout


def test_a_damaged_version_is_not_served(tacit: Command, models: Path) -> None:
    new, old = (one.name for one in versions(models))
    (models / old / "store.tacit").write_bytes(b"")
    done = tacit("models", "use", old)
    assert (done.returncode, done.stdout, current(models).name) == (1, "", new)
    assert re.fullmatch(r"tacit: invalid-model: .+store\.tacit.+\n", done.stderr)


def test_a_release_is_added_to_what_is_served(tacit: Command, models: Path, tmp_path: Path) -> None:
    (tmp_path / "counts.json").write_text(json.dumps(counts_of(STORE, 2.0).to_json()))
    transfer_model().save(tmp_path / "books.json")
    done = tacit("models", "add", "more", "counts.json")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{counts_of(STORE, 2.0).guarantee}\n")  # what is about to be sent to anybody
    assert done.stdout.endswith(f"published as version {current(models).name}\n")
    assert tacit("models", "add", "books", "books.json").returncode == 0
    served = current(models).check()
    assert [one["name"] for one in served.releases] == ["counts-1", "more", "books"]
    assert served.release("more") == counts_of(STORE, 2.0)


def test_old_versions_are_deleted_by_name(tacit: Command, models: Path) -> None:
    new, old = (one.name for one in versions(models))
    assert tacit("models", "tidy") == (0, "Deleted nothing.\n", "")
    assert tacit("models", "tidy", "--keep", "0") == (0, f"Deleted {old}.\n", "")
    assert [one.name for one in versions(models)] == [new]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("use",), "VERSION"),
        (("use", "0123456789abcdef"), "unknown-name"),
        (("use", "../models"), "unknown-name"),
        (("add", "more"), "FILE"),
        (("add", "more", "none.json"), "none.json"),
        (("add", "store.tacit", "counts.json"), "another file of a version"),
        (("add", "a/b", "counts.json"), "letters, digits"),
        (("tidy", "--keep", "-1"), "--keep"),
        (("list", "--models", "counts.json"), "counts.json"),
        (("forget",), "forget"),
    ],
)
def test_a_wrong_call_is_one_line_and_exits_with_2(
    tacit: Command, models: Path, tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    (tmp_path / "counts.json").write_text(json.dumps(counts_of(STORE).to_json()))
    before = current(models).name
    done = tacit("models", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"tacit: .+\n", done.stderr)
    assert told in done.stderr
    assert (current(models).name, len(versions(models))) == (before, 2)


@pytest.mark.parametrize("content", [b"", b"{}", b"[" * 100_000, b"\xff\xfe"])
def test_what_is_no_release_is_one_line(tacit: Command, models: Path, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "odd.json").write_bytes(content)
    done = tacit("models", "add", "more", "odd.json")
    assert done.returncode in (1, 2)
    assert re.fullmatch(r"tacit: .+\n", done.stderr)
    assert len(versions(models)) == 2


@pytest.mark.parametrize("command", ["list", "check", "use", "add", "tidy"])
def test_every_command_has_help_with_an_example_and_a_place_in_the_docs(tacit: Command, command: str) -> None:
    done = tacit("models", command, "--help")
    assert (done.returncode, f"Example: tacit models {command}" in done.stdout) == (0, True)
    page = (ROOT / "docs" / "command-line.md").read_text()
    assert command in page.partition("## `tacit models`")[2].partition("\n## ")[0]
