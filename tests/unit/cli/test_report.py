"""tacit report as a user types it."""

import json
from importlib import import_module
from pathlib import Path

import pytest

from tacit.audit import suite
from tacit.evaluation import registry
from tacit.evaluation.curve import Curve
from tacit.evaluation.result import Result
from tests.unit.cli.called import Command
from tests.unit.evaluation.told import demonstration, result


@pytest.fixture
def tacit(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    monkeypatch.chdir(tmp_path)
    return Command(monkeypatch, capfd)


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """Evaluations of every system take minutes: here they are one small result, and this list says what was asked for."""
    asked: list[tuple[object, ...]] = []

    def evaluate(
        system: str, data: str | None, effort: object, *, seed: int, workers: int | None, progress: object
    ) -> Result:
        asked.append((system, data, str(effort), seed, workers))
        return result()

    report = suite.run(["randomised-response"])
    monkeypatch.setattr(registry, "evaluate", evaluate)
    monkeypatch.setattr(import_module("tacit.cli.audit"), "run_audit", lambda: report)
    monkeypatch.setattr(import_module("tacit.cli.demo"), "demonstrate", lambda data, systems: ((demonstration(),), {}))
    return asked


def test_it_writes_a_page_and_its_twin(tacit: Command, evaluated: list[tuple[object, ...]], tmp_path: Path) -> None:
    done = tacit("report", "--quick", "--system", "private-slates", "--seed", "7")
    assert done.returncode == 0, done.stderr
    assert "Wrote report.html and report.json." in done.stderr
    assert evaluated == [("private-slates", None, "quick", 7, None)]
    text, told = (tmp_path / "report.html").read_text(), json.loads((tmp_path / "report.json").read_text())
    assert "tacit report --quick --system private-slates --seed 7" in text
    assert told["command"] == "tacit report --quick --system private-slates --seed 7"
    assert (told["seed"], told["effort"]) == (7, "quick")
    assert [Curve.from_json(one).world for one in told["curves"]] == ["small-world"]
    assert Result.from_json(told["results"][0]) == result()


def test_all_systems_are_evaluated_unless_some_are_named(tacit: Command, evaluated: list[tuple[object, ...]]) -> None:
    assert tacit("report", "--data", "cross-domain=synthetic", "--workers", 1).returncode == 0
    assert [one[0] for one in evaluated] == list(registry.SYSTEMS)
    assert {one[0]: one[1] for one in evaluated if one[1]} == {"cross-domain": "synthetic"}
    assert {one[2:] for one in evaluated} == {("default", 1, 1)}


def test_what_was_kept_is_not_evaluated_again(tacit: Command, evaluated: list[tuple[object, ...]]) -> None:
    words = ("report", "--quick", "--system", "private-slates", "--results", "kept")
    assert tacit(*words).returncode == 0
    assert tacit(*words).returncode == 0
    assert len(evaluated) == 1
    for other in (("--seed", "2"), ("--data", "private-slates=movielens-small")):
        tacit(*words, *other)
    assert len(evaluated) == 3  # another seed, other data: another evaluation


def test_a_page_is_replaced_and_anything_else_is_not(
    tacit: Command, evaluated: list[tuple[object, ...]], tmp_path: Path
) -> None:
    words = ("report", "--system", "private-slates")
    assert tacit(*words).returncode == 0
    assert tacit(*words).returncode == 0
    (tmp_path / "report.html").write_text("<html>a thesis</html>")
    done = tacit(*words)
    assert done.returncode == 2
    assert "not a report of tacit; name another file" in done.stderr
    assert (tmp_path / "report.html").read_text() == "<html>a thesis</html>"
    assert len(evaluated) == 2  # told before any work


def test_a_twin_that_nobody_named_replaces_a_report_only(
    tacit: Command, evaluated: list[tuple[object, ...]], tmp_path: Path
) -> None:
    for content in ('{"mine": 1}', "no JSON"):
        (tmp_path / "thesis.json").write_text(content)
        done = tacit("report", "--system", "private-slates", "--out", "thesis.html")
        assert done.returncode == 2
        assert "thesis.json exists and is not a report of tacit" in done.stderr
        assert (tmp_path / "thesis.json").read_text() == content
    assert evaluated == []
    assert tacit("report", "--system", "private-slates", "--out", "thesis.html", "--json", "other.json").returncode == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--quick", "--full"), "exclude each other"),
        (("--system", "oracle"), "no system 'oracle' can be evaluated; known: multi-selection"),
        (("--data", "oracle=x"), "no system 'oracle'"),
        (("--data", "movielens-small"), "expected SYSTEM=DATA"),
        (("--out", "-"), "must name a file"),
        (("--out", "nowhere/report.html"), "a folder that exists"),
        (("--out", "a.html", "--json", "a.html"), "name the same file"),
    ],
)
def test_a_wrong_call_is_told_before_any_work(
    tacit: Command, evaluated: list[tuple[object, ...]], words: tuple[str, ...], told: str
) -> None:
    done = tacit("report", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
    assert evaluated == []


def test_a_failed_audit_is_written_and_exits_with_1(
    tacit: Command, evaluated: list[tuple[object, ...]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = suite.run(["randomised-response"])
    monkeypatch.setattr(
        import_module("tacit.cli.audit"), "run_audit", lambda: type(found)(found.mechanisms, (_escaped(found),))
    )
    assert tacit("report", "--system", "private-slates").returncode == 1
    assert "a broken twin escaped" in (tmp_path / "report.html").read_text()


def _escaped(found):  # type: ignore[no-untyped-def]
    from dataclasses import replace

    return replace(found.twins[0], finding=replace(found.twins[0].finding, holds=True))
