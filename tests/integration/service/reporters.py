"""Devices that ask for offers and report what they showed, many at once, for as long as a test likes; they note what was
acknowledged, and send the same bytes again where nothing was."""

import threading
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Self

import httpx
import numpy as np

from tests.integration.service.serving import Service
from tests.integration.service.talking import IMPRESSIONS, OFFERS, impression

AGAIN = {408, 429, 500, 502, 503, 504}
PAUSE = 0.05  # seconds before the same is sent again


class Reporters:
    """``shown`` is what was reported and has its final answer; ``outcomes`` are these answers."""

    def __init__(self, service: Service, threads: int = 8) -> None:
        self.shown: Counter[str] = Counter()
        self.outcomes: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()  # answers that did not come, by why
        self.odd: list[str] = []  # a duplicate of what was sent once
        self._service, self._threads = service, threads
        self._over, self._lock = threading.Event(), threading.Lock()
        self._pool = ThreadPoolExecutor(threads)
        self._running: list[Future[None]] = []

    def __enter__(self) -> Self:
        self._running = [self._pool.submit(self._go_on, number) for number in range(self._threads)]
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._pool.shutdown(wait=True)

    def stop(self) -> None:
        """Lets everybody finish what she has begun; raises what went wrong."""
        self._over.set()
        for one in self._running:
            one.result(60)

    @property
    def done(self) -> int:
        return sum(self.outcomes.values())

    def _go_on(self, number: int) -> None:
        rng = np.random.default_rng(number)
        with self._service.client(timeout=20.0) as client:
            while not self._over.is_set():
                offer, _ = self._sent(client, OFFERS, {"version": 1, "context": "", "consent": 1})
                candidates = offer["candidates"]
                item = candidates[int(rng.integers(len(candidates)))]["item"]
                answer, tries = self._sent(client, IMPRESSIONS, impression(offer["token"], item))
                with self._lock:
                    self.shown[item] += 1
                    self.outcomes[answer["outcome"]] += 1
                    if answer["outcome"] != "ok" and tries == 1:
                        self.odd.append(answer["outcome"])

    def _sent(self, client: httpx.Client, path: str, content: dict[str, object]) -> tuple[dict[str, object], int]:
        """The final answer, and how often it was asked for: the same bytes each time."""
        body, tries = httpx.Request("POST", "http://here/", json=content).content, 0
        while True:
            tries += 1
            try:
                answer = client.post(path, content=body, headers={"Content-Type": "application/json"})
            except httpx.TransportError as problem:
                self._failed(type(problem).__name__)
                continue
            if answer.status_code not in AGAIN:
                assert answer.status_code == 200, answer.text
                return answer.json(), tries
            self._failed(str(answer.status_code))

    def _failed(self, why: str) -> None:
        with self._lock:
            self.failures[why] += 1
        threading.Event().wait(PAUSE)
