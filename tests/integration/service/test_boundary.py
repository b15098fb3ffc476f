"""What a server's process holds, as it runs: no raw ratings, no curator, no mechanism; and tables that workers share."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.service.conftest import Published, Running, Serve
from tests.integration.service.serving import until

FORBIDDEN = ("tacit.curator", "tacit.data", "tacit.mechanisms", "tacit.device", "tacit.entity", "tacit.shuffler")
ANSWERS = """
import json, sys
from pathlib import Path
from starlette.testclient import TestClient
from tacit.service.server_app import create_app
from tacit.service.settings import Settings

app = create_app(Settings(home=Path(sys.argv[1]), models=Path(sys.argv[2]), policy="rr"))
with TestClient(app) as client:
    offer = client.post("/v1/private-selection/offers", json={"version": 1, "context": "", "consent": 1}).json()
    shown = {"version": 1, "token": offer["token"], "items": [offer["candidates"][0]["item"]]}
    eta = {"version": 1, "simulated": False, "empty": False, "grid_bits": 20, "eta": [1, 10]}
    signal = {**eta, "steps": [1000] * 38, "k": 5, "t": 1}
    statuses = [
        client.post("/v1/private-selection/impressions", json=shown).status_code,
        client.post("/v1/multi-selection", json=signal).status_code,
        client.get("/v1/slates/counts-1", params={"drawn": "true"}).status_code,
        client.get("/v1/catalogue").status_code,
        client.get("/").status_code,
    ]
print(json.dumps([statuses, sorted(name for name in sys.modules)]))
"""


def test_a_server_that_answers_has_loaded_no_party_that_sees_what_is_private(
    published: Published, tmp_path: Path
) -> None:
    words = [sys.executable, "-c", ANSWERS, str(tmp_path / "home"), str(published.models)]
    (tmp_path / "home").mkdir()
    done = subprocess.run(words, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    statuses, modules = json.loads(done.stdout.splitlines()[-1])
    assert statuses == [200] * 5
    assert "tacit.service.server_app" in modules
    assert [name for name in modules if name.startswith(FORBIDDEN) or name == "tacit.service.curator_app"] == []
    assert [name for name in modules if name.partition(".")[0] in ("polars", "pyarrow", "jax")] == []


def test_a_worker_has_mapped_nothing_that_reads_ratings_or_trains(running: Running) -> None:
    for worker in running.service.workers():
        mapped = Path(f"/proc/{worker}/maps").read_text()
        assert "numpy" in mapped  # what it works with is seen here
        for library in ("polars", "pyarrow", "libarrow", "jaxlib"):
            assert library not in mapped


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="the system does not tell what is mapped")
def test_workers_share_the_tables_of_a_version(serve: Serve, published: Published) -> None:
    """A file that is mapped and not written to is in memory once, however many workers there are."""
    service = serve(workers=2).start()
    until(lambda: len(service.workers()) == 2, 20)
    file = str(published.models / published.first / "tables.safetensors")

    def lines(worker: int) -> list[str]:
        return [line for line in Path(f"/proc/{worker}/maps").read_text().splitlines() if line.endswith(file)]

    until(lambda: all(lines(worker) for worker in service.workers()), 20, "a worker has not mapped the tables")
    places = {worker: {tuple(line.split()[3:5]) for line in lines(worker)} for worker in service.workers()}
    assert len(places) == 2
    assert len(set(map(frozenset, places.values()))) == 1  # the same device and inode
    rights = {line.split()[1] for worker in service.workers() for line in lines(worker)}
    assert all("x" not in one for one in rights)
