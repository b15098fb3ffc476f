"""Logs and metrics of a service.

Logs are lines of JSON with routes, codes, sizes and times. They never hold an address, the path that a caller typed, a
header or a body. For an unexpected error the log has its type and the lines of code that it passed. It leaves out the
message, which may quote private data.

Metrics are counts and times by route, never by caller, item or signal. Each of several workers keeps its numbers in a file
of a common folder (PROMETHEUS_MULTIPROC_DIR), and any worker adds up all files. A worker reads the name of that folder when
it imports the Prometheus library.
"""

import logging
import os
import shutil
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import time
from typing import Any

import orjson
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from tacit.errors import TacitError

LOG = logging.getLogger("tacit.service")
_STANDARD_ERROR = 2


class JsonLines(logging.Formatter):
    """Formats each record as one line, with the members of ``extra={"about": {...}}``."""

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        if not record.name.startswith("tacit"):  # the rest may be a traceback, or quote an error
            message = message.partition("\n")[0]
        line: dict[str, Any] = {
            "at": round(record.created, 3),
            "level": record.levelname.lower(),
            "logger": record.name,
            "process": record.process,
            "event": message,
        }
        about = getattr(record, "about", None)
        if isinstance(about, dict):
            line |= about
        if record.exc_info and record.exc_info[0] is not None:
            line |= places_of(record.exc_info[1])
        return orjson.dumps(line, default=str).decode()


def note_request(route: str, method: str, status: int, seconds: float, sent: int) -> None:
    """Writes the log line of one request, at once and in one piece. `logging` would take longer than all other work of the
    edge."""
    line = {
        "at": round(time(), 3),
        "level": "info",
        "process": os.getpid(),
        "event": "request",
        "route": route,
        "method": method,
        "status": status,
        "ms": round(seconds * 1e3, 3),
        "bytes": sent,
    }
    os.write(_STANDARD_ERROR, orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))


def places_of(error: BaseException | None) -> dict[str, Any]:
    """The facts about an unexpected error that may be logged: its type, and the lines of code that it passed."""
    if error is None:
        return {}
    frames = traceback.extract_tb(error.__traceback__)
    places = [f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}" for frame in frames[-12:]]
    return {"error": type(error).__name__, "places": places}


@contextmanager
def log_failure(*, ends: bool = False) -> Iterator[None]:
    """Logs an error at the start, with its message: it is about the operator's own settings and files.

    With ``ends`` the process then ends. Otherwise the error is raised again.
    """
    try:
        yield
    except (TacitError, OSError) as problem:
        LOG.error("cannot start", extra={"about": {"because": str(problem)}})
        if ends:
            raise SystemExit(1) from None
        raise


def set_up() -> None:
    """Makes all loggers of this process write lines of JSON to standard error; on a terminal, warnings and errors
    only."""
    level = logging.WARNING if sys.stderr.isatty() else logging.INFO
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    for name in ("tacit", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
        logger.setLevel(level)
    logging.getLogger("uvicorn.access").disabled = True  # it writes addresses and paths


FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # the name that the library expects


@contextmanager
def common_folder(workers: int) -> Iterator[None]:
    """Creates the common folder for as long as the workers run. A single worker needs none."""
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
    """Forgets the gauges of a worker that ended. Its counts stay."""
    if FOLDER in os.environ and process is not None:
        mark_process_dead(process)  # type: ignore[no-untyped-call]


_BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)

REGISTRY = CollectorRegistry()
SECONDS = Histogram(
    "tacit_request_seconds", "Time of requests.", ("route", "method", "status"), buckets=_BUCKETS, registry=REGISTRY
)
SETTLED = Counter("tacit_settled_total", "Reports of impressions, by outcome.", ("outcome",), registry=REGISTRY)
OFFERS = Counter("tacit_offers_total", "Offers that are on the disk.", registry=REGISTRY)
TOGETHER = Histogram(
    "tacit_commit_size",
    "Requests in one transaction.",
    ("what",),
    buckets=(1, 2, 5, 10, 20, 50, 100, 200, 500),
    registry=REGISTRY,
)
SWAPS = Counter(
    "tacit_model_swaps_total", "New versions of the model, taken or refused.", ("outcome",), registry=REGISTRY
)
MODEL = Gauge(
    "tacit_model_published_seconds",
    "The time at which the served version was published, in seconds since 1970.",
    multiprocess_mode="livemin",  # the oldest model of all workers
    registry=REGISTRY,
)
ENGAGED = Counter("tacit_engagements_total", "Reports of clicks, by outcome.", ("outcome",), registry=REGISTRY)
PAID = Counter(
    "tacit_releases_total", "Releases that a curator sent, the first time or again.", ("kind",), registry=REGISTRY
)


def exposition() -> tuple[bytes, str]:
    """All metrics as text, and its content type."""
    if FOLDER not in os.environ:
        return generate_latest(REGISTRY), CONTENT_TYPE_LATEST
    all_workers = CollectorRegistry()
    MultiProcessCollector(all_workers)  # type: ignore[no-untyped-call]
    return generate_latest(all_workers), CONTENT_TYPE_LATEST


def leave() -> None:
    """Forgets the gauges of this worker, which ends."""
    forget(os.getpid())
