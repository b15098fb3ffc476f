"""``tacit data``: list data sets, describe them, and import other files."""

import json
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.output import console

if TYPE_CHECKING:
    from tacit.data import DataSet

app = typer.Typer(help="List, describe and import ratings.", no_args_is_help=True)

_LAYOUTS = (
    "tacit recognises folders by their layout: MovieLens (100K, 1M, 10M, latest and 25M), Amazon films and books, Open Bandit, "
    "eICU demo.\nFor any other CSV, TSV or Parquet file use: tacit data import."
)
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines instead of a table.")]


class DuplicatesOption(StrEnum):  # tacit.data.Duplicates for a command line
    error = "error"
    latest = "latest"
    mean = "mean"


@app.command("list", epilog="Example: tacit data list --json")
def list_data(as_json: AsJson = False) -> None:
    """List the data sets that tacit knows by name, and whether they are ready to use."""
    from tacit.data import available

    entries = available()
    if as_json:
        _print_json([asdict(entry) for entry in entries])
        return
    from rich.markup import escape
    from rich.table import Table

    table = Table()
    table.add_column("name", no_wrap=True)
    table.add_column("ready", no_wrap=True)
    table.add_column("what")
    table.add_column("where", overflow="fold")  # never cut a path
    for entry in entries:
        table.add_row(escape(entry.name), "yes" if entry.ready else "no", entry.summary, escape(entry.where))
    console().print(table)
    console().print(_LAYOUTS, soft_wrap=True)


@app.command("describe", epilog="Example: tacit data describe movielens-small")
def describe_data(
    data: Annotated[
        str, typer.Argument(help="A name from `tacit data list`, or a file or folder.", metavar="NAME|PATH")
    ],
    as_json: AsJson = False,
) -> None:
    """Show sizes, scale, times and licence of a data set. The figures are exact: do not release them."""
    from tacit.data import load

    with console(stderr=True).status(f"Reading {data}"):
        facts = _facts(load(data))
    if as_json:
        _print_json(facts)
    else:
        _print_facts(facts)


@app.command(
    "import",
    epilog="Example: tacit data import reviews.csv --user who --item what --rating stars --scale 1 5 --out reviews.parquet",
)
def import_data(
    file: Annotated[Path, typer.Argument(help="CSV, TSV (also .gz, .zst) or Parquet.", exists=True, dir_okay=False)],
    user: Annotated[str, typer.Option(help="The column that holds the user's id.", metavar="COL")],
    item: Annotated[str, typer.Option(help="The column that holds the item's id.", metavar="COL")],
    rating: Annotated[str, typer.Option(help="The column that holds the rating.", metavar="COL")],
    scale: Annotated[
        tuple[float, float], typer.Option(help="The lowest and highest rating allowed.", metavar="LOW HIGH")
    ],
    out: Annotated[Path, typer.Option(help="The Parquet file to write.", dir_okay=False, metavar="X.parquet")],
    time: Annotated[str | None, typer.Option(help="The column that holds the time, if any.", metavar="COL")] = None,
    step: Annotated[float | None, typer.Option(help="The step of the scale, such as 0.5 for half stars.")] = None,
    duplicates: Annotated[
        DuplicatesOption, typer.Option(help="What to do if a user rated an item more than once.")
    ] = DuplicatesOption.error,
    separator: Annotated[
        str | None, typer.Option(help="One ASCII character; by default a comma, for .tsv a tab.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="The name of the data; by default that of the file.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the output file if it exists.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check a file of ratings and write it as one Parquet file, completely or not at all."""
    from tacit.data import Scale, read_table, write
    from tacit.errors import InvalidParameter

    if out.suffix != ".parquet":
        raise typer.BadParameter("the output must be a .parquet file.", param_hint="--out")
    if not out.parent.is_dir():
        raise typer.BadParameter(f"the folder {out.parent} does not exist.", param_hint="--out")
    if out.exists() and not force:
        raise typer.BadParameter(f"{out} exists already; --force replaces it.", param_hint="--out")
    if separator is not None and (len(separator) != 1 or not separator.isascii()):
        raise typer.BadParameter("it must be one ASCII character.", param_hint="--separator")
    option = "--scale"
    try:
        allowed = Scale(*scale)
        option = "--step"
        allowed = Scale(*scale, step)
    except InvalidParameter as error:
        raise typer.BadParameter(str(error), param_hint=option) from None
    with console(stderr=True).status(f"Reading {file}") as status:
        ratings = read_table(
            file,
            user=user,
            item=item,
            rating=rating,
            time=time,
            scale=allowed,
            separator=separator,
            duplicates=duplicates.value,
            name=name,
        )
        status.update(f"Writing {out}")
        write(ratings, out)
        facts = {"written": str(out)} | _facts(ratings)
    if as_json:
        _print_json(facts)
    else:
        _print_facts(facts)


def _facts(data: "DataSet") -> dict[str, Any]:
    from tacit.data import Impressions, TwoDomains

    if isinstance(data, TwoDomains):
        shared = int(data.shared.size)
        return {"shared users": shared, "source": _facts(data.source), "target": _facts(data.target)}
    if isinstance(data, Impressions):
        return {
            "name": data.name,
            "shown": len(data),
            "items": data.n_items,
            "clicks": int(data.clicks.sum()),
            "policy": data.policy,
            **asdict(data.provenance),
        }
    return data.describe().as_dict()


def _print_facts(facts: dict[str, Any]) -> None:
    """Prints one column of values, or two side by side for two domains."""
    from rich.table import Table

    sides = {name: part for name, part in facts.items() if isinstance(part, dict)}
    table = Table("", *sides) if sides else Table(show_header=False)
    for name, value in facts.items():
        if name not in sides and value not in (None, ""):
            table.add_row(name.replace("_", " "), _shown(value))
    for name in next(iter(sides.values()), {}):
        table.add_row(name.replace("_", " "), *(_shown(part[name]) for part in sides.values()))
    console().print(table)


def _shown(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, int):
        return f"{value:,}"
    from rich.markup import escape

    return f"{value:.4g}" if isinstance(value, float) else escape(str(value))


def _print_json(value: object) -> None:
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))
