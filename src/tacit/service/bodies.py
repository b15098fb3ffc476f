"""Bodies of requests and answers, as JSON or in the compact binary form, and their schemas for the OpenAPI document."""

import gzip
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from hashlib import sha256
from typing import Annotated, Any, Literal

import orjson
from msgspec import Meta, Struct, structs
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from tacit import errors
from tacit.errors import TacitError
from tacit.guarantees import Guarantee
from tacit.ledger import Settlement
from tacit.messages.codec import Message, Schema, characters, reference, schema_of
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
        title = self.code.replace("-", " ").capitalize()
        content = ProblemBody(f"urn:tacit:{self.code}", self.code, title, self.status, self.detail)
        return Response(json_bytes(content), self.status, self.headers, MEDIA_TYPE)


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


async def request_of(http: HttpRequest) -> tuple[Request, str]:
    """A request of multi-selection in either form, and that form. Raises InvalidMessage for a malformed one."""
    if form_of(http, (BINARY, JSON)) == BINARY:
        return Request.from_bytes(await body_of(http)), BINARY
    return Request.from_json(await json_of(http)), JSON


def reply_response(reply: Reply, form: str, headers: dict[str, str] | None = None) -> Response:
    """Answers with a reply of multi-selection in one of its two forms."""
    content = reply.to_bytes() if form == BINARY else orjson.dumps(reply.to_json())
    return Response(content, headers=headers, media_type=form)


def json_response(content: Struct | Message) -> Response:
    """Answers with a body of the service or with a message, as JSON."""
    return Response(json_bytes(content), media_type=JSON)


def json_bytes(content: Struct | Message) -> bytes:
    """A body of the service, or a message, as JSON."""
    return orjson.dumps(content, default=_to_json, option=orjson.OPT_PASSTHROUGH_DATACLASS)


def _to_json(value: object) -> Any:
    if isinstance(value, Guarantee | Message):
        return value.to_json()
    if isinstance(value, Struct):
        return structs.asdict(value)
    raise TypeError(f"a body cannot hold {type(value).__name__}.")


# The requests and answers that only this service has. The OpenAPI document derives their schemas from these types. Later versions
# may add members to an answer unless it forbids unknown fields.

Count = Annotated[int, Meta(ge=0, extra_json_schema={"maximum": 2**63})]
Share = Annotated[float, Meta(ge=0, le=1)]
# Amounts of money are strings: some JSON parsers read every number as a float and would round it.
Digits = Annotated[str, Meta(pattern="^[0-9]+$")]


class ProblemBody(Struct, frozen=True):
    """A problem as in RFC 9457. `code` is stable."""

    type: str
    code: Annotated[str, Meta(extra_json_schema={"enum": sorted(CODES)})]
    title: str
    status: Annotated[int, Meta(ge=400, le=599)]
    detail: str


class GuaranteeBody(Struct, frozen=True):
    """A guarantee: these members are always present."""

    epsilon: Annotated[float, Meta(ge=0)] | Literal["inf"]
    delta: float
    protects: Any
    assumes: list[str]


class CatalogueBody(Struct, frozen=True):
    """The public facts that a device needs: the items, and how to compute features from ratings."""

    version: Literal[1]
    name: str
    model: str
    features: dict[str, Any]
    ids: list[int | str]
    titles: list[str] | None
    genres: list[list[int]]


class OutcomeBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The outcome of a report."""

    outcome: Settlement


class StatedItem(Struct, frozen=True, forbid_unknown_fields=True):
    """The impressions of an item on the days of a statement, and the amount owed for them."""

    item: str
    impressions: Count
    micros: Digits


class CountedItem(StatedItem, frozen=True, forbid_unknown_fields=True):
    """How often an item was shown, and the amount owed for it."""

    title: str


class CountsBody(Struct, frozen=True, forbid_unknown_fields=True):
    """How often each item was shown."""

    items: list[CountedItem]


class StatementBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The impressions of some days, and the amount owed for them."""

    first_day: date
    last_day: date
    impressions: Count
    micros: Digits
    items: list[StatedItem]


class ClicksBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The clicks on an item, estimated from randomly flipped bits."""

    clicks: float
    sd: float
    received: Count


class ServedSlateBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A slate, and how diverse and how popular it is."""

    slate: Slate
    titles: list[str]
    diversity: Share | None
    liking: Share | None


class SlateRelease(Struct, frozen=True, forbid_unknown_fields=True):
    """A release that slates are computed from."""

    name: str
    items: Annotated[int, Meta(ge=1, le=10**6)]
    guarantee: Guarantee


class SlateReleasesBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The releases that slates are computed from, and the guarantee of all together."""

    releases: list[SlateRelease]
    together: Guarantee | None


class PublishedRelease(Struct, frozen=True, forbid_unknown_fields=True):
    """A release that was published with a version."""

    name: str
    kind: str
    guarantee: Guarantee


class ReleasesBody(Struct, frozen=True, forbid_unknown_fields=True):
    """All releases of a version."""

    releases: list[PublishedRelease]


class ModelBody(Struct, frozen=True):
    """The version that answers, and its guarantee for the people whose ratings it was fitted to."""

    version: str
    store: str
    name: str
    items: Annotated[int, Meta(ge=0, le=10**9)]
    look_alikes: Annotated[int, Meta(ge=0, le=10**9)]
    guarantee: Guarantee
    published: Annotated[int, Meta(ge=0, le=2**53)]


class PopularityRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A request for noisy counts. Every member is optional."""

    epsilon: Annotated[float, Meta(gt=0, le=100)] = 1.0


class SlateRequest(PopularityRequest, frozen=True, forbid_unknown_fields=True):
    """A request for a slate. Every member is optional."""

    k: Annotated[int, Meta(ge=1, le=1000)] = 10
    slates: Annotated[int, Meta(ge=1, le=10**6)] = 1
    request_id: Annotated[str, characters(1, 100)] | None = None


class LedgerStatementBody(Struct, frozen=True):
    """What a subject was charged, and what is left of the budget."""

    subject: str
    at: str
    terms: dict[str, Any]
    charges: Count
    spent: dict[str, Any]
    windows: list[dict[str, Any]]
    promised: Guarantee


class MessagesBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The names of messages, in order."""

    messages: list[str]


class KeptBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The name under which a reply was kept."""

    name: str


class StateBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Whether a process is alive or ready."""

    state: str


def name_of(kind: type) -> str:
    """The name of a body's schema in the OpenAPI document."""
    return kind.__name__.removesuffix("Body")


def _extensible(schema: Schema, *names: str) -> Schema:
    """A message to which later versions may add members. With ``names``, the schema describes only these members."""
    properties = {name: schema["properties"][name] for name in names or schema["properties"]}
    return {"type": "object", "properties": properties, "required": list(properties)}


def _restricted(schema: Schema, **members: Schema) -> Schema:
    """A message with fewer values allowed for some members."""
    return {**schema, "properties": {**schema["properties"], **members}}


_BODIES = (
    *(ProblemBody, GuaranteeBody, CatalogueBody, OutcomeBody, CountsBody, StatementBody, ClicksBody, ServedSlateBody),
    *(SlateReleasesBody, ReleasesBody, ModelBody, SlateRequest, PopularityRequest, LedgerStatementBody, MessagesBody),
    *(KeptBody, StateBody),
)
_MESSAGES: tuple[type[Message], ...] = (OfferRequest, Policy, Candidate, Impression, Engagement)
SCHEMA_OF: dict[type, Schema] = {
    **{kind: schema_of(kind) for kind in _BODIES},
    **{kind: kind.schema() for kind in _MESSAGES},
    Reply: Reply.schema(),
    Request: _restricted(Request.schema(), simulated={"type": "boolean", "const": False}),
    Offer: _restricted(Offer.schema(), batch={"type": "null"}),  # this service shuffles no reports
    Slate: _extensible(Slate.schema()),
    Popularity: _extensible(Popularity.schema(), "items", "steps", "guarantee"),
}
SCHEMAS = {name_of(kind): schema for kind, schema in SCHEMA_OF.items()}
KEY = {
    "type": "http",
    "scheme": "bearer",
    "description": "tacit_<id>_<secret>, from `tacit keys add`. Devices need none.",
}


def in_forms(kind: type, *, binary: bool = False) -> Schema:
    """The media types of a body: JSON and, with ``binary``, the compact form."""
    content: Schema = {JSON: {"schema": reference(name_of(kind))}}
    return {**content, BINARY: {"schema": {"type": "string", "format": "binary"}}} if binary else content


def body(kind: type, *, binary: bool = False) -> Schema:
    """The required body of a route, for ``openapi_extra``."""
    return {"requestBody": {"required": True, "content": in_forms(kind, binary=binary)}}


def answers(kind: type | None, *codes: int, binary: bool = False, empty: int | None = None) -> dict[int | str, Schema]:
    """The possible answers of a route: a message, and problems with these statuses or with 429, 500 or 503."""
    responses: dict[int | str, Schema] = {}
    if kind is not None:
        responses[200] = {"description": name_of(kind), "content": in_forms(kind, binary=binary)}
    if empty is not None:
        responses[empty] = {"description": "No content"}
    return responses | dict.fromkeys(sorted({*codes, 429, 500, 503}), PROBLEM)


PROBLEM: Schema = {
    "description": "A problem with a stable code",
    "content": {MEDIA_TYPE: {"schema": reference(name_of(ProblemBody))}},
}
WITH_BODY = (400, 408, 413, 415, 422)
KEYED: Schema = {"security": [{"key": []}]}
