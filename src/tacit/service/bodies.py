"""Bodies of requests and answers, as JSON or in the compact binary form, and their schemas for the OpenAPI document."""

import gzip
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Annotated, Any, Protocol, TypeVar

import orjson
from msgspec import Meta, Struct
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from tacit import errors
from tacit.errors import TacitError
from tacit.messages.codec import Schema, characters, closed, or_null, reference, schema_of
from tacit.messages.multi_selection import Reply, Request
from tacit.messages.private_selection import Candidate, Engagement, Impression, Offer, OfferRequest, Policy
from tacit.messages.private_slates import Popularity, Slate

# Problems are application/problem+json (RFC 9457) with a stable code. They contain no private value, token or address.

MEDIA_TYPE = "application/problem+json"
_STATUS: dict[str, int] = {
    "malformed-body": 400,
    "unauthorised": 401,
    "forbidden": 403,
    "not-found": 404,
    "method-not-allowed": 405,
    "not-acceptable": 406,
    "too-slow": 408,
    "too-large": 413,
    "unsupported-media-type": 415,
    "too-many-requests": 429,
    "internal-error": 500,
    "not-ready": 503,
    errors.InvalidMessage.code: 422,
    errors.InvalidParameter.code: 422,
    errors.UnknownName.code: 404,
    errors.UnknownSubject.code: 404,
    errors.Conflict.code: 409,
    errors.BudgetExhausted.code: 409,
    errors.GuaranteeRefused.code: 409,
    errors.LedgerUnavailable.code: 503,
    errors.SystemNoiseUnavailable.code: 503,
}
CODES = frozenset(_STATUS)
TRY_AGAIN = {"Retry-After": "1"}


class Problem(Exception):
    """An answer that is an error."""

    def __init__(self, code: str, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(code)
        self.code, self.detail, self.status = code, detail, _STATUS[code]
        self.headers = dict(headers or {})

    def response(self) -> Response:
        content = {
            "type": f"urn:tacit:{self.code}",
            "code": self.code,
            "title": self.code.replace("-", " ").capitalize(),
            "status": self.status,
            "detail": self.detail,
        }
        return Response(orjson.dumps(content), self.status, self.headers, MEDIA_TYPE)


def problem_of(error: TacitError) -> Problem:
    """An error of the library as an answer. Errors that concern only the operator, such as a damaged ledger, stay internal."""
    if error.code not in _STATUS:
        return internal_error()
    if _STATUS[error.code] == 503:
        return Problem(error.code, "this cannot be written or drawn now; nothing was counted. Try again.", TRY_AGAIN)
    return Problem(error.code, str(error).removeprefix(f"{error.code}: "))


def internal_error() -> Problem:
    """The answer for a fault of the server. It gives no details; the log has them."""
    return Problem("internal-error", "the server failed; its log has the reason.")


BINARY, JSON = "application/vnd.tacit", "application/json"
T = TypeVar("T")


class CompactMessage(Protocol):
    """A message with a compact binary form."""

    def to_bytes(self) -> bytes: ...

    def to_json(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Packed:
    """A document that is the same for all callers, compressed once, with a tag for caches."""

    content: bytes
    media_type: str = JSON
    gzipped: bytes = field(init=False)
    tag: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "gzipped", gzip.compress(self.content, 6, mtime=0))
        object.__setattr__(self, "tag", f'W/"{sha256(self.content).hexdigest()[:32]}"')  # weak: for either encoding

    def sent(self, request: HttpRequest, cached: str) -> Response:
        """The document, or status 304 without a body if the caller has it already."""
        headers = {"ETag": self.tag, "Cache-Control": cached, "Vary": "Accept-Encoding"}
        tags = {tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")}
        if tags & {"*", self.tag.removeprefix("W/")}:
            return Response(status_code=304, headers=headers)
        encodings = request.headers.get("accept-encoding", "").split(",")
        if any(_preference(encoding) == ("gzip", False) for encoding in encodings):
            return Response(self.gzipped, headers={**headers, "Content-Encoding": "gzip"}, media_type=self.media_type)
        return Response(self.content, headers=headers, media_type=self.media_type)


def form_of(request: HttpRequest, allowed: tuple[str, ...] = (JSON,)) -> str:
    """The form of a request's body, by its content type."""
    form = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if form not in allowed:
        raise Problem(
            "unsupported-media-type", f"send the body as {' or '.join(allowed)}, and give it that content type."
        )
    return form


def wanted_form(request: HttpRequest, default: str) -> str:
    """The form of the answer: the first of both forms that the caller accepts, or ``default`` if it accepts anything."""
    accepted = request.headers.get("accept", "*/*")
    if accepted == "*/*":
        return default
    refused, anything = set[str](), False
    for part in accepted.split(","):
        form, is_refused = _preference(part)
        if is_refused:
            refused.add(form)
        elif form in (BINARY, JSON):
            return form
        elif form in ("*/*", "application/*"):
            anything = True
    if anything:
        for form in (default, BINARY, JSON):
            if form not in refused:
                return form
    raise Problem("not-acceptable", f"answers are {BINARY} or {JSON}.")


def _preference(part: str) -> tuple[str, bool]:
    """The value in one part of an Accept header, and whether the caller refuses it: with a weight of 0, 0.0 and so on."""
    value, *parameters = (parameter.strip().lower() for parameter in part.split(";"))
    weight = next((parameter[2:] for parameter in parameters if parameter.startswith("q=")), "1")
    return value, not weight.strip("0.")


async def body_of(request: HttpRequest) -> bytes:
    """The whole body. The edge limits its size and time."""
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
    """The body, decoded from JSON."""
    form_of(request)
    try:
        return orjson.loads(await body_of(request))
    except orjson.JSONDecodeError:
        raise Problem("malformed-body", "the body is not JSON.") from None


async def message_of(
    request: HttpRequest, from_bytes: Callable[[bytes], T], from_json: Callable[[object], T]
) -> tuple[T, str]:
    """A message in either form, and that form. Raises InvalidMessage for a malformed message."""
    if form_of(request, (BINARY, JSON)) == BINARY:
        return from_bytes(await body_of(request)), BINARY
    return from_json(await json_of(request)), JSON


def message_response(message: CompactMessage, form: str, headers: dict[str, str] | None = None) -> Response:
    """Answers with a message in one of its two forms."""
    content = message.to_bytes() if form == BINARY else orjson.dumps(message.to_json())
    return Response(content, headers=headers, media_type=form)


def json_response(content: Any) -> Response:
    """Answers with JSON."""
    return Response(orjson.dumps(content), media_type=JSON)


# JSON Schemas for the OpenAPI document. Those of messages follow from their types, and messages check more than a schema can
# express. The others are answers of a single route.


class PopularityRequest(Struct, forbid_unknown_fields=True):
    """The body of a curator's ``/v1/popularity``. Every member is optional."""

    epsilon: Annotated[float, Meta(gt=0, le=100)] = 1.0


class SlateRequest(PopularityRequest, forbid_unknown_fields=True):
    """The body of a curator's ``/v1/slates``. Every member is optional."""

    k: Annotated[int, Meta(ge=1, le=1000)] = 10
    slates: Annotated[int, Meta(ge=1, le=10**6)] = 1
    request_id: Annotated[str, characters(1, 100)] | None = None


def _whole(least: int, most: int) -> Schema:
    return {"type": "integer", "minimum": least, "maximum": most}


def _list(of: Schema) -> Schema:
    return {"type": "array", "items": of}


def _extensible(schema: Schema, *names: str) -> Schema:
    """An answer to which later versions may add members. With ``names``, the schema describes only these members."""
    properties = {
        name: schema["properties"][name] for name in schema["properties"] if name in (names or schema["properties"])
    }
    return {"type": "object", "properties": properties, "required": list(properties)}


def _restricted(schema: Schema, **members: Schema) -> Schema:
    """A message with fewer values allowed for some members."""
    return {**schema, "properties": {**schema["properties"], **members}}


_NUMBER: Schema = {"type": "number"}
_SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
_TEXT: Schema = {"type": "string"}
_DAY: Schema = {"type": "string", "format": "date"}
_DIGITS: Schema = {"type": "string", "pattern": "^[0-9]+$"}
_COUNT = _whole(0, 2**63)
_ID: Schema = {"anyOf": [{"type": "integer"}, {"type": "string"}]}
_GUARANTEE = reference("Guarantee")
_BILL = {"impressions": _COUNT, "micros": _DIGITS}

SCHEMAS: dict[str, Schema] = {
    "Problem": {
        **_extensible(
            closed(
                type=_TEXT,
                code={"type": "string", "enum": sorted(CODES)},
                title=_TEXT,
                status=_whole(400, 599),
                detail=_TEXT,
            )
        ),
        "description": "RFC 9457. `code` is stable.",
    },
    "Guarantee": _extensible(
        closed(
            epsilon={"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "const": "inf"}]},
            delta=_NUMBER,
            protects={},
            assumes=_list(_TEXT),
        )
    ),
    "Request": _restricted(Request.schema(), simulated={"type": "boolean", "const": False}),
    "Reply": Reply.schema(),
    "Catalogue": _extensible(
        closed(
            version={"type": "integer", "const": 1},
            name=_TEXT,
            model=_TEXT,
            features={"type": "object"},
            ids=_list(_ID),
            titles=or_null(_list(_TEXT)),
            genres=_list(_list({"type": "integer"})),
        )
    ),
    "OfferRequest": OfferRequest.schema(),
    "Policy": Policy.schema(),
    "Candidate": Candidate.schema(),
    "Offer": _restricted(Offer.schema(), batch={"type": "null"}),  # this service shuffles no reports
    "Impression": Impression.schema(),
    "Engagement": Engagement.schema(),
    "Outcome": closed(outcome={"type": "string", "enum": ["ok", "duplicate", "conflict", "unknown", "expired"]}),
    "Counts": closed(items=_list(closed(item=_TEXT, title=_TEXT, **_BILL))),
    "Statement": closed(first_day=_DAY, last_day=_DAY, **_BILL, items=_list(closed(item=_TEXT, **_BILL))),
    "Clicks": closed(clicks=_NUMBER, sd=_NUMBER, received=_COUNT),
    "Slate": _extensible(Slate.schema()),
    "ServedSlate": closed(
        slate=reference("Slate"), titles=_list(_TEXT), diversity=or_null(_SHARE), liking=or_null(_SHARE)
    ),
    "SlateReleases": closed(
        releases=_list(closed(name=_TEXT, items=_whole(1, 10**6), guarantee=_GUARANTEE)), together=or_null(_GUARANTEE)
    ),
    "Releases": closed(releases=_list(closed(name=_TEXT, kind=_TEXT, guarantee=_GUARANTEE))),
    "Model": _extensible(
        closed(
            version=_TEXT,
            store=_TEXT,
            name=_TEXT,
            items=_whole(0, 10**9),
            look_alikes=_whole(0, 10**9),
            guarantee=_GUARANTEE,
            published=_whole(0, 2**53),
        )
    ),
    "SlateRequest": schema_of(SlateRequest),
    "PopularityRequest": schema_of(PopularityRequest),
    "Popularity": _extensible(Popularity.schema(), "items", "steps", "guarantee"),
    "LedgerStatement": {"type": "object", "required": ["subject", "charges", "spent", "windows", "promised"]},
    "Messages": closed(messages=_list(_TEXT)),
    "Kept": closed(name=_TEXT),
    "State": closed(state=_TEXT),
}
KEY = {
    "type": "http",
    "scheme": "bearer",
    "description": "tacit_<id>_<secret>, from `tacit keys add`. Devices need none.",
}


def in_forms(name: str, *, binary: bool = False) -> Schema:
    """The media types of a body: JSON and, with ``binary``, the compact form."""
    content: Schema = {JSON: {"schema": reference(name)}}
    return {**content, BINARY: {"schema": {"type": "string", "format": "binary"}}} if binary else content


def body(name: str, *, binary: bool = False) -> Schema:
    """The required body of a route, for ``openapi_extra``."""
    return {"requestBody": {"required": True, "content": in_forms(name, binary=binary)}}


def answers(name: str | None, *codes: int, binary: bool = False, empty: int | None = None) -> dict[int | str, Schema]:
    """The possible answers of a route: a message, and problems with these statuses or with 429, 500 or 503."""
    responses: dict[int | str, Schema] = {}
    if name is not None:
        responses[200] = {"description": name, "content": in_forms(name, binary=binary)}
    if empty is not None:
        responses[empty] = {"description": "nothing"}
    return responses | dict.fromkeys(sorted({*codes, 429, 500, 503}), PROBLEM)


PROBLEM: Schema = {"description": "a problem", "content": {MEDIA_TYPE: {"schema": reference("Problem")}}}
WITH_BODY = (400, 408, 413, 415, 422)
KEYED: Schema = {"security": [{"key": []}]}
