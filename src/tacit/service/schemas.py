"""The messages as JSON Schema, for the OpenAPI document. The messages themselves check more than a schema can say."""

from typing import Any

from tacit.messages.multi_selection_request import MOST_K
from tacit.messages.multi_selection_signal import MOST_DIMENSION, MOST_STEPS
from tacit.messages.private_selection import MOST_CANDIDATES, MOST_EPSILON, Bounding, Rule
from tacit.messages.private_selection_offer import MOST_ITEM, MOST_MICROS, MOST_SCORE, MOST_SECONDS
from tacit.messages.private_selection_policy import FLOOR_BITS, MOST_SLOTS
from tacit.service import problems
from tacit.service.bodies import BINARY, JSON
from tacit.service.problems import CODES

Schema = dict[str, Any]
_MOST_U32 = (1 << 32) - 1


def _object(**members: Schema) -> Schema:
    return {"type": "object", "properties": members, "required": list(members), "additionalProperties": False}


def _whole(least: int, most: int) -> Schema:
    return {"type": "integer", "minimum": least, "maximum": most}


def _list(of: Schema, least: int, most: int) -> Schema:
    return {"type": "array", "items": of, "minItems": least, "maxItems": most}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


_NUMBER = {"type": "number"}
_TEXT = {"type": "string"}
_TRUTH = {"type": "boolean"}
_ONE = {"type": "integer", "const": 1}
_TOKEN = {"type": "string", "pattern": "^[0-9a-f]{32}$"}
_ITEM = {"type": "string", "minLength": 1, "maxLength": MOST_ITEM}
_ID = {"anyOf": [{"type": "integer"}, {"type": "string"}]}
_DIGITS = {"type": "string", "pattern": "^[0-9]+$"}
_EPSILON = {"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "const": "inf"}]}

SCHEMAS: dict[str, Schema] = {
    "Problem": {
        "type": "object",
        "description": "RFC 9457. `code` is stable.",
        "properties": {
            "type": _TEXT,
            "code": {"type": "string", "enum": sorted(CODES)},
            "title": _TEXT,
            "status": _whole(400, 599),
            "detail": _TEXT,
        },
        "required": ["type", "code", "title", "status", "detail"],
    },
    "Guarantee": {
        "type": "object",
        "properties": {
            "epsilon": _EPSILON,
            "delta": _NUMBER,
            "protects": {},
            "assumes": {"type": "array", "items": _TEXT},
        },
        "required": ["epsilon", "delta", "protects", "assumes"],
    },
    "Request": _object(
        version=_ONE,
        simulated={"type": "boolean", "const": False},
        empty=_TRUTH,
        grid_bits=_whole(0, 30),
        eta={**_list(_whole(1, _MOST_U32), 2, 2), "description": "numerator and denominator, in lowest terms"},
        steps=_list(_whole(-MOST_STEPS, MOST_STEPS), 1, MOST_DIMENSION),
        k=_whole(1, MOST_K),
        t=_whole(1, MOST_K),
    ),
    "Reply": _object(
        version=_ONE,
        kind={"type": "string", "enum": ["none", "linear-map", "linear-map-half", "principal-components", "network"]},
        short=_TRUTH,
        k=_whole(1, MOST_K),
        dimension=_whole(1, MOST_DIMENSION),
        components=_whole(0, 65535),
        items=_list(_DIGITS, 1, MOST_K),
        numbers={"type": "array", "items": _NUMBER},
    ),
    "Catalogue": {
        "type": "object",
        "properties": {
            "version": _ONE,
            "name": _TEXT,
            "model": _TEXT,
            "features": {"type": "object"},
            "ids": {"type": "array", "items": _ID},
            "titles": _or_null({"type": "array", "items": _TEXT}),
            "genres": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
        },
        "required": ["version", "name", "model", "features", "ids", "titles", "genres"],
    },
    "OfferRequest": _object(version=_ONE, context={"type": "string", "maxLength": 200}, consent=_whole(0, 1)),
    "Policy": _object(
        version=_ONE,
        id={"type": "string", "enum": [rule.value for rule in Rule]},
        epsilon={"type": "number", "minimum": 0, "maximum": MOST_EPSILON},
        m=_whole(1, MOST_CANDIDATES),
        d=_whole(1, MOST_CANDIDATES),
        slots=_whole(1, MOST_SLOTS),
        bounding={"type": "string", "enum": [one.value for one in Bounding]},
        width=_or_null(_NUMBER),
        floors=_or_null(_list(_whole(1, 1 << FLOOR_BITS), 1, MOST_CANDIDATES)),
    ),
    "Candidate": _object(
        item=_ITEM,
        bid=_whole(0, MOST_MICROS),
        public_score={"type": "number", "minimum": -MOST_SCORE, "maximum": MOST_SCORE},
    ),
    "Offer": _object(
        version=_ONE,
        token=_TOKEN,
        expires=_whole(0, MOST_SECONDS),
        policy=ref("Policy"),
        candidates=_list(ref("Candidate"), 1, MOST_CANDIDATES),
        batch={"type": "null"},
    ),
    "Impression": _object(version=_ONE, token=_TOKEN, items={**_list(_ITEM, 1, MOST_SLOTS), "uniqueItems": True}),
    "Engagement": _object(
        version=_ONE, token=_TOKEN, bit=_whole(0, 1), epsilon={"type": "number", "exclusiveMinimum": 0}
    ),
    "Outcome": _object(
        outcome={"type": "string", "enum": ["ok", "duplicate", "conflict", "unknown", "expired"]},
    ),
    "Counts": _object(
        items={
            "type": "array",
            "items": _object(item=_TEXT, title=_TEXT, impressions=_whole(0, 2**63), micros=_DIGITS),
        }
    ),
    "Statement": _object(
        first_day={"type": "string", "format": "date"},
        last_day={"type": "string", "format": "date"},
        impressions=_whole(0, 2**63),
        micros=_DIGITS,
        items={"type": "array", "items": _object(item=_TEXT, impressions=_whole(0, 2**63), micros=_DIGITS)},
    ),
    "Clicks": _object(clicks=_NUMBER, sd=_NUMBER, received=_whole(0, 2**63)),
    "Slate": {
        "type": "object",
        "properties": {
            "version": _ONE,
            "items": {"type": "array", "items": _ID},
            "route": _TEXT,
            "guarantee": ref("Guarantee"),
        },
        "required": ["version", "items", "route", "guarantee"],
    },
    "ServedSlate": _object(
        slate=ref("Slate"),
        titles={"type": "array", "items": _TEXT},
        diversity=_or_null({"type": "number", "minimum": 0, "maximum": 1}),
        liking=_or_null({"type": "number", "minimum": 0, "maximum": 1}),
    ),
    "SlateReleases": _object(
        releases={"type": "array", "items": _object(name=_TEXT, items=_whole(1, 10**6), guarantee=ref("Guarantee"))},
        together=_or_null(ref("Guarantee")),
    ),
    "Releases": _object(
        releases={"type": "array", "items": _object(name=_TEXT, kind=_TEXT, guarantee=ref("Guarantee"))}
    ),
    "Model": {
        "type": "object",
        "properties": {
            "version": _TEXT,
            "store": _TEXT,
            "name": _TEXT,
            "items": _whole(0, 10**9),
            "look_alikes": _whole(0, 10**9),
            "guarantee": ref("Guarantee"),
            "published": _whole(0, 2**53),
        },
        "required": ["version", "store", "name", "items", "look_alikes", "guarantee", "published"],
    },
    "SlateRequest": {
        "type": "object",
        "properties": {
            "k": _whole(1, 1000),
            "epsilon": {"type": "number", "exclusiveMinimum": 0, "maximum": 100},
            "slates": _whole(1, 10**6),
            "request_id": _or_null({"type": "string", "minLength": 1, "maxLength": 100}),
        },
        "additionalProperties": False,
    },
    "PopularityRequest": {
        "type": "object",
        "properties": {"epsilon": {"type": "number", "exclusiveMinimum": 0, "maximum": 100}},
        "additionalProperties": False,
    },
    "Popularity": {
        "type": "object",
        "properties": {
            "items": {"type": "array", "items": _ID},
            "steps": {"type": "array"},
            "guarantee": ref("Guarantee"),
        },
        "required": ["items", "steps", "guarantee"],
    },
    "LedgerStatement": {"type": "object", "required": ["subject", "charges", "spent", "windows", "promised"]},
    "Messages": _object(messages={"type": "array", "items": _TEXT}),
    "Kept": _object(name=_TEXT),
    "State": _object(state=_TEXT),
}
KEY = {
    "type": "http",
    "scheme": "bearer",
    "description": "tacit_<id>_<secret>, from `tacit keys add`. Devices need none.",
}


def in_forms(name: str, *, binary: bool = False) -> Schema:
    """A body in JSON and, if there is one, in its compact binary form."""
    content: Schema = {JSON: {"schema": ref(name)}}
    return {**content, BINARY: {"schema": {"type": "string", "format": "binary"}}} if binary else content


def body(name: str, *, binary: bool = False) -> Schema:
    return {"requestBody": {"required": True, "content": in_forms(name, binary=binary)}}


def answers(name: str | None, *codes: int, binary: bool = False, empty: int | None = None) -> dict[int | str, Schema]:
    """What may come back: a message, and problems with these statuses. Limits, and what goes wrong inside, hold everywhere."""
    found: dict[int | str, Schema] = {}
    if name is not None:
        found[200] = {"description": name, "content": in_forms(name, binary=binary)}
    if empty is not None:
        found[empty] = {"description": "nothing"}
    return found | dict.fromkeys(sorted({*codes, 429, 500, 503}), PROBLEM)


PROBLEM: Schema = {"description": "a problem", "content": {problems.MEDIA_TYPE: {"schema": ref("Problem")}}}
WITH_BODY = (400, 408, 413, 415, 422)
KEYED: Schema = {"security": [{"key": []}]}
