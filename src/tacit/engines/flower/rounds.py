"""The stages of a federation over any link: ask every entity, take what comes, close the stage. Nothing here knows Flower.

Nodes are numbers that the link gives; entities are names in the roster. A node says whose messages it wants. That is a route
and no proof: whoever claims a name is sent its messages too, and what counts is the signature on the reply.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from logging import getLogger
from math import inf
from time import monotonic, sleep
from typing import Protocol

from tacit.checks import keep, positive
from tacit.engines.flower.answers import NAME, Answer, Status
from tacit.server.federation import Verdict

_LOG = getLogger(__name__)
_TRIES = 3  # of a node that fails, in one stage


class Link(Protocol):
    """What carries messages to nodes and back."""

    def nodes(self) -> Collection[int]:
        """Those that are connected now; more may come."""

    def send(self, kind: str, messages: Mapping[int, bytes], seconds: float) -> None:
        """Sends each node its message, which is of no use after so many seconds."""

    def answers(self) -> Iterable[Answer]:
        """What has come since the last look, in any order, each once."""


class Stages(Protocol):
    """What a federation has to be able to do here: the coordinator's folder can."""

    @property
    def stage(self) -> str: ...
    @property
    def done(self) -> bool: ...
    @property
    def expected(self) -> Collection[str]: ...
    def outgoing(self) -> Mapping[str, bytes]: ...
    def accept(self, reply: bytes) -> Verdict: ...
    def advance(self) -> object: ...
    def seconds_left(self) -> float:
        """Until the run's deadline; 0 when it is past, and no end where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Seconds. They are public constants: no stage is longer or shorter for what an entity holds."""

    start: float = 600.0  # for the nodes of the needed entities to come
    stage: float = 3600.0  # for the replies of a stage; then it is closed with those that are there
    pause: float = 0.5  # between two looks
    again: float = 5.0  # before a node that failed is asked once more

    def __post_init__(self) -> None:
        keep(self, **{name: positive(name, getattr(self, name)) for name in ("start", "stage", "pause", "again")})


class Carrier:
    """Carries all stages to the end. Who is not there, or fails, is missing in a stage; whether the run can bear it, it says."""

    def __init__(self, stages: Stages, link: Link, patience: Patience, clock: Callable[[], float] = monotonic) -> None:
        self._stages, self._link, self._patience, self._clock = stages, link, patience, clock
        self._names: dict[int, str] = {}
        self._greeted: dict[int, float] = {}  # nodes that were asked for their names, and when they may be asked again

    def run(self, needed: int) -> None:
        """``needed`` entities have to be there before the first stage is opened, or the time to wait for them be over."""
        end = self._clock() + self._patience.start
        while self._present() < needed and self._clock() < end:
            self._look()
            sleep(self._patience.pause)
        while not self._stages.done:
            self._one_stage()
            self._stages.advance()
        self._one_stage()  # the model, to all

    def _one_stage(self) -> None:
        stage, missing = self._stages.stage, dict(self._stages.outgoing())
        most = self._patience.stage if self._stages.done else min(self._patience.stage, self._stages.seconds_left())
        end = self._clock() + most
        failures: Counter[int] = Counter()
        kept: set[int] = set()
        busy: dict[int, float] = {}  # nodes that are not to be asked before this moment
        while (now := self._clock()) < end and self._hope(missing, failures):
            online = self._link.nodes()
            ready = {
                node: missing[name]
                for node, name in self._names.items()
                if name in missing and node in online and failures[node] < _TRIES and busy.get(node, now) <= now
            }
            if ready:
                self._link.send(stage, ready, end - now)
                busy |= dict.fromkeys(ready, end)
            for answer in self._look(stage):
                name = self._names[answer.node]
                busy[answer.node] = now
                if answer.status is Status.REPLY and (entity := self._sender(answer.content)) is not None:
                    missing.pop(entity, None)
                elif answer.status is Status.KEPT and name not in self._stages.expected:
                    kept.add(answer.node)
                    busy[answer.node] = end
                    if kept.issuperset(
                        node for node, claimed in self._names.items() if claimed == name
                    ):  # one claimant must not cut short another
                        missing.pop(name, None)
                elif answer.status is not Status.WAITING:
                    failures[answer.node] += 1
                    busy[answer.node] = now + self._patience.again
            if missing:
                sleep(self._patience.pause)
        _LOG.info("stage %s is closed: %d entities did not answer", stage, len(missing))

    def _sender(self, reply: bytes) -> str | None:
        """Whose reply this is, if it counts in this stage, now or since before. Only its signature says so."""
        verdict = self._stages.accept(reply)
        return verdict.entity if verdict and verdict.stage == self._stages.stage else None

    def _look(self, stage: str = NAME) -> list[Answer]:
        """The answers of this stage that have come. Nodes that are new are asked for their names; late answers are dropped."""
        now = self._clock()
        new = [node for node in sorted(self._link.nodes()) if self._greeted.get(node, now) <= now]
        if new:
            self._greeted |= dict.fromkeys(new, inf)
            self._link.send(NAME, dict.fromkeys(new, b""), self._patience.stage)
        found = []
        for answer in self._link.answers():
            if answer.kind == NAME and answer.status is Status.REPLY:
                self._names[answer.node] = answer.content.decode(errors="replace")
            elif answer.kind == NAME:
                self._greeted[answer.node] = now + self._patience.again
            elif answer.kind == stage:
                found.append(answer)
        return found

    def _present(self) -> int:
        return len(set(self._names.values()) & set(self._stages.outgoing()))

    def _hope(self, missing: Collection[str], failures: Mapping[int, int]) -> bool:
        """Whether an entity may yet answer. Not one all of whose nodes have failed too often; and for the model, which every later
        start of the same run hands out again, not one without a node that is connected."""
        online, done = self._link.nodes(), self._stages.done
        for name in missing:
            nodes = self._nodes_of(name)
            able = [node for node in nodes if failures.get(node, 0) < _TRIES]
            if any(node in online for node in able) if done else able or not nodes:
                return True
        return bool(missing) and done and not set(online) <= set(self._names)

    def _nodes_of(self, name: str) -> list[int]:
        return [node for node, claimed in self._names.items() if claimed == name]
