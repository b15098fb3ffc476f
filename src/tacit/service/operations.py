"""For whoever runs the service: is it alive, is it ready, what does it count."""

import asyncio

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from tacit.service.bodies import told
from tacit.service.keys import Scope
from tacit.service.metrics import exposition
from tacit.service.schemas import KEYED, answers
from tacit.service.state import allowed, state_of

router = APIRouter(tags=["operations"])


@router.get("/healthz", responses=answers("State"), response_class=Response)
async def health() -> Response:
    """Whether this process answers at all."""
    return told({"state": "alive"})


@router.get("/readyz", responses=answers("State"), response_class=Response)
async def readiness(http: HttpRequest) -> Response:
    """Whether there is a model, and a ledger that can be read."""
    state = state_of(http)
    _ = state.served
    await asyncio.to_thread(state.ledger.item, "ready?")
    return told({"state": "ready"})


@router.get("/metrics", responses=answers(None, 401, 403), openapi_extra=KEYED, response_class=Response)
async def metrics(http: HttpRequest) -> Response:
    """Counts and times for Prometheus, of all workers together."""
    allowed(state_of(http).keys, http, Scope.OPERATOR)
    content, media_type = await asyncio.to_thread(exposition)
    return Response(content, headers={"Content-Type": media_type})
