"""Keys while a service runs: who may see what, until when, and what the file of keys gives away."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from tacit.service.keys import Scope, issue, revoke
from tests.integration.service.conftest import PRICES, Published, Running, Serve, listings_in
from tests.integration.service.serving import Service, until
from tests.integration.service.talking import COUNTS, offer_from, outcome_of, require_problem

DAYS = {"first_day": "2020-01-01", "last_day": "2030-12-31"}
CLICKS = "/v1/private-selection/clicks"


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory, published: Published) -> Iterator[Running]:
    """A service with keys of every kind, two impressions of one item and one of another."""
    folder = tmp_path_factory.mktemp("keyed")
    database = str(folder / "server.db")
    settings = {"models": published.models, "rate": 0, "policy": "rr", "listings": listings_in(folder)}
    service = Service(folder, database=database, **settings)
    file = service.home / "keys.json"
    running = Running(service, database, bearer(issue(file, "operator", Scope.OPERATOR)))
    service.start()
    try:
        with service.client() as client:
            for item in ("31", "31", "74"):
                assert outcome_of(client, offer_from(client).token, item) == "ok"
        yield running
    finally:
        service.kill()


@pytest.fixture
def client(keyed: Running) -> Iterator[httpx.Client]:
    with keyed.client() as client:
        yield client


def new_key(keyed: Running, client: httpx.Client, name: str, scope: Scope, **given: object) -> dict[str, str]:
    """A key that was issued while the service runs, once the service knows it."""
    found = bearer(issue(keyed.service.home / "keys.json", name, scope, **given))  # type: ignore[arg-type]
    until(lambda: client.get("/metrics", headers=found).status_code != 401, 10, "the key did not begin")
    return found


def test_devices_need_no_key_and_others_do(client: httpx.Client) -> None:
    for path in ("/v1/catalogue", "/v1/model", "/v1/slates", "/healthz", "/readyz"):
        assert client.get(path).status_code == 200
    for path in ("/metrics", COUNTS, "/v1/statements", CLICKS, "/v1/federations/run/messages"):
        answer = client.get(path, params={**DAYS, "item": "31"})
        require_problem(answer, 401, "unauthorised")
        assert answer.headers["www-authenticate"] == "Bearer"


def test_a_key_that_is_malformed_or_wrong_is_none(client: httpx.Client, keyed: Running) -> None:
    right = keyed.operator["Authorization"].removeprefix("Bearer ")
    kind, id, secret = right.split("_", 2)
    other = ("A" if secret[0] != "A" else "B") + secret[1:]
    for given in (
        f"Bearer {kind}_{id}_{other}",
        f"Bearer {kind}_{'0' * 8}_{secret}",
        f"Bearer {right}x",
        f"Bearer {right[:-1]}",
        f"Bearer  {right}",
        f"bearer {right[:20]}",
        f"Basic {right}",
        right,
        "Bearer",
        "Bearer " + "x" * 5000,
        "Bearer tacit_ÿÿ",
    ):
        answer = client.get("/metrics", headers={"Authorization": given.encode("latin-1")})
        require_problem(answer, 401, "unauthorised")
        assert secret not in answer.text
    assert client.get("/metrics", headers=keyed.operator).status_code == 200


def test_an_operator_sees_metrics_all_counts_and_all_statements(client: httpx.Client, keyed: Running) -> None:
    text = client.get("/metrics", headers=keyed.operator).text
    assert 'tacit_settled_total{outcome="ok"}' in text
    assert "127.0.0.1" not in text
    counts = client.get(COUNTS, headers=keyed.operator).json()["items"]
    assert {one["item"]: one["impressions"] for one in counts} == {"31": 2, "74": 1}
    statement = client.get("/v1/statements", params=DAYS, headers=keyed.operator).json()
    assert int(statement["micros"]) == 2 * PRICES["31"] + PRICES["74"]
    require_problem(client.get("/v1/federations/run/messages", headers=keyed.operator), 403, "forbidden")


def test_a_key_for_statements_sees_its_own_items_and_no_others(client: httpx.Client, keyed: Running) -> None:
    acme = new_key(keyed, client, "acme", Scope.STATEMENTS, items=("74", "5"))
    counts = client.get(COUNTS, headers=acme).json()["items"]
    assert {one["item"]: one["impressions"] for one in counts} == {"74": 1}
    statement = client.get("/v1/statements", params=DAYS, headers=acme).json()
    assert statement["impressions"] == 1
    assert statement["micros"] == str(PRICES["74"])
    assert [one["item"] for one in statement["items"]] == ["74"]
    assert client.get(CLICKS, params={"item": "5"}, headers=acme).json()["received"] == 0
    require_problem(client.get(CLICKS, params={"item": "31"}, headers=acme), 403, "forbidden")
    require_problem(client.get("/metrics", headers=acme), 403, "forbidden")


def test_an_entitys_key_sees_no_counts(client: httpx.Client, keyed: Running) -> None:
    north = new_key(keyed, client, "north", Scope.ENTITY, entity="north")
    for path in ("/metrics", COUNTS, "/v1/statements"):
        require_problem(client.get(path, params=DAYS, headers=north), 403, "forbidden")
    require_problem(client.get("/v1/federations/run/messages", headers=north), 404, "not-found")


def test_a_key_holds_until_its_last_day_and_not_after(client: httpx.Client, keyed: Running) -> None:
    file, today = keyed.service.home / "keys.json", datetime.now(UTC).date()
    over = issue(file, "over", Scope.OPERATOR, expires=today - timedelta(days=1))
    new_key(keyed, client, "still", Scope.OPERATOR, expires=today + timedelta(days=1))  # both are known now
    require_problem(client.get("/metrics", headers=bearer(over)), 401, "unauthorised")


def test_a_key_that_is_revoked_ends_within_seconds_in_every_worker(serve: Serve) -> None:
    service = serve(workers=2)
    file = service.home / "keys.json"
    key = bearer(issue(file, "short", Scope.OPERATOR))
    stays = bearer(issue(file, "long", Scope.OPERATOR))
    service.start()
    until(lambda: service.printed.count("Application startup complete.") == 2, 30)
    clients: list[httpx.Client] = []
    try:
        while len(answering(service)) < 2:  # connections that are kept: some at either worker
            assert len(clients) < 200, "one worker takes all"
            clients.append(service.client())
            assert clients[-1].get("/metrics", headers=key).status_code == 200
        words = [sys.executable, "-m", "tacit", "keys", "revoke", "short", "--keys", str(file)]
        subprocess.run(words, check=True, capture_output=True, timeout=60)
        until(lambda: {one.get("/metrics", headers=key).status_code for one in clients} == {401}, 6, "it did not end")
        assert {one.get("/metrics", headers=stays).status_code for one in clients} == {200}
    finally:
        for one in clients:
            one.close()


def answering(service: Service) -> set[int]:
    """The workers that have told somebody what they measured."""
    lines = [line for line in service.printed.splitlines() if '"route":"/metrics"' in line]
    return {json.loads(line)["process"] for line in lines}


def test_a_file_of_keys_that_was_damaged_changes_nothing_for_those_who_have_one(
    client: httpx.Client, keyed: Running
) -> None:
    file = keyed.service.home / "keys.json"
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    try:
        end = datetime.now(UTC) + timedelta(seconds=3)  # it is looked at every two
        while datetime.now(UTC) < end:
            assert client.get("/metrics", headers=keyed.operator).status_code == 200
    finally:
        file.write_bytes(whole)


def test_the_file_is_its_owners_only_and_holds_no_key(keyed: Running) -> None:
    file = keyed.service.home / "keys.json"
    words = [sys.executable, "-m", "tacit", "keys", "add", "once", "--scope", "operator", "--keys", str(file)]
    told = subprocess.run(words, check=True, capture_output=True, text=True, timeout=60).stdout.strip()
    secret = told.split("_", 2)[2]
    assert len(secret) == 43
    assert os.stat(file).st_mode & 0o777 == 0o600
    content = file.read_text()
    assert '"once"' in content
    assert secret not in content
    assert keyed.operator["Authorization"].split("_", 2)[2] not in content
    assert [one.name for one in file.parent.iterdir() if one.name.startswith(".")] == []  # nothing half-written is left
    revoke(file, "once")
    assert '"once"' not in file.read_text()
