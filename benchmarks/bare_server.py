"""The framework without our layers: an endpoint that does nothing, and two that do the same work as ours and nothing else. And our
layers without the work: the service itself, which gives everybody the first slate that it worked out.

An endpoint that works is dearer than an empty one by more than its work: between two requests the caches fill with tables.
"""

import asyncio
import sys

from fastapi import FastAPI
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.types import ASGIApp

from tacit.ledger import ImpressionLedger
from tacit.messages.multi_selection import Reply, Signal
from tacit.messages.private_selection import OfferRequest
from tacit.server import MultiSelection
from tacit.service import server_app
from tacit.service.bodies import JSON
from tacit.service.run import run
from tacit.service.served import ServedVersion
from tacit.service.settings import read_settings
from tacit.service.versions import current


def create() -> FastAPI:
    settings = read_settings()
    ledger = ImpressionLedger.open_or_create(settings.database_target)
    served = ServedVersion(current(settings.models_folder), settings, ledger).warm_up()
    app = FastAPI(docs_url=None, redoc_url=None)

    @app.post("/empty", response_class=Response)
    async def empty(http: HttpRequest) -> Response:
        await http.body()
        return Response(b"{}", media_type=JSON)

    @app.post("/multi-selection", response_class=Response)
    async def multi_selection(http: HttpRequest) -> Response:
        return Response(served.multi_selection.answer_bytes(await http.body()))

    @app.post("/offers", response_class=Response)
    async def offers(http: HttpRequest) -> Response:
        await http.body()
        await asyncio.to_thread(
            served.private_selection.offer, OfferRequest("", True)
        )  # the ledger groups threads' commits
        return Response(b"{}", media_type=JSON)

    return app


def create_without_work() -> ASGIApp:
    """All of ours but this: a slate is worked out once, and then known."""
    known: dict[tuple[int, int], Reply] = {}
    answer = MultiSelection.answer

    def known_answer(self: MultiSelection, signal: Signal, k: int = 5, t: int = 1) -> Reply:
        if (k, t) not in known:
            known[k, t] = answer(self, signal, k, t)
        return known[k, t]

    MultiSelection.answer = known_answer  # type: ignore[method-assign]
    return server_app.create()


if __name__ == "__main__":
    run(
        f"benchmarks.bare_server:{sys.argv[1]}",
        read_settings(),
        listening=lambda port: print(f"http://127.0.0.1:{port}/", file=sys.stderr),
    )
