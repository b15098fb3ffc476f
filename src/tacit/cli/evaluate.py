"""``tacit evaluate`` evaluates one system: tables, figures and claims. ``tacit report`` evaluates all and runs the audit,
for one page and its JSON."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.output import check_different, check_json_target, check_page, command_line, console, progress, write_json
from tacit.evaluation import registry

if TYPE_CHECKING:
    from tacit.evaluation.effort import Effort
    from tacit.evaluation.result import Result

TITLE = "Private recommendation: guarantees, and how useful the results are"


def evaluate(
    system: Annotated[str, typer.Argument(metavar="SYSTEM", help=f"What to evaluate: {', '.join(registry.SYSTEMS)}.")],
    data: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|DIR|FILE,FILE",
            help="multi-selection: a name from `tacit data list`, a MovieLens folder, or movielens-mix (three sets found through "
            "TACIT_DATA); by default movielens-small. private-selection: display, search, trained, movielens-100k, open-bandit or "
            "all, which is the default. private-slates: movielens-1m, movielens-100k, movielens-small or a folder; by "
            "default movielens-1m if TACIT_DATA has it, otherwise movielens-small. federated-prototypes: movielens-1m, "
            "movielens-100k, eicu, made-up or a folder; by default all that TACIT_DATA has, and always synthetic worlds. "
            "cross-domain: synthetic, amazon-movies-books, movielens-1m, movielens-100k, movielens-small (films divided by "
            "genre), two files of ratings joined by a comma (source,target), or a folder with two; by default synthetic worlds and "
            "all that TACIT_DATA has.",
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A minute or two: fewer trials, fewer settings.")] = False,
    full: Annotated[
        bool, typer.Option("--full", help="All figures, with more trials and auctions and private training; hours.")
    ] = False,
    trials: Annotated[
        int | None, typer.Option(min=2, metavar="N", help="The number of trials of each method (multi-selection).")
    ] = None,
    look_alikes: Annotated[
        int | None,
        typer.Option(
            min=10,
            metavar="N",
            help="The largest number of users that the server knows; by default 3,402 (multi-selection).",
        ),
    ] = None,
    json_file: Annotated[
        str | None,
        typer.Option("--json", metavar="FILE", help="Write the result as JSON to FILE; - is standard output."),
    ] = None,
    plots: Annotated[
        str | None, typer.Option(metavar="DIR", help="Draw the figures as PNG files into DIR (extra `report`).")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Equal seeds give equal figures.")] = 1,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="The number of processes; by default one for each processor (multi-selection, federated-prototypes).",
        ),
    ] = None,
) -> None:
    """Evaluate a system: reproduce the tables and figures of its paper on your data, and decide which claims hold.

    The figures and their errors decide. A claim that does not hold is a result, not a failure: the exit status is 0.
    """
    registry.known(system)
    if quick and full:
        raise typer.BadParameter("--quick and --full exclude each other.")
    options = {"trials": trials, "look_alikes": look_alikes}
    _check_options(system, {**options, "workers": workers})
    check_json_target(json_file)
    if plots is not None:
        _check_folder(plots)
    effort = "quick" if quick else "full" if full else "default"
    with progress() as show:
        result = registry.evaluate(system, data, effort, seed=seed, workers=workers, progress=show, **options)
    if json_file is not None:
        write_json(json_file, result.to_json())
    if json_file != "-":
        from tacit.cli.results import print_result

        print_result(console(), result)
    if plots is not None:
        _draw(result, Path(plots))


def _check_options(system: str, options: dict[str, int | None]) -> None:
    """Raises BadParameter for an option of another system, which would be ignored."""
    for option, value in options.items():
        owners = registry.having(option)
        if value is not None and system not in owners:
            raise typer.BadParameter(
                f"it belongs to {' and '.join(owners)}; {system} has no such option.",
                param_hint="--" + option.replace("_", "-"),
            )


def _check_folder(folder: str) -> None:
    """Checks, before minutes of work, that matplotlib is installed and the folder can be created."""
    from tacit.evaluation.pictures import require_matplotlib

    require_matplotlib()
    if Path(folder).exists() and not Path(folder).is_dir():
        raise typer.BadParameter("it must name a folder.", param_hint="--plots")


def _draw(result: "Result", folder: Path) -> None:
    from tacit.evaluation.pictures.drawing import draw_files

    folder.mkdir(parents=True, exist_ok=True)
    files = draw_files(result, registry.pictures(result.system, result), folder)
    typer.echo(f"Drew {len(files)} figures in {folder}.", err=True)


def report(
    out: Annotated[str, typer.Option("--out", metavar="FILE", help="The page to write.")] = "report.html",
    json_file: Annotated[
        str | None,
        typer.Option(
            "--json",
            metavar="FILE",
            help="The file for the JSON; by default the page's name with .json; - is standard output.",
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="About five minutes: fewer trials, fewer settings.")] = False,
    full: Annotated[bool, typer.Option("--full", help="All figures, with more trials; hours.")] = False,
    systems: Annotated[
        list[str] | None,
        typer.Option("--system", metavar="SYSTEM", help="Only this system; repeat the option for several."),
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data",
            metavar="SYSTEM=DATA",
            help="The data for a system, as in `tacit evaluate`; repeat the option for several.",
        ),
    ] = None,
    results: Annotated[
        str | None,
        typer.Option(
            metavar="DIR", help="Keep each finished evaluation in this folder, and reuse those that are already there."
        ),
    ] = None,
    proofs: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="The address of the proof pages, for links; by default the checkout."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Equal seeds give equal evaluations.")] = 1,
    workers: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="The number of processes; by default one for each processor.")
    ] = None,
) -> None:
    """Evaluate every system and put all results on one page: curves, tables, claims, guarantees, audit, ledgers.

    The figures and their errors decide the claims. A claim that does not hold is a result, not a failure: the exit status is
    1 only if the audit fails.
    """
    from tacit.evaluation.effort import Effort
    from tacit.evaluation.report import require_report

    if quick and full:
        raise typer.BadParameter("--quick and --full exclude each other.")
    for name in systems or ():
        registry.known(name)
    data_of = dict(_system_and_data(text) for text in data or ())
    require_report()
    json_target = json_file or str(Path(out).with_suffix(".json"))
    check_page(out)
    check_json_target(json_target)
    if json_file is None and Path(json_target).exists() and not _is_report_json(json_target):
        raise typer.BadParameter(
            f"{json_target} exists and is not a report of tacit; name another file with --json.", param_hint="--out"
        )
    check_different({"--out": out, "--json": json_target})
    effort = Effort.QUICK if quick else Effort.FULL if full else Effort.DEFAULT
    selected = tuple(name for name in registry.SYSTEMS if not systems or name in systems)
    folder = None if results is None else Path(results)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    evaluations = [_evaluate(name, data_of.get(name), effort, seed, workers, folder) for name in selected]
    _write_report(out, json_target, evaluations, selected, effort, seed, proofs)


def _is_report_json(path: str) -> bool:
    """Whether a file is the JSON of a report, which a newer one may replace."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError:
        return False
    return isinstance(content, dict) and {"title", "made", "curves", "demonstrations"} <= content.keys()


def _system_and_data(text: str) -> tuple[str, str]:
    system, sign, data = text.partition("=")
    if not (sign and data):
        raise typer.BadParameter("expected SYSTEM=DATA, such as multi-selection=movielens-small.", param_hint="--data")
    registry.known(system)
    return system, data


def _evaluate(
    system: str, data: str | None, effort: "Effort", seed: int, workers: int | None, folder: Path | None
) -> "Result":
    """Evaluates a system, or reads the result of the same system, effort, seed and data from ``folder``."""
    from tacit.evaluation.result import Result

    words = [system, effort.value, f"seed-{seed}", *([] if data is None else [data.replace(os.sep, "_")])]
    file = None if folder is None else folder / f"{'-'.join(words)}.json"
    if file is not None and file.exists():
        return Result.from_json(json.loads(file.read_text(encoding="utf-8")))
    with progress() as show:
        result = registry.evaluate(
            system,
            data,
            effort,
            seed=seed,
            workers=workers,
            progress=lambda step, done, total: show(f"{system}: {step}", done, total),
        )
    if file is not None:
        write_json(str(file), result.to_json())
    return result


def _write_report(
    out: str,
    json_target: str,
    evaluations: "list[Result]",
    systems: tuple[str, ...],
    effort: "Effort",
    seed: int,
    proofs: str | None,
) -> None:
    from tacit.cli.audit import run_audit
    from tacit.cli.demo import demonstrate
    from tacit.evaluation.report import Report, write_html

    demonstrations, skipped = demonstrate(None, systems)
    report = Report(
        TITLE,
        demonstrations=demonstrations,
        results=tuple(evaluations),
        audit=run_audit(),
        seed=seed,
        effort=effort,
        command=command_line(),
        skipped=skipped,
    )
    write_html(report, out, proofs)
    write_json(json_target, report.to_json())
    typer.echo(f"Wrote {out} and {json_target}. Open {out} in a browser.", err=True)
    if report.audit is not None and not report.audit.passed:
        raise typer.Exit(1)
