"""``tacit transfer``: carry tastes from one domain to another. A curator releases a model once; whoever has it predicts with it."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from tacit.cli.output import check_different, check_json_target, console, counted, write_json
from tacit.cli.transfer_files import (
    read_domains,
    read_lists,
    read_profile,
    read_release,
    require_lists,
    require_rated,
)

if TYPE_CHECKING:
    from tacit.data import Ratings
    from tacit.ledger import Statement

app = typer.Typer(help="Carry tastes from one domain to another: release, show, predict.", no_args_is_help=True)


AGAIN = "sent again as it was drawn before, whatever the files hold now. For a release of new ratings: --request-id"


class Mode(StrEnum):
    moments = "moments"
    prs_valid = "prs_valid"


class Post(StrEnum):
    factors = "factors"
    bridge = "bridge"
    alter_egos = "alter-egos"


class Duplicates(StrEnum):
    error = "error"
    latest = "latest"
    mean = "mean"


class Outside(StrEnum):
    error = "error"
    clip = "clip"


Json = Annotated[
    str | None,
    typer.Option("--json", metavar="FILE", help="Write JSON to FILE and print nothing; - is standard output."),
]
ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL", exists=True, dir_okay=False, help="What `tacit transfer release` wrote.")
]


@app.command(
    "release",
    epilog="Example: tacit transfer release films.csv books.csv --source-items films.txt --target-items books.txt "
    "--epsilon 2 --delta 1e-6 --ledger curator.db --budget 2 --out model.json",
)
def release(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE", help="Ratings of the source: a file; or, alone, a name or folder of two domains."
        ),
    ],
    ledger: Annotated[
        str,
        typer.Option(
            metavar="TARGET", help="The curator's ledger: `tacit ledger init` makes one, or a stated --budget."
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", dir_okay=False, help="Where the release is written (JSON).")],
    target: Annotated[str | None, typer.Argument(metavar="[TARGET]", help="Ratings of the target: a file.")] = None,
    epsilon: Annotated[float, typer.Option(help="What the release may cost.")] = 2.0,
    delta: Annotated[float, typer.Option(help="The delta beside it.")] = 1e-6,
    budget: Annotated[
        float | None,
        typer.Option(
            help="The epsilon that these users are promised in all, at this delta; agreed once. By default 2."
        ),
    ] = None,
    mode: Annotated[
        Mode, typer.Option(help="A model for anybody's predictions, or a table of replacements.")
    ] = Mode.moments,
    post: Annotated[
        Post | None, typer.Option(help="Of moments: what is made of the noisy sums; by default factors.")
    ] = None,
    users: Annotated[
        int | None,
        typer.Option(min=1, help="Of moments: about how many users there are, a public guess, never counted."),
    ] = None,
    least: Annotated[int, typer.Option(min=1, help="Ratings in a domain from which a user counts there.")] = 5,
    source_items: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="A public list of source items, one id in each line."),
    ] = None,
    target_items: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="A public list of target items, one id in each line."),
    ] = None,
    public_catalogue: Annotated[
        bool,
        typer.Option(
            "--public-catalogue", help="Which items were rated at all is public; the guarantee then assumes so."
        ),
    ] = False,
    user: Annotated[str, typer.Option(metavar="COL", help="Of files: the column of the user's id.")] = "user_id",
    item: Annotated[str, typer.Option(metavar="COL", help="The column of the item's id.")] = "item_id",
    rating: Annotated[str, typer.Option(metavar="COL", help="The column of the rating.")] = "rating",
    time: Annotated[str | None, typer.Option(metavar="COL", help="The column of the time, if any.")] = None,
    scale: Annotated[
        tuple[float, float], typer.Option(metavar="LOW HIGH", help="The lowest and highest rating: public.")
    ] = (1.0, 5.0),
    duplicates: Annotated[Duplicates, typer.Option(help="Two ratings of one item by one user.")] = Duplicates.error,
    outside: Annotated[Outside, typer.Option(help="A rating below or above the scale.")] = Outside.error,
    subject: Annotated[
        str | None,
        typer.Option(
            help="What these users are called in the ledger: the same people, the same name. By default by their files."
        ),
    ] = None,
    request_id: Annotated[
        str | None, typer.Option(help="A new id is a new release, of what the ratings are by then, and a new charge.")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Release also where no item of a list was rated, without looking.")
    ] = False,
    json_file: Json = None,
) -> None:
    """Charge the ledger, draw, keep, and write what was drawn: it may be sent to anybody, and used for any number of predictions.

    The same call again writes the same bytes and costs nothing.
    """
    from tacit.curator import Curator
    from tacit.data import Scale, TwoDomains
    from tacit.ledger import Budget, now
    from tacit.ledger.beginning import begun

    check_json_target(str(out), "--out", ledger=ledger)
    check_json_target(json_file, ledger=ledger)
    inputs = {"SOURCE": source, "TARGET": target, "--source-items": source_items, "--target-items": target_items}
    for name, place in inputs.items():  # source and target are told apart by what is in them
        check_different({name: place, "--out": out, "--json": json_file, "--ledger": ledger})
    if (source_items is None) != (target_items is None):
        raise typer.BadParameter("public lists come in pairs: give --source-items and --target-items.")
    if mode is not Mode.moments and (post is not None or users is not None):
        raise typer.BadParameter(f"--post and --users belong to --mode moments, not to {mode.value}: leave them out.")
    _check_public(epsilon, delta, ledger, subject, request_id)  # before the ratings are read
    promised = None if budget is None else Budget(budget, delta)
    if promised is None:
        begun(ledger, with_budget=False, head=None, clock=now).close()
    columns = {"user": user, "item": item, "rating": rating, "time": time, "scale": Scale(*scale)}
    public = None if source_items is None or target_items is None else (source_items, target_items)
    lists = None if public is None else read_lists(*public, item)
    progress = console(stderr=True)
    with progress.status("Reading the ratings ..."):
        first, second = read_domains(
            source, target, {**columns, "duplicates": duplicates.value, "outside": outside.value}
        )
    parts = (first.source, first.target) if isinstance(first, TwoDomains) else (first, cast("Ratings", second))
    if public is None or lists is None:
        if not public_catalogue:
            require_lists(parts)
    elif not yes:
        require_rated(zip(public, (source, target or source), strict=True), parts, lists)
    options: dict[str, Any] = {"least": least}
    if mode is Mode.moments:
        options |= {"post": (post or Post.factors).value, "users": users}
    with Curator(
        first,
        second,
        ledger,
        budget=promised,
        subject=subject,
        catalogues=lists,
        public_catalogue=public_catalogue,
    ) as curator:
        with progress.status("Charging, adding up and drawing ..."):
            made = curator.release(epsilon, delta, mode=mode.value, request_id=request_id, **options)
        made.save(out)
        statement, again = curator.statement(), curator.sent_again
    if json_file is not None:
        told = {"written": str(out), "sent again": again, "budget": statement.to_json()}
        write_json(json_file, {**_facts(made), **told})
    else:
        note = f"\n{AGAIN}" if again else ""
        typer.echo(f"{_shown(made)}\nwritten to {out}{note}\n{statement}{_deltas(statement)}")


@app.command("predict", epilog="Example: tacit transfer predict model.json mine.csv --k 10")
def predict(
    model: ModelFile,
    ratings: Annotated[
        Path,
        typer.Argument(
            metavar="RATINGS",
            exists=True,
            dir_okay=False,
            help="One person's own ratings: CSV with an item and a rating in each line, or JSON.",
        ),
    ],
    k: Annotated[int, typer.Option(min=1, help="How many items.")] = 10,
    item: Annotated[
        str | None, typer.Option(metavar="COL", help="The column of the item's id; by default item_id or item.")
    ] = None,
    rating: Annotated[str, typer.Option(metavar="COL", help="The column of the rating.")] = "rating",
    json_file: Json = None,
) -> None:
    """The target items that one person would rate highest, from her own ratings, which go nowhere.

    Of replacements: her alter ego, the ratings of target items that stand in for hers.
    """
    check_json_target(json_file)
    check_different({"MODEL": model, "RATINGS": ratings, "--json": json_file})
    found = read_release(model)
    profile, passed_over = read_profile(ratings, (*found.source, *found.target), item, rating)
    if hasattr(found, "predict"):
        predicted = found.predict(profile)
        chosen = {item: predicted[item] for item in found.recommend(profile, k)}
    else:
        chosen = dict(sorted(found.alter_ego(profile).items(), key=lambda one: -one[1])[:k])
    rows = [{"item": item, "rating": rating} for item, rating in chosen.items()]
    if json_file is not None:
        write_json(json_file, {"items": rows, "passed over": passed_over, **_facts(found)})
        return
    for row in rows:
        typer.echo(f"{row['rating']:6.3f}  {row['item']}")
    if passed_over:
        typer.echo(f"tacit: {counted(passed_over, 'rating')} of items that it does not know.", err=True)
    typer.echo(_remark(found))


@app.command("show", epilog="Example: tacit transfer show model.json")
def show(model: ModelFile, json_file: Json = None) -> None:
    """Show what a release promises and what it holds."""
    check_json_target(json_file)
    check_different({"MODEL": model, "--json": json_file})
    found = read_release(model)
    if json_file is not None:
        write_json(json_file, _facts(found))
    else:
        typer.echo(_shown(found))


def _check_public(epsilon: float, delta: float, ledger: str, subject: str | None, request_id: str | None) -> None:
    from tacit.checks import positive, probability
    from tacit.curator.slate_request import checked_id
    from tacit.ledger.names import name

    positive("epsilon", epsilon)
    probability("delta", delta)
    if subject is not None:
        name("the subject", subject)
    if request_id is not None:
        checked_id(request_id)
    if "://" not in ledger and not Path(ledger).absolute().parent.is_dir():
        raise typer.BadParameter("it must name a file in a folder that exists.", param_hint="--ledger")


def _facts(found: Any) -> dict[str, Any]:
    """All that is public about a release but its numbers."""
    told = ("kind", "directions", "crossing", "remark") if hasattr(found, "kind") else ()
    kind = {name: getattr(found, name) for name in told}
    return {
        "format": found.to_json()["format"],
        **kind,
        "source items": len(found.source),
        "target items": len(found.target),
        "scale": list(found.scale),
        "guarantee": found.guarantee.to_json(),
    }


def _shown(found: Any) -> str:
    what = found.kind if hasattr(found, "kind") else "replacements"
    sizes = f"{counted(len(found.source), 'source item')}, {counted(len(found.target), 'target item')}"
    scale = f"rated from {found.scale[0]:g} to {found.scale[1]:g}"
    lines = [f"{what}: {sizes}, {scale}", f"guarantee: {found.guarantee}"]
    return "\n".join([*lines, *([found.remark] if hasattr(found, "remark") else [])])


def _deltas(statement: "Statement") -> str:
    """A line for each budget whose delta adds up beside its epsilon."""
    from tacit.ledger.amounts import DELTA_DIGITS, shown

    if statement.terms.accounting.value != "basic":
        return ""
    return "".join(
        f"\n  of delta {window.budget.delta:g}: {float(shown(window.spent.delta, DELTA_DIGITS)):g} spent, "
        f"{float(shown(window.left.delta, DELTA_DIGITS)):g} left"
        for window in statement.windows
        if window.budget.delta
    )


def _remark(found: Any) -> str:
    return found.remark if hasattr(found, "remark") else "These are the ratings of her alter ego."
