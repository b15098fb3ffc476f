"""Where a command's findings go: a table on the terminal, or JSON to a file or to standard output."""

import json
import os
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

STANDARD_OUTPUT = "-"
_WIDTH = 140  # where the output is no terminal
_SQLITE = b"SQLite format 3\0"
_BESIDE = ("-wal", "-shm", "-journal")


def console(*, stderr: bool = False) -> "Console":
    """A console as wide as the terminal; wide enough for tables where there is none."""
    from rich.console import Console

    found = Console(stderr=stderr)
    return found if found.is_terminal else Console(stderr=stderr, width=_WIDTH)


def check_json_target(target: str | None, option: str = "--json", *, ledger: str | None = None) -> None:
    """Refuses a target that cannot be written, or that would overwrite a ledger, before any work is done for it.

    ``ledger`` is the file that the command reads, where it reads one.
    """
    if target is None or target == STANDARD_OUTPUT:
        return
    path = Path(target).absolute()
    there = path.exists()
    if (there and not (path.is_file() and os.access(path, os.R_OK))) or not _can_be_written(path.parent):
        raise typer.BadParameter("it must name a file in a folder that exists and can be written.", param_hint=option)
    if any(_is_ledger(file, ledger) for named in (path, path.resolve()) for file in _with_main_file(named)):
        raise typer.BadParameter(f"{option} names a ledger; name another file.")


def check_different(targets: Mapping[str, str | os.PathLike[str] | None]) -> None:
    """Refuses two options that name one file: the later one would overwrite the other, or what was to be read."""
    given = [(option, target) for option, target in targets.items() if target is not None]
    for (first, one), (second, other) in combinations(given, 2):
        if one == other == STANDARD_OUTPUT or (STANDARD_OUTPUT not in (one, other) and same_file(one, other)):
            raise typer.BadParameter(f"{first} and {second} name the same place; name two.")


def same_file(one: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Whether two names lead to one file, through whatever links, or would if it were there."""
    try:
        return os.path.samefile(one, other)
    except (OSError, ValueError):  # one of them is not there
        return os.path.realpath(one) == os.path.realpath(other)


def begins_as_database(file: Path) -> bool:
    if not file.is_file():
        return False
    with file.open("rb") as content:
        return content.read(len(_SQLITE)) == _SQLITE


def counted(number: int, one: str, several: str | None = None) -> str:
    """1 subject, 2 subjects."""
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def _can_be_written(folder: Path) -> bool:
    return folder.is_dir() and os.access(folder, os.W_OK)


def _with_main_file(path: Path) -> Iterator[Path]:
    """A path and, if it is one of the files that SQLite keeps beside a database, that database."""
    yield path
    for ending in _BESIDE:
        if path.name.endswith(ending) and path.name != ending:
            yield path.with_name(path.name.removesuffix(ending))


def _is_ledger(file: Path, ledger: str | None) -> bool:
    return begins_as_database(file) or (ledger is not None and same_file(file, ledger))


def write_json(target: str, content: Any) -> None:
    """All of the JSON or nothing: a reader never sees half a file."""
    text = json.dumps(content, indent=2, allow_nan=False)
    if target == STANDARD_OUTPUT:
        typer.echo(text)
        return
    path = Path(target).absolute()
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(text + "\n", encoding="utf-8")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
