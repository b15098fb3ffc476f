"""Multi-selection over HTTP: the catalogue that devices build features from, and slates for signals."""

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from tacit.messages.multi_selection import Reply, Request
from tacit.service.bodies import (
    WITH_BODY,
    CatalogueBody,
    ModelBody,
    answers,
    body,
    json_response,
    reply_response,
    request_of,
    wanted_form,
)
from tacit.service.served import Pace
from tacit.service.state import state_of

router = APIRouter(tags=["multi-selection"])
_USUAL = 25  # k times t: up to here an answer takes little longer than for one item


@router.get("/v1/catalogue", responses=answers(CatalogueBody, 304), response_class=Response)
async def catalogue(http: HttpRequest) -> Response:
    """Returns the public facts that a device needs: items, titles, and how to compute features from ratings.

    The answer is the same for everybody. Send its `ETag` as `If-None-Match`, and you get 304 while it has not changed.
    """
    return state_of(http).served.catalogue.sent(http, "public, max-age=60")


@router.post(
    "/v1/multi-selection",
    responses=answers(Reply, *WITH_BODY, 406, binary=True),
    openapi_extra=body(Request, binary=True),
    response_class=Response,
)
async def slate(http: HttpRequest) -> Response:
    """Answers a signal with a slate of `k` items and a local model with which the device picks its `t` best.

    The server never learns which items the device picks. The answer has the form of the request, JSON or compact, unless `Accept`
    asks for the other one.
    """
    state = state_of(http)
    served = state.served
    request, form = await request_of(http)
    request.require(dimension=served.store.space.dimension, most_k=state.settings.most_k, simulated=False)
    form = wanted_form(http, form)

    def work() -> Reply:
        return served.multi_selection.answer(request.signal, request.k, request.t)

    pace = served.pace if request.k * request.t <= _USUAL else Pace.BESIDE
    return reply_response(await state.workbench(work, pace), form)


@router.get("/v1/model", responses=answers(ModelBody), response_class=Response)
async def model(http: HttpRequest) -> Response:
    """Returns the version that answers now, and its guarantee for the people whose ratings it was fitted to."""
    return json_response(state_of(http).served.about)
