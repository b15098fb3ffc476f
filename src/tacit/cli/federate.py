"""``tacit federate``: coordinate a federation over plain files. Each call is a process of its own; the folder is its memory."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.output import check_json_target, counted, write_json

if TYPE_CHECKING:
    from tacit.engines.coordinator import CoordinatorFolder

app = typer.Typer(help="Coordinate a federation: open a run, step it on, show it.", no_args_is_help=True)

Folder = Annotated[Path, typer.Argument(metavar="FOLDER", file_okay=False, help="The run's folder.")]
Key = Annotated[
    Path, typer.Option("--key", metavar="FILE", exists=True, dir_okay=False, help="The coordinator's private key.")
]
Json = Annotated[
    str | None,
    typer.Option("--json", metavar="FILE", help="Write JSON to FILE and print nothing; - is standard output."),
]


@app.command("open", epilog="Example: tacit federate open run run.toml")
def open_run(
    folder: Folder,
    settings: Annotated[
        Path,
        typer.Argument(metavar="SETTINGS", exists=True, dir_okay=False, help="All public constants of the run (TOML)."),
    ],
    json_file: Json = None,
) -> None:
    """Fix and sign all public constants of a run, and put the manifest for every entity into FOLDER/outbox.

    Equal settings are the same run, under the same id: entities answer it with what they sent before. For another, change `title`.
    """
    from tacit.engines.coordinator import CoordinatorFolder
    from tacit.engines.settings import read_manifest

    check_json_target(json_file)
    manifest, key = read_manifest(settings)
    _tell(CoordinatorFolder.open(folder, manifest, key), json_file)


@app.command("step", epilog="Example: tacit federate step run --key coordinator.key")
def step(
    folder: Folder,
    key: Key,
    close: Annotated[
        bool, typer.Option("--close", help="Close the present stage now: whoever has not replied drops out.")
    ] = False,
    give_up: Annotated[bool, typer.Option("--give-up", help="End a run that cannot go on.")] = False,
    json_file: Json = None,
) -> None:
    """Take the replies in FOLDER/inbox, close what can be closed, and write what is to be carried to the entities.

    A stage closes when all have replied, or enough once the deadline is past. Run it as often as you like.
    """
    from tacit.engines.coordinator import CoordinatorFolder
    from tacit.engines.keys import read_key

    check_json_target(json_file)
    if close and give_up:
        raise typer.BadParameter("a stage is closed, or the run is given up: say one of them.")
    found, secret = CoordinatorFolder(folder), read_key(key)
    if give_up:
        found.give_up(secret)
        _tell(found, json_file)
        return
    _, taken = found.step(secret, close=close)
    done = {"accepted": taken.accepted, "rejected": taken.rejected, "closed": taken.closed}
    _tell(found, json_file, done)
    if json_file is None:
        for name, code in taken.rejected.items():
            typer.echo(f"tacit: rejected {name}: {code}", err=True)


@app.command("show", epilog="Example: tacit federate show run")
def show(folder: Folder, json_file: Json = None) -> None:
    """Show what a run promises, how far it is, who has replied, and the hash of its model. No key is needed."""
    from tacit.engines.coordinator import CoordinatorFolder

    check_json_target(json_file)
    _tell(CoordinatorFolder(folder), json_file)


def _tell(found: "CoordinatorFolder", json_file: str | None, done: dict[str, Any] | None = None) -> None:
    status = found.status()
    if json_file is not None:
        write_json(json_file, {**status, **({} if done is None else {"step": done})})
        return
    typer.echo(f"run {status['run']} ({status['mechanism']}): {status['stage']}")
    typer.echo(f"guarantee: {found.manifest.guarantee}")
    for stage in status["stages"]:
        state = "closed with" if stage["closed"] else "open,"
        typer.echo(f"  {stage['stage']}: {state} {counted(len(stage['replied']), 'reply', 'replies')}")
    if status["model"] is not None:
        told = "" if status["model"]["informed"] else "; no information at this budget"
        typer.echo(f"model {status['model']['hash']}{told}")
    for warning in status["warnings"]:
        typer.echo(f"tacit: {warning}", err=True)
