"""The command line: every command is a few lines over the library.

Exit status: 0 done, 1 the work failed (one line on standard error), 2 the call was wrong.
"""

import os
import sys
from typing import Annotated, NoReturn

import typer

from tacit import __version__
from tacit.cli import data, entity, ledger, transfer
from tacit.cli.advise import advise
from tacit.cli.audit import audit
from tacit.cli.demo import demo
from tacit.cli.evaluate import evaluate, report
from tacit.cli.fit import fit
from tacit.cli.serve import keys, models, serve
from tacit.errors import InvalidParameter, TacitError, UnknownName

app = typer.Typer(
    name="tacit",
    help="Differentially private recommendation: guarantees you can check.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # pretty tracebacks print local variables, and those may be private
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo", epilog="Example: tacit demo --data synthetic")(demo)
app.command(
    "advise", epilog="Example: tacit advise --holder curator --wants slate --users 6000 --items 4000 --epsilon 1"
)(advise)
app.command("audit", epilog="Example: tacit audit exponential top-k --json audit.json")(audit)
app.command("fit", epilog="Example: tacit fit movielens-small --model network --out films.tacit")(fit)
app.command("serve", epilog="Example: tacit serve --port 8000 --workers 2")(serve)
app.command("evaluate", epilog="Example: tacit evaluate multi-selection --quick --json result.json --plots figures")(
    evaluate
)
app.command("report", epilog="Example: tacit report --quick --out report.html --json report.json")(report)
app.add_typer(data.app, name="data")
app.add_typer(entity.app, name="entity")
app.add_typer(entity.federate, name="federate")
app.add_typer(keys, name="keys")
app.add_typer(ledger.app, name="ledger")
app.add_typer(models, name="models")
app.add_typer(transfer.app, name="transfer")


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False) -> None:
    if version:
        typer.echo(f"tacit {__version__}")
        raise typer.Exit


def main() -> None:
    """Entry point of the `tacit` command. An expected error is one line on standard error."""
    try:
        status = app(standalone_mode=False)
    except (UnknownName, InvalidParameter, typer.TyperException) as wrong_call:
        _fail(wrong_call, 2)
    except (TacitError, OSError) as failure:
        _fail(failure, 1)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)
    else:
        sys.exit(status if isinstance(status, int) else 0)


def _fail(problem: Exception, status: int) -> NoReturn:
    if isinstance(problem, BrokenPipeError):  # for example `tacit ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(status)
    text = problem.format_message() if hasattr(problem, "format_message") else str(problem)
    if text:  # a command without arguments has already printed its help
        typer.echo(f"tacit: {' '.join(text.split())}", err=True)
    sys.exit(status)
