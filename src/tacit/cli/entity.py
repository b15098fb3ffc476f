"""``tacit entity``: keys, releases and fits of one organisation that takes part in federations. Each call is a new process."""

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.entity_show import show
from tacit.cli.output import check_different, check_json_target, counted, write_json

if TYPE_CHECKING:
    from tacit.engines.folders import Handled, Mailbox
    from tacit.ledger import Statement

    Answers = tuple[list[Handled], Statement]

app = typer.Typer(help="Take part in a federation: keys, releases, the local fit.", no_args_is_help=True)

Settings = Annotated[
    Path, typer.Argument(metavar="SETTINGS", exists=True, dir_okay=False, help="The entity's settings (TOML).")
]
Json = Annotated[
    str | None,
    typer.Option("--json", metavar="FILE", help="Write JSON to FILE and print nothing; - is standard output."),
]


@app.command("keys", epilog="Example: tacit entity keys north.key")
def keys(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Where the private key is to lie; it must not be there.")
    ],
    json_file: Json = None,
) -> None:
    """Draw a key pair: the private key to FILE, readable by you only, the public key to FILE.pub. Coordinators use it too."""
    from tacit.engines.keys import new_key

    check_json_target(json_file)
    check_different({"FILE": file, "--json": json_file})
    public = new_key(file).hex()
    if json_file is not None:
        write_json(json_file, {"private": str(file), "public": public})
    else:
        typer.echo(f"Private key in {file}: keep it, and show it to nobody.")
        typer.echo(f"Public key in {file}.pub, for whoever checks your signatures: {public}")


@app.command("release", epilog="Example: tacit entity release north.toml")
def release(
    settings: Settings,
    watch: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", min=0.1, help="Look again so often, until a model comes that was not there before."
        ),
    ] = None,
    longest: Annotated[
        float | None, typer.Option("--for", metavar="SECONDS", min=0.0, help="With --watch: for so long at most.")
    ] = None,
    json_file: Json = None,
) -> None:
    """Answer every message in the mailbox's inbox: charge, draw, sign, and put the replies into the outbox.

    Carry the files in the outbox to the coordinator by any means you trust. Running it again changes nothing and costs nothing.
    """
    from tacit.engines.folders import Mailbox
    from tacit.engines.settings import entity_settings, open_entity

    check_json_target(json_file)
    if longest is not None and watch is None:
        raise typer.BadParameter("--for says how long --watch goes on: say both.")
    if watch is not None and not math.isfinite(watch):
        raise typer.BadParameter("--watch needs a number of seconds.")
    found = entity_settings(settings)
    mailbox, told = Mailbox(found.place("mailbox")), set[str]()

    def answered() -> "Answers":
        with open_entity(found) as entity:  # closed between two looks: a watcher holds neither the ledger nor rows
            handled, statement = mailbox.answer(entity), entity.statement()
        for one in handled if json_file is None else ():
            line = f"{one.outcome:9} {one.name}" + (f": {one.reason}" if one.reason else "")
            if line not in told:
                typer.echo(line)
                told.add(line)
        return handled, statement

    handled, statement = answered() if watch is None else watched(mailbox, answered, watch, longest)
    if json_file is not None:
        messages = [{"file": one.name, "outcome": one.outcome, "reason": one.reason} for one in handled]
        write_json(json_file, {"messages": messages, "outbox": str(mailbox.outbox), "budget": statement.to_json()})
    else:
        typer.echo(f"{counted(len(handled), 'message')}; replies are in {mailbox.outbox}.\n{statement}")
    no_model = watch is not None and not any(one.brought_model for one in handled)
    if no_model:
        typer.echo("tacit: no model has come.", err=True)
    # A watch waits for a model: whoever can lay junk into the inbox must not be able to say that none has come.
    if no_model or (watch is None and any(one.outcome == "refused" for one in handled)):
        raise typer.Exit(1)


def watched(mailbox: "Mailbox", answer: "Callable[[], Answers]", every: float, longest: float | None) -> "Answers":
    """Answers whenever the inbox has changed, or time may cure a refusal, until a new model is there or the time is over."""
    ends, seen = math.inf if longest is None else time.monotonic() + longest, None
    while True:
        state = mailbox.state()
        if state != seen:
            handled, statement = answer()
            seen = None if any(one.again for one in handled) else state
        left = ends - time.monotonic()
        if left <= 0.0 or any(one.brought_model for one in handled):
            return handled, statement
        time.sleep(min(every, left))


app.command("show", epilog="Example: tacit entity show north.toml")(show)


@app.command("leave", epilog="Example: tacit entity leave north.toml --run 82e60e96...")
def leave(
    settings: Settings,
    run: Annotated[
        str, typer.Option(metavar="ID", help="The run's id, as `tacit federate show` and the file names tell it.")
    ],
) -> None:
    """Leave a run that was given up: its secrets are deleted, and nothing new is answered. What was charged stays charged."""
    from tacit.engines.settings import entity_settings, open_entity

    with open_entity(entity_settings(settings)) as entity:
        entity.leave(run)
    typer.echo(f"Left run {run}.")


@app.command("fit", epilog="Example: tacit entity fit north.toml --out recommendations.csv")
def fit(
    settings: Settings,
    out: Annotated[
        Path, typer.Option(metavar="FILE", dir_okay=False, help="Where each user's items are written (CSV).")
    ],
    top: Annotated[int, typer.Option(min=1, help="How many items for each user.")] = 20,
    run: Annotated[
        str | None, typer.Option(metavar="ID", help="The run whose model is used; by default the newest.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the cells that the gate holds out.")] = 1,
    report: Annotated[bool, typer.Option("--report", help="Also print what the gate found. It is private.")] = False,
) -> None:
    """Fit your own users, with the shared model if a test on held-out cells has nothing against it. All of it stays inside.

    The file holds recommendations computed from your users' rows: no guarantee covers them outside your organisation.
    """
    import numpy as np

    from tacit.engines.recommendations import write_best
    from tacit.engines.settings import entity_settings, open_entity, tuning_of

    check_json_target(str(out), "--out")
    found = entity_settings(settings)
    with open_entity(found) as entity:
        fitted = entity.fit(run=run, tuning=tuning_of(found), rng=np.random.default_rng(seed))
        write_best(out, entity, fitted, found.catalogue(), top)
    typer.echo(f"Wrote {counted(top, 'item')} for each user to {out} (private; mode 600).")  # how many is private too
    if report:
        from tacit.cli.gate_lines import gate_lines

        typer.echo("\n".join(gate_lines(fitted)))
