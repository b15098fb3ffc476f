"""tacit evaluate: a paper's tables and figures on data at hand, with errors, beside the paper's own, and what they decide."""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.output import check_json_target, console, write_json
from tacit.cli.progress import progress
from tacit.evaluation import registry

if TYPE_CHECKING:
    from tacit.evaluation.result import Result


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
            "movielens-100k, eicu, made-up or a folder; by default all that TACIT_DATA has. Made-up worlds are always tried. "
            "cross-domain: synthetic, amazon-movies-books, movielens-1m, movielens-100k, movielens-small (films cut in two by "
            "genre), two files of ratings joined by a comma (source,target), or a folder with two; by default synthetic worlds and "
            "all that TACIT_DATA has.",
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A minute or two: fewer trials, fewer settings.")] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Everything: more trials and auctions, all figures, private training.")
    ] = False,
    trials: Annotated[
        int | None, typer.Option(min=2, metavar="N", help="How often each method is tried (multi-selection).")
    ] = None,
    look_alikes: Annotated[
        int | None,
        typer.Option(
            min=10, metavar="N", help="At most so many users known to the server; by default 3,402 (multi-selection)."
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
            help="Processes; by default one for each processor (multi-selection, federated-prototypes).",
        ),
    ] = None,
) -> None:
    """Put a system to the test: its paper's tables and figures on the data at hand, beside the paper's own, and which claims hold.

    Claims are decided by the figures and their errors. One that does not hold is a finding, not a failure: the exit status is 0.
    """
    registry.known(system)
    if quick and full:
        raise typer.BadParameter("--quick and --full exclude each other.")
    own = {"trials": trials, "look_alikes": look_alikes}
    _refuse_others(system, {**own, "workers": workers})
    check_json_target(json_file)
    if plots is not None:
        _check_folder(plots)
    effort = "quick" if quick else "full" if full else "default"
    with progress() as told:
        result = registry.evaluate(system, data, effort, seed=seed, workers=workers, progress=told, **own)
    if json_file is not None:
        write_json(json_file, result.to_json())
    if json_file != "-":
        import_module(f"tacit.cli.{system.replace('-', '_')}_tables").print_result(console(), result)
    if plots is not None:
        _draw(result, Path(plots))


def _refuse_others(system: str, given: dict[str, int | None]) -> None:
    """An option of another system would be ignored: better said than done."""
    for option, value in given.items():
        owners = registry.having(option)
        if value is not None and system not in owners:
            hint = "--" + option.replace("_", "-")
            told = f"it belongs to {' and '.join(owners)}; {system} has no such option."
            raise typer.BadParameter(told, param_hint=hint)


def _check_folder(folder: str) -> None:
    """Before minutes of work: the extra is there, and the folder can be made."""
    from tacit.evaluation.pictures import require_matplotlib

    require_matplotlib()
    if Path(folder).exists() and not Path(folder).is_dir():
        raise typer.BadParameter("it must name a folder.", param_hint="--plots")


def _draw(result: "Result", folder: Path) -> None:
    from tacit.evaluation.pictures.drawing import draw_files

    folder.mkdir(parents=True, exist_ok=True)
    drawn = draw_files(result, registry.pictures(result.system, result), folder)
    typer.echo(f"{len(drawn)} figures in {folder}", err=True)
