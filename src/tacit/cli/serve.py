"""``tacit serve`` serves a published model over HTTP, with a page to try it, or serves as a curator.

``tacit keys`` manages the keys of a service; devices need no key. ``tacit models`` manages the published versions of a
model.
"""

import os
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from socket import create_connection
from threading import Thread
from time import sleep
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.errors import InvalidModel, MissingExtra, TacitError

if TYPE_CHECKING:
    from tacit.service.settings import Settings

keys = typer.Typer(help="Add, list and revoke API keys of a service.", no_args_is_help=True)
models = typer.Typer(help="List, check and choose published versions of a model.", no_args_is_help=True)

EMBEDDED = "movielens-small"
SLATES = (0.5, 2.0, 4.0)  # epsilons of the counts that are released from the embedded ratings
_DEMONSTRATION_LEDGER = "demonstration.db"
_PATIENCE = 600  # half seconds until the service has to be ready

_HOME = Path(os.environ.get("TACIT_SERVE_HOME", "tacit-home"))
_KEYS = Path(os.environ.get("TACIT_SERVE_KEYS") or _HOME / "keys.json")
_MODELS = Path(os.environ.get("TACIT_SERVE_MODELS") or _HOME / "models")
KeysFile = Annotated[Path, typer.Option("--keys", help="The file of keys.", dir_okay=False)]
KeyName = Annotated[str, typer.Argument(help="Your name for the key.", metavar="NAME")]
ModelsFolder = Annotated[
    Path, typer.Option("--models", help="The folder that `tacit fit --models` published to.", file_okay=False)
]


def serve(
    home: Annotated[
        Path | None, typer.Option(help="The folder of models, ledger and keys; by default tacit-home.", file_okay=False)
    ] = None,
    host: Annotated[str | None, typer.Option(help="The address to listen at; by default this machine only.")] = None,
    port: Annotated[int | None, typer.Option(help="The port; by default 8000.", min=0, max=65535)] = None,
    workers: Annotated[
        int | None, typer.Option(help="The number of processes that answer; by default 1.", min=1, max=256)
    ] = None,
    database: Annotated[
        str | None, typer.Option(help="The ledger of impressions: a file, or postgresql://...", metavar="TARGET")
    ] = None,
    settings_file: Annotated[
        Path | None, typer.Option("--settings", help="A TOML file of settings.", exists=True, dir_okay=False)
    ] = None,
    curator: Annotated[
        str | None, typer.Option(help="Serve as the curator of these ratings instead.", metavar="NAME|PATH")
    ] = None,
) -> None:
    """Serve the published model: page, API and metrics. If nothing is published yet, fit the embedded ratings first.

    You can also give every setting as an environment variable TACIT_SERVE_NAME, or in the file of settings.
    """
    settings = _settings(
        settings_file, home=home, host=host, port=port, workers=workers, database=database, data=curator
    )
    from tacit.service.keys import KeyRing
    from tacit.service.run import CURATOR, SERVER, run

    KeyRing(settings.keys_file)  # raises now if they cannot be read
    if curator is not None:
        from tacit.service.curator_app import open_ledger

        open_ledger(settings).close()  # raises now: once it listens, nobody may be there to read the error
        run(CURATOR, settings, listening=lambda at: _announce(settings, at, f"The curator of {curator} is at {{}}"))
        return
    _require_published(settings)
    run(SERVER, settings, listening=lambda at: _announce(settings, at, "Open {} in a browser."))


def _settings(file: Path | None, **flags: object) -> "Settings":
    try:
        from tacit.service.settings import FILE, export, read_settings
    except ImportError:
        raise MissingExtra("serving needs more packages: pip install 'tacit[service]'.") from None
    if file is not None:
        os.environ[FILE] = str(file)
    export(**flags)  # workers are separate processes, and read the environment
    return read_settings()


def _require_published(settings: "Settings") -> None:
    """Makes sure that there is a version to serve. If nothing is published, fits the embedded ratings in another process."""
    from tacit.ledger import ImpressionLedger, PrivacyLedger
    from tacit.service.versions import current, mark_demonstration, names

    folder = settings.models_folder
    settings.home.mkdir(parents=True, exist_ok=True)
    if not (folder / "current").exists():
        typer.echo(f"Nothing is published in {folder} yet: fitting the embedded ratings, {EMBEDDED} ...", err=True)
        # Demonstrations have their own ledger: they must not spend the operator's budget.
        ledger = settings.home / _DEMONSTRATION_LEDGER
        PrivacyLedger.open_or_create(ledger).close()
        words = [sys.executable, "-m", "tacit", "fit", EMBEDDED, "--models", str(folder), "--ledger", str(ledger)]
        for epsilon in SLATES:
            words += ["--slates", str(epsilon)]
        # Another process reads the raw ratings, and ends before this one serves anything.
        if subprocess.run(words, check=False).returncode:
            raise InvalidModel("the embedded ratings could not be fitted; see the lines above.")
        if len(names(folder)) == 1:  # no other process has published meanwhile
            mark_demonstration(current(folder))
    current(folder).check()
    ImpressionLedger.open_or_create(settings.database_target).close()  # once, before several workers open it


def _announce(settings: "Settings", port: int, ready: str) -> None:
    """Prints at once that the service starts, and ``ready`` with its address once it answers."""
    address = _address(settings, port)
    typer.echo(f"Starting. It will be at {address} in a moment ...", err=True)
    Thread(target=_wait_until_ready, args=(settings, port, ready.format(address)), daemon=True).start()


def _wait_until_ready(settings: "Settings", port: int, ready: str) -> None:
    for _ in range(_PATIENCE):
        sleep(0.5)
        with suppress(OSError, HTTPException):
            if settings.tls_certificate is None:
                connection = HTTPConnection(_own_host(settings), port, timeout=2)
                connection.request("GET", "/readyz")
                if connection.getresponse().status != HTTPStatus.OK:
                    continue
            else:  # the certificate may be for another name, so this only tries the port
                create_connection((_own_host(settings), port), timeout=2).close()
            typer.echo(f"Ready. {ready} Stop with Ctrl-C.", err=True)
            return


def _address(settings: "Settings", port: int) -> str:
    scheme = "https" if settings.tls_certificate else "http"
    host = _own_host(settings)
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}/"


def _own_host(settings: "Settings") -> str:
    """The host name at which this machine itself reaches the service."""
    return "127.0.0.1" if settings.host in ("0.0.0.0", "::") else settings.host


@keys.command("add", epilog="Example: tacit keys add acme --scope statements --item 318 --item 858")
def add_key(
    name: KeyName,
    scope: Annotated[str, typer.Option(help="What the key allows: operator, statements or entity.")],
    item: Annotated[
        list[str] | None, typer.Option(help="With scope statements: an item of the key; repeat the option for several.")
    ] = None,
    entity: Annotated[str, typer.Option(help="With scope entity: the entity of the key.")] = "",
    expires: Annotated[
        datetime | None, typer.Option(help="The last day on which the key is valid (UTC).", formats=["%Y-%m-%d"])
    ] = None,
    file: KeysFile = _KEYS,
) -> None:
    """Add a key and print it. It is printed only this once: the file stores a digest."""
    from tacit.checks import member
    from tacit.service.keys import Scope, issue

    day = None if expires is None else expires.date()
    text = issue(file, name, member("scope", Scope, scope), items=item or (), entity=entity, expires=day)
    typer.echo(f"Added to {file}; the key is shown only this once:", err=True)
    typer.echo(text)


@keys.command("list", epilog="Example: tacit keys list")
def list_keys(file: KeysFile = _KEYS) -> None:
    """List every key, what it allows and until when."""
    from tacit.service.keys import read

    for key in read(file):
        subject = key.entity or (", ".join(key.items[:5]) + (" ..." if len(key.items) > 5 else ""))
        typer.echo(
            f"{key.name}\t{key.scope}\t{subject or '-'}\t{f'until {key.expires}' if key.expires else 'until revoked'}"
        )


@keys.command("revoke", epilog="Example: tacit keys revoke acme")
def revoke_key(name: KeyName, file: KeysFile = _KEYS) -> None:
    """Revoke a key. Running services refuse it within seconds."""
    from tacit.service.keys import revoke

    revoke(file, name)
    typer.echo(f"Revoked {name}.")


@models.command("list", epilog="Example: tacit models list")
def list_versions(folder: ModelsFolder = _MODELS) -> None:
    """List every version, the newest first; * marks the one that is served."""
    from tacit.service.versions import current, versions

    published = versions(folder)
    served = current(folder).name if published else ""
    for version in published:
        day = datetime.fromtimestamp(version.published, tz=UTC).strftime("%Y-%m-%d %H:%M")
        releases = ", ".join(release["name"] for release in version.releases) or "-"
        typer.echo(
            f"{'*' if version.name == served else ' '} {version.name}\t{day}\t{version.manifest['name']}\t{releases}"
        )
    if not published:
        typer.echo(f"Nothing is published in {folder}.")


@models.command("check", epilog="Example: tacit models check")
def check_versions(folder: ModelsFolder = _MODELS) -> None:
    """Compare every file of every version with its checksum. The exit status is 1 if a file was changed."""
    from tacit.service.versions import current, names, read_version

    current(folder)  # an upgrade relies on this check: without a served version it must fail
    damaged = 0
    for name in names(folder):
        try:
            files = len(read_version(folder, name).check().manifest["files"])
            typer.echo(f"{name}: {files} files, all unchanged.")
        except TacitError as problem:
            damaged += 1
            typer.echo(f"{name}: {problem}")
    if damaged:
        raise typer.Exit(1)


@models.command("use", epilog="Example: tacit models use 3f2a9c0d11e4b7a6")
def use_version(
    version: Annotated[str, typer.Argument(help="The name of the version.", metavar="VERSION")],
    folder: ModelsFolder = _MODELS,
) -> None:
    """Serve this version from now on. Running services switch to it within seconds and drop no request."""
    from tacit.service.versions import use

    typer.echo(f"{use(folder, version).name} is served now.")


@models.command("add", epilog="Example: tacit models add books books.json")
def add_to_version(
    name: Annotated[str, typer.Argument(help="The name of the release.", metavar="NAME")],
    file: Annotated[
        Path,
        typer.Argument(help="Released counts, or a transfer model.", metavar="FILE", exists=True, dir_okay=False),
    ],
    folder: ModelsFolder = _MODELS,
) -> None:
    """Publish the served version again with one more release. Devices fetch it from /v1/releases."""
    from tacit.service.versions import add_release, read_release

    release = read_release(file)
    typer.echo(f"{release.guarantee}\npublished as version {add_release(folder, name, release).name}")


@models.command("tidy", epilog="Example: tacit models tidy --keep 3")
def tidy_versions(
    folder: ModelsFolder = _MODELS,
    keep: Annotated[int, typer.Option(help="The number of versions to keep besides the served one.", min=0)] = 3,
) -> None:
    """Delete old versions. The served version stays."""
    from tacit.service.versions import tidy

    deleted = tidy(folder, keep)
    typer.echo(f"Deleted {', '.join(deleted) or 'nothing'}.")
