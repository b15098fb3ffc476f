"""``tacit fit``: from ratings to a store, the one file that a server needs."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.output import check_different, check_json_target, console

if TYPE_CHECKING:
    from rich.progress import Progress

    from tacit.curator import PrivateTraining

DELTA = 1e-6
EPOCHS = 10


class Model(StrEnum):
    network = "network"
    two_tower = "two-tower"
    factors = "factors"


def fit(
    out: Annotated[Path, typer.Option(help="The file to write.", dir_okay=False, metavar="FILE")],
    data: Annotated[
        str, typer.Argument(help="Ratings: a name from `tacit data list`, or a file or folder.", metavar="NAME|PATH")
    ] = "movielens-small",
    model: Annotated[
        Model, typer.Option(help="Networks learn from genres, factors from who rated what.")
    ] = Model.network,
    rows: Annotated[int | None, typer.Option(help="Train on so many random ratings; by default on all.", min=1)] = None,
    epochs: Annotated[
        int | None, typer.Option(help=f"Passes of a network over them; by default {EPOCHS}.", min=1)
    ] = None,
    least: Annotated[int, typer.Option(help="Users with at least so many ratings become look-alikes.", min=1)] = 20,
    epsilon: Annotated[
        float | None, typer.Option(help="Train the network privately: one user's rows are protected at this epsilon.")
    ] = None,
    delta: Annotated[float | None, typer.Option(help=f"The delta beside it; by default {DELTA:g}.")] = None,
    seed: Annotated[int, typer.Option(help="Of all that is random and not private.", min=0)] = 1,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
) -> None:
    """Fit a model to ratings and write a store: catalogue, scorer and look-alikes, with what each of them promises.

    Look-alikes are features of real users: they must be public or consenting, also where the network is trained privately.
    """
    import numpy as np

    from tacit.curator import fit as fitted
    from tacit.curator.training.architectures import require
    from tacit.data import load_ratings

    private = _private(epsilon, delta, epochs)
    check_json_target(str(out), "--out")
    check_different({"the data": data, "--out": out})
    if out.exists() and not force:
        raise typer.BadParameter(f"{out} is there already; --force replaces it.", param_hint="--out")
    if model is not Model.factors:
        require("jax", "optax", *(() if private is None else ("jax_privacy",)))  # said now, not after reading the data
    with _progress() as bar:
        task = bar.add_task(f"reading {data}", total=None)
        ratings = load_ratings(data)
        bar.update(task, description=f"fitting {model.value} to {len(ratings):,} ratings")
        store = fitted(
            ratings,
            model=model.value,
            least=least,
            rows=rows,
            epochs=EPOCHS if epochs is None else epochs,
            private=private,
            rng=np.random.default_rng(seed),
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
        store.save(out)
    typer.echo(f"{store}\nwritten to {out} ({out.stat().st_size / 1e6:.1f} MB)")


def _private(epsilon: float | None, delta: float | None, epochs: int | None) -> "PrivateTraining | None":
    from tacit.checks import positive, probability
    from tacit.curator import PrivateTraining

    if epsilon is None:
        if delta is not None:
            raise typer.BadParameter("it belongs to private training: give --epsilon too.", param_hint="--delta")
        return None
    if epochs is not None:
        raise typer.BadParameter("private training counts steps, not epochs: leave it out.", param_hint="--epochs")
    return PrivateTraining(positive("epsilon", epsilon), probability("delta", DELTA if delta is None else delta))


def _progress() -> "Progress":
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    bars = console(stderr=True)
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=bars,
        transient=True,
        disable=not bars.is_terminal,  # a log has no use for it
    )
