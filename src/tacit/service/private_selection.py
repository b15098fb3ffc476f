"""Private selection over HTTP: offers, and exact reports of what was shown. Both are on the disk before they are acknowledged."""

import asyncio
from datetime import date
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from tacit.errors import UnknownName
from tacit.messages.private_selection import Engagement, Impression, OfferRequest
from tacit.service.bodies import JSON, answered, json_of, told, wanted_form
from tacit.service.keys import Key, Scope
from tacit.service.metrics import ENGAGED, OFFERS, SETTLED
from tacit.service.problems import Problem
from tacit.service.schemas import KEYED, WITH_BODY, answers, body
from tacit.service.served import Served
from tacit.service.state import allowed, state_of

router = APIRouter(tags=["private selection"])
_BASE = "/v1/private-selection"
_READERS = (Scope.OPERATOR, Scope.STATEMENTS)


@router.get(f"{_BASE}/scorer", responses=answers("Reply", 404, 406, 422, binary=True), response_class=Response)
async def scorer(http: HttpRequest, part: Annotated[int, Query(ge=0, le=40)] = 0) -> Response:
    """How good every listed item is to whoever has given features. Fetch all parts: `Tacit-Parts` says how many there are, and
    `Tacit-Version` of which version they are: parts of two versions do not fit together."""
    served = state_of(http).served
    parts = served.scorer
    if part >= len(parts):
        raise Problem("not-found", f"there are {len(parts)} parts, counted from 0.")
    about = {"Tacit-Parts": str(len(parts)), "Tacit-Version": served.version.name}
    return answered(parts[part], wanted_form(http, JSON), about)


@router.post(
    f"{_BASE}/offers",
    responses=answers("Offer", *WITH_BODY, empty=204),
    openapi_extra=body("OfferRequest"),
    response_class=Response,
)
async def offer(http: HttpRequest) -> Response:
    """Candidates to choose from, on the device; or 204, where there is nothing to offer."""
    asked = OfferRequest.from_json(await json_of(http))
    made = await state_of(http).offers(asked)
    if made is None:
        return Response(status_code=204)
    OFFERS.inc()
    return told(made.to_json())


@router.post(
    f"{_BASE}/impressions",
    responses=answers("Outcome", *WITH_BODY),
    openapi_extra=body("Impression"),
    response_class=Response,
)
async def impression(http: HttpRequest) -> Response:
    """What was shown for an offer, counted once at the price of the offer. Every outcome is final."""
    shown = Impression.from_json(await json_of(http))
    outcome = await state_of(http).bills(shown)
    SETTLED.labels(outcome.value).inc()
    return told({"outcome": outcome.value})


@router.post(
    f"{_BASE}/engagements",
    responses=answers("Outcome", *WITH_BODY),
    openapi_extra=body("Engagement"),
    response_class=Response,
)
async def engagement(http: HttpRequest) -> Response:
    """A click, as a bit that chance may have flipped on the device."""
    bit = Engagement.from_json(await json_of(http))
    outcome = await state_of(http).engages(bit)
    ENGAGED.labels(outcome.value).inc()
    return told({"outcome": outcome.value})


@router.get(f"{_BASE}/counts", responses=answers("Counts", 401, 403), openapi_extra=KEYED, response_class=Response)
async def counts(http: HttpRequest) -> Response:
    """How often each item was shown, exactly. Needs a key, unless this server counts in the open."""
    state = state_of(http)
    key = None if state.served.counts_in_the_open else allowed(state.keys, http, *_READERS)
    totals = await asyncio.to_thread(lambda: list(state.ledger.items()))
    items = [
        {**total.to_json(), "title": _title(state.served, total.item)} for total in totals if _may_see(key, total.item)
    ]
    return told({"items": items})


@router.get(
    "/v1/statements", responses=answers("Statement", 401, 403, 422), openapi_extra=KEYED, response_class=Response
)
async def statement(http: HttpRequest, first_day: date, last_day: date) -> Response:
    """What was shown on these days (UTC, both included) and is owed for it, per item; by an advertiser's key, of its items."""
    state = state_of(http)
    key = allowed(state.keys, http, *_READERS)
    found = (await asyncio.to_thread(state.ledger.statement, first_day, last_day)).to_json()
    found["items"] = [one for one in found["items"] if _may_see(key, one["item"])]
    found["impressions"] = sum(one["impressions"] for one in found["items"])
    found["micros"] = str(sum(int(one["micros"]) for one in found["items"]))
    return told(found)


@router.get(f"{_BASE}/clicks", responses=answers("Clicks", 401, 403, 422), openapi_extra=KEYED, response_class=Response)
async def clicks(http: HttpRequest, item: Annotated[str, Query(min_length=1, max_length=128)]) -> Response:
    """How often an item was clicked, estimated from flipped bits, with its standard deviation."""
    state = state_of(http)
    key = allowed(state.keys, http, *_READERS)
    if not _may_see(key, item):
        raise Problem("forbidden", "this key is for other items.")
    return told((await asyncio.to_thread(state.served.private_selection.clicks, item))._asdict())


def _may_see(key: Key | None, item: str) -> bool:
    return key is None or key.scope is Scope.OPERATOR or item in key.items


def _title(served: Served, item: str) -> str:
    """An item may be of an older version: it then is what it is called."""
    number = served.store.items.ids.dtype.kind in "iu"
    try:
        return served.title(int(item) if number else item)
    except (UnknownName, ValueError):
        return item
