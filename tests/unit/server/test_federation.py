"""The coordinator: replies in any order, drop-outs at every stage, nothing unmasked with too few, and no bytes that can stop it."""

import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import InvalidMessage, InvalidParameter, TooFewEntities
from tacit.ledger import PrivacyLedger
from tacit.messages.federated_prototypes import Code, Reply, SharedModel, open_frame
from tacit.messages.federated_prototypes.replies import entry_of
from tacit.models.moments import STEPS
from tacit.server.federated_prototypes import Federation, ReplyStatus
from tests.unit.federated_world import ITEMS, World, key_of, resigned, rows_of
from tests.unit.unsynced import unsynced

__all__ = ["unsynced"]

KINDS: list[tuple[str, dict[str, Any]]] = [
    ("grid", {}),
    ("tree", {}),
    ("moments", {"aggregation": "none"}),
    ("moments", {"aggregation": "secure"}),
]
FOUR = ("a", "b", "c", "d")


def shares_of(world: World, stage: str, names: Any) -> list[np.ndarray]:
    """What the ledgers of these entities kept for a stage."""
    found = []
    for name in names:
        with PrivacyLedger.open(world.folder / f"{name}.db") as ledger:
            for kept in ledger.stored("users"):
                if kept.release_id.endswith(f" {stage}"):
                    found.append(np.frombuffer(kept.content.partition(b"\n")[2], dtype=np.int64))
    return found


@pytest.mark.parametrize(("mechanism", "own"), KINDS, ids=str)
def test_a_run_goes_through_its_stages_to_a_model_that_all_can_read(
    made: Any, mechanism: str, own: dict[str, Any]
) -> None:
    world = made(mechanism, receivers=("z",), **own)
    run = world.federation()
    seen = []
    while not run.done:
        seen.append(run.stage)
        assert set(run.expected) == {"a", "b", "c"}
        verdicts = world.exchange(run)
        assert {verdict.status for verdict in verdicts.values()} == {ReplyStatus.ACCEPTED}
        assert (run.missing, len(run.replied)) == ((), 3)
        run.advance()
    assert tuple(seen) == world.manifest.stages
    assert run.model is not None
    assert (run.model.informed, run.model.contributors, run.stage) == (True, 3, "model")
    messages = run.outgoing()
    assert set(messages) == {"a", "b", "c", "z"}
    for message in messages.values():
        read = SharedModel.from_frame(open_frame(message), world.manifest)
        assert read.hash == run.model.hash
    assert run.advance() == "model"


@pytest.mark.parametrize("aggregation", ["none", "secure"])
def test_the_sums_are_those_of_what_the_ledgers_kept(made: Any, aggregation: str) -> None:
    world = made("moments", aggregation=aggregation)
    run = world.federation()
    world.converse(run)
    assert run.model is not None
    assert run.model.moments is not None
    total = np.sum(shares_of(world, "popularity", "abc"), axis=0)
    assert np.array_equal(run.model.moments.popularity, total / STEPS)
    head = run.model.moments.head
    assert len(shares_of(world, "gram", "abc")[0]) == len(head) * (len(head) + 1) // 2


@pytest.mark.parametrize(("aggregation", "honest"), [("none", 1), ("secure", 2)])
def test_the_published_deviations_are_those_of_the_noise_in_the_sums(made: Any, aggregation: str, honest: int) -> None:
    """Three shares, each with 1 / honest of the variance: a unit row has length 1, a Gram vector 1 / sqrt 2."""
    world = made("moments", aggregation=aggregation)
    run = world.federation()
    world.converse(run)
    assert run.model is not None
    assert run.model.moments is not None
    first, second = run.manifest.rhos
    assert run.model.moments.popularity_sd == pytest.approx((3 / honest / (2 * first)) ** 0.5)
    assert run.model.moments.gram_sd == pytest.approx((3 / honest / (4 * second)) ** 0.5)


@pytest.mark.parametrize(("mechanism", "own"), KINDS, ids=str)
def test_the_order_of_replies_does_not_matter(made: Any, mechanism: str, own: dict[str, Any]) -> None:
    world = made(mechanism, **own)
    run, other = world.federation(), world.federation()
    while not run.done:
        assert other.outgoing() == run.outgoing()
        replies = [world.entity(name).answer(run.outgoing()[name]) for name in run.expected]
        for reply in replies:
            run.accept(reply)
        for reply in reversed(replies):
            assert other.accept(reply).status is ReplyStatus.ACCEPTED
        run.advance()
        other.advance()
    assert other.outgoing() == run.outgoing()


@pytest.mark.parametrize(("mechanism", "own"), KINDS, ids=str)
def test_a_reply_counts_once(made: Any, mechanism: str, own: dict[str, Any]) -> None:
    world = made(mechanism, **own)
    run = world.federation()
    reply = world.entity("a").answer(run.outgoing()["a"])
    assert run.accept(reply) == (ReplyStatus.ACCEPTED, "a", run.stage, None, None)
    assert run.accept(reply).status is ReplyStatus.REPEATED
    assert run.replied == ("a",)
    other = World(world.folder, mechanism, **own)  # the same run, another ledger: fresh noise, fresh keys
    other.folder = world.folder / "other"
    other.folder.mkdir()
    again = other.entity("a").answer(run.outgoing()["a"])
    other.close()
    assert run.accept(again)[:4] == (ReplyStatus.REJECTED, "a", run.stage, Code.CONFLICT)
    assert run.replied == ("a",)


def test_a_late_reply_is_discarded_and_an_early_one_too(made: Any) -> None:
    world = made("moments", aggregation="none")
    run = world.federation()
    early = Reply("gram", "a", entry_of(world.manifest, "gram", "a"), {"steps": np.zeros(1, dtype=np.int64)})
    assert run.accept(early.signed(key_of("a"), world.manifest)).code is Code.EARLY
    late = world.entity("c").answer(run.outgoing()["c"])
    world.exchange(run, silent="c")
    run.advance()
    assert run.accept(late)[:4] == (ReplyStatus.REJECTED, "c", "popularity", Code.LATE)
    world.entity("c")
    gram = Reply("gram", "c", entry_of(world.manifest, "gram", "c"), {"steps": np.zeros(1, dtype=np.int64)})
    assert run.accept(gram.signed(key_of("c"), world.manifest)).code is Code.LEFT
    assert set(run.outgoing()) == {"a", "b"}
    first = world.entity("a").answer(world.opening())
    assert run.accept(first).status is ReplyStatus.REPEATED  # a retry of what was counted is no fault
    world.converse(run)
    assert run.model is not None
    assert run.model.contributors == 2
    assert set(run.outgoing()) == {"a", "b", "c"}  # the model is for all
    assert run.accept(late).code is Code.LATE


@pytest.mark.parametrize("mechanism", ["grid", "tree"])
def test_prototypes_of_those_who_replied_make_the_model(made: Any, mechanism: str) -> None:
    world = made(mechanism)
    replies = [world.entity(name).release(world.opening()) for name in "ab"]
    model = world.federation().combine([*replies, b"nonsense", replies[0]])
    assert model.contributors == 2
    assert model.factors is not None
    assert (model.factors.shape, bool((model.factors >= 0).all())) == ((ITEMS, 2), True)
    assert world.federation().combine(replies[::-1]).hash == model.hash


def test_fewer_than_are_needed_make_no_model(made: Any) -> None:
    for own in ({}, {"min_entities": 3}):
        world = made("tree", **own)
        run = world.federation()
        needed = own.get("min_entities", 2)
        for name in world.names[: needed - 1]:
            run.accept(world.entity(name).answer(world.opening()))
        with pytest.raises(TooFewEntities):
            run.advance()
        assert (run.stage, run.model, run.done) == ("prototypes", None, False)
        run.accept(world.entity(world.names[needed - 1]).answer(world.opening()))
        assert run.advance() == "model"


@pytest.mark.parametrize("stage", ["keys", "shares", "popularity", "unmask-popularity", "gram", "unmask-gram"])
def test_a_secure_run_survives_a_drop_out_at_any_stage(made: Any, stage: str) -> None:
    world = made("moments", names=FOUR, fewest=3)
    run = world.federation()
    world.converse(run, until=stage)
    world.exchange(run, silent="b")
    run.advance()
    assert "b" not in run.expected
    world.converse(run)
    assert run.model is not None
    assert run.model.moments is not None
    in_sum = "acd" if stage in ("keys", "shares", "popularity") else "abcd"
    total = np.sum(shares_of(world, "popularity", in_sum), axis=0)
    assert np.array_equal(run.model.moments.popularity, total / STEPS)
    assert run.model.contributors == (4 if stage == "unmask-gram" else 3)


@pytest.mark.parametrize("stage", ["keys", "shares", "popularity", "unmask-popularity", "gram", "unmask-gram"])
def test_with_fewer_than_h_min_nothing_is_unmasked(made: Any, stage: str) -> None:
    world = made("moments", names=FOUR, fewest=3)
    run = world.federation()
    world.converse(run, until=stage)
    before = run.outgoing()
    world.exchange(run, silent="bc")
    with pytest.raises(TooFewEntities, match="nothing was unmasked"):
        run.advance()
    assert (run.stage, run.outgoing(), run.model) == (stage, before, None)
    world.exchange(run, silent="b")  # one comes back in time
    run.advance()
    world.converse(run)
    assert run.model is not None


def test_a_run_that_cannot_go_on_is_given_up(made: Any) -> None:
    world = made("moments", names=FOUR, fewest=3)
    run = world.federation()
    world.converse(run, until="unmask-popularity")
    assert run.give_up() == "given-up"
    assert (run.done, run.model, run.outgoing()) == (True, None, {})
    reply = world.entity("a").answer(world.opening())
    assert run.accept(reply).status is ReplyStatus.REPEATED
    second = made("moments", names=FOUR, fewest=3)
    run = second.federation()
    second.converse(run, until="gram")
    assert run.give_up() == "model"
    assert run.model is not None
    assert run.model.moments is not None
    assert (run.model.informed, run.model.moments.head.size) == (False, 0)
    assert np.array_equal(run.model.moments.popularity * STEPS, np.sum(shares_of(second, "popularity", FOUR), axis=0))


def test_noise_alone_ends_a_run_early_with_a_public_flag(made: Any) -> None:
    world = made("moments", epsilon=0.1, aggregation="none")
    run = world.federation()
    world.converse(run)
    assert run.model is not None
    assert (run.model.informed, run.stage) == (False, "model")
    assert shares_of(world, "gram", "abc") == []  # nobody was asked for a Gram matrix


def test_a_message_of_the_secure_sum_that_is_anothers_or_false_is_refused(made: Any) -> None:
    world = made("moments", names=FOUR, fewest=3)
    run = world.federation()
    replies = {name: world.entity(name).answer(run.outgoing()[name]) for name in FOUR}
    theirs = open_frame(replies["b"]).arrays["body"]
    stolen = resigned(replies["a"], key_of("a"), arrays={"body": theirs})
    assert run.accept(stolen)[:4] == (ReplyStatus.REJECTED, "a", "keys", Code.SECURE_SUM)
    for body in (np.zeros(0, dtype=np.uint8), np.arange(50, dtype=np.uint8), theirs[:-1]):
        assert run.accept(resigned(replies["a"], key_of("a"), arrays={"body": body})).code is Code.SECURE_SUM
    assert run.accept(replies["a"]).status is ReplyStatus.ACCEPTED


def test_a_wrong_share_is_refused_and_its_giver_may_mend_it(made: Any) -> None:
    world = made("moments", names=FOUR, fewest=3)
    run = world.federation()
    world.converse(run, until="unmask-popularity")
    good = world.entity("a").answer(run.outgoing()["a"])
    inner = open_frame(good).arrays["body"].tobytes()
    shares = open_frame(inner).arrays["shares"].copy()
    shares[1, 5] ^= 1
    wrong = np.frombuffer(resigned(inner, key_of("a"), arrays={"shares": shares}), dtype=np.uint8)
    verdict = run.accept(resigned(good, key_of("a"), arrays={"body": wrong}))
    assert verdict[:4] == (ReplyStatus.REJECTED, "a", "unmask-popularity", Code.SECURE_SUM)
    assert run.replied == ()
    assert run.accept(good).status is ReplyStatus.ACCEPTED


def test_what_is_rejected_changes_nothing(made: Any) -> None:
    world = made("grid")
    run, other = world.federation(), world.federation()
    replies = {name: world.entity(name).answer(world.opening()) for name in "abc"}
    values = open_frame(replies["a"]).arrays["values"].copy()
    values[0, 0] = 99.0
    for bad in (resigned(replies["a"], key_of("a"), arrays={"values": values}), replies["b"][:-1], b""):
        assert run.accept(bad).status is ReplyStatus.REJECTED
    assert run.replied == ()
    assert run.combine(replies.values()).hash == other.combine(replies.values()).hash


@pytest.mark.parametrize(("mechanism", "own"), KINDS, ids=str)
def test_no_bytes_stop_the_coordinator(tmp_path: Path, mechanism: str, own: dict[str, Any]) -> None:
    world = World(tmp_path, mechanism, **own)
    run = world.federation()
    good = world.entity("a").answer(world.opening())
    world.close()
    assert good is not None

    @settings(deadline=None)
    @given(st.binary(max_size=200), st.integers(0, len(good) * 8 - 1))
    def tried(data: bytes, bit: int) -> None:
        flipped = bytearray(good)
        flipped[bit // 8] ^= 1 << bit % 8
        for one in (data, good[: len(data)], good + data + b"x", bytes(flipped), b"x" + data + good):
            verdict = run.accept(one)
            assert verdict.status is ReplyStatus.REJECTED
            assert verdict.code in set(Code)
        assert run.replied == ()

    tried()
    assert run.accept(good).status is ReplyStatus.ACCEPTED


def test_one_entity_has_no_more_weight_than_others_whatever_sizes_it_states(made: Any) -> None:
    world = made("tree", epsilon=2.0)
    replies = {name: world.entity(name).answer(world.opening()) for name in "abc"}
    sizes = open_frame(replies["a"]).arrays["sizes"]
    loud = resigned(replies["a"], key_of("a"), arrays={"sizes": np.abs(sizes) * np.float32(1e6)})
    quiet = resigned(replies["a"], key_of("a"), arrays={"sizes": np.abs(sizes)})
    models = []
    for first in (loud, quiet):
        run = world.federation()
        models.append(run.combine([first, replies["b"], replies["c"]]))
    assert models[0].factors == pytest.approx(models[1].factors, rel=1e-3, abs=1e-3)


def test_influence_is_reported_where_replies_can_be_seen(made: Any) -> None:
    world = made("tree")
    run = world.federation()
    run.combine([world.entity(name).answer(world.opening()) for name in "abc"])
    found = run.influence()
    assert set(found) == {"a", "b", "c"}
    assert all(value >= 0.0 for value in found.values())
    with pytest.raises(InvalidParameter, match="cannot be seen"):
        made("moments").federation().influence()


def test_so_is_that_of_shares_which_are_seen_one_by_one(made: Any) -> None:
    world = made("moments", aggregation="none", epsilon=200.0)
    world.entity("c", rows=np.flip(rows_of("c"), axis=1))  # other items are popular there
    run = world.federation()
    with pytest.raises(InvalidMessage, match="once there is a model"):
        run.influence()
    world.converse(run)
    assert run.model is not None
    assert run.model.informed
    found = run.influence()
    assert set(found) == {"a", "b", "c"}
    assert found["c"] > 1.5 * max(found["a"], found["b"]) > 0.0


def test_an_entity_that_only_gave_its_popularity_has_the_influence_of_that(made: Any) -> None:
    world = made("moments", aggregation="none", names=("a", "b", "c", "d"))
    run = world.federation()
    world.converse(run, until="gram")
    world.exchange(run, silent=("d",))
    run.advance()
    assert set(run.influence()) == {"a", "b", "c", "d"}
    given_up = world.federation()
    world.converse(given_up, until="gram")
    given_up.give_up()
    assert set(given_up.influence()) == {"a", "b", "c", "d"}


@pytest.mark.parametrize("bound", [2.0**-110, 2.0**127])
@pytest.mark.parametrize("mechanism", ["grid", "tree"])
def test_the_least_and_the_largest_values_that_a_manifest_allows_are_carried(
    made: Any, mechanism: str, bound: float
) -> None:
    world = made(mechanism, value_bound=bound, epsilon=50.0)
    run = world.federation()
    replies = [world.entity(name, rows=rows_of(name) * (bound / 5.0)).answer(world.opening()) for name in "abc"]
    assert all(open_frame(reply).arrays["values"].any() for reply in replies)
    model = run.combine(replies)
    assert model.contributors == 3
    assert model.informed or bound < 1.0  # the ridge may be larger than the least ones
    assert np.isfinite(model.factors).all()


def test_a_reply_is_no_larger_in_memory_than_on_the_wire(made: Any) -> None:
    """A table of all cells is made once, when the stage is closed: no reply that is let in can use up the memory."""
    world = made("grid", k=1000, picked=8)
    wide = replace(world.manifest, items=20_000)
    run = Federation(wide, world.key)
    arrays = {
        "sizes": np.ones(1000, dtype="<f4"),
        "index": np.tile(np.arange(8, dtype="<u4"), (1000, 1)),
        "values": np.ones((1000, 8), dtype="<f4"),
    }
    reply = Reply("prototypes", "a", entry_of(wide, "prototypes", "a"), arrays).signed(key_of("a"), wide)
    tracemalloc.start()
    assert run.accept(reply)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 10 * len(reply) < 8 * 1000 * 20_000 / 10


def test_the_key_must_be_the_manifests(made: Any) -> None:
    with pytest.raises(InvalidParameter, match="coordinator"):
        Federation(made("tree").manifest, key_of("a"))


def test_combine_is_for_prototypes(made: Any) -> None:
    with pytest.raises(InvalidParameter, match="stages"):
        made("moments").federation().combine([])


def test_replies_of_another_run_are_refused(made: Any) -> None:
    world = made("tree")
    reply = world.entity("a").answer(world.opening())
    other = Federation(replace(world.manifest, title="another"), world.key)
    assert other.accept(reply)[:4] == (ReplyStatus.REJECTED, None, None, Code.OTHER_RUN)


def test_a_verdict_reads_as_a_truth_value(made: Any) -> None:
    world = made("tree")
    run = world.federation()
    assert not run.accept(b"")
    assert run.accept(world.entity("a").answer(world.opening()))


def test_what_is_told_of_a_run_is_public(made: Any) -> None:
    world = made("tree")
    assert repr(world.federation()) == "Federation(tree, prototypes: 0 of 3 replied)"
    assert world.federation().guarantee == world.manifest.guarantee
