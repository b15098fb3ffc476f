"""The shuffler: on the disk before it answers, each token once, one content for each batch, and nothing of order or time."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from tacit.errors import Conflict, InvalidMessage
from tacit.ledger import Settlement
from tacit.messages.private_selection import Batch, Impression, ShuffledReport
from tacit.shuffler import Shuffler
from tests.releases import message_of

FIRST, SECOND = "a" * 32, "b" * 32


def report(number: int, group: str = FIRST, item: str = "item", batch: str = "monday") -> ShuffledReport:
    return message_of(ShuffledReport, batch, group, item, f"{number * 2654435761 % 2**32:032x}")


def test_a_report_counts_once(tmp_path: Path):
    with Shuffler(tmp_path / "mail.db") as shuffler:
        assert shuffler.submit(report(1)) is Settlement.OK
        assert shuffler.submit(report(1)) is Settlement.DUPLICATE
        assert shuffler.submit_many([report(2), report(2), report(3)]) == ["ok", "duplicate", "ok"]
        (batch,) = shuffler.pass_on("monday")
        assert len(batch.reports) == 3


def test_the_first_report_with_a_token_stands_whatever_group_or_item_comes_later(tmp_path: Path):
    with Shuffler(tmp_path / "mail.db") as shuffler:
        shuffler.submit(report(1, item="first"))
        assert shuffler.submit(report(1, item="second")) is Settlement.DUPLICATE
        assert shuffler.submit(report(1, SECOND)) is Settlement.DUPLICATE
        assert shuffler.pass_on("monday") == [Batch("monday", FIRST, ((report(1).token, "first"),))]


def test_one_batch_for_each_group_and_others_are_left_alone(tmp_path: Path):
    with Shuffler(tmp_path / "mail.db") as shuffler:
        shuffler.submit_many([report(1), report(2, SECOND), report(3), report(4, batch="tuesday")])
        batches = shuffler.pass_on("monday")
        assert [(batch.group, len(batch.reports)) for batch in batches] == [(FIRST, 2), (SECOND, 1)]
        assert shuffler.submit(report(5, batch="tuesday")) is Settlement.OK


def test_what_leaves_does_not_depend_on_the_order_of_arrival(tmp_path: Path):
    reports = [report(number, item=f"item {number % 3}") for number in range(40)]
    left = []
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(reports))
        with Shuffler(tmp_path / f"{seed}.db") as shuffler:
            for one in (reports[place] for place in order):
                shuffler.submit(one)
            left.append([batch.to_json() for batch in shuffler.pass_on("monday")])
    assert left[0] == left[1] == left[2]
    tokens = [row["token"] for row in left[0][0]["reports"]]
    assert tokens == sorted(tokens)
    assert tokens != [report(number).token for number in range(40)]


def test_a_closed_batch_takes_no_more_and_is_told_again_the_same(tmp_path: Path):
    with Shuffler(tmp_path / "mail.db") as shuffler:
        shuffler.submit_many([report(1), report(2)])
        first = shuffler.pass_on("monday")
        assert shuffler.submit(report(3)) is Settlement.EXPIRED
        assert shuffler.submit(report(1)) is Settlement.DUPLICATE  # a lost answer, asked for again
        assert shuffler.pass_on("monday") == first
    with Shuffler(tmp_path / "mail.db") as shuffler:
        assert shuffler.submit(report(3)) is Settlement.EXPIRED
        assert shuffler.pass_on("monday") == first


def test_a_forgotten_batch_never_opens_again(tmp_path: Path):
    with Shuffler(tmp_path / "mail.db") as shuffler:
        shuffler.submit(report(1))
        with pytest.raises(Conflict, match="close it first"):
            shuffler.forget("monday")
        shuffler.pass_on("monday")
        assert shuffler.forget("monday") == 1
        assert shuffler.submit(report(1)) is Settlement.EXPIRED
        assert shuffler.submit(report(2)) is Settlement.EXPIRED
        assert shuffler.pass_on("monday") == []


def test_an_empty_batch_has_no_groups(tmp_path: Path):
    with Shuffler(tmp_path / "mail.db") as shuffler:
        assert shuffler.pass_on("monday") == []


def test_a_batch_takes_no_more_than_a_message_holds(tmp_path: Path):
    with Shuffler(tmp_path / "mail.db", most=3) as shuffler:
        assert shuffler.submit_many([report(1), report(1), report(2)]) == ["ok", "duplicate", "ok"]
        assert shuffler.submit_many([report(3), report(4)]) == ["ok", "expired"]
    with Shuffler(tmp_path / "mail.db", most=3) as shuffler:
        assert shuffler.submit(report(4)) is Settlement.EXPIRED
        assert sum(len(batch.reports) for batch in shuffler.pass_on("monday")) == 3


def test_one_bad_report_does_not_hold_up_the_others(tmp_path: Path):
    with Shuffler(tmp_path / "mail.db") as shuffler:
        assert shuffler.submit_many([report(1, batch="line\nbreak"), report(2)]) == ["conflict", "ok"]


def test_only_shuffled_reports_are_taken(tmp_path: Path):
    with Shuffler(tmp_path / "mail.db") as shuffler, pytest.raises(InvalidMessage, match="ShuffledReports"):
        shuffler.submit(message_of(Impression, "0" * 32, ("item",)))  # type: ignore[arg-type]


def test_nothing_but_item_group_and_token_is_written_down(tmp_path: Path):
    """No column holds a time or an address."""
    with Shuffler(tmp_path / "mail.db") as shuffler:
        shuffler.submit(report(1))
    with closing(sqlite3.connect(tmp_path / "mail.db")) as file:
        columns = {row[1] for row in file.execute("PRAGMA table_info(mail)")}
    assert columns - {"seal"} == {"batch", "group_id", "item", "token"}  # the seal is a digest of the others


WRITER = """
import sys
from tacit.messages.private_selection import ShuffledReport
from tacit.shuffler import Shuffler
with Shuffler(sys.argv[1]) as shuffler:
    for number in range(100_000):
        token = f"{number * 2654435761 % 2**32:032x}"
        report = {"version": 1, "batch": "monday", "group": "a" * 32, "item": f"item {number % 3}", "token": token}
        shuffler.submit(ShuffledReport.from_json(report))
        print(number, flush=True)
"""


def test_what_was_acknowledged_survives_a_kill(tmp_path: Path):
    place, acknowledged = tmp_path / "mail.db", -1
    for _ in range(4):
        with subprocess.Popen([sys.executable, "-c", WRITER, str(place)], stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            first = int(writer.stdout.readline())  # it resends everything from the beginning
            assert first == 0
            time.sleep(0.05 + os.urandom(1)[0] / 1000)
            writer.send_signal(signal.SIGKILL)
            acknowledged = max([acknowledged, *(int(line) for line in writer.stdout if line.endswith("\n"))])
    assert acknowledged > 0
    with Shuffler(place) as shuffler:
        resent = shuffler.submit_many(
            [report(number, item=f"item {number % 3}") for number in range(acknowledged + 50)]
        )
        assert set(resent[: acknowledged + 1]) == {Settlement.DUPLICATE}
        (batch,) = shuffler.pass_on("monday")
    expected = sorted((report(number).token, f"item {number % 3}") for number in range(acknowledged + 50))
    assert list(batch.reports) == expected
