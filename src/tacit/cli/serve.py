"""``tacit serve``: a published model over HTTP, with a page to try it; or a curator, in a process of its own."""

import os
import subprocess
import sys
from contextlib import suppress
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from socket import create_connection
from threading import Thread
from time import sleep
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.errors import InvalidModel, MissingExtra

if TYPE_CHECKING:
    from tacit.service.settings import Settings

EMBEDDED = "movielens-small"
_PATIENCE = 600  # half seconds
_LEDGER = "demonstration.db"
SLATES = (0.5, 2.0, 4.0)  # epsilons of the counts that are released of the embedded ratings


def serve(
    home: Annotated[
        Path | None, typer.Option(help="The folder of models, ledger and keys; by default tacit-home.", file_okay=False)
    ] = None,
    host: Annotated[str | None, typer.Option(help="The address to listen at; by default this machine only.")] = None,
    port: Annotated[int | None, typer.Option(help="By default 8000.", min=0, max=65535)] = None,
    workers: Annotated[int | None, typer.Option(help="Processes that answer; by default 1.", min=1, max=256)] = None,
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
    """Serve the published model: page, API and metrics. Where nothing is published yet, fits the embedded ratings first.

    Every setting can also be given as an environment variable TACIT_SERVE_NAME or in the file of settings.
    """
    settings = _settings(
        settings_file, home=home, host=host, port=port, workers=workers, database=database, data=curator
    )
    from tacit.service.run import CURATOR, SERVER, run

    _require_keys(settings)
    if curator is not None:
        _require_ledger(settings)
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
    export(**flags)  # workers are processes of their own, and read the environment
    return read_settings()


def _require_published(settings: "Settings") -> None:
    """Something to serve: where nothing is published, the embedded ratings are fitted, in another process."""
    from tacit.ledger import ImpressionLedger, PrivacyLedger
    from tacit.service.versions import current, mark_demonstration, names

    models = settings.models_folder
    settings.home.mkdir(parents=True, exist_ok=True)
    if not (models / "current").exists():
        typer.echo(f"Nothing is published in {models} yet: fitting the embedded ratings, {EMBEDDED} ...", err=True)
        ledger = settings.home / _LEDGER  # not an operator's own, whose budget is not for showing something
        PrivacyLedger.open_or_create(ledger).close()
        words = [sys.executable, "-m", "tacit", "fit", EMBEDDED, "--models", str(models), "--ledger", str(ledger)]
        for epsilon in SLATES:
            words += ["--slates", str(epsilon)]
        # Raw ratings are read by a process that ends before anything is served.
        if subprocess.run(words, check=False).returncode:
            raise InvalidModel("the embedded ratings could not be fitted; the lines above say why.")
        if len(names(models)) == 1:  # or somebody else has published meanwhile
            mark_demonstration(current(models))
    current(models).check()
    ImpressionLedger.open_or_create(settings.database_target).close()  # once, before several workers open it


def _require_keys(settings: "Settings") -> None:
    """That they can be read, if there are any."""
    from tacit.service.keys import Keys

    Keys(settings.keys_file)


def _require_ledger(settings: "Settings") -> None:
    """Looked for before anything listens: whoever started the curator is there to read what is wrong with it."""
    from tacit.service.curator_app import opened_ledger

    opened_ledger(settings).close()


def _announce(settings: "Settings", port: int, ready: str) -> None:
    """At once that it starts, and that it is ready when it is: the line that a person looks for is then the last one."""
    address = _address(settings, port)
    typer.echo(f"Starting. It is at {address} in a moment ...", err=True)
    Thread(target=_wait, args=(settings, port, ready.format(address)), daemon=True).start()


def _wait(settings: "Settings", port: int, ready: str) -> None:
    for _ in range(_PATIENCE):
        sleep(0.5)
        with suppress(OSError, HTTPException):
            if settings.tls_certificate is None:
                asked = HTTPConnection(_reached(settings), port, timeout=2)
                asked.request("GET", "/readyz")
                if asked.getresponse().status != HTTPStatus.OK:
                    continue
            else:  # a certificate need not be for this machine's own name: the port alone is asked
                create_connection((_reached(settings), port), timeout=2).close()
            typer.echo(f"Ready. {ready} Stop with Ctrl-C.", err=True)
            return


def _address(settings: "Settings", port: int) -> str:
    scheme = "https" if settings.tls_certificate else "http"
    host = _reached(settings)
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}/"


def _reached(settings: "Settings") -> str:
    """Where this machine itself finds the service."""
    return "127.0.0.1" if settings.host in ("0.0.0.0", "::") else settings.host
