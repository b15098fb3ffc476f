"""``python -m tacit.engines.spark similarities | x-sim | moments``, on this machine or, as a file, by ``spark-submit``.

Exit status: 0 done, 1 the work failed (one line on standard error), 2 the call was wrong.
"""

import argparse
import os
import sys
from collections.abc import Sequence

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tacit.engines.spark.arguments import parser
from tacit.engines.spark.session import local_session
from tacit.errors import InvalidParameter, TacitError


def main(words: Sequence[str] | None = None, session: SparkSession | None = None) -> int:
    """Runs one command and gives its exit status. A session of its own is stopped at the end, a given one is not."""
    asked = parser().parse_args(words)
    own = None
    try:
        if session is None:
            session = own = _session(asked)
        sys.stdout.write(f"{asked.command(session, asked)}\n")
    except InvalidParameter as wrong_call:
        return _failed(str(wrong_call), 2)
    except (TacitError, OSError) as failure:
        return _failed(str(failure), 1)
    except (PySparkException, Py4JError) as failure:  # its text may quote rows
        condition = failure.getCondition() if isinstance(failure, PySparkException) else None
        return _failed(f"Spark could not do it ({condition or type(failure).__name__}); Spark's logs say why.", 1)
    finally:
        if own is not None:
            own.stop()
    return 0


def _session(asked: argparse.Namespace) -> SparkSession:
    """That of ``spark-submit``, or one on this machine."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return SparkSession.builder.appName("tacit").getOrCreate()
    progress = {"spark.ui.showConsoleProgress": "true"} if sys.stderr.isatty() else None
    return local_session(asked.workers, memory=asked.memory, checkpoints=asked.checkpoints, further=progress)


def _failed(told: str, status: int) -> int:
    sys.stderr.write(f"tacit: {' '.join(told.split())}\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
