"""The command line: every command is a few lines over the library.

Exit status: 0 done, 1 the work failed (one line on standard error), 2 the call was wrong.
"""

import sys
from typing import Annotated

import typer

from tacit import __version__
from tacit.cli import data
from tacit.cli.audit import audit
from tacit.cli.demo import demo
from tacit.errors import TacitError

app = typer.Typer(
    name="tacit",
    help="Differentially private recommendation: guarantees you can check.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # pretty tracebacks print local variables, and those may be private
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo", epilog="Example: tacit demo --data synthetic")(demo)
app.command("audit", epilog="Example: tacit audit exponential top-k --json audit.json")(audit)
app.add_typer(data.app, name="data")


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False) -> None:
    if version:
        typer.echo(f"tacit {__version__}")
        raise typer.Exit


def main() -> None:
    """Entry point of the `tacit` command."""
    try:
        app()
    except TacitError as problem:
        typer.echo(f"tacit: {problem}", err=True)
        sys.exit(1)
    except BrokenPipeError:
        sys.exit(1)
