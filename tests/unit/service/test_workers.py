"""The supervisor: who is replaced at once, who after a pause, and when the service ends. Its processes are played here."""

import signal
from collections.abc import Iterator
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
from uvicorn.supervisors.multiprocess import SIGNALS

from tacit.service import workers as room
from tacit.service.workers import Workers

PIDS = count(1001)


class Played:
    """A process whose life a test decides."""

    def __init__(self, *_: object) -> None:
        self.pid, self.exitcode, self.ready, self.answers = next(PIDS), None, False, True

    def start(self) -> None: ...

    def is_alive(self, timeout: float) -> bool:
        return self.exitcode is None and self.answers

    def is_ready(self, timeout: float) -> bool:
        return self.ready

    def wait_until_ready(self, *_: object) -> bool:
        self.ready = True
        return True

    def kill(self) -> None:
        self.exitcode = -9 if self.exitcode is None else self.exitcode

    terminate = kill

    def join(self) -> None:
        assert self.exitcode is not None, "it would wait for ever"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(room, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> Iterator[Any]:
    before = {sign: signal.getsignal(sign) for sign in SIGNALS}
    monkeypatch.setattr(room, "Process", Played)
    monkeypatch.setattr("uvicorn.supervisors.multiprocess.Process", Played)
    made = Workers(SimpleNamespace(workers=2, timeout_worker_healthcheck=1), sockets=[])
    made.init_processes()
    yield made
    for sign, handler in before.items():
        signal.signal(sign, handler)


def get_ready(workers: Any) -> None:
    for one in workers.processes:
        one.ready = True
    workers.keep_subprocess_alive()


def pids(workers: Any) -> list[int]:
    return [one.pid for one in workers.processes]


def test_who_was_ready_and_dies_or_hangs_is_replaced_at_once(workers: Any, caplog: pytest.LogCaptureFixture) -> None:
    get_ready(workers)
    first, second = workers.processes
    first.exitcode = -11
    second.answers = False
    workers.keep_subprocess_alive()
    assert not {first, second} & set(workers.processes)
    assert second.exitcode == -9
    assert not workers.should_exit.is_set()
    assert len(caplog.records) == 2  # a death is told


@pytest.mark.parametrize("status", [1, 3])
def test_where_nobody_was_ever_ready_the_service_ends_with_the_first_that_fails(workers: Any, status: int) -> None:
    workers.processes[1].exitcode = status
    workers.keep_subprocess_alive()
    assert workers.should_exit.is_set()
    assert workers.could_not_start


def test_who_was_killed_before_anybody_was_seen_to_be_ready_is_replaced_after_a_pause(
    workers: Any, clock: list[float]
) -> None:
    """It may have been ready: that is looked at now and then."""
    killed = workers.processes[1]
    killed.exitcode = -9
    workers.keep_subprocess_alive()
    assert not workers.should_exit.is_set()
    clock[0] += 5.0
    workers.keep_subprocess_alive()
    assert workers.processes[1] is not killed


@pytest.mark.parametrize("status", [1, 3, -9])
def test_who_cannot_start_is_tried_again_after_a_pause_while_the_others_answer(
    workers: Any, clock: list[float], status: int
) -> None:
    get_ready(workers)
    other = workers.processes[1]
    for _ in range(3):
        workers.processes[0].exitcode = status  # the first one was ready, those after it never are
        workers.keep_subprocess_alive()
        failed = workers.processes[0]
        failed.exitcode = status
        workers.keep_subprocess_alive()
        for _ in range(5):
            workers.keep_subprocess_alive()
            assert workers.processes[0] is failed
        clock[0] += 5.0
        workers.keep_subprocess_alive()
        assert workers.processes[0] is not failed
    assert workers.processes[1] is other
    assert not (workers.should_exit.is_set())
    assert not (workers.could_not_start)


def test_a_reload_takes_the_place_of_who_could_not_start_and_nobody_is_started_beside(
    workers: Any, clock: list[float]
) -> None:
    """One that was put there twice would answer on, and keep the service from ending, with nobody to tell it."""
    get_ready(workers)
    workers.processes[0].exitcode = -9
    workers.keep_subprocess_alive()
    workers.processes[0].exitcode = 3
    workers.keep_subprocess_alive()  # it waits now
    workers.restart_all()
    after = pids(workers)
    clock[0] += 60.0
    for _ in range(3):
        workers.keep_subprocess_alive()
    assert pids(workers) == after


def test_who_is_told_to_stop_stops(workers: Any) -> None:
    signal.raise_signal(signal.SIGTERM)
    assert workers.should_exit.wait(5)
    assert not workers.could_not_start
