"""What many writers do to each other on a server: they wait in one order, never for ever, and never spend twice."""

import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from tacit.errors import LedgerUnavailable, TacitError
from tacit.guarantees import ONE_USER
from tacit.ledger import Budget, PrivacyLedger, Terms
from tacit.ledger.chain import lane_of
from tacit.ledger.stores.interface import TEXTS
from tacit.ledger.stores.postgresql import PostgresqlStore
from tacit.ledger.stores.postgresql_wire import WRITING
from tests.integration.conftest import NAMES
from tests.integration.on_a_server import BOOK, COST, TEXT, charges

# --- Many writers


BATCHES = """
import sys
from tacit.guarantees import ONE_USER, pure
from tacit.ledger import PrivacyLedger
target, who, turn = sys.argv[1], sys.argv[2], int(sys.argv[3])
names = [f"subject-{number}" for number in range(64)][::turn]
print("ready", flush=True)
sys.stdin.readline()
with PrivacyLedger.open(target) as ledger:
    for batch in range(40):
        wished = [(name, f"{who}-{batch}", pure((1 + batch) / 1000, ONE_USER)) for name in names]
        assert all(outcome.fresh for outcome in ledger.charge_many(wished))
        ledger.charge(names[batch], f"{who}-alone-{batch}", pure(0.5 + batch / 1000, ONE_USER))
"""


def test_batches_over_all_lanes_from_two_processes_never_deadlock(uri, ledger):
    assert {lane_of(name, 16) for name in NAMES} == set(range(16))
    started = [
        subprocess.Popen(
            [sys.executable, "-c", BATCHES, uri, who, turn],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for who, turn in (("up", "1"), ("down", "-1"))
    ]
    for process in started:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in started:
        _, problem = process.communicate(timeout=100)
        assert process.returncode == 0, problem
    assert charges(uri) == 2 * 40 * 65


@pytest.fixture
def three(uri: str, ledger: PrivacyLedger, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[PostgresqlStore]]:
    """Three writers; the third soon gives up waiting."""
    stores = [PostgresqlStore(uri), PostgresqlStore(uri)]
    monkeypatch.setitem(WRITING, "lock_timeout", "300ms")
    stores.append(PostgresqlStore(uri))
    yield stores
    for store in stores:
        store.close()


def insert(store: PostgresqlStore, lanes: list[int], *keys: bytes) -> None:
    with store.write(BOOK, lanes) as writer:
        writer.insert(TEXTS, [(key, "x") for key in keys], unless_there=True)


def test_lanes_are_locked_in_one_order_whatever_order_they_are_named_in(three):
    first, second, third = three
    waiting = threading.Thread(target=insert, args=(second, [9, 0, 5], b"a"))
    with first.write(BOOK, [5]) as writer:
        _ = writer.tips
        waiting.start()
        time.sleep(0.3)  # it holds lane 0, waits for lane 5, and has not come to lane 9 yet
        insert(third, [9], b"b")
        with pytest.raises(LedgerUnavailable, match="lock timeout"):
            insert(third, [0], b"c")
    waiting.join(20)
    insert(third, [0, 5, 9], b"c")


def test_texts_that_others_may_insert_too_are_inserted_in_one_order(three):
    first, second, third = three
    waiting = threading.Thread(target=insert, args=(second, [1], b"z", b"a", b"m"))
    with first.write(BOOK, [0]) as writer:
        writer.insert(TEXTS, [(b"m", "x")], unless_there=True)
        assert writer.ask(TEXT, [(b"m",)])() == [("x",)]
        waiting.start()
        time.sleep(0.3)  # it has inserted a, waits for what becomes of m, and has not come to z yet
        insert(third, [2], b"z")
        with pytest.raises(LedgerUnavailable, match="lock timeout"):
            insert(third, [2], b"a")
    waiting.join(20)
    with third.read() as reader:
        assert len(list(reader.stream("SELECT digest FROM texts WHERE text = 'x'"))) == 3


def test_what_is_asked_along_with_the_locks_sees_what_their_last_holder_committed(uri, ledger):
    """Were the answers of the moment when they were sent, two writers would both find the budget unspent."""
    first, second = PostgresqlStore(uri), PostgresqlStore(uri)
    sent, seen = threading.Event(), []

    def wait() -> None:
        with second.write(BOOK, [5, 6]) as writer:
            answers = [writer.ask(TEXT, [(b"a",)]), writer.ask(TEXT, [(b"a",), (b"none",)])]
            sent.set()
            seen.extend(
                [*(answer() for answer in answers), writer.tips[5].position]
            )  # one journey with BEGIN and locks

    thread = threading.Thread(target=wait)
    with first.write(BOOK, [5]) as writer:
        before = writer.tips[5]
        thread.start()
        assert sent.wait(20)
        time.sleep(0.3)  # the second is waiting for the lane, its questions behind it
        writer.insert(TEXTS, [(b"a", "committed later")])
        writer.advance({5: before._replace(position=before.position + 9)})
    thread.join(20)
    assert seen == [[("committed later",)], [("committed later",), None], before.position + 9]
    first.close()
    second.close()


def test_two_processes_never_spend_a_budget_twice(uri, ledger):
    """The end of the last test's reason: eight racing ledgers, one subject, a budget for ten."""
    ledger.enrol("poor", Budget(0.01), protects=ONE_USER)
    ledgers = [PrivacyLedger.open(uri) for _ in range(8)]
    outcomes: list[object] = []

    def spend(which: int) -> None:
        for number in range(10):
            outcomes.extend(ledgers[which].charge_many([("poor", f"{which}-{number}", COST)]))

    threads = [threading.Thread(target=spend, args=(which,)) for which in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(not isinstance(outcome, TacitError) for outcome in outcomes) == 10
    assert {outcome.code for outcome in outcomes if isinstance(outcome, TacitError)} == {"budget-exhausted"}
    for one in ledgers:
        one.close()


def test_transactions_in_other_lanes_do_not_wait(uri, ledger):
    first, second = PostgresqlStore(uri), PostgresqlStore(uri)
    with first.write(BOOK, [0]) as held:
        _ = held.tips
        with second.write(BOOK, [1]) as writer:
            writer.insert(TEXTS, [(b"a", "x")])
        with second.write("impressions", [0]) as writer:
            assert writer.ask(TEXT, [(b"a",)])() == [("x",)]
    first.close()
    second.close()


def test_more_than_the_sockets_hold_can_be_asked_while_a_lane_is_waited_for(uri, ledger):
    """Else the writer that waits would stop the one that it waits for: they are threads of one process here."""
    first, second = PostgresqlStore(uri), PostgresqlStore(uri)
    keys = [(b"%0200d" % number,) for number in range(50_000)]
    found: list[object] = []

    def wait() -> None:
        with second.write(BOOK, [0]) as writer:
            found.extend(writer.ask(TEXT, keys)())

    thread = threading.Thread(target=wait)
    with first.write(BOOK, [0]) as writer:
        _ = writer.tips
        thread.start()
        time.sleep(0.5)
        writer.insert(TEXTS, [(keys[-1][0], "x")])
    thread.join(60)
    assert found == [None] * 49_999 + [("x",)]
    first.close()
    second.close()


@pytest.mark.parametrize("analysed", [False, True])
def test_every_plan_uses_whole_keys_from_the_first_charge_on(postgresql, uri, ledger, analysed):
    """Plans are kept, and made while tables are small: one that reads all rows would only be found out much later."""
    if analysed:
        postgresql.run("VACUUM ANALYZE", uri)
    ledger = PrivacyLedger.open(uri)
    ledger.enrol_many(["hourly", "daily"], Terms((Budget(1, per="day", sliding=True), Budget(5)), ONE_USER))
    for names in (["hourly"], ["hourly", "daily", "subject-1"]):
        ledger.charge_many([(name, f"r-{len(names)}", COST) for name in names])
        ledger.release(names[0], "kept", COST, lambda: b"content")
    wire = ledger._store._session  # type: ignore[attr-defined]
    explained = 0
    for statement, name in list(wire._prepared.items()):
        if b"$" in statement and b" lanes " not in statement:  # there are few lanes
            nulls = b", ".join([b"NULL"] * len(set(re.findall(rb"\$\d+", statement))))
            rows = wire.run(b"EXPLAIN EXECUTE %s(%s)" % (name, nulls), once=True)
            plan = "\n".join(line for (line,) in rows)
            assert "Seq Scan" not in plan, plan
            assert "Filter" not in plan, plan
            explained += 1
    ledger.close()
    assert explained > 10
