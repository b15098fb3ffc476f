"""tacit audit: what every mechanism claims against what it loses, and whether every broken twin is caught."""

import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.progress import Progress

    from tacit.audit import AuditReport, Finding

_WIDTH = 150  # where the output is no terminal


def audit(
    mechanisms: Annotated[
        list[str] | None,
        typer.Argument(metavar="MECHANISM", help="Names of mechanisms; all of them if none are given."),
    ] = None,
    json_file: Annotated[
        str | None,
        typer.Option("--json", metavar="FILE", help="Write the findings as JSON to FILE; - is standard output."),
    ] = None,
) -> None:
    """Compare what every mechanism claims with what it loses, and catch its broken twins.

    Small domains are enumerated (exact), samplers are tested against their laws (distribution), whole releases are bounded
    from outside (empirical). An audit refutes and never proves. Exit status 1 if a claim fails or a twin escapes.
    """
    from tacit.audit import suite

    suite.selected(mechanisms)  # a wrong name is told before any work
    if json_file not in (None, "-") and not Path(str(json_file)).absolute().parent.is_dir():
        raise typer.BadParameter("the folder of the file does not exist.", param_hint="--json")
    report = audited(mechanisms)
    if json_file is None:
        _show(report)
    elif json_file == "-":
        typer.echo(_as_json(report))
    else:
        _write(Path(json_file), _as_json(report) + "\n")
    if not report.passed:
        raise typer.Exit(1)


def audited(mechanisms: list[str] | None = None) -> "AuditReport":
    """The audit of the named mechanisms, or of all, with a progress bar on standard error."""
    from tacit.audit import suite

    with _progress() as bar:
        task = bar.add_task("", total=None)
        return suite.run(
            mechanisms,
            progress=lambda done, total, name: bar.update(task, completed=done, total=total, description=name),
        )


def _show(report: "AuditReport") -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console() if Console().is_terminal else Console(width=_WIDTH)
    table = Table(title="Mechanisms", title_justify="left")
    for column in ("mechanism", "case", "claim", "by", "loss", "slack", "verdict"):
        table.add_column(column, justify="right" if column in ("loss", "slack") else "left", overflow="fold")
    last = ""
    for finding in report.mechanisms:
        if last and finding.name != last:
            table.add_section()
        verdict = "[green]holds[/]" + _tightness(finding) if finding.holds else "[bold red]FAILS[/]"
        loss = f"{'>= ' if finding.by == 'empirical' else ''}{finding.loss:.6g}"
        slack = "" if finding.by != "exact" else "0" if finding.tight else f"{finding.slack:.3g}"
        name = finding.name if finding.name != last else ""
        table.add_row(name, finding.case, _claim(finding), finding.by.value, loss, slack, verdict)
        last = finding.name
    console.print(table)
    twins = Table(title="Broken twins", title_justify="left")
    for column in ("twin", "of", "fault", "claim", "by", "loss", "verdict"):
        twins.add_column(column, justify="right" if column == "loss" else "left", overflow="fold")
    for twin in report.twins:
        verdict = "[green]caught[/]" if twin.caught else "[bold red]ESCAPED[/]"
        loss = f"{'>= ' if twin.finding.by == 'empirical' else ''}{twin.finding.loss:.4g}"
        twins.add_row(twin.name, twin.of, twin.fault, _claim(twin.finding), twin.finding.by.value, loss, verdict)
    console.print(twins)
    held, caught = sum(f.holds for f in report.mechanisms), sum(twin.caught for twin in report.twins)
    console.print(
        f"{held} of {len(report.mechanisms)} claims hold, {caught} of {len(report.twins)} broken twins are caught."
        " Audits refute, they never prove."
    )


def _tightness(finding: "Finding") -> str:
    if finding.tight is None:
        return ""
    if finding.tight:
        return ", tight"
    return ", slack known" if finding.explained else ", slack not explained"


def _claim(finding: "Finding") -> str:
    delta = f", delta {finding.guarantee.delta:.0e}" if finding.guarantee.delta and finding.measure == "epsilon" else ""
    return f"{finding.measure.value} {finding.claimed:.4g}{delta}"


def _as_json(report: "AuditReport") -> str:
    return json.dumps(report.to_json(), indent=2, allow_nan=False)


def _write(path: Path, text: str) -> None:
    """All of the text or nothing: a reader never sees half a file."""
    handle, temporary = tempfile.mkstemp(dir=path.absolute().parent, prefix=f".{path.name}.", text=True)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _progress() -> "Progress":
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    return Progress(
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
        console=Console(stderr=True),
        transient=True,
    )
