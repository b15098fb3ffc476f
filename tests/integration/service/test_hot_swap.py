"""A new version while requests come in: nobody is refused, nobody gets a mixture, and a damaged version is left where it is."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import httpx
import pytest

from tests.integration.service.conftest import Published, Serve
from tests.integration.service.serving import Service, until
from tests.integration.service.talking import BINARY, MULTI_SELECTION, request_of

SWAP = 0.3  # seconds between two looks
FILES = ("store.tacit", "tables.safetensors", "counts-1", "manifest.json")


@pytest.fixture
def models(published: Published, tmp_path: Path) -> Path:
    """A copy that may be changed."""
    return Path(shutil.copytree(published.models, tmp_path / "models"))


def tacit_models(models: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tacit", "models", *words, "--models", str(models)]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


def tamper(file: Path) -> Callable[[], None]:
    """Changes one bit, and returns what changes it back."""
    whole = file.read_bytes()
    place = len(whole) * 2 // 3
    file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
    return lambda: file.write_bytes(whole) and None


def version_of(client: httpx.Client) -> str:
    answer = client.get("/v1/model")
    assert answer.status_code == 200, answer.text
    return str(answer.json()["version"])


def lines_about(service: Service, words: str) -> int:
    return sum(words in line for line in service.printed.splitlines())


def test_a_version_is_taken_up_by_all_workers_and_no_request_fails(
    serve: Serve, models: Path, published: Published
) -> None:
    service = serve(models=models, workers=2, swap_seconds=SWAP).start()
    over = threading.Event()
    content = request_of(9).to_bytes()

    def ask(number: int) -> list[bytes]:
        """All answers in their order, over a connection that is kept: of one worker."""
        found = []
        with service.client() as client:
            while not over.is_set():
                if number % 2:
                    answer = client.post(MULTI_SELECTION, content=content, headers={"Content-Type": BINARY})
                else:
                    answer = client.get("/v1/model")
                assert answer.status_code == 200, answer.text
                found.append(answer.content)
        return found

    with ThreadPoolExecutor(8) as threads:
        asking = [threads.submit(ask, number) for number in range(8)]
        try:
            time.sleep(1)
            used = tacit_models(models, "use", published.second)
            assert (used.returncode, used.stdout) == (0, f"{published.second} is served now.\n")
            until(lambda: lines_about(service, f'"version":"{published.second}"') == 2, 15, "a worker stays behind")
            time.sleep(1)
        finally:
            over.set()
        answers = [one.result(30) for one in asking]
    for one in answers:
        changes = sum(before != after for before, after in pairwise(one))
        assert changes == 1, "more or less than one change"  # first the old one, then the new one, and never back
        assert len(one) > 20
    for kind in (0, 1):
        assert len({one[0] for one in answers[kind::2]}) == len({one[-1] for one in answers[kind::2]}) == 1
    assert lines_about(service, '"level":"error"') == 0
    with service.client() as client:
        assert version_of(client) == published.second
        assert client.get("/v1/catalogue").json()["model"] == published.store(published.second).version
        more = tacit_models(models, "add", "more", str(models / published.first / "counts-1"))
        assert more.returncode == 0, more.stderr
        until(lambda: len(client.get("/v1/releases").json()["releases"]) == 3, 10, "the release did not come")


def test_a_damaged_version_is_refused_and_the_old_one_is_served_on(
    serve: Serve, models: Path, published: Published
) -> None:
    service = serve(models=models, swap_seconds=SWAP).start()
    content, current = request_of(9).to_bytes(), models / "current"

    def slate() -> bytes:
        answer = client.post(MULTI_SELECTION, content=content, headers={"Content-Type": BINARY})
        assert answer.status_code == 200, answer.text
        return answer.content

    with service.client() as client:
        before = slate()
        for number, name in enumerate(FILES, 1):
            mend = tamper(models / published.second / name)
            refused = tacit_models(models, "use", published.second)
            assert refused.returncode == 1
            assert refused.stderr.count("\n") == 1
            assert current.read_text().strip() == published.first
            current.write_text(published.second)  # by hand, past all checks
            until(lambda number=number: lines_about(service, "could not be loaded") == number, 15, name)  # type: ignore[misc]
            assert version_of(client) == published.first
            assert slate() == before
            mend()
            current.write_text(published.first)
            time.sleep(3 * SWAP)  # it has been seen: what comes next is looked at afresh
        current.write_text("../" + published.second)
        time.sleep(3 * SWAP)
        current.unlink()
        time.sleep(3 * SWAP)
        assert version_of(client) == published.first
        assert client.get("/readyz").status_code == 200
        assert tacit_models(models, "use", published.second).returncode == 0
        until(lambda: version_of(client) == published.second, 10, "a whole version is not taken up after damaged ones")
        assert slate() != before


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_version_at_the_start_is_one_line_and_no_status_0(
    serve: Serve, models: Path, published: Published, name: str
) -> None:
    tamper(models / published.first / name)
    service = serve(models=models).begin()
    assert service.wait(60) == 1
    assert service.printed.startswith("tacit: invalid-model: ")
    assert service.printed.count("\n") == 1


def test_a_worker_that_dies_while_what_is_published_is_damaged_is_replaced_and_the_others_answer(
    serve: Serve, models: Path, published: Published
) -> None:
    service = serve(models=models, workers=2, swap_seconds=SWAP).start()
    until(lambda: lines_about(service, f'"version":"{published.first}"') == 2, 15, "a worker is not ready")
    tamper(models / published.second / "store.tacit")
    (models / "current").write_text(published.second)
    until(lambda: lines_about(service, "could not be loaded") == 2, 15, "it was not looked at")
    killed = service.workers()[0]
    os.kill(killed, signal.SIGKILL)
    until(
        lambda: lines_about(service, "the one served before keeps answering") == 1,
        60,
        lambda: f"nobody took its place:\n{service.printed[-4000:]}",
    )
    until(lambda: len(service.workers()) == 2 and killed not in service.workers(), 20)
    for _ in range(8):  # by either of them
        with service.client() as client:
            assert version_of(client) == published.first
    shutil.rmtree(models)  # now none can start
    os.kill(service.workers()[0], signal.SIGKILL)
    until(lambda: "a worker could not start" in service.printed, 60, lambda: service.printed[-4000:])
    with service.client() as client:
        assert version_of(client) == published.first
    assert service.stop() == 0


def test_a_reload_replaces_every_worker_and_drops_no_request(serve: Serve, models: Path, published: Published) -> None:
    service = serve(models=models, workers=2).start()
    until(lambda: lines_about(service, f'"version":"{published.first}"') == 2, 15, "a worker is not ready")
    before = set(service.workers())
    os.kill(service.pid, signal.SIGHUP)
    end = time.monotonic() + 60
    while set(service.workers()) & before or len(service.workers()) != 2:
        assert time.monotonic() < end, service.printed[-2000:]
        with service.client() as client:
            assert version_of(client) == published.first
    assert service.stop() == 0


def test_files_that_are_gone_while_a_version_is_served_do_not_stop_it(
    serve: Serve, models: Path, published: Published
) -> None:
    """Tables are mapped, and the store is in memory: an operator who tidies up too much loses releases, not slates."""
    service = serve(models=models, swap_seconds=SWAP).start()
    shutil.rmtree(models / published.first)
    with service.client() as client:
        time.sleep(3 * SWAP)
        answer = client.post(MULTI_SELECTION, content=request_of(9).to_bytes(), headers={"Content-Type": BINARY})
        assert answer.status_code == 200
        assert client.get("/v1/slates/counts-1").status_code == 200
        gone = client.get("/v1/releases/counts-1")
        assert (gone.status_code, gone.json()["code"]) == (500, "internal-error")
        assert str(models) not in gone.text
