"""Logs and metrics tell what an operator needs, and nothing that a caller sent: not even when something goes wrong inside."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tacit.service.keys import Scope, issue
from tests.integration.service.conftest import Serve
from tests.integration.service.raw import Raw
from tests.integration.service.serving import Service, until
from tests.integration.service.talking import (
    BINARY,
    COUNTS,
    IMPRESSIONS,
    JSON,
    MULTI_SELECTION,
    OFFERS,
    impression,
    offer_from,
    outcome_of,
    request_of,
    require_problem,
)

# A caller has an address of her own: that of the service is in its log, and may be.
CALLER = "127.9.8.7"
STEPS = 987_654_321
WORD = "xyzzy"  # in everything that is sent
# Where the service meets what nobody expected: errors that quote what was worked on.
BROKEN = """
from tacit.errors import LedgerDamaged
from tacit.ledger import ImpressionLedger
from tacit.server import MultiSelection, PrivateSelection

answered = MultiSelection.answer


def answer(self, signal, k=5, t=1):
    if int(signal.steps[0]) == 987654321:
        raise ValueError(f"xyzzy {signal.steps.tolist()}")
    return answered(self, signal, k, t)


def settle_many(self, reports):
    raise LedgerDamaged(f"xyzzy {[report[0] for report in reports]}")


def engage(self, engagement):
    raise KeyError(f"xyzzy {engagement.token}")


def offer_many(self, asked):
    raise RuntimeError(f"xyzzy {asked}")


MultiSelection.answer = answer
PrivateSelection.offer_many = offer_many
PrivateSelection.engage = engage
ImpressionLedger.settle_many = settle_many
"""


@pytest.fixture
def caller() -> Iterator[httpx.HTTPTransport]:
    with httpx.HTTPTransport(local_address=CALLER) as transport:
        yield transport


def secrets_of(service: Service) -> tuple[dict[str, str], str]:
    """An operator's header, and the secret in it."""
    key = issue(service.home / "keys.json", "operator", Scope.OPERATOR)
    return {"Authorization": f"Bearer {key}"}, key.split("_", 2)[2]


def lines_of(service: Service) -> list[dict[str, object]]:
    """Those that are JSON: all but the two with which the command itself says where it is."""
    said = [line for line in service.printed.splitlines() if f"http://127.0.0.1:{service.port}/" not in line]
    return [json.loads(line) for line in said]


def require_silence(text: str, *words: str) -> None:
    for word in (WORD, CALLER, str(STEPS), f"{STEPS:x}", *words):
        assert word not in text, f"{word} was told"


def test_nothing_that_a_caller_sent_is_logged_or_measured(serve: Serve, caller: httpx.HTTPTransport) -> None:
    service = serve(policy="rr")
    operator, secret = secrets_of(service)
    service.start()
    odd = {
        "User-Agent": f"agent {WORD}",
        "Referer": f"https://{WORD}.example/",
        "Cookie": f"id={WORD}",
        "X-Forwarded-For": f"203.0.113.77, {WORD}",
        "X-Request-Id": WORD,
    }
    request = request_of()
    steps = [STEPS, *request.to_json()["steps"][1:]]
    with service.client(transport=caller, headers=odd) as client:
        for path in (f"/{WORD}", f"/v1/slates/{WORD}", f"/v1/releases/{WORD}?{WORD}={WORD}", f"/web/{WORD}.js"):
            require_problem(client.get(path, params={"q": WORD}), 404, "not-found")
        require_problem(client.get("/v1/slates/counts-1", params={"k": WORD}), 422, "invalid-parameter")
        assert client.post(MULTI_SELECTION, json={**request.to_json(), "steps": steps}).status_code == 200
        for content, kind in ((WORD.encode(), BINARY), (f'{{"{WORD}":'.encode(), JSON), (b"[]", f"text/{WORD}")):
            assert client.post(MULTI_SELECTION, content=content, headers={"Content-Type": kind}).status_code >= 400
        client.post(OFFERS, json={"version": 1, "context": WORD, "consent": 1}).raise_for_status()
        offer = offer_from(client)
        outcomes = [outcome_of(client, offer.token, WORD), outcome_of(client, offer.token, offer.items[0])]
        unknown = os.urandom(16).hex()
        assert [*outcomes, outcome_of(client, unknown, WORD)] == ["conflict", "ok", "unknown"]
        assert client.get(COUNTS, headers=operator).status_code == 200
        refused = client.get(COUNTS, headers={"Authorization": f"Bearer tacit_{'0' * 8}_{WORD * 8}xyz"})
        require_problem(refused, 401, "unauthorised")
        measured = client.get("/metrics", headers=operator).text
        assert client.request("DELETE", "/v1/model", params={"q": WORD}).status_code == 405
    with Raw(service.port) as garbage:
        garbage.send(f"{WORD} /{WORD} {WORD}\r\n\r\n".encode())
        garbage.listen(5)
    assert service.stop() == 0
    require_silence(measured, offer.token, unknown, secret, "203.0.113")
    require_silence(service.printed, offer.token, unknown, secret, "203.0.113", f'"{offer.items[0]}"')
    lines = lines_of(service)
    requests = [line for line in lines if line["event"] == "request"]
    known = {"at", "level", "process", "event", "route", "method", "status", "ms", "bytes"}
    assert all(set(line) == known for line in requests)
    routes = {line["route"] for line in requests}
    assert {"/v1/slates/{name}", "/web/{name}", MULTI_SELECTION, "none"} <= routes  # templates, never what was typed
    assert len([line for line in requests if line["route"] == "none"]) >= 1


def test_an_error_that_nobody_expected_is_logged_by_its_places_and_without_its_words(
    serve: Serve, caller: httpx.HTTPTransport, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(BROKEN)
    service = serve(policy="rr")
    service.environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]).rstrip(
        os.pathsep
    )
    service.start()
    request, token = request_of(), os.urandom(16).hex()
    steps = [STEPS, *request.to_json()["steps"][1:]]
    bit = {"version": 1, "token": token, "bit": 1, "epsilon": 1.0}
    with service.client(transport=caller) as client:
        answers = [
            client.post(MULTI_SELECTION, json={**request.to_json(), "steps": steps}),
            client.post(OFFERS, json={"version": 1, "context": WORD, "consent": 1}),
            client.post(IMPRESSIONS, json=impression(token, WORD)),
            client.post("/v1/private-selection/engagements", json=bit),
        ]
        for answer in answers:
            require_problem(answer, 500, "internal-error")
            require_silence(answer.text, token)
            assert answer.headers["x-content-type-options"] == "nosniff"
        assert client.post(MULTI_SELECTION, json=request.to_json()).status_code == 200  # the worker lives
    until(lambda: service.printed.count('"level":"error"') >= len(answers), 5)
    assert service.stop() == 0
    require_silence(service.printed, token)
    errors = [line for line in lines_of(service) if line["level"] == "error"]
    assert {line["error"] for line in errors} == {"ValueError", "RuntimeError", "LedgerDamaged", "KeyError"}
    for line in errors:
        assert any("sitecustomize.py" in str(place) for place in line["places"])  # type: ignore[union-attr]
    assert "Traceback" not in service.printed
