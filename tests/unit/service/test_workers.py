"""The supervisor: who is replaced at once, who after a pause, and when the service ends. Its processes are played here."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import count
from multiprocessing import Pipe, get_context
from threading import Event, Thread, Timer
from types import SimpleNamespace
from typing import Any

import pytest
from uvicorn.supervisors.multiprocess import SIGNALS

from tacit.service import run as room
from tacit.service.run import SignalEvent, Worker, Workers

# Another test of the same process may have loaded jax, which has threads; what is forked here only sleeps.
pytestmark = pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")
PIDS = count(1001)
INTERRUPTED = """
import signal, sys, threading
from tacit.service.run import SignalEvent

interrupted, told = 0, SignalEvent()
signal.signal(signal.SIGTERM, lambda *_: told.set())

def at_each_line(frame, event, _):
    global interrupted
    if frame.f_code.co_filename in (threading.__file__, sys.modules["tacit.service.run"].__file__):
        interrupted += 1
        if interrupted < 200:
            signal.raise_signal(signal.SIGTERM)
        return at_each_line

sys.settrace(at_each_line)
for timeout in (0.0, 0.01, None):
    told.wait(timeout)
told.set()
sys.settrace(None)
assert told.is_set()
print(interrupted)
"""


def deaf(told: Any) -> None:
    """A worker that does not hear that it should end."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    told.send("deaf")
    time.sleep(60)


class Stuck(Worker):
    """A real process that does not end before it is killed."""

    def __init__(self, *_: object) -> None:
        self.config = SimpleNamespace(timeout_graceful_shutdown=0.1)  # type: ignore[assignment]
        self.parent_conn, self.child_conn = Pipe()
        self.process = get_context("fork").Process(target=deaf, args=(self.child_conn,))

    def start(self) -> None:
        super().start()
        assert self.parent_conn.recv() == "deaf"

    def wait_until_ready(self, *_: object) -> bool:
        return True


class Played:
    """A process whose life a test decides. It answers as soon as it is asked, unless it hangs."""

    def __init__(self, *_: object) -> None:
        self.pid, self.exitcode, self.ready, self.answers = next(PIDS), None, False, True
        self.parent_conn, self.asked, self.allowed = self, 0, 0.0

    def start(self) -> None: ...

    def send(self, _: bytes) -> None:
        self.asked += 1

    def poll(self) -> bool:
        return self.asked > 0 and self.answers

    def recv(self) -> bool:
        self.asked -= 1
        return self.ready

    def wait_until_ready(self, timeout: float, _: Event) -> bool:
        self.ready, self.allowed = True, timeout
        return True

    def kill(self) -> None:
        self.exitcode = -9 if self.exitcode is None else self.exitcode

    terminate = kill

    def join(self) -> None:
        assert self.exitcode is not None, "it would wait for ever"

    def join_unless(self, _: Event) -> bool:
        self.join()
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(room, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> Iterator[Any]:
    before = {sign: signal.getsignal(sign) for sign in SIGNALS}
    monkeypatch.setattr(room, "Worker", Played)
    made = Workers(SimpleNamespace(workers=2, timeout_worker_healthcheck=180), sockets=[])
    made.init_processes()
    yield made
    for sign, handler in before.items():
        signal.signal(sign, handler)


def get_ready(workers: Any) -> None:
    for one in workers.processes:
        one.ready = True
    workers.keep_subprocess_alive()  # asks
    workers.keep_subprocess_alive()  # hears


def pids(workers: Any) -> list[int]:
    return [one.pid for one in workers.processes]


def test_who_was_ready_and_dies_or_hangs_is_replaced_at_once(
    workers: Any, clock: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    get_ready(workers)
    first, second = workers.processes
    second.answers = False
    workers.keep_subprocess_alive()
    clock[0] += 14.0
    workers.keep_subprocess_alive()
    assert workers.processes == [first, second]
    clock[0] += 2.0
    first.exitcode = -11
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


def test_who_takes_long_to_load_is_not_taken_for_hung(workers: Any, clock: list[float]) -> None:
    before = list(workers.processes)
    for one in before:
        one.answers = False
    workers.keep_subprocess_alive()
    clock[0] += 170.0
    workers.keep_subprocess_alive()
    assert workers.processes == before
    assert [one.exitcode for one in before] == [None, None]  # one that was killed keeps its place for a while, too
    clock[0] += 20.0
    workers.keep_subprocess_alive()
    assert [one.exitcode for one in before] == [-9, -9]


def test_one_that_hangs_answers_late_and_hangs_again_has_its_time_anew(workers: Any, clock: list[float]) -> None:
    """Answers that were late are not taken for new ones either."""
    get_ready(workers)
    slow = workers.processes[0]
    slow.answers = False
    for _ in range(10):
        clock[0] += 1.0
        workers.keep_subprocess_alive()
    assert slow.asked == 1
    slow.answers = True
    workers.keep_subprocess_alive()
    slow.answers = False
    clock[0] += 14.0
    workers.keep_subprocess_alive()
    assert workers.processes[0] is slow
    clock[0] += 2.0
    workers.keep_subprocess_alive()
    assert workers.processes[0] is not slow


def test_a_number_that_comes_again_is_not_taken_for_the_process_that_had_it(workers: Any, clock: list[float]) -> None:
    get_ready(workers)
    workers.processes[0].exitcode = -9
    workers.keep_subprocess_alive()
    failed = workers.processes[0]
    failed.exitcode = 3
    workers.keep_subprocess_alive()  # it waits now
    workers.restart_all()
    workers.processes[1].pid = failed.pid
    after = list(workers.processes)
    clock[0] += 60.0
    workers.keep_subprocess_alive()
    assert workers.processes == after


def test_what_a_worker_measured_of_itself_is_forgotten_however_it_was_replaced(
    workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the model that a worker served before a reload would be shown as the oldest one for good."""
    forgotten: list[int] = []
    monkeypatch.setattr(room.telemetry, "forget", forgotten.append)
    get_ready(workers)
    first, second = pids(workers)
    workers.restart_all()
    workers.keep_subprocess_alive()
    assert sorted(forgotten) == [first, second]
    get_ready(workers)
    third = workers.processes[0]
    third.exitcode = -9
    workers.keep_subprocess_alive()
    assert forgotten[2:] == [third.pid]


def test_a_reload_whose_worker_is_not_ready_in_time_keeps_the_old_ones(
    workers: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    get_ready(workers)
    before = list(workers.processes)
    monkeypatch.setattr(Played, "wait_until_ready", lambda *_: False)
    workers.restart_all()
    assert workers.processes == before
    assert [one.exitcode for one in before] == [None, None]
    assert len(caplog.records) == 1


def test_a_reload_gives_a_worker_as_much_time_to_load_as_the_start_did(workers: Any) -> None:
    get_ready(workers)
    workers.restart_all()
    assert [one.allowed for one in workers.processes] == [180, 180]


def test_who_is_told_to_stop_during_a_reload_neither_waits_for_the_old_ones_nor_starts_new_ones(
    workers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left of a worker's time to end is not begun anew, and nobody is forgotten."""
    monkeypatch.setattr(room, "Worker", Stuck)
    monkeypatch.setattr(room, "monotonic", time.monotonic)
    monkeypatch.setattr(room, "_CLOSING", 10.0)
    workers.init_processes()
    old, second = workers.processes
    telling = Timer(0.3, workers.should_exit.set)
    monkeypatch.setattr(Stuck, "wait_until_ready", lambda *_: telling.start() or True)
    try:
        workers.restart_all()
        new = workers.processes[0]
        assert [one.exitcode for one in (old, new, second)] == [None, None, None]
        assert new is not old
        assert workers.processes[1] is second
        due = old._deadline
        monkeypatch.setattr(room, "_CLOSING", 0.0)
        workers.terminate_all()
        assert old._deadline == due
        old._deadline = time.monotonic()
        workers.join_all()
        assert [one.exitcode for one in (old, new, second)] == [-signal.SIGKILL] * 3
    finally:
        for one in {old, second, *workers.processes}:
            one.kill()
            one.process.join()


def test_a_reload_that_nobody_interrupts_kills_who_does_not_end_in_time(
    workers: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(room, "Worker", Stuck)
    monkeypatch.setattr(room, "monotonic", time.monotonic)
    monkeypatch.setattr(room, "_CLOSING", 0.2)
    workers.init_processes()
    before = list(workers.processes)
    try:
        workers.restart_all()
        assert [one.exitcode for one in before] == [-signal.SIGKILL] * 2
        assert [one.exitcode for one in workers.processes] == [None, None]
        assert len(caplog.records) == 2
    finally:
        for one in {*before, *workers.processes}:
            one.kill()
            one.process.join()


def test_a_reload_begins_nothing_for_who_was_told_to_stop(workers: Any) -> None:
    get_ready(workers)
    before = list(workers.processes)
    workers.should_exit.set()
    workers.restart_all()
    assert workers.processes == before


def test_how_many_there_are_is_a_setting_and_no_signal_changes_it(workers: Any) -> None:
    before = list(workers.processes)
    for sign in (signal.SIGTTIN, signal.SIGTTOU):
        signal.raise_signal(sign)
    workers.handle_signals()
    assert workers.processes == before


def test_a_worker_that_does_not_end_in_time_is_killed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(room, "_CLOSING", 0.2)
    stuck = Stuck()
    stuck.start()
    stuck.terminate()
    stuck.join()
    assert stuck.exitcode == -signal.SIGKILL
    assert len(caplog.records) == 1


def test_a_signal_at_any_moment_sets_what_is_waited_for() -> None:
    """At every line of waiting and of setting, also while another signal is handled: threading's event would wait for itself."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 5


def test_who_waits_is_woken_at_once() -> None:
    told = SignalEvent()
    assert not told.wait(0.0)
    waiting = Thread(target=told.wait, daemon=True)  # without a time after which it would look by itself
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()
    told.set()
    waiting.join(10.0)
    assert not waiting.is_alive()
    assert told.wait(0.0)


def test_who_is_told_to_stop_stops(workers: Any) -> None:
    signal.raise_signal(signal.SIGTERM)
    assert workers.should_exit.wait(5)
    assert not workers.could_not_start
