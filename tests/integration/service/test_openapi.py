"""Requests made up from the OpenAPI documents of both applications, right ones and wrong ones: answers are as documented."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tacit.ledger import PrivacyLedger
from tacit.service.keys import Scope, issue
from tests.integration.service.conftest import Published, Running
from tests.integration.service.serving import Service
from tests.integration.service.talking import BINARY, COUNTS, IMPRESSIONS, JSON, MULTI_SELECTION, OFFERS, PROBLEM

ALWAYS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
FEDERATION = "application/vnd.tacit.federation"
FEW = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@schemathesis.serializer(BINARY, FEDERATION)
def as_it_is(_: schemathesis.SerializationContext, value: object) -> bytes:
    """The binary forms: a document cannot say more of them than that they are bytes."""
    content = getattr(value, "data", value)
    return content if isinstance(content, bytes) else str(content).encode()


@dataclass(frozen=True)
class Documented:
    """A service, and a header that lets a caller do everything."""

    service: Service
    key: dict[str, str]


@pytest.fixture(scope="module")
def server(running: Running) -> Documented:
    return Documented(running.service, running.operator)


@pytest.fixture(scope="module")
def curator(tmp_path_factory: pytest.TempPathFactory, published: Published) -> Iterator[Documented]:
    service = Service(
        tmp_path_factory.mktemp("curator"), "--curator", str(published.ratings), rate=0, budget_epsilon=1000
    )
    key = issue(service.home / "keys.json", "operator", Scope.OPERATOR)
    PrivacyLedger.create(service.home / "curator.db").close()
    service.start()
    yield Documented(service, {"Authorization": f"Bearer {key}"})
    service.kill()


@pytest.fixture
def documented(request: pytest.FixtureRequest) -> Documented:
    found: Documented = request.getfixturevalue(request.param)
    return found


def statuses_of(documented: Documented, mode: GenerationMode, key: dict[str, str]) -> dict[str, set[int]]:
    """The statuses of each operation, when made-up requests were sent to all of them and every answer was checked."""
    schema = schemathesis.openapi.from_url(f"{documented.service.address}/openapi.json")
    operations = [each.ok() for each in schema.get_all_operations()]
    if mode is GenerationMode.NEGATIVE:  # where nothing is asked for, or any bytes, nothing is wrong by the document
        operations = [one for one in operations if len(one.query) or any(body.media_type == JSON for body in one.body)]
    with requests.Session() as session:
        session.trust_env = False
        return {one.label: _tried(one, mode, session, key) for one in operations}


def _tried(operation: Any, mode: GenerationMode, session: requests.Session, key: dict[str, str]) -> set[int]:
    checks = ALWAYS if mode is GenerationMode.POSITIVE else [*ALWAYS, negative_data_rejection]
    seen: set[int] = set()

    @FEW
    @given(case=operation.as_strategy(generation_mode=mode, headers=key))
    def send(case: schemathesis.Case) -> None:
        answer = case.call(session=session)
        seen.add(answer.status_code)
        case.validate_response(answer, checks=checks)
        if answer.status_code >= 400:
            assert answer.headers["content-type"] == [PROBLEM]

    send()
    return seen


@pytest.mark.parametrize("documented", ["server", "curator"], indirect=True)
def test_right_requests_are_answered_as_documented(documented: Documented) -> None:
    found = statuses_of(documented, GenerationMode.POSITIVE, documented.key)
    assert all(found.values())
    answered = {label for label, statuses in found.items() if statuses & {200, 204}}
    assert {"GET /healthz", "GET /readyz", "GET /metrics"} <= answered
    assert len(answered) > len(found) / 2


@pytest.mark.parametrize("documented", ["server", "curator"], indirect=True)
def test_wrong_requests_are_refused_as_documented(documented: Documented) -> None:
    found = statuses_of(documented, GenerationMode.NEGATIVE, documented.key)
    bodies = {label: statuses for label, statuses in found.items() if label.startswith("POST ")}
    assert bodies
    # A parameter that nobody knows is nobody's harm, so GETs may be answered; a body has to be right.
    assert all(statuses and min(statuses) >= 400 for statuses in bodies.values()), bodies


@pytest.mark.parametrize("documented", ["server", "curator"], indirect=True)
def test_without_a_key_whatever_needs_one_is_refused_as_documented(documented: Documented) -> None:
    document = httpx.get(f"{documented.service.address}/openapi.json", trust_env=False).json()
    keyed = {
        f"{method.upper()} {path}"
        for path, methods in document["paths"].items()
        for method, about in methods.items()
        if about.get("security")
    }
    assert keyed
    found = statuses_of(documented, GenerationMode.POSITIVE, {})
    for label in keyed:
        assert found[label] <= {401, 415, 422}, label
        assert 401 in found[label], label


def test_the_document_names_every_path_that_a_device_or_an_operator_uses(server: Documented) -> None:
    document = httpx.get(f"{server.service.address}/openapi.json", trust_env=False).json()
    paths = set(document["paths"])
    assert paths >= {"/v1/catalogue", "/v1/model", "/v1/slates/{name}", MULTI_SELECTION, OFFERS, IMPRESSIONS, COUNTS}
    assert set(document["paths"][MULTI_SELECTION]["post"]["requestBody"]["content"]) == {BINARY, JSON}
    assert document["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
