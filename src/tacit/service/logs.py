"""Logs as lines of JSON. They hold routes, codes, sizes and times; never an address, a path as it was typed, a header or a body.

An unexpected error is told by its type and by the places in the code that it came through. Its message is not: it may quote
what was being worked on.
"""

import logging
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from time import time
from typing import Any

import orjson

from tacit.errors import TacitError

LOG = logging.getLogger("tacit.service")
_STANDARD_ERROR = 2


class JsonLines(logging.Formatter):
    """One line for each record, with the members that were given as ``extra={"about": {...}}``."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "at": round(record.created, 3),
            "level": record.levelname.lower(),
            "logger": record.name,
            "process": record.process,
            "event": _first_line(record),
        }
        about = getattr(record, "about", None)
        if isinstance(about, dict):
            line |= about
        if record.exc_info and record.exc_info[0] is not None:
            line |= places_of(record.exc_info[1])
        return orjson.dumps(line, default=str).decode()


def _first_line(record: logging.LogRecord) -> str:
    """Of others' messages the first line: what follows may be a traceback, or quote an error."""
    told = record.getMessage()
    return told if record.name.startswith("tacit") else told.partition("\n")[0]


def note_request(route: str, method: str, status: int, seconds: float, sent: int) -> None:
    """The line of one request, written at once and whole. (The usual way through `logging` takes longer than all limits do.)"""
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
    """What may be told of an error that nobody expected."""
    if error is None:
        return {}
    frames = traceback.extract_tb(error.__traceback__)
    places = [f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}" for frame in frames[-12:]]
    return {"error": type(error).__name__, "places": places}


@contextmanager
def told_if_it_fails(*, ends: bool = False) -> Iterator[None]:
    """For what goes wrong at the start: an operator's own settings and files, which may be told. With ``ends`` that is all."""
    try:
        yield
    except (TacitError, OSError) as problem:
        LOG.error("cannot start", extra={"about": {"because": str(problem)}})
        if ends:
            raise SystemExit(1) from None
        raise


def set_up() -> None:
    """All loggers of this process write lines of JSON to standard error; to a terminal, only what is wrong."""
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
