"""Runs an application: worker processes, limits on connections, an orderly end.

One process starts the workers and replaces those that die, if necessary after several tries. Every connection is limited in
time and size, so slow or hostile callers cannot hold it. The edge limits the bodies of requests.
"""

import asyncio
import math
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pickle import UnpicklingError
from queue import Empty, SimpleQueue
from socket import AF_INET, AF_INET6, SO_REUSEADDR, SOL_SOCKET, socket
from threading import Event
from time import monotonic
from typing import Any, cast
from weakref import WeakKeyDictionary, WeakSet

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.supervisors import Multiprocess
from uvicorn.supervisors.multiprocess import Process

from tacit.errors import InvalidParameter, ServiceFailed
from tacit.service import telemetry
from tacit.service.bodies import MEDIA_TYPE, Problem
from tacit.service.settings import Settings, read_settings
from tacit.service.telemetry import LOG, common_folder

SERVER, CURATOR = "tacit.service.server_app:create", "tacit.service.curator_app:create"
_BACKLOG = 2048
_KEEP_ALIVE = 15  # seconds
_START_SECONDS = 180  # that a worker may take to get ready: the first one on a machine compiles code
# A worker answers one request at a time: threads inside one would take the core from another worker.
_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def run(application: str, settings: Settings, *, listening: Callable[[int], None] | None = None) -> None:
    """Serves until the process gets a signal to stop, and then finishes the requests in progress.

    It calls ``listening`` with the port. Workers are separate processes that share the disk and mapped tables. A worker that
    dies is replaced.
    """
    import uvicorn

    for name in _ONE_THREAD:
        os.environ.setdefault(name, "1")
    telemetry.set_up()
    with common_folder(settings.workers):
        config = uvicorn.Config(
            application,
            factory=True,
            host=settings.host,
            port=settings.port,
            workers=settings.workers,
            http="tacit.service.run:BoundedConnection",
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=bool(settings.proxies),
            forwarded_allow_ips=settings.proxies or None,
            backlog=_BACKLOG,
            timeout_keep_alive=_KEEP_ALIVE,
            timeout_worker_healthcheck=_START_SECONDS,
            timeout_graceful_shutdown=settings.grace_seconds,
            ssl_certfile=settings.tls_certificate,
            ssl_keyfile=settings.tls_key,
        )
        shared = _bind(settings.host, settings.port)
        if listening is not None:
            listening(shared.getsockname()[1])
        workers = Workers(config, sockets=[shared])
        workers.run()
        if workers.could_not_start:
            raise ServiceFailed("the service could not start; see the lines above.")


def _bind(host: str, port: int) -> socket:
    """The socket that all workers share. Raises InvalidParameter for an address or port that cannot be used."""
    shared = socket(AF_INET6 if ":" in host else AF_INET)
    try:
        shared.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
        shared.bind((host, port))
    except OSError as problem:
        shared.close()
        raise InvalidParameter(
            f"the service cannot listen at {host}, port {port} ({problem.strerror or problem}): "
            "choose another with --host or --port."
        ) from None
    shared.set_inheritable(True)
    return shared


_HUNG = 15.0  # seconds without an answer to a ping
_PAUSE = 5.0  # seconds before the next try to start a worker
# Seconds to close files and databases after the grace period for requests. Both together are less than deploy/ waits.
_CLOSING = 8.0
_POLL = 0.1  # seconds between two checks whether a worker has ended
_ENDED = "a worker has ended; another one replaces it"
_FAILED = "a worker could not start; the service tries again while the others answer"
_NOT_READY = "a worker was not ready in time; the old one stays, and the reload stops"
_STUCK = "a worker did not end in time and is killed"


class SignalEvent(Event):
    """An event that a signal handler may set at any moment.

    `threading.Event` does not allow that: setting it takes a lock, which the interrupted thread may hold. Starting a thread
    that sets it takes a lock, too.
    """

    def __init__(self) -> None:
        super().__init__()
        self._is_set = False
        self._wakeups: SimpleQueue[None] = SimpleQueue()  # its put may run at any moment, even inside a get

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        self._wakeups.put(None)

    def wait(self, timeout: float | None = None) -> bool:
        if not self._is_set:
            with suppress(Empty):
                self._wakeups.get(timeout=timeout)
        return self._is_set


class Worker(Process):
    """A worker process. It is killed if it does not end in time."""

    _deadline: float | None = None  # time by which the worker must have ended

    def terminate(self) -> None:
        self._deadline = self._next_deadline()
        super().terminate()

    def join_unless(self, event: Event) -> bool:
        """Like ``join``, but returns False as soon as ``event`` is set. The worker's deadline stays."""
        if self._deadline is None:
            self._deadline = self._next_deadline()
        while self.exitcode is None and monotonic() < self._deadline:
            if event.wait(_POLL):
                return False
        self.join()
        return True

    def join(self) -> None:
        deadline = self._next_deadline() if self._deadline is None else self._deadline
        self.process.join(max(0.0, deadline - monotonic()))
        if self.exitcode is None:
            LOG.error(_STUCK, extra={"about": {"killed": self.pid}})
            self.kill()
        self.process.join()

    def _next_deadline(self) -> float:
        return monotonic() + (self.config.timeout_graceful_shutdown or 0.0) + _CLOSING


class Workers(Multiprocess):
    """uvicorn's supervisor, changed so that a worker that cannot start does not end a service that answers.

    Once one worker has been ready, an unreachable database or a damaged model stops no worker that answers. Before that it
    ends the service, because the person who started it is there to read the error. A worker that hangs delays nobody, except
    during a reload, which waits for each worker in turn, for a limited time. A signal to stop always works, also during a
    reload: all remaining workers then end within the same time.
    """

    could_not_start = False

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)  # type: ignore[arg-type]
        self.should_exit = SignalEvent()
        self._ever_ready = False
        # The keys are processes and not their ids, which the system may use again.
        self._ready: WeakSet[Process] = WeakSet()  # have been ready
        self._answering: WeakSet[Process] = WeakSet()  # have answered a ping
        self._pinged: WeakKeyDictionary[Process, float] = WeakKeyDictionary()  # the time of a ping without an answer
        self._retry_at: WeakKeyDictionary[Process, float] = WeakKeyDictionary()  # the time of the next try to start
        self._leaving: list[Process] = []  # replaced by a reload, and not ended yet
        self._counting: set[int | None] = set()  # ids of processes that have metrics
        for number in (signal.SIGTERM, signal.SIGINT):  # handled also during a reload, which takes time
            signal.signal(number, lambda *_: self.should_exit.set())
        # uvicorn would add or remove a worker, but the limits are divided by a fixed number of workers.
        for number in (signal.SIGTTIN, signal.SIGTTOU):
            signal.signal(number, signal.SIG_IGN)

    def init_processes(self) -> None:
        self.processes = [self._start() for _ in range(self.processes_num)]

    def terminate_all(self) -> None:
        for listener in self.sockets:  # refuses new callers at once; they would wait in vain
            listener.close()
        super().terminate_all()

    def join_all(self) -> None:
        for process in self._leaving:  # first, because their deadlines are the earliest
            process.join()
        super().join_all()

    def restart_all(self) -> None:
        """Replaces the workers one after the other, each when its successor is ready. Stops early on a signal."""
        for index, old in enumerate(self.processes):
            if self.should_exit.is_set():
                return
            new = self._start()
            if not new.wait_until_ready(self.config.timeout_worker_healthcheck, self.should_exit):
                new.kill()
                new.join()
                if not self.should_exit.is_set():
                    LOG.error(_NOT_READY, extra={"about": {"kept": old.pid}})
                return
            self.processes[index] = new
            old.terminate()
            if not cast(Worker, old).join_unless(self.should_exit):
                self._leaving.append(old)

    def keep_subprocess_alive(self) -> None:
        for index, process in enumerate(self.processes):
            if self.should_exit.is_set():
                return
            if process in self._retry_at:
                if monotonic() >= self._retry_at[process]:
                    self.processes[index] = self._start()
            elif process.exitcode is not None or self._is_hung(process):
                self._replace(index, process)
        present = {process.pid for process in self.processes}
        for ended in self._counting - present:  # also workers that a reload replaced
            telemetry.forget(ended)
        self._counting = present

    def _is_hung(self, process: Process) -> bool:
        """Whether a worker has left a ping unanswered for too long. Sends a ping; the next call reads the answer."""
        ready = None
        with suppress(OSError, EOFError, UnpicklingError):
            while process.parent_conn.poll():
                ready = process.parent_conn.recv()
        if ready is not None:
            self._answering.add(process)
            self._pinged.pop(process, None)
        if ready and process not in self._ready:
            self._ready.add(process)
            self._ever_ready = True
        if process not in self._pinged:
            self._pinged[process] = monotonic()
            with suppress(OSError):
                process.parent_conn.send(b"ping")
        # Before its first answer a worker loads the model, which takes longer on a busy machine.
        limit = _HUNG if process in self._answering else self.config.timeout_worker_healthcheck
        return monotonic() - self._pinged[process] > limit

    def _replace(self, index: int, process: Process) -> None:
        process.kill()  # if it hangs
        process.join()
        about = {"about": {"ended": process.pid, "status": process.exitcode}}
        if process in self._ready:
            LOG.error(_ENDED, extra=about)
            self.processes[index] = self._start()
        elif self._ever_ready or (process.exitcode or 0) < 0:  # a killed worker may have been ready
            LOG.error(_FAILED, extra=about)
            self._retry_at[process] = monotonic() + _PAUSE
        else:
            self.could_not_start = True
            self.should_exit.set()

    def _start(self) -> Worker:
        worker = Worker(self.config, self.sockets)
        worker.start()
        return worker


MOST_HEADER = 1 << 16  # bytes
UNREAD_SECONDS = 30.0  # in which the caller has to read a part of an answer
FIRST_SECONDS = 1.0  # in which the header of a new connection's first request has to arrive when the worker stops


@lru_cache(maxsize=1)
def _header_seconds() -> float:
    return read_settings().header_seconds


def _announced_length(scope: Any) -> float:
    """The length of a body in bytes as the request announces it, or infinity."""
    length = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
    return int(length) if length.isdigit() else math.inf


class BoundedConnection(HttpToolsProtocol):
    """uvicorn's protocol, with limits.

    It closes a connection if the header of a request is late or too large, if a long request is still unread after its
    answer, and if the caller does not read the answer.
    """

    _header_timer: asyncio.TimerHandle | None = None
    _unread_timer: asyncio.TimerHandle | None = None
    _first_timer: asyncio.TimerHandle | None = None
    _in_header = False
    _header_size = 0
    _has_request = False  # whether a request has come on this connection
    _closes_after_next = False

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._start_header_timer()

    def data_received(self, data: bytes) -> None:
        before = self._in_header or self._idle
        super().data_received(data)
        if self._in_header or self._idle:
            self._header_size += len(data) if before else 0
            if self._header_size > MOST_HEADER:
                self._give_up()
            elif self._header_timer is None:  # data that does not begin a request
                self._start_header_timer()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_header = True
        if self._header_timer is None:  # the next request on a kept connection
            self._start_header_timer()

    def on_headers_complete(self) -> None:
        self._stop_header_timer()
        self._in_header, self._header_size = False, 0
        super().on_headers_complete()
        self._has_request = True
        if self._closes_after_next:
            self.cycle.keep_alive = False

    def on_message_complete(self) -> None:
        super().on_message_complete()
        if self._idle:  # this was the rest of a request that was answered early; the next request may follow
            self._stop_header_timer()
            self._header_size = 0

    def on_response_complete(self) -> None:
        # No route has read this body, and it could be endless: close the connection. A short body is read and dropped, within
        # the time and size of a header, because its sender may expect to keep the connection.
        if not self.pipeline and self.cycle.response_complete and self.cycle.more_body:
            if _announced_length(self.cycle.scope) > MOST_HEADER:
                self._give_up()
            elif self._header_timer is None:
                self._start_header_timer()
        super().on_response_complete()

    def shutdown(self) -> None:
        """Answers the first request of a new connection before it closes: uvicorn would cut it off, unread."""
        if not self._has_request:
            self._closes_after_next = True
            self._first_timer = self.loop.call_later(FIRST_SECONDS, self._close_unused)
        else:
            super().shutdown()

    def _close_unused(self) -> None:
        if not self._has_request:
            self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._start_unread_timer()

    def resume_writing(self) -> None:
        self._stop_unread_timer()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_header_timer()
        self._stop_unread_timer()
        if self._first_timer is not None:
            self._first_timer.cancel()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        problem = Problem("malformed-body", "this is not an HTTP request.").response()
        head = f"HTTP/1.1 400 Bad Request\r\ncontent-type: {MEDIA_TYPE}\r\ncontent-length: {len(problem.body)}\r\n"
        self.transport.write(
            head.encode() + b"x-content-type-options: nosniff\r\nconnection: close\r\n\r\n" + problem.body
        )
        self.transport.close()

    def _unsupported_upgrade_warning(self) -> None:
        """Does nothing. The service has no websockets, and callers must not be able to fill the log."""

    @property
    def _idle(self) -> bool:
        """Whether no request is in progress."""
        return self.cycle is None or self.cycle.response_complete

    def _start_header_timer(self) -> None:
        self._header_timer = self.loop.call_later(_header_seconds(), self._give_up)

    def _stop_header_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _start_unread_timer(self) -> None:
        """Cuts the connection if the caller stops reading the answer."""
        before = self.transport.get_write_buffer_size()
        self._unread_timer = self.loop.call_later(UNREAD_SECONDS, self._check_reading, before)

    def _check_reading(self, before: int) -> None:
        self._unread_timer = None
        left = self.transport.get_write_buffer_size()
        if 0 < left < before:
            self._start_unread_timer()
        elif left:
            self.transport.abort()

    def _stop_unread_timer(self) -> None:
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None

    def _give_up(self) -> None:
        self._header_timer = None
        if self.transport is not None and not self.transport.is_closing():
            if self._unread_timer is None and self.transport.get_write_buffer_size():  # closes once it is read
                self._start_unread_timer()
            self.transport.close()
