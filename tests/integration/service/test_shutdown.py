"""The beginning and the end of a service: ready when it can answer, and not gone before it has."""

import os
import signal
import socket
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.integration.service.conftest import Serve
from tests.integration.service.raw import HEALTH, Raw, post
from tests.integration.service.serving import until
from tests.integration.service.talking import BINARY, JSON, MULTI_SELECTION, OFFERS, request_of


def test_until_it_is_ready_nobody_gets_a_wrong_answer(serve: Serve) -> None:
    """Connections are refused or wait; the first answer of any kind is a right one."""
    service = serve(workers=2).begin()
    until(service.has_told_where, 30)
    seen: list[int | str] = []
    end = time.monotonic() + 60
    while seen.count(200) < 20 and time.monotonic() < end:
        try:
            seen.append(httpx.get(f"{service.address}/readyz", trust_env=False, timeout=30).status_code)
        except httpx.ConnectError:
            seen.append("refused")
            time.sleep(0.05)
    assert set(seen) <= {"refused", 200}
    assert seen[seen.index(200) :] == [200] * 20


def test_when_it_says_that_it_is_ready_it_is(serve: Serve) -> None:
    service = serve().begin()
    until(lambda: "Ready. Open http://" in service.printed, 60)
    assert service.has_told_where()
    assert service.is_ready()


def test_requests_under_way_when_it_is_told_to_stop_are_answered_and_its_status_is_0(serve: Serve) -> None:
    service = serve().start()
    content = request_of().to_bytes()
    head = post(MULTI_SELECTION, f"Content-Type: {BINARY}", f"Content-Length: {len(content)}")
    halves = [Raw(service.port) for _ in range(8)]
    offer = b'{"version":1,"context":"","consent":1}'
    other = Raw(service.port)
    try:
        for one in halves:
            assert one.send(head + content[:50])
        assert other.send(post(OFFERS, f"Content-Type: {JSON}", f"Content-Length: {len(offer)}", content=offer[:9]))
        time.sleep(0.3)  # they have arrived
        service.tell_to_stop()
        until(lambda: '"Shutting down"' in service.printed, 10, "it does not stop")
        until(lambda: not _listens(service.port), 5, "who comes now waits for an answer that never comes")
        for one in halves:
            assert one.send(content[50:])
        assert other.send(offer[9:])
        for one in (*halves, other):
            one.listen(10)
            assert (one.status, one.closed) == (200, True)
    finally:
        for one in (*halves, other):
            one.__exit__()
    assert service.wait() == 0
    assert "Traceback" not in service.printed


def test_the_first_request_of_a_new_connection_is_answered_although_the_worker_stops(serve: Serve) -> None:
    """Otherwise each reload loses the requests that are on their way to the worker that it replaces."""
    service = serve(grace_seconds=20).start()
    with Raw(service.port) as caller:
        time.sleep(0.1)  # the worker has accepted it
        service.tell_to_stop()
        until(lambda: '"Shutting down"' in service.printed, 10, "it does not stop")
        time.sleep(0.2)  # it has told its connections to end
        assert caller.send(HEALTH)
        caller.listen(10)
        assert (caller.status, caller.closed) == (200, True)
        assert b"connection: close" in caller.answer.lower()
    assert service.wait() == 0


def test_connections_that_are_kept_without_a_request_do_not_delay_the_end(serve: Serve) -> None:
    service = serve(grace_seconds=20).start()
    with service.client() as kept, Raw(service.port) as silent:
        assert kept.get("/healthz").status_code == 200
        begun = time.monotonic()
        assert service.stop() == 0
        assert time.monotonic() - begun < 10
        silent.listen(2)
        assert silent.closed


def test_a_request_that_never_ends_delays_the_end_no_longer_than_was_said(serve: Serve) -> None:
    service = serve(grace_seconds=2, body_seconds=60).start()
    with Raw(service.port) as slow:
        slow.send(post(OFFERS, f"Content-Type: {JSON}", "Content-Length: 100", content=b"{"))
        time.sleep(0.3)
        begun = time.monotonic()
        assert service.stop() == 0
        assert time.monotonic() - begun < 12


def test_two_workers_answer_and_end_together(serve: Serve) -> None:
    service = serve(workers=2).start()
    until(lambda: len(service.workers()) == 2, 20)
    workers = service.workers()
    over = threading.Event()

    def ask(_: int) -> int:
        asked = 0
        with service.client() as client:
            while not over.is_set():
                try:
                    assert client.get("/v1/model").status_code == 200
                except httpx.TransportError:  # it has ended
                    return asked
                asked += 1
        return asked

    with ThreadPoolExecutor(6) as threads:
        asking = [threads.submit(ask, number) for number in range(6)]
        time.sleep(1)
        assert service.stop() == 0
        over.set()
        assert all(one.result(30) > 0 for one in asking)
    assert not [pid for pid in workers if _runs(pid)]


@pytest.mark.parametrize("started", [0, 1, 2], ids=["while they start", "when one answers", "when both answer"])
def test_workers_do_not_outlive_the_process_that_started_them(serve: Serve, started: int) -> None:
    """Else they would answer on, with nobody to stop them, and hold the port against the next start."""
    service = serve(workers=2).begin()
    ready = '"Application startup complete."'
    until(lambda: len(service.workers()) == 2 and service.printed.count(ready) >= started, 60)
    workers = service.workers()
    os.kill(service.pid, signal.SIGKILL)
    until(lambda: not any(_runs(pid) for pid in workers), 15, "they go on")


def test_a_port_that_is_taken_is_one_line_and_no_status_0(serve: Serve) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        service = serve()
        service.port = taken.getsockname()[1]
        service.begin()
        assert service.wait(60) != 0
    assert "Traceback" not in service.printed


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"rate": "many"}, "rate"),
        ({"workers": 0}, "workers"),
        ({"no_such_setting": 1}, "NO_SUCH_SETTING"),
        ({"policy": "nonsense"}, "policy"),
        ({"listings": "/no/such/file"}, "/no/such/file"),
        ({"database": "postgresql://somebody:hush@127.0.0.1:1/none"}, "ledger"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_settings_that_cannot_be_are_told_and_end_it(serve: Serve, settings: dict[str, object], told: str) -> None:
    service = serve(**settings)
    service.begin()
    try:
        assert service.wait(60) not in (0, None)
    except subprocess.TimeoutExpired:
        pytest.fail("it goes on, and answers nobody")
    assert told in service.printed
    assert 'File "' not in service.printed  # what is told is what to change, not where it was noticed
    assert "hush" not in service.printed


def _listens(port: int) -> bool:
    with socket.socket() as attempt:
        return attempt.connect_ex(("127.0.0.1", port)) == 0


def _runs(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as state:
            return state.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
