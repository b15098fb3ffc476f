"""tacit evaluate: a paper's tables and figures on data at hand, with errors, beside the paper's own, and what they decide."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.output import check_json_target, console, write_json
from tacit.errors import UnknownName

if TYPE_CHECKING:
    from tacit.evaluation.result import Result

SYSTEMS = ("multi-selection",)


def evaluate(
    system: Annotated[str, typer.Argument(metavar="SYSTEM", help=f"What to evaluate: {', '.join(SYSTEMS)}.")],
    data: Annotated[
        str,
        typer.Option(
            metavar="NAME|DIR",
            help="A name from `tacit data list`, a MovieLens folder, or movielens-mix (three sets found through TACIT_DATA).",
        ),
    ] = "movielens-small",
    quick: Annotated[bool, typer.Option("--quick", help="About a minute: fewer trials, three eta.")] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Everything: all figures, private training, a second model.")
    ] = False,
    trials: Annotated[int | None, typer.Option(min=2, metavar="N", help="How often each method is tried.")] = None,
    look_alikes: Annotated[
        int | None,
        typer.Option(min=10, metavar="N", help="At most so many users known to the server; by default 3,402."),
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
        int | None, typer.Option(min=1, metavar="N", help="Processes for trials; by default one for each processor.")
    ] = None,
) -> None:
    """Put a system to the test: its paper's tables and figures on the data at hand, beside the paper's own, and which claims hold.

    Claims are decided by the figures and their errors. One that does not hold is a finding, not a failure: the exit status is 0.
    """
    if system not in SYSTEMS:
        raise UnknownName(f"no system {system!r} can be evaluated; known: {', '.join(SYSTEMS)}.")
    if quick and full:
        raise typer.BadParameter("--quick and --full exclude each other.")
    check_json_target(json_file)
    if plots is not None:
        _check_folder(plots)
    from tacit.cli.multi_selection_tables import print_result
    from tacit.evaluation.multi_selection import Effort
    from tacit.evaluation.multi_selection import evaluate as evaluated

    effort = Effort.QUICK if quick else Effort.FULL if full else Effort.DEFAULT
    with _progress() as told:
        result = evaluated(
            data,
            effort,
            trials=trials,
            **({} if look_alikes is None else {"look_alikes": look_alikes}),
            seed=seed,
            workers=workers or os.cpu_count() or 1,
            progress=told,
        )
    if json_file is not None:
        write_json(json_file, result.to_json())
    if json_file != "-":
        print_result(console(), result)
    if plots is not None:
        _draw(result, plots)


def _draw(result: "Result", folder: str) -> None:
    from tacit.evaluation.multi_selection.plots import draw

    Path(folder).mkdir(parents=True, exist_ok=True)
    drawn = draw(result, Path(folder))
    typer.echo(f"{len(drawn)} figures in {folder}", err=True)


def _check_folder(folder: str) -> None:
    """Before minutes of work: the extra is there, and the folder can be made."""
    from tacit.evaluation.multi_selection.plots import require_matplotlib

    require_matplotlib()
    if Path(folder).exists() and not Path(folder).is_dir():
        raise typer.BadParameter("it must name a folder.", param_hint="--plots")


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """A bar on standard error, one task at a time; nothing where that is no terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    bars = console(stderr=True)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=bars,
        transient=True,
        disable=not bars.is_terminal,
    ) as bar:
        task = bar.add_task("reading", total=None)
        yield lambda what, done, total: bar.update(task, description=what, completed=done, total=total)
