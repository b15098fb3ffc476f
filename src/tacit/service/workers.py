"""Processes that answer, and the one that keeps them: who dies is replaced, also where that takes several tries."""

import signal
from threading import Thread
from time import monotonic

from uvicorn.supervisors import Multiprocess
from uvicorn.supervisors.multiprocess import Process

from tacit.service import common_metrics
from tacit.service.logs import LOG

_HUNG = 15.0  # seconds without a sign of life
_PAUSE = 5.0  # seconds after which one that could not start is tried again
_ENDED = "a worker has ended, and is replaced"
_FAILED = "a worker could not start; it is tried again, and the others answer meanwhile"


class Workers(Multiprocess):
    """uvicorn's supervisor, but for this: once a worker was ready, nothing that keeps another from starting ends the service.

    A database that is away, or a damaged model, is no reason to stop those that answer. Before the first was ready it is one:
    whoever started the service is there to read why.
    """

    could_not_start = False

    def __init__(self, *given: object, **more: object) -> None:
        super().__init__(*given, **more)  # type: ignore[arg-type]
        self._ever_ready = False
        self._ready: set[int | None] = set()  # processes that were
        self._again: dict[
            int | None, float
        ] = {}  # when one that could not start is tried again, by the process that ended
        for sign in (signal.SIGTERM, signal.SIGINT):
            signal.signal(sign, lambda *_: self._stop())

    def terminate_all(self) -> None:
        for one in self.sockets:  # who comes now is refused at once, and does not wait for an answer that never comes
            one.close()
        super().terminate_all()

    def keep_subprocess_alive(self) -> None:
        for place, process in enumerate(self.processes):
            if self.should_exit.is_set():
                return
            if process.pid in self._again:
                if monotonic() >= self._again[process.pid]:
                    del self._again[process.pid]
                    self._start(place)
            elif not process.is_alive(timeout=_HUNG):
                self._replace(place, process)
            elif process.pid not in self._ready and process.is_ready(timeout=_HUNG):
                self._ready.add(process.pid)
                self._ever_ready = True

    def _replace(self, place: int, process: Process) -> None:
        process.kill()  # if it hangs
        process.join()
        common_metrics.forget(process.pid)
        if process.pid in self._ready:
            self._ready.discard(process.pid)
            LOG.error(_ENDED, extra={"about": {"ended": process.pid, "status": process.exitcode}})
            self._start(place)
        elif (
            self._ever_ready or (process.exitcode or 0) < 0
        ):  # killed, and perhaps ready; or it would fail again at once
            LOG.error(_FAILED, extra={"about": {"ended": process.pid, "status": process.exitcode}})
            self._again[process.pid] = monotonic() + _PAUSE
        else:
            self.could_not_start = True
            self.should_exit.set()

    def _start(self, place: int) -> None:
        self.processes[place] = Process(self.config, self.sockets)
        self.processes[place].start()

    def _stop(self) -> None:
        """Also in the middle of a reload, which takes its time. From a thread: this one may hold the event's lock just now."""
        Thread(target=self.should_exit.set, daemon=True).start()
