"""Both applications as they are served, without a socket: errors as problems, one document, origins, who needs a key."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import ClientDisconnect

from tacit.errors import InvalidParameter, LedgerDamaged, LedgerUnavailable
from tacit.ledger import ImpressionLedger
from tacit.service import curator_app, multi_selection, operations
from tacit.service.keys import Scope, issue
from tacit.service.metrics import REGISTRY
from tacit.service.schemas import SCHEMAS
from tacit.service.server_app import create_app
from tacit.service.settings import Settings
from tests.unit.service.asking import Running

SLATE = "/v1/multi-selection"


@pytest.fixture
def server(settings: Callable[..., Settings]) -> Iterator[Running]:
    with Running(create_app(settings())) as running:
        yield running


def test_an_error_that_nobody_expected_is_a_problem_without_its_message(
    server: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(_: object) -> Any:
        raise ZeroDivisionError("rating 4.5 of user 7")

    monkeypatch.setattr(multi_selection, "state_of", failing)
    with caplog.at_level(logging.ERROR, "tacit.service"):
        answer = server.ask("/v1/model")
    assert (answer.status, answer.code) == (500, "internal-error")
    assert "4.5" not in answer.body.decode()
    assert answer.headers["x-content-type-options"] == "nosniff"
    (record,) = caplog.records  # told once
    assert record.about["error"] == "ZeroDivisionError"  # type: ignore[attr-defined]
    assert "4.5" not in str(vars(record))


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

    monkeypatch.setattr(operations, "state_of", left)
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


def test_a_curator_holds_ratings_or_does_not_start(settings: Callable[..., Settings]) -> None:
    with pytest.raises(InvalidParameter, match="name them"):
        curator_app.create_app(settings())


@pytest.mark.parametrize("asked", [[], {"k": 0}, {"epsilon": 0.0}, {"epsilon": 101}, {"epsilon": "1"}, {"more": 1},
                                   {"request_id": ""}, {"k": True}, {"slates": 10**7}])  # fmt: skip
def test_what_a_curator_is_asked_for_is_checked(asked: Any) -> None:
    with pytest.raises(ValueError, match="invalid-message"):
        curator_app._asked(asked, {"k", "epsilon", "slates", "request_id"})


def test_a_curator_is_asked_for_the_usual_where_nothing_is_said() -> None:
    usual = {"epsilon": 1.0, "k": 10, "slates": 1, "request_id": None}
    assert curator_app._asked({}, {"epsilon"}) == usual
