"""Slates over HTTP, from what a curator released once; and the releases themselves, which may be sent to anybody."""

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from tacit.messages.private_slates import Slate
from tacit.models.dpp.tempered import MOST_NATS
from tacit.models.released_slates import ALPHA
from tacit.service.bodies import JSON, told
from tacit.service.pacing import Pace
from tacit.service.problems import Problem
from tacit.service.schemas import answers
from tacit.service.served import Served
from tacit.service.state import state_of

router = APIRouter(tags=["private slates"])
_MOST_K = 100
_MOST_KEPT = 256  # greedy slates, which are always the same


@router.get("/v1/slates", responses=answers("SlateReleases"), response_class=Response)
async def releases_for_slates(http: HttpRequest) -> Response:
    """The releases that slates are made from, and what they promise, each and together."""
    served = state_of(http).served
    together = served.slates_together
    found = [
        {"name": name, "items": len(one.release), "guarantee": one.guarantee.to_json()}
        for name, one in served.slates.items()
    ]
    return told({"releases": found, "together": None if together is None else together.to_json()})


@router.get("/v1/slates/{name}", responses=answers("ServedSlate", 404, 422), response_class=Response)
async def slate(
    http: HttpRequest,
    name: str,
    k: Annotated[int, Query(ge=1, le=_MOST_K)] = 10,
    alpha: Annotated[float, Query(ge=0.0, le=MOST_NATS)] = ALPHA,
    drawn: bool = False,
) -> Response:
    """A diverse slate: the greedy one, or with ``drawn`` another one each time. It costs nothing beyond the release."""
    state = state_of(http)
    served = state.served
    if name not in served.slates:
        raise Problem("not-found", "there is no such release: /v1/slates names them.")
    return told(await state.worked_out(lambda: _made(served, name, k, alpha, drawn), Pace.BESIDE))


@router.get("/v1/releases", responses=answers("Releases"), response_class=Response)
async def releases(http: HttpRequest) -> Response:
    """Everything that was released with this version: counts for slates, models across domains."""
    return told({"releases": state_of(http).served.version.releases})


@router.get("/v1/releases/{name}", responses=answers(None, 404), response_class=Response)
async def release(http: HttpRequest, name: str) -> Response:
    """A release as it was made: a device uses it at home, and tells nobody for what."""
    state = state_of(http)
    version = state.served.version
    if not any(one["name"] == name for one in version.releases):
        raise Problem("not-found", "there is no such release: /v1/releases names them.")
    content = await state.worked_out(lambda: version.file(name).read_bytes(), Pace.BESIDE)
    return Response(content, media_type=JSON)


def _made(served: Served, name: str, k: int, alpha: float, drawn: bool) -> dict[str, Any]:
    if drawn:
        return _told(served, served.slates[name].slate(k, alpha=alpha, drawn=True))
    wanted = (name, k, alpha)
    found = served.greedy_slates.get(wanted)
    if found is None:
        found = _told(served, served.slates[name].slate(k, alpha=alpha))
        if len(served.greedy_slates) >= _MOST_KEPT:
            served.greedy_slates.clear()
        served.greedy_slates[wanted] = found
    return found


def _told(served: Served, slate: Slate) -> dict[str, Any]:
    return {
        "slate": slate.to_json(),
        "titles": [served.title(item) for item in slate.items],
        "diversity": _diversity(served, slate),
        "liking": _liking(served, slate),
    }


def _diversity(served: Served, slate: Slate) -> float | None:
    """The mean distance of two items: 1 less the cosine of their genres."""
    if served.rows is None or len(slate) < 2:
        return None
    rows = served.rows[served.store.items.codes(slate.items)]
    pairs = np.triu_indices(len(rows), 1)
    return float(np.clip(1.0 - (rows @ rows.T)[pairs], 0.0, 1.0).mean())


def _liking(served: Served, slate: Slate) -> float | None:
    """How much the slate is liked beside the most liked one of its size, by the release that tells most."""
    best = sum(sorted(served.liked.values(), reverse=True)[: len(slate)])
    return min(1.0, sum(served.liked.get(item, 0.0) for item in slate.items) / best) if best > 0.0 else None
