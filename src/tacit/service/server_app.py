"""The server's application. It sees releases only: an import contract keeps raw ratings and mechanisms away from it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib.resources import files

from fastapi import APIRouter, FastAPI
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.types import ASGIApp

from tacit.errors import LedgerUnavailable
from tacit.ledger import ImpressionLedger
from tacit.messages.federated_prototypes.frame import MOST_BYTES
from tacit.service import federated_prototypes, multi_selection, private_selection, private_slates, telemetry
from tacit.service.application import application
from tacit.service.bodies import KEYED, Packed, Problem, StateBody, answers, json_response
from tacit.service.keys import KeyRing, Scope
from tacit.service.served import Shelf
from tacit.service.settings import Settings, read_settings
from tacit.service.state import State, allowed, state_of, watch_keys, watch_parent

_PATIENCE = 30  # seconds that a database may be unreachable when a worker starts
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_START = "index.html"
operations_router = APIRouter(tags=["operations"])
page_router = APIRouter(include_in_schema=False)


def create() -> ASGIApp:
    """The application for uvicorn: settings from the environment, logs as JSON."""
    telemetry.set_up()
    with telemetry.log_failure(ends=True):
        return create_app(read_settings())


def create_app(settings: Settings) -> ASGIApp:
    """The application, with its routes and its edge. It opens the ledger and loads the model when it starts."""
    keys = KeyRing(settings.keys_file)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        with telemetry.log_failure():
            ledger = await _open_ledger(settings.database_target)
        state = State(settings, keys, ledger, Shelf(settings, ledger))
        app.state.service = state
        try:
            with telemetry.log_failure():
                await asyncio.to_thread(state.shelf.begin)
            watchers = [asyncio.create_task(work) for work in (state.shelf.watch(), watch_keys(keys), watch_parent())]
            try:
                yield
            finally:
                for task in watchers:
                    task.cancel()
        finally:
            await state.close()
            telemetry.leave()

    def most_body(path: str) -> int:  # shares of a federation's sums are large, and their senders have a key
        return MOST_BYTES if path.startswith(federated_prototypes.PREFIX) else settings.most_body

    routers = [*_ROUTERS, page_router] if settings.page else _ROUTERS
    return application("tacit server", routers, settings, keys, lifespan, most_body=most_body)


async def _open_ledger(target: str) -> ImpressionLedger:
    """Opens the ledger. Waits for a database that is unreachable for a moment."""
    for _ in range(_PATIENCE):
        with suppress(LedgerUnavailable):
            return await asyncio.to_thread(ImpressionLedger.open_or_create, target)
        await asyncio.sleep(1.0)
    return await asyncio.to_thread(ImpressionLedger.open_or_create, target)


@operations_router.get("/healthz", responses=answers(StateBody), response_class=Response)
async def health() -> Response:
    """Answers whenever the process is running. Use it as a liveness probe."""
    return json_response(StateBody("alive"))


@operations_router.get("/readyz", responses=answers(StateBody), response_class=Response)
async def readiness(http: HttpRequest) -> Response:
    """Answers 200 if a model is loaded and the ledger can be read, otherwise a problem. Use it as a readiness probe."""
    state = state_of(http)
    _ = state.served
    await asyncio.to_thread(state.ledger.item, "ready?")
    return json_response(StateBody("ready"))


@operations_router.get("/metrics", responses=answers(None, 401, 403), openapi_extra=KEYED, response_class=Response)
async def metrics(http: HttpRequest) -> Response:
    """Returns the counts and times of all workers together, as text for Prometheus."""
    allowed(state_of(http).keys, http, Scope.OPERATOR)
    content, media_type = await asyncio.to_thread(telemetry.exposition)
    return Response(content, headers={"Content-Type": media_type})


def _read_page() -> dict[str, Packed]:
    """The files of the page, which come with the package. They load nothing from other sites."""
    pages = {}
    for file in (files("tacit.service") / "web").iterdir():
        media_type = next((kind for ending, kind in _TYPES.items() if file.name.endswith(ending)), None)
        if media_type is not None:
            pages[file.name] = Packed(file.read_bytes(), media_type)
    return pages


_FILES = _read_page()


@page_router.get("/")
async def start(http: HttpRequest) -> Response:
    return _send(http, _START)


@page_router.get("/web/{name}")
async def file(http: HttpRequest, name: str) -> Response:
    return _send(http, name)


def _send(http: HttpRequest, name: str) -> Response:
    if name not in _FILES:
        raise Problem("not-found", "there is no such file.")
    return _FILES[name].sent(http, "no-cache")


_ROUTERS = [
    multi_selection.router,
    private_selection.router,
    private_slates.router,
    federated_prototypes.router,
    operations_router,
]
