"""Output of commands: tables on the terminal, JSON to a file or standard output, and progress bars on standard error."""

import json
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.files import replace

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn

STANDARD_OUTPUT = "-"
Json = Annotated[
    str | None,
    typer.Option("--json", metavar="FILE", help="Write JSON to FILE and print nothing; - is standard output."),
]
_WIDTH = 140  # if the output is not a terminal
_SQLITE = b"SQLite format 3\0"
_BESIDE = ("-wal", "-shm", "-journal")


def console(*, stderr: bool = False) -> "Console":
    """A console as wide as the terminal, or wide enough for tables if the output is not a terminal."""
    from rich.console import Console

    terminal = Console(stderr=stderr)
    return terminal if terminal.is_terminal else Console(stderr=stderr, width=_WIDTH)


def check_json_target(target: str | None, option: str = "--json", *, ledger: str | None = None) -> None:
    """Checks, before any work, that a target can be written and would not overwrite a ledger.

    ``ledger`` is the ledger file that the command uses, if any.
    """
    if target is None or target == STANDARD_OUTPUT:
        return
    path = Path(target).absolute()
    replaceable = not path.exists() or (path.is_file() and os.access(path, os.R_OK))
    if not (replaceable and path.parent.is_dir() and os.access(path.parent, os.W_OK)):
        raise typer.BadParameter("it must name a file in a folder that exists and can be written.", param_hint=option)
    for file in (*_files_of_database(path), *_files_of_database(path.resolve())):
        if begins_as_database(file) or (ledger is not None and same_file(file, ledger)):
            raise typer.BadParameter(f"{option} names a ledger; name another file.")


def check_page(out: str) -> None:
    """Checks, before any work, that a page can be written and would replace nothing but an older report."""
    from tacit.evaluation.report.page import is_ours

    check_json_target(out, "--out")
    if out == STANDARD_OUTPUT:
        raise typer.BadParameter("it must name a file.", param_hint="--out")
    if Path(out).exists() and not is_ours(out):
        raise typer.BadParameter(f"{out} exists and is not a report of tacit; name another file.", param_hint="--out")


def check_different(targets: Mapping[str, str | os.PathLike[str] | None]) -> None:
    """Checks that no two options name one file: one would overwrite the other, or an input."""
    named = [(option, target) for option, target in targets.items() if target is not None]
    for (option, target), (other_option, other) in combinations(named, 2):
        if target == other == STANDARD_OUTPUT or (STANDARD_OUTPUT not in (target, other) and same_file(target, other)):
            raise typer.BadParameter(f"{option} and {other_option} name the same file; name two.")


def same_file(first: str | os.PathLike[str], second: str | os.PathLike[str]) -> bool:
    """Whether two names lead to the same file, also through links, or would if it existed."""
    try:
        return os.path.samefile(first, second)
    except (OSError, ValueError):  # one of them does not exist
        return os.path.realpath(first) == os.path.realpath(second)


def command_line() -> str:
    """The command as you typed it, for the page of a report."""
    return " ".join(["tacit", *map(shlex.quote, sys.argv[1:])])


def begins_as_database(file: Path) -> bool:
    """Whether a file begins like a SQLite database."""
    if not file.is_file():
        return False
    with file.open("rb") as content:
        return content.read(len(_SQLITE)) == _SQLITE


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """1 subject, 2 subjects."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def _files_of_database(path: Path) -> Iterator[Path]:
    """A path and, if SQLite keeps a file of that name beside a database, the database."""
    yield path
    for ending in _BESIDE:
        if path.name.endswith(ending) and path.name != ending:
            yield path.with_name(path.name.removesuffix(ending))


def write_json(target: str, content: Any) -> None:
    """Writes JSON to a file or to standard output. A reader of the file never sees a part of it."""
    text = json.dumps(content, indent=2, allow_nan=False)
    if target == STANDARD_OUTPUT:
        typer.echo(text)
        return
    replace(Path(target).absolute(), f"{text}\n".encode())


def progress_bar(*columns: "ProgressColumn") -> "Progress":
    """A bar on standard error, which disappears at the end. It is not shown if standard error is not a terminal."""
    from rich.progress import Progress

    terminal = console(stderr=True)
    return Progress(*columns, console=terminal, transient=True, disable=not terminal.is_terminal)


@contextmanager
def progress() -> Iterator[Callable[[str, int, int], None]]:
    """Shows the progress of one task at a time, as a `progress_bar`."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

    with progress_bar(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    ) as bar:
        task = bar.add_task("reading", total=None)
        yield lambda step, done, total: bar.update(task, description=step, completed=done, total=total)


AUDIT = "audit"
Show = Callable[[str, str], None]  # shows the name of a step and a few words on its state


@contextmanager
def steps(results: "Console", names: Sequence[str]) -> Iterator[Show]:
    """Shows the progress of several steps: a bar on a terminal, otherwise plain lines on standard error.

    ``results`` is the console that results are printed to meanwhile, above the bar.
    """
    bars = results if results.is_terminal else console(stderr=True)
    if bars.is_terminal:
        with _bar(bars, names) as show:
            yield show
    else:
        yield _lines(bars, names)


@contextmanager
def _bar(console: "Console", names: Sequence[str]) -> Iterator[Show]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        BarColumn(20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=len(names))
        yield lambda name, state: bar.update(task, completed=names.index(name), description=f"{name}: {state}")


def _lines(console: "Console", names: Sequence[str]) -> Show:
    shown = set()

    def show(name: str, state: str) -> None:
        if name == AUDIT and AUDIT in shown:  # one line for each mechanism would be too many
            return
        shown.add(name)
        console.print(f"[{names.index(name) + 1}/{len(names)}] {name}: {state} ...", markup=False, soft_wrap=True)

    return show
