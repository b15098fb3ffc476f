"""Multi-selection over HTTP: the catalogue that devices build features from, and slates for signals."""

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from tacit.messages.multi_selection import Reply, Request
from tacit.service.bodies import WITH_BODY, answered, answers, body, message_of, told, wanted_form
from tacit.service.served import Pace
from tacit.service.state import state_of

router = APIRouter(tags=["multi-selection"])
_USUAL = 25  # k times t: up to here an answer takes hardly longer than for one item


@router.get("/v1/catalogue", responses=answers("Catalogue", 304), response_class=Response)
async def catalogue(http: HttpRequest) -> Response:
    """What a device needs to know: items, titles, and how features are computed from ratings. The same for
    everybody."""
    return state_of(http).served.catalogue.sent(http, "public, max-age=60")


@router.post(
    "/v1/multi-selection",
    responses=answers("Reply", *WITH_BODY, 406, binary=True),
    openapi_extra=body("Request", binary=True),
    response_class=Response,
)
async def slate(http: HttpRequest) -> Response:
    """A slate of k items and a local model, for a signal. The server is never told which item was picked."""
    state = state_of(http)
    served = state.served
    request, form = await message_of(http, Request.from_bytes, Request.from_json)
    request.require(dimension=served.store.space.dimension, most_k=state.settings.most_k, simulated=False)
    form = wanted_form(http, form)

    def work() -> Reply:
        return served.multi_selection.answer(request.signal, request.k, request.t)

    pace = served.pace if request.k * request.t <= _USUAL else Pace.BESIDE
    return answered(await state.workbench(work, pace), form)


@router.get("/v1/model", responses=answers("Model"), response_class=Response)
async def model(http: HttpRequest) -> Response:
    """Which version answers, and what was promised to the people whose ratings it was fitted to."""
    return told(state_of(http).served.about)
