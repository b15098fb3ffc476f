"""``tacit models``: the versions that were published: list them, check them, go back to one, add a release."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from tacit.errors import TacitError

app = typer.Typer(help="List, check and choose published versions of a model.", no_args_is_help=True)

Folder = Annotated[
    Path, typer.Option("--models", help="The folder that `tacit fit --models` published to.", file_okay=False)
]
_USUAL = Path(os.environ.get("TACIT_SERVE_MODELS") or Path(os.environ.get("TACIT_SERVE_HOME", "tacit-home")) / "models")


@app.command("list", epilog="Example: tacit models list")
def list_versions(models: Folder = _USUAL) -> None:
    """Name every version, the newest first; * is the one that is served."""
    from tacit.service.versions import current, versions

    found = versions(models)
    served = current(models).name if found else ""
    for one in found:
        day = datetime.fromtimestamp(one.published, tz=UTC).strftime("%Y-%m-%d %H:%M")
        releases = ", ".join(release["name"] for release in one.releases) or "-"
        typer.echo(f"{'*' if one.name == served else ' '} {one.name}\t{day}\t{one.manifest['name']}\t{releases}")
    if not found:
        typer.echo(f"Nothing is published in {models}.")


@app.command("check", epilog="Example: tacit models check")
def check(models: Folder = _USUAL) -> None:
    """Compare every file of every version with its checksum. Exit status 1 if one is not what was published."""
    from tacit.service.versions import current, names, read_version

    current(models)  # an upgrade relies on this: where nothing is served, nothing is well
    damaged = 0
    for name in names(models):
        try:
            files = len(read_version(models, name).check().manifest["files"])
            typer.echo(f"{name}: {files} files as they were published.")
        except TacitError as problem:
            damaged += 1
            typer.echo(f"{name}: {problem}")
    if damaged:
        raise typer.Exit(1)


@app.command("use", epilog="Example: tacit models use 3f2a9c0d11e4b7a6")
def use_version(
    version: Annotated[str, typer.Argument(help="Its name.", metavar="VERSION")], models: Folder = _USUAL
) -> None:
    """Serve this version from now on. Running services take it up within seconds, and drop no request."""
    from tacit.service.versions import use

    typer.echo(f"{use(models, version).name} is served now.")


@app.command("add", epilog="Example: tacit models add books books.json")
def add(
    name: Annotated[str, typer.Argument(help="What it is called.", metavar="NAME")],
    file: Annotated[
        Path,
        typer.Argument(help="Released counts, or a transfer model.", metavar="FILE", exists=True, dir_okay=False),
    ],
    models: Folder = _USUAL,
) -> None:
    """Publish the version that is served with one release more. Devices fetch it from /v1/releases."""
    from tacit.service.versions import add_release, read_release

    release = read_release(file)
    typer.echo(f"{release.guarantee}\npublished as version {add_release(models, name, release).name}")


@app.command("tidy", epilog="Example: tacit models tidy --keep 3")
def tidy_versions(
    models: Folder = _USUAL,
    keep: Annotated[int, typer.Option(help="So many besides the one that is served.", min=0)] = 3,
) -> None:
    """Delete old versions."""
    from tacit.service.versions import tidy

    gone = tidy(models, keep)
    typer.echo(f"Deleted {', '.join(gone) or 'nothing'}.")
