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
    Json,
    begins_as_database,
    check_different,
    check_json_target,
    console,
    counted,
    progress_bar,
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

_MINUTE = 60_000_000  # microseconds: the clock may be this far behind without a warning
_EXPORT = ".jsonl"


@app.command("init", epilog="Example: tacit ledger init curator.db")
def init(
    target: Target,
    lanes: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=256,
            help="The number of transactions that may run side by side in PostgreSQL, by default 16. A file has one writer "
            "at a time, so it needs one lane only.",
        ),
    ] = None,
) -> None:
    """Create an empty ledger, for charges and for impressions. Fails if there is a ledger already."""
    from tacit.ledger.stores import create_store

    store = create_store(target, lanes)
    store.close()
    typer.echo(f"Created ledger {store.ledger} in {_without_password(target)}.")


@app.command("show", epilog="Example: tacit ledger show curator.db --subject ward-7")
def show(
    target: Target,
    subject: Annotated[
        str | None, typer.Option(metavar="NAME", help="Show one subject: its statement and its latest charges.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="The largest number of rows in each table.")] = 20,
    json_file: Json = None,
    head_file: Annotated[
        str | None,
        typer.Option("--head", metavar="FILE", help="Also write the head to FILE; keep it elsewhere, for `check`."),
    ] = None,
) -> None:
    """Show what was charged, what is left of every budget, and what all releases together promise."""
    from tacit.ledger.overview import overview

    _check_targets(target, {"--json": json_file, "--head": head_file})
    try:
        with _open(target) as store, console(stderr=True).status("Reading the ledger"):
            content = overview(store, subject=subject, limit=limit)
    except UnknownSubject:
        raise UnknownSubject(
            "the ledger knows no subject of that name. Check the spelling; `tacit ledger show` lists the subjects."
        ) from None
    _warn_about_clock(content)
    if head_file is not None:
        write_json(head_file, content.head.to_json())
    if json_file is not None:
        write_json(json_file, {"store": _without_password(target), **content.to_json()})
    elif head_file != STANDARD_OUTPUT:
        from tacit.cli.ledger_tables import print_overview

        print_overview(console(), content, _without_password(target))


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
            help="A head noted earlier: the check then finds what has been lost since.",
        ),
    ] = None,
    json_file: Json = None,
) -> None:
    """Recompute every link, price, sum and budget. The exit status is 1 if anything was changed, lost, moved or added."""
    from tacit.ledger.overview import read_noted_head

    _check_targets(target, {"--json": json_file})
    check_different({"--against": against, "--json": json_file})
    head = None if against is None else read_noted_head(against.read_text(encoding="utf-8", errors="replace"))
    result = _check_export(Path(target), head) if _is_export(target) else _check_store(target, head)
    if json_file is not None:
        write_json(json_file, result.to_json())
    else:
        for finding in result.findings:
            typer.echo(str(finding))
        if result.more:
            typer.echo(f"and {result.more:,} more")
        typer.echo(
            f"{'Sound' if result.sound else 'Not sound'}: {counted(result.entries, 'entry', 'entries')} of "
            f"{counted(result.subjects, 'subject')} and {counted(result.impressions, 'impression')} checked."
        )
    if not result.sound:
        raise typer.Exit(1)


@app.command("export", epilog="Example: tacit ledger export curator.db --out curator.jsonl")
def export_ledger(
    target: Target,
    out: Annotated[
        str, typer.Option(metavar="FILE", help="The file to write, completely or not at all; - is standard output.")
    ] = STANDARD_OUTPUT,
) -> None:
    """Write every entry as JSON Lines, so that others can recompute every figure. Stored releases are left out."""
    from tacit.ledger.book import head_of
    from tacit.ledger.verification.export import export

    _check_targets(target, {"--out": out})
    with _open(target) as store, _open_output(out) as file, _progress() as bar:
        books = head_of(store).books.values()
        task = bar.add_task("", total=sum(position for tips in books for position, _ in tips))
        export(store, file, progress=lambda lines: bar.update(task, completed=lines))
    if isinstance(file, _File):
        end = json.loads(file.last)
        typer.echo(_written(end["entries"], end["impressions"], out), err=True)


@app.command("backup", epilog="Example: tacit ledger backup curator.db backup.db --head head.json")
def backup(
    target: Annotated[str, typer.Argument(metavar="TARGET", help="The file of a ledger.")],
    copy: Annotated[str, typer.Argument(metavar="FILE", help="The file for the copy. It must not exist yet.")],
    head_file: Annotated[
        str | None,
        typer.Option(
            "--head",
            metavar="FILE",
            help="Write the head of the copy to FILE; - is standard output. Keep it elsewhere.",
        ),
    ] = None,
) -> None:
    """Copy a ledger file, even while it is in use. Do not copy the file with `cp`: such a copy may lack the latest
    entries."""
    from tacit.ledger.book import head_of
    from tacit.ledger.stores import is_postgresql
    from tacit.ledger.stores.sqlite_files import back_up

    if is_postgresql(target):
        raise typer.BadParameter("for PostgreSQL use pg_dump --schema=tacit.", param_hint="TARGET")
    if copy == STANDARD_OUTPUT:
        raise typer.BadParameter("a backup needs a file of its own.", param_hint="FILE")
    if not os.path.lexists(copy):  # `back_up` refuses a file that exists
        check_json_target(copy, "FILE", ledger=target)
    _check_targets(target, {"--head": head_file})
    check_json_target(head_file, "--head", ledger=copy)
    with console(stderr=True).status("Copying the ledger"):
        back_up(target, copy)
        with _open(copy) as store:
            head = head_of(store)
    entries, impressions = (sum(position for position, _ in head.books[book]) for book in ("privacy", "impressions"))
    typer.echo(_written(entries, impressions, copy), err=head_file == STANDARD_OUTPUT)
    if head_file is not None:
        write_json(head_file, head.to_json())
    else:
        typer.echo(
            f"Now note its head: `tacit ledger show {copy} --head head.json`. Keep the head on another machine: with it, "
            "`tacit ledger check --against` recognises an old backup."
        )


@app.command("forget", epilog="Example: tacit ledger forget shop.db")
def forget(target: Target) -> None:
    """Delete offers and displays that expired more than 24 hours ago. Counts and charges stay."""
    from tacit.ledger import DisplayLedger, ImpressionLedger

    with ImpressionLedger.open(target) as shop, DisplayLedger.open(target) as device:
        offers, displays = shop.forget(), device.forget()
    store = _without_password(target)
    typer.echo(f"Deleted {counted(offers, 'offer')} and {counted(displays, 'display')} from {store}.")


def _check_targets(ledger: str, targets: dict[str, str | None]) -> None:
    """Raises BadParameter for an output that cannot be written, or would overwrite the ledger or another output."""
    from tacit.ledger.stores import is_postgresql

    for option, target in targets.items():
        check_json_target(target, option, ledger=None if is_postgresql(ledger) else ledger)
    check_different(targets)


def _written(entries: int, impressions: int, file: str) -> str:
    return f"Wrote {counted(entries, 'entry', 'entries')} and {counted(impressions, 'impression')} to {file}."


def _is_export(target: str) -> bool:
    """Whether a target is an export: its first byte begins a line of JSON or, if that decides nothing, it ends in .jsonl."""
    from tacit.ledger.stores import is_postgresql

    if is_postgresql(target):
        return False
    file = Path(target)
    if not file.is_file():
        return target.endswith(_EXPORT)
    with _open_export(file) as content:
        return content.read(1) == "{" or (target.endswith(_EXPORT) and not begins_as_database(file))


def _open_export(file: Path) -> TextIO:
    try:
        # With errors="replace", bytes that are not UTF-8 become a finding of the check, like any other fault.
        return file.open(encoding="utf-8", errors="replace", newline="\n")
    except FileNotFoundError:
        raise typer.BadParameter(f"there is no export at {file}.", param_hint="EXPORT") from None
    except IsADirectoryError:
        raise typer.BadParameter(f"{file} is a folder; an export is a file.", param_hint="EXPORT") from None
    except OSError as problem:
        raise typer.BadParameter(f"{file} cannot be read ({problem.strerror}).", param_hint="EXPORT") from None


def _check_store(target: str, head: "Head | None") -> "Findings":
    from tacit.ledger.verification import check

    with _progress() as bar:
        task = bar.add_task("", total=None)
        return check(target, head=head, progress=lambda done, total: bar.update(task, completed=done, total=total))


def _check_export(file: Path, head: "Head | None") -> "Findings":
    from tacit.ledger.verification.export import recompute

    with _open_export(file) as lines, _progress() as bar:
        size = file.stat().st_size
        task = bar.add_task("", total=size)

        def read() -> Iterator[str]:
            done = 0
            for number, line in enumerate(lines):
                done += len(line)
                if number % 1_000 == 0:
                    bar.update(task, completed=done)
                yield line

        return recompute(read(), head=head).findings


def _warn_about_clock(content: "Overview") -> None:
    from tacit.ledger.chain import now

    behind = content.latest - now()
    if behind > _MINUTE:
        typer.echo(
            f"tacit: the clock is {counted(round(behind / _MINUTE), 'minute')} behind the ledger's latest entry. Set the clock. "
            "Until then, charges carry the time of that entry.",
            err=True,
        )


def _without_password(target: str) -> str:
    from tacit.ledger.stores import is_postgresql

    if not is_postgresql(target):
        return target
    from tacit.ledger.stores.postgresql_wire import Address

    return str(Address.of(target))


@contextmanager
def _open(target: str) -> Iterator["LedgerStore"]:
    from tacit.ledger.stores import open_store

    store = open_store(target)
    try:
        yield store
    finally:
        store.close()


class _File(io.TextIOWrapper):
    """A file that remembers the line written last. In an export that line holds the counts."""

    last = ""

    def write(self, text: str, /) -> int:
        self.last = text
        return super().write(text)


@contextmanager
def _open_output(out: str) -> Iterator[TextIO]:
    """Standard output, or a file that appears once it is complete."""
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
    from rich.progress import BarColumn, TaskProgressColumn, TimeRemainingColumn

    return progress_bar(BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
