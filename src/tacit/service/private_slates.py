"""Slates over HTTP, computed from counts that a curator released once, and the releases themselves, which are public."""

from typing import Annotated

import numpy as np
from fastapi import APIRouter, Query
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from tacit.messages.private_slates import Slate
from tacit.models.dpp.tempered import ALPHA, MOST_NATS
from tacit.service.bodies import (
    JSON,
    Problem,
    ReleasesBody,
    ServedSlateBody,
    SlateRelease,
    SlateReleasesBody,
    answers,
    json_response,
)
from tacit.service.served import Pace, ServedVersion
from tacit.service.state import state_of

router = APIRouter(tags=["private slates"])
_MOST_K = 100
_MOST_CACHED = 256  # greedy slates, which do not change


@router.get("/v1/slates", responses=answers(SlateReleasesBody), response_class=Response)
async def releases_for_slates(http: HttpRequest) -> Response:
    """Lists the releases that slates are computed from, with the guarantee of each and of all together."""
    served = state_of(http).served
    rows = [SlateRelease(name, len(slates.release), slates.guarantee) for name, slates in served.slates.items()]
    return json_response(SlateReleasesBody(rows, served.slates_together))


@router.get("/v1/slates/{name}", responses=answers(ServedSlateBody, 404, 422), response_class=Response)
async def slate(
    http: HttpRequest,
    name: str,
    k: Annotated[int, Query(ge=1, le=_MOST_K)] = 10,
    alpha: Annotated[float, Query(ge=0.0, le=MOST_NATS)] = ALPHA,
    drawn: bool = False,
) -> Response:
    """Computes a diverse slate of `k` items from a release. It costs no privacy beyond the release.

    A larger `alpha` favours popular items, a smaller one diversity. The slate is the greedy one, which is always the same. With
    `drawn`, it is a new random slate each time.
    """
    state = state_of(http)
    served = state.served
    if name not in served.slates:
        raise Problem("not-found", "there is no such release; /v1/slates lists them.")
    return json_response(await state.workbench(lambda: _slate(served, name, k, alpha, drawn), Pace.BESIDE))


@router.get("/v1/releases", responses=answers(ReleasesBody), response_class=Response)
async def releases(http: HttpRequest) -> Response:
    """Lists all releases of this version: counts for slates, and models across domains."""
    return json_response(state_of(http).served.releases)


@router.get("/v1/releases/{name}", responses=answers(None, 404), response_class=Response)
async def release(http: HttpRequest, name: str) -> Response:
    """Returns a release, byte for byte as the curator published it. A device uses it locally and sends nothing back."""
    state = state_of(http)
    version = state.served.version
    if not any(entry["name"] == name for entry in version.releases):
        raise Problem("not-found", "there is no such release; /v1/releases lists them.")
    content = await state.workbench(lambda: version.file(name).read_bytes(), Pace.BESIDE)
    return Response(content, media_type=JSON)


def _slate(served: ServedVersion, name: str, k: int, alpha: float, drawn: bool) -> ServedSlateBody:
    if drawn:
        return _describe(served, served.slates[name].slate(k, alpha=alpha, drawn=True))
    key = (name, k, alpha)
    answer = served.greedy_slates.get(key)
    if answer is None:
        answer = _describe(served, served.slates[name].slate(k, alpha=alpha))
        if len(served.greedy_slates) >= _MOST_CACHED:
            served.greedy_slates.clear()
        served.greedy_slates[key] = answer
    return answer


def _describe(served: ServedVersion, slate: Slate) -> ServedSlateBody:
    titles = [served.title(item) for item in slate.items]
    return ServedSlateBody(slate, titles, _diversity(served, slate), _liking(served, slate))


def _diversity(served: ServedVersion, slate: Slate) -> float | None:
    """The mean distance of two items: 1 minus the cosine of their genres."""
    if served.rows is None or len(slate) < 2:
        return None
    rows = served.rows[served.store.items.codes(slate.items)]
    pairs = np.triu_indices(len(rows), 1)
    return float(np.clip(1.0 - (rows @ rows.T)[pairs], 0.0, 1.0).mean())


def _liking(served: ServedVersion, slate: Slate) -> float | None:
    """The likes of the slate as a share of the best slate of its size, by the release with the largest epsilon."""
    best = sum(sorted(served.liked.values(), reverse=True)[: len(slate)])
    return min(1.0, sum(served.liked.get(item, 0.0) for item in slate.items) / best) if best > 0.0 else None
