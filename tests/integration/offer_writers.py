"""Programs for the fault tests of offers, displays, batches and mail, each run in a process of its own, as in ``writers``.

What was done is noted with one write call for each line, so that a killed process loses no note.
"""

import json
import os
import resource
import signal
import sys
import threading
import time
from importlib import import_module
from pathlib import Path

import numpy as np

from tacit.errors import LedgerUnavailable, TacitError
from tacit.ledger import DisplayLedger, ImpressionLedger, MailLedger, Offered, Settlement
from tacit.ledger.stores import is_postgresql

if __name__ == "__main__":  # its folder is on the path then, and the tests' is not
    from writers import Note, _kill, _noting, _say
else:
    from tests.integration.writers import Note, _kill, _noting, _say

JOBS = 400
EACH = 4  # tokens or reports of a job
ITEMS = ("apple", "pear", "fig", "plum")
EXPIRES = 4_000_000_000  # far away: a job that is done again offers the same
SERVER = "shop"


def prices_of(number: int) -> dict[str, int]:
    """Every offer has prices of its own, so that no other offer's can pass for them."""
    return {item: 1_000 * number + place for place, item in enumerate(ITEMS)}


def offer_of(number: int, place: int) -> Offered:
    return Offered(f"t-{number}-{place}", tuple(prices_of(number).items()), "fruit", EXPIRES, 1 + number % 2)


def shown_of(number: int, place: int) -> tuple[str, ...]:
    """What the job settles: as many items as its offers have slots."""
    return tuple(ITEMS[(number + place + slot) % 4] for slot in range(1 + number % 2))


def batch_of(number: int) -> tuple[str, str, list[tuple[str, str]], dict[str, int]]:
    reports = [(f"{number:08x}{place:08x}", ITEMS[(number * place) % 4]) for place in range(EACH)]
    return f"batch-{number % 7}", f"group-{number}", reports, prices_of(number)


class Ledgers:
    """Everything open at one place."""

    def __init__(self, target: str) -> None:
        self.shop = ImpressionLedger.open(target)
        self.device = DisplayLedger.open(target)
        self.mail = MailLedger.open(target)


def job(number: int, ledgers: Ledgers, note: Note) -> None:
    """Does one of the jobs, and notes what was acknowledged; doing it again changes nothing."""
    shop = ledgers.shop
    match number % 4:
        case 0:
            for place in range(EACH):
                shop.offer(offer_of(number, place))
                note("offered", str(number), str(place))
                _settled(shop.settle(f"t-{number}-{place}", shown_of(number, place)))
                note("settled", str(number), str(place))
        case 1:
            shop.offer_many(offer_of(number, place) for place in range(EACH))
            for place in range(EACH):
                note("offered", str(number), str(place))
            outcomes = shop.settle_many([(f"t-{number}-{place}", shown_of(number, place)) for place in range(EACH)])
            for place, outcome in enumerate(outcomes):
                _settled(outcome)
                note("settled", str(number), str(place))
            shop.forget()
        case 2:
            _settled(shop.settle_batch(*batch_of(number)))
            note("batched", str(number))
        case _:
            if number % 8 == 3:
                show_one(number, ledgers, note)
            else:
                for token, item in batch_of(number)[2]:
                    ledgers.mail.add("post", f"group-{number % 3}", item, token)
                    note("mailed", f"group-{number % 3}", item, token)


def show_one(number: int, ledgers: Ledgers, note: Note) -> None:
    """A device: draws, writes, shows, marks, reports. What it draws is another item every time."""
    token, device, shop = f"t-{number}-0", ledgers.device, ledgers.shop
    shop.offer(offer_of(number, 0)._replace(slots=1))
    drawn = (ITEMS[os.urandom(1)[0] % 4],)
    items = device.choose(SERVER, token, drawn, EXPIRES).items
    note("showed", token, *items)  # on the screen
    device.mark_shown(SERVER, token)
    for display in device.pending(SERVER):  # perhaps what a killed one had left
        _settled(shop.settle(display.token, display.items))
        note("reported", display.token, *display.items)
        device.mark_reported(SERVER, display.token)


def nursery(target: str, notes: str, kills: int, at_once: int, seed: int) -> None:
    """Forks writers that do jobs until they are killed, up to 90 milliseconds after they began to, one in four while they still
    open their ledgers; prints how many were."""
    import_module(f"tacit.ledger.stores.{'postgresql' if is_postgresql(target) else 'sqlite'}")
    rng = np.random.default_rng(seed)
    running: list[tuple[int, int]] = []
    killed = 0
    while killed < kills:
        while len(running) < at_once:
            ready, begun = os.pipe()
            pid = os.fork()
            if pid == 0:
                _work(target, notes, seed=len(running) + 1000 * killed + 10**6 * seed, begun=begun)
            os.close(begun)
            running.append((pid, ready))
        pid, ready = running.pop(0)
        if rng.integers(4):  # however slow the machine is, most of them come to work
            os.read(ready, 1)
        time.sleep(float(rng.uniform(0.0, 0.09)))
        killed += _kill(pid)
        os.close(ready)
    for pid, _ in running:
        _kill(pid)
    _say(killed)


def do_all(target: str, notes: str) -> None:
    """Does every job once more, as the clients of killed writers would; prints how many."""
    note, ledgers = _noting(notes), Ledgers(target)
    for number in range(JOBS):
        job(number, ledgers, note)
    _say(JOBS)


def race(target: str, go: str, kind: str, threads: int, ids: int, seed: int) -> None:
    """Waits for the file ``go``, then does the same as all others, each in an order of its own; prints what came of it."""
    results: list[dict[str, object]] = []
    ledgers = Ledgers(target)

    def run(thread: int) -> None:
        rng = np.random.default_rng([seed, thread])
        found: dict[str, object] = {}
        item = ITEMS[(seed + thread) % 4]
        for number in map(int, rng.permutation(ids)):
            token = f"r-{number}"
            if kind == "settle":
                found[token] = [item, ledgers.shop.settle(token, (item,))]
            elif kind == "offer":
                offered = Offered(token, ((item, 1),), "", EXPIRES)
                try:
                    ledgers.shop.offer(offered)
                    found[token] = [item, "kept"]
                except TacitError as problem:
                    found[token] = [item, problem.code]
            elif kind == "batch":
                reports = [(f"{place}-{item}", item) for place in range(3)]  # other reports under the same key
                found[token] = [item, ledgers.shop.settle_batch(token, "g", reports, {item: 5})]
            elif kind == "choose":
                found[token] = [item, ledgers.device.choose(SERVER, token, (item,), EXPIRES).items[0]]
            else:
                found[token] = [item, ledgers.mail.add("post", "g", item, token)]
        results.append(found)

    workers = [threading.Thread(target=run, args=(thread,)) for thread in range(threads)]
    _say("ready")
    while not Path(go).exists():
        time.sleep(0.001)
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    _say(results)


def meet_a_limit(target: str, spare: int) -> None:
    """Offers and settles under a limit on the size of files until one is refused for it, then without; prints what happened."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    ledgers = Ledgers(target)
    longest = max(os.stat(target + ending).st_size for ending in ("", "-wal", "-shm"))
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (longest + spare, hard))
    number, refused = 0, ""
    acknowledged: list[int] = []
    while not refused:
        try:
            ledgers.shop.offer(offer_of(2 * number, 0))
            ledgers.shop.settle(f"t-{2 * number}-0", shown_of(2 * number, 0))
            acknowledged.append(number)
            number += 1
        except LedgerUnavailable as problem:
            refused = problem.code
    codes = []
    for call in (
        lambda: ledgers.device.choose(SERVER, "t", ("pear",), EXPIRES, bytes(100_000)),
        lambda: ledgers.mail.add_many([("b", "g", "pear", f"{i:0300d}") for i in range(500)]),
        lambda: ledgers.shop.settle_batch("b", "g", [(f"{i:0300d}", "pear") for i in range(2000)], {"pear": 1}),
    ):
        try:
            call()
            codes.append("done")
        except LedgerUnavailable as problem:
            codes.append(problem.code)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    again = [str(ledgers.shop.settle(f"t-{2 * one}-0", shown_of(2 * one, 0))) for one in acknowledged]
    left = [ledgers.device.find(SERVER, "t") is None, ledgers.mail.groups("b"), ledgers.shop.item("pear").impressions]
    ledgers.shop.offer(offer_of(2 * number, 0))
    last = str(ledgers.shop.settle(f"t-{2 * number}-0", shown_of(2 * number, 0)))
    _say([len(acknowledged), refused, codes, sorted(set(again)), left, last])


def _settled(outcome: Settlement | TacitError) -> None:
    if outcome not in (Settlement.OK, Settlement.DUPLICATE):
        raise RuntimeError(f"not settled: {outcome}")


def _work(target: str, notes: str, seed: int, begun: int) -> None:
    """Does jobs in random order, for ever. Whatever goes wrong is noted; the tests allow nothing to."""
    note, rng = _noting(notes), np.random.default_rng(seed)
    try:
        ledgers = Ledgers(target)
        os.write(begun, b"x")
        while True:
            number = int(rng.integers(JOBS))
            note("started", str(number))
            job(number, ledgers, note)
    except BaseException as problem:
        note("failed", f"{type(problem).__name__} {problem}".replace("\n", " "))
    finally:
        os._exit(3)


if __name__ == "__main__":
    globals()[sys.argv[1]](**json.loads(sys.argv[2]))
