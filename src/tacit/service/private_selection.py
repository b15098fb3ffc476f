"""Private selection over HTTP: offers, and exact reports of the items that were shown. Both are durable before the answer
is sent."""

import asyncio
from dataclasses import replace
from datetime import date
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from tacit.errors import UnknownName
from tacit.messages.multi_selection import Reply
from tacit.messages.private_selection import Engagement, Impression, Offer, OfferRequest
from tacit.service.bodies import (
    JSON,
    KEYED,
    WITH_BODY,
    ClicksBody,
    CountedItem,
    CountsBody,
    OutcomeBody,
    Problem,
    StatedItem,
    StatementBody,
    answers,
    body,
    json_of,
    json_response,
    reply_response,
    wanted_form,
)
from tacit.service.keys import ApiKey, Scope
from tacit.service.served import ServedVersion, code_of
from tacit.service.state import allowed, state_of
from tacit.service.telemetry import ENGAGED, OFFERS, SETTLED

router = APIRouter(tags=["private selection"])
_BASE = "/v1/private-selection"
_READERS = (Scope.OPERATOR, Scope.STATEMENTS)


@router.get(f"{_BASE}/scorer", responses=answers(Reply, 404, 406, 422, binary=True), response_class=Response)
async def scorer(http: HttpRequest, part: Annotated[int, Query(ge=0, le=40)] = 0) -> Response:
    """Returns one part of the public scorer, a linear map from features to the quality of every offered item.

    Fetch all parts, counting from 0. The header `Tacit-Parts` is their number. If the header `Tacit-Version` differs between two
    parts, start again: parts of two versions do not fit together.
    """
    served = state_of(http).served
    parts = served.scorer
    if part >= len(parts):
        raise Problem("not-found", f"there are {len(parts)} parts, numbered from 0.")
    headers = {"Tacit-Parts": str(len(parts)), "Tacit-Version": served.version.name}
    return reply_response(parts[part], wanted_form(http, JSON), headers)


@router.post(
    f"{_BASE}/offers",
    responses=answers(Offer, *WITH_BODY, empty=204),
    openapi_extra=body(OfferRequest),
    response_class=Response,
)
async def offer(http: HttpRequest) -> Response:
    """Returns an offer: candidates, and the policy by which the device chooses from them. 204 means that there is no offer.

    The offer is durable before it is sent.
    """
    candidates = await state_of(http).offers(OfferRequest.from_json(await json_of(http)))
    if candidates is None:
        return Response(status_code=204)
    OFFERS.inc()
    return json_response(candidates)


@router.post(
    f"{_BASE}/impressions",
    responses=answers(OutcomeBody, *WITH_BODY),
    openapi_extra=body(Impression),
    response_class=Response,
)
async def impression(http: HttpRequest) -> Response:
    """Reports the items that a device showed for an offer. The server counts them once, at the prices of the offer.

    Every outcome is final: `ok` (counted now), `duplicate` (counted before), `conflict` (reported before with other items, or not
    offered), `expired` (more than a day after the offer expired) or `unknown` (no such token, or its expired offer was deleted). It
    is safe to repeat a report.
    """
    shown = Impression.from_json(await json_of(http))
    outcome = await state_of(http).impressions(shown)
    SETTLED.labels(outcome.value).inc()
    return json_response(OutcomeBody(outcome))


@router.post(
    f"{_BASE}/engagements",
    responses=answers(OutcomeBody, *WITH_BODY),
    openapi_extra=body(Engagement),
    response_class=Response,
)
async def engagement(http: HttpRequest) -> Response:
    """Reports whether a shown item was clicked, as a bit that the device may have flipped at random.

    Report the impression first: until then the outcome is `unknown`. It is `conflict` for a second, different bit, for an offer of
    several slots, and for a bit that was randomised at an epsilon other than the server's.
    """
    click = Engagement.from_json(await json_of(http))
    outcome = await state_of(http).engagements(click)
    ENGAGED.labels(outcome.value).inc()
    return json_response(OutcomeBody(outcome))


@router.get(f"{_BASE}/counts", responses=answers(CountsBody, 401, 403), openapi_extra=KEYED, response_class=Response)
async def counts(http: HttpRequest) -> Response:
    """Returns exactly how often each item was shown, and the amount owed for it in micro-units.

    Needs a key, unless this server shows its counts to everybody. An advertiser's key shows its own items only.
    """
    state = state_of(http)
    key = None if state.served.shows_counts else allowed(state.keys, http, *_READERS)
    totals = await asyncio.to_thread(lambda: list(state.ledger.items()))
    items = [
        CountedItem(item, impressions, str(micros), _title(state.served, item))
        for item, impressions, micros in totals
        if _may_see(key, item)
    ]
    return json_response(CountsBody(items))


@router.get(
    "/v1/statements", responses=answers(StatementBody, 401, 403, 422), openapi_extra=KEYED, response_class=Response
)
async def statement(http: HttpRequest, first_day: date, last_day: date) -> Response:
    """Returns the impressions of each item from `first_day` to `last_day` (UTC, both included), and the amount owed in micro-units.

    An advertiser's key shows its own items only.
    """
    state = state_of(http)
    key = allowed(state.keys, http, *_READERS)
    account = await asyncio.to_thread(state.ledger.statement, first_day, last_day)
    own = replace(account, items=tuple(total for total in account.items if _may_see(key, total.item)))
    items = [StatedItem(item, impressions, str(micros)) for item, impressions, micros in own.items]
    content = StatementBody(own.first_day, own.last_day, own.impressions, str(own.micros), items)
    return json_response(content)


@router.get(
    f"{_BASE}/clicks", responses=answers(ClicksBody, 401, 403, 422), openapi_extra=KEYED, response_class=Response
)
async def clicks(http: HttpRequest, item: Annotated[str, Query(min_length=1, max_length=128)]) -> Response:
    """Estimates how often an item was clicked, and states the standard deviation of the estimate.

    The estimate is unbiased. It comes from randomly flipped bits, so it may be negative or larger than the number of bits.
    """
    state = state_of(http)
    key = allowed(state.keys, http, *_READERS)
    if not _may_see(key, item):
        raise Problem("forbidden", "this key is for other items.")
    estimate = await asyncio.to_thread(state.served.private_selection.clicks, item)
    return json_response(ClicksBody(*estimate))


def _may_see(key: ApiKey | None, item: str) -> bool:
    return key is None or key.scope is Scope.OPERATOR or item in key.items


def _title(served: ServedVersion, item: str) -> str:
    """The title of an item, or its id if the item is from an older version."""
    try:
        return served.store.items.title(code_of(served.store, item))
    except (UnknownName, ValueError):
        return item
