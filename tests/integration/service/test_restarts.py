"""A service that is stopped, killed, or loses a worker while devices report: what was acknowledged is counted, exactly once."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.conftest import PostgresqlServer
from tests.integration.service.conftest import Serve, listings_in, new_database
from tests.integration.service.reporters import Reporters
from tests.integration.service.serving import Service, until
from tests.integration.service.talking import (
    IMPRESSIONS,
    OFFERS,
    impression,
    in_ledger,
    offer_from,
    outcome_of,
    require_problem,
)

SECONDS = 1.2  # of load before and after each fault


def stopped(service: Service) -> None:
    assert service.stop() == 0
    service.start()


def killed(service: Service) -> None:
    """As by a power cut: all processes at once."""
    service.kill()
    service.start()


def without_a_worker(service: Service) -> None:
    before = service.workers()
    os.kill(before[0], signal.SIGKILL)
    until(lambda: len(service.workers()) == 2 and before[0] not in service.workers(), 20, "no worker took its place")


@pytest.mark.parametrize(("fault", "workers"), [(stopped, 1), (killed, 2), (without_a_worker, 2)])
def test_every_report_that_was_acknowledged_is_counted_exactly_once(
    serve: Serve, database: str, tmp_path: Path, fault: Callable[[Service], None], workers: int
) -> None:
    service = serve(database=database, listings=listings_in(tmp_path), policy="rr", workers=workers).start()
    with Reporters(service) as devices:
        time.sleep(SECONDS)
        fault(service)
        before = devices.done
        until(lambda: devices.done > before + 50, 30, "nobody is answered any more")
        devices.stop()
    assert before > 20
    assert devices.outcomes.keys() <= {"ok", "duplicate"}
    assert devices.odd == []  # a duplicate is what was sent again because no answer came
    assert service.stop() == 0
    assert in_ledger(database) == devices.shown
    words = [sys.executable, "-m", "tacit", "ledger", "check", database]
    checked = subprocess.run(words, capture_output=True, text=True, timeout=100, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_an_orderly_stop_loses_no_request_that_was_under_way(serve: Serve, tmp_path: Path) -> None:
    """What fails is only what came when nobody listened any more: it was not counted, as the same bytes again are no duplicate."""
    service = serve(listings=listings_in(tmp_path), policy="rr").start()
    with Reporters(service) as devices:
        time.sleep(SECONDS)
        stopped(service)
        devices.stop()
    assert devices.failures, "nobody was asking when it stopped"
    assert set(devices.failures) <= {"ConnectError", "RemoteProtocolError", "ReadError", "WriteError"}
    assert devices.outcomes == {"ok": devices.done}
    assert in_ledger(str(service.home / "server.db")) == devices.shown


def test_while_the_database_is_away_callers_are_told_to_come_back_and_nothing_is_lost(
    serve: Serve, postgresql: PostgresqlServer, tmp_path: Path
) -> None:
    database = new_database(postgresql)
    service = serve(database=database, listings=listings_in(tmp_path), policy="rr").start()
    with service.client() as client:
        first, second = offer_from(client), offer_from(client)
        assert outcome_of(client, first.token, "31") == "ok"
        postgresql.stop()
        try:
            for _ in range(3):
                for path, content in (
                    (IMPRESSIONS, impression(second.token, "31")),
                    (OFFERS, {"version": 1, "context": "", "consent": 1}),
                ):
                    refused = client.post(path, json=content)
                    require_problem(refused, 503, "ledger-unavailable")
                    assert int(refused.headers["retry-after"]) >= 1
            assert client.get("/readyz").status_code == 503
            assert client.get("/healthz").status_code == 200
            assert client.get("/v1/catalogue").status_code == 200  # what needs no ledger is answered
        finally:
            postgresql.start()
        until(service.is_ready, 20, "it does not find the database again")
        assert outcome_of(client, second.token, "31") == "ok"  # the same bytes as in vain before
        assert outcome_of(client, first.token, "31") == "duplicate"
        assert outcome_of(client, offer_from(client).token, "5") == "ok"
    assert service.stop() == 0
    assert in_ledger(database) == {"31": 2, "5": 1}
