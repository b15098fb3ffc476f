"""A service as an operator starts it: `tacit serve` in processes of its own, with settings from the environment and a log."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

import httpx

_SAID = re.compile(r"(?:Open|is at) http://127\.0\.0\.1:([0-9]+)/")
_PREFIX = "TACIT_SERVE_"


class Service:
    """One service. Settings are named as in `tacit.service.settings`; what it prints is in ``printed``, of all its lives."""

    def __init__(self, folder: Path, *words: str, **settings: object) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.home, self.port = folder, folder / "home", 0
        self._words, self._lives = words, 0
        own = {_PREFIX + name.upper(): str(value) for name, value in settings.items()}
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_PREFIX)}
        # What a killed service could not tidy up lies in the test's own folder.
        self.environment = {**kept, "TMPDIR": str(folder), _PREFIX + "HOME": str(self.home), **own}
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None

    def begin(self) -> Self:
        """Starts it, on the port that it had before if it had one, and does not wait."""
        self._lives += 1
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tacit", "serve", "--port", str(self.port), *self._words],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        # Were the tests killed, the service would go on: this ends it then.
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", f"read _; kill -9 -{self._process.pid}"],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        return self

    def start(self, seconds: float = 60.0) -> Self:
        """Starts it and waits until it is ready."""
        self.begin()
        try:
            until(
                lambda: self.has_told_where() and self.is_ready(),
                seconds,
                lambda: f"not ready:\n{self.printed[-3000:]}",
            )
        except BaseException:
            self.kill()
            raise
        return self

    @property
    def log(self) -> Path:
        return self.folder / f"log-{self._lives}"

    @property
    def printed(self) -> str:
        """All lines of all its lives."""
        logs = [self.folder / f"log-{life}" for life in range(1, self._lives + 1)]
        return "".join(log.read_text(errors="replace") for log in logs)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def is_ready(self) -> bool:
        try:
            return httpx.get(f"{self.address}/readyz", trust_env=False, timeout=10).status_code == 200
        except httpx.TransportError:
            return False

    def client(self, **settings: object) -> httpx.Client:
        settings = {"base_url": self.address, "trust_env": False, "timeout": 30.0, **settings}
        return httpx.Client(**settings)  # type: ignore[arg-type]

    def workers(self) -> list[int]:
        """The processes that answer."""
        found = []
        for child in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split():
            try:
                command = Path(f"/proc/{child}/cmdline").read_bytes()
            except OSError:  # it has just ended
                continue
            if b"spawn_main" in command:
                found.append(int(child))
        return found

    def tell_to_stop(self) -> None:
        os.kill(self.pid, signal.SIGTERM)

    def wait(self, seconds: float = 40.0) -> int:
        """Its exit status, when it has ended by itself."""
        assert self._process is not None
        try:
            return self._process.wait(seconds)
        finally:
            self.kill()

    def stop(self) -> int:
        """Ends it as an operator does; its exit status."""
        self.tell_to_stop()
        return self.wait()

    def kill(self) -> None:
        """Ends whatever is left of it: this process started it, with all of its workers in one group."""
        if self._process is None or self._guard is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(20)
        self._guard.kill()
        self._guard.communicate()
        self._process = self._guard = None

    def has_told_where(self) -> bool:
        """Whether it has said where, which is noted then; a service that ended says nothing any more."""
        assert self._process is not None
        if self._process.poll() is not None:
            raise AssertionError(f"it ended with {self._process.returncode}:\n{self.printed[-3000:]}")
        said = _SAID.search(self.log.read_text(errors="replace"))
        if said is not None:
            self.port = int(said[1])
        return said is not None


def until(
    is_so: Callable[[], bool], seconds: float, otherwise: Callable[[], str] | str = "it did not become so"
) -> None:
    """Returns as soon as something is so; an error where it is not so in time."""
    end = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end:
            raise AssertionError(otherwise if isinstance(otherwise, str) else otherwise())
        time.sleep(0.02)
