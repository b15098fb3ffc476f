"""``tacit advise``: options or questions in, one answer out."""

import io
import json
import shlex
import sys
from pathlib import Path

import pytest

from tacit.cli.advise import HolderOption, WantsOption
from tacit.evaluation.advice import Holder, System, Wants, measured
from tests.unit.cli.called import Command

SLATE = ["advise", "--holder", "curator", "--wants", "slate", "--users", 6000, "--items", 4000, "--epsilon", 1]


@pytest.fixture
def tacit(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Command:
    return Command(monkeypatch, capfd)


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What somebody types at a terminal, one line after the other."""
    typed: list[str] = []

    class Terminal:
        def isatty(self) -> bool:
            return True

        def readline(self) -> str:
            return typed.pop(0) + "\n"

    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr("builtins.input", lambda _="": typed.pop(0))
    return typed


def test_the_answer_comes_first_and_the_commands_last(tacit: Command) -> None:
    done = tacit(*SLATE)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "private-slates (tempered, k=10, one slate)"
    for part in (
        "Promises",
        "epsilon = 1; protects one user's rows",
        "Why not",
        "cross-domain: there is one domain.",
        "Run it",
    ):
        assert part in done.stdout
    assert "tacit serve --curator ratings.parquet" in done.stdout
    assert done.stdout.rstrip().endswith("More: docs/private-slates.md")


def test_its_json_has_the_same_for_machines(tacit: Command, tmp_path: Path) -> None:
    out = tmp_path / "advice.json"
    done = tacit(*SLATE, "--json", out)
    assert (done.returncode, done.stdout) == (0, "")
    found = json.loads(out.read_text())
    assert found["system"] == "private-slates"
    assert found["guarantee"]["epsilon"] == 1.0
    assert set(found["rejected"]) == set(System) - {System.PRIVATE_SLATES}
    assert found["measured"]["date"] == measured().date
    again = tacit(*found["again"].split()[1:], "--json", "-")
    assert json.loads(again.stdout) == found


def test_where_no_system_fits_that_is_an_answer(tacit: Command) -> None:
    done = tacit("advise", "--holder", "device", "--domains", 2, "--users", 10, "--items", 10, "--epsilon", 1)
    assert done.returncode == 0
    assert done.stdout.startswith("No system fits.")
    assert "curator" in done.stdout


def test_without_a_terminal_what_is_missing_is_said(tacit: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    done = tacit("advise", "--holder", "entity", "--users", 100)
    assert done.returncode == 2
    assert "--items, --epsilon, --entities" in done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [(["--releases", 0], "releases must be a whole number from 1"), (["--epsilon", -1], "epsilon must be"),
     (["--domains", 3], "--domains"), (["--entities", 4], "belongs to holder='entity'"), (["--delta", 2], "delta must lie")],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(tacit: Command, words: list[object], told: str) -> None:
    done = tacit(*SLATE, *words)
    assert done.returncode == 2
    assert told in done.stderr


def test_figures_may_come_from_a_report_of_ones_own(tacit: Command, tmp_path: Path) -> None:
    mine = next(one for one in measured().curves if one.system == "private-slates").to_json() | {"world": "my own shop"}
    (tmp_path / "report.json").write_text(json.dumps({"curves": [mine]}))
    done = tacit(*SLATE, "--report", tmp_path / "report.json", "--json", "-")
    found = json.loads(done.stdout)
    assert found["expected"]["world"] == "my own shop"
    assert found["measured"] is None
    (tmp_path / "report.json").write_text("{}")
    assert tacit(*SLATE, "--report", tmp_path / "report.json").returncode == 1


def test_on_a_terminal_it_asks_and_tells_how_to_ask_again(tacit: Command, answers: list[str]) -> None:
    answers += ["hospital", "entity", "144", "no", "3", "1", "item", "1400", "many", "250", "1", "1"]
    done = tacit("advise")
    assert done.returncode == 0, done.stderr
    assert not answers
    assert "answer with device, entity, curator." in done.stderr
    assert "answer with a whole number from 1 to 1,000,000,000,000." in done.stderr
    assert "answer with a whole number from 1 to 2." in done.stderr
    assert "federated-prototypes" in done.stdout.splitlines()[0]
    last = done.stdout.rstrip().splitlines()[-1]
    assert last == (
        "To get the same advice again: tacit advise --holder entity --entities 144 --need-not-see --domains 1 "
        "--wants item --releases 1 "
        "--items 250 --users 1400 --epsilon 1.0"
    )


def test_it_does_not_ask_for_what_was_given(tacit: Command, answers: list[str]) -> None:
    answers += ["yes", "", "", "", "10", "10"]
    done = tacit("advise", "--holder", "device", "--users", 5000, "--delta", 1e-8)
    assert done.returncode == 0, done.stderr
    assert not answers
    assert "private-selection" in done.stdout.splitlines()[0]
    assert (
        "--must-see-choice --domains 1 --wants item --releases 10 --items 4000 --users 5000 --epsilon 10.0 --delta 1e-08"
        in done.stdout
    )


def test_a_range_is_checked_where_it_is_asked_for(tacit: Command, answers: list[str]) -> None:
    answers += [
        "entity",
        "0",
        "10,001",
        "1,000",
        "no",
        "1",
        "item",
        "999",
        "5,000",
        "1,00",
        "-4",
        "4_0",
        "250",
        "0",
        "1",
    ]
    answers += ["0", "-1", "nan", "inf", "0,5", "0.5"]
    done = tacit("advise")
    assert done.returncode == 0, done.stderr
    assert not answers
    assert done.stderr.count("answer with a whole number from 1 to 10,000.") == 2
    assert done.stderr.count("answer with a whole number from 1,000 to 1,000,000,000,000.") == 1
    assert done.stderr.count("answer with a whole number from 1 to 1,000,000,000,000.") == 4
    assert done.stderr.count("answer with a number above 0, such as 1 or 0.5.") == 5
    assert "--entities 1000 --need-not-see" in done.stdout
    assert "--releases 1 --items 250 --users 5000 --epsilon 0.5" in done.stdout


def test_no_more_organisations_than_users_are_taken(tacit: Command, answers: list[str]) -> None:
    answers += ["5", "", "", "", "", "", "", ""]
    done = tacit("advise", "--holder", "entity", "--users", 4)
    assert "answer with a whole number from 1 to 4." in done.stderr
    assert "--entities 4 " in done.stdout, done.stderr


def test_files_that_have_to_be_there_are_described_before_the_commands(tacit: Command) -> None:
    call = ["advise", "--holder", "entity", "--entities", 144, "--users", 1400, "--items", 250, "--epsilon", 1]
    printed = tacit(*call).stdout
    assert printed.index("You need") < printed.index("items.txt: the ids of all items") < printed.index("Run it")
    found = json.loads(tacit(*call, "--json", "-").stdout)
    assert set(found["needs"]) == {"items.txt", "north.toml", "north.csv"}


def test_its_choices_are_those_of_a_situation() -> None:
    assert [one.value for one in HolderOption] == [one.value for one in Holder]
    assert [one.value for one in WantsOption] == [one.value for one in Wants]


def test_the_docs_have_a_place_for_it_and_every_field(tacit: Command) -> None:
    page = (Path(__file__).parents[3] / "docs" / "command-line.md").read_text()
    section = page.split("## `tacit advise`")[1].split("\n## ")[0]
    found = json.loads(tacit(*SLATE, "--json", "-").stdout)
    assert not [name for name in found if f"`{name}`" not in section]
    assert "Example: tacit advise" in " ".join(tacit("advise", "--help").stdout.split())


def test_what_it_says_to_type_can_be_typed(tacit: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"{user},{item},{user * item % 5 + 1}" for user in range(30) for item in range(25)]
    Path("ratings.csv").write_text("\n".join(["user_id,item_id,rating", *rows]))
    found = json.loads(tacit(*SLATE, "--json", "-").stdout)
    *first, last = found["commands"]
    assert "tacit serve" in last
    for line in first:
        done = tacit(*shlex.split(line)[1:])
        assert done.returncode == 0, done.stderr
