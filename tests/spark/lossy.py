"""A program for ``spark-submit``: totals of a mechanism, while the executor that has come to partition 7 is killed once.

lossy.py RATINGS ITEMS TOTALS.npy NOTE
"""

import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark import TaskContext
from pyspark.sql import SparkSession

from tacit.engines.spark.rows import SparkRows
from tacit.engines.spark.tables import coded, read_table
from tacit.mechanisms.rating_rows import RatingBounds
from tacit.mechanisms.transfer_moments import OffsetSums

EXECUTOR = b"CoarseGrainedExecutorBackend"


@dataclass(frozen=True)
class Lossy:
    step: OffsetSums
    note: str

    @property
    def length(self) -> int:
        return self.step.length

    def totals(self, rows: Any) -> NDArray[np.int64]:
        found = self.step.totals(rows)
        context = TaskContext.get()
        if context is not None and context.partitionId() == 7 and not Path(self.note).exists():
            Path(self.note).write_text("killed")
            os.kill(executor(os.getpid()), signal.SIGKILL)
        return found


def executor(process: int) -> int:
    """The Java process above this one."""
    while EXECUTOR not in Path(f"/proc/{process}/cmdline").read_bytes():
        process = int(Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])
    return process


if __name__ == "__main__":
    ratings, listed, out, note = sys.argv[1:]
    session = SparkSession.builder.getOrCreate()
    items = coded(read_table(session, listed))
    rows = SparkRows(read_table(session, ratings), items).ready()
    step = OffsetSums(items.n_items, RatingBounds(1.0, 5.0), mu=0.5, delta=1e-6)
    np.save(out, rows.totals(Lossy(step, note)))
    session.stop()
