"""``tacit keys``: add, list and revoke the keys of a service. Devices need none."""

import os
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Add, list and revoke API keys of a service.", no_args_is_help=True)

File = Annotated[Path, typer.Option("--keys", help="The file of keys.", dir_okay=False)]
_USUAL = Path(
    os.environ.get("TACIT_SERVE_KEYS") or Path(os.environ.get("TACIT_SERVE_HOME", "tacit-home")) / "keys.json"
)
Name = Annotated[str, typer.Argument(help="What you call it.", metavar="NAME")]


@app.command("add", epilog="Example: tacit keys add acme --scope statements --item 318 --item 858")
def add(
    name: Name,
    scope: Annotated[str, typer.Option(help="operator, statements or entity.")],
    item: Annotated[list[str] | None, typer.Option(help="An item that a key for statements is for; repeat it.")] = None,
    entity: Annotated[str, typer.Option(help="The entity that a key for an entity is for.")] = "",
    expires: Annotated[
        datetime | None, typer.Option(help="The last day on which it holds (UTC).", formats=["%Y-%m-%d"])
    ] = None,
    file: File = _USUAL,
) -> None:
    """Make a key. It is printed now and never again: what is kept is a digest."""
    from tacit.checks import member
    from tacit.service.keys import Scope, issue

    day = None if expires is None else expires.date()
    text = issue(file, name, member("scope", Scope, scope), items=item or (), entity=entity, expires=day)
    typer.echo(f"Added to {file}; this is the only time that it is shown:", err=True)
    typer.echo(text)


@app.command("list", epilog="Example: tacit keys list")
def list_keys(file: File = _USUAL) -> None:
    """Name every key, what it may do and until when."""
    from tacit.service.keys import read

    for key in read(file):
        what = key.entity or (", ".join(key.items[:5]) + (" ..." if len(key.items) > 5 else ""))
        typer.echo(
            f"{key.name}\t{key.scope}\t{what or '-'}\t{f'until {key.expires}' if key.expires else 'until revoked'}"
        )


@app.command("revoke", epilog="Example: tacit keys revoke acme")
def revoke_key(name: Name, file: File = _USUAL) -> None:
    """End a key: within seconds nobody can use it."""
    from tacit.service.keys import revoke

    revoke(file, name)
    typer.echo(f"Revoked {name}.")
