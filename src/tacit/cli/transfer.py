"""``tacit transfer``: carry tastes from one domain to another. A curator releases a model once; anybody who has it can
predict."""

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from tacit.cli.output import check_different, check_json_target, console, counted, write_json

if TYPE_CHECKING:
    from tacit.data import Ratings, TwoDomains
    from tacit.ledger import Statement


_HEADERS = ("item", "item_id", "itemid", "items", "id", "ids")  # first lines that are no ids
_AROUND = "\r "  # an id: no other character ends it, as none does where ratings are read
_MOST_ID = 2**53  # of a whole number in a release
_NO_TEXT = "{} is not UTF-8 text: save it as plain text in UTF-8."


def read_domains(
    source: str, target: str | None, columns: dict[str, Any]
) -> "tuple[Ratings | TwoDomains, Ratings | None]":
    """Reads two files with the same columns or in tacit's own format, or a data set that has two domains.

    Two files stay separate: the curator combines them, once public lists decide which items count.
    """
    from tacit.data import TwoDomains, load, load_ratings, read_table
    from tacit.data.store import is_stored

    if target is None and Path(source).is_file():
        raise typer.BadParameter(
            f"{source} is one file: name the ratings of the target after it.",
            param_hint="TARGET",
        )
    if target is not None:

        def ratings(place: str) -> "Ratings":
            stored = place.endswith(".parquet") and is_stored(Path(place))
            return load_ratings(place) if stored else read_table(place, **columns)

        return ratings(source), ratings(target)
    found = load(source, second_domain=True) if source == "synthetic" else load(source)
    if not isinstance(found, TwoDomains):
        raise typer.BadParameter(
            f"{source!r} has one domain: name the ratings of the target, too.", param_hint="TARGET"
        )
    return found, None


def require_lists(domains: "Iterable[Ratings]") -> None:
    """Raises an error, in terms of the options, if ratings came without a list of items."""
    if not all(part.catalogue.listed.any() for part in domains):
        raise typer.BadParameter(
            "the ratings came without a list of items, and which items were rated at all is private: give public lists, "
            "--source-items FILE and --target-items FILE; or say --public-catalogue if the rated items are public, which the "
            "guarantee then assumes."
        )


def read_lists(source: Path, target: Path, column: str) -> tuple[list[Any], list[Any]]:
    """One id in each line; empty lines are passed over. Whole numbers where all of both are written as such, whatever
    was rated, and a release can carry them."""
    both = [_lines(file, column) for file in (source, target)]
    ids = [one for part in both for one in part]
    if set(both[0]) & set(both[1]):
        raise typer.BadParameter(f"{source} and {target} both name an item; each must be in one domain.")
    if all(_is_number(one) for one in ids):
        return [int(one) for one in both[0]], [int(one) for one in both[1]]
    return both[0], both[1]


def _lines(file: Path, column: str) -> list[str]:
    """A first line that is the name of a column would be an item that nobody rated, released with the others: it is
    refused."""
    from tacit.errors import InvalidData

    try:
        content = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidData(_NO_TEXT.format(file)) from None
    if "\0" in content:  # UTF-16 without a mark is UTF-8 as well, and no text
        raise InvalidData(_NO_TEXT.format(file))
    lines = [line.strip(_AROUND) for line in content.split("\n") if line.strip()]
    if not lines:
        raise InvalidData(f"{file} holds no ids: a list has one id in each line.")
    first = lines[0].replace("\t", ",").split(",")[0].strip(' "').lower()
    if first in {column.lower(), *_HEADERS}:
        raise InvalidData(
            f"{file}: the first line is the name of a column. A list has one id in each line, and no header: delete that line; an "
            "item of this name may stand in any other."
        )
    return lines


def require_rated(places: Iterable[tuple[Path, str]], found: "Iterable[Ratings]", lists: Iterable[list[Any]]) -> None:
    """Refuses a list of which nobody rated any item, before anything is charged, for the curator's own eyes.

    Lists that were swapped or belong to something else would leave out every rating, and use up the budget all the
    same. How many were rated is not told: that would be a number about the ratings which nobody paid for.
    """
    import numpy as np

    for (file, ratings_file), ratings, ids in zip(places, found, lists, strict=True):
        rated = np.asarray(ratings.catalogue.ids)[ratings.item_counts > 0].astype(str)
        if not {str(one) for one in ids}.intersection(rated.tolist()):
            raise typer.BadParameter(
                f"no item of {file} was rated in {ratings_file}: is it the list of the other domain, or are ids written "
                "differently? Nothing was charged. --yes releases all the same."
            )


def _is_number(written: str) -> bool:
    """As it is usually written ("007" is not, and loses its zeros as one), and no larger than a release carries."""
    digits = written.removeprefix("-")
    plain = digits.isascii() and digits.isdigit() and len(digits) < 19 and str(int(written)) == written
    return plain and abs(int(written)) <= _MOST_ID


def read_release(file: Path) -> Any:
    """Reads a release: a transfer model or a table of replacements."""
    from tacit.errors import InvalidMessage
    from tacit.messages import cross_domain

    try:
        value = cross_domain.load(file)
        is_table = isinstance(value, dict) and value.get("format") == cross_domain.REPLACEMENTS_FORMAT
        return (cross_domain.Replacements if is_table else cross_domain.TransferModel).from_json(value)
    except InvalidMessage as problem:
        raise InvalidMessage(f"{file}: {problem.args[0]}") from None


def read_profile(
    file: Path, items: tuple[Any, ...], item: str | None = None, rating: str = "rating"
) -> tuple[dict[Any, float], int]:
    """One person's ratings, by the ids of the model, and the number of ratings of items that it does not know."""
    written = _json_ratings(file) if file.suffix == ".json" else _csv_ratings(file, item, rating)
    known = {str(item): item for item in items}
    return {known[item]: rating for item, rating in written.items() if item in known}, len(set(written) - set(known))


def _csv_ratings(file: Path, item: str | None, rating: str) -> dict[str, float]:
    import csv

    from tacit.errors import InvalidData

    try:
        return _csv_rows(file, item, rating)
    except UnicodeDecodeError:
        raise InvalidData(_NO_TEXT.format(file)) from None
    except csv.Error:  # its own words may show what is in the file
        raise InvalidData(
            f"{file}: a cell is longer than {csv.field_size_limit():,} characters, or this is no CSV. Is a quote left open?"
        ) from None


def _csv_rows(file: Path, item: str | None, rating: str) -> dict[str, float]:
    import csv

    from tacit.errors import InvalidData

    with file.open(encoding="utf-8-sig", newline="") as content:
        rows = csv.DictReader(content)
        names = list(rows.fieldnames or ())
        named = next((one for one in ("item_id", "item") if one in names), "item_id") if item is None else item
        if names.count(named) != 1 or names.count(rating) != 1:
            raise InvalidData(
                f"{file}: expected columns {named} and {rating}, each once, between commas; --item and --rating name others."
            )
        found: dict[str, float] = {}
        for row in rows:
            try:
                place, value = row[named].strip(_AROUND), float(row[rating])
            except (AttributeError, TypeError, ValueError):
                raise InvalidData(f"{file}, line {rows.line_num}: expected an item and a number.") from None
            if None in row:  # where csv puts what has no column
                raise InvalidData(f"{file}, line {rows.line_num}: more cells than the first line has.")
            if place in found:
                raise InvalidData(
                    f"{file}, line {rows.line_num}: an item that was rated before; keep one of its ratings."
                )
            found[place] = value
    return found


def _json_ratings(file: Path) -> dict[str, float]:
    import json

    from tacit.errors import InvalidData, InvalidMessage
    from tacit.messages.cross_domain import load

    try:
        found = load(file)
    except InvalidMessage:
        found = None
    if not isinstance(found, dict) or not all(type(value) in (int, float) for value in found.values()):
        raise InvalidData(f"{file}: expected an object of items and their ratings.")
    if len(json.loads(file.read_bytes(), object_pairs_hook=list)) > len(found):
        raise InvalidData(f"{file}: an item is rated twice; keep one of its ratings.")
    try:
        return {item: float(value) for item, value in found.items()}
    except OverflowError:
        raise InvalidData(f"{file}: a rating is too large a number; correct it or leave its item out.") from None


app = typer.Typer(help="Carry tastes from one domain to another: release, show, predict.", no_args_is_help=True)


AGAIN = "the same release as before, whatever the files hold now. For a release of new ratings, give a new --request-id"


class Mode(StrEnum):
    moments = "moments"
    prs_valid = "prs_valid"


class PostChoice(StrEnum):
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
    epsilon: Annotated[float, typer.Option(help="The epsilon of the release.")] = 2.0,
    delta: Annotated[float, typer.Option(help="The delta of the release.")] = 1e-6,
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
        PostChoice | None, typer.Option(help="With moments: the model made of the noisy sums; by default factors.")
    ] = None,
    users: Annotated[
        int | None,
        typer.Option(min=1, help="With moments: a public guess of the number of users. It is never counted."),
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
    """Charge the ledger, draw a release and write it. Anybody may have it and use it for any number of predictions.

    The same call again writes the same bytes and costs nothing.
    """
    from tacit.curator import Curator
    from tacit.data import Scale, TwoDomains
    from tacit.ledger import Budget, now
    from tacit.ledger.account import open_ledger

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
        open_ledger(ledger, may_create=False, head=None, clock=now).close()
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
        options |= {"post": (post or PostChoice.factors).value, "users": users}
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
    k: Annotated[int, typer.Option(min=1, help="The number of items.")] = 10,
    item: Annotated[
        str | None, typer.Option(metavar="COL", help="The column of the item's id; by default item_id or item.")
    ] = None,
    rating: Annotated[str, typer.Option(metavar="COL", help="The column of the rating.")] = "rating",
    json_file: Json = None,
) -> None:
    """Predict the target items that one person would rate highest, from their own ratings, which stay on this machine.

    With replacements: print their alter ego, the ratings of target items that stand in for theirs.
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
        typer.echo(f"tacit: ignored {counted(passed_over, 'rating')} of items that the model does not know.", err=True)
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
    from tacit.curator.account import checked_id
    from tacit.ledger.chain import checked_name

    positive("epsilon", epsilon)
    probability("delta", delta)
    if subject is not None:
        checked_name("the subject", subject)
    if request_id is not None:
        checked_id(request_id)
    if "://" not in ledger and not Path(ledger).absolute().parent.is_dir():
        raise typer.BadParameter("it must name a file in a folder that exists.", param_hint="--ledger")


def _facts(found: Any) -> dict[str, Any]:
    """Everything public about a release except its numbers."""
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
    from tacit.ledger.budgets import DELTA_DIGITS, shown

    if statement.terms.accounting.value != "basic":
        return ""
    return "".join(
        f"\n  of delta {window.budget.delta:g}: {float(shown(window.spent.delta, DELTA_DIGITS)):g} spent, "
        f"{float(shown(window.left.delta, DELTA_DIGITS)):g} left"
        for window in statement.windows
        if window.budget.delta
    )


def _remark(found: Any) -> str:
    return found.remark if hasattr(found, "remark") else "These are the ratings of their alter ego."
