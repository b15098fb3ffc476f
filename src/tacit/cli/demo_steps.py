"""How far ``tacit demo`` has come: a bar on a terminal, plain lines on standard error where there is none."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tacit.cli.output import console as open_console

if TYPE_CHECKING:
    from rich.console import Console

AUDIT = "audit"
Told = Callable[[str, str], None]  # the step, and what is being done


@contextmanager
def steps(console: "Console", names: Sequence[str]) -> Iterator[Told]:
    """Is told what is being done; ``console`` is where results are printed meanwhile, above the bar."""
    bars = console if console.is_terminal else open_console(stderr=True)
    if bars.is_terminal:
        with _bar(bars, names) as told:
            yield told
    else:
        yield _lines(bars, names)


@contextmanager
def _bar(console: "Console", names: Sequence[str]) -> Iterator[Told]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    shown = "{task.description}"
    columns = (
        SpinnerColumn(),
        BarColumn(20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn(shown, markup=False),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=len(names))
        yield lambda name, what: bar.update(task, completed=names.index(name), description=f"{name}: {what}")


def _lines(console: "Console", names: Sequence[str]) -> Told:
    told = set()

    def tell(name: str, what: str) -> None:
        if name == AUDIT and AUDIT in told:  # its mechanisms would be too many lines
            return
        told.add(name)
        console.print(f"[{names.index(name) + 1}/{len(names)}] {name}: {what} ...", markup=False, soft_wrap=True)

    return tell
