"""The server's application. It sees what was released; an import contract keeps it from raw ratings and mechanisms."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from fastapi import FastAPI
from starlette.types import ASGIApp

from tacit.errors import LedgerUnavailable
from tacit.ledger import ImpressionLedger
from tacit.service import (
    federated_prototypes,
    logs,
    metrics,
    multi_selection,
    operations,
    page,
    private_selection,
    private_slates,
)
from tacit.service.applications import application
from tacit.service.keys import Keys
from tacit.service.served import Shelf
from tacit.service.settings import Settings, read_settings
from tacit.service.state import State, watch_keys, watch_parent

_ROUTERS = [
    multi_selection.router,
    private_selection.router,
    private_slates.router,
    federated_prototypes.router,
    operations.router,
]


_PATIENCE = 30  # seconds


def create() -> ASGIApp:
    """For uvicorn: settings from the environment, logs as JSON."""
    logs.set_up()
    with logs.told_if_it_fails(ends=True):
        return create_app(read_settings())


def create_app(settings: Settings) -> ASGIApp:
    keys = Keys(settings.keys_file)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        with logs.told_if_it_fails():
            ledger = await _opened(settings.database_target)
        state = State(settings, keys, ledger, Shelf(settings, ledger))
        app.state.service = state
        try:
            with logs.told_if_it_fails():
                await asyncio.to_thread(state.shelf.begin)
            watching = [asyncio.create_task(one) for one in (state.shelf.watch(), watch_keys(keys), watch_parent())]
            try:
                yield
            finally:
                for task in watching:
                    task.cancel()
        finally:
            await state.close()
            metrics.leave()

    routers = [*_ROUTERS, page.router] if settings.page else _ROUTERS
    _, outer = application(
        "tacit server", routers, settings, keys, lifespan, most_body=lambda path: _most(settings, path)
    )
    return outer


async def _opened(target: str) -> ImpressionLedger:
    """A database that is away for a moment, while a worker is replaced, is waited for."""
    for _ in range(_PATIENCE):
        with suppress(LedgerUnavailable):
            return await asyncio.to_thread(ImpressionLedger.open_or_create, target)
        await asyncio.sleep(1.0)
    return await asyncio.to_thread(ImpressionLedger.open_or_create, target)


def _most(settings: Settings, path: str) -> int:
    """Shares of a federation's sums are large, and their senders have a key."""
    return federated_prototypes.MOST if path.startswith(federated_prototypes.PREFIX) else settings.most_body
