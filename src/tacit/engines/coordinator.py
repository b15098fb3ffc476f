"""The coordinator over plain files. Its folder is all it remembers: each call rebuilds the run from the replies that are stored.

    folder/manifest.fp                   what opened the run
    folder/inbox/*.fp                    replies, dropped here by any means, under any name
    folder/outbox/<entity>/NN-stage.fp   what is to be carried to each entity
    folder/stages/<stage>/<entity>.fp    replies that were accepted; `closed`: whose replies a stage was closed with
    folder/rejected/                     replies that were not, each with its code

A stage is closed on the disk before anything that follows from it is sent: two processes, or one that died, tell one story.
"""

import contextlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from tacit.engines.files import ENDING, messages_in, read_message, write, write_once
from tacit.errors import Conflict, InvalidData, InvalidMessage, InvalidParameter
from tacit.messages.federated_prototypes_frame import open_frame
from tacit.messages.federated_prototypes_manifest import Manifest
from tacit.messages.federated_prototypes_replies import Code
from tacit.server.federation import GIVEN_UP, MODEL, Federation, Status

_MANIFEST = f"manifest{ENDING}"
_LONGEST = 180  # bytes of a name that a code is added to; file systems allow 255
_LAST = 99  # the number of the model among an entity's messages
_FORMAT = "%Y-%m-%dT%H:%M:%SZ"


@dataclass
class Taken:
    """What one step did: replies that were accepted, those that were rejected and why, and stages that were closed."""

    accepted: list[str] = field(default_factory=list)
    rejected: dict[str, str] = field(default_factory=dict)
    closed: list[str] = field(default_factory=list)


class CoordinatorFolder:
    """One run in one folder."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    @classmethod
    def open(cls, folder: str | os.PathLike[str], manifest: Manifest, key: bytes) -> "CoordinatorFolder":
        """Begins a run: the folder must not hold another one."""
        found = cls(folder)
        run = Federation(manifest, key)
        signed = manifest.signed(key)
        if write_once(found.folder / _MANIFEST, signed) != signed:
            raise Conflict("this folder holds another run: name a new folder.")
        (found.folder / "inbox").mkdir(exist_ok=True)
        found._send(run)
        return found

    @property
    def manifest(self) -> Manifest:
        """The run's manifest, signed by the coordinator that it names."""
        try:
            frame = open_frame(read_message(self.folder / _MANIFEST))
            return Manifest.from_frame(frame, bytes.fromhex(str(frame.header.get("coordinator"))))
        except (InvalidMessage, InvalidParameter, ValueError):
            raise InvalidData(f"{self.folder} holds no run: `tacit federate open` begins one.") from None

    def rebuilt(self, key: bytes) -> Federation:
        """The run as its stored replies make it."""
        run = Federation(self.manifest, key)
        while not run.done:
            stage = run.stage
            closed = self._closed(stage)
            for name in run.expected if closed is None else closed:
                file = self._stored(stage, name)
                if file.exists() and run.accept(read_message(file)).status is Status.REJECTED:
                    raise InvalidData(
                        f"the stored reply of {name} in the stage '{stage}' is damaged: restore a backup."
                    )
            if closed is None:
                break
            if run.replied != tuple(closed):
                raise InvalidData(f"stored replies of the stage '{stage}' are missing: restore a backup.")
            run.advance()
        if not run.done and (self.folder / "given-up").exists():
            run.give_up()
        return run

    def step(
        self, key: bytes, *, close: bool = False, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> tuple[Federation, Taken]:
        """Takes the replies of the inbox, closes what can be closed, and writes what is to be sent.

        A stage is closed when all have replied; when enough have, once the deadline is past; or if ``close`` says so: that one
        only, and TooFewEntities is raised where too few have replied.
        """
        taken = Taken()
        run = self.rebuilt(key)
        while True:
            if not self._take(run, taken):  # another process was quicker
                run = self.rebuilt(key)
            enough = len(run.replied) >= run.manifest.needed
            if run.done or not (not run.missing or close or (enough and self._late(now()))):
                break
            stage, replied = run.stage, list(run.replied)
            run.advance()  # raises where too few are left: then nothing was closed
            write_once(self._folder(stage) / "closed", json.dumps(replied).encode())
            if self._closed(stage) != replied:
                run = self.rebuilt(key)
            taken.closed.append(stage)
            close = False
        self._send(run)
        return run, taken

    def give_up(self, key: bytes) -> Federation:
        """Ends a run that cannot go on."""
        run = self.rebuilt(key)
        if not run.done:
            write_once(self.folder / "given-up", b"\n")
            run.give_up()
            self._send(run)
        return run

    def status(self) -> dict[str, Any]:
        """How far the run is, from the folder alone; no key is needed."""
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
        over = GIVEN_UP if (self.folder / "given-up").exists() else stage
        return {
            "run": manifest.run,
            "title": manifest.title,
            "mechanism": manifest.mechanism.value,
            "stage": MODEL if header is not None else over,
            "stages": stages,
            "contributors": [one.name for one in manifest.contributors],
            "receivers": [one.name for one in manifest.roster if not one.contributes],
            "guarantee": manifest.guarantee.to_json(),
            "warnings": list(manifest.warnings()),
            "model": None if header is None else {"hash": header["model"], "informed": header["informed"]},
        }

    def _take(self, run: Federation, taken: Taken) -> bool:
        """Whether what was accepted is what is stored now."""
        stands = True
        for file in messages_in(self.folder / "inbox"):
            try:
                data = read_message(file)
            except InvalidMessage:
                self._reject(file, Code.MALFORMED.value, taken)
                continue
            if not data:  # an entity had nothing to send
                file.unlink(missing_ok=True)
                continue
            verdict = run.accept(data)
            if verdict.status is Status.REJECTED:
                if verdict.code is not Code.EARLY:
                    self._reject(file, str(verdict.code), taken)
                continue
            if verdict.status is Status.ACCEPTED:
                stands &= write_once(self._stored(str(verdict.stage), str(verdict.entity)), data) == data
                taken.accepted.append(f"{verdict.entity} {verdict.stage}")
            file.unlink(missing_ok=True)
        return stands

    def _reject(self, file: Path, code: str, taken: Taken) -> None:
        target = self.folder / "rejected" / f"{_short(file.stem)}.{code}{ENDING}"
        target.parent.mkdir(exist_ok=True)
        with contextlib.suppress(OSError):  # what cannot be moved stays, and must not keep others from being taken
            file.replace(target)
        taken.rejected[file.name.encode(errors="backslashreplace").decode()] = code

    def _send(self, run: Federation) -> None:
        order = run.manifest.stages
        number = _LAST if run.done else order.index(run.stage)
        for entity, message in run.outgoing().items():
            name = "manifest" if number == 0 else run.stage
            file = self.folder / "outbox" / entity / f"{entity}-{run.manifest.run[:8]}-{number:02}-{name}{ENDING}"
            if not file.exists() or file.read_bytes() != message:
                write(file, message)
            if run.model is not None:
                write(self.folder / f"model{ENDING}", message)

    def _closed(self, stage: str) -> list[str] | None:
        try:
            names = json.loads((self._folder(stage) / "closed").read_bytes())
        except FileNotFoundError:
            return None
        except (ValueError, RecursionError):
            names = None
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise InvalidData(f"the note of who was there when '{stage}' was closed is damaged: restore a backup.")
        return names

    def _late(self, moment: datetime) -> bool:
        deadline = self.manifest.deadline
        return deadline is not None and moment >= datetime.strptime(deadline, _FORMAT).replace(tzinfo=UTC)

    def _folder(self, stage: str) -> Path:
        return self.folder / "stages" / stage

    def _stored(self, stage: str, entity: str) -> Path:
        return self._folder(stage) / f"{entity}{ENDING}"


def _short(stem: str) -> str:
    """A name that a code can be added to: what is longer is cut, and told apart by its hash."""
    whole = os.fsencode(stem)
    return stem if len(whole) <= _LONGEST else f"{stem[:40]}-{sha256(whole).hexdigest()[:16]}"
