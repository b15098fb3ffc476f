"""The stages of a federation over any link: ask every entity, take the replies, close the stage. This module needs no
Flower.

A link numbers its nodes; the roster names the entities. A node claims the name of an entity, without proof: every node that
claims a name gets the messages for that name, and only the signature on a reply counts.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from logging import getLogger
from math import inf
from pathlib import Path
from time import monotonic, sleep
from typing import Protocol

from tacit.checks import keep, positive
from tacit.engines.coordinator import CoordinatorFolder
from tacit.engines.flower import NAME, Answer, Status
from tacit.engines.folders import ENDING
from tacit.files import replace
from tacit.server.federated_prototypes import ReplyStatus, Verdict

_LOG = getLogger(__name__)
_TRIES = 3  # of a node that fails, in one stage


class Link(Protocol):
    """Carries messages to nodes and answers back."""

    def nodes(self) -> Collection[int]:
        """The nodes that are connected now; more may come."""

    def send(self, kind: str, messages: Mapping[int, bytes], seconds: float) -> None:
        """Sends each node its message, which expires after this many seconds."""

    def answers(self) -> Iterable[Answer]:
        """The answers that have arrived since the last call, in any order, each once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Waiting times in seconds. They are public constants: no stage gets longer or shorter because of an entity's
    data."""

    start: float = 600.0  # until the nodes of the needed entities have connected
    stage: float = 3600.0  # until a stage is closed with the replies it has
    pause: float = 0.5  # between two polls
    again: float = 5.0  # before a node that failed is asked again

    def __post_init__(self) -> None:
        keep(self, **{name: positive(name, getattr(self, name)) for name in ("start", "stage", "pause", "again")})


class Carrier:
    """Carries all stages to the end.

    An entity that is absent or fails is missing from a stage; the run decides whether it can go on without it.
    """

    def __init__(
        self, stages: "RunFolder", link: Link, patience: Patience, clock: Callable[[], float] = monotonic
    ) -> None:
        self._stages, self._link, self._patience, self._clock = stages, link, patience, clock
        self._names: dict[int, str] = {}
        self._greeted: dict[int, float] = {}  # nodes that were asked for their names, and when they may be asked again

    def run(self, needed: int) -> None:
        """Waits for ``needed`` entities to connect, for a limited time, then carries all stages and the model."""
        end = self._clock() + self._patience.start
        while len(set(self._names.values()) & set(self._stages.outgoing())) < needed and self._clock() < end:
            self._poll()
            sleep(self._patience.pause)
        while not self._stages.done:
            self._carry_stage()
            self._stages.advance()
        self._carry_stage()  # sends the model to all

    def _carry_stage(self) -> None:
        stage, missing = self._stages.stage, dict(self._stages.outgoing())
        most = self._patience.stage if self._stages.done else min(self._patience.stage, self._stages.seconds_left())
        end = self._clock() + most
        failures: Counter[int] = Counter()
        kept: set[int] = set()
        busy: dict[int, float] = {}  # when a node may be asked again
        while (now := self._clock()) < end and self._may_answer(missing, failures):
            online = self._link.nodes()
            ready = {
                node: missing[name]
                for node, name in self._names.items()
                if name in missing and node in online and failures[node] < _TRIES and busy.get(node, now) <= now
            }
            if ready:
                self._link.send(stage, ready, end - now)
                busy |= dict.fromkeys(ready, end)
            for answer in self._poll(stage):
                name = self._names[answer.node]
                busy[answer.node] = now
                if answer.status is Status.REPLY and (entity := self._sender(answer.content)) is not None:
                    missing.pop(entity, None)
                elif answer.status is Status.KEPT and name not in self._stages.expected:
                    kept.add(answer.node)
                    busy[answer.node] = end
                    if kept.issuperset(self._nodes_of(name)):  # one claimant must not cut another short
                        missing.pop(name, None)
                elif answer.status is not Status.WAITING:
                    failures[answer.node] += 1
                    busy[answer.node] = now + self._patience.again
            if missing:
                sleep(self._patience.pause)
        _LOG.info("stage %s is closed: %d entities did not answer", stage, len(missing))

    def _sender(self, reply: bytes) -> str | None:
        """The entity that signed a reply, if the reply counts in this stage (it may have arrived before)."""
        verdict = self._stages.accept(reply)
        return verdict.entity if verdict and verdict.stage == self._stages.stage else None

    def _poll(self, stage: str = NAME) -> list[Answer]:
        """The answers of this stage that have arrived. Asks new nodes for their names; drops late answers."""
        now = self._clock()
        new = [node for node in sorted(self._link.nodes()) if self._greeted.get(node, now) <= now]
        if new:
            self._greeted |= dict.fromkeys(new, inf)
            self._link.send(NAME, dict.fromkeys(new, b""), self._patience.stage)
        arrived = []
        for answer in self._link.answers():
            if answer.kind == NAME and answer.status is Status.REPLY:
                self._names[answer.node] = answer.content.decode(errors="replace")
            elif answer.kind == NAME:
                self._greeted[answer.node] = now + self._patience.again
            elif answer.kind == stage:
                arrived.append(answer)
        return arrived

    def _may_answer(self, missing: Collection[str], failures: Mapping[int, int]) -> bool:
        """Whether any of the missing entities may still answer.

        An entity whose nodes have all failed too often cannot. For the model an entity also needs a connected node: a later
        start of the same run sends the model again.
        """
        online, done = self._link.nodes(), self._stages.done
        for name in missing:
            nodes = self._nodes_of(name)
            working = [node for node in nodes if failures.get(node, 0) < _TRIES]
            if any(node in online for node in working) if done else working or not nodes:
                return True
        return bool(missing) and done and not set(online) <= set(self._names)

    def _nodes_of(self, name: str) -> list[int]:
        return [node for node, claimed in self._names.items() if claimed == name]


class RunFolder:
    """A run in the coordinator's folder. Accepted replies are on the disk, so a new start continues the run."""

    def __init__(self, folder: str | Path, key: bytes) -> None:
        self._folder, self._key = CoordinatorFolder(folder), key
        self._run, _ = self._folder.step(key)

    @property
    def needed(self) -> int:
        """The number of contributors that the manifest asks for."""
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
        """Messages to the entities that have not replied yet. All entities get the model."""
        replied = set(self._run.replied)
        return {name: message for name, message in self._run.outgoing().items() if name not in replied}

    def accept(self, reply: bytes) -> Verdict:
        verdict = self._run.accept(reply)
        if verdict.status is ReplyStatus.ACCEPTED:
            name = f"{sha256(reply).hexdigest()}{ENDING}"
            replace(self._folder.folder / "inbox" / name, reply, parents=True)
        return verdict

    def advance(self) -> None:
        """Closes the stage. Raises TooFewEntities if too few have replied; the stage then stays open."""
        self._run, _ = self._folder.step(self._key, close=True)

    def seconds_left(self) -> float:
        """Seconds until the run's deadline: 0 when it has passed, infinite if there is none."""
        deadline = self._run.manifest.deadline
        if deadline is None:
            return inf
        return max(0.0, (datetime.fromisoformat(deadline) - datetime.now(UTC)).total_seconds())
