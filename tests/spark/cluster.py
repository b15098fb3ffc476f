"""A Spark cluster of processes on this machine: a master and two workers, on loopback."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

import pyspark

HOME = Path(pyspark.__path__[0])
LOOPBACK = "127.0.0.1"
PATIENCE = 300.0  # seconds for anything to start or to end
_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
BRIEF = {  # programs that run for seconds do not earn back the time for which they are compiled
    "spark.driver.extraJavaOptions": _JAVA,
    "spark.executor.extraJavaOptions": _JAVA,
    "spark.sql.codegen.wholeStage": "false",
}


@dataclass(frozen=True)
class Cluster:
    master: str
    folder: Path
    environment: Mapping[str, str]

    def submit(self, program: Path | str, *words: object, partitions: int = 4) -> subprocess.CompletedProcess[str]:
        """Runs a program with two executors of one core, each in a process of its own."""
        settings = {
            "spark.driver.bindAddress": LOOPBACK,
            "spark.driver.host": LOOPBACK,
            "spark.driver.memory": "1g",
            "spark.executor.memory": "1g",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": str(partitions),
            **BRIEF,
        }
        options = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
        command = [HOME / "bin" / "spark-submit", "--master", self.master, *options, program, *words]
        return subprocess.run(
            [str(word) for word in command],
            env={**self.environment},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    environment = {
        **os.environ,
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_LOCAL_HOSTNAME": LOOPBACK,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_DAEMON_JAVA_OPTS": _JAVA,
        "OMP_NUM_THREADS": "1",
    }
    port = _free_port()
    master = f"spark://{LOOPBACK}:{port}"
    started = []
    try:
        started.append(_start(folder, environment, "master", "--host", LOOPBACK, "--port", port, "--webui-port", 0))
        for number in (1, 2):
            own = [
                "--host",
                LOOPBACK,
                "--webui-port",
                0,
                "--cores",
                1,
                "--memory",
                "1g",
                "-d",
                folder / f"work{number}",
            ]
            started.append(_start(folder, environment, "worker", *own, master, log=f"worker{number}"))
        _wait_for(folder / "master.log", "Registering worker", 2)
        yield Cluster(master, folder, environment)
    finally:
        for process in reversed(started):
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(timeout=30)


def _start(
    folder: Path, environment: Mapping[str, str], role: str, *words: object, log: str | None = None
) -> subprocess.Popen[bytes]:
    with (folder / f"{log or role}.log").open("wb") as output:
        return subprocess.Popen(
            [
                str(HOME / "bin" / "spark-class"),
                f"org.apache.spark.deploy.{role}.{role.capitalize()}",
                *map(str, words),
            ],
            env={**environment},
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def _wait_for(log: Path, words: str, times: int) -> None:
    end = monotonic() + PATIENCE
    while log.read_text().count(words) < times:
        if monotonic() > end:
            raise TimeoutError(f"the cluster did not start: {log.read_text()[-2000:]}")
        sleep(0.5)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])
