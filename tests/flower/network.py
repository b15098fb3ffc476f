"""Flower's programs as processes on loopback, in a folder of their own: started, watched for a bounded time, and all ended."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BIN = Path(sys.executable).parent
_KEPT = ("LANG", "LC_ALL", "TZ")


class Network:
    """One SuperLink and any number of other processes that know only this folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "flower"
        self.port = free_port()
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._connections: dict[str, dict[str, object]] = {}
        self.home.mkdir(parents=True)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def environment(self, **more: str) -> dict[str, str]:
        """Nothing of this process's own environment but how to speak: no telemetry, no look for updates, no installing."""
        return {
            **{name: os.environ[name] for name in _KEPT if name in os.environ},
            "PATH": f"{BIN}:{os.environ.get('PATH', '')}",
            "HOME": str(self.folder),
            "TMPDIR": str(self.folder),
            "RAY_TMPDIR": str(self.folder),
            "FLWR_HOME": str(self.home),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # Ray stays on loopback
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            **more,
        }

    def start(self, name: str, *command: object, **more: str) -> subprocess.Popen[bytes]:
        """A process of its own group, whose output goes to a file."""
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [str(BIN / str(command[0])), *map(str, command[1:])],
                cwd=self.folder,
                env=self.environment(**more),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.processes[name] = process
        return process

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def superlink(self, *options: object) -> None:
        command = ("flower-superlink", "--host", "127.0.0.1", "--port", self.port)
        self.start("superlink", *command, "--disable-runtime-dependency-installation", *options)
        self.until("the SuperLink listens", self._listens, 60)

    def supernode(self, name: str, *options: object, config: str = "", superlink: str = "", **more: str) -> None:
        """Each needs a port of its own, on which its ClientApp speaks to it."""
        command = ("flower-supernode", "--superlink", superlink or self.address, "--host", "127.0.0.1")
        port = ("--port", free_port(), "--max-retries", 1)
        self.start(name, *command, *port, *options, *(("--node-config", config) if config else ()), **more)

    def connection(self, name: str, **settings: object) -> None:
        """What ``flwr`` on the coordinator's side reads: it is no longer in an app's own file."""
        self._connections[name] = {"address": self.address, **settings}
        lines = ["[superlink]"]
        for each, found in self._connections.items():
            lines += [f"[superlink.{each}]", *(f"{key} = {json.dumps(value)}" for key, value in found.items())]
        (self.home / "config.toml").write_text("\n".join(lines) + "\n")

    def flwr(self, *arguments: object, seconds: float = 90) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [str(BIN / "flwr"), *map(str, arguments)],
            cwd=self.folder,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    def run(self, app: Path, connection: str, *options: object, **config: object) -> str:
        """Starts a run and gives its id."""
        settings = " ".join(f"{name.replace('_', '-')}={json.dumps(value)}" for name, value in config.items())
        done = self.flwr("run", app, connection, "--run-config", settings, "--format", "json", *options)
        assert done.returncode == 0, done.stdout + done.stderr
        return str(json.loads(done.stdout[done.stdout.index("{") :])["run-id"])

    def finished(self, run: str, connection: str, seconds: float) -> str:
        """The status in which a run ended, such as ``finished:completed``."""
        ended = f"Finished task {self._task(run)} of run {run}"
        self.until(f"run {run} ends", lambda: ended in self.log("superlink"), seconds)
        listed = self.flwr("ls", connection, "--run-id", run, "--format", "json")
        return str(json.loads(listed.stdout[listed.stdout.index("{") :])["runs"][0]["status"])

    def _task(self, run: str) -> str:
        """The SuperLink tells in its log which task is the run's ServerApp."""
        started = re.compile(rf"Started task (\d+) of run {run}")
        self.until(f"run {run} starts", lambda: started.search(self.log("superlink")) is not None, 60)
        return started.findall(self.log("superlink"))[0]

    def until(self, what: str, holds: object, seconds: float) -> None:
        end = time.monotonic() + seconds
        while not holds():  # type: ignore[operator]
            assert time.monotonic() < end, f"{what}: not within {seconds} seconds\n{self.tails()}"
            time.sleep(0.2)

    def tails(self) -> str:
        return "\n".join(
            f"--- {path.name}\n{path.read_text(errors='replace')[-3000:]}" for path in self.folder.glob("*.log")
        )

    def end(self, name: str) -> None:
        """Ends one process and its group at once, as a machine that is switched off."""
        process = self.processes.pop(name)
        _kill_group(process.pid)
        process.wait(timeout=20)

    def close(self) -> None:
        """Asks all to stop, then ends what is left, also what has left its group: it still has this folder in its environment."""
        for process in self.processes.values():
            process.terminate()
        end = time.monotonic() + 8
        for process in self.processes.values():
            try:
                process.wait(timeout=max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                continue
        for process in self.processes.values():
            _kill_group(process.pid)
            process.wait(timeout=20)
        for _ in range(3):
            for pid in self._left():
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.1)

    def _left(self) -> list[int]:
        mark = f"FLWR_HOME={self.home}".encode()
        found = []
        for entry in Path("/proc").glob("[0-9]*/environ"):
            try:
                if mark in entry.read_bytes().split(b"\0"):
                    found.append(int(entry.parent.name))
            except OSError:
                continue  # it has ended, or is not ours
        return [pid for pid in found if pid != os.getpid()]

    def _listens(self) -> bool:
        assert self.processes["superlink"].poll() is None, self.log("superlink")
        with socket.socket() as probe:
            probe.settimeout(1)
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


@contextmanager
def network() -> Iterator[Network]:
    """In a short path: Ray's sockets have no room for a long one."""
    folder = Path(tempfile.mkdtemp(prefix="tacit-fl-", dir="/tmp"))
    made = Network(folder)
    try:
        yield made
    finally:
        made.close()
        shutil.rmtree(folder, ignore_errors=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
