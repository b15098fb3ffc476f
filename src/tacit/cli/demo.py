"""``tacit demo``: the five systems end to end on real ratings, the audit, one table, one page."""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.output import (
    AUDIT,
    STANDARD_OUTPUT,
    check_different,
    check_json_target,
    check_page,
    command_line,
    console,
    steps,
    write_json,
)

if TYPE_CHECKING:
    from tacit.audit import AuditReport
    from tacit.data import Ratings
    from tacit.evaluation.demonstration.demonstration import Demonstration, Skipped

TITLE = "tacit demo: five systems, end to end"


def demo(
    data: Annotated[
        str | None, typer.Option(help="Ratings by name or path; by default movielens-small, else synthetic.")
    ] = None,
    out: Annotated[
        str, typer.Option("--out", metavar="FILE", help="The page to write (extra `report`).")
    ] = "report.html",
    no_report: Annotated[bool, typer.Option("--no-report", help="Write no page.")] = False,
    json_file: Annotated[
        str | None,
        typer.Option("--json", help="Also write all results as JSON; - is standard output.", metavar="FILE"),
    ] = None,
) -> None:
    """Run all five systems on real ratings: what left each party, what is promised, and how useful the result is.

    It then audits every claim. It takes some minutes. The exit status is 1 if a claim fails or a broken twin escapes.
    """
    from tacit.cli.demo_tables import print_audit, print_closing, print_data, print_demonstration, print_next
    from tacit.evaluation.demonstration.all import SYSTEMS, demonstrations
    from tacit.evaluation.report import Report, write_html

    check_json_target(json_file)
    missing = "" if no_report else _check_page(out, json_file)
    results = console(stderr=json_file == STANDARD_OUTPUT)
    ratings = _load(data)
    print_data(results, ratings)
    runs: list[Demonstration | Skipped] = []
    with steps(results, (*SYSTEMS, AUDIT)) as show:
        for run in demonstrations(ratings, show):
            runs.append(run)
            print_demonstration(results, len(runs), run)
        audit = _run_audit(show)
    print_audit(results, audit)
    print_closing(results, runs)
    shown, skipped = _split(runs)
    if json_file is not None:
        write_json(json_file, _content(ratings, shown, skipped, audit))
    if not (no_report or missing):
        write_html(Report(TITLE, demonstrations=shown, audit=audit, command=command_line(), skipped=skipped), out)
    print_next(results, None if no_report else out, missing)
    if not audit.passed:
        raise typer.Exit(1)


def demonstrate(data: str | None, systems: Collection[str]) -> "tuple[tuple[Demonstration, ...], dict[str, str]]":
    """Runs each of these systems once, with a progress bar on standard error. Returns the results, and the reason for each
    skipped system."""
    from tacit.evaluation.demonstration.all import demonstrations

    with steps(console(stderr=True), tuple(systems)) as show:
        return _split(list(demonstrations(_load(data), show, systems)))


def _check_page(out: str, json_file: str | None) -> str:
    """Checks the page before any work. If the extra `report` is missing, no page can be written; returns that reason."""
    from tacit.errors import MissingExtra
    from tacit.evaluation.report import require_report

    check_page(out)
    check_different({"--out": out, "--json": json_file})
    try:
        require_report()
    except MissingExtra as missing:
        return str(missing)
    return ""


def _load(data: str | None) -> "Ratings":
    from tacit.data import load_ratings
    from tacit.errors import MissingExtra

    try:
        return load_ratings(data or "movielens-small")
    except MissingExtra:
        if data is not None:
            raise
        return load_ratings("synthetic")  # needs no extra


def _run_audit(show: Callable[[str, str], None]) -> "AuditReport":
    from tacit.audit import suite

    show(AUDIT, "every claim and every broken twin")
    return suite.run(None, progress=lambda done, total, name: show(AUDIT, f"{name} ({done} of {total})"))


def _split(runs: "list[Demonstration | Skipped]") -> "tuple[tuple[Demonstration, ...], dict[str, str]]":
    from tacit.evaluation.demonstration.demonstration import Demonstration, Skipped

    shown = tuple(run for run in runs if isinstance(run, Demonstration))
    return shown, {run.system: run.reason for run in runs if isinstance(run, Skipped)}


def _content(
    ratings: "Ratings", shown: "tuple[Demonstration, ...]", skipped: dict[str, str], audit: "AuditReport"
) -> dict[str, Any]:
    from tacit.evaluation.demonstration.all import SEEDS
    from tacit.evaluation.result import versions_of

    return {
        "data": ratings.describe().as_dict(),
        "demonstrations": [run.to_json() for run in shown],
        "skipped": skipped,
        "audit": audit.to_json(),
        "versions": versions_of("scipy", "jax"),
        "seeds": SEEDS,
    }
