"""Connections that do not say what they want, or say too much: timers and sizes of the protocol, without a socket."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tacit.service import run
from tacit.service.run import FIRST_SECONDS, MOST_HEADER, UNREAD_SECONDS, BoundedConnection, _header_seconds


class Timer:
    def __init__(self, after: float, work: Callable[[], None]) -> None:
        self.after, self.work, self.cancelled = after, work, False

    def cancel(self) -> None:
        self.cancelled = True


class Loop:
    """An event loop whose clock stands still."""

    def __init__(self) -> None:
        self.timers: list[Timer] = []

    def call_later(self, after: float, work: Callable[..., None], *given: Any) -> Timer:
        self.timers.append(Timer(after, lambda: work(*given)))
        return self.timers[-1]


class Transport:
    closed, aborted, written, unread = False, False, b"", 0

    def get_write_buffer_size(self) -> int:
        return self.unread

    def abort(self) -> None:
        self.aborted = True

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        assert not self.closed, "it is closed once"
        self.closed = True

    def write(self, content: bytes) -> None:
        self.written += content


@pytest.fixture
def connection(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A connection of uvicorn's protocol, of which only what is tested here is real."""

    def made(self: Any, transport: Any) -> None:
        self.transport = transport

    monkeypatch.setattr(HttpToolsProtocol, "connection_made", made)
    for name in ("on_message_begin", "on_headers_complete", "on_message_complete", "on_response_complete"):
        monkeypatch.setattr(HttpToolsProtocol, name, lambda self: None)
    for name in ("pause_writing", "resume_writing"):
        monkeypatch.setattr(HttpToolsProtocol, name, lambda self: None)
    for name in ("connection_lost", "data_received"):
        monkeypatch.setattr(HttpToolsProtocol, name, lambda self, given: None)
    monkeypatch.setattr(run, "_header_seconds", lambda: 7.5)
    found: Any = BoundedConnection.__new__(BoundedConnection)
    found.loop, found.cycle, found.pipeline = Loop(), None, []
    found.connection_made(Transport())
    return found


def timers(connection: Any) -> list[Timer]:
    return [timer for timer in connection.loop.timers if not timer.cancelled]


def under_way(*, complete: bool = False, more_body: bool = False, length: bytes | None = None) -> Any:
    headers = [] if length is None else [(b"content-length", length)]
    return SimpleNamespace(response_complete=complete, more_body=more_body, scope={"headers": headers})


def test_a_connection_that_says_nothing_is_closed_in_time(connection: Any) -> None:
    (timer,) = timers(connection)
    assert timer.after == 7.5
    timer.work()
    assert connection.transport.closed


def test_the_first_bytes_of_a_request_give_no_more_time(connection: Any) -> None:
    """Else a caller who sends a letter now and then would stay for ever."""
    (timer,) = timers(connection)
    connection.on_message_begin()
    connection.data_received(b"GET / HT")
    connection.data_received(b"T")
    assert timers(connection) == [timer]


def test_a_complete_header_ends_the_wait(connection: Any) -> None:
    connection.on_message_begin()
    connection.on_headers_complete()
    assert timers(connection) == []


def test_the_next_request_of_a_connection_has_its_own_time(connection: Any) -> None:
    connection.on_message_begin()
    connection.on_headers_complete()
    connection.on_message_begin()
    (timer,) = timers(connection)
    timer.work()
    assert connection.transport.closed


def test_what_is_no_beginning_of_a_request_is_waited_for_as_long(connection: Any) -> None:
    """Empty lines between requests, for example, of which a parser says nothing."""
    connection.on_message_begin()
    connection.on_headers_complete()
    connection.cycle = under_way(complete=True)
    assert timers(connection) == []
    connection.data_received(b"\r\n")
    assert len(timers(connection)) == 1
    connection.data_received(b"\r\n")
    assert len(timers(connection)) == 1


def test_a_connection_that_is_gone_leaves_no_timer(connection: Any) -> None:
    connection.connection_lost(None)
    assert timers(connection) == []


def test_who_reads_no_answer_is_not_waited_for(connection: Any) -> None:
    connection.on_message_begin()
    connection.on_headers_complete()
    connection.transport.unread = 1000
    connection.pause_writing()
    (timer,) = timers(connection)
    assert timer.after == UNREAD_SECONDS
    timer.work()
    assert connection.transport.aborted  # closing would wait for what nobody reads


def test_who_reads_slowly_is_waited_for_as_long_as_she_reads(connection: Any) -> None:
    """A large answer lies in the buffer as a whole: nobody has to read all of it in that time."""
    connection.on_message_begin()
    connection.on_headers_complete()
    connection.transport.unread = 1000
    connection.pause_writing()
    for left in (900, 899, 10):
        (timer,) = timers(connection)
        connection.transport.unread = left
        timer.cancel()  # it has passed
        timer.work()
        assert not connection.transport.aborted
    (timer,) = timers(connection)
    timer.work()
    assert connection.transport.aborted


def test_what_was_read_in_the_end_is_watched_no_more(connection: Any) -> None:
    connection.on_message_begin()
    connection.on_headers_complete()
    for _ in range(3):
        connection.pause_writing()
        assert len(timers(connection)) == 1
        connection.resume_writing()
        assert timers(connection) == []
    connection.pause_writing()
    connection.connection_lost(None)
    assert timers(connection) == []


def test_a_connection_is_closed_when_its_answer_is_read_or_when_nobody_reads_it(connection: Any) -> None:
    (timer,) = timers(connection)
    connection.transport.unread = 10
    timer.work()
    assert connection.transport.closed
    assert not connection.transport.aborted
    (timer,) = [one for one in timers(connection) if one.after == UNREAD_SECONDS]
    timer.work()
    assert connection.transport.aborted


def test_a_connection_that_is_closing_is_left_alone(connection: Any) -> None:
    (timer,) = timers(connection)
    connection.transport.closed = True
    timer.work()
    connection.transport = None
    timer.work()


def test_a_header_has_at_most_so_many_bytes_in_however_many_parts(connection: Any) -> None:
    connection.on_message_begin()
    connection.data_received(b"x" * (MOST_HEADER - 1))
    connection.data_received(b"x")
    assert not connection.transport.closed
    connection.data_received(b"x")
    assert connection.transport.closed


def test_each_request_of_a_connection_has_a_header_of_its_own(connection: Any) -> None:
    for _ in range(3):
        connection.on_message_begin()
        connection.data_received(b"x" * (MOST_HEADER - 10))
        connection.on_headers_complete()
        connection.cycle = under_way(complete=True)
    assert not connection.transport.closed


def test_a_body_is_no_header(connection: Any) -> None:
    connection.on_message_begin()
    connection.on_headers_complete()
    connection.cycle = under_way()
    for _ in range(5):
        connection.data_received(b"x" * MOST_HEADER)
    assert not connection.transport.closed
    assert timers(connection) == []  # its time is counted at the edge


@pytest.mark.parametrize("length", [None, b"%d" % (MOST_HEADER + 1), b"-1", b"many"])
def test_what_no_route_has_read_is_not_read_on(connection: Any, length: bytes | None) -> None:
    connection.cycle = under_way(complete=True, more_body=True, length=length)
    connection.on_response_complete()
    assert connection.transport.closed


def answered_early(connection: Any) -> Any:
    connection.on_message_begin()
    connection.on_headers_complete()
    connection.cycle = under_way(complete=True, more_body=True, length=b"2")
    connection.on_response_complete()
    return connection


def test_a_short_body_that_comes_after_its_answer_does_not_cost_the_connection(connection: Any) -> None:
    """Its sender takes the connection as kept: the next request on it would be lost."""
    answered_early(connection)
    assert not connection.transport.closed
    connection.data_received(b"{}")
    connection.on_message_complete()
    assert timers(connection) == []
    connection.on_message_begin()
    connection.on_headers_complete()
    assert not connection.transport.closed


def test_a_body_that_never_comes_is_not_waited_for_without_end(connection: Any) -> None:
    (timer,) = timers(answered_early(connection))
    assert timer.after == 7.5
    timer.work()
    assert connection.transport.closed


def test_more_than_was_announced_is_not_read_on(connection: Any) -> None:
    answered_early(connection)
    connection.data_received(b"x" * (MOST_HEADER + 1))
    assert connection.transport.closed


def test_an_answer_to_a_whole_request_keeps_the_connection(connection: Any) -> None:
    connection.cycle = under_way(complete=True)
    connection.on_response_complete()
    assert not connection.transport.closed


def test_what_is_no_request_is_answered_with_a_problem_that_does_not_quote_it(connection: Any) -> None:
    connection.send_400_response("Invalid HTTP request: secret")
    head, _, body = connection.transport.written.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"content-type: application/problem+json" in head
    assert b"content-length: %d" % len(body) in head
    assert b"connection: close" in head
    assert b'"code":"malformed-body"' in body
    assert b"secret" not in connection.transport.written
    assert connection.transport.closed


def test_the_time_is_that_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TACIT_SERVE_HEADER_SECONDS", "3.25")
    _header_seconds.cache_clear()
    try:
        assert _header_seconds() == 3.25
    finally:
        _header_seconds.cache_clear()


def test_a_new_connection_stays_open_for_its_first_request_when_the_worker_stops(connection: Any) -> None:
    connection.shutdown()
    assert not connection.transport.closed
    (*_, timer) = timers(connection)
    assert timer.after == FIRST_SECONDS
    connection.on_message_begin()
    connection.cycle = under_way()
    connection.cycle.keep_alive = True
    connection.on_headers_complete()
    assert not connection.cycle.keep_alive  # closes after the answer
    timer.work()
    assert not connection.transport.closed


@pytest.mark.parametrize("begun", [False, True])
def test_a_connection_without_a_whole_first_header_is_closed_soon_when_the_worker_stops(
    connection: Any, begun: bool
) -> None:
    connection.shutdown()
    if begun:
        connection.on_message_begin()
    (*_, timer) = timers(connection)
    timer.work()
    assert connection.transport.closed


def test_a_connection_that_had_a_request_is_closed_at_once_when_the_worker_stops(connection: Any) -> None:
    connection.on_message_begin()
    connection.on_headers_complete()
    connection.cycle = under_way(complete=True)
    connection.shutdown()
    assert connection.transport.closed
