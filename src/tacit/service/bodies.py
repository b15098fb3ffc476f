"""What comes in and goes out: JSON, or the compact binary form; whichever the caller uses and asks for."""

import gzip
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Protocol, TypeVar

import orjson
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from tacit.service.problems import Problem

BINARY, JSON = "application/vnd.tacit", "application/json"
T = TypeVar("T")


class Message(Protocol):
    def to_bytes(self) -> bytes: ...

    def to_json(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Packed:
    """A document that is the same for everybody, in the forms that it is sent in."""

    content: bytes
    media_type: str = JSON
    gzipped: bytes = field(init=False)
    tag: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "gzipped", gzip.compress(self.content, 6, mtime=0))
        object.__setattr__(self, "tag", f'W/"{sha256(self.content).hexdigest()[:32]}"')  # weak: for either encoding

    def sent(self, request: HttpRequest, cached: str) -> Response:
        """Nothing to a caller who has it, else all of it."""
        headers = {"ETag": self.tag, "Cache-Control": cached, "Vary": "Accept-Encoding"}
        had = {one.strip().removeprefix("W/") for one in request.headers.get("if-none-match", "").split(",")}
        if had & {"*", self.tag.removeprefix("W/")}:
            return Response(status_code=304, headers=headers)
        if any(_weighed(one) == ("gzip", False) for one in request.headers.get("accept-encoding", "").split(",")):
            return Response(self.gzipped, headers={**headers, "Content-Encoding": "gzip"}, media_type=self.media_type)
        return Response(self.content, headers=headers, media_type=self.media_type)


def form_of(request: HttpRequest, allowed: tuple[str, ...] = (JSON,)) -> str:
    """The form of a request's body."""
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given not in allowed:
        raise Problem(
            "unsupported-media-type", f"the body is to be {' or '.join(allowed)}, and its content type to say so."
        )
    return given


def wanted_form(request: HttpRequest, otherwise: str) -> str:
    """The form of the answer: what the caller accepts first of the two; where it accepts anything, ``otherwise``."""
    accepted = request.headers.get("accept", "*/*")
    if accepted == "*/*":
        return otherwise
    never, anything = set[str](), False
    for one in accepted.split(","):
        form, refused = _weighed(one)
        if refused:
            never.add(form)
        elif form in (BINARY, JSON):
            return form
        elif form in ("*/*", "application/*"):
            anything = True
    if anything:
        for form in (otherwise, BINARY, JSON):
            if form not in never:
                return form
    raise Problem("not-acceptable", f"answers are {BINARY} or {JSON}.")


def _weighed(accepted: str) -> tuple[str, bool]:
    """One part of an Accept header, and whether it says "not this": a weight of 0, however many digits it has."""
    value, *parameters = (part.strip().lower() for part in accepted.split(";"))
    weight = next((one[2:] for one in parameters if one.startswith("q=")), "1")
    return value, not weight.strip("0.")


async def body_of(request: HttpRequest) -> bytes:
    """All of it. (Of the edge's making: it is within its limits, or raises.)"""
    parts: list[bytes] = []
    more = True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    return parts[0] if len(parts) == 1 else b"".join(parts)


async def json_of(request: HttpRequest) -> Any:
    form_of(request)
    try:
        return orjson.loads(await body_of(request))
    except orjson.JSONDecodeError:
        raise Problem("malformed-body", "the body is no JSON.") from None


async def message_of(
    request: HttpRequest, from_bytes: Callable[[bytes], T], from_json: Callable[[object], T]
) -> tuple[T, str]:
    """A message in either form, and which of them it was. What is wrong with it is raised as InvalidMessage."""
    if form_of(request, (BINARY, JSON)) == BINARY:
        return from_bytes(await body_of(request)), BINARY
    return from_json(await json_of(request)), JSON


def answered(message: Message, form: str, headers: dict[str, str] | None = None) -> Response:
    content = message.to_bytes() if form == BINARY else orjson.dumps(message.to_json())
    return Response(content, headers=headers, media_type=form)


def told(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(orjson.dumps(content), status, headers, JSON)
