"""``tacit ledger``: create a ledger, see what was charged and what is left, check every row, export it for others."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from tacit.cli.output import STANDARD_OUTPUT, check_json_target, console, write_json

if TYPE_CHECKING:
    from rich.progress import Progress

    from tacit.ledger.chain import Head
    from tacit.ledger.overview import Overview
    from tacit.ledger.stores.interface import Store
    from tacit.ledger.verification.findings import Findings

app = typer.Typer(help="Create, show, check and export ledgers.", no_args_is_help=True)

Target = Annotated[str, typer.Argument(metavar="TARGET", help="A file, or an address postgresql://...")]
Json = Annotated[
    str | None,
    typer.Option("--json", metavar="FILE", help="Write JSON to FILE instead of tables; - is standard output."),
]
_BEHIND = 60_000_000  # microseconds that the clock may be behind before it is told
_EXPORT = ".jsonl"


@app.command("init", epilog="Example: tacit ledger init curator.db")
def init(
    target: Target,
    lanes: Annotated[
        int | None,
        typer.Option(
            min=1, max=256, help="How many processes may charge at once; by default 1 in a file, 16 in PostgreSQL."
        ),
    ] = None,
) -> None:
    """Create an empty ledger, for charges and for impressions. Refuses where there is one."""
    from tacit.ledger.stores import create_store

    store = create_store(target, lanes)
    store.close()
    typer.echo(f"Created ledger {store.ledger} in {_shown(target)}.")


@app.command("show", epilog="Example: tacit ledger show curator.db --subject ward-7")
def show(
    target: Target,
    subject: Annotated[
        str | None, typer.Option(metavar="NAME", help="One subject: her statement and her latest charges.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="The most rows of each table.")] = 20,
    json_file: Json = None,
    head_file: Annotated[
        str | None,
        typer.Option("--head", metavar="FILE", help="Also write the head to FILE; keep it elsewhere, for `check`."),
    ] = None,
) -> None:
    """Show what was charged, what is left of every budget, and what was promised by all releases together."""
    from tacit.ledger.overview import overview

    check_json_target(json_file)
    check_json_target(head_file)
    with _opened(target) as store, console(stderr=True).status("Reading the ledger"):
        seen = overview(store, subject=subject, limit=limit)
    _hint(seen)
    if head_file is not None:
        write_json(head_file, seen.head.to_json())
    if json_file is not None:
        write_json(json_file, {"store": _shown(target), **seen.to_json()})
    elif head_file != STANDARD_OUTPUT:
        from tacit.cli.ledger_tables import print_overview

        print_overview(console(), seen, _shown(target))


@app.command("check", epilog="Example: tacit ledger check curator.db --against head.json")
def check_ledger(
    target: Annotated[
        str, typer.Argument(metavar="TARGET|EXPORT.jsonl", help="A file, an address postgresql://..., or an export.")
    ],
    against: Annotated[
        Path | None,
        typer.Option(
            metavar="HEAD.json",
            exists=True,
            dir_okay=False,
            help="A head noted earlier: what is missing since then is found.",
        ),
    ] = None,
    json_file: Json = None,
) -> None:
    """Recompute every link, price, sum and budget. Exit status 1 if anything was altered, lost, moved or put in."""
    check_json_target(json_file)
    head = None if against is None else _head(against)
    found = _checked_export(Path(target), head) if target.endswith(_EXPORT) else _checked(target, head)
    if json_file is not None:
        write_json(json_file, found.to_json())
    if json_file != STANDARD_OUTPUT:
        for finding in found.findings:
            typer.echo(str(finding))
        if found.more:
            typer.echo(f"and {found.more:,} more")
        typer.echo(
            f"{'Sound' if found.sound else 'Not sound'}: {found.entries:,} entries of {found.subjects:,} subjects and "
            f"{found.impressions:,} impressions checked."
        )
    if not found.sound:
        raise typer.Exit(1)


@app.command("export", epilog="Example: tacit ledger export curator.db --out curator.jsonl")
def export_ledger(
    target: Target,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", dir_okay=False, help="By default standard output.")
    ] = None,
) -> None:
    """Write every entry as JSON Lines, so that others can recompute every figure. Stored releases stay."""
    from tacit.ledger.heads import head_of
    from tacit.ledger.verification.export import export

    if out is not None and not out.absolute().parent.is_dir():
        raise typer.BadParameter(f"the folder {out.parent} does not exist.", param_hint="--out")
    with _opened(target) as store, _writing(out) as file, _progress() as bar:
        books = head_of(store).books.values()
        task = bar.add_task("", total=sum(position for tips in books for position, _ in tips))
        export(store, file, progress=lambda lines: bar.update(task, completed=lines))


def _checked(target: str, head: "Head | None") -> "Findings":
    from tacit.ledger.verification.check import check

    with _progress() as bar:
        task = bar.add_task("", total=None)
        return check(target, head=head, progress=lambda done, total: bar.update(task, completed=done, total=total))


def _checked_export(file: Path, head: "Head | None") -> "Findings":
    from tacit.ledger.verification.recompute import recompute

    # What is no UTF-8 is no export; it shall be a finding like anything else that is wrong.
    with file.open(encoding="utf-8", errors="replace", newline="\n") as lines, _progress() as bar:
        size = file.stat().st_size
        task = bar.add_task("", total=size)

        def read() -> Iterator[str]:
            passed = 0
            for number, line in enumerate(lines):
                passed += len(line)
                if number % 1_000 == 0:
                    bar.update(task, completed=passed)
                yield line

        return recompute(read(), head=head).findings


def _head(file: Path) -> "Head":
    from tacit.ledger.overview import read_noted_head

    return read_noted_head(file.read_text(encoding="utf-8", errors="replace"))


def _hint(seen: "Overview") -> None:
    from tacit.ledger.clock import now

    behind = seen.latest - now()
    if behind > _BEHIND:
        typer.echo(
            f"tacit: the clock is {behind / _BEHIND:,.0f} minutes behind the ledger's latest entry. Charges carry the ledger's "
            "time until it has caught up; set the clock.",
            err=True,
        )


def _shown(target: str) -> str:
    """A target without its password."""
    from tacit.ledger.stores import is_postgresql

    if not is_postgresql(target):
        return target
    from tacit.ledger.stores.postgresql_session import Address

    return str(Address.of(target))


@contextmanager
def _opened(target: str) -> Iterator["Store"]:
    from tacit.ledger.stores import open_store

    store = open_store(target)
    try:
        yield store
    finally:
        store.close()


@contextmanager
def _writing(out: Path | None) -> Iterator[TextIO]:
    """Standard output, or a file that is there when it is whole and not before."""
    if out is None:
        yield sys.stdout
        sys.stdout.flush()
        return
    temporary = out.absolute().with_name(f".{out.name}.{os.getpid()}")
    try:
        with temporary.open("w", encoding="utf-8", newline="\n") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(out)
    finally:
        temporary.unlink(missing_ok=True)


def _progress() -> "Progress":
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TimeRemainingColumn

    bars = console(stderr=True)
    return Progress(
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=bars,
        transient=True,
        disable=not bars.is_terminal,  # a log has no use for it
    )
