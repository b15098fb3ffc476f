"""``tacit fit``: fits a model to ratings, and writes a store for a server or publishes a new version for a service."""

from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.output import check_different, check_json_target, progress_bar
from tacit.errors import MissingExtra

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    out: Annotated[Path | None, typer.Option(help="The file for the store.", dir_okay=False, metavar="FILE")] = None,
    models: Annotated[
        Path | None,
        typer.Option(
            help="Instead of --out: publish a new version in this folder, for `tacit serve`.",
            file_okay=False,
            metavar="FOLDER",
        ),
    ] = None,
    slates: Annotated[
        list[float] | None,
        typer.Option(
            help="With --models: also release counts for slates at this epsilon; repeat the option for several.",
            metavar="EPSILON",
        ),
    ] = None,
    ledger: Annotated[
        str | None,
        typer.Option(
            help="With --slates: the curator's ledger, which is charged. `tacit ledger init` creates one.",
            metavar="TARGET",
            envvar="TACIT_SERVE_LEDGER",
        ),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            help="The lifetime budget of these users, agreed with the first release; by default the sum of --slates.",
            metavar="EPSILON",
            min=0.0,
        ),
    ] = None,
    data: Annotated[
        str, typer.Argument(help="Ratings: a name from `tacit data list`, or a file or folder.", metavar="NAME|PATH")
    ] = "movielens-small",
    model: Annotated[
        Model, typer.Option(help="Networks learn from genres, factors from the pattern of ratings.")
    ] = Model.network,
    rows: Annotated[
        int | None, typer.Option(help="The number of random ratings to train on; by default all.", min=1)
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(help=f"The passes of a network over the ratings; by default {EPOCHS}.", min=1)
    ] = None,
    least: Annotated[int, typer.Option(help="The fewest ratings that make a user a look-alike.", min=1)] = 20,
    epsilon: Annotated[
        float | None, typer.Option(help="Train the network privately: it protects one user's rows at this epsilon.")
    ] = None,
    delta: Annotated[float | None, typer.Option(help=f"With --epsilon: the delta; by default {DELTA:g}.")] = None,
    seed: Annotated[int, typer.Option(help="The seed of training. It never seeds privacy noise.", min=0)] = 1,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
) -> None:
    """Fit a model to ratings and write a store: catalogue, scorer and look-alikes, each with its guarantee.

    Look-alikes are features of real users. These users must be public or consent, even if the network is trained privately.
    """
    import numpy as np
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn

    from tacit.curator import fit as fit_store
    from tacit.curator.training import require
    from tacit.data import load_ratings

    private = _private_training(epsilon, delta, epochs)
    _check_targets(data, out, models, slates, ledger, budget, force)
    if model is not Model.factors:  # raises now, not after minutes of reading
        require("jax", "optax", *(() if private is None else ("jax_privacy",)))
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with progress_bar(*columns) as bar:
        task = bar.add_task(f"reading {data}", total=None)
        ratings = load_ratings(data)
        releases = _release_counts(ratings, slates, ledger, budget) if slates and ledger else {}
        bar.update(task, description=f"fitting {model.value} to {len(ratings):,} ratings")
        store = fit_store(
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
            target = f"written to {out} ({out.stat().st_size / 1e6:.1f} MB)"
        else:
            bar.update(task, description="publishing", completed=0, total=None)
            target = _publish(models or Path(), store, ratings, releases)
    typer.echo(f"{store}\n{target}")


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
        raise typer.BadParameter("give --out FILE to write a store, or --models FOLDER to publish for `tacit serve`.")
    if slates and (models is None or ledger is None):
        raise typer.BadParameter("counts are published and charged: give --models and --ledger.", param_hint="--slates")
    if not all(_LEAST_SLATES <= epsilon <= _MOST_SLATES for epsilon in slates or ()):
        raise typer.BadParameter(f"give an epsilon from {_LEAST_SLATES:g} to {_MOST_SLATES:g}.", param_hint="--slates")
    if len({f"{epsilon:g}" for epsilon in slates or ()}) < len(slates or ()):
        raise typer.BadParameter("give each epsilon once, with at most six digits.", param_hint="--slates")
    if slates and budget is not None and (needed := _sum(slates)) > Decimal(str(budget)):
        raise typer.BadParameter(  # a budget cannot be changed later
            f"these --slates need {needed.normalize():f} together. Agree on a larger budget, or release fewer.",
            param_hint="--budget",
        )
    if slates and ledger is not None:
        from tacit.ledger import PrivacyLedger

        PrivacyLedger.open(ledger).close()  # raises now if it is missing, not after minutes of reading
    if out is None:
        return
    check_json_target(str(out), "--out")
    check_different({"the data": data, "--out": out})
    if out.exists() and not force:
        raise typer.BadParameter(f"{out} exists already; --force replaces it.", param_hint="--out")


def _release_counts(
    ratings: "Ratings", slates: list[float], ledger: str, budget: float | None
) -> "dict[str, Popularity]":
    """Releases counts for slates and charges the curator's ledger. Repeating a release gives the same counts, free of charge.

    Call it before fitting, so that an exhausted budget stops the command at once. If the budget does not allow all counts,
    none is charged, unless somebody else charges the ledger at the same time. Counts released before that stay charged, and
    the ledger keeps them.
    """
    from tacit.curator import Curator
    from tacit.errors import Conflict
    from tacit.ledger import Budget, PrivacyLedger

    with PrivacyLedger.open(ledger) as opened:
        try:
            epsilon = float(_sum(slates)) if budget is None else budget
            curator = Curator(ratings, ledger=opened, budget=Budget(epsilon=epsilon))
        except Conflict:
            if budget is not None:
                raise
            curator = Curator(ratings, ledger=opened)  # with the budget agreed before
        epsilons = sorted(slates)
        counts = curator.popularities(epsilons)
        return {f"counts-{epsilon:g}": release for epsilon, release in zip(epsilons, counts, strict=True)}


def _sum(epsilons: list[float]) -> Decimal:
    """The exact sum: a sum of floats may be less than the ledger charges."""
    return sum((Decimal(str(epsilon)) for epsilon in epsilons), Decimal(0))


def _publish(models: Path, store: "Store", ratings: "Ratings", releases: "Mapping[str, Popularity]") -> str:
    try:
        from tacit.service.versions import publish
    except ImportError:
        raise MissingExtra("publishing needs more packages: pip install 'tacit[service]'.") from None
    version = publish(models, store, feature_names=ratings.catalogue.vocabulary, releases=releases)
    return f"published as version {version.name} in {models}"


def _private_training(epsilon: float | None, delta: float | None, epochs: int | None) -> "PrivateTraining | None":
    from tacit.checks import positive, probability
    from tacit.curator import PrivateTraining

    if epsilon is None:
        if delta is not None:
            raise typer.BadParameter("it is for private training: give --epsilon too.", param_hint="--delta")
        return None
    if epochs is not None:
        raise typer.BadParameter("private training counts steps, not epochs: leave it out.", param_hint="--epochs")
    return PrivateTraining(positive("epsilon", epsilon), probability("delta", DELTA if delta is None else delta))
