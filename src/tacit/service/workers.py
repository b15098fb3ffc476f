"""Processes that answer, and the one that keeps them: who dies is replaced, also where that takes several tries."""

import signal
from time import monotonic

from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess
from uvicorn.supervisors.multiprocess import Process

from tacit.service import common_metrics
from tacit.service.logs import LOG

_HUNG = 15.0  # seconds without a sign of life
_PAUSE = 5.0  # seconds after which one that could not start is tried again
_FAILED = "a worker could not start; it is tried again, and the others answer meanwhile"


class Workers(Multiprocess):
    """uvicorn's supervisor, but for this: once a worker was ready, nothing that keeps another from starting ends the service.

    A database that is away, or a damaged model, is no reason to stop those that answer. Before the first was ready it is one:
    whoever started the service is there to read why.
    """

    def __init__(self, *given: object, **more: object) -> None:
        super().__init__(*given, **more)  # type: ignore[arg-type]
        self._ever_ready = False
        self._tried: dict[int, float] = {}  # when one that could not start may be tried again, by its place
        for sign in (signal.SIGTERM, signal.SIGINT):  # also in the middle of a reload, which takes its time
            signal.signal(sign, lambda *_: self.should_exit.set())

    @property
    def could_not_start(self) -> bool:
        return not self._ever_ready and any(one.exitcode == STARTUP_FAILURE for one in self.processes)

    def terminate_all(self) -> None:
        for one in self.sockets:  # who comes now is refused at once, and does not wait for an answer that never comes
            one.close()
        super().terminate_all()

    def keep_subprocess_alive(self) -> None:
        for place, process in enumerate(self.processes):
            if self.should_exit.is_set():
                return
            if place in self._tried:
                if monotonic() >= self._tried[place]:
                    del self._tried[place]
                    self._start(place)
            elif process.is_alive(timeout=_HUNG):
                self._ever_ready = self._ever_ready or process.is_ready(timeout=_HUNG)
            else:
                self._replace(place, process)

    def _replace(self, place: int, process: Process) -> None:
        process.kill()  # if it hangs
        process.join()
        common_metrics.forget(process.pid)
        if process.exitcode != STARTUP_FAILURE:
            self._start(place)
        elif self._ever_ready:
            LOG.error(_FAILED)
            self._tried[place] = monotonic() + _PAUSE
        else:
            self.should_exit.set()

    def _start(self, place: int) -> None:
        self.processes[place] = Process(self.config, self.sockets)
        self.processes[place].start()
