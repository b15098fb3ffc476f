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
    from tacit.evaluation.effort import Effort
    from tacit.evaluation.result import Result

MULTI, PRIVATE, SLATES, FEDERATED = "multi-selection", "private-selection", "private-slates", "federated-prototypes"
CROSS = "cross-domain"
SYSTEMS = (MULTI, PRIVATE, SLATES, FEDERATED, CROSS)


def evaluate(
    system: Annotated[str, typer.Argument(metavar="SYSTEM", help=f"What to evaluate: {', '.join(SYSTEMS)}.")],
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
    if system not in SYSTEMS:
        raise UnknownName(f"no system {system!r} can be evaluated; known: {', '.join(SYSTEMS)}.")
    if quick and full:
        raise typer.BadParameter("--quick and --full exclude each other.")
    if system != MULTI:
        _refuse(system, {"--trials": trials, "--look-alikes": look_alikes})
        if system != FEDERATED:
            _refuse(system, {"--workers": workers})
    check_json_target(json_file)
    if plots is not None:
        _check_folder(plots)
    from tacit.evaluation.effort import Effort

    effort = Effort.QUICK if quick else Effort.FULL if full else Effort.DEFAULT
    if system == PRIVATE:
        from tacit.cli.private_selection_tables import print_result as print_private
        from tacit.evaluation.private_selection import evaluate as private_selection
        from tacit.evaluation.private_selection.plots import draw as draw_private

        with _progress() as told:
            result = private_selection(data or "all", effort, seed=seed, progress=told)
        _tell(result, print_private, draw_private, json_file, plots)
        return
    if system == SLATES:
        from tacit.cli.private_slates_tables import print_result as print_slates
        from tacit.evaluation.private_slates import evaluate as private_slates
        from tacit.evaluation.private_slates.plots import draw as draw_slates

        with _progress() as told:
            result = private_slates(data, effort, seed=seed, progress=told)
        _tell(result, print_slates, draw_slates, json_file, plots)
        return
    if system == FEDERATED:
        from tacit.cli.federated_prototypes_tables import print_result as print_federated
        from tacit.evaluation.federated_prototypes import evaluate as federated
        from tacit.evaluation.federated_prototypes.plots import draw as draw_federated

        with _progress() as told:
            result = federated(data, effort, seed=seed, workers=workers or os.cpu_count() or 1, progress=told)
        _tell(result, print_federated, draw_federated, json_file, plots)
        return
    if system == CROSS:
        from tacit.cli.cross_domain_tables import print_result as print_cross
        from tacit.evaluation.cross_domain import evaluate as cross_domain
        from tacit.evaluation.cross_domain.plots import draw as draw_cross

        with _progress() as told:
            result = cross_domain(data, effort, seed=seed, progress=told)
        _tell(result, print_cross, draw_cross, json_file, plots)
        return
    from tacit.cli.multi_selection_tables import print_result as print_multi
    from tacit.evaluation.multi_selection.plots import draw as draw_multi

    result = _multi_selection(data or "movielens-small", effort, trials, look_alikes, seed, workers)
    _tell(result, print_multi, draw_multi, json_file, plots)


def _multi_selection(
    data: str, effort: "Effort", trials: int | None, look_alikes: int | None, seed: int, workers: int | None
) -> "Result":
    from tacit.evaluation.multi_selection import evaluate as multi_selection

    with _progress() as told:
        return multi_selection(
            data,
            effort,
            trials=trials,
            **({} if look_alikes is None else {"look_alikes": look_alikes}),
            seed=seed,
            workers=workers or os.cpu_count() or 1,
            progress=told,
        )


def _tell(
    result: "Result",
    show: Callable[..., None],
    draw: Callable[["Result", Path], list[Path]],
    json_file: str | None,
    plots: str | None,
) -> None:
    if json_file is not None:
        write_json(json_file, result.to_json())
    if json_file != "-":
        show(console(), result)
    if plots is not None:
        Path(plots).mkdir(parents=True, exist_ok=True)
        drawn = draw(result, Path(plots))
        typer.echo(f"{len(drawn)} figures in {plots}", err=True)


def _refuse(system: str, given: dict[str, int | None]) -> None:
    """An option of another system would be ignored: better said than done."""
    for option, value in given.items():
        if value is not None:
            raise typer.BadParameter(f"it belongs to {MULTI}; {system} has no such option.", param_hint=option)


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
