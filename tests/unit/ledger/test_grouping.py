"""Group commit: whoever writes at the same time shares a transaction, and nobody gets another's outcome or waits for ever."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tacit.errors import LedgerUnavailable
from tacit.ledger import book
from tacit.ledger.book import MOST_TOGETHER, GroupCommit

PATIENCE = 10.0  # seconds; only a test that fails waits this long


class Gate:
    """A commit whose first transaction takes until it is told to end; the outcome of an item is (item, its transaction)."""

    def __init__(self) -> None:
        self.transactions: list[list[Any]] = []
        self.begun, self.may_end = threading.Event(), threading.Event()
        self.problems: dict[int, BaseException] = {}  # by transaction
        self.group: GroupCommit[Any, tuple[Any, int]] = GroupCommit(self.commit)

    def commit(self, items: list[Any]) -> list[tuple[Any, int]]:
        self.transactions.append(items)
        mine = len(self.transactions) - 1
        if mine == 0:
            self.begun.set()
            assert self.may_end.wait(PATIENCE)
        if mine in self.problems:
            raise self.problems[mine]
        return [(item, mine) for item in items]

    def wait_for(self, calls: int) -> None:
        """Until this many calls stand in line."""
        until(lambda: len(self.group._waiting) == calls)


class Caller(threading.Thread):
    """A call of its own thread, with what came of it."""

    def __init__(self, group: GroupCommit[Any, Any], items: list[Any]) -> None:
        super().__init__(daemon=True)
        self.group, self.items = group, items
        self.outcome: Any = None
        self.start()

    def run(self) -> None:
        try:
            self.outcome = self.group(self.items)
        except BaseException as problem:
            self.outcome = problem

    def result(self) -> Any:
        self.join(PATIENCE)
        assert not self.is_alive(), "the call never returned"
        return self.outcome


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.0005)


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.may_end.set()


def led(gate: Gate, *others: list[Any]) -> list[Caller]:
    """A leader in the middle of its transaction, and the other calls in line behind it, in this order."""
    callers = [Caller(gate.group, ["leader"])]
    assert gate.begun.wait(PATIENCE)
    for place, items in enumerate(others, start=1):
        callers.append(Caller(gate.group, items))
        gate.wait_for(place)
    return callers


def test_every_call_gets_its_own_outcomes_under_32_threads() -> None:
    transactions: list[list[tuple[int, int, int]]] = []
    inside = threading.Lock()

    def commit(items: list[tuple[int, int, int]]) -> list[tuple[int, int, int, int]]:
        assert inside.acquire(blocking=False), "two transactions at once"
        time.sleep(0.0002)  # a disk
        transactions.append(items)
        inside.release()
        return [(*item, len(transactions)) for item in items]

    group = GroupCommit(commit)
    wrong: list[Any] = []
    start = threading.Barrier(32)

    def work(thread: int) -> None:
        start.wait()
        for call in range(25):
            items = [(thread, call, place) for place in range(1 + (thread + call) % 5)]
            outcomes = group(items)
            if [outcome[:3] for outcome in outcomes] != items or len({outcome[3] for outcome in outcomes}) != 1:
                wrong.append((items, outcomes))

    threads = [threading.Thread(target=work, args=(thread,), daemon=True) for thread in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert not any(thread.is_alive() for thread in threads)
    assert wrong == []
    done = [item for items in transactions for item in items]
    assert len(done) == len(set(done)) == sum(1 + (thread + call) % 5 for thread in range(32) for call in range(25))
    assert len(transactions) < 32 * 25 / 2  # they did share


def test_calls_that_wait_share_the_next_transaction_in_their_order(gate: Gate) -> None:
    callers = led(gate, ["a", "b"], ["c"], ["d", "e", "f"])
    gate.may_end.set()
    assert [caller.result() for caller in callers] == [
        [("leader", 0)],
        [("a", 1), ("b", 1)],
        [("c", 1)],
        [("d", 1), ("e", 1), ("f", 1)],
    ]
    assert gate.transactions == [["leader"], ["a", "b", "c", "d", "e", "f"]]


def test_a_transaction_has_its_most_and_no_call_is_split(gate: Gate) -> None:
    half, rest, more = ["half"] * (MOST_TOGETHER // 2), ["rest"] * (MOST_TOGETHER // 2), ["more"]
    huge = ["huge"] * (3 * MOST_TOGETHER)
    callers = led(gate, half, rest, more, huge, more)
    gate.may_end.set()
    assert [len(caller.result()) for caller in callers] == [1, len(half), len(rest), 1, len(huge), 1]
    assert gate.transactions == [["leader"], half + rest, more, huge, more]


def test_a_failure_reaches_exactly_the_calls_of_its_transaction(gate: Gate) -> None:
    gate.problems = {1: OSError("disk full")}
    most = ["x"] * MOST_TOGETHER
    callers = led(gate, ["a"], ["b"], most)
    gate.may_end.set()
    first, a, b, last = [caller.result() for caller in callers]
    assert first == [("leader", 0)]
    assert a is b is gate.problems[1]
    assert last == [("x", 2)] * MOST_TOGETHER
    assert gate.group(["later"]) == [("later", 3)]


def test_an_interrupt_of_the_leader_is_its_own_and_the_others_hear_that_nothing_was_done(gate: Gate) -> None:
    gate.problems = {1: KeyboardInterrupt()}
    most = ["x"] * MOST_TOGETHER
    callers = led(gate, ["leads next"], ["follows"], most)
    gate.may_end.set()
    first, leader, follower, last = [caller.result() for caller in callers]
    assert first == [("leader", 0)]
    assert isinstance(leader, KeyboardInterrupt)
    assert isinstance(follower, LedgerUnavailable)
    assert last == [("x", 2)] * MOST_TOGETHER  # the lead went on to whoever was still in line
    assert Caller(gate.group, ["later"]).result() == [("later", 3)]


def test_an_interrupt_of_a_single_caller_does_not_keep_the_lead(gate: Gate) -> None:
    gate.problems = {0: KeyboardInterrupt()}
    gate.may_end.set()
    with pytest.raises(KeyboardInterrupt):
        gate.group(["a"])
    assert Caller(gate.group, ["later"]).result() == [("later", 1)]


class Interrupted(BaseException):
    """As KeyboardInterrupt, but no test runner takes it for its own."""


def test_an_interrupt_of_a_call_in_line_leaves_no_gap_in_the_line(gate: Gate) -> None:
    (leader,) = led(gate)
    asleep = threading.get_ident()

    def interrupt() -> None:
        gate.wait_for(1)
        time.sleep(0.05)  # so that the call is asleep, not on its way there
        signal.pthread_kill(asleep, signal.SIGUSR1)

    def handle(*_: object) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGUSR1, handle)
    try:
        threading.Thread(target=interrupt, daemon=True).start()
        with pytest.raises(Interrupted):
            gate.group(["given up"])
    finally:
        signal.signal(signal.SIGUSR1, before)
    behind = Caller(gate.group, ["behind"])
    gate.may_end.set()
    assert leader.result()[0] == ("leader", 0)
    assert behind.result()[0][0] == "behind"
    assert Caller(gate.group, ["later"]).result()[0][0] == "later"


def test_a_single_caller_commits_in_its_own_thread_and_waits_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    def event() -> None:
        raise AssertionError("a single caller has nothing to wait for")

    monkeypatch.setattr(book.threading, "Event", event)
    threads: list[int] = []

    def commit(items: list[int]) -> list[int]:
        threads.append(threading.get_ident())
        return [-item for item in items]

    group = GroupCommit(commit)
    assert [group([one, one + 1]) for one in range(3)] == [[0, -1], [-1, -2], [-2, -3]]
    assert threads == [threading.get_ident()] * 3
