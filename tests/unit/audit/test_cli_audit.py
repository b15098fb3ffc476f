"""tacit audit, the command."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from tacit.audit import AuditReport, By, suite
from tacit.cli.audit import audit
from tacit.errors import UnknownName

app = typer.Typer()
app.command("audit")(audit)
runner = CliRunner()


@pytest.fixture(scope="module")
def report() -> AuditReport:
    """Of one mechanism: the command shows many as it shows one."""
    return suite.run(["randomised-response"], by=[By.EXACT])


def test_the_table_lists_claim_loss_and_verdict() -> None:
    done = runner.invoke(app, ["randomised-response"])
    assert done.exit_code == 0
    assert "randomised-response" in done.stdout
    assert "last-bit-never-flips" in done.stdout
    assert "holds" in done.stdout
    assert "caught" in done.stdout
    assert "refute" in done.stdout


def test_json_goes_to_a_file_whole(tmp_path: Path) -> None:
    file = tmp_path / "audit.json"
    done = runner.invoke(app, ["randomised-response", "--json", str(file)])
    assert done.exit_code == 0
    assert done.stdout == ""
    found = json.loads(file.read_text())
    assert {row["name"] for row in found["mechanisms"]} == {"randomised-response"}
    assert [entry.name for entry in tmp_path.iterdir()] == ["audit.json"]


def test_json_goes_to_standard_output_alone() -> None:
    done = runner.invoke(app, ["randomised-response", "--json", "-"])
    assert json.loads(done.stdout)["passed"] is True


def test_an_unknown_name_is_told_before_any_work() -> None:
    done = runner.invoke(app, ["randomized-response"])
    assert isinstance(done.exception, UnknownName)
    assert "randomised-response" in str(done.exception)


def test_a_folder_that_does_not_exist_is_a_wrong_call(tmp_path: Path) -> None:
    done = runner.invoke(app, ["--json", str(tmp_path / "no" / "audit.json")])
    assert done.exit_code == 2


def test_a_claim_that_fails_makes_the_command_fail(
    monkeypatch: pytest.MonkeyPatch, report: AuditReport, tmp_path: Path
) -> None:
    # a twin passed off as a mechanism
    wrong = AuditReport((report.twins[0].finding,), report.twins)
    monkeypatch.setattr(suite, "run", lambda *given, **named: wrong)
    shown = runner.invoke(app, [])
    assert shown.exit_code == 1
    assert "FAILS" in shown.stdout
    assert runner.invoke(app, ["--json", str(tmp_path / "audit.json")]).exit_code == 1
    assert json.loads((tmp_path / "audit.json").read_text())["passed"] is False


def test_a_twin_that_escapes_makes_the_command_fail(monkeypatch: pytest.MonkeyPatch, report: AuditReport) -> None:
    from tacit.audit import TwinFinding

    escaped = AuditReport((), (TwinFinding("sound", "randomised-response", "none", report.mechanisms[0]),))
    monkeypatch.setattr(suite, "run", lambda *given, **named: escaped)
    shown = runner.invoke(app, [])
    assert shown.exit_code == 1
    assert "ESCAPED" in shown.stdout
