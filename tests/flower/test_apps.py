"""The two apps by themselves, without a network: what they answer, and what they keep to themselves."""

import io
import tomllib
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest
from flwr.app import ConfigRecord, Context, Error, Message, RecordDict
from flwr.cli.build import build_fab_from_disk
from flwr.supercore.task_identity import TaskIdentity

from tacit.engines.flower import NAME, Answer, Status, client_app
from tacit.engines.flower.__main__ import write_app
from tacit.engines.flower.client_app import answer, content_of, question, reply
from tacit.engines.flower.server_app import GridLink

SECRET = "user 4711 rated 3.25"


@pytest.fixture(autouse=True)
def _in_a_task() -> Iterable[None]:
    TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = 1, 1, 1
    yield
    TaskIdentity._run_id = TaskIdentity._node_id = TaskIdentity._task_id = None


def context(node: dict[str, object], run: dict[str, object] | None = None) -> Context:
    return Context(run_id=1, node_id=5, node_config=node, state=RecordDict(), run_config=run or {}, series_id=1)


def read(message: Message) -> Answer:
    return answer(message, 5, "stage")


def test_bytes_come_through_whole() -> None:
    content = bytes(range(256)) * 1000
    assert content_of(question("keys", 5, content, 10)) == content
    assert read(reply(question("keys", 5, b"", 10), Status.REPLY, content)).content == content


def test_a_node_tells_the_name_that_its_own_setting_gives() -> None:
    asked = question(NAME, 5, b"", 10)
    found = read(client_app.name(asked, context({"entity": "north", "partition-id": 0}, {"simulated": "south,east"})))
    assert (found.status, found.content) == (Status.REPLY, b"north")
    found = read(client_app.name(asked, context({"partition-id": 1}, {"simulated": "south,east"})))
    assert found.content == b"east"


def test_a_node_without_a_name_fails_without_a_word() -> None:
    assert read(client_app.name(question(NAME, 5, b"", 10), context({}))) == Answer(5, "stage", Status.FAILED)


def test_the_text_of_an_error_never_leaves_the_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError(SECRET)

    monkeypatch.setattr(client_app, "_carry", broken)
    replied = client_app.stage(question("keys", 5, b"x", 10), context({"exchange": str(tmp_path)}))
    assert not replied.has_error()
    assert SECRET not in repr(replied)
    assert read(replied) == Answer(5, "stage", Status.FAILED)


def test_the_reason_that_flower_adds_to_a_failure_is_not_read() -> None:
    failed = Message(Error(code=2, reason=SECRET), reply_to=question("keys", 5, b"", 10))
    assert SECRET not in repr(read(failed))
    assert read(failed) == Answer(5, "stage", Status.FAILED)


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"tacit": ConfigRecord({})},
        {"tacit": ConfigRecord({"status": "reply"})},
        {"tacit": ConfigRecord({"status": "gone", "content": b""})},
        {"tacit": ConfigRecord({"status": 3, "content": b""})},
        {"other": ConfigRecord({"status": "reply", "content": b"x"})},
    ],
)
def test_a_reply_of_another_form_is_a_failure(content: dict[str, ConfigRecord]) -> None:
    assert read(Message(RecordDict(content), reply_to=question("keys", 5, b"", 10))).status is Status.FAILED


def test_what_is_not_bytes_is_not_taken() -> None:
    made = RecordDict({"tacit": ConfigRecord({"status": "reply", "content": "text"})})
    assert read(Message(made, reply_to=question("keys", 5, b"", 10))).content == b""


class Grid:
    """Takes messages, and gives what a test laid ready."""

    def __init__(self, refuses: bool = False) -> None:
        self.refuses, self.pushed, self.ready = refuses, [], []  # type: ignore[var-annotated]

    def get_node_ids(self) -> list[int]:
        return [5, 7, 5]

    def push_messages(self, messages: Iterable[Message]) -> list[str | None]:
        self.pushed += messages
        return [None if self.refuses else f"id {len(self.pushed)}"]

    def pull_messages(self, ids: Iterable[str]) -> list[Message]:
        found, self.ready = [one for one in self.ready if one.metadata.reply_to_message_id in set(ids)], []
        return found

    def answers(self, number: int, message: Message) -> None:
        message.metadata.__dict__["_reply_to_message_id"] = f"id {number}"
        self.ready.append(message)


def test_questions_go_to_their_nodes_and_answers_are_known_by_the_question() -> None:
    grid = Grid()
    link = GridLink(grid)
    assert link.nodes() == {5, 7}
    assert list(link.answers()) == []
    link.send("keys", {5: b"a", 7: b"b"}, 10)
    sent = [(one.metadata.dst_node_id, one.metadata.message_type, content_of(one)) for one in grid.pushed]
    assert sent == [(5, "train.stage", b"a"), (7, "train.stage", b"b")]
    assert grid.pushed[0].metadata.ttl == 10
    link.send(NAME, {7: b""}, 10)
    assert grid.pushed[2].metadata.message_type == "query.name"
    # an answer that says it is of node 5, to the question that went to node 7
    grid.answers(2, reply(grid.pushed[0], Status.REPLY, b"r"))
    grid.answers(3, Message(Error(code=5, reason=SECRET), reply_to=grid.pushed[2]))
    assert list(link.answers()) == [Answer(7, "keys", Status.REPLY, b"r"), Answer(7, NAME, Status.FAILED)]
    assert list(link.answers()) == []


def test_a_message_that_could_not_be_sent_is_a_failure() -> None:
    link = GridLink(Grid(refuses=True))
    link.send("keys", {5: b"a"}, 10)
    assert list(link.answers()) == [Answer(5, "keys", Status.FAILED)]
    assert list(link.answers()) == []


def test_the_app_that_is_shipped_holds_no_code_and_installs_nothing(tmp_path: Path) -> None:
    packed = zipfile.ZipFile(io.BytesIO(build_fab_from_disk(write_app(tmp_path / "app"))))
    assert packed.namelist() == ["pyproject.toml", ".info/CONTENT"]
    written = tomllib.loads(packed.read("pyproject.toml").decode())
    assert written["project"]["dependencies"] == []
    assert written["tool"]["flwr"]["app"]["components"] == {
        "serverapp": "tacit.engines.flower.server_app:app",
        "clientapp": "tacit.engines.flower.client_app:app",
    }
