"""The messages of a federation over HTTP: an entity fetches its messages and leaves its replies.

The service only carries them to and from the folders of `tacit federate`. All messages are signed, and shares of sums are
masked.
"""

import asyncio
import re
from hashlib import sha256
from pathlib import Path
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from tacit.engines.folders import ENDING, messages_in, read_message
from tacit.files import write_once
from tacit.messages.federated_prototypes.frame import open_frame
from tacit.service.bodies import (
    KEYED,
    TRY_AGAIN,
    WITH_BODY,
    KeptBody,
    MessagesBody,
    Problem,
    answers,
    json_response,
)
from tacit.service.keys import Scope
from tacit.service.state import allowed, state_of

router = APIRouter(tags=["federated prototypes"])
PREFIX = "/v1/federations/"
MEDIA_TYPE = "application/vnd.tacit.federation"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_MOST_WAITING = 20  # unread replies of one entity; a run has fewer stages
_CONTENT = {"content": {MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}}}
_FILE: dict[int | str, dict[str, Any]] = {200: {"description": "A signed message", **_CONTENT}}


@router.get(
    PREFIX + "{run}/messages",
    responses=answers(MessagesBody, 401, 403, 404),
    openapi_extra=KEYED,
    response_class=Response,
)
async def messages(http: HttpRequest, run: str) -> Response:
    """Lists the names of the messages for this key's entity, in order."""
    folder, entity = _folder_of(http, run)
    files = await asyncio.to_thread(messages_in, folder / "outbox" / entity)
    return json_response(MessagesBody([file.name for file in files]))


@router.get(
    PREFIX + "{run}/messages/{name}",
    responses=_FILE | answers(None, 401, 403, 404),
    openapi_extra=KEYED,
    response_class=Response,
)
async def message(http: HttpRequest, run: str, name: str) -> Response:
    """Returns one message for this key's entity, signed by the coordinator."""
    folder, entity = _folder_of(http, run)
    files = await asyncio.to_thread(messages_in, folder / "outbox" / entity)
    file = next((file for file in files if file.name == name), None)
    if file is None:
        raise Problem("not-found", "there is no such message for this entity.")
    return Response(await asyncio.to_thread(read_message, file), media_type=MEDIA_TYPE)


@router.post(
    PREFIX + "{run}/replies",
    responses=answers(KeptBody, *WITH_BODY, 401, 403, 404),
    openapi_extra={**KEYED, "requestBody": {"required": True, **_CONTENT}},
    response_class=Response,
)
async def reply(http: HttpRequest, run: str) -> Response:
    """Leaves a signed reply of this key's entity. The coordinator checks the signature later.

    Sending the same reply again changes nothing. 503 means that the coordinator has too many unread replies: try again later.
    """
    folder, entity = _folder_of(http, run)
    if http.headers.get("content-type", "").partition(";")[0].strip().lower() != MEDIA_TYPE:
        raise Problem("unsupported-media-type", f"the body must be {MEDIA_TYPE}.")
    content = await http.body()
    if open_frame(content).header.get("from") != entity:  # also raises on anything that is not a message
        raise Problem("forbidden", "an entity may leave its own replies only.")
    inbox, prefix = folder / "inbox", f"{entity}-"
    name = prefix + sha256(content).hexdigest() + ENDING
    waiting = await asyncio.to_thread(messages_in, inbox)
    if sum(file.name.startswith(prefix) for file in waiting) >= _MOST_WAITING:
        raise Problem("not-ready", "the coordinator has not read the inbox for too long. Try again later.", TRY_AGAIN)
    await asyncio.to_thread(write_once, inbox / name, content)
    return json_response(KeptBody(name))


def _folder_of(http: HttpRequest, run: str) -> tuple[Path, str]:
    """The run's folder, and the entity of the caller's key."""
    state = state_of(http)
    key = allowed(state.keys, http, Scope.ENTITY)
    runs = state.settings.federations
    if runs is None or not _NAME.fullmatch(run) or not (runs / run / "inbox").is_dir():
        raise Problem("not-found", "there is no such run here.")
    if not _NAME.fullmatch(key.entity) or not (runs / run / "outbox" / key.entity).is_dir():
        raise Problem("forbidden", "the entity of this key takes no part in this run.")
    return runs / run, key.entity
