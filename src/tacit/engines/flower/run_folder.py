"""A run in the coordinator's folder, as the stages that are carried. What is accepted is on the disk: a new start goes on there."""

from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from math import inf
from pathlib import Path

from tacit.engines.coordinator import CoordinatorFolder
from tacit.engines.files import ENDING, write
from tacit.server.federation import Status, Verdict


class RunFolder:
    """``CoordinatorFolder`` with the replies of one stage judged as they come."""

    def __init__(self, folder: str | Path, key: bytes) -> None:
        self._folder, self._key = CoordinatorFolder(folder), key
        self._run, _ = self._folder.step(key)

    @property
    def needed(self) -> int:
        """So many contributors the manifest asks for."""
        return self._run.manifest.needed

    @property
    def stage(self) -> str:
        return self._run.stage

    @property
    def done(self) -> bool:
        return self._run.done

    @property
    def expected(self) -> tuple[str, ...]:
        return self._run.expected

    def outgoing(self) -> Mapping[str, bytes]:
        """Messages to those who have not replied yet; everybody gets the model."""
        replied = set(self._run.replied)
        return {name: message for name, message in self._run.outgoing().items() if name not in replied}

    def accept(self, reply: bytes) -> Verdict:
        verdict = self._run.accept(reply)
        if verdict.status is Status.ACCEPTED:
            write(self._folder.folder / "inbox" / f"{sha256(reply).hexdigest()}{ENDING}", reply)
        return verdict

    def advance(self) -> None:
        """Raises TooFewEntities, and then nothing was closed."""
        self._run, _ = self._folder.step(self._key, close=True)

    def seconds_left(self) -> float:
        deadline = self._run.manifest.deadline
        if deadline is None:
            return inf
        return max(0.0, (datetime.fromisoformat(deadline) - datetime.now(UTC)).total_seconds())
