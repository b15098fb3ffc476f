"""``tacit data``: what there is, what is in it, and a way in for other files."""

import json
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from tacit.data import DataSet

app = typer.Typer(help="List, describe and import ratings.", no_args_is_help=True)

_LAYOUTS = (
    "Folders are read by their layout: MovieLens (100K, 1M, 10M, latest and 25M), Amazon films and books, Open Bandit, eICU demo.\n"
    "Any other CSV, TSV or Parquet file: tacit data import."
)
_WIDTH = 140  # of what goes to a file or another program, which have no width of their own
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines instead of a table.")]


class Duplicates(StrEnum):
    error = "error"
    latest = "latest"
    mean = "mean"


@app.command("list", epilog="Example: tacit data list --json")
def list_data(as_json: AsJson = False) -> None:
    """List the data sets that are known by name, and whether they are ready to use."""
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
    table.add_column("where", overflow="fold")  # a path is of use only as a whole
    for entry in entries:
        table.add_row(escape(entry.name), "yes" if entry.ready else "no", entry.summary, escape(entry.where))
    _console().print(table)
    _console().print(_LAYOUTS, soft_wrap=True)


@app.command("describe", epilog="Example: tacit data describe movielens-small")
def describe_data(
    data: Annotated[
        str, typer.Argument(help="A name from `tacit data list`, or a file or folder.", metavar="NAME|PATH")
    ],
    as_json: AsJson = False,
) -> None:
    """Show sizes, scale, times and licence of a data set. Exact figures: for the holder of the data, not for
    release."""
    from tacit.data import load

    with _console(stderr=True).status(f"Reading {data}"):
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
    duplicates: Annotated[Duplicates, typer.Option(help="Two ratings of one item by one user.")] = Duplicates.error,
    separator: Annotated[
        str | None, typer.Option(help="One ASCII character; by default a comma, for .tsv a tab.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="What to call the data; by default as the file.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the output file if it is there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check a file of ratings and write it as one Parquet file, whole or not at all."""
    from tacit.data import Scale, read_table, write
    from tacit.errors import InvalidParameter

    if out.suffix != ".parquet":
        raise typer.BadParameter("the output must be a .parquet file.", param_hint="--out")
    if not out.parent.is_dir():
        raise typer.BadParameter(f"the folder {out.parent} does not exist.", param_hint="--out")
    if out.exists() and not force:
        raise typer.BadParameter(f"{out} is there already; --force replaces it.", param_hint="--out")
    if separator is not None and (len(separator) != 1 or not separator.isascii()):
        raise typer.BadParameter("it must be one ASCII character.", param_hint="--separator")
    option = "--scale"
    try:
        allowed = Scale(*scale)
        option = "--step"
        allowed = Scale(*scale, step)
    except InvalidParameter as error:
        raise typer.BadParameter(str(error), param_hint=option) from None
    with _console(stderr=True).status(f"Reading {file}") as status:
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
    """One column of values, or two side by side for two domains."""
    from rich.table import Table

    sides = {name: part for name, part in facts.items() if isinstance(part, dict)}
    table = Table("", *sides) if sides else Table(show_header=False)
    for name, value in facts.items():
        if name not in sides and value not in (None, ""):
            table.add_row(name.replace("_", " "), _shown(value))
    for name in next(iter(sides.values()), {}):
        table.add_row(name.replace("_", " "), *(_shown(part[name]) for part in sides.values()))
    _console().print(table)


def _shown(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, int):
        return f"{value:,}"
    from rich.markup import escape

    return f"{value:.4g}" if isinstance(value, float) else escape(str(value))


def _print_json(value: object) -> None:
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def _console(stderr: bool = False) -> "Console":
    from rich.console import Console

    console = Console(stderr=stderr)
    return console if console.is_terminal else Console(stderr=stderr, width=_WIDTH)
