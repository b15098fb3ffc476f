"""A peer in an environment of its own: a process that answers every line of standard input with its own seconds."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any, ClassVar, Self


class Peer:
    """``script`` runs there, beside this file; ``make bench`` sets the environment up and names it in TACIT_PEERS."""

    script: ClassVar[str]

    def __enter__(self) -> Self:
        python = os.environ.get("TACIT_PEERS")
        if python is None:
            raise SystemExit("the peers' environment is missing: say `make bench`, which sets it up.")
        script = Path(__file__).with_name(self.script)
        self._process = subprocess.Popen(
            [python, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stdin.close()  # type: ignore[union-attr]
        self._process.wait(timeout=30)

    def seconds(self, ask: dict[str, Any]) -> float:
        """What the peer took for one unit of what was asked."""
        return float(self.answer(ask))

    def answer(self, ask: dict[str, Any]) -> Any:
        """What the peer says to one line: a number, or an object of several."""
        self._process.stdin.write(json.dumps(ask) + "\n")  # type: ignore[union-attr]
        self._process.stdin.flush()  # type: ignore[union-attr]
        return json.loads(self._process.stdout.readline())  # type: ignore[union-attr]
