"""``tacit ledger``: create a ledger, see what was charged and what is left, check every row, export it, back it up,
tidy it."""

import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from tacit.cli.output import (
    STANDARD_OUTPUT,
    begins_as_database,
    check_different,
    check_json_target,
    console,
    counted,
    write_json,
)
from tacit.errors import UnknownSubject
from tacit.files import draft

if TYPE_CHECKING:
    from rich.progress import Progress

    from tacit.ledger.chain import Head
    from tacit.ledger.overview import Overview
    from tacit.ledger.stores.interface import LedgerStore
    from tacit.ledger.verification.books import Findings

app = typer.Typer(help="Create, show, check, export and back up ledgers.", no_args_is_help=True)

Target = Annotated[str, typer.Argument(metavar="TARGET", help="A file, or an address postgresql://...")]
Json = Annotated[
    str | None,
    typer.Option("--json", metavar="FILE", help="Write JSON to FILE and print nothing; - is standard output."),
]
_BEHIND = 60_000_000  # microseconds that the clock may be behind before it is told
_EXPORT = ".jsonl"


@app.command("init", epilog="Example: tacit ledger init curator.db")
def init(
    target: Target,
    lanes: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=256,
            help="How many transactions may run side by side in PostgreSQL, by default 16. A file has one writer at a time, "
            "and one lane: more gain nothing.",
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

    _check_targets(target, {"--json": json_file, "--head": head_file})
    try:
        with _opened(target) as store, console(stderr=True).status("Reading the ledger"):
            seen = overview(store, subject=subject, limit=limit)
    except UnknownSubject:
        raise UnknownSubject(
            "the ledger knows no subject of that name. Look for a typing error; `tacit ledger show` lists the subjects."
        ) from None
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
        str, typer.Argument(metavar="TARGET|EXPORT", help="A file, an address postgresql://..., or an export.")
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
    _check_targets(target, {"--json": json_file})
    check_different({"--against": against, "--json": json_file})
    head = None if against is None else _head(against)
    found = _checked_export(Path(target), head) if _is_export(target) else _checked(target, head)
    if json_file is not None:
        write_json(json_file, found.to_json())
    else:
        for finding in found.findings:
            typer.echo(str(finding))
        if found.more:
            typer.echo(f"and {found.more:,} more")
        typer.echo(
            f"{'Sound' if found.sound else 'Not sound'}: {counted(found.entries, 'entry', 'entries')} of "
            f"{counted(found.subjects, 'subject')} and {counted(found.impressions, 'impression')} checked."
        )
    if not found.sound:
        raise typer.Exit(1)


@app.command("export", epilog="Example: tacit ledger export curator.db --out curator.jsonl")
def export_ledger(
    target: Target,
    out: Annotated[
        str, typer.Option(metavar="FILE", help="Where to, whole or not at all; - is standard output.")
    ] = STANDARD_OUTPUT,
) -> None:
    """Write every entry as JSON Lines, so that others can recompute every figure. Stored releases stay."""
    from tacit.ledger.book import head_of
    from tacit.ledger.verification.export import export

    _check_targets(target, {"--out": out})
    with _opened(target) as store, _writing(out) as file, _progress() as bar:
        books = head_of(store).books.values()
        task = bar.add_task("", total=sum(position for tips in books for position, _ in tips))
        export(store, file, progress=lambda lines: bar.update(task, completed=lines))
    if isinstance(file, _File):
        end = json.loads(file.last)
        typer.echo(_wrote(end["entries"], end["impressions"], out), err=True)


@app.command("backup", epilog="Example: tacit ledger backup curator.db backup.db --head head.json")
def backup(
    target: Annotated[str, typer.Argument(metavar="TARGET", help="The file of a ledger.")],
    copy: Annotated[str, typer.Argument(metavar="FILE", help="A file that does not exist yet.")],
    head_file: Annotated[
        str | None,
        typer.Option(
            "--head",
            metavar="FILE",
            help="Write the head of the copy to FILE, - is standard output; keep it elsewhere.",
        ),
    ] = None,
) -> None:
    """Copy the ledger in a file as it is at one moment, also while it is in use. A plain copy would lack its latest
    entries."""
    from tacit.ledger.book import head_of
    from tacit.ledger.stores import is_postgresql
    from tacit.ledger.stores.sqlite_files import back_up

    if is_postgresql(target):
        raise typer.BadParameter("for PostgreSQL use pg_dump --schema=tacit.", param_hint="TARGET")
    if copy == STANDARD_OUTPUT:
        raise typer.BadParameter("a backup needs a file of its own.", param_hint="FILE")
    if not os.path.lexists(copy):  # what is there is refused by the library
        check_json_target(copy, "FILE", ledger=target)
    _check_targets(target, {"--head": head_file})
    check_json_target(head_file, "--head", ledger=copy)
    with console(stderr=True).status("Copying the ledger"):
        back_up(target, copy)
        with _opened(copy) as store:
            head = head_of(store)
    entries, impressions = (sum(at for at, _ in head.books[book]) for book in ("privacy", "impressions"))
    typer.echo(_wrote(entries, impressions, copy), err=head_file == STANDARD_OUTPUT)
    if head_file is not None:
        write_json(head_file, head.to_json())
    else:
        typer.echo(
            f"Note how far it reaches: `tacit ledger show {copy} --head head.json`. Keep the head on another machine, so that "
            "`tacit ledger check --against` tells an old backup from the latest."
        )


@app.command("forget", epilog="Example: tacit ledger forget shop.db")
def forget(target: Target) -> None:
    """Delete the offers and displays that expired more than 24 hours ago. What was counted and charged stays as it
    is."""
    from tacit.ledger import DisplayLedger, ImpressionLedger

    with ImpressionLedger.open(target) as shop, DisplayLedger.open(target) as device:
        offers, displays = shop.forget(), device.forget()
    typer.echo(f"Deleted {counted(offers, 'offer')} and {counted(displays, 'display')} from {_shown(target)}.")


def _check_targets(ledger: str, targets: dict[str, str | None]) -> None:
    """Refuses outputs that would overwrite the ledger, each other, or cannot be written."""
    from tacit.ledger.stores import is_postgresql

    for option, target in targets.items():
        check_json_target(target, option, ledger=None if is_postgresql(ledger) else ledger)
    check_different(targets)


def _wrote(entries: int, impressions: int, file: str) -> str:
    return f"Wrote {counted(entries, 'entry', 'entries')} and {counted(impressions, 'impression')} to {file}."


def _is_export(target: str) -> bool:
    """By its first byte: no database begins like a line of JSON. By its ending where that tells nothing."""
    from tacit.ledger.stores import is_postgresql

    if is_postgresql(target):
        return False
    file = Path(target)
    if not file.is_file():
        return target.endswith(_EXPORT)
    with _read(file) as content:
        return content.read(1) == "{" or (target.endswith(_EXPORT) and not begins_as_database(file))


@contextmanager
def _read(file: Path) -> Iterator[TextIO]:
    # What is no UTF-8 is no export; it shall be a finding like anything else that is wrong.
    try:
        content = file.open(encoding="utf-8", errors="replace", newline="\n")
    except FileNotFoundError:
        raise typer.BadParameter(f"there is no export at {file}.", param_hint="EXPORT") from None
    except IsADirectoryError:
        raise typer.BadParameter(f"{file} is a folder; an export is a file.", param_hint="EXPORT") from None
    except OSError as problem:
        raise typer.BadParameter(f"{file} cannot be read ({problem.strerror}).", param_hint="EXPORT") from None
    with content:
        yield content


def _checked(target: str, head: "Head | None") -> "Findings":
    from tacit.ledger.verification import check

    with _progress() as bar:
        task = bar.add_task("", total=None)
        return check(target, head=head, progress=lambda done, total: bar.update(task, completed=done, total=total))


def _checked_export(file: Path, head: "Head | None") -> "Findings":
    from tacit.ledger.verification.export import recompute

    with _read(file) as lines, _progress() as bar:
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
    from tacit.ledger.chain import now

    behind = seen.latest - now()
    if behind > _BEHIND:
        typer.echo(
            f"tacit: the clock is {counted(round(behind / _BEHIND), 'minute')} behind the ledger's latest entry. Charges carry "
            "the ledger's time until it has caught up; set the clock.",
            err=True,
        )


def _shown(target: str) -> str:
    """A target without its password."""
    from tacit.ledger.stores import is_postgresql

    if not is_postgresql(target):
        return target
    from tacit.ledger.stores.postgresql_wire import Address

    return str(Address.of(target))


@contextmanager
def _opened(target: str) -> Iterator["LedgerStore"]:
    from tacit.ledger.stores import open_store

    store = open_store(target)
    try:
        yield store
    finally:
        store.close()


class _File(io.TextIOWrapper):
    """A file that knows the line written last: the end of an export, with its counts."""

    last = ""

    def write(self, text: str, /) -> int:
        self.last = text
        return super().write(text)


@contextmanager
def _writing(out: str) -> Iterator[TextIO]:
    """Standard output, or a file that is there when it is whole and not before."""
    if out == STANDARD_OUTPUT:
        yield sys.stdout
        sys.stdout.flush()
        return
    with (
        draft(Path(out).absolute()) as temporary,
        _File(temporary.open("wb"), encoding="utf-8", newline="\n") as file,
    ):
        yield file


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
