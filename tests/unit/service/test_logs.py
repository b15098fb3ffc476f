"""Logs: one line of JSON each, which tells where an error came from and never what it said."""

import asyncio
import io
import json
import logging
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tacit.service import telemetry
from tacit.service.telemetry import LOG, JsonLines, note_request, places_of

SECRET = "rating 4.5 of user 7"


@pytest.fixture
def lines() -> Iterator[Callable[[], list[dict[str, Any]]]]:
    """What is logged with this formatter."""
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.addHandler(handler)
    yield lambda: [json.loads(line) for line in out.getvalue().splitlines()]
    root.removeHandler(handler)


def raised() -> ValueError:
    try:
        inner()
    except ValueError as error:
        return error
    raise AssertionError


def inner() -> None:
    raise ValueError(SECRET)


def test_a_line_says_what_happened_with_what_is_known_about_it(lines: Callable[[], list[dict[str, Any]]]) -> None:
    LOG.error("model", extra={"about": {"version": "abc", "size": 3}})
    logging.getLogger("other").error("%d of %d", 1, 2)
    first, second = lines()
    assert set(first) == {"at", "level", "logger", "process", "event", "version", "size"}
    assert (first["event"], first["level"], first["process"]) == ("model", "error", os.getpid())
    assert (first["version"], first["size"]) == ("abc", 3)
    assert (second["event"], second["logger"]) == ("1 of 2", "other")


def test_an_error_is_told_by_its_type_and_places_and_not_by_its_text(
    lines: Callable[[], list[dict[str, Any]]],
) -> None:
    for logger in (LOG, logging.getLogger("uvicorn.error"), logging.getLogger("elsewhere")):
        try:
            inner()
        except ValueError:
            logger.exception("went wrong")
        logger.error("again", exc_info=raised(), stack_info=True)
    assert len(lines()) == 6
    for line in lines():
        assert line["error"] == "ValueError"
        assert line["places"][-1].startswith("test_logs.py:")
        assert line["places"][-1].endswith(" inner")
        assert SECRET not in json.dumps(line)
        assert "Traceback" not in json.dumps(line)


def test_others_messages_are_cut_where_they_quote_an_error(lines: Callable[[], list[dict[str, Any]]]) -> None:
    async def forgotten() -> None:
        task = asyncio.ensure_future(failing())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        del task

    async def failing() -> None:
        inner()

    asyncio.run(forgotten())
    logging.getLogger("uvicorn.error").error("Traceback (most recent call last):\n  ...\nValueError: %s", SECRET)
    found = lines()
    assert [line["event"] for line in found] == [
        "Task exception was never retrieved", "Traceback (most recent call last):",
    ]  # fmt: skip
    assert SECRET not in json.dumps(found)


def test_places_are_the_innermost_and_not_too_many() -> None:
    def deep(left: int) -> None:
        if not left:
            inner()
        deep(left - 1)

    with pytest.raises(ValueError, match="rating") as caught:
        deep(50)
    told = places_of(caught.value)
    assert set(told) == {"error", "places"}
    assert len(told["places"]) == 12
    assert told["places"][-1].endswith(" inner")
    assert not any(os.sep in place for place in told["places"])  # where this machine keeps its files is nobody's affair
    assert places_of(None) == {}


def test_a_text_with_several_lines_stays_one_line(lines: Callable[[], list[dict[str, Any]]]) -> None:
    LOG.error("one\ntwo", extra={"about": {"x": "three\nfour"}})
    (line,) = lines()
    assert (line["event"], line["x"]) == ("one\ntwo", "three\nfour")


def test_the_line_of_a_request_is_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else lines of several workers, who share standard error, would get mixed."""
    written: list[tuple[int, bytes]] = []
    monkeypatch.setattr(telemetry.os, "write", lambda handle, content: written.append((handle, content)))
    note_request("/v1/model", "GET", 200, 0.0123456, 391)
    ((handle, content),) = written
    assert handle == 2
    assert content.endswith(b"}\n")
    assert content.count(b"\n") == 1
    assert json.loads(content)["ms"] == 12.346


def test_all_loggers_of_a_process_write_such_lines_and_none_writes_addresses(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = logging.getLogger()
    named = [logging.getLogger(name) for name in ("tacit", "uvicorn", "uvicorn.access")]
    before = [(one, one.handlers[:], one.level, one.propagate, one.disabled) for one in (root, *named)]
    named[1].addHandler(logging.StreamHandler(sys.stderr))  # as uvicorn would
    try:
        telemetry.set_up()
        LOG.info("model")
        logging.getLogger("uvicorn.error").info("started")
        logging.getLogger("uvicorn.access").info("192.0.2.1 GET /v1/secret")
        logging.getLogger("noisy.library").info("not wanted")
        logging.getLogger("noisy.library").warning("wanted")
    finally:
        for one, handlers, level, propagate, disabled in before:
            one.handlers[:], one.propagate, one.disabled = handlers, propagate, disabled
            one.setLevel(level)
    out, err = capsys.readouterr()
    assert out == ""
    assert [json.loads(line)["event"] for line in err.splitlines()] == ["model", "started", "wanted"]
