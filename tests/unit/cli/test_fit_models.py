"""`tacit fit --models`: a new version for a service, with counts for slates that are charged to a curator's ledger."""

import re
from pathlib import Path

import numpy as np
import pytest

from tacit.data import STARS, from_arrays, write
from tacit.ledger import PrivacyLedger
from tacit.messages.private_slates import Popularity
from tacit.messages.store import Store
from tacit.service.versions import current, versions
from tests.unit.cli.called import Command

ROOT = Path(__file__).parents[3]


@pytest.fixture
def tacit(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    monkeypatch.chdir(tmp_path)
    return Command(monkeypatch, capfd)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    users, items = np.divmod(np.arange(900), 30)
    return write(from_arrays(users, items, 1.0 + (users + items) % 5, scale=STARS), tmp_path / "plain.parquet")


def test_a_version_is_published_and_named(tacit: Command, data: Path, tmp_path: Path) -> None:
    done = tacit("fit", data, "--model", "factors", "--models", "served")
    assert done.returncode == 0, done.stderr
    version = current(tmp_path / "served").check()
    store = Store.load(version.file("store.tacit"))
    assert done.stdout == f"{store}\npublished as version {version.name} in served\n"
    assert version.releases == []
    assert {path.name for path in tmp_path.iterdir()} == {"plain.parquet", "served"}


def test_counts_are_charged_once_and_the_same_again_for_nothing(tacit: Command, data: Path, tmp_path: Path) -> None:
    words = ("fit", data, "--model", "factors", "--models", "served", "--slates", "2", "--slates", "0.5")
    words = (*words, "--ledger", "curator.db")
    missing = tacit(*words)
    assert (missing.returncode, missing.stdout) == (1, "")  # a lost ledger must not look like a fresh budget
    assert "tacit ledger init curator.db" in missing.stderr
    assert not (tmp_path / "served").exists()
    tacit("ledger", "init", "curator.db")
    assert tacit(*words).returncode == 0
    version = current(tmp_path / "served").check()
    assert [(one["name"], one["guarantee"]["epsilon"]) for one in version.releases] == [
        ("counts-0.5", 0.5), ("counts-2", 2.0),
    ]  # fmt: skip
    counts = version.release("counts-2")
    assert isinstance(counts, Popularity)
    assert len(counts) == 30

    def charged() -> tuple[int, int]:
        with PrivacyLedger.open(tmp_path / "curator.db") as ledger:
            (subject,) = ledger.subjects()
            statement = ledger.statement(subject)
            return statement.charges, statement.spent.amount

    assert charged() == (2, 2_500_000_000)  # billionths of epsilon
    assert tacit(*words).returncode == 0
    assert charged() == (2, 2_500_000_000)
    assert current(tmp_path / "served").name == version.name  # drawn again they would be another version
    assert len(versions(tmp_path / "served")) == 1

    fewer = tacit("fit", data, "--model", "factors", "--models", "served", "--slates", "2", "--ledger", "curator.db")
    assert fewer.returncode == 0, fewer.stderr  # under the budget that was agreed
    assert charged() == (2, 2_500_000_000)
    more = tacit("fit", data, "--model", "factors", "--models", "served", "--slates", "3", "--ledger", "curator.db")
    assert (more.returncode, charged()) == (1, (2, 2_500_000_000))
    assert more.stderr.startswith("tacit: budget-exhausted: ")


def test_what_is_agreed_by_default_is_what_the_releases_take(tacit: Command, data: Path) -> None:
    """In floats 0.7 + 0.2 + 0.1 is less than 1: agreed for good, it would never allow all three."""
    tacit("ledger", "init", "curator.db")
    slates = [word for epsilon in ("0.7", "0.2", "0.1") for word in ("--slates", epsilon)]
    done = tacit("fit", data, "--model", "factors", "--models", "served", "--ledger", "curator.db", *slates)
    assert done.returncode == 0, done.stderr


def test_a_larger_budget_may_be_agreed_with_the_first_release(tacit: Command, data: Path) -> None:
    words = ("fit", data, "--model", "factors", "--models", "served", "--ledger", "curator.db")
    tacit("ledger", "init", "curator.db")
    assert tacit(*words, "--slates", "1", "--budget", "4").returncode == 0
    assert tacit(*words, "--slates", "3").returncode == 0
    done = tacit(*words, "--slates", "1", "--budget", "9")
    assert (done.returncode, done.stderr.split(":")[1]) == (1, " conflict")


def test_counts_of_which_not_all_fit_are_not_charged_at_all(tacit: Command, data: Path, tmp_path: Path) -> None:
    words = ("fit", data, "--model", "factors", "--models", "served", "--ledger", "curator.db")
    tacit("ledger", "init", "curator.db")
    assert tacit(*words, "--slates", "1", "--budget", "2.5").returncode == 0
    published = current(tmp_path / "served").name
    done = tacit(*words, "--slates", "1", "--slates", "0.5", "--slates", "1.25")  # any two of them would fit
    assert done.returncode == 1
    assert done.stderr.startswith("tacit: budget-exhausted: a charge of 1.25 epsilon was refused; 1 of 2.5 is left")
    with PrivacyLedger.open(tmp_path / "curator.db") as ledger:
        (subject,) = ledger.subjects()
        assert ledger.statement(subject).charges == 1
    assert current(tmp_path / "served").name == published
    assert tacit(*words, "--slates", "1", "--slates", "0.5", "--slates", "1.0001").returncode == 1
    assert (
        tacit(*words, "--slates", "1", "--slates", "0.25", "--slates", "1.25").returncode == 0
    )  # the first was paid before


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "--out FILE to write a store, or --models FOLDER"),
        (("--out", "x.tacit", "--models", "served"), "--out FILE to write a store, or --models FOLDER"),
        (("--models", "served", "--slates", "1"), "--ledger"),
        (("--out", "x.tacit", "--slates", "1", "--ledger", "c.db"), "--models"),
        (("--models", "served", "--slates", "0", "--ledger", "c.db"), "epsilon"),
        (("--models", "served", "--slates", "-1", "--ledger", "c.db"), "epsilon"),
        (("--models", "served", "--slates", "nan", "--ledger", "c.db"), "epsilon"),
        (("--models", "served", "--slates", "1e6", "--ledger", "c.db"), "epsilon"),
        (("--models", "served", "--slates", "1", "--slates", "1", "--ledger", "c.db"), "each epsilon once"),
        (("--models", "served", "--slates", "0.1234567", "--slates", "0.12345678", "--ledger", "c.db"), "six digits"),
        (
            ("--models", "served", "--slates", "0.7", "--slates", "0.3", "--ledger", "c.db", "--budget", "0.9"),
            "need 1 ",
        ),
        (("--models", "plain.parquet"), "plain.parquet"),
    ],
)
def test_a_wrong_call_is_told_before_anything_is_read_or_charged(
    tacit: Command, data: Path, tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    done = tacit("fit", data, "--model", "factors", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"tacit: .+\n", done.stderr)
    assert told in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["plain.parquet"]


def test_the_ledger_may_be_named_by_the_environment(
    tacit: Command, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may hold a password, and words can be read by others."""
    monkeypatch.setenv("TACIT_SERVE_LEDGER", str(tmp_path / "curator.db"))
    PrivacyLedger.create(tmp_path / "curator.db").close()
    done = tacit("fit", data, "--model", "factors", "--models", "served", "--slates", "1")
    assert done.returncode == 0, done.stderr
    with PrivacyLedger.open(tmp_path / "curator.db") as ledger:
        assert len(list(ledger.subjects())) == 1


def test_its_options_have_a_place_in_the_docs(tacit: Command) -> None:
    done = tacit("fit", "--help")
    page = (ROOT / "docs" / "command-line.md").read_text()
    for option in ("--models", "--slates", "--ledger", "--budget"):
        assert option in done.stdout
        assert option in page
