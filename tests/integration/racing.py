"""Processes that begin at the same moment."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path


def raced(commands: Sequence[list[str]], go: Path, threads: int) -> list[object]:
    """What every thread of every process came to. Each process says that it is ready, and begins when ``go`` is there."""
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
    try:
        for process in running:
            assert process.stdout is not None
            assert process.stdout.readline() == '"ready"\n'
        go.touch()
        outputs = [process.communicate(timeout=120)[0] for process in running]
    finally:
        for process in running:
            process.kill()  # nothing, where it has ended
    assert [process.returncode for process in running] == [0] * len(running)
    results = [result for output in outputs for result in json.loads(output)]
    assert len(results) == len(running) * threads
    return results
