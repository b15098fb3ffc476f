"""Runs an application: worker processes, limits on connections, an orderly end.

One process keeps the workers and replaces those that die, if necessary after several tries. Connections of slow
callers, or of callers that send what nobody asked for, are bounded in time and size; the body of a request has its own
limits, at the edge.
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
_GETTING_READY = 180  # seconds that a worker may take on a reload: the first one on a machine compiles code
# A worker answers one request at a time: threads inside one would take the core from another worker.
_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def run(application: str, settings: Settings, *, listening: Callable[[int], None] | None = None) -> None:
    """Serves until the process is told to stop, and then finishes the requests under way.

    ``listening`` is called with the port. Workers are separate processes that share the disk and mapped tables; one
    that dies is replaced.
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
            timeout_worker_healthcheck=_GETTING_READY,
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
    """The socket that all workers share. A wrong address or port is an error of one line."""
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


_HUNG = 15.0  # seconds without a sign of life
_PAUSE = 5.0  # seconds before a worker that could not start is tried again
_CLOSING = (
    8.0  # seconds beyond those for requests under way, to close what is open; with 20 for them less than deploy/ waits
)
_LOOK = 0.1  # seconds between two checks of a worker that is to end
_ENDED = "a worker has ended, and is replaced"
_FAILED = "a worker could not start; it is tried again while the others answer"
_NOT_READY = "a worker was not ready in time; the old one stays, and the reload stops"
_STUCK = "a worker did not end in time, and is killed"


class SignalEvent(Event):
    """An event that a signal handler may set at any moment.

    Setting threading's own event takes a lock, which the interrupted thread may hold. So does starting a thread to set
    it.
    """

    def __init__(self) -> None:
        super().__init__()
        self._is_set = False
        self._calls: SimpleQueue[None] = SimpleQueue()  # its put may run at any moment, even inside a get

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        self._calls.put(None)

    def wait(self, timeout: float | None = None) -> bool:
        if not self._is_set:
            with suppress(Empty):
                self._calls.get(timeout=timeout)
        return self._is_set


class Worker(Process):
    """A worker process. It is killed if it does not end in time."""

    _ends: float | None = None  # at the latest

    def terminate(self) -> None:
        self._ends = self._end_of_grace()
        super().terminate()

    def join_unless(self, event: Event) -> bool:
        """Like ``join``, but returns False as soon as ``event`` is set. The worker's time to end goes on."""
        if self._ends is None:
            self._ends = self._end_of_grace()
        while self.exitcode is None and monotonic() < self._ends:
            if event.wait(_LOOK):
                return False
        self.join()
        return True

    def join(self) -> None:
        ends = self._end_of_grace() if self._ends is None else self._ends
        self.process.join(max(0.0, ends - monotonic()))
        if self.exitcode is None:
            LOG.error(_STUCK, extra={"about": {"killed": self.pid}})
            self.kill()
        self.process.join()

    def _end_of_grace(self) -> float:
        return monotonic() + (self.config.timeout_graceful_shutdown or 0.0) + _CLOSING


class Workers(Multiprocess):
    """uvicorn's supervisor, except that once a worker was ready, nothing that keeps another from starting ends the
    service.

    A database that is away, or a damaged model, is no reason to stop the workers that answer. Before the first worker
    is ready it is: the person who started the service is there to read the error. A worker that hangs does not delay
    the care for the others, except during a reload, which waits for each worker in turn, for a set time. A signal to
    stop always works, also during a reload: all workers that are left then end within the same time.
    """

    could_not_start = False

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)  # type: ignore[arg-type]
        self.should_exit = SignalEvent()
        self._ever_ready = False
        # By process and not by its id, which may be used again.
        self._ready: WeakSet[Process] = WeakSet()  # were ready once
        self._heard: WeakSet[Process] = WeakSet()  # have answered a ping
        self._asked: WeakKeyDictionary[Process, float] = WeakKeyDictionary()  # since when it owes an answer
        self._again: WeakKeyDictionary[Process, float] = WeakKeyDictionary()  # when another one takes its place
        self._leaving: list[Process] = []  # replaced by a reload, and not ended yet
        self._counting: set[int | None] = set()  # have metrics
        for sign in (signal.SIGTERM, signal.SIGINT):  # also during a reload, which takes time
            signal.signal(sign, lambda *_: self.should_exit.set())
        # uvicorn would add or remove a worker; but the limits are divided by a fixed number of them.
        for sign in (signal.SIGTTIN, signal.SIGTTOU):
            signal.signal(sign, signal.SIG_IGN)

    def init_processes(self) -> None:
        self.processes = [self._start() for _ in range(self.processes_num)]

    def terminate_all(self) -> None:
        for listener in self.sockets:  # new callers are refused at once, and do not wait for an answer that never comes
            listener.close()
        super().terminate_all()

    def join_all(self) -> None:
        for process in self._leaving:  # their time began first, so it ends first
            process.join()
        super().join_all()

    def restart_all(self) -> None:
        """Replaces the workers one after the other, each when its successor is ready. Stops early on a signal."""
        for place, old in enumerate(self.processes):
            if self.should_exit.is_set():
                return
            new = self._start()
            if not new.wait_until_ready(self.config.timeout_worker_healthcheck, self.should_exit):
                new.kill()
                new.join()
                if not self.should_exit.is_set():
                    LOG.error(_NOT_READY, extra={"about": {"kept": old.pid}})
                return
            self.processes[place] = new
            old.terminate()
            if not cast(Worker, old).join_unless(self.should_exit):
                self._leaving.append(old)

    def keep_subprocess_alive(self) -> None:
        for place, process in enumerate(self.processes):
            if self.should_exit.is_set():
                return
            if process in self._again:
                if monotonic() >= self._again[process]:
                    self.processes[place] = self._start()
            elif process.exitcode is not None or self._hangs(process):
                self._replace(place, process)
        here = {process.pid for process in self.processes}
        for gone in self._counting - here:  # also workers that a reload replaced
            telemetry.forget(gone)
        self._counting = here

    def _hangs(self, process: Process) -> bool:
        """Whether a worker has owed an answer for too long. Sends a ping; the answer is read at the next call."""
        ready = None
        with suppress(OSError, EOFError, UnpicklingError):
            while process.parent_conn.poll():
                ready = process.parent_conn.recv()
        if ready is not None:
            self._heard.add(process)
            self._asked.pop(process, None)
        if ready and process not in self._ready:
            self._ready.add(process)
            self._ever_ready = True
        if process not in self._asked:
            self._asked[process] = monotonic()
            with suppress(OSError):
                process.parent_conn.send(b"ping")
        # Before its first answer a worker loads the model, which takes longer on a busy machine.
        allowed = _HUNG if process in self._heard else self.config.timeout_worker_healthcheck
        return monotonic() - self._asked[process] > allowed

    def _replace(self, place: int, process: Process) -> None:
        process.kill()  # if it hangs
        process.join()
        about = {"about": {"ended": process.pid, "status": process.exitcode}}
        if process in self._ready:
            LOG.error(_ENDED, extra=about)
            self.processes[place] = self._start()
        elif self._ever_ready or (process.exitcode or 0) < 0:  # killed: it may have been ready
            LOG.error(_FAILED, extra=about)
            self._again[process] = monotonic() + _PAUSE
        else:
            self.could_not_start = True
            self.should_exit.set()

    def _start(self) -> Worker:
        worker = Worker(self.config, self.sockets)
        worker.start()
        return worker


MOST_HEADER = 1 << 16  # bytes
UNREAD_SECONDS = 30.0  # in which the caller has to read some of an answer


@lru_cache(maxsize=1)
def _seconds() -> float:
    return read_settings().header_seconds


def _announced(scope: Any) -> float:
    """The announced length of a body in bytes; infinite if none is announced."""
    length = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
    return int(length) if length.isdigit() else math.inf


class BoundedConnection(HttpToolsProtocol):
    """uvicorn's protocol, with limits.

    It closes a connection if the header of a request is late or too large, if an answer was sent before a long request
    was read, and if the caller does not read the answer.
    """

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
            elif self._waiting is None:  # data that does not begin a request
                self._wait()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_header = True
        if self._waiting is None:  # the next request on a kept connection
            self._wait()

    def on_headers_complete(self) -> None:
        self._stop_waiting()
        self._in_header, self._header_size = False, 0
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        if self._idle:  # the rest of a request that was answered early: the next one may come now
            self._stop_waiting()
            self._header_size = 0

    def on_response_complete(self) -> None:
        # A body that no route has read could go on without end, so the connection is closed. A short one is read and
        # dropped, within the time and size of a header: its sender may expect that the connection is kept.
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
        problem = Problem("malformed-body", "this is not an HTTP request.").response()
        head = f"HTTP/1.1 400 Bad Request\r\ncontent-type: {MEDIA_TYPE}\r\ncontent-length: {len(problem.body)}\r\n"
        self.transport.write(
            head.encode() + b"x-content-type-options: nosniff\r\nconnection: close\r\n\r\n" + problem.body
        )
        self.transport.close()

    def _unsupported_upgrade_warning(self) -> None:
        """Does nothing: there are no websockets here, and callers must not be able to fill the log."""

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
        """Cuts the connection unless the caller reads some of the answer in time, and then some more."""
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
            if self._unread is None and self.transport.get_write_buffer_size():  # closes when the caller has read it
                self._watch()
            self.transport.close()
