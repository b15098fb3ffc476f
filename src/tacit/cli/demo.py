"""``tacit demo``: the five systems end to end on real ratings, the audit, one table, one page."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.output import STANDARD_OUTPUT, check_different, check_json_target, write_json
from tacit.cli.output import console as open_console

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
        typer.Option("--json", help="Also write what was shown as JSON; - is standard output.", metavar="FILE"),
    ] = None,
) -> None:
    """All five systems end to end on real ratings: what left, what is promised, and what that is worth.

    Then every claim is audited. It takes some minutes. Exit status 1 if a claim fails or a broken twin escapes.
    """
    from tacit.cli import demo_tables as tables
    from tacit.cli.demo_closing import print_closing
    from tacit.cli.demo_steps import AUDIT, steps
    from tacit.evaluation.demonstration.all import SYSTEMS, demonstrations

    check_json_target(json_file)
    unwritten = "" if no_report else _check_page(out, json_file)
    console = open_console(stderr=json_file == STANDARD_OUTPUT)
    ratings = _load(data)
    tables.print_data(console, ratings)
    found: list[Demonstration | Skipped] = []
    with steps(console, (*SYSTEMS, AUDIT)) as told:
        for one in demonstrations(ratings, told):
            found.append(one)
            tables.print_one(console, len(found), one)
        audit = _audited(told)
    tables.print_audit(console, audit)
    print_closing(console, found)
    if json_file is not None:
        write_json(json_file, _content(ratings, found, audit))
    if not (no_report or unwritten):
        _write_page(out, found, audit)
    tables.print_next(console, None if no_report else out, unwritten)
    if not audit.passed:
        raise typer.Exit(1)


def demonstrated(data: str | None, systems: Collection[str]) -> "tuple[tuple[Demonstration, ...], dict[str, str]]":
    """One run of each of these systems, with a progress bar on standard error; and why others of them are not shown."""
    from tacit.cli.demo_steps import steps
    from tacit.evaluation.demonstration.all import demonstrations

    with steps(open_console(stderr=True), tuple(systems)) as told:
        return _parted(list(demonstrations(_load(data), told, systems)))


def _check_page(out: str, json_file: str | None) -> str:
    """Refuses a page that cannot be written before any work is done for it; why there will be none where the extra is missing."""
    from tacit.cli.report import check_page
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
        return load_ratings("synthetic")  # the world that needs nothing


def _audited(told: Any) -> "AuditReport":
    from tacit.audit import suite
    from tacit.cli.demo_steps import AUDIT

    told(AUDIT, "every claim, and every broken twin")
    return suite.run(None, progress=lambda done, total, name: told(AUDIT, f"{name} ({done} of {total})"))


def _parted(
    found: "list[Demonstration | Skipped]",
) -> "tuple[tuple[Demonstration, ...], dict[str, str]]":
    from tacit.evaluation.demonstration.demonstration import Demonstration, Skipped

    shown = tuple(one for one in found if isinstance(one, Demonstration))
    return shown, {one.system: one.reason for one in found if isinstance(one, Skipped)}


def _content(ratings: "Ratings", found: "list[Demonstration | Skipped]", audit: "AuditReport") -> dict[str, Any]:
    from tacit.evaluation.demonstration.all import SEEDS
    from tacit.evaluation.result import versions_of

    shown, skipped = _parted(found)
    return {
        "data": ratings.describe().as_dict(),
        "demonstrations": [one.to_json() for one in shown],
        "skipped": skipped,
        "audit": audit.to_json(),
        "versions": versions_of("scipy", "jax"),
        "seeds": SEEDS,
    }


def _write_page(out: str, found: "list[Demonstration | Skipped]", audit: "AuditReport") -> None:
    import shlex
    import sys

    from tacit.evaluation.report import Report, write_html

    shown, skipped = _parted(found)
    command = " ".join(["tacit", *map(shlex.quote, sys.argv[1:])])
    write_html(Report(TITLE, demonstrations=shown, audit=audit, command=command, skipped=skipped), out)
