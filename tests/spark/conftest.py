"""One session for most tests: starting one takes longer than any of them."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tacit.engines.spark.tables import local_session
from tests.spark.cluster import BRIEF


@pytest.fixture(scope="session")
def session() -> Iterator[SparkSession]:
    """Two threads, and a task may fail twice before the job does: on one machine it would fail at once."""
    made = local_session(
        master="local[2,3]", partitions=3, memory="1g", further={**BRIEF, "spark.sql.adaptive.enabled": "false"}
    )
    yield made
    made.stop()
