"""Where a session listens."""

import os
from pathlib import Path

from pyspark.sql import SparkSession

LISTENING = "0A"
LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}


def descendants(process: int) -> set[int]:
    found = {process}
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        for child in children.read_text().split():
            found |= descendants(int(child))
    return found


def sockets(process: int) -> set[str]:
    found = set()
    for handle in Path(f"/proc/{process}/fd").iterdir():
        try:
            target = os.readlink(handle)
        except FileNotFoundError:  # closed since
            continue
        if target.startswith("socket:["):
            found.add(target[8:-1])
    return found


def test_driver_and_workers_listen_on_loopback_only(session: SparkSession) -> None:
    session.range(4).mapInArrow(lambda batches: batches, "id long").count()  # so that the workers' Python runs, too
    own = set().union(*(sockets(process) for process in descendants(os.getpid())))
    addresses = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENING and fields[9] in own:
                addresses.append(fields[1].split(":")[0])
    assert len(addresses) >= 2  # the driver's port and that of its blocks
    assert set(addresses) <= LOOPBACK


def test_there_is_no_web_page_and_no_log_of_events(session: SparkSession) -> None:
    assert session.sparkContext.uiWebUrl is None
    assert session.conf.get("spark.eventLog.enabled") == "false"


def test_what_the_environment_was_it_is_again(session: SparkSession) -> None:
    assert not {"SPARK_LOCAL_IP", "SPARK_LOCAL_HOSTNAME"} & os.environ.keys()
