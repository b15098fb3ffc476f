"""A folder in which several workers add up what they count. It has to be named before the library of metrics is loaded."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # as the library wants it


@contextmanager
def common_folder(workers: int) -> Iterator[None]:
    """For as long as the workers run; one worker needs none."""
    if workers == 1 or FOLDER in os.environ:
        yield
        return
    folder = Path(tempfile.mkdtemp(prefix="tacit-metrics-"))
    os.environ[FOLDER] = str(folder)
    try:
        yield
    finally:
        del os.environ[FOLDER]
        shutil.rmtree(folder, ignore_errors=True)


def forget(process: int | None) -> None:
    """Of a worker that ended: what it counted stays, what it measured of itself does not."""
    if FOLDER in os.environ and process is not None:
        from prometheus_client.multiprocess import mark_process_dead

        mark_process_dead(process)  # type: ignore[no-untyped-call]
