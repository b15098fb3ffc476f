"""Connections of callers who are slow, or send what nobody asked for: bounded in time and size before a request is one.

The body of a request has limits of its own, at the edge; here are those of what comes before, between and after.
"""

import asyncio
import math
from functools import lru_cache
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tacit.service.problems import MEDIA_TYPE, Problem
from tacit.service.settings import read_settings

MOST_HEADER = 1 << 16  # bytes
UNREAD_SECONDS = 30.0  # in which some of an answer has to be read


@lru_cache(maxsize=1)
def _seconds() -> float:
    return read_settings().header_seconds


def _announced(scope: Any) -> float:
    """How long a body is said to be, in bytes; without end where that is not said."""
    length = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
    return int(length) if length.isdigit() else math.inf


class Bounded(HttpToolsProtocol):
    """uvicorn's protocol. A connection is closed unless the header of a request is complete in time, and of some size; where an
    answer was sent before all of a long request was read; and where nobody reads an answer."""

    _waiting: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
    _in_header = False
    _header_size = 0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        before = self._in_header or self._idle
        super().data_received(data)
        if self._in_header or self._idle:
            self._header_size += len(data) if before else 0
            if self._header_size > MOST_HEADER:
                self._give_up()
            elif self._waiting is None:  # something came that is no beginning of a request
                self._wait()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_header = True
        if self._waiting is None:  # the next request of a connection that is kept
            self._wait()

    def on_headers_complete(self) -> None:
        self._stop_waiting()
        self._in_header, self._header_size = False, 0
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        if self._idle:  # the rest of a request that was answered before: now the next one may come
            self._stop_waiting()
            self._header_size = 0

    def on_response_complete(self) -> None:
        # What no route has read would be read on without end: the connection is closed instead. A short body is on its way, and its
        # sender may take the connection as kept: it is read and dropped, within the time and the size of a header.
        if not self.pipeline and self.cycle.response_complete and self.cycle.more_body:
            if _announced(self.cycle.scope) > MOST_HEADER:
                self._give_up()
            elif self._waiting is None:
                self._wait()
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        self._stop_watching()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._stop_watching()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        problem = Problem("malformed-body", "this is no HTTP request.").response()
        head = f"HTTP/1.1 400 Bad Request\r\ncontent-type: {MEDIA_TYPE}\r\ncontent-length: {len(problem.body)}\r\n"
        self.transport.write(
            head.encode() + b"x-content-type-options: nosniff\r\nconnection: close\r\n\r\n" + problem.body
        )
        self.transport.close()

    def _unsupported_upgrade_warning(self) -> None:
        """Nothing: there are no websockets here, and a log that every caller can fill tells nobody anything."""

    @property
    def _idle(self) -> bool:
        """Whether no request is under way."""
        return self.cycle is None or self.cycle.response_complete

    def _wait(self) -> None:
        self._waiting = self.loop.call_later(_seconds(), self._give_up)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _watch(self) -> None:
        """Cuts the connection unless some of what waits there is read in time, and then some more."""
        before = self.transport.get_write_buffer_size()
        self._unread = self.loop.call_later(UNREAD_SECONDS, self._look, before)

    def _look(self, before: int) -> None:
        self._unread = None
        left = self.transport.get_write_buffer_size()
        if 0 < left < before:
            self._watch()
        elif left:
            self.transport.abort()

    def _stop_watching(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _give_up(self) -> None:
        self._waiting = None
        if self.transport is not None and not self.transport.is_closing():
            if (
                self._unread is None and self.transport.get_write_buffer_size()
            ):  # closed when that is read, or nobody does
                self._watch()
            self.transport.close()
