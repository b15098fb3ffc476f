"""The coordinator of a federation over plain files. Its folder is its only memory: each call rebuilds the run from it.

    folder/manifest.fp                   the message that opened the run
    folder/inbox/*.fp                    replies, put here by any means, under any name
    folder/outbox/<entity>/NN-stage.fp   messages to carry to each entity
    folder/stages/<stage>/<entity>.fp    accepted replies; `closed` lists the entities whose replies count
    folder/rejected/                     rejected replies, each with its code

The coordinator closes a stage on the disk before it sends anything that follows from it. So two processes, or one that was
killed and started again, always agree.
"""

import contextlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tacit.engines.folders import ENDING, bounded, messages_in, read_message
from tacit.errors import Conflict, InvalidData, InvalidMessage, InvalidParameter
from tacit.files import replace, write_once
from tacit.messages.federated_prototypes.frame import open_frame
from tacit.messages.federated_prototypes.manifest import Manifest
from tacit.messages.federated_prototypes.replies import Code
from tacit.server.federated_prototypes import GIVEN_UP, MODEL, Federation, ReplyStatus

_MANIFEST = f"manifest{ENDING}"
_LAST = 99  # the number of the model among an entity's messages
_FORMAT = "%Y-%m-%dT%H:%M:%SZ"


@dataclass
class StepReport:
    """The result of one step: accepted replies, rejected replies with their codes, and closed stages."""

    accepted: list[str] = field(default_factory=list)
    rejected: dict[str, str] = field(default_factory=dict)
    closed: list[str] = field(default_factory=list)


class CoordinatorFolder:
    """One run in one folder."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    @classmethod
    def open(cls, folder: str | os.PathLike[str], manifest: Manifest, key: bytes) -> "CoordinatorFolder":
        """Begins a run. Raises Conflict if the folder holds another run."""
        coordinator = cls(folder)
        run = Federation(manifest, key)
        signed = manifest.signed(key)
        if write_once(coordinator.folder / _MANIFEST, signed, parents=True) != signed:
            raise Conflict("this folder holds another run. Name a new folder.")
        (coordinator.folder / "inbox").mkdir(exist_ok=True)
        coordinator._send(run)
        return coordinator

    @property
    def manifest(self) -> Manifest:
        """The run's manifest, signed by the coordinator that it names."""
        try:
            frame = open_frame(read_message(self.folder / _MANIFEST))
            return Manifest.from_frame(frame, bytes.fromhex(str(frame.header.get("coordinator"))))
        except (InvalidMessage, InvalidParameter, ValueError):
            raise InvalidData(f"there is no run in {self.folder}: `tacit federate open` begins one.") from None

    def rebuild(self, key: bytes) -> Federation:
        """Rebuilds the run from its stored replies."""
        run = Federation(self.manifest, key)
        while not run.done:
            stage = run.stage
            closed = self._closed(stage)
            for name in run.expected if closed is None else closed:
                file = self._stored(stage, name)
                if file.exists() and run.accept(read_message(file)).status is ReplyStatus.REJECTED:
                    raise InvalidData(
                        f"the stored reply of {name} in the stage '{stage}' is damaged. Restore a backup."
                    )
            if closed is None:
                break
            if run.replied != tuple(closed):
                raise InvalidData(f"stored replies of the stage '{stage}' are missing. Restore a backup.")
            run.advance()
        if not run.done and (self.folder / "given-up").exists():
            run.give_up()
        return run

    def step(
        self, key: bytes, *, close: bool = False, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> tuple[Federation, StepReport]:
        """Takes the replies in the inbox, closes the stages that can be closed, and writes the messages to send.

        A stage closes when all have replied, or when enough have and the deadline has passed. ``close`` closes the
        present stage now, and raises TooFewEntities if too few have replied.
        """
        report = StepReport()
        run = self.rebuild(key)
        while True:
            if not self._take(run, report):  # another process was faster
                run = self.rebuild(key)
            deadline = run.manifest.deadline
            is_late = deadline is not None and now() >= datetime.strptime(deadline, _FORMAT).replace(tzinfo=UTC)
            is_enough = len(run.replied) >= run.manifest.needed
            if run.done or not (not run.missing or close or (is_enough and is_late)):
                break
            stage, replied = run.stage, list(run.replied)
            run.advance()  # raises if too few have replied; then the stage stays open
            write_once(self._folder(stage) / "closed", json.dumps(replied).encode(), parents=True)
            if self._closed(stage) != replied:
                run = self.rebuild(key)
            report.closed.append(stage)
            close = False
        self._send(run)
        return run, report

    def give_up(self, key: bytes) -> Federation:
        """Ends a run that cannot go on."""
        run = self.rebuild(key)
        if not run.done:
            write_once(self.folder / "given-up", b"\n")
            run.give_up()
            self._send(run)
        return run

    def status(self) -> dict[str, Any]:
        """The state of the run, from the folder alone. It needs no key."""
        manifest = self.manifest
        stages: list[dict[str, Any]] = []
        stage = manifest.stages[0]
        for stage in manifest.stages:
            closed = self._closed(stage)
            replied = sorted(file.stem for file in messages_in(self._folder(stage)))
            stages.append(
                {"stage": stage, "replied": replied if closed is None else closed, "closed": closed is not None}
            )
            if closed is None:
                break
        model = self.folder / f"model{ENDING}"
        header = open_frame(read_message(model)).header if model.exists() else None
        if header is not None:
            stage = MODEL
        elif (self.folder / "given-up").exists():
            stage = GIVEN_UP
        return {
            "run": manifest.run,
            "title": manifest.title,
            "mechanism": manifest.mechanism.value,
            "stage": stage,
            "stages": stages,
            "contributors": [member.name for member in manifest.contributors],
            "receivers": [member.name for member in manifest.roster if not member.contributes],
            "guarantee": manifest.guarantee.to_json(),
            "warnings": list(manifest.warnings()),
            "model": None if header is None else {"hash": header["model"], "informed": header["informed"]},
        }

    def _take(self, run: Federation, report: StepReport) -> bool:
        """Takes the replies in the inbox. Returns False if another process has stored other replies."""
        agrees = True
        for file in messages_in(self.folder / "inbox"):
            try:
                data = read_message(file)
            except InvalidMessage:
                self._reject(file, Code.MALFORMED.value, report)
                continue
            if not data:  # the entity had nothing to send
                file.unlink(missing_ok=True)
                continue
            verdict = run.accept(data)
            if verdict.status is ReplyStatus.REJECTED:
                if verdict.code is not Code.EARLY:
                    self._reject(file, str(verdict.code), report)
                continue
            if verdict.status is ReplyStatus.ACCEPTED:
                stored = self._stored(str(verdict.stage), str(verdict.entity))
                agrees &= write_once(stored, data, parents=True) == data
                report.accepted.append(f"{verdict.entity} {verdict.stage}")
            file.unlink(missing_ok=True)
        return agrees

    def _reject(self, file: Path, code: str, report: StepReport) -> None:
        target = self.folder / "rejected" / f"{bounded(file.stem)}.{code}{ENDING}"
        target.parent.mkdir(exist_ok=True)
        with contextlib.suppress(OSError):  # a file that cannot be moved stays, and must not stop the others
            file.replace(target)
        report.rejected[file.name.encode(errors="backslashreplace").decode()] = code

    def _send(self, run: Federation) -> None:
        order = run.manifest.stages
        number = _LAST if run.done else order.index(run.stage)
        for entity, message in run.outgoing().items():
            name = "manifest" if number == 0 else run.stage
            file = self.folder / "outbox" / entity / f"{entity}-{run.manifest.run[:8]}-{number:02}-{name}{ENDING}"
            if not file.exists() or file.read_bytes() != message:
                replace(file, message, parents=True)
            if run.model is not None:
                replace(self.folder / f"model{ENDING}", message)

    def _closed(self, stage: str) -> list[str] | None:
        """The entities whose replies count in a closed stage; None for an open stage."""
        try:
            names = json.loads((self._folder(stage) / "closed").read_bytes())
        except FileNotFoundError:
            return None
        except (ValueError, RecursionError):
            names = None
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise InvalidData(f"the list of entities in the closed stage '{stage}' is damaged. Restore a backup.")
        return names

    def _folder(self, stage: str) -> Path:
        return self.folder / "stages" / stage

    def _stored(self, stage: str, entity: str) -> Path:
        return self._folder(stage) / f"{entity}{ENDING}"
