"""``tacit transfer``: carry tastes from one domain to another. A curator releases a model once, and anybody can predict
with it."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from tacit.cli.data import DuplicatesOption
from tacit.cli.output import Json, check_different, check_json_target, console, counted, write_json

if TYPE_CHECKING:
    from tacit.data import Ratings, TwoDomains
    from tacit.ledger import Statement


_HEADERS = ("item", "item_id", "itemid", "items", "id", "ids")  # names of columns, never ids
_AROUND_ID = "\r "  # stripped from both ends of an id, and nothing else, as in tables of ratings
_MOST_ID = 2**53  # of a whole number in a release
_NOT_TEXT = "{} is not UTF-8 text: save it as plain text in UTF-8."


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

        def ratings(file: str) -> "Ratings":
            stored = file.endswith(".parquet") and is_stored(Path(file))
            return load_ratings(file) if stored else read_table(file, **columns)

        return ratings(source), ratings(target)
    data = load(source, second_domain=True) if source == "synthetic" else load(source)
    if not isinstance(data, TwoDomains):
        raise typer.BadParameter(
            f"{source!r} has one domain: name the ratings of the target, too.", param_hint="TARGET"
        )
    return data, None


def require_lists(domains: "Iterable[Ratings]") -> None:
    """Raises BadParameter, which names the options to use, if ratings came without a list of items."""
    if not all(part.catalogue.listed.any() for part in domains):
        raise typer.BadParameter(
            "the ratings came without a list of items, and the set of rated items is private. Give public lists, "
            "--source-items FILE and --target-items FILE. If the set of rated items is public, give --public-catalogue: the "
            "guarantee then assumes so."
        )


def read_lists(source: Path, target: Path, column: str) -> tuple[list[Any], list[Any]]:
    """The ids in two lists, one in each line; empty lines are skipped.

    The ids are whole numbers if all ids of both lists are written as such and a release can carry them, otherwise text. The
    ratings do not decide that: they are private.
    """
    source_ids, target_ids = _read_ids(source, column), _read_ids(target, column)
    if set(source_ids) & set(target_ids):
        raise typer.BadParameter(f"{source} and {target} both name an item; each must be in one domain.")
    if all(_is_number(id) for id in (*source_ids, *target_ids)):
        return [int(id) for id in source_ids], [int(id) for id in target_ids]
    return source_ids, target_ids


def _read_ids(file: Path, column: str) -> list[str]:
    """The ids in one list. Raises InvalidData for a header, which would be released as an item that nobody rated."""
    from tacit.errors import InvalidData

    try:
        content = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidData(_NOT_TEXT.format(file)) from None
    if "\0" in content:  # UTF-16 without a byte order mark decodes as UTF-8 with null characters
        raise InvalidData(_NOT_TEXT.format(file))
    lines = [line.strip(_AROUND_ID) for line in content.split("\n") if line.strip()]
    if not lines:
        raise InvalidData(f"{file} holds no ids: a list has one id in each line.")
    first = lines[0].replace("\t", ",").split(",")[0].strip(' "').lower()
    if first in {column.lower(), *_HEADERS}:
        raise InvalidData(
            f"{file}: the first line is the name of a column. A list has one id in each line and no header: delete that line. If "
            "an item has this name, move it to another line."
        )
    return lines


def require_rated(files: Iterable[tuple[Path, str]], domains: "Iterable[Ratings]", lists: Iterable[list[Any]]) -> None:
    """Raises BadParameter, before anything is charged, if nobody rated any item of a list.

    Swapped or wrong lists would leave out every rating and still use up the budget. The error is for the curator only. It
    does not count the rated items: that would be an uncharged figure about the ratings.
    """
    import numpy as np

    for (file, ratings_file), ratings, ids in zip(files, domains, lists, strict=True):
        rated = np.asarray(ratings.catalogue.ids)[ratings.item_counts > 0].astype(str)
        if not {str(id) for id in ids}.intersection(rated.tolist()):
            raise typer.BadParameter(
                f"no item of {file} was rated in {ratings_file}: is it the list of the other domain, or are ids written "
                "differently? Nothing was charged. To release anyway, give --yes."
            )


def _is_number(text: str) -> bool:
    """Whether an id is a whole number in its usual spelling ("007" is not) that a release can carry."""
    digits = text.removeprefix("-")
    is_plain = digits.isascii() and digits.isdigit() and len(digits) < 19 and str(int(text)) == text
    return is_plain and abs(int(text)) <= _MOST_ID


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
    """One person's ratings of the model's ``items``, and the number of their other ratings."""
    ratings = _json_ratings(file) if file.suffix == ".json" else _csv_ratings(file, item, rating)
    known = {str(item): item for item in items}
    return {known[item]: value for item, value in ratings.items() if item in known}, len(set(ratings) - set(known))


def _csv_ratings(file: Path, item: str | None, rating: str) -> dict[str, float]:
    import csv

    from tacit.errors import InvalidData

    try:
        return _csv_rows(file, item, rating)
    except UnicodeDecodeError:
        raise InvalidData(_NOT_TEXT.format(file)) from None
    except csv.Error:  # its message may quote the file
        raise InvalidData(
            f"{file}: a cell is longer than {csv.field_size_limit():,} characters, or this is not CSV. Is a quote left open?"
        ) from None


def _csv_rows(file: Path, item: str | None, rating: str) -> dict[str, float]:
    import csv

    from tacit.errors import InvalidData

    with file.open(encoding="utf-8-sig", newline="") as content:
        rows = csv.DictReader(content)
        names = list(rows.fieldnames or ())
        if item is None:
            item = "item" if "item" in names and "item_id" not in names else "item_id"
        if names.count(item) != 1 or names.count(rating) != 1:
            raise InvalidData(
                f"{file}: expected columns {item} and {rating}, each once, between commas; --item and --rating name others."
            )
        ratings: dict[str, float] = {}
        for row in rows:
            try:
                id, value = row[item].strip(_AROUND_ID), float(row[rating])
            except (AttributeError, TypeError, ValueError):
                raise InvalidData(f"{file}, line {rows.line_num}: expected an item and a number.") from None
            if None in row:  # csv collects cells without a column under None
                raise InvalidData(f"{file}, line {rows.line_num}: more cells than the first line has.")
            if id in ratings:
                raise InvalidData(f"{file}, line {rows.line_num}: this item was rated before; keep one of its ratings.")
            ratings[id] = value
    return ratings


def _json_ratings(file: Path) -> dict[str, float]:
    import json

    from tacit.errors import InvalidData, InvalidMessage
    from tacit.messages.cross_domain import load

    try:
        ratings = load(file)
    except InvalidMessage:
        ratings = None
    if not isinstance(ratings, dict) or not all(type(value) in (int, float) for value in ratings.values()):
        raise InvalidData(f"{file}: expected an object of items and their ratings.")
    if len(json.loads(file.read_bytes(), object_pairs_hook=list)) > len(ratings):
        raise InvalidData(f"{file}: an item is rated twice; keep one of its ratings.")
    try:
        return {item: float(value) for item, value in ratings.items()}
    except OverflowError:
        raise InvalidData(f"{file}: a rating is too large a number; correct it or leave its item out.") from None


app = typer.Typer(help="Carry tastes from one domain to another: release, show, predict.", no_args_is_help=True)


AGAIN = (
    "this is the same release as before, whatever the files hold now. To release new ratings, give a new --request-id"
)


class Mode(StrEnum):
    moments = "moments"
    prs_valid = "prs_valid"


class PostChoice(StrEnum):
    factors = "factors"
    bridge = "bridge"
    alter_egos = "alter-egos"


class OutsideOption(StrEnum):  # tacit.data.Outside for a command line
    error = "error"
    clip = "clip"


ModelFile = Annotated[
    Path,
    typer.Argument(metavar="MODEL", exists=True, dir_okay=False, help="The file that `tacit transfer release` wrote."),
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
            metavar="SOURCE", help="Ratings of the source: a file, or without TARGET a name or folder of two domains."
        ),
    ],
    ledger: Annotated[
        str,
        typer.Option(
            metavar="TARGET", help="The curator's ledger. `tacit ledger init` creates one, and so does --budget."
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", dir_okay=False, help="The file for the release (JSON).")],
    target: Annotated[str | None, typer.Argument(metavar="[TARGET]", help="Ratings of the target: a file.")] = None,
    epsilon: Annotated[float, typer.Option(help="The epsilon of the release.")] = 2.0,
    delta: Annotated[float, typer.Option(help="The delta of the release.")] = 1e-6,
    budget: Annotated[
        float | None,
        typer.Option(
            help="The epsilon of all releases together, at this delta; agreed with the first release. By default 2."
        ),
    ] = None,
    mode: Annotated[
        Mode, typer.Option(help="A model that predicts for anybody, or a table of replacements.")
    ] = Mode.moments,
    post: Annotated[
        PostChoice | None, typer.Option(help="With moments: the model made of the noisy sums; by default factors.")
    ] = None,
    users: Annotated[
        int | None,
        typer.Option(min=1, help="With moments: a public guess of the number of users. tacit never counts them."),
    ] = None,
    least: Annotated[int, typer.Option(min=1, help="The fewest ratings of a user that count in a domain.")] = 5,
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
        typer.Option("--public-catalogue", help="The set of rated items is public. The guarantee then assumes so."),
    ] = False,
    user: Annotated[str, typer.Option(metavar="COL", help="The column of the user's id, in files.")] = "user_id",
    item: Annotated[str, typer.Option(metavar="COL", help="The column of the item's id.")] = "item_id",
    rating: Annotated[str, typer.Option(metavar="COL", help="The column of the rating.")] = "rating",
    time: Annotated[str | None, typer.Option(metavar="COL", help="The column of the time, if any.")] = None,
    scale: Annotated[
        tuple[float, float], typer.Option(metavar="LOW HIGH", help="The lowest and highest rating: public.")
    ] = (1.0, 5.0),
    duplicates: Annotated[
        DuplicatesOption, typer.Option(help="What to do if a user rated an item more than once.")
    ] = DuplicatesOption.error,
    outside: Annotated[
        OutsideOption, typer.Option(help="What to do with a rating below or above the scale.")
    ] = OutsideOption.error,
    subject: Annotated[
        str | None,
        typer.Option(
            help="The name of these users in the ledger. Always use the same name for the same people; by default it "
            "follows from their files."
        ),
    ] = None,
    request_id: Annotated[
        str | None, typer.Option(help="A new id makes a new release of the present ratings, and a new charge.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not check that items of the lists were rated.")] = False,
    json_file: Json = None,
) -> None:
    """Charge the ledger, draw a release and write it. You may publish it: anybody can use it for any number of predictions.

    Running the same command again writes the same bytes and costs nothing.
    """
    from tacit.curator import Curator
    from tacit.data import Scale
    from tacit.ledger import Budget, now
    from tacit.ledger.account import open_ledger

    inputs = {"SOURCE": source, "TARGET": target, "--source-items": source_items, "--target-items": target_items}
    _check_files(inputs, {"--out": out, "--json": json_file}, ledger)
    if (source_items is None) != (target_items is None):
        raise typer.BadParameter("public lists come in pairs: give --source-items and --target-items.")
    if mode is not Mode.moments and (post is not None or users is not None):
        raise typer.BadParameter(f"--post and --users belong to --mode moments, not to {mode.value}: leave them out.")
    _check_public(epsilon, delta, ledger, subject, request_id)  # before the ratings are read
    total = None if budget is None else Budget(budget, delta)
    if total is None:
        open_ledger(ledger, may_create=False, head=None, clock=now).close()
    columns = {
        "user": user, "item": item, "rating": rating, "time": time, "scale": Scale(*scale),
        "duplicates": duplicates.value, "outside": outside.value,
    }  # fmt: skip
    public = None if source_items is None or target_items is None else (source_items, target_items)
    first, second, lists = _read_inputs(source, target, columns, public, public_catalogue, check_rated=not yes)
    options: dict[str, Any] = {"least": least}
    if mode is Mode.moments:
        options |= {"post": (post or PostChoice.factors).value, "users": users}
    with Curator(
        first, second, ledger, budget=total, subject=subject, catalogues=lists, public_catalogue=public_catalogue
    ) as curator:
        with console(stderr=True).status("Charging, adding up and drawing ..."):
            release = curator.release(epsilon, delta, mode=mode.value, request_id=request_id, **options)
        release.save(out)
        statement, again = curator.statement(), curator.sent_again
    if json_file is not None:
        charge = {"written": str(out), "sent again": again, "budget": statement.to_json()}
        write_json(json_file, {**_facts(release), **charge})
    else:
        note = f"\n{AGAIN}" if again else ""
        typer.echo(f"{_summary(release)}\nwritten to {out}{note}\n{statement}{_deltas(statement)}")


@app.command("predict", epilog="Example: tacit transfer predict model.json mine.csv --k 10")
def predict(
    model: ModelFile,
    ratings: Annotated[
        Path,
        typer.Argument(
            metavar="RATINGS",
            exists=True,
            dir_okay=False,
            help="One person's ratings: CSV with an item and a rating in each line, or JSON.",
        ),
    ],
    k: Annotated[int, typer.Option(min=1, help="The number of items.")] = 10,
    item: Annotated[
        str | None, typer.Option(metavar="COL", help="The column of the item's id; by default item_id or item.")
    ] = None,
    rating: Annotated[str, typer.Option(metavar="COL", help="The column of the rating.")] = "rating",
    json_file: Json = None,
) -> None:
    """Predict the target items that one person would rate highest. Their ratings stay on this machine.

    With a table of replacements it prints their alter ego: ratings of the target items that replace theirs.
    """
    check_json_target(json_file)
    check_different({"MODEL": model, "RATINGS": ratings, "--json": json_file})
    release = read_release(model)
    profile, unknown = read_profile(ratings, (*release.source, *release.target), item, rating)
    if hasattr(release, "predict"):
        predicted = release.predict(profile)
        best = {item: predicted[item] for item in release.recommend(profile, k)}
    else:
        best = dict(sorted(release.alter_ego(profile).items(), key=lambda pair: -pair[1])[:k])
    rows = [{"item": item, "rating": rating} for item, rating in best.items()]
    if json_file is not None:
        write_json(json_file, {"items": rows, "passed over": unknown, **_facts(release)})
        return
    for row in rows:
        typer.echo(f"{row['rating']:6.3f}  {row['item']}")
    if unknown:
        typer.echo(f"tacit: ignored {counted(unknown, 'rating')} of items that the model does not know.", err=True)
    typer.echo(release.remark if hasattr(release, "remark") else "These are the ratings of their alter ego.")


@app.command("show", epilog="Example: tacit transfer show model.json")
def show(model: ModelFile, json_file: Json = None) -> None:
    """Show the guarantee and the content of a release."""
    check_json_target(json_file)
    check_different({"MODEL": model, "--json": json_file})
    release = read_release(model)
    if json_file is not None:
        write_json(json_file, _facts(release))
    else:
        typer.echo(_summary(release))


def _check_files(
    inputs: Mapping[str, str | Path | None], outputs: Mapping[str, str | Path | None], ledger: str
) -> None:
    """Checks, before any work, that every output can be written and would replace no input and no ledger."""
    for option, target in outputs.items():
        check_json_target(None if target is None else str(target), option, ledger=ledger)
    for name, file in inputs.items():  # one by one: two inputs may be the same file, for which there is a better error
        check_different({name: file, **outputs, "--ledger": ledger})


def _read_inputs(
    source: str,
    target: str | None,
    columns: dict[str, Any],
    public: tuple[Path, Path] | None,
    public_catalogue: bool,
    check_rated: bool,
) -> "tuple[Ratings | TwoDomains, Ratings | None, tuple[list[Any], list[Any]] | None]":
    """The ratings of both domains (`read_domains`), and the ids in the two public lists of items, if they were given.

    Raises BadParameter if the items are neither listed nor public, or if a list seems to belong to other ratings.
    """
    from tacit.data import TwoDomains

    lists = None if public is None else read_lists(*public, columns["item"])
    with console(stderr=True).status("Reading the ratings ..."):
        first, second = read_domains(source, target, columns)
    domains = (first.source, first.target) if isinstance(first, TwoDomains) else (first, cast("Ratings", second))
    if public is None or lists is None:
        if not public_catalogue:
            require_lists(domains)
    elif check_rated:
        require_rated(zip(public, (source, target or source), strict=True), domains, lists)
    return first, second, lists


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


def _facts(release: Any) -> dict[str, Any]:
    """Everything about a release except its numbers."""
    names = ("kind", "directions", "crossing", "remark") if hasattr(release, "kind") else ()
    return {
        "format": release.to_json()["format"],
        **{name: getattr(release, name) for name in names},
        "source items": len(release.source),
        "target items": len(release.target),
        "scale": list(release.scale),
        "guarantee": release.guarantee.to_json(),
    }


def _summary(release: Any) -> str:
    kind = release.kind if hasattr(release, "kind") else "replacements"
    sizes = f"{counted(len(release.source), 'source item')}, {counted(len(release.target), 'target item')}"
    scale = f"rated from {release.scale[0]:g} to {release.scale[1]:g}"
    lines = [f"{kind}: {sizes}, {scale}", f"guarantee: {release.guarantee}"]
    return "\n".join([*lines, *([release.remark] if hasattr(release, "remark") else [])])


def _deltas(statement: "Statement") -> str:
    """A line for each budget with a delta, under basic accounting, which adds deltas up beside epsilons."""
    from tacit.ledger.budgets import DELTA_DIGITS, shown

    if statement.terms.accounting.value != "basic":
        return ""
    return "".join(
        f"\n  of delta {window.budget.delta:g}: {float(shown(window.spent.delta, DELTA_DIGITS)):g} spent, "
        f"{float(shown(window.left.delta, DELTA_DIGITS)):g} left"
        for window in statement.windows
        if window.budget.delta
    )
