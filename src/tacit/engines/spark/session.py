"""A session on this machine for trying out and for tests: driver and workers listen on loopback only, and there is no web page.

On a cluster there is a session already, made by ``spark-submit``: none of this is used then.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from tacit.checks import whole

LOOPBACK = "127.0.0.1"


def local_session(
    workers: int = 2,
    *,
    master: str | None = None,
    memory: str = "2g",
    partitions: int | None = None,
    checkpoints: Path | str | None = None,
    further: Mapping[str, str] | None = None,
) -> SparkSession:
    """A session with ``workers`` threads of this process's own; or of a ``master`` on this machine, such as a local cluster.

    ``partitions`` is of each shuffle, by default two for each worker. ``checkpoints`` is a folder for intermediate results that
    outlive the loss of a worker: they are made of ratings, and belong where ratings may be. Without it they stay in memory.
    """
    workers = whole("workers", workers, least=1)
    settings = {
        "spark.driver.bindAddress": LOOPBACK,
        "spark.driver.host": LOOPBACK,
        "spark.driver.memory": memory,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.eventLog.enabled": "false",
        "spark.sql.shuffle.partitions": str(partitions or 2 * workers),
        "spark.sql.session.timeZone": "UTC",
        "spark.cleaner.referenceTracking.cleanCheckpoints": "true",
        **(further or {}),
    }
    builder = SparkSession.builder.master(master or f"local[{workers}]").appName("tacit")
    for name, value in settings.items():
        builder = builder.config(name, value)
    with _environment():
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    if checkpoints is not None:
        session.sparkContext.setCheckpointDir(str(checkpoints))
    return session


def settled(frame: DataFrame) -> DataFrame:
    """The same rows, computed now, with their history cut off: plans of plans grow until the driver can no longer hold them.

    Where the session has a folder for checkpoints they are written there; otherwise they stay with the workers, and a worker that
    is lost takes the run with it.
    """
    lasting = frame.sparkSession.sparkContext.getCheckpointDir() is not None
    return frame.checkpoint() if lasting else frame.localCheckpoint()


@contextmanager
def _environment() -> Iterator[None]:
    """What the processes of Spark inherit when they start. A local cluster knows of no other setting; and workers would start
    whatever Python is found first."""
    wished = {"SPARK_LOCAL_IP": LOOPBACK, "SPARK_LOCAL_HOSTNAME": LOOPBACK, "PYSPARK_PYTHON": sys.executable}
    before = {name: os.environ.get(name) for name in wished}
    os.environ.update(wished)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
