"""Processes that answer, and the one that keeps them: who dies is replaced, also where that takes several tries."""

import signal
from contextlib import suppress
from pickle import UnpicklingError
from queue import Empty, SimpleQueue
from threading import Event
from time import monotonic
from typing import cast
from weakref import WeakKeyDictionary, WeakSet

from uvicorn.supervisors import Multiprocess
from uvicorn.supervisors.multiprocess import Process

from tacit.service import common_metrics
from tacit.service.logs import LOG

_HUNG = 15.0  # seconds without a sign of life
_PAUSE = 5.0  # seconds after which one that could not start is tried again
_CLOSING = (
    8.0  # seconds beyond those for requests under way, to close what is open; with 20 for them less than deploy/ waits
)
_LOOK = 0.1  # seconds between two looks at one that is to end
_ENDED = "a worker has ended, and is replaced"
_FAILED = "a worker could not start; it is tried again, and the others answer meanwhile"
_NOT_READY = "a worker was not ready in time; the old one stays, and the reload ends here"
_STUCK = "a worker did not end in time, and is killed"


class Told(Event):
    """An event that a signal may set at any moment. To set threading's takes a lock, which the very thread that the signal
    interrupts may hold; so does starting a thread to do it."""

    def __init__(self) -> None:
        super().__init__()
        self._told = False
        self._calls: SimpleQueue[None] = SimpleQueue()  # its put may come at any moment, also within a get

    def is_set(self) -> bool:
        return self._told

    def set(self) -> None:
        self._told = True
        self._calls.put(None)

    def wait(self, timeout: float | None = None) -> bool:
        if not self._told:
            with suppress(Empty):
                self._calls.get(timeout=timeout)
        return self._told


class Worker(Process):
    """Nobody waits for its end for ever."""

    _ends: float | None = None  # at the latest

    def terminate(self) -> None:
        self._ends = self._end_of_grace()
        super().terminate()

    def join_unless(self, told: Event) -> bool:
        """As ``join``, but only until ``told`` is set: whether it has ended. Its time goes on."""
        if self._ends is None:
            self._ends = self._end_of_grace()
        while self.exitcode is None and monotonic() < self._ends:
            if told.wait(_LOOK):
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
    """uvicorn's supervisor, but for this: once a worker was ready, nothing that keeps another from starting ends the service.

    A database that is away, or a damaged model, is no reason to stop those that answer. Before the first was ready it is one:
    whoever started the service is there to read why. One that hangs does not keep the others from being looked after, but for a
    reload: that waits for each one in turn, for a time that is set. Nobody keeps who wants it to stop, also during a reload: all
    that are still there then end within one and the same time.
    """

    could_not_start = False

    def __init__(self, *given: object, **more: object) -> None:
        super().__init__(*given, **more)  # type: ignore[arg-type]
        self.should_exit = Told()
        self._ever_ready = False
        # By process, and not by its number, which may come again.
        self._ready: WeakSet[Process] = WeakSet()  # who was
        self._heard: WeakSet[Process] = WeakSet()  # who ever answered
        self._asked: WeakKeyDictionary[Process, float] = WeakKeyDictionary()  # since when it owes an answer
        self._again: WeakKeyDictionary[Process, float] = WeakKeyDictionary()  # when another takes its place
        self._leaving: list[Process] = []  # whom a reload replaced, and did not see end
        self._counting: set[int | None] = set()  # whose metrics are there
        for sign in (signal.SIGTERM, signal.SIGINT):  # also in the middle of a reload, which takes its time
            signal.signal(sign, lambda *_: self.should_exit.set())
        # uvicorn would have one more or one less of them; but limits are shared out among a number that is set.
        for sign in (signal.SIGTTIN, signal.SIGTTOU):
            signal.signal(sign, signal.SIG_IGN)

    def init_processes(self) -> None:
        self.processes = [self._started() for _ in range(self.processes_num)]

    def terminate_all(self) -> None:
        for one in self.sockets:  # who comes now is refused at once, and does not wait for an answer that never comes
            one.close()
        super().terminate_all()

    def join_all(self) -> None:
        for process in self._leaving:  # told before the others, so their time is over first
            process.join()
        super().join_all()

    def restart_all(self) -> None:
        """One after the other, and each one only when its successor is ready; told to stop, it leaves the rest as they are."""
        for place, old in enumerate(self.processes):
            if self.should_exit.is_set():
                return
            new = self._started()
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
                    self.processes[place] = self._started()
            elif process.exitcode is not None or self._hangs(process):
                self._replace(place, process)
        here = {process.pid for process in self.processes}
        for gone in self._counting - here:  # also those that a reload replaced
            common_metrics.forget(gone)
        self._counting = here

    def _hangs(self, process: Process) -> bool:
        """Whether it owes an answer for too long. Asked here, heard when it is next looked at."""
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
        # Until it first answers it loads what it needs: on a machine that is busy that takes its time.
        allowed = _HUNG if process in self._heard else self.config.timeout_worker_healthcheck
        return monotonic() - self._asked[process] > allowed

    def _replace(self, place: int, process: Process) -> None:
        process.kill()  # if it hangs
        process.join()
        about = {"about": {"ended": process.pid, "status": process.exitcode}}
        if process in self._ready:
            LOG.error(_ENDED, extra=about)
            self.processes[place] = self._started()
        elif (
            self._ever_ready or (process.exitcode or 0) < 0
        ):  # killed, and perhaps ready; or it would fail again at once
            LOG.error(_FAILED, extra=about)
            self._again[process] = monotonic() + _PAUSE
        else:
            self.could_not_start = True
            self.should_exit.set()

    def _started(self) -> Worker:
        made = Worker(self.config, self.sockets)
        made.start()
        return made
