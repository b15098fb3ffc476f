"""The curator's application: raw ratings, a ledger beside them, and releases for whoever has an operator's key.

A process of its own. What it sends is a release and carries its guarantee; every one is charged before it is drawn.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from fastapi import APIRouter, FastAPI
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.types import ASGIApp

from tacit.curator import Curator
from tacit.data import load_ratings
from tacit.errors import InvalidMessage, InvalidParameter
from tacit.ledger import Budget, PrivacyLedger
from tacit.ledger.overview import read_noted_head
from tacit.messages import fields
from tacit.service import logs
from tacit.service import metrics as counted
from tacit.service.applications import application
from tacit.service.bodies import json_of, told
from tacit.service.keys import Keys, Scope
from tacit.service.schemas import KEYED, WITH_BODY, answers, body
from tacit.service.settings import Settings, read_settings
from tacit.service.state import allowed, watch_keys, watch_parent

R = TypeVar("R")
router = APIRouter(tags=["curator"])
_NAMES = {"k", "epsilon", "slates", "request_id"}
_MOST_K, _MOST_EPSILON, _MOST_SLATES = 1000, 100.0, 10**6


@dataclass
class CuratorState:
    keys: Keys
    curator: Curator
    thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="curator"))

    async def alone(self, work: Callable[[], R]) -> R:
        """One after the other: a draw reads all ratings, and a second one gains nothing by waiting for memory."""
        return await asyncio.get_running_loop().run_in_executor(self.thread, work)


def create() -> ASGIApp:
    logs.set_up()
    with logs.told_if_it_fails(ends=True):
        return create_app(read_settings())


def create_app(settings: Settings) -> ASGIApp:
    keys = Keys(settings.keys_file)
    if settings.data is None:
        raise InvalidParameter("a curator holds ratings: name them, tacit serve --curator movielens-small.")

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        with logs.told_if_it_fails():
            state = CuratorState(keys, await asyncio.to_thread(_curator, settings))
        app.state.curator = state
        watching = [asyncio.create_task(one) for one in (watch_keys(keys), watch_parent())]
        try:
            yield
        finally:
            for task in watching:
                task.cancel()
            state.thread.shutdown()
            state.curator.ledger.close()
            counted.leave()

    return application("tacit curator", [router], settings, keys, lifespan)[1]


@router.post(
    "/v1/slates",
    responses=answers("Slate", *WITH_BODY, 401, 403, 409),
    openapi_extra={**KEYED, **body("SlateRequest")},
    response_class=Response,
)
async def slate(http: HttpRequest) -> Response:
    """One slate, charged to everybody's budget and then drawn. The same ``request_id`` again is the same slate, for nothing."""
    state = _state(http)
    asked = _asked(await json_of(http), _NAMES)
    found = await state.alone(
        lambda: state.curator.slate(
            asked["k"], asked["epsilon"], slates=asked["slates"], request_id=asked["request_id"]
        )
    )
    counted.PAID.labels("slate").inc()
    return told(found.to_json())


@router.post(
    "/v1/popularity",
    responses=answers("Popularity", *WITH_BODY, 401, 403, 409),
    openapi_extra={**KEYED, **body("PopularityRequest")},
    response_class=Response,
)
async def popularity(http: HttpRequest) -> Response:
    """Noisy counts for any number of slates: charged and drawn once, then always the same."""
    state = _state(http)
    asked = _asked(await json_of(http), {"epsilon"})
    found = await state.alone(lambda: state.curator.popularity(asked["epsilon"]))
    counted.PAID.labels("popularity").inc()
    return told(found.to_json())


@router.get(
    "/v1/statement", responses=answers("LedgerStatement", 401, 403), openapi_extra=KEYED, response_class=Response
)
async def statement(http: HttpRequest) -> Response:
    """What was charged, and what is left."""
    state = _state(http)
    return told((await state.alone(state.curator.statement)).to_json())


@router.get("/healthz", responses=answers("State"), response_class=Response)
async def health() -> Response:
    return told({"state": "alive"})


@router.get("/readyz", responses=answers("State"), response_class=Response)
async def readiness(http: HttpRequest) -> Response:
    """Whether ratings are loaded and the ledger can be read."""
    state = cast(CuratorState, http.app.state.curator)
    await state.alone(state.curator.statement)
    return told({"state": "ready"})


@router.get("/metrics", responses=answers(None, 401, 403), openapi_extra=KEYED, response_class=Response)
async def metrics(http: HttpRequest) -> Response:
    _state(http)
    content, media_type = counted.exposition()
    return Response(content, headers={"Content-Type": media_type})


def opened_ledger(settings: Settings) -> PrivacyLedger:
    """It is never made by the way: one that was lost must not look like a fresh budget. With a noted head, nor an old copy."""
    head = None
    if settings.head is not None:
        try:
            head = read_noted_head(settings.head.read_text(encoding="utf-8", errors="replace"))
        except OSError as problem:
            raise InvalidParameter(f"the noted head {settings.head} cannot be read ({problem.strerror}).") from None
    return PrivacyLedger.open(settings.ledger_target, head=head)


def _curator(settings: Settings) -> Curator:
    """Without a budget of its own, under the one that was agreed before, or else an epsilon of 1."""
    given = settings.budget_epsilon
    budget = None if given is None else Budget(given, delta=settings.budget_delta)
    ratings = load_ratings(cast(str, settings.data))
    ledger = opened_ledger(settings)
    try:
        return Curator(ratings, ledger=ledger, budget=budget, subject=settings.subject)
    except BaseException:
        ledger.close()
        raise


def _state(http: HttpRequest) -> CuratorState:
    state = cast(CuratorState, http.app.state.curator)
    allowed(state.keys, http, Scope.OPERATOR)
    return state


def _asked(value: object, names: set[str]) -> dict[str, Any]:
    """The wishes that a caller named, with the usual ones for the rest."""
    if not isinstance(value, dict) or not set(value) <= names:
        raise InvalidMessage(f"a wish is an object with some of {', '.join(sorted(names))}.")
    epsilon = fields.real(value.get("epsilon", 1.0), "$.epsilon")
    if not 0.0 < epsilon <= _MOST_EPSILON or not math.isfinite(epsilon):
        raise InvalidMessage(f"expected an epsilon above 0 and at most {_MOST_EPSILON:g} at $.epsilon.")
    named = value.get("request_id")
    return {
        "epsilon": epsilon,
        "k": fields.whole(value.get("k", 10), "$.k", least=1, most=_MOST_K),
        "slates": fields.whole(value.get("slates", 1), "$.slates", least=1, most=_MOST_SLATES),
        "request_id": None if named is None else fields.text(named, "$.request_id", least=1, most=100),
    }
