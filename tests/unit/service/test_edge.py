"""The edge: what every answer carries, and who is turned away before the application sees her."""

import asyncio
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from tacit.service.application import PAGE_POLICY, Edge
from tacit.service.bodies import Problem
from tacit.service.keys import KeyRing, issue
from tacit.service.keys import Scope as KeyScope
from tacit.service.settings import Settings
from tests.unit.service.asking import Answer, ask

Given = Callable[..., Settings]
FINE = Response(b"fine")
ALWAYS = {
    "content-security-policy": PAGE_POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), browsing-topics=()",
    "cross-origin-resource-policy": "same-origin",
}


def asked(app: ASGIApp, times: int = 1, path: str = "/", **more: Any) -> list[Answer]:
    async def asking() -> list[Answer]:
        return [await ask(app, path, **more) for _ in range(times)]

    return asyncio.run(asking())


@pytest.fixture
def edge(settings: Given, tmp_path: Path) -> Callable[..., Edge]:
    def make(app: ASGIApp = FINE, most_body: Callable[[str], int] | None = None, **given: Any) -> Edge:
        return Edge(app, settings(**given), KeyRing(tmp_path / "keys.json"), most_body=most_body)

    return make


async def failing(scope: Scope, receive: Receive, send: Send) -> None:
    raise ValueError("rating 4.5 of user 7")


async def refusing(scope: Scope, receive: Receive, send: Send) -> None:
    raise Problem("not-ready", "later.")


@pytest.mark.parametrize(
    ("app", "headers", "status"),
    [
        (FINE, {}, 200),
        (Response(status_code=404), {}, 404),
        (failing, {}, 500),
        (refusing, {}, 503),
        (FINE, {"content-length": "2000000"}, 413),
    ],
)
def test_every_answer_has_the_headers_that_protect_a_page(
    edge: Callable[..., Edge], app: ASGIApp, headers: dict[str, str], status: int
) -> None:
    (answer,) = asked(edge(app), headers=headers)
    assert answer.status == status
    assert {name: answer.headers.get(name) for name in ALWAYS} == ALWAYS
    assert answer.headers["cache-control"] == "no-store"
    assert "server" not in answer.headers
    assert "strict-transport-security" not in answer.headers


def test_a_page_may_load_nothing_from_elsewhere() -> None:
    rules = dict(rule.split(" ", 1) for rule in PAGE_POLICY.split("; "))
    assert rules["default-src"] == rules["frame-ancestors"] == rules["form-action"] == rules["base-uri"] == "'none'"
    assert set(" ".join(rules.values()).split()) == {"'none'", "'self'", "data:"}
    assert rules["script-src"] == "'self'"


def test_an_answer_that_may_be_kept_says_so_itself(edge: Callable[..., Edge]) -> None:
    (answer,) = asked(edge(Response(b"", headers={"Cache-Control": "public, max-age=60"})))
    assert answer.headers["cache-control"] == "public, max-age=60"


@pytest.mark.parametrize("given", [{"https": True}, {"tls_certificate": "cert.pem"}])
def test_over_https_browsers_are_told_to_stay_there(edge: Callable[..., Edge], given: dict[str, Any]) -> None:
    (answer,) = asked(edge(**given))
    assert answer.headers["strict-transport-security"].startswith("max-age=31536000")


def test_other_sites_may_load_answers_only_where_some_are_named(edge: Callable[..., Edge]) -> None:
    (answer,) = asked(edge(origins="https://a.example"))
    assert answer.headers["cross-origin-resource-policy"] == "cross-origin"


def test_an_address_that_asks_too_often_waits_and_others_do_not(edge: Callable[..., Edge]) -> None:
    one = edge(rate=0.05, burst=3)
    answers = asked(one, 5)
    assert [answer.status for answer in answers] == [200, 200, 200, 429, 429]
    assert answers[-1].code == "too-many-requests"
    assert 15 <= int(answers[-1].headers["retry-after"]) <= 21  # at a request in 20 seconds
    assert asked(one, client=("192.0.2.2", 1))[0].status == 200
    assert asked(one, client=("192.0.2.1", 999))[0].status == 429  # another port is the same address


def test_workers_share_the_rate(edge: Callable[..., Edge]) -> None:
    allowed = [answer.status for answer in asked(edge(rate=0.01, burst=800, workers=4), 201)]
    assert (allowed[:200], allowed[200]) == ([200] * 200, 429)


def test_however_many_workers_there_are_a_page_can_be_loaded_from_one_of_them(edge: Callable[..., Edge]) -> None:
    """A kept connection stays with one worker."""
    assert [answer.status for answer in asked(edge(workers=256, rate=100.0, burst=400), 100)] == [200] * 100
    assert [answer.status for answer in asked(edge(rate=0.01, burst=2, workers=4), 3)] == [200, 200, 429]  # as was set


def test_who_has_a_key_has_a_bucket_of_her_own(edge: Callable[..., Edge], tmp_path: Path) -> None:
    """However many share an address: and no made-up key, or one that does not hold any more, gets round the limit."""
    texts = [issue(tmp_path / "keys.json", name, KeyScope.OPERATOR) for name in ("one", "two")]
    old = issue(tmp_path / "keys.json", "old", KeyScope.OPERATOR, expires=date(2020, 1, 1))
    one = edge(rate=0.01, burst=2)
    assert [answer.status for answer in asked(one, 3)] == [200, 200, 429]
    for text in texts:
        with_key = {"authorization": f"Bearer {text}"}
        assert [answer.status for answer in asked(one, 3, headers=with_key)] == [200, 200, 429]
        elsewhere = asked(one, headers=with_key, client=("198.51.100.1", 1))
        assert elsewhere[0].status == 429  # the bucket is the key's, wherever it is used
    for wrong in (old, texts[0][:-1] + ("A" if texts[0][-1] != "A" else "B"), f"tacit_{'0' * 8}_{'A' * 43}", "\xff"):
        assert asked(one, headers={"authorization": f"Bearer {wrong}"})[0].status == 429


async def reading(scope: Scope, receive: Receive, send: Send) -> None:
    size, more = 0, True
    while more:
        message = await receive()
        size, more = size + len(message.get("body", b"")), message.get("more_body", False)
    await Response(str(size))(scope, receive, send)


@pytest.mark.parametrize("announced", ["1025", "9" * 16, "9" * 5000])
def test_a_body_that_is_announced_too_large_is_not_read(edge: Callable[..., Edge], announced: str) -> None:
    async def never(scope: Scope, receive: Receive, send: Send) -> None:
        pytest.fail("the application was asked")

    (answer,) = asked(edge(never, most_body=lambda _: 1024), method="POST", headers={"content-length": announced})
    assert (answer.status, answer.code, answer.headers["connection"]) == (413, "too-large", "close")


@pytest.mark.parametrize("headers", [{}, {"content-length": "5"}, {"content-length": "none"}])
def test_a_body_that_turns_out_too_large_is_refused_whatever_was_announced(
    edge: Callable[..., Edge], headers: dict[str, str]
) -> None:
    small = edge(reading, most_body=lambda _: 1024)
    assert asked(small, method="POST", body=[b"x" * 1000, b"x" * 24], headers=headers)[0].body == b"1024"
    assert asked(small, method="POST", body=[b"x" * 1000, b"x" * 25], headers=headers)[0].code == "too-large"


def test_the_limit_of_a_body_may_be_another_for_some_paths(edge: Callable[..., Edge]) -> None:
    one = edge(reading, most_body=lambda path: 2048 if path.startswith("/large/") else 1024)
    statuses = [asked(one, path=path, method="POST", body=b"x" * 1500)[0].status for path in ("/large/x", "/x")]
    assert statuses == [200, 413]
    assert asked(edge(reading), method="POST", body=b"x" * (1 << 20))[0].status == 200
    assert asked(edge(reading), method="POST", body=b"x" * ((1 << 20) + 1))[0].status == 413
