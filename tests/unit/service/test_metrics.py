"""What Prometheus reads: of one process from its memory, of several from a folder that they share."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tacit.service import telemetry
from tacit.service.telemetry import FOLDER, OFFERS, REGISTRY, exposition, leave

NAMES = {
    "tacit_request_seconds", "tacit_settled", "tacit_offers", "tacit_commit_size", "tacit_model_swaps",
    "tacit_model_published_seconds", "tacit_releases", "tacit_engagements",
}  # fmt: skip
WORKER = """
import os, sys
from tacit.service import telemetry as metrics
metrics.OFFERS.inc(int(sys.argv[1]))
metrics.MODEL.set(int(sys.argv[2]))
metrics.SECONDS.labels("/v1/model", "GET", "200").observe(0.003)
if sys.argv[3] == "show":
    print(metrics.exposition()[0].decode())
elif sys.argv[3] == "leave":
    metrics.leave()
"""


def value(text: str, name: str) -> float:
    (found,) = re.findall(rf"^{re.escape(name)} (\S+)$", text, flags=re.M)
    return float(found)


def test_one_process_tells_what_it_counted() -> None:
    before = REGISTRY.get_sample_value("tacit_offers_total") or 0.0
    OFFERS.inc(3)
    content, kind = exposition()
    assert value(content.decode(), "tacit_offers_total") == before + 3
    assert kind.startswith("text/plain")


def test_there_are_these_metrics_and_their_labels_name_nobody() -> None:
    families = {family.name: family for family in REGISTRY.collect()}
    assert set(families) == NAMES
    labels = {name for family in (telemetry.SECONDS, telemetry.SETTLED, telemetry.TOGETHER, telemetry.SWAPS, telemetry.PAID,
                                  telemetry.ENGAGED)
              for name in family._labelnames}  # fmt: skip
    assert labels == {"route", "method", "status", "outcome", "what", "kind"}  # no caller, item or signal


def test_several_processes_are_added_up_by_any_of_them(tmp_path: Path) -> None:
    environment = {**os.environ, FOLDER: str(tmp_path)}

    def worker(offers: int, model: int, then: str) -> str:
        words = [sys.executable, "-c", WORKER, str(offers), str(model), then]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60, check=True)
        return done.stdout

    worker(2, 100, "leave")
    worker(3, 300, "stay")
    text = worker(5, 200, "show")
    assert value(text, "tacit_offers_total") == 10  # what was counted by a worker that has ended is still counted
    assert value(text, 'tacit_request_seconds_count{method="GET",route="/v1/model",status="200"}') == 3
    # the worker that is furthest behind, among those that have not left
    assert value(text, "tacit_model_published_seconds") == 200


def test_a_single_process_has_no_folder_to_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FOLDER, raising=False)
    monkeypatch.setattr(telemetry, "mark_process_dead", lambda _: pytest.fail("there is no folder"))
    leave()
