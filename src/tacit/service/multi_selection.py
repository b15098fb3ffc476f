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
    message_of,
    message_response,
    wanted_form,
)
from tacit.service.served import Pace
from tacit.service.state import state_of

router = APIRouter(tags=["multi-selection"])
_USUAL = 25  # k times t: up to here an answer takes little longer than for one item


@router.get("/v1/catalogue", responses=answers(CatalogueBody, 304), response_class=Response)
async def catalogue(http: HttpRequest) -> Response:
    """The public facts that a device needs: items, titles, and how to compute features from ratings. They are the same for
    everybody."""
    return state_of(http).served.catalogue.sent(http, "public, max-age=60")


@router.post(
    "/v1/multi-selection",
    responses=answers(Reply, *WITH_BODY, 406, binary=True),
    openapi_extra=body(Request, binary=True),
    response_class=Response,
)
async def slate(http: HttpRequest) -> Response:
    """A slate of k items and a local model, for a signal. The server never learns which item the device picks."""
    state = state_of(http)
    served = state.served
    request, form = await message_of(http, Request.from_bytes, Request.from_json)
    request.require(dimension=served.store.space.dimension, most_k=state.settings.most_k, simulated=False)
    form = wanted_form(http, form)

    def work() -> Reply:
        return served.multi_selection.answer(request.signal, request.k, request.t)

    pace = served.pace if request.k * request.t <= _USUAL else Pace.BESIDE
    return message_response(await state.workbench(work, pace), form)


@router.get("/v1/model", responses=answers(ModelBody), response_class=Response)
async def model(http: HttpRequest) -> Response:
    """The version that answers, and its guarantee for the people whose ratings it was fitted to."""
    return json_response(state_of(http).served.about)
