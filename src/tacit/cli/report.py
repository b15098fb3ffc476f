"""tacit report: every evaluation, one run of each system, the audit; one page that needs no network, and its JSON twin."""

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.output import check_different, check_json_target, write_json

if TYPE_CHECKING:
    from tacit.evaluation.effort import Effort
    from tacit.evaluation.result import Result

TITLE = "Private recommendation: what is promised, and what it is worth"


def report(
    out: Annotated[str, typer.Option("--out", metavar="FILE", help="The page to write.")] = "report.html",
    json_file: Annotated[
        str | None,
        typer.Option(
            "--json", metavar="FILE", help="Its JSON twin; by default the page's name with .json; - is standard output."
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="About five minutes: fewer trials, fewer settings.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Everything; hours.")] = False,
    systems: Annotated[
        list[str] | None, typer.Option("--system", metavar="SYSTEM", help="Only this one; repeat it for several.")
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data", metavar="SYSTEM=DATA", help="What a system is evaluated on, as in `tacit evaluate`; repeat it."
        ),
    ] = None,
    results: Annotated[
        str | None,
        typer.Option(
            metavar="DIR", help="Keep each evaluation there as soon as it is done, and take from there what was kept."
        ),
    ] = None,
    proofs: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Where the pages of proofs are, for links; by default in the checkout."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Equal seeds give equal evaluations.")] = 1,
    workers: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Processes; by default one for each processor.")
    ] = None,
) -> None:
    """Put every system to the test, and tell all of it on one page: curves, tables, claims, guarantees, audit, ledgers.

    Claims are decided by the figures and their errors; one that does not hold is a finding. Exit status 1 if the audit fails.
    """
    from tacit.evaluation import registry
    from tacit.evaluation.effort import Effort
    from tacit.evaluation.report import require_report

    if quick and full:
        raise typer.BadParameter("--quick and --full exclude each other.")
    for name in systems or ():
        registry.known(name)
    named = dict(_named(one) for one in data or ())
    require_report()
    twin = json_file or str(Path(out).with_suffix(".json"))
    check_page(out)
    check_json_target(twin)
    if json_file is None and Path(twin).exists() and not _is_twin(twin):
        raise typer.BadParameter(
            f"{twin} is there and is no report of tacit's; name another by --json.", param_hint="--out"
        )
    check_different({"--out": out, "--json": twin})
    effort = Effort.QUICK if quick else Effort.FULL if full else Effort.DEFAULT
    wanted = tuple(name for name in registry.SYSTEMS if not systems or name in systems)
    kept = None if results is None else Path(results)
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
    found = [_evaluated(name, named.get(name), effort, seed, workers, kept) for name in wanted]
    _written(out, twin, found, wanted, effort, seed, proofs)


def check_page(out: str) -> None:
    """Refuses a page that cannot be written, or that would replace something else than a report, before any work is done for it."""
    from tacit.evaluation.report.page import is_ours

    check_json_target(out, "--out")
    if out == "-":
        raise typer.BadParameter("it must name a file.", param_hint="--out")
    if Path(out).exists() and not is_ours(out):
        raise typer.BadParameter(f"{out} is there and is no report of tacit's; name another file.", param_hint="--out")


def _is_twin(path: str) -> bool:
    """Whether a file is the JSON of a report, which a newer one may replace."""
    import json

    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError:
        return False
    return isinstance(content, dict) and {"title", "made", "curves", "demonstrations"} <= content.keys()


def _named(text: str) -> tuple[str, str]:
    from tacit.evaluation import registry

    system, sign, what = text.partition("=")
    if not (sign and what):
        raise typer.BadParameter("expected SYSTEM=DATA, such as multi-selection=movielens-small.", param_hint="--data")
    registry.known(system)
    return system, what


def _evaluated(
    system: str, data: str | None, effort: "Effort", seed: int, workers: int | None, kept: Path | None
) -> "Result":
    """Evaluated now, or as it was kept: under the same name only what was asked for in the same words."""
    import json

    from tacit.cli.progress import progress
    from tacit.evaluation import registry
    from tacit.evaluation.result import Result

    words = [system, effort.value, f"seed-{seed}", *([] if data is None else [data.replace(os.sep, "_")])]
    place = None if kept is None else kept / f"{'-'.join(words)}.json"
    if place is not None and place.exists():
        return Result.from_json(json.loads(place.read_text(encoding="utf-8")))
    with progress() as told:
        found = registry.evaluate(
            system,
            data,
            effort,
            seed=seed,
            workers=workers,
            progress=lambda what, done, total: told(f"{system}: {what}", done, total),
        )
    if place is not None:
        write_json(str(place), found.to_json())
    return found


def _written(
    out: str, twin: str, found: "list[Result]", wanted: tuple[str, ...], effort: "Effort", seed: int, proofs: str | None
) -> None:
    from tacit.cli.audit import audited
    from tacit.cli.demo import demonstrated
    from tacit.evaluation.report import Report, write_html

    shown, skipped = demonstrated(None, wanted)
    made = Report(
        TITLE,
        demonstrations=shown,
        results=tuple(found),
        audit=audited(),
        seed=seed,
        effort=effort,
        command=" ".join(["tacit", *map(shlex.quote, sys.argv[1:])]),
        skipped=skipped,
    )
    write_html(made, out, proofs)
    write_json(twin, made.to_json())
    typer.echo(f"{out} and {twin} are written: open {out} in a browser.", err=True)
    if made.audit is not None and not made.audit.passed:
        raise typer.Exit(1)
