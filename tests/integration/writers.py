"""Programs that the fault tests run in processes of their own: writers that are killed, that race, that meet a full disk.

A writer notes what it did in a file, with one write call for each line: a killed process loses nothing that it had noted. The
line in the middle of which it is killed may be torn where a page of memory ends; such a line was not noted, and nobody else's
is touched by it.
Run as ``python tests/integration/writers.py NAME JSON``; the arguments are those of the function of that name.
"""

import json
import os
import resource
import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np

from tacit.errors import BudgetExhausted, LedgerUnavailable, TacitError
from tacit.guarantees import ONE_USER, pure
from tacit.ledger import Budget, PrivacyLedger, Receipt
from tacit.ledger.impressions import ImpressionLedger
from tacit.ledger.stores import is_postgresql

COST = pure(0.1, ONE_USER)
AMPLE, TIGHT = "ample", "tight"  # a subject whose budget fits every job, and one whose budget does not
TIGHT_CHARGES = 150
JOBS = 900
BATCH = 4
Note = Callable[..., int]
WHOLE = "."  # the last field of a line that was written to its end


def prepare(target: str) -> None:
    """A ledger for the jobs below."""
    with PrivacyLedger.create(target) as ledger:
        ledger.enrol(AMPLE, [Budget(1e6), Budget(1e5, per="day", sliding=True)], protects=ONE_USER)
        ledger.enrol(TIGHT, Budget(TIGHT_CHARGES / 10), protects=ONE_USER)


def job(number: int, ledger: PrivacyLedger, impressions: ImpressionLedger, note: Note) -> None:
    """Does one of the jobs, and notes what was drawn and what was acknowledged; doing it again changes nothing."""
    match number % 4:
        case 0:
            ledger.charge(AMPLE, f"c-{number}", COST)
            note("charged", AMPLE, f"c-{number}")
        case 1:
            content = os.urandom(16)
            sent = ledger.release(AMPLE, f"r-{number}", COST, lambda: note("drawn", f"r-{number}") and content)
            note("sent", f"r-{number}", sent.hex())
        case 2:
            wished = [(TIGHT, f"m-{number}-{place}", COST) for place in range(BATCH)]
            for (subject, release_id, _), outcome in zip(wished, ledger.charge_many(wished), strict=True):
                if isinstance(outcome, Receipt):
                    note("charged", subject, release_id)
                elif not isinstance(outcome, BudgetExhausted):
                    raise outcome
        case _:
            reports = [report_of(number, f"i-{number}-{place}") for place in range(BATCH)]
            for (impression, _, _), outcome in zip(reports, impressions.report_many(reports), strict=True):
                if isinstance(outcome, TacitError):
                    raise outcome
                note("reported", impression)


def report_of(number: int, impression: str) -> tuple[str, str, int]:
    return impression, f"item-{number % 5}", number


def nursery(target: str, notes: str, kills: int, at_once: int, seed: int) -> None:
    """Forks writers that do jobs until they are killed, up to 80 milliseconds after they began with the first, one in four
    perhaps before that; prints how many were killed, and for how many of them it was waited until they had begun.

    No ledger is ever opened in this process: each writer opens its own. What that imports is imported here, once.
    """
    import_module(f"tacit.ledger.stores.{'postgresql' if is_postgresql(target) else 'sqlite'}")
    rng = np.random.default_rng(seed)
    running: list[tuple[int, int]] = []
    killed = awaited = 0
    while killed < kills:
        while len(running) < at_once:
            ready, begun = os.pipe()
            pid = os.fork()
            if pid == 0:
                _work(target, notes, seed=len(running) + 1000 * killed, begun=begun)
            os.close(begun)
            running.append((pid, ready))
        pid, ready = running.pop(0)
        if rng.integers(4):  # however slow the machine is, most of them come to work
            awaited += os.read(ready, 1) == b"x"
        time.sleep(float(rng.uniform(0.0, 0.08)))
        killed += _kill(pid)
        os.close(ready)
    for pid, _ in running:
        _kill(pid)
    _say([killed, awaited])


def do_all(target: str, notes: str) -> None:
    """Does every job once more, as the clients of killed writers would; prints how many."""
    note = _noting(notes)
    with PrivacyLedger.open(target) as ledger, ImpressionLedger.open(target) as impressions:
        for number in range(JOBS):
            job(number, ledger, impressions, note)
    _say(JOBS)


def race(target: str, go: str, kind: str, threads: int, ids: int, seed: int) -> None:
    """Waits for the file ``go``, then charges or releases in several threads at once; prints what came of it."""
    results: list[object] = []

    def run(ledger: PrivacyLedger, thread: int) -> None:
        order = [f"id-{number}" for number in np.random.default_rng([seed, thread]).permutation(ids)]
        if kind == "exhaust":
            results.append(_charges_until_refused(ledger, f"{seed}-{thread}"))
        elif kind == "charge":
            results.append({one: ledger.charge("raced", one, COST)[:4:3] for one in order})
        else:
            results.append({one: ledger.release("raced", one, COST, lambda: os.urandom(8)).hex() for one in order})

    with PrivacyLedger.open(target) as ledger:
        workers = [threading.Thread(target=run, args=(ledger, thread)) for thread in range(threads)]
        _say("ready")
        while not Path(go).exists():
            time.sleep(0.001)
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    _say(results)


def creators(folder: str, kills: int, seed: int) -> None:
    """Forks processes that create one ledger each and kills them at random times; prints how many it killed before they ended.

    A kill that came too late shortens the next waits, and one that came in time lengthens them: about half come in time,
    however busy the machine is.
    """
    rng, killed = np.random.default_rng(seed), 0
    start = time.perf_counter()
    PrivacyLedger.create(f"{folder}/first.db").close()  # loads here, once, what creating a ledger loads on first use
    longest_wait = time.perf_counter() - start
    for number in range(kills):
        pid = os.fork()
        if pid == 0:
            try:
                PrivacyLedger.create(f"{folder}/{number}.db").close()
            finally:
                os._exit(0)
        time.sleep(float(rng.uniform(0.0, longest_wait)))
        in_time = _kill(pid)
        longest_wait *= 1.25 if in_time else 0.8
        killed += in_time
    _say(killed)


def meet_a_limit(target: str, spare: int) -> None:
    """Charges under a limit on the size of files until one is refused for it, then without; prints what happened."""
    drawn: list[str] = []
    with PrivacyLedger.open(target) as ledger:
        longest = max(os.stat(target + ending).st_size for ending in ("", "-wal", "-shm"))
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (longest + spare, hard))
        made, problem = 0, ""
        while not problem:
            try:
                ledger.charge("limited", f"before-{made}", COST)
                made += 1
            except LedgerUnavailable as refused:
                problem = str(refused)
        try:
            ledger.release("limited", "released", COST, lambda: _draw(drawn))
            refused_again = False
        except LedgerUnavailable:
            refused_again = True
        drawn_meanwhile = len(drawn)
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        ledger.release("limited", "released", COST, lambda: _draw(drawn))
        charges = ledger.statement("limited").charges
    _say([made, problem, refused_again, drawn_meanwhile, len(drawn), charges])


def charge_on(target: str, notes: str, number: int, seconds: float) -> None:
    """Charges until the file ``<notes>.stop`` is there, at most so many seconds, also through times when the ledger cannot be
    used; notes what was acknowledged."""
    note, end, made = _noting(notes), time.monotonic() + seconds, 0
    ledger, stop = None, Path(f"{notes}.stop")
    while time.monotonic() < end and not (made > 20 and stop.exists()):
        try:
            ledger = ledger or PrivacyLedger.open(target)
            ledger.charge("raced", f"{number}-{made}", COST)
            note("charged", "raced", f"{number}-{made}")
            made += 1
        except LedgerUnavailable:
            note("unavailable")
            time.sleep(0.05)
    _say(made)


def charge_by_clock(target: str, number: int, offset: int, charges: int) -> None:
    """Charges with a clock of its own, which is wrong by ``offset`` microseconds; prints the times of its charges."""
    with PrivacyLedger.open(target, clock=lambda: time.time_ns() // 1000 + offset) as ledger:
        made = []
        for one in range(charges):
            receipt = ledger.charge("raced", f"{number}-{one}", COST)
            made.append((receipt.entry, receipt.at))
    _say(made)


def fork_while_open(target: str, notes: str, charges: int) -> None:
    """Forks with an open ledger. The parent closes its own and ends; the child goes on charging with what it inherited."""
    ledger, note = PrivacyLedger.open(target), _noting(notes)
    ledger.charge("raced", "parent", COST)
    ready, started = os.pipe()
    if os.fork() == 0:
        try:
            for number in range(charges):
                ledger.charge("raced", f"child-{number}", COST)
                note("charged", "raced", f"child-{number}")
                if number == 0:
                    os.write(started, b"x")
            note("done")
        except BaseException as problem:
            note("failed", type(problem).__name__)
        finally:
            os._exit(0)
    os.read(ready, 1)
    ledger.close()


def fork_while_threads_charge(target: str, forks: int) -> None:
    """Forks while other threads are in the middle of a charge; prints how many of the children could charge."""
    stopped = threading.Event()

    def charge_on(ledger: PrivacyLedger, thread: int) -> None:
        for number in iter(int, 1):
            if stopped.is_set():
                return
            ledger.charge("raced", f"{thread}-{number}-{time.monotonic_ns()}", COST)

    with PrivacyLedger.open(target) as ledger:
        workers = [threading.Thread(target=charge_on, args=(ledger, thread)) for thread in range(3)]
        for worker in workers:
            worker.start()
        charged = 0
        for number in range(forks):
            time.sleep(0.01)
            pid = os.fork()
            if pid == 0:
                signal.alarm(3)  # ends a child that waits for a lock that nobody holds
                try:
                    ledger.charge("raced", f"child-{number}", COST)
                    os._exit(0)
                finally:
                    os._exit(1)
            charged += os.waitpid(pid, 0)[1] == 0
        stopped.set()
        for worker in workers:
            worker.join()
    _say(charged)


def fork_while_read(target: str) -> None:
    """Forks while a reader is open; prints the codes of the errors that a child gets, and whether the parent can charge."""
    with PrivacyLedger.open(target) as ledger:
        inherited, answered = os.pipe()
        with ledger._store.read():
            pid = os.fork()
        if pid == 0:
            attempts: list[Callable[[], object]] = [
                lambda: ledger.charge("raced", "child", COST),
                lambda: PrivacyLedger.open(target),
            ]
            try:
                os.write(answered, json.dumps([_code_of(attempt) for attempt in attempts]).encode())
            finally:
                os._exit(0)
        os.close(answered)
        os.waitpid(pid, 0)
        with os.fdopen(inherited) as answers:
            codes = json.loads(answers.read())
        ledger.charge("raced", "parent", COST)
        _say([codes, ledger.statement("raced").charges])


def _code_of(attempt: Callable[[], object]) -> str:
    try:
        attempt()
    except TacitError as problem:
        return problem.code
    return "ok"


def interrupt(target: str, leads: bool) -> None:
    """Interrupts the main thread in a charge, while it commits or while it waits for another thread's commit; prints which
    charges were made by the others, and afterwards."""
    entered, gate = threading.Event(), threading.Event()
    made: list[str] = []

    def clock() -> int:  # asked within the transaction
        entered.set()
        gate.wait()
        return time.time_ns() // 1000

    def charge(ledger: PrivacyLedger, release_id: str) -> None:
        ledger.charge("raced", release_id, COST)
        made.append(release_id)

    def handler(*_: object) -> None:
        if leads:
            gate.set()
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, handler)
    with PrivacyLedger.open(target, clock=clock) as ledger:
        other = threading.Thread(target=charge, args=(ledger, "other"), daemon=True)
        if not leads:
            other.start()
            entered.wait()
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        try:
            charge(ledger, "interrupted")
        except KeyboardInterrupt:
            made.append("interrupt")
        gate.set()
        if not leads:
            other.join(5)
        later = threading.Thread(target=charge, args=(ledger, "later"), daemon=True)
        later.start()
        later.join(5)
        _say(made)
        sys.stdout.flush()
        os._exit(0)  # a thread that hangs would keep the process


def _charges_until_refused(ledger: PrivacyLedger, prefix: str) -> int:
    made = 0
    while True:
        try:
            made += ledger.charge("raced", f"{prefix}-{made}", COST).fresh
        except BudgetExhausted:
            return made


def _work(target: str, notes: str, seed: int, begun: int | None) -> None:
    """Does jobs in random order, for ever. Whatever goes wrong is noted; the tests allow nothing to."""
    note, rng = _noting(notes), np.random.default_rng(seed)
    try:
        with PrivacyLedger.open(target) as ledger, ImpressionLedger.open(target) as impressions:
            while True:
                number = int(rng.integers(JOBS))
                note("started", str(number))
                if begun is not None:
                    os.write(begun, b"x")
                    begun = None
                job(number, ledger, impressions, note)
    except BaseException as problem:
        note("failed", f"{type(problem).__name__} {problem}".replace("\n", " "))
    finally:
        os._exit(3)


def _draw(drawn: list[str]) -> bytes:
    content = os.urandom(16)
    drawn.append(content.hex())
    return content


def _kill(pid: int) -> bool:
    """Kills, and says whether it was this that ended the process."""
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def _noting(path: str) -> Note:
    descriptor = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY)
    return lambda *fields: os.write(descriptor, ("\n" + "\t".join((*fields, WHOLE))).encode())


def noted(path: Path) -> dict[str, list[list[str]]]:
    """What the writers noted, by the first word of each line; without lines that were torn."""
    lines: dict[str, list[list[str]]] = defaultdict(list)
    for line in path.read_text().split("\n"):
        *fields, last = line.split("\t")
        if fields and last == WHOLE:
            lines[fields[0]].append(fields[1:])
    return lines


def _say(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    globals()[sys.argv[1]](**json.loads(sys.argv[2]))
