"""The curator as a service: another process, with raw ratings and a ledger beside them. Only releases leave, each one paid for."""

import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tacit.ledger import PrivacyLedger
from tacit.ledger.verification import check
from tacit.messages.private_slates import Popularity, Slate
from tacit.service.keys import Scope, issue
from tests.integration.service.conftest import Published
from tests.integration.service.serving import Service
from tests.integration.service.talking import require_problem

BUDGET = 1.0


class Curating:
    """A curator's service with a budget of its own, and an operator's key."""

    def __init__(self, folder: Path, published: Published) -> None:
        self.service = Service(folder, "--curator", str(published.ratings), rate=0, budget_epsilon=BUDGET)
        file = self.service.home / "keys.json"
        self.operator = {"Authorization": f"Bearer {issue(file, 'operator', Scope.OPERATOR)}"}
        PrivacyLedger.create(self.service.home / "curator.db").close()
        self.other = {"Authorization": f"Bearer {issue(file, 'acme', Scope.STATEMENTS, items=('31',))}"}
        self.service.start()

    def client(self) -> httpx.Client:
        return self.service.client(headers=self.operator)


@pytest.fixture
def curating(tmp_path: Path, published: Published) -> Iterator[Curating]:
    found = Curating(tmp_path / "curating", published)
    yield found
    found.service.kill()


def slate(client: httpx.Client, **asked: object) -> dict[str, Any]:
    answer = client.post("/v1/slates", json=asked)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def charges(client: httpx.Client) -> int:
    """How many there are in the ledger."""
    return int(client.get("/v1/statement").json()["charges"])


def test_slates_are_charged_once_for_each_request_until_the_budget_is_spent(curating: Curating) -> None:
    with curating.client() as client:
        assert charges(client) == 0
        first = slate(client, k=5, epsilon=0.4, request_id="monday")
        release = Slate.from_json(first)
        assert len(set(release.items)) == 5
        assert release.guarantee.epsilon == pytest.approx(0.4)
        assert charges(client) == 1
        assert slate(client, k=5, epsilon=0.4, request_id="monday") == first  # the same slate, for nothing
        assert charges(client) == 1
        slate(client, k=5, epsilon=0.4, request_id="tuesday")
        assert charges(client) == 2
        refused = client.post("/v1/slates", json={"k": 5, "epsilon": 0.4, "request_id": "wednesday"})
        problem = require_problem(refused, 409, "budget-exhausted")
        assert "0.2" in problem["detail"]  # what is left
        assert charges(client) == 2
        assert slate(client, k=5, epsilon=0.4, request_id="monday") == first
    assert curating.service.stop() == 0
    curating.service.start()
    with curating.client() as client:
        assert slate(client, k=5, epsilon=0.4, request_id="monday") == first  # also for the next process
        assert charges(client) == 2
        slate(client, k=3, epsilon=0.2)
        assert charges(client) == 3
    assert curating.service.stop() == 0
    assert check(str(curating.service.home / "curator.db")).sound


def test_a_ledger_that_was_lost_is_no_fresh_budget(curating: Curating) -> None:
    with curating.client() as client:
        slate(client, k=5, epsilon=1.0, request_id="monday")
    assert curating.service.stop() == 0
    for file in curating.service.home.glob("curator.db*"):
        file.unlink()
    curating.service.begin()
    assert curating.service.wait(60) == 1
    assert "tacit: ledger-missing: " in curating.service.printed
    assert not list(curating.service.home.glob("curator.db*"))


def test_many_who_ask_at_once_spend_no_more_than_there_is(curating: Curating) -> None:
    def ask(request_id: str) -> tuple[int, str]:
        with curating.client() as client:
            answer = client.post("/v1/slates", json={"k": 4, "epsilon": 0.3, "request_id": request_id})
            return answer.status_code, json.dumps(answer.json().get("items"))

    with ThreadPoolExecutor(12) as threads:
        same = list(threads.map(ask, ["one"] * 12))
        assert len(set(same)) == 1
        assert same[0][0] == 200
        others = list(threads.map(ask, [f"more {number}" for number in range(12)]))
    assert Counter(status for status, _ in others) == {200: 2, 409: 10}  # 0.3 of 1 three times in all
    with curating.client() as client:
        assert charges(client) == 3


def test_counts_are_drawn_once_and_say_what_they_promise(curating: Curating) -> None:
    with curating.client() as client:
        answers = [client.post("/v1/popularity", json={"epsilon": 0.5}) for _ in range(3)]
        assert {answer.status_code for answer in answers} == {200}
        assert len({answer.content for answer in answers}) == 1
        release = Popularity.from_json(answers[0].json())
        assert (len(release), release.guarantee.epsilon) == (120, 0.5)
        assert charges(client) == 1


def test_nothing_is_released_without_an_operators_key(curating: Curating) -> None:
    calls = [("POST", "/v1/slates"), ("POST", "/v1/popularity"), ("GET", "/v1/statement"), ("GET", "/metrics")]
    with curating.service.client() as nobody, curating.client() as operator:
        for method, path in calls:
            content = {} if method == "POST" else None
            require_problem(nobody.request(method, path, json=content), 401, "unauthorised")
            refused = nobody.request(method, path, json=content, headers=curating.other)
            require_problem(refused, 403, "forbidden")
        assert charges(operator) == 0
        for body in ({"epsilon": 0}, {"epsilon": -1}, {"epsilon": "1"}, {"k": 0}, {"users": 1}, {"request_id": ""}, []):
            require_problem(operator.post("/v1/slates", json=body), 422, "invalid-message")
        assert charges(operator) == 0
    assert "acme" not in curating.service.printed


def test_there_is_no_way_to_raw_ratings(curating: Curating) -> None:
    with curating.client() as client:
        document = client.get("/openapi.json").json()
        assert set(document["paths"]) == {
            "/v1/slates",
            "/v1/popularity",
            "/v1/statement",
            "/healthz",
            "/readyz",
            "/metrics",
        }
        for path in ("/v1/ratings", "/v1/users", "/v1/catalogue", "/", "/v1/popularity/raw", "/v1/multi-selection"):
            require_problem(client.get(path), 404, "not-found")
        promised = document["paths"]["/v1/slates"]["post"]["responses"]["200"]["content"]["application/json"]["schema"]
        assert promised == {"$ref": "#/components/schemas/Slate"}
        assert "guarantee" in document["components"]["schemas"]["Slate"]["required"]
        assert "guarantee" in document["components"]["schemas"]["Popularity"]["required"]
