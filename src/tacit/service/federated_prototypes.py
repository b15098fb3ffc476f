"""The messages of a federation over HTTP: an entity fetches what is for it, and leaves its replies.

All of them are signed, and masked where they must be: this carries them, between the folders of `tacit federate`.
"""

import asyncio
import re
from hashlib import sha256
from pathlib import Path
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from tacit.engines.files import ENDING, messages_in, read_message, write_once
from tacit.messages.federated_prototypes_frame import MOST_BYTES, open_frame
from tacit.service.bodies import told
from tacit.service.keys import Scope
from tacit.service.problems import TRY_AGAIN, Problem
from tacit.service.schemas import KEYED, WITH_BODY, answers
from tacit.service.state import allowed, state_of

router = APIRouter(tags=["federated prototypes"])
PREFIX = "/v1/federations/"
MEDIA_TYPE = "application/vnd.tacit.federation"
MOST = MOST_BYTES
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_MOST_WAITING = 20  # replies of one entity that nobody has looked at: a run has fewer stages
_SEEN = {"content": {MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}}}
_FILE: dict[int | str, dict[str, Any]] = {200: {"description": "a signed message", **_SEEN}}


@router.get(
    PREFIX + "{run}/messages",
    responses=answers("Messages", 401, 403, 404),
    openapi_extra=KEYED,
    response_class=Response,
)
async def messages(http: HttpRequest, run: str) -> Response:
    """The names of the messages for this key's entity, in their order."""
    folder, entity = _own(http, run)
    found = await asyncio.to_thread(messages_in, folder / "outbox" / entity)
    return told({"messages": [file.name for file in found]})


@router.get(
    PREFIX + "{run}/messages/{name}",
    responses=_FILE | answers(None, 401, 403, 404),
    openapi_extra=KEYED,
    response_class=Response,
)
async def message(http: HttpRequest, run: str, name: str) -> Response:
    """One of them."""
    folder, entity = _own(http, run)
    found = await asyncio.to_thread(messages_in, folder / "outbox" / entity)
    file = next((file for file in found if file.name == name), None)
    if file is None:
        raise Problem("not-found", "there is no such message for this entity.")
    return Response(await asyncio.to_thread(read_message, file), media_type=MEDIA_TYPE)


@router.post(
    PREFIX + "{run}/replies",
    responses=answers("Kept", *WITH_BODY, 401, 403, 404),
    openapi_extra={**KEYED, "requestBody": {"required": True, **_SEEN}},
    response_class=Response,
)
async def reply(http: HttpRequest, run: str) -> Response:
    """Leaves a reply for the coordinator, who checks its signature when he takes it. The same again changes nothing."""
    folder, entity = _own(http, run)
    if http.headers.get("content-type", "").partition(";")[0].strip().lower() != MEDIA_TYPE:
        raise Problem("unsupported-media-type", f"the body is to be {MEDIA_TYPE}.")
    content = await http.body()
    if open_frame(content).header.get("from") != entity:  # refuses also what is no message
        raise Problem("forbidden", "an entity leaves replies of its own.")
    inbox, own = folder / "inbox", f"{entity}-"
    name = own + sha256(content).hexdigest() + ENDING
    waiting = await asyncio.to_thread(messages_in, inbox)
    if sum(file.name.startswith(own) for file in waiting) >= _MOST_WAITING:
        raise Problem(
            "not-ready", "the coordinator has not looked into the inbox for too long. Try again later.", TRY_AGAIN
        )
    await asyncio.to_thread(write_once, inbox / name, content)
    return told({"name": name})


def _own(http: HttpRequest, run: str) -> tuple[Path, str]:
    """The run's folder, and whom the caller's key is for."""
    state = state_of(http)
    key = allowed(state.keys, http, Scope.ENTITY)
    runs = state.settings.federations
    if runs is None or not _NAME.fullmatch(run) or not (runs / run / "inbox").is_dir():
        raise Problem("not-found", "there is no such run here.")
    if not _NAME.fullmatch(key.entity) or not (runs / run / "outbox" / key.entity).is_dir():
        raise Problem("forbidden", "this key's entity takes no part in this run.")
    return runs / run, key.entity
