"""How far long work has come."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tacit.cli.output import console


@contextmanager
def progress() -> Iterator[Callable[[str, int, int], None]]:
    """A bar on standard error, one task at a time; nothing where that is no terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    bars = console(stderr=True)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=bars,
        transient=True,
        disable=not bars.is_terminal,
    ) as bar:
        task = bar.add_task("reading", total=None)
        yield lambda what, done, total: bar.update(task, description=what, completed=done, total=total)
