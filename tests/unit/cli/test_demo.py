"""``tacit demo``: five systems in one table with the figures of the JSON; what cannot be shown is told; pages are guarded."""

import io
import json
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from tacit.audit import AuditReport, TwinFinding, suite
from tacit.cli import demo_tables, output
from tacit.data import Ratings, read
from tacit.errors import MissingExtra
from tacit.evaluation.demonstration.all import SYSTEMS, demonstrations
from tacit.evaluation.demonstration.demonstration import Demonstration, Skipped
from tacit.evaluation.report.words import interval
from tests.unit.cli.called import Command
from tests.unit.evaluation.test_demonstration import SHOWN

demo = import_module("tacit.cli.demo")  # the package has the command under that name
ONLY = ["randomised-response"]  # the whole audit has tests of its own


@pytest.fixture
def tacit(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "_run_audit", lambda told: suite.run(ONLY))
    return Command(monkeypatch, capfd)


@pytest.fixture
def few(tmp_path: Path, tacit: Command) -> Path:
    """Eight users and no genres: enough for a slate, and for nothing else."""
    rng = np.random.default_rng(3)
    rows = {(int(user), int(item)): int(stars) for user, item, stars in rng.integers([0, 0, 1], [8, 12, 6], (60, 3))}
    file, stored = tmp_path / "plain.csv", tmp_path / "plain.parquet"
    file.write_text("who,what,stars\n" + "".join(f"{u},{i},{r}\n" for (u, i), r in rows.items()))
    words = ["--user", "who", "--item", "what", "--rating", "stars", "--scale", "1", "5", "--out", str(stored)]
    assert tacit("data", "import", file, *words).returncode == 0
    return stored


def _missed(twin: TwinFinding) -> TwinFinding:
    return replace(twin, finding=replace(twin.finding, holds=True))


def printed(print_it: Callable[[Console], None], width: int) -> str:
    console = Console(file=io.StringIO(), record=True, width=width)
    print_it(console)
    return console.export_text()


def test_five_systems_end_in_one_table_whose_figures_are_those_of_the_json(
    tacit: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tacit.evaluation.demonstration.fitted.EPOCHS", 1)
    monkeypatch.setattr("tacit.evaluation.demonstration.fitted.USERS", 8)
    done = tacit("demo", "--data", "synthetic", "--json", "demo.json")
    assert done.returncode == 0, done.stderr
    content = json.loads((tmp_path / "demo.json").read_text())
    assert set(content) == {"data", "demonstrations", "skipped", "audit", "versions", "seeds"}
    assert content["skipped"] == {}
    shown = [Demonstration.from_json(one) for one in content["demonstrations"]]
    assert tuple(one.system for one in shown) == SYSTEMS == tuple(content["seeds"])
    closing = done.stdout.split("In one table")[1]
    places = [closing.index(f"\n {system}"[1:]) for system in SYSTEMS]
    assert places == sorted(places)
    for one, start, end in zip(shown, places, [*places[1:], len(closing)], strict=True):
        row = closing[start:end].split("\n\n")[0]
        for way in (one.private, one.plain, one.nothing):
            value, _, error = interval(*way.figures[one.metric], one.unit).partition(" ± ")
            assert value in row
            assert error in row
            assert way.method in row
        assert f"epsilon {one.guarantee.epsilon:.3g}" in row
        assert one.left.split()[0] in row
        assert one.verdict.split(".")[0] in " ".join(done.stdout.split())
    assert "1 mechanisms: all" in done.stdout
    assert [name for name in SYSTEMS if f"] {name}: " not in done.stderr] == []
    page = (tmp_path / "report.html").read_text()
    assert "Open report.html in a browser." in done.stdout
    assert all(one.verdict.split("'")[0] in page for one in shown)
    again = tacit("demo", "--data", "no-such", "--no-report")
    assert again.returncode == 2


def test_what_few_ratings_cannot_show_is_told_with_its_reason(tacit: Command, few: Path, tmp_path: Path) -> None:
    done = tacit("demo", "--data", few, "--json", "demo.json", "--no-report")
    assert done.returncode == 0, done.stderr
    content = json.loads((tmp_path / "demo.json").read_text())
    assert [one["system"] for one in content["demonstrations"]] == ["private-slates"]
    assert set(content["skipped"]) == set(SYSTEMS) - {"private-slates"}
    closing = " ".join(done.stdout.split("In one table")[1].split())
    assert closing.count("not shown:") == 4
    assert not (tmp_path / "report.html").exists()
    assert "report.html" not in done.stdout


def test_only_the_systems_that_are_asked_for_are_run(few: Path) -> None:
    ratings: Ratings = read(few)
    heard: list[str] = []
    found = list(demonstrations(ratings, lambda system, what: heard.append(system), ["private-slates"]))
    assert [one.system for one in found] == ["private-slates"]
    assert set(heard) == {"private-slates"}


def test_a_page_that_is_not_ours_is_not_overwritten_and_no_work_is_done(
    tacit: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "_load", lambda data: pytest.fail("work was done"))
    page = tmp_path / "report.html"
    page.write_text("<html>my own notes</html>")
    done = tacit("demo")
    assert (done.returncode, done.stdout) == (2, "")
    assert "not a report of tacit" in done.stderr
    assert page.read_text() == "<html>my own notes</html>"
    assert tacit("demo", "--out", "no/such/folder/x.html").returncode == 2
    assert tacit("demo", "--out", "one.json", "--json", "one.json").returncode == 2


def test_an_older_report_of_ours_is_replaced(tacit: Command, few: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text('<html><head><meta name="generator" content="tacit 0.0.1"></head></html>')
    assert tacit("demo", "--data", few).returncode == 0
    assert "not shown" in page.read_text()


def test_without_the_extra_the_demo_works_and_says_how_to_get_a_page(
    tacit: Command, few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> None:
        raise MissingExtra('a report needs jinja2: pip install "tacit[report]".')

    monkeypatch.setattr("tacit.evaluation.report.require_report", missing)
    done = tacit("demo", "--data", few)
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if "No page was written" in line]
    assert "tacit[report]" in line
    assert not (tmp_path / "report.html").exists()


def test_a_failed_audit_is_told_by_name_and_exits_with_1(
    tacit: Command, few: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = suite.run(ONLY)
    failing = AuditReport((replace(right.mechanisms[0], holds=False), *right.mechanisms[1:]), right.twins)
    escaped = AuditReport(right.mechanisms, (_missed(right.twins[0]), *right.twins[1:]))
    assert "all caught" in printed(lambda console: demo_tables.print_audit(console, failing), 100)
    assert f"ESCAPED: {right.twins[0].name}" in printed(lambda console: demo_tables.print_audit(console, escaped), 100)
    monkeypatch.setattr(demo, "_run_audit", lambda told: failing)
    done = tacit("demo", "--data", few, "--no-report")
    assert done.returncode == 1
    assert "CLAIMS FAIL: randomised-response" in done.stdout


@pytest.mark.parametrize("width", [80, 100, 110, 140])
def test_the_closing_table_has_all_its_columns_at_usual_widths(width: int) -> None:
    left = "masked shares of two noisy sums, 113,454 bytes from each entity"
    longest = replace(SHOWN, system="federated-prototypes", left=left, guarantee=replace(SHOWN.guarantee, delta=1e-6))
    found = [longest, Skipped("private-slates", "it needs two listed items.")]
    text = printed(lambda console: demo_tables.print_closing(console, found), width)
    assert max(map(len, text.splitlines())) <= width
    for word in (
        *left.split(),
        "what left",
        "0.740",
        "± 0.020",
        "NX-Map",
        "own mean",
        "epsilon 2",
        "error ↓",
        "federated-prototypes",
        "one user's rows",
        "not shown:",
    ):
        assert word in text
    assert "…" not in text


def test_on_a_narrow_terminal_what_left_stands_under_its_row_as_one_line() -> None:
    left = "masked shares of two noisy sums, 113,454 bytes from each entity"
    found = [replace(SHOWN, left=left), replace(SHOWN, system="private-slates", left="ten items")]
    lines = printed(lambda console: demo_tables.print_closing(console, found), 80).splitlines()
    (first,) = [place for place, line in enumerate(lines) if line.startswith("cross-domain")]
    (under,) = [place for place, line in enumerate(lines) if left in line]
    (second,) = [place for place, line in enumerate(lines) if line.startswith("private-slates")]
    assert first < under < second
    assert lines[first].index("0.740") == lines[second].index("0.740") == lines[2].index("private")


@pytest.mark.parametrize("width", [80, 140])
def test_what_is_promised_for_one_of_many_is_told_so(width: int) -> None:
    many = replace(SHOWN, each="impression")
    assert "per impression" in printed(lambda console: demo_tables.print_closing(console, [many]), width)
    assert "per impression" not in printed(lambda console: demo_tables.print_closing(console, [SHOWN]), width)
    told = printed(lambda console: demo_tables.print_demonstration(console, 1, many), width)
    assert "for each impression anew" in " ".join(told.split())


def test_a_terminal_has_a_bar_and_a_log_has_lines() -> None:
    log = Console(file=io.StringIO(), width=100)
    tell = output._lines(log, ("cross-domain", "audit"))
    tell("cross-domain", "two releases")
    tell("audit", "every claim")
    tell("audit", "top-k (3 of 33)")
    assert isinstance(log.file, io.StringIO)
    assert log.file.getvalue() == "[1/2] cross-domain: two releases ...\n[2/2] audit: every claim ...\n"
    screen = Console(file=io.StringIO(), width=100, force_terminal=True)
    with output.steps(screen, ("cross-domain", "audit")) as told:
        told("audit", "top-k (3 of 33)")
    assert isinstance(screen.file, io.StringIO)
    assert "top-k (3 of 33)" in screen.file.getvalue()
    assert "1/2" in screen.file.getvalue()


def test_a_plain_table_is_to_be_imported_first(tacit: Command, tmp_path: Path) -> None:
    (tmp_path / "tiny.csv").write_text("user,item,rating\nann,tea,4\n")
    done = tacit("demo", "--data", "tiny.csv", "--no-report")
    assert done.returncode == 2
    assert done.stderr.startswith(
        "tacit: invalid-parameter: import tiny.csv first: `tacit data import tiny.csv --user COLUMN"
    )
    assert "--out ratings.parquet`" in done.stderr
