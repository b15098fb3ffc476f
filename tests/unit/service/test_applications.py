"""Both applications as they are served, without a socket: errors as problems, one document, origins, who needs a key."""

import asyncio
import json
import logging
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import ClientDisconnect

from tacit.errors import InvalidParameter, LedgerDamaged, LedgerMissing, LedgerUnavailable, TacitError
from tacit.guarantees import ONE_USER, pure
from tacit.ledger import Budget, ImpressionLedger, PrivacyLedger
from tacit.messages.codec import read
from tacit.server import PrivateSelection
from tacit.service import curator_app, multi_selection, server_app, state
from tacit.service.bodies import SCHEMAS, PopularityRequest, SlateRequest
from tacit.service.keys import KeyRing, Scope, issue
from tacit.service.server_app import create_app
from tacit.service.settings import Settings
from tacit.service.telemetry import REGISTRY
from tacit.service.versions import current, mark_demonstration, publish, use
from tests.unit.server.small_store import small_store
from tests.unit.service.asking import Running, ask

SLATE = "/v1/multi-selection"


@pytest.fixture
def server(settings: Callable[..., Settings]) -> Iterator[Running]:
    with Running(create_app(settings())) as running:
        yield running


def test_an_error_that_nobody_expected_is_a_problem_without_its_message(
    server: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(_: object) -> Any:
        raise ZeroDivisionError("rating four-and-a-half of user 7")

    monkeypatch.setattr(multi_selection, "state_of", failing)
    with caplog.at_level(logging.ERROR, "tacit.service"):
        answer = server.ask("/v1/model")
    assert (answer.status, answer.code) == (500, "internal-error")
    assert "four-and-a-half" not in answer.body.decode()
    assert answer.headers["x-content-type-options"] == "nosniff"
    (record,) = caplog.records  # told once
    assert record.about["error"] == "ZeroDivisionError"  # type: ignore[attr-defined]
    assert "four-and-a-half" not in str(vars(record))  # in words: digits stand in its times by chance


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (LedgerUnavailable("the disk of db-3 is full."), 503, "ledger-unavailable"),
        (LedgerDamaged("row 7 of db-3."), 500, "internal-error"),
    ],
)
def test_an_error_of_the_library_is_told_to_the_caller_by_its_code_and_to_the_log_by_its_place(
    server: Running, error: Exception, status: int, code: str, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    def failing(*_: object) -> Any:
        raise error

    monkeypatch.setattr(ImpressionLedger, "item", failing)
    with caplog.at_level(logging.ERROR, "tacit.service"):
        answer = server.ask("/readyz")
    assert (answer.status, answer.code, "db-3" in answer.body.decode()) == (status, code, False)
    (record,) = caplog.records
    assert record.about["code"] == error.code  # type: ignore[attr-defined]
    assert "db-3" not in str(vars(record))


def test_a_caller_who_leaves_is_noted_as_such(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    def left(_: object) -> Any:
        raise ClientDisconnect

    monkeypatch.setattr(server_app, "state_of", left)
    server.ask("/readyz")
    labels = {"route": "/readyz", "method": "GET", "status": "499"}
    assert REGISTRY.get_sample_value("tacit_request_seconds_count", labels) == 1


@pytest.mark.parametrize(
    ("path", "more", "status", "code"),
    [
        ("/nowhere", {}, 404, "not-found"),
        ("/v1/model/", {}, 404, "not-found"),  # a redirect would go wherever the Host header says
        ("/v1/model", {"method": "BREW"}, 405, "method-not-allowed"),
        (SLATE, {"method": "POST", "body": b"{}"}, 415, "unsupported-media-type"),
        (SLATE, {"method": "POST", "body": b"{", "headers": {"content-type": "application/json"}}, 400, "malformed-body"),
        (SLATE, {"method": "POST", "body": b"{}", "headers": {"content-type": "application/json"}}, 422, "invalid-message"),
        (SLATE, {"method": "POST", "body": b"{}", "headers": {"content-length": "99999999"}}, 413, "too-large"),
        ("/v1/private-selection/scorer?part=x", {}, 422, "invalid-parameter"),
        ("/v1/private-selection/scorer?part=1", {}, 404, "not-found"),
        ("/v1/private-selection/scorer", {"headers": {"accept": "text/html"}}, 406, "not-acceptable"),
        ("/v1/slates/none", {}, 404, "not-found"),
        ("/v1/releases/store.tacit", {}, 404, "not-found"),  # a file of the version, and no release
        ("/v1/releases/..%2Fcurrent", {}, 404, "not-found"),
        ("/v1/slates/counts-1?alpha=nan", {}, 422, "invalid-parameter"),
        ("/metrics", {}, 401, "unauthorised"),
    ],
)  # fmt: skip
def test_whatever_goes_wrong_is_a_problem_with_a_code(
    server: Running, path: str, more: dict[str, Any], status: int, code: str
) -> None:
    answer = server.ask(path, **more)
    assert (answer.status, answer.code) == (status, code)
    assert answer.json()["status"] == status


def test_a_wrong_parameter_is_named_and_not_quoted(server: Running) -> None:
    answer = server.ask("/v1/private-selection/scorer?part=hunter2")
    assert answer.json()["detail"].startswith("part: ")
    assert "hunter2" not in answer.body.decode()


def test_the_document_names_every_route_and_all_that_it_refers_to(server: Running) -> None:
    document = server.ask("/openapi.json").json()
    assert document["components"]["schemas"] == SCHEMAS
    text = str(document)
    for named in {word.split("'")[0] for word in text.split("#/components/schemas/")[1:]}:
        assert named in SCHEMAS
    assert {"/v1/catalogue", SLATE, "/v1/private-selection/offers", "/v1/slates/{name}"} <= set(document["paths"])
    assert not [path for path in document["paths"] if path.startswith("/web")]


@pytest.mark.parametrize("path", ["/docs", "/redoc"])
def test_there_is_no_page_that_loads_scripts_from_elsewhere(server: Running, path: str) -> None:
    assert server.ask(path).status == 404


def test_a_page_of_a_named_origin_may_call_and_others_may_not(settings: Callable[..., Settings]) -> None:
    with Running(create_app(settings(origins="https://a.example", rate=0.001, burst=1))) as server:
        answer = server.ask("/v1/model", headers={"origin": "https://a.example"})
        assert answer.headers["access-control-allow-origin"] == "https://a.example"
        waits = server.ask("/v1/model", headers={"origin": "https://a.example"})
        assert (waits.status, waits.headers["access-control-allow-origin"]) == (429, "https://a.example")
        assert "Retry-After" in waits.headers["access-control-expose-headers"]
        other = server.ask("/v1/model", headers={"origin": "https://b.example"}, client=("192.0.2.9", 1))
        assert "access-control-allow-origin" not in other.headers


def test_what_browsers_ask_before_they_call_is_answered_noted_and_limited_like_all_else(
    settings: Callable[..., Settings], capfd: pytest.CaptureFixture[str]
) -> None:
    asked = {"origin": "https://a.example", "access-control-request-method": "POST",
             "access-control-request-headers": "content-type"}  # fmt: skip
    with Running(create_app(settings(origins="https://a.example", rate=0.001, burst=4, log_requests=True))) as server:
        capfd.readouterr()
        allowed = server.ask(SLATE, method="OPTIONS", headers=asked)
        assert (allowed.status, allowed.headers["access-control-allow-origin"]) == (200, "https://a.example")
        assert "POST" in allowed.headers["access-control-allow-methods"]
        for wrong in ({"origin": "https://b.example"}, {"access-control-request-method": "DELETE"},
                      {"access-control-request-headers": "authorization"}):  # fmt: skip
            refused = server.ask(SLATE, method="OPTIONS", headers={**asked, **wrong})
            assert (refused.status, refused.code) == (403, "forbidden")
            assert "access-control-allow-methods" not in refused.headers
            assert refused.headers["x-content-type-options"] == "nosniff"
        waits = server.ask(SLATE, method="OPTIONS", headers=asked)
        assert (waits.status, waits.code) == (429, "too-many-requests")
        assert len(capfd.readouterr().err.splitlines()) == 5
        plain = server.ask(SLATE, method="OPTIONS", client=("192.0.2.9", 1))
        assert (plain.status, plain.code) == (405, "method-not-allowed")


def test_who_asks_for_the_head_alone_gets_what_she_would_get(server: Running) -> None:
    """Monitors do. (The body is left out by the connection.)"""
    for path in ("/healthz", "/", "/v1/catalogue", "/nowhere"):
        whole, head = server.ask(path), server.ask(path, method="HEAD")
        assert (head.status, head.headers) == (whole.status, whole.headers)
    assert server.ask(SLATE, method="HEAD").code == "method-not-allowed"


def test_parts_of_the_scorer_say_of_which_version_they_are(server: Running) -> None:
    """Parts of two versions do not fit together."""
    version = server.ask("/v1/model").json()["version"]
    assert server.ask("/v1/private-selection/scorer").headers["tacit-version"] == version


def test_counts_are_in_the_open_for_as_long_as_the_demonstration_is_served_and_nobody_pays(
    settings: Callable[..., Settings], home: Path, tmp_path: Path
) -> None:
    counts, models = "/v1/private-selection/counts", home / "models"
    first = current(models)
    mark_demonstration(first)
    with Running(create_app(settings(models=models, swap_seconds=0.01))) as server:
        assert server.ask(counts).status == 200
        publish(models, small_store(20, look_alikes=5, seed=9))
        until(server, lambda: server.ask("/v1/model").json()["version"] != first.name)
        assert server.ask(counts).status == 401  # an operator's own items: how often they were shown is her affair
        use(models, first.name)
        until(server, lambda: server.ask("/v1/model").json()["version"] == first.name)
        assert server.ask(counts).status == 200
    (tmp_path / "bids.csv").write_text("item,bid_micros,ppm\n103,1000,1000\n")
    for closed in ({"listings": tmp_path / "bids.csv"}, {"open_counts": False}):
        with Running(create_app(settings(models=models, **closed))) as server:
            assert server.ask(counts).status == 401


def until(server: Running, so: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not so():
        assert time.monotonic() < end
        server.loop.run_until_complete(asyncio.sleep(0.01))


def test_the_end_waits_for_offers_and_reports_that_are_under_way(
    settings: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was acknowledged is on the disk; what is being written when a server is told to stop is, too."""
    begun, goes_on = threading.Event(), threading.Event()
    offer_many = PrivateSelection.offer_many

    def slow(self: PrivateSelection, asked: Any) -> Any:
        begun.set()
        assert goes_on.wait(10)
        return offer_many(self, asked)

    monkeypatch.setattr(PrivateSelection, "offer_many", slow)
    server = Running(create_app(settings()))
    body = b'{"version":1,"context":"","consent":1}'
    asking = ask(
        server.app,
        "/v1/private-selection/offers",
        method="POST",
        body=body,
        headers={"content-type": "application/json"},
    )
    with server:
        task = server.loop.create_task(asking)
        while not begun.is_set():
            server.loop.run_until_complete(asyncio.sleep(0.001))
        threading.Timer(0.1, goes_on.set).start()
    assert task.done()
    assert task.result().status == 200


def test_keys_that_cannot_be_read_again_are_told_once_and_those_that_were_known_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Else a revocation that was not taken up would be noticed by nobody."""
    file = tmp_path / "keys.json"
    text = issue(file, "grafana", Scope.OPERATOR)
    keys = KeyRing(file)
    monkeypatch.setattr(state, "_KEYS_EVERY", 0.002)

    looked: list[bool] = []
    refresh = KeyRing.refresh

    def counting(self: KeyRing) -> None:
        looked.append(True)
        refresh(self)

    monkeypatch.setattr(KeyRing, "refresh", counting)

    async def watching(changes: list[str]) -> None:
        watch = asyncio.ensure_future(state.watch_keys(keys))
        for content in changes:
            file.write_text(content)
            enough = len(looked) + 3
            async with asyncio.timeout(20):
                while len(looked) < enough:
                    await asyncio.sleep(0.002)
        watch.cancel()

    whole = file.read_text()
    with caplog.at_level(logging.ERROR, "tacit.service"):
        asyncio.run(watching(["{", "{{", whole]))
        assert keys.find(f"Bearer {text}") is not None
        (record,) = caplog.records
        assert "the keys cannot be read" in record.getMessage()
        assert str(file) in record.about["because"]  # type: ignore[attr-defined]
        asyncio.run(watching(["{"]))
    assert len(caplog.records) == 2


def test_without_origins_no_page_from_elsewhere_may_call(server: Running) -> None:
    answer = server.ask("/v1/model", headers={"origin": "https://a.example"})
    assert "access-control-allow-origin" not in answer.headers


def test_metrics_and_counts_are_for_those_who_may_see_them(settings: Callable[..., Settings], tmp_path: Path) -> None:
    texts = {
        "operator": issue(tmp_path / "keys.json", "operator", Scope.OPERATOR),
        "statements": issue(tmp_path / "keys.json", "acme", Scope.STATEMENTS, items=["103"]),
        "entity": issue(tmp_path / "keys.json", "library", Scope.ENTITY, entity="e"),
    }
    expected = {
        "/metrics": {"operator"},
        "/v1/private-selection/counts": {"operator", "statements"},
        "/v1/statements?first_day=2026-11-01&last_day=2026-11-30": {"operator", "statements"},
        "/v1/private-selection/clicks?item=103": {"operator", "statements"},
        "/v1/private-selection/clicks?item=106": {"operator"},
    }
    with Running(create_app(settings())) as server:
        for path, scopes in expected.items():
            answer = server.ask(path)
            assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
            for scope, text in texts.items():
                status = server.ask(path, headers={"authorization": f"Bearer {text}"}).status
                assert status == (200 if scope in scopes else 403), (path, scope)
    with Running(create_app(settings(open_counts=True))) as server:
        assert server.ask("/v1/private-selection/counts").status == 200
        assert server.ask("/metrics").status == 401  # open counts open nothing else


def test_the_page_can_be_left_out(settings: Callable[..., Settings], server: Running) -> None:
    assert server.ask("/").headers["content-type"].startswith("text/html")
    assert server.ask("/web/../settings.py").status == server.ask("/web/none.js").status == 404
    with Running(create_app(settings(page=False))) as without:
        assert without.ask("/").status == 404


def test_a_curators_ledger_is_opened_never_made_and_an_old_copy_is_refused(
    settings: Callable[..., Settings], tmp_path: Path
) -> None:
    target, head = tmp_path / "curator.db", tmp_path / "head.json"
    with pytest.raises(LedgerMissing):
        curator_app.open_ledger(settings())
    assert not target.exists()
    with PrivacyLedger.create(target) as ledger:
        ledger.enrol("all", Budget(1.0), protects=ONE_USER)
        old = shutil.copy(target, tmp_path / "old.db")
        ledger.charge("all", "one", pure(0.5, ONE_USER))
        head.write_text(json.dumps(ledger.head().to_json()))
    curator_app.open_ledger(settings(head=head)).close()
    with pytest.raises(TacitError, match="ledger"):
        curator_app.open_ledger(settings(head=head, ledger=str(old)))
    with pytest.raises(InvalidParameter, match="head"):
        curator_app.open_ledger(settings(head=tmp_path / "none.json"))


def test_a_curator_holds_ratings_or_does_not_start(settings: Callable[..., Settings]) -> None:
    with pytest.raises(InvalidParameter, match="needs ratings"):
        curator_app.create_app(settings())


@pytest.mark.parametrize("asked", [[], {"k": 0}, {"epsilon": 0.0}, {"epsilon": 101}, {"epsilon": "1"}, {"more": 1},
                                   {"request_id": ""}, {"k": True}, {"slates": 10**7}])  # fmt: skip
def test_what_a_curator_is_asked_for_is_checked(asked: Any) -> None:
    with pytest.raises(ValueError, match="invalid-message"):
        read(asked, SlateRequest, "a request for a slate")


def test_a_curator_is_asked_for_the_usual_where_nothing_is_said() -> None:
    assert read({}, SlateRequest, "a request for a slate") == SlateRequest(1.0, 10, 1, None)
    assert read({}, PopularityRequest, "a request for counts") == PopularityRequest(1.0)
