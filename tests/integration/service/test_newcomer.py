"""Somebody who has just installed it types `tacit serve`, and has something to look at soon."""

import re
import subprocess
import sys
from pathlib import Path

from tacit.cli.serve import SLATES
from tests.integration.service.serving import Service
from tests.integration.service.talking import COUNTS, offer_from, outcome_of, require_problem

SECONDS = 120
ROOT = Path(__file__).parents[3]
PAGES = (ROOT / "README.md", ROOT / "docs" / "client.md")  # their lines for a device, which need a service
ADDRESS = "http://127.0.0.1:8000"
EXAMPLE = re.compile(r"^```py\n(.*?)^```", flags=re.M | re.S)


def said_by_the_example(page: Path, service: Service, folder: Path) -> list[str]:
    """What the page's lines print, run as a reader would run them, but at this service's address."""
    (lines,) = EXAMPLE.findall(page.read_text())
    assert ADDRESS in lines
    (folder / page.stem).mkdir()
    own = lines.replace(ADDRESS, f"http://127.0.0.1:{service.port}")
    words = [sys.executable, "-c", own]
    done = subprocess.run(words, cwd=folder / page.stem, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_an_empty_home_is_ready_within_two_minutes_and_answers(tmp_path: Path) -> None:
    service = Service(tmp_path, policy="rr")
    try:
        service.start(SECONDS)
        assert "fitting the embedded ratings, movielens-small" in service.printed
        with service.client() as client:
            catalogue = client.get("/v1/catalogue").json()
            assert catalogue["name"] == "movielens-small"
            assert len(catalogue["ids"]) > 1000
            assert "Toy Story (1995)" in catalogue["titles"]
            releases = client.get("/v1/slates").json()["releases"]
            assert [one["name"] for one in releases] == [f"counts-{epsilon:g}" for epsilon in SLATES]
            assert client.get("/").status_code == 200
            offer = offer_from(client)
            assert outcome_of(client, offer.token, offer.items[0]) == "ok"
            counts = client.get(COUNTS).json()["items"]  # in the open: public ratings, nobody's money
            assert [one["item"] for one in counts] == [offer.items[0]]
            require_problem(client.get("/metrics"), 401, "unauthorised")
        for page in PAGES:
            said = said_by_the_example(page, service, tmp_path)
            assert "(" in said[0]  # a film with its year
            assert said[-1].endswith("ok")
        assert service.stop() == 0
        service.start(30)  # the second time nothing is fitted
        assert service.printed.count("fitting the embedded ratings") == 1
    finally:
        service.kill()
