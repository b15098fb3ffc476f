"""`tacit serve` as a user types it, in this process: what it does before anything is served."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tacit.cli.serve import _address
from tacit.ledger import ImpressionLedger, PrivacyLedger
from tacit.service import run
from tacit.service.settings import Settings
from tacit.service.versions import current, is_demonstration, publish
from tests.unit.cli.called import Command
from tests.unit.server.small_store import small_store

ROOT = Path(__file__).parents[3]
SECRET = "postgresql://shop:hunter2@db/curator"


@pytest.fixture
def tacit(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    monkeypatch.chdir(tmp_path)
    return Command(monkeypatch, capfd)


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Settings]]:
    """What would have been served, and with which settings."""
    seen: list[tuple[str, Settings]] = []

    def instead(application: str, settings: Settings, *, listening: Any) -> None:
        seen.append((application, settings))
        listening(settings.port)

    monkeypatch.setattr(run, "run", instead)
    return seen


@pytest.fixture
def fitted(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The embedded ratings are fitted by another process: here, at once, to something small."""
    seen: list[list[str]] = []

    def instead(words: list[str], *, check: bool) -> subprocess.CompletedProcess[str]:
        seen.append(words)
        publish(Path(words[words.index("--models") + 1]), small_store(20, look_alikes=5))
        return subprocess.CompletedProcess(words, 0)

    monkeypatch.setattr(subprocess, "run", instead)
    return seen


def ledger_at(folder: Path) -> None:
    """Of a curator, where it is looked for."""
    (folder / "tacit-home").mkdir()
    PrivacyLedger.create(folder / "tacit-home" / "curator.db").close()


def test_what_is_published_is_served_and_its_address_told(
    tacit: Command, served: list[tuple[str, Settings]], tmp_path: Path
) -> None:
    publish(tmp_path / "there" / "models", small_store(20, look_alikes=5))
    done = tacit("serve", "--home", "there", "--port", "8123", "--workers", "3")
    assert (done.returncode, done.stdout) == (0, "")
    assert "http://127.0.0.1:8123/" in done.stderr
    ((application, settings),) = served
    assert application == "tacit.service.server_app:create"
    assert (settings.home, settings.port, settings.workers) == (Path("there"), 8123, 3)
    assert not settings.open_counts
    ImpressionLedger.open(tmp_path / "there" / "server.db").close()  # once, before several workers open it


def test_where_nothing_is_published_the_embedded_ratings_are_fitted_first(
    tacit: Command, served: list[tuple[str, Settings]], fitted: list[list[str]], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("TACIT_SERVE_LEDGER", SECRET)
    assert tacit("serve").returncode == 0
    (words,) = fitted
    assert words[:5] == [sys.executable, "-m", "tacit", "fit", "movielens-small"]
    assert words.count("--slates") == 3
    ledger = Path(words[words.index("--ledger") + 1])  # its own: an operator's budget is not spent to show something
    PrivacyLedger.open(tmp_path / ledger).close()
    assert "hunter2" not in " ".join(words)  # whoever may list processes sees their words
    assert is_demonstration(current(tmp_path / "tacit-home" / "models"))
    assert tacit("serve").returncode == 0
    assert len(fitted) == 1


def test_what_is_published_later_is_no_demonstration(
    tacit: Command, served: list[tuple[str, Settings]], fitted: list[Any], tmp_path: Path
) -> None:
    """An operator's own items take the place of the embedded ones: how often they were shown is her affair."""
    tacit("serve")
    models = tmp_path / "tacit-home" / "models"
    first = current(models)
    publish(models, small_store(20, look_alikes=5, seed=3))
    tacit("serve")
    assert (is_demonstration(first), is_demonstration(current(models))) == (True, False)


def test_ratings_that_cannot_be_fitted_are_one_line_more_and_exit_with_1(
    tacit: Command, served: list[tuple[str, Settings]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "run", lambda words, **_: subprocess.CompletedProcess(words, 1))
    done = tacit("serve")
    assert (done.returncode, done.stdout, served) == (1, "", [])
    assert re.fullmatch(r"tacit: invalid-model: .+\n", done.stderr.splitlines(keepends=True)[-1])


def test_a_damaged_version_is_not_served(tacit: Command, served: list[tuple[str, Settings]], tmp_path: Path) -> None:
    models = tmp_path / "tacit-home" / "models"
    publish(models, small_store(20, look_alikes=5))
    (current(models).folder / "tables.safetensors").write_bytes(b"")
    done = tacit("serve")
    assert (done.returncode, served) == (1, [])
    assert re.fullmatch(r"tacit: invalid-model: .+tables\.safetensors.+\n", done.stderr)


def test_keys_that_cannot_be_read_are_told_before_anything_listens(
    tacit: Command, served: list[tuple[str, Settings]], tmp_path: Path
) -> None:
    publish(tmp_path / "tacit-home" / "models", small_store(20, look_alikes=5))
    (tmp_path / "tacit-home" / "keys.json").write_text("{")
    done = tacit("serve")
    assert (done.returncode, served) == (1, [])
    assert re.fullmatch(r"tacit: invalid-data: .+keys\.json.+\n", done.stderr)


def test_a_curator_is_another_application(tacit: Command, served: list[tuple[str, Settings]], tmp_path: Path) -> None:
    missing = tacit("serve", "--curator", "movielens-small", "--port", "8001")
    assert (missing.returncode, served) == (1, [])  # a lost ledger must not look like a fresh budget
    assert re.fullmatch(r"tacit: ledger-missing: .+tacit ledger init tacit-home/curator\.db.+\n", missing.stderr)
    ledger_at(tmp_path)
    assert tacit("serve", "--curator", "movielens-small", "--port", "8001").returncode == 0
    ((application, settings),) = served
    assert application == "tacit.service.curator_app:create"
    assert settings.data == "movielens-small"
    assert {one.name for one in (tmp_path / "tacit-home").iterdir()} <= {
        "curator.db",
        "curator.db-wal",
        "curator.db-shm",
    }


def test_flags_win_over_the_environment_and_that_over_the_file(
    tacit: Command, served: list[tuple[str, Settings]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tacit.toml").write_text('port = 1\nhost = "file"\nworkers = 7\n')
    monkeypatch.setenv("TACIT_SERVE_PORT", "2")
    monkeypatch.setenv("TACIT_SERVE_HOST", "environment")
    ledger_at(tmp_path)
    tacit("serve", "--curator", "x", "--settings", "tacit.toml", "--port", "3")
    settings = served[0][1]
    assert (settings.port, settings.host, settings.workers) == (3, "environment", 7)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--port", "70000"), "--port"),
        (("--workers", "0"), "--workers"),
        (("--settings", "none.toml"), "none.toml"),
        (("--settings", "odd.toml"), "not valid TOML"),
        (("--settings", "unknown.toml"), "prot"),
        (("--home", "odd.toml"), "odd.toml"),
        (("--no-such-option",), "--no-such-option"),
    ],
)
def test_a_wrong_call_is_one_line_and_exits_with_2(
    tacit: Command, served: list[Any], tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    (tmp_path / "odd.toml").write_text("port = \n")
    (tmp_path / "unknown.toml").write_text('prot = "hunter2"\n')
    done = tacit("serve", *words)
    assert (done.returncode, done.stdout, served) == (2, "", [])
    assert re.fullmatch(r"tacit: .+\n", done.stderr)
    assert told in done.stderr
    assert "hunter2" not in done.stderr
    assert not (tmp_path / "tacit-home").exists()


def test_missing_packages_are_told(tacit: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tacit.service.settings", None)
    done = tacit("serve")
    assert done.returncode == 1
    assert re.fullmatch(r"tacit: missing-extra: .+tacit\[service\].+\n", done.stderr)


@pytest.mark.parametrize(
    ("host", "certificate", "address"),
    [
        ("127.0.0.1", None, "http://127.0.0.1:8000/"),
        ("0.0.0.0", None, "http://127.0.0.1:8000/"),
        ("::", "cert.pem", "https://127.0.0.1:8000/"),
        ("::1", None, "http://[::1]:8000/"),
        ("shop.example", None, "http://shop.example:8000/"),
    ],
)
def test_the_address_that_is_told_can_be_opened(host: str, certificate: str | None, address: str) -> None:
    assert _address(Settings(host=host, tls_certificate=certificate), 8000) == address


def test_it_has_help_with_an_example_and_a_place_in_the_docs(tacit: Command) -> None:
    done = tacit("serve", "--help")
    assert (done.returncode, "Example: tacit serve" in done.stdout) == (0, True)
    page = (ROOT / "docs" / "command-line.md").read_text()
    assert "## `tacit serve`" in page
    for option in ("--home", "--host", "--port", "--workers", "--database", "--settings", "--curator"):
        assert option in done.stdout
    assert not [name for name in os.environ if name.startswith("TACIT_SERVE_")]
