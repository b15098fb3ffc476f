"""The curator's application: it holds raw ratings and a ledger, and sends releases to callers with an operator's key.

It runs in its own process. Each release carries its guarantee, and is charged before it is drawn.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar, cast

from fastapi import APIRouter, FastAPI
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.types import ASGIApp

from tacit.curator import Curator
from tacit.data import load_ratings
from tacit.errors import InvalidParameter
from tacit.ledger import Budget, PrivacyLedger
from tacit.ledger.overview import read_noted_head
from tacit.messages.codec import read
from tacit.messages.private_slates import Popularity, Slate
from tacit.service import telemetry
from tacit.service.application import application
from tacit.service.bodies import (
    KEYED,
    WITH_BODY,
    LedgerStatementBody,
    PopularityRequest,
    SlateRequest,
    StateBody,
    answers,
    body,
    json_of,
    json_response,
)
from tacit.service.keys import KeyRing, Scope
from tacit.service.settings import Settings, read_settings
from tacit.service.state import allowed, watch_keys, watch_parent

R = TypeVar("R")
router = APIRouter(tags=["curator"])


@dataclass
class CuratorState:
    """The state that all routes share. One thread does all work on the ratings."""

    keys: KeyRing
    curator: Curator
    thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="curator"))

    async def alone(self, work: Callable[[], R]) -> R:
        """Runs one piece of work at a time: a draw reads all ratings, and two draws at once would compete for memory."""
        return await asyncio.get_running_loop().run_in_executor(self.thread, work)


def create() -> ASGIApp:
    """The application for uvicorn: settings from the environment, logs as JSON."""
    telemetry.set_up()
    with telemetry.log_failure(ends=True):
        return create_app(read_settings())


def create_app(settings: Settings) -> ASGIApp:
    """The application. It reads the ratings and opens the ledger when it starts."""
    keys = KeyRing(settings.keys_file)
    if settings.data is None:
        raise InvalidParameter("a curator needs ratings; for example: tacit serve --curator movielens-small.")

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        with telemetry.log_failure():
            state = CuratorState(keys, await asyncio.to_thread(_open_curator, settings))
        app.state.curator = state
        watchers = [asyncio.create_task(work) for work in (watch_keys(keys), watch_parent())]
        try:
            yield
        finally:
            for task in watchers:
                task.cancel()
            state.thread.shutdown()
            state.curator.ledger.close()
            telemetry.leave()

    return application("tacit curator", [router], settings, keys, lifespan)


@router.post(
    "/v1/slates",
    responses=answers(Slate, *WITH_BODY, 401, 403, 409),
    openapi_extra={**KEYED, **body(SlateRequest)},
    response_class=Response,
)
async def slate(http: HttpRequest) -> Response:
    """Charges the budget of all users, then draws one slate of `k` items. `slates` such slates together cost `epsilon`.

    With a `request_id` you can repeat a request safely: it returns the same slate again, free of charge.
    """
    state = _authorised_state(http)
    request: SlateRequest = read(await json_of(http), SlateRequest, "a request for a slate")
    release = await state.alone(
        lambda: state.curator.slate(request.k, request.epsilon, slates=request.slates, request_id=request.request_id)
    )
    telemetry.PAID.labels("slate").inc()
    return json_response(release)


@router.post(
    "/v1/popularity",
    responses=answers(Popularity, *WITH_BODY, 401, 403, 409),
    openapi_extra={**KEYED, **body(PopularityRequest)},
    response_class=Response,
)
async def popularity(http: HttpRequest) -> Response:
    """Returns noisy counts of likes, from which any number of slates can be computed.

    The counts are charged and drawn once. Repeating the request returns the same counts, free of charge.
    """
    state = _authorised_state(http)
    request: PopularityRequest = read(await json_of(http), PopularityRequest, "a request for counts")
    release = await state.alone(lambda: state.curator.popularity(request.epsilon))
    telemetry.PAID.labels("popularity").inc()
    return json_response(release)


@router.get(
    "/v1/statement", responses=answers(LedgerStatementBody, 401, 403), openapi_extra=KEYED, response_class=Response
)
async def statement(http: HttpRequest) -> Response:
    """Returns what was charged for releases, and what is left of the budget."""
    state = _authorised_state(http)
    account = await state.alone(state.curator.statement)
    return json_response(LedgerStatementBody(**account.to_json() | {"promised": account.promised}))


@router.get("/healthz", responses=answers(StateBody), response_class=Response)
async def health() -> Response:
    """Answers whenever the process is running. Use it as a liveness probe."""
    return json_response(StateBody("alive"))


@router.get("/readyz", responses=answers(StateBody), response_class=Response)
async def readiness(http: HttpRequest) -> Response:
    """Answers 200 if the ratings are loaded and the ledger can be read, otherwise a problem. Use it as a readiness probe."""
    state = cast(CuratorState, http.app.state.curator)
    await state.alone(state.curator.statement)
    return json_response(StateBody("ready"))


@router.get("/metrics", responses=answers(None, 401, 403), openapi_extra=KEYED, response_class=Response)
async def metrics(http: HttpRequest) -> Response:
    """Returns counts and times, as text for Prometheus."""
    _authorised_state(http)
    content, media_type = telemetry.exposition()
    return Response(content, headers={"Content-Type": media_type})


def open_ledger(settings: Settings) -> PrivacyLedger:
    """Opens the curator's ledger. tacit never recreates a lost ledger: that would be a fresh budget.

    With a noted head (`tacit ledger show --head`), it also refuses an older copy of the ledger.
    """
    head = None
    if settings.head is not None:
        try:
            head = read_noted_head(settings.head.read_text(encoding="utf-8", errors="replace"))
        except OSError as problem:
            raise InvalidParameter(f"the noted head {settings.head} cannot be read ({problem.strerror}).") from None
    return PrivacyLedger.open(settings.ledger_target, head=head)


def _open_curator(settings: Settings) -> Curator:
    """Opens the curator with the budget in the settings, by default the budget agreed before or an epsilon of 1."""
    epsilon = settings.budget_epsilon
    budget = None if epsilon is None else Budget(epsilon, delta=settings.budget_delta)
    ratings = load_ratings(cast(str, settings.data))
    ledger = open_ledger(settings)
    try:
        return Curator(ratings, ledger=ledger, budget=budget, subject=settings.subject)
    except BaseException:
        ledger.close()
        raise


def _authorised_state(http: HttpRequest) -> CuratorState:
    """The state. Raises a Problem unless the caller has an operator's key."""
    state = cast(CuratorState, http.app.state.curator)
    allowed(state.keys, http, Scope.OPERATOR)
    return state
