"""Callers that are too slow, too large or no callers at all: each is sent away in time, and nobody else notices."""

import json
import time
from collections.abc import Iterator

import pytest

from tests.integration.service.conftest import Published, Serve
from tests.integration.service.raw import HEALTH, Raw, chunks, post
from tests.integration.service.serving import Service, until
from tests.integration.service.talking import BINARY, JSON, MULTI_SELECTION, OFFERS, request_of, require_problem

SECONDS = 1.0  # for a header, and for a body
MOST = 4096  # bytes of a body
SOON = 4.0  # well after it, also on a busy machine, and well before connections that are kept are closed


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory, published: Published) -> Iterator[Service]:
    """A service with little patience."""
    limits = {"header_seconds": SECONDS, "body_seconds": SECONDS, "most_body": MOST}
    service = Service(tmp_path_factory.mktemp("strict"), models=published.models, rate=0, **limits)
    service.start()
    workers = service.workers()
    yield service
    try:
        assert service.workers() == workers, "a worker died, and another one took its place"
        assert service.is_ready()
        assert '"level":"error"' not in service.printed  # whoever likes could fill the log with errors
    finally:
        service.kill()


@pytest.fixture
def raw(strict: Service) -> Iterator[Raw]:
    with Raw(strict.port) as raw:
        yield raw


def problem_of(raw: Raw) -> dict[str, object]:
    assert b"content-type: application/problem+json" in raw.answer
    found: dict[str, object] = json.loads(raw.answer.rpartition(b"\r\n\r\n")[2])
    return found


# --- Bodies


def test_a_body_that_is_announced_too_long_is_refused_before_it_is_sent(raw: Raw) -> None:
    raw.send(post(MULTI_SELECTION, f"Content-Type: {BINARY}", f"Content-Length: {MOST + 1}"))
    raw.listen(SOON)
    assert (raw.status, problem_of(raw)["code"], raw.closed) == (413, "too-large", True)
    assert raw.closed_after < SECONDS


def test_a_body_in_chunks_is_refused_when_it_becomes_too_long(raw: Raw) -> None:
    raw.send(post(OFFERS, f"Content-Type: {JSON}", "Transfer-Encoding: chunked"))
    taken = raw.dribble([chunks(b" " * 512)] * 40, 0.01)
    raw.listen(SOON)
    assert (raw.status, raw.closed) == (413, True)
    assert problem_of(raw)["code"] == "too-large"
    assert taken < 40


def test_a_body_of_the_most_bytes_is_read(raw: Raw) -> None:
    content = b'{"version":1,"context":"","consent":1}'.ljust(MOST)
    raw.send(post(OFFERS, f"Content-Type: {JSON}", f"Content-Length: {MOST}", content=content))
    assert raw.listen(SOON, enough=1).startswith(b"HTTP/1.1 200")


def test_a_body_that_does_not_come_is_waited_for_no_longer_than_was_said(raw: Raw) -> None:
    raw.send(post(OFFERS, f"Content-Type: {JSON}", "Content-Length: 100", content=b'{"version":1,'))
    raw.listen(SOON)
    assert (raw.status, problem_of(raw)["code"], raw.closed) == (408, "too-slow", True)
    assert SECONDS * 0.9 < raw.closed_after < SOON


def test_a_body_that_comes_byte_by_byte_has_that_time_and_no_more(raw: Raw, strict: Service) -> None:
    content = request_of().to_bytes()
    head = post(MULTI_SELECTION, f"Content-Type: {BINARY}", f"Content-Length: {len(content)}")
    raw.send(head)
    assert raw.dribble([content[place : place + 1] for place in range(len(content))], 0.0) == len(content)
    raw.listen(1.0)
    assert raw.status == 200
    with Raw(strict.port) as slow:
        slow.send(head)
        assert slow.dribble([content[place : place + 1] for place in range(len(content))], 0.05) < len(content)
        slow.listen(SOON)
        assert (slow.status, slow.closed) == (408, True)


@pytest.mark.parametrize("path", ["/nothing", "/v1/model", MULTI_SELECTION], ids=["404", "405", "415"])
def test_a_body_that_nobody_reads_is_not_taken_without_end(raw: Raw, path: str) -> None:
    """It would be neither counted nor timed: the connection ends with the answer."""
    raw.send(post(path, "Content-Type: text/plain", "Transfer-Encoding: chunked"))
    taken = raw.dribble([chunks(b" " * 512)] * 60, 0.05)
    raw.listen(SOON)
    assert raw.status in (404, 405, 415)
    assert raw.closed
    assert taken < 60


# --- Headers


def test_a_header_that_does_not_end_is_waited_for_no_longer_than_was_said(raw: Raw) -> None:
    raw.send(HEALTH[:20])
    raw.listen(SOON)
    assert (raw.answer, raw.closed) == (b"", True)
    assert SECONDS * 0.9 < raw.closed_after < SOON


def test_a_header_that_comes_byte_by_byte_has_that_time_and_no_more(raw: Raw, strict: Service) -> None:
    raw.dribble([HEALTH[place : place + 1] for place in range(len(HEALTH))], 0.0)
    assert raw.listen(0.5, enough=1).startswith(b"HTTP/1.1 200")
    with Raw(strict.port) as slow:
        assert slow.dribble([HEALTH[place : place + 1] for place in range(len(HEALTH))], 0.1) < len(HEALTH)


def test_a_connection_that_says_nothing_is_closed(raw: Raw) -> None:
    raw.listen(SOON)
    assert (raw.answer, raw.closed) == (b"", True)


@pytest.mark.parametrize("rest", [HEALTH[:20], b"\r\n"], ids=["half a header", "an empty line"])
def test_the_next_request_of_a_connection_has_no_more_time_than_the_first(raw: Raw, rest: bytes) -> None:
    raw.send(HEALTH)
    assert raw.listen(SOON, enough=1).startswith(b"HTTP/1.1 200")
    raw.send(rest)
    raw.listen(SOON)
    assert raw.closed


@pytest.mark.parametrize(
    "header",
    [b"X-Long: " + b"a" * (8 << 20) + b"\r\n", b"".join(b"X-%d: a\r\n" % number for number in range(300_000))],
    ids=["one long", "very many"],
)
def test_headers_without_end_are_not_taken(raw: Raw, strict: Service, header: bytes) -> None:
    begun = time.monotonic()
    raw.send(HEALTH[:-2] + header + b"\r\n")
    raw.listen(SOON)
    assert raw.status in (0, 400, 431)
    assert raw.closed
    with strict.client() as client:
        assert client.get("/healthz").status_code == 200
    assert time.monotonic() - begun < SOON


# --- What is no HTTP, and very many


@pytest.mark.parametrize(
    "content",
    [
        b"\x00\x01\x02\x03\r\n\r\n",
        b"hello\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),  # the beginning of TLS
        post(OFFERS, "Content-Length: 5", "Content-Length: 6", content=b"hello!"),
        post(OFFERS, "Content-Length: 5", "Transfer-Encoding: chunked", content=b"0\r\n\r\n"),
        post(OFFERS, "Content-Length: -1", content=b"hello"),
        post(OFFERS, f"Content-Type: {JSON}", "Transfer-Encoding: chunked", content=b"zz\r\nhello\r\n"),
        b"CONNECT elsewhere.example:443 HTTP/1.1\r\nHost: elsewhere.example\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: here\r\n\r\n",
    ],
    ids=lambda content: content[:20].decode("latin-1").strip(),
)
def test_what_is_no_http_is_refused_and_the_connection_closed(raw: Raw, content: bytes) -> None:
    raw.send(content)
    raw.listen(SOON)
    assert raw.status in (0, 400, 404, 405, 415, 422)
    assert raw.closed


def test_requests_that_do_not_wait_for_answers_are_answered_in_their_order(raw: Raw) -> None:
    content = request_of().to_json()
    body = json.dumps(content).encode()
    one = post(MULTI_SELECTION, f"Content-Type: {JSON}", f"Content-Length: {len(body)}", content=body)
    raw.send((HEALTH + one) * 5)
    raw.listen(SOON, enough=10)
    statuses = [part.split()[0] for part in raw.answer.split(b"HTTP/1.1 ")[1:]]
    assert statuses == [b"200"] * 10
    assert [b'"alive"' in part for part in raw.answer.split(b"HTTP/1.1 ")[1:]] == [True, False] * 5


def test_garbage_behind_a_request_ends_its_connection_and_no_other(raw: Raw, strict: Service) -> None:
    with strict.client() as other:
        assert other.get("/healthz").status_code == 200
        raw.send(HEALTH * 3 + b"\x00\xffgarbage\r\n\r\n" + HEALTH)
        raw.listen(SOON)
        assert raw.closed
        assert other.get("/healthz").status_code == 200


def test_many_connections_that_do_nothing_keep_nobody_from_being_answered(strict: Service) -> None:
    idle = [Raw(strict.port) for _ in range(200)]
    try:
        for number, one in enumerate(idle):
            one.send(
                (b"", b"GET", HEALTH[:-2], post(OFFERS, f"Content-Type: {JSON}", "Content-Length: 50"))[number % 4]
            )
        with strict.client(timeout=2) as client:
            for _ in range(20):
                assert client.get("/v1/model").status_code == 200
        for one in idle:
            one.listen(SOON)
        assert all(one.closed for one in idle)
    finally:
        for one in idle:
            one.__exit__()


def test_who_asks_too_often_waits_as_long_as_was_said_and_then_goes_on(serve: Serve) -> None:
    service = serve(rate=5, burst=10)
    with service.start().client() as client:
        begun = time.monotonic()
        answers = [client.get("/healthz") for _ in range(60)]
        allowed = 10 + 5 * (time.monotonic() - begun)
        refused = [one for one in answers if one.status_code == 429]
        assert 60 - allowed - 1 <= len(refused) < 60  # what was asked before it was ready counts too
        for one in refused:
            require_problem(one, 429, "too-many-requests")
            assert int(one.headers["retry-after"]) >= 1
        time.sleep(int(refused[-1].headers["retry-after"]))
        assert client.get("/healthz").status_code == 200
    until(service.is_ready, 10)  # others' requests are not in question: the worker lives
