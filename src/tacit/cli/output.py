"""Where a command's findings go: a table on the terminal, or JSON to a file or to standard output."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

STANDARD_OUTPUT = "-"
_WIDTH = 140  # where the output is no terminal


def console(*, stderr: bool = False) -> "Console":
    """A console as wide as the terminal; wide enough for tables where there is none."""
    from rich.console import Console

    found = Console(stderr=stderr)
    return found if found.is_terminal else Console(stderr=stderr, width=_WIDTH)


def check_json_target(target: str | None) -> None:
    """Refuses a target that cannot be written, before any work is done for it."""
    if target in (None, STANDARD_OUTPUT):
        return
    path = Path(str(target)).absolute()
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise typer.BadParameter("it must name a file in a folder that exists and can be written.", param_hint="--json")


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
