"""``tacit fit``: from ratings to a store, the one file that a server needs; or to a new version of what a service
serves."""

from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.output import check_different, check_json_target, console
from tacit.errors import MissingExtra

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.progress import Progress

    from tacit.curator import PrivateTraining
    from tacit.data import Ratings
    from tacit.messages.private_slates import Popularity
    from tacit.messages.store import Store

DELTA = 1e-6
EPOCHS = 10
_LEAST_SLATES, _MOST_SLATES = 1e-3, 100.0


class Model(StrEnum):
    network = "network"
    two_tower = "two-tower"
    factors = "factors"


def fit(
    out: Annotated[Path | None, typer.Option(help="Write one file, a store.", dir_okay=False, metavar="FILE")] = None,
    models: Annotated[
        Path | None,
        typer.Option(help="Publish a new version here instead, for `tacit serve`.", file_okay=False, metavar="FOLDER"),
    ] = None,
    slates: Annotated[
        list[float] | None,
        typer.Option(
            help="Also release counts for slates at this epsilon, with --models; repeat it.", metavar="EPSILON"
        ),
    ] = None,
    ledger: Annotated[
        str | None,
        typer.Option(
            help="The curator's ledger, which these releases are charged to: `tacit ledger init` makes one.",
            metavar="TARGET",
            envvar="TACIT_SERVE_LEDGER",
        ),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            help="The epsilon that these users are promised for good, agreed with the first release; by default what that takes.",
            metavar="EPSILON",
            min=0.0,
        ),
    ] = None,
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

    Look-alikes are features of real users: they must be public or consenting, also where the network is trained
    privately.
    """
    import numpy as np

    from tacit.curator import fit as fitted
    from tacit.curator.training import require
    from tacit.data import load_ratings

    private = _private(epsilon, delta, epochs)
    _check_targets(data, out, models, slates, ledger, budget, force)
    if model is not Model.factors:
        require("jax", "optax", *(() if private is None else ("jax_privacy",)))  # said now, not after reading the data
    with _progress() as bar:
        task = bar.add_task(f"reading {data}", total=None)
        ratings = load_ratings(data)
        releases = _released(ratings, slates, ledger, budget) if slates and ledger else {}
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
        if out is not None:
            store.save(out)
            done = f"written to {out} ({out.stat().st_size / 1e6:.1f} MB)"
        else:
            bar.update(task, description="publishing", completed=0, total=None)
            done = _publish(models or Path(), store, ratings, releases)
    typer.echo(f"{store}\n{done}")


def _check_targets(
    data: str,
    out: Path | None,
    models: Path | None,
    slates: list[float] | None,
    ledger: str | None,
    budget: float | None,
    force: bool,
) -> None:
    if (out is None) == (models is None):
        raise typer.BadParameter("say --out FILE for one store, or --models FOLDER to publish for `tacit serve`.")
    if slates and (models is None or ledger is None):
        raise typer.BadParameter(
            "counts are published, and charged: give --models and --ledger.", param_hint="--slates"
        )
    if not all(_LEAST_SLATES <= epsilon <= _MOST_SLATES for epsilon in slates or ()):
        raise typer.BadParameter(f"an epsilon from {_LEAST_SLATES:g} to {_MOST_SLATES:g}.", param_hint="--slates")
    if len({f"{epsilon:g}" for epsilon in slates or ()}) < len(slates or ()):
        raise typer.BadParameter("each epsilon once, with at most six digits.", param_hint="--slates")
    if slates and budget is not None and (taken := _taken(slates)) > Decimal(str(budget)):
        raise typer.BadParameter(  # it would be agreed for good, and could never hold them
            f"these --slates take {taken.normalize():f} together. Agree as much or more, or release fewer.",
            param_hint="--budget",
        )
    if slates and ledger is not None:
        _require_ledger(ledger)
    if out is None:
        return
    check_json_target(str(out), "--out")
    check_different({"the data": data, "--out": out})
    if out.exists() and not force:
        raise typer.BadParameter(f"{out} is there already; --force replaces it.", param_hint="--out")


def _require_ledger(ledger: str) -> None:
    """Said now, not after reading the data; and never made by the way: a ledger that was lost must not look like a
    fresh budget."""
    from tacit.ledger import PrivacyLedger

    PrivacyLedger.open(ledger).close()


def _released(ratings: "Ratings", slates: list[float], ledger: str, budget: float | None) -> "dict[str, Popularity]":
    """Counts for slates, charged to the curator's ledger, which is there already; asked for again they are the same.

    Before anything is fitted: what the budget does not allow is told soon, and where it does not allow all of them none
    is charged, unless others take what is left meanwhile: those before that stay charged then, and are kept.
    """
    from tacit.curator import Curator
    from tacit.errors import Conflict
    from tacit.ledger import Budget, PrivacyLedger

    with PrivacyLedger.open(ledger) as opened:
        try:
            agreed = float(_taken(slates)) if budget is None else budget
            curator = Curator(ratings, ledger=opened, budget=Budget(epsilon=agreed))
        except Conflict:
            if budget is not None:
                raise
            curator = Curator(ratings, ledger=opened)  # under the terms that were agreed before
        epsilons = sorted(slates)
        counts = curator.popularities(epsilons)
        return {f"counts-{epsilon:g}": released for epsilon, released in zip(epsilons, counts, strict=True)}


def _taken(slates: list[float]) -> Decimal:
    """The epsilon that all of them take together: a sum of floats may fall short of what is charged."""
    return sum((Decimal(str(epsilon)) for epsilon in slates), Decimal(0))


def _publish(models: Path, store: "Store", ratings: "Ratings", releases: "Mapping[str, Popularity]") -> str:
    """A new version."""
    try:
        from tacit.service.versions import publish
    except ImportError:
        raise MissingExtra("publishing needs more packages: pip install 'tacit[service]'.") from None
    version = publish(models, store, feature_names=ratings.catalogue.vocabulary, releases=releases)
    return f"published as version {version.name} in {models}"


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
