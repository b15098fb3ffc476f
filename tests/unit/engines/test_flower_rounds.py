"""How stages are carried, on a link that is made up: who is asked, how often, whose reply counts, and when a stage ends."""

from collections.abc import Iterable, Mapping
from math import inf

import pytest

from tacit.engines.flower import NAME, Answer, Status, rounds
from tacit.engines.flower.rounds import Carrier, Patience
from tacit.errors import InvalidParameter
from tacit.server.federated_prototypes import ReplyStatus, Verdict


class Time:
    """A clock that only waiting moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(rounds, "sleep", self.wait)

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def __call__(self) -> float:
        return self.now


class Stages:
    """Two stages with replies, then the model. A reply is 'entity:stage'; what is signed by nobody is refused."""

    def __init__(self, *entities: str) -> None:
        self.entities = entities
        self.receivers: set[str] = set()
        self.left = ["first", "second"]
        self.deadline: tuple[Time, float] | None = None
        self.taken: dict[str, list[str]] = {stage: [] for stage in self.left}

    @property
    def stage(self) -> str:
        return self.left[0] if self.left else "model"

    @property
    def done(self) -> bool:
        return not self.left

    @property
    def expected(self) -> list[str]:
        return [] if self.done else [name for name in self.entities if name not in self.receivers]

    def outgoing(self) -> dict[str, bytes]:
        return {name: f"{self.stage} for {name}".encode() for name in self.entities}

    def accept(self, reply: bytes) -> Verdict:
        name, _, stage = reply.decode().partition(":")
        if name not in self.entities or stage not in self.taken:
            return Verdict(ReplyStatus.REJECTED)
        if name in self.taken[stage]:
            return Verdict(ReplyStatus.REPEATED, name, stage)
        if stage != self.stage:
            return Verdict(ReplyStatus.REJECTED, name, stage)
        self.taken[stage].append(name)
        return Verdict(ReplyStatus.ACCEPTED, name, stage)

    def advance(self) -> None:
        self.left.pop(0)

    def seconds_left(self) -> float:
        return inf if self.deadline is None else max(0.0, self.deadline[1] - self.deadline[0].now)


class Network:
    """Nodes by number, each with the name it claims and how it behaves."""

    def __init__(self, time: Time, names: Mapping[int, str]) -> None:
        self.time, self.claims = time, dict(names)
        self.online_from: dict[int, float] = {}
        self.online_until: dict[int, float] = {}
        self.sent: list[tuple[int, str, bytes]] = []
        self.behaves: dict[tuple[int, str], list[tuple[Status, bytes]]] = {}
        self.mute: set[tuple[int, str]] = set()
        self._ready: list[Answer] = []

    def nodes(self) -> list[int]:
        begin, end = self.online_from, self.online_until
        return [node for node in self.claims if begin.get(node, 0.0) <= self.time.now < end.get(node, inf)]

    def send(self, kind: str, messages: Mapping[int, bytes], seconds: float) -> None:
        assert seconds > 0
        for node, content in messages.items():
            assert node in self.nodes()
            self.sent.append((node, kind, content))
            if (node, kind) not in self.mute:
                self._ready.append(Answer(node, kind, *self._behaviour(node, kind)))

    def answers(self) -> Iterable[Answer]:
        found, self._ready = self._ready, []
        return found

    def asked(self, node: int, kind: str) -> int:
        return sum((to, what) == (node, kind) for to, what, _ in self.sent)

    def _behaviour(self, node: int, kind: str) -> tuple[Status, bytes]:
        if self.behaves.get((node, kind)):
            return self.behaves[node, kind].pop(0)
        if kind == NAME:
            return Status.REPLY, self.claims[node].encode()
        return (Status.KEPT, b"") if kind == "model" else (Status.REPLY, f"{self.claims[node]}:{kind}".encode())


KINDS = ("first", "second", "model")
PATIENCE = Patience(start=50, stage=100, pause=1, again=5)


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    return Time(monkeypatch)


def run(stages: Stages, network: Network, needed: int = 2) -> None:
    Carrier(stages, network, PATIENCE, network.time).run(needed)


def test_every_entity_gets_its_own_message_in_every_stage_once(time: Time) -> None:
    stages, network = Stages("a", "b"), Network(time, {7: "a", 9: "b"})
    run(stages, network)
    assert stages.done
    assert stages.taken == {"first": ["a", "b"], "second": ["a", "b"]}
    assert sorted(network.sent) == sorted(
        [(node, NAME, b"") for node in (7, 9)]
        + [(node, kind, f"{kind} for {name}".encode()) for node, name in ((7, "a"), (9, "b")) for kind in KINDS]
    )
    assert time.now < 10  # nothing waits for a deadline when all are there


def test_nodes_may_come_after_the_start(time: Time) -> None:
    stages, network = Stages("a", "b"), Network(time, {1: "a", 2: "b"})
    network.online_from = {2: 20.0}
    run(stages, network)
    assert stages.taken["first"] == ["a", "b"]
    assert 20 <= time.now < 40


def test_an_entity_that_comes_late_is_asked_from_the_stage_it_finds(time: Time) -> None:
    stages, network = Stages("a", "b"), Network(time, {1: "a", 2: "b"})
    network.online_from = {2: 120.0}
    run(stages, network, needed=1)
    assert stages.taken["first"] == ["a"]
    assert sorted(stages.taken["second"]) == ["a", "b"]
    assert network.asked(2, "first") == 0


def test_a_stage_ends_at_its_time_without_those_who_are_silent(time: Time) -> None:
    stages, network = Stages("a", "b"), Network(time, {1: "a", 2: "b"})
    network.mute = {(2, "first")}
    run(stages, network)
    assert stages.taken["first"] == ["a"]
    assert stages.taken["second"] == ["a", "b"]
    assert network.asked(2, "first") == 1  # it is still at it; asking again would only queue
    assert 100 <= time.now < 120


def test_no_stage_goes_beyond_the_deadline_but_the_model_is_still_handed_out(time: Time) -> None:
    stages, network = Stages("a", "b"), Network(time, {1: "a", 2: "b"})
    stages.deadline = time, 30.0
    network.mute = {(2, "first"), (2, "second")}
    run(stages, network)
    assert stages.taken == {"first": ["a"], "second": []}
    assert 30 <= time.now < 40
    assert [network.asked(node, "model") for node in (1, 2)] == [1, 1]


def test_replies_are_waited_for_from_nodes_that_are_gone_but_the_model_is_not_kept_for_them(time: Time) -> None:
    stages, network = Stages("a", "b"), Network(time, {1: "a", 2: "b"})
    network.online_until = {2: 1.5}
    network.mute = {(2, "first")}
    run(stages, network)
    assert stages.taken == {"first": ["a"], "second": ["a"]}
    assert 200 <= time.now < 210  # both stages to their end, and not the model's
    assert [network.asked(node, "model") for node in (1, 2)] == [1, 0]


def test_a_run_that_is_over_hands_the_model_out_again_also_to_a_node_whose_name_comes_late(time: Time) -> None:
    stages, network = Stages("a", "b"), Network(time, {1: "a", 2: "b"})
    stages.left = []
    network.behaves[2, NAME] = [(Status.FAILED, b"")]
    run(stages, network, needed=1)
    assert [(node, kind) for node, kind, _ in network.sent if kind != NAME] == [(1, "model"), (2, "model")]


def test_waiting_is_not_failing(time: Time) -> None:
    stages, network = Stages("a", "b"), Network(time, {1: "a", 2: "b"})
    network.behaves[2, "first"] = [(Status.WAITING, b"")] * 10
    run(stages, network)
    assert stages.taken["first"] == ["a", "b"]
    assert network.asked(2, "first") == 11


def test_a_node_that_fails_is_asked_three_times_with_pauses_and_then_given_up(time: Time) -> None:
    stages, network = Stages("a", "b"), Network(time, {1: "a", 2: "b"})
    network.behaves[2, "first"] = [(Status.FAILED, b"")] * 10
    run(stages, network)
    assert network.asked(2, "first") == 3
    assert stages.taken["first"] == ["a"]
    assert 10 <= time.now < 30  # two pauses; no waiting for the end of the stage
    assert stages.taken["second"] == ["a", "b"]  # a new stage is a new chance


@pytest.mark.parametrize("reply", [b"a:second", b"stranger:first", b"no reply"])
def test_a_reply_that_does_not_count_is_a_failure(time: Time, reply: bytes) -> None:
    stages, network = Stages("a", "b"), Network(time, {1: "a", 2: "b"})
    network.behaves[1, "first"] = [(Status.REPLY, reply)] * 10
    run(stages, network)
    assert network.asked(1, "first") == 3
    assert stages.taken["first"] == ["b"]


def test_whose_reply_it_is_the_signature_says_and_not_the_node(time: Time) -> None:
    stages, network = Stages("a", "b"), Network(time, {1: "a", 2: "b"})
    network.behaves[1, "first"] = [(Status.REPLY, b"b:first")]  # a's node brings b's reply
    network.mute = {(2, "first")}
    run(stages, network)
    assert "b" in stages.taken["first"]
    assert network.asked(1, "first") == 2  # a itself is still asked for
    assert stages.taken["first"] == ["b", "a"]


def test_a_node_that_claims_the_name_of_another_does_not_keep_it_from_replying(time: Time) -> None:
    stages, network = Stages("a", "b"), Network(time, {1: "a", 2: "b", 3: "b"})
    for stage in ("first", "second"):
        network.behaves[3, stage] = [(Status.KEPT, b"")] * 10  # as if b had nothing to say
    network.mute = {(2, "model")}
    run(stages, network)
    assert stages.taken == {"first": ["a", "b"], "second": ["a", "b"]}
    assert time.now >= 100  # the model was on its way to b's own node until the stage's end


def test_a_receiver_gets_everything_and_is_not_waited_for(time: Time) -> None:
    stages, network = Stages("a", "b", "r"), Network(time, {1: "a", 2: "b", 3: "r"})
    stages.receivers = {"r"}
    for stage in ("first", "second"):
        network.behaves[3, stage] = [(Status.KEPT, b"")]
    run(stages, network)
    assert stages.taken == {"first": ["a", "b"], "second": ["a", "b"]}
    assert [network.asked(3, kind) for kind in KINDS] == [1, 1, 1]
    assert time.now < 10


def test_a_name_that_nobody_has_gets_nothing(time: Time) -> None:
    stages, network = Stages("a", "b"), Network(time, {1: "a", 2: "b", 3: "nobody", 4: "\ufffd"})
    run(stages, network)
    assert {node for node, kind, _ in network.sent if kind != NAME} == {1, 2}


def test_a_name_that_could_not_be_had_is_asked_for_again(time: Time) -> None:
    stages, network = Stages("a", "b"), Network(time, {1: "a", 2: "b"})
    network.behaves[2, NAME] = [(Status.FAILED, b"")] * 3
    run(stages, network)
    assert stages.taken["first"] == ["a", "b"]
    assert network.asked(2, NAME) == 4
    assert time.now >= 15  # with pauses


def test_a_late_answer_of_an_earlier_stage_is_dropped(time: Time) -> None:
    stages, network = Stages("a", "b"), Network(time, {1: "a", 2: "b"})
    network.mute = {(2, "first"), (2, "second")}
    behaviour = network.answers

    def answers() -> list[Answer]:
        late = [Answer(2, "first", Status.REPLY, b"b:second")] if stages.stage == "second" else []
        return [*late, *behaviour()]

    network.answers = answers  # type: ignore[method-assign]
    run(stages, network)
    assert stages.taken["second"] == ["a"]


def test_a_reply_that_was_taken_in_an_earlier_stage_does_not_stand_for_this_one(time: Time) -> None:
    stages, network = Stages("a", "b"), Network(time, {1: "a", 2: "b"})
    network.behaves[2, "second"] = [(Status.REPLY, b"b:first")]
    run(stages, network)
    assert stages.taken == {"first": ["a", "b"], "second": ["a", "b"]}
    assert network.asked(2, "second") == 2


def test_it_begins_without_those_who_never_come(time: Time) -> None:
    stages, network = Stages("a", "b"), Network(time, {1: "a"})
    run(stages, network)
    assert stages.taken["first"] == ["a"]
    assert time.now >= 50


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), float("inf")])
def test_patience_is_a_number_of_seconds(wrong: float) -> None:
    with pytest.raises(InvalidParameter):
        Patience(stage=wrong)


def test_an_answer_does_not_show_what_it_carries() -> None:
    assert "secret" not in repr(Answer(1, NAME, Status.REPLY, b"secret"))
