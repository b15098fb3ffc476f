"""``tacit entity``: keys, releases and fits of one organisation that takes part in federations. Each call is a new process."""

from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli.output import check_different, check_json_target, counted, write_json

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
        typer.echo(f"Private key in {file}: keep it, and show it to nobody.\nPublic key, for the coordinator: {public}")


@app.command("release", epilog="Example: tacit entity release north.toml")
def release(settings: Settings, json_file: Json = None) -> None:
    """Answer every message in the mailbox's inbox: charge, draw, sign, and put the replies into the outbox.

    Carry the files in the outbox to the coordinator by any means you trust. Running it again changes nothing and costs nothing.
    """
    from tacit.engines.folders import Mailbox
    from tacit.engines.settings import entity_settings, open_entity

    check_json_target(json_file)
    found = entity_settings(settings)
    with open_entity(found) as entity:
        mailbox = Mailbox(found.place("mailbox"))
        handled = mailbox.answer(entity)
        statement = entity.statement()
    if json_file is not None:
        messages = [{"file": one.name, "outcome": one.outcome, "reason": one.reason} for one in handled]
        write_json(json_file, {"messages": messages, "outbox": str(mailbox.outbox), "budget": statement.to_json()})
    else:
        for one in handled:
            typer.echo(f"{one.outcome:9} {one.name}" + (f": {one.reason}" if one.reason else ""))
        typer.echo(f"{counted(len(handled), 'message')}; replies are in {mailbox.outbox}.\n{statement}")
    if any(one.outcome == "refused" for one in handled):
        raise typer.Exit(1)


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
    from tacit.engines.settings import entity_settings, open_entity, read_catalogue, tuning_of

    check_json_target(str(out), "--out")
    found = entity_settings(settings)
    with open_entity(found) as entity:
        fitted = entity.fit(run=run, tuning=tuning_of(found), rng=np.random.default_rng(seed))
        written = write_best(out, entity, fitted, read_catalogue(found.place("catalogue")), top)
    typer.echo(f"Wrote {counted(top, 'item')} each for {counted(written, 'user')} to {out} (private; mode 600).")
    if report and fitted.report is not None:
        typer.echo(f"The gate, private: {_told(fitted.report)}")


def _told(report: Any) -> str:
    scores = getattr(report, "scores", None) or getattr(report, "means", {})
    figures = ", ".join(f"{name} {score:.4f}" for name, score in scores.items())
    return f"{figures}; {'informative' if report.informative else 'no information at this budget'}."
