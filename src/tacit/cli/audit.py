"""``tacit audit``: compares what every mechanism claims with what it loses, and checks that every broken twin is
caught."""

from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.output import check_json_target, console, progress_bar, write_json

if TYPE_CHECKING:
    from tacit.audit import AuditReport, Finding


def audit(
    mechanisms: Annotated[
        list[str] | None,
        typer.Argument(metavar="MECHANISM", help="Names of mechanisms, as in the table; by default all."),
    ] = None,
    json_file: Annotated[
        str | None,
        typer.Option("--json", metavar="FILE", help="Write the findings as JSON to FILE; - is standard output."),
    ] = None,
) -> None:
    """Compare the loss that every mechanism claims with the loss that is found, and catch mechanisms that were broken on purpose.

    The audit enumerates small domains, tests samplers against their laws, and bounds the loss of whole releases from below.

    An audit can refute a claim; it never proves one. The exit status is 1 if a claim fails or a twin escapes.
    """
    from tacit.audit import suite

    suite.selected(mechanisms)  # raises on a wrong name before any work
    check_json_target(json_file)
    report = run_audit(mechanisms)
    if json_file is None:
        _show(report)
    else:
        write_json(json_file, report.to_json())
    if not report.passed:
        raise typer.Exit(1)


def run_audit(mechanisms: list[str] | None = None) -> "AuditReport":
    """Audits the named mechanisms, or all, with a progress bar on standard error."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn

    from tacit.audit import suite

    with progress_bar(BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}")) as bar:
        task = bar.add_task("", total=None)
        return suite.run(
            mechanisms,
            progress=lambda done, total, name: bar.update(task, completed=done, total=total, description=name),
        )


def _show(report: "AuditReport") -> None:
    from rich.table import Table

    terminal = console()
    table = Table(title="Mechanisms", title_justify="left")
    for column in ("mechanism", "case", "claim", "by", "loss", "slack", "verdict"):
        table.add_column(
            column,
            justify="right" if column in ("loss", "slack") else "left",
            overflow="fold",
            no_wrap=column in ("mechanism", "by", "loss", "slack"),
        )
    previous = ""
    for finding in report.mechanisms:
        if previous and finding.name != previous:
            table.add_section()
        verdict = "[green]holds[/]" + _tightness(finding) if finding.holds else "[bold red]FAILS[/]"
        loss = f"{'>= ' if finding.by == 'empirical' else ''}{finding.loss:.6g}"
        slack = "" if finding.by != "exact" else "0" if finding.tight else f"{finding.slack:.3g}"
        name = finding.name if finding.name != previous else ""
        table.add_row(name, finding.case, _claim(finding), finding.by.value, loss, slack, verdict)
        previous = finding.name
    terminal.print(table)
    twins = Table(title="Broken twins", title_justify="left")
    for column in ("twin", "of", "fault", "claim", "by", "loss", "verdict"):
        twins.add_column(
            column,
            justify="right" if column == "loss" else "left",
            overflow="fold",
            no_wrap=column in ("of", "by", "loss"),
        )
    for twin in report.twins:
        verdict = "[green]caught[/]" if twin.caught else "[bold red]ESCAPED[/]"
        loss = f"{'>= ' if twin.finding.by == 'empirical' else ''}{twin.finding.loss:.4g}"
        twins.add_row(twin.name, twin.of, twin.fault, _claim(twin.finding), twin.finding.by.value, loss, verdict)
    terminal.print(twins)
    holding, caught = sum(claim.holds for claim in report.mechanisms), sum(twin.caught for twin in report.twins)
    terminal.print(
        f"{holding} of {len(report.mechanisms)} claims hold, {caught} of {len(report.twins)} broken twins are caught."
        " An audit can refute a claim; it never proves one."
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
