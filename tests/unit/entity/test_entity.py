"""An entity in a run: refused before rows are read, charged before anything is drawn, answered once."""

import math
import shutil
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.entity import Entity, Policy, uploads
from tacit.errors import (
    BudgetExhausted,
    Conflict,
    GuaranteeRefused,
    InvalidInput,
    InvalidMessage,
    InvalidParameter,
    TacitError,
)
from tacit.guarantees import LossKind, rho_for
from tacit.ledger import Accounting, Budget, PrivacyLedger
from tacit.mechanisms import ReplayedNoise, SystemNoise
from tacit.messages.federated_prototypes import Step, open_frame, public_of, sign
from tests.unit.federated_world import ITEMS, USERS, World, key_of, no_rows, refusal, rows_of

KINDS: list[tuple[str, dict[str, Any]]] = [
    ("grid", {}),
    ("tree", {}),
    ("moments", {"aggregation": "none"}),
    ("moments", {"aggregation": "secure"}),
]
OPEN = [one for one in KINDS if one[1].get("aggregation") != "secure"]  # the first message is answered with a release


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Any]:
    worlds = []

    def make(mechanism: str, **own: Any) -> World:
        worlds.append(World(tmp_path / str(len(worlds)), mechanism, **own))
        worlds[-1].folder.mkdir()
        return worlds[-1]

    yield make
    for world in worlds:
        world.close()


def charges(entity: Entity) -> int:
    return entity.statement().charges


class CountedNoise(SystemNoise):
    """The system's noise, and how often it was asked; it may fail after some draws."""

    def __init__(self, fail_after: int | None = None) -> None:
        super().__init__()
        self.asked, self.fail_after = 0, fail_after

    def draw(self, count: int) -> bytes:
        self.asked += 1
        if self.fail_after is not None and self.asked > self.fail_after:
            raise ArithmeticError("a secret of row 17")
        return super().draw(count)


@pytest.mark.parametrize(("mechanism", "own"), KINDS, ids=str)
def test_the_same_message_gets_the_same_bytes_also_after_a_restart(
    made: Any, mechanism: str, own: dict[str, Any]
) -> None:
    world = made(mechanism, **own)
    first = world.entity("a").answer(world.opening())
    assert world.entity("a").answer(world.opening()) == first
    assert world.entity("a", again=True).answer(world.opening()) == first
    assert charges(world.entity("a")) == (0 if own.get("aggregation") == "secure" else 1)


@pytest.mark.parametrize(("mechanism", "own"), KINDS, ids=str)
def test_a_whole_run_costs_epsilon_and_nothing_more(made: Any, mechanism: str, own: dict[str, Any]) -> None:
    """The budget is exactly the run's epsilon; in rho the stages add up to what it allows, to 12 digits."""
    world = made(mechanism, **own)
    run = world.federation()
    world.converse(run)
    statement = world.entity("a").statement()
    (window,) = statement.windows
    assert window.left.amount <= 1  # a unit of 10^-12, or of 10^-9 epsilon
    assert statement.charges == (2 if mechanism == "moments" else 1)
    if mechanism == "grid":
        assert (statement.promised.epsilon, statement.spent.amount) == (8.0, 8 * 10**9)
    else:
        assert abs(statement.spent.amount - rho_for(8.0, 1e-6) * 1e12) <= 1.0


@pytest.mark.parametrize("part", [0.15, 0.4])
def test_the_two_uploads_are_two_charges_of_the_stated_parts(made: Any, part: float) -> None:
    world = made("moments", part=part)
    charged = []
    original = PrivacyLedger.release
    with pytest.MonkeyPatch.context() as patch:

        def release(self: Any, subject: str, release_id: str, guarantee: Any, draw: Any) -> bytes:
            if subject == "users":
                charged.append((release_id.split()[-1], guarantee))
            return original(self, subject, release_id, guarantee, draw)

        patch.setattr(PrivacyLedger, "release", release)
        run = world.federation()
        world.converse(run)
    mine = dict(charged)
    assert set(mine) == {"popularity", "gram"}
    for stage, rho in zip(("popularity", "gram"), world.manifest.rhos, strict=True):
        assert (mine[stage].loss.kind, mine[stage].loss.value) == (LossKind.ZCDP, rho)
        assert "only the sum of the shares is seen" in mine[stage].assumes


# --- before rows are read ---------------------------------------------------------------------------------------------------------

BAD: list[tuple[str, dict[str, Any]]] = [
    *[(one, {"epsilon": bad}) for one, _ in KINDS[:3] for bad in (0.0, -1.0)],
    *[(one, {"epsilon": bad}) for one, _ in KINDS[:3] for bad in ("inf", "NaN", 10**400, None, True)],
    *[("tree", {"delta": bad}) for bad in (0.0, 1.0, -0.5)],
    *[(one, {name: 0}) for one in ("grid", "tree") for name in ("k", "items_each", "value_bound")],
    ("grid", {"picked": ITEMS + 1}),
    ("grid", {"shares": [0.1, 0.1, 0.05, 0.2, 0.56, 0.0]}),
    *[("moments", {"part": bad}) for bad in (0.0, 1.0)],
    ("moments", {"fewest": 1}),
    ("moments", {"catalogue": "0" * 64}),
    ("grid", {"catalogue": "0" * 64}),
    ("grid", {"items": ITEMS + 1}),
]


@pytest.mark.parametrize(("mechanism", "changed"), BAD, ids=str)
def test_bad_constants_are_refused_before_rows_are_read(made: Any, mechanism: str, changed: dict[str, Any]) -> None:
    world = made(mechanism)
    entity = world.entity("a", no_rows)
    with pytest.raises(InvalidMessage):
        entity.answer(sign(world.key, {**world.manifest.to_json(), **changed}))
    assert charges(entity) == 0
    assert not (world.folder / "a.db.runs").exists()


@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize(("mechanism", "own"), KINDS, ids=str)
def test_an_epsilon_that_is_not_finite_is_refused_as_a_constant_and_in_a_message(
    made: Any, mechanism: str, own: dict[str, Any], bad: float
) -> None:
    world = made(mechanism, **own)
    with pytest.raises(InvalidParameter):
        replace(world.manifest, epsilon=bad)
    entity = world.entity("a", no_rows)
    assert _with_epsilon(world, b"8.0") == world.opening()
    text = {math.inf: b"Infinity", -math.inf: b"-Infinity"}.get(bad, b"NaN")
    with pytest.raises(InvalidMessage):
        entity.answer(_with_epsilon(world, text))
    with pytest.raises(InvalidMessage):
        entity.answer(_with_epsilon(world, b"1e999"))
    assert charges(entity) == 0
    assert not (world.folder / "a.db.runs").exists()


def _with_epsilon(world: World, digits: bytes) -> bytes:
    """The manifest with these digits for its epsilon, signed: what no careful writer of JSON would send."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    magic, signature, length = len(b"tacit fp/1\n"), 64, 4
    message = world.opening()
    header = message[magic + signature + length :].replace(b'"epsilon":8.0', b'"epsilon":' + digits)
    assert header.count(digits) >= 1
    content = message[:magic] + len(header).to_bytes(length, "little") + header
    made = Ed25519PrivateKey.from_private_bytes(world.key).sign(content)
    return message[:magic] + made + content[magic:]


def test_numbers_that_only_the_mechanism_can_judge_are_refused_before_rows_are_read(made: Any) -> None:
    """At this epsilon the noise would be finer than the grid it is drawn on."""
    world = made("moments", epsilon=9e5, aggregation="none")
    entity = world.entity("a", no_rows, budget=Budget(1e6, 1e-6))
    with pytest.raises(InvalidParameter, match="deviation"):
        entity.answer(world.opening())
    assert charges(entity) == 0


@pytest.mark.parametrize(("mechanism", "own"), KINDS, ids=str)
def test_only_the_pinned_coordinator_is_listened_to(made: Any, mechanism: str, own: dict[str, Any]) -> None:
    world = made(mechanism, **own)
    entity = world.entity("a", no_rows)
    stranger = replace(world.manifest, coordinator=public_of(key_of("x")).hex()).signed(key_of("x"))
    forged = sign(key_of("x"), world.manifest.to_json())
    flipped = bytearray(world.opening())
    flipped[-3] ^= 1
    for message in (stranger, forged, bytes(flipped), world.opening()[:-1], b"", b"tacit fp/1\n"):
        with pytest.raises(InvalidMessage):
            entity.answer(message)
    assert charges(entity) == 0


def test_a_roster_without_this_entity_or_with_another_key_for_it_is_refused(made: Any) -> None:
    world = made("tree", names=("b", "c"))
    with pytest.raises(InvalidMessage, match="roster"):
        world.entity("a", no_rows).answer(world.opening())
    world = made("tree")
    other = Entity(
        no_rows,
        world.folder / "x.db",
        name="a",
        key=key_of("other"),
        coordinator=public_of(world.key),
        catalogue=world.catalogue,
    )
    with other, pytest.raises(InvalidMessage, match="roster"):
        other.answer(world.opening())


@pytest.mark.parametrize(
    "policy",
    [
        Policy(epsilon=7.9),
        Policy(delta=1e-7),
        Policy(mechanisms=("grid",)),
        Policy(aggregation="secure"),
        Policy(contributors=4),
        Policy(peers={"b": "0" * 64}, known=2),
    ],
    ids=str,
)
def test_a_policy_refuses_a_run_before_anything_is_drawn(made: Any, policy: Policy) -> None:
    world = made("moments", aggregation="none")
    noise = CountedNoise()
    entity = world.entity("a", no_rows, policy=policy, noise=noise)
    with pytest.raises(GuaranteeRefused):
        entity.answer(world.opening())
    assert (charges(entity), noise.asked) == (0, 0)


def test_a_policy_is_about_a_user_of_as_many_entities_as_are_allowed(made: Any) -> None:
    world = made("grid", epsilon=1.0, entities_each=2)
    with pytest.raises(GuaranteeRefused):
        world.entity("a", no_rows, policy=Policy(epsilon=1.5)).answer(world.opening())


def test_a_policy_that_allows_the_run_lets_it_pass(made: Any) -> None:
    world = made("moments", aggregation="none")
    policy = Policy(epsilon=8.0, delta=1e-6, mechanisms=("moments",), aggregation="none", contributors=3)
    assert world.entity("a", policy=policy).answer(world.opening()) is not None


def test_a_run_whose_deadline_is_past_costs_nothing(made: Any) -> None:
    world = made("tree", deadline="2026-12-01T12:00:00Z")
    moment = 1_796_126_400_000_000  # 2026-12-01T12:00:00Z
    entity = world.entity("a", no_rows, clock=lambda: moment)
    with pytest.raises(InvalidMessage, match="deadline"):
        entity.answer(world.opening())
    assert charges(entity) == 0
    assert world.entity("b", clock=lambda: moment - 1_000_000).answer(world.opening()) is not None


# --- the budget -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mechanism", "own"), KINDS, ids=str)
def test_a_budget_that_is_too_small_refuses_and_sends_nothing(made: Any, mechanism: str, own: dict[str, Any]) -> None:
    world = made(mechanism, **own)
    noise = CountedNoise()
    budget = Budget(7.99, 0.0 if mechanism == "grid" else 1e-6)
    entity = world.entity("a", no_rows, budget=budget, noise=noise)
    with pytest.raises(BudgetExhausted):
        entity.answer(world.opening())
    assert (charges(entity), noise.asked) == (0, 0)
    assert not (world.folder / "a.db.runs").exists()


def test_a_second_run_is_refused_when_the_first_has_spent_the_budget(made: Any) -> None:
    world = made("tree")
    entity = world.entity("a")
    entity.answer(world.opening())
    again = replace(world.manifest, title="once more").signed(world.key)
    with pytest.raises(BudgetExhausted):
        entity.answer(again)
    assert charges(entity) == 1


def test_a_second_run_is_refused_before_its_first_charge(made: Any) -> None:
    """What is left counts, not the budget: the first upload of the second run alone would fit."""
    world = made("moments", aggregation="none")
    allowed = rho_for(8.0, 1e-6)
    entity = world.entity("a", budget=Budget(9.5, 1e-6))  # one run and the popularity of another
    assert 1.15 * allowed < rho_for(9.5, 1e-6) < 2.0 * allowed
    run = world.federation()
    world.converse(run)
    noise = CountedNoise()
    entity = world.entity("a", no_rows, again=True, budget=Budget(9.5, 1e-6), noise=noise)
    second = replace(world.manifest, title="once more")
    with pytest.raises(BudgetExhausted, match="Nothing was charged") as caught:
        entity.answer(second.signed(world.key))
    assert (charges(entity), noise.asked) == (2, 0)
    assert not (world.folder / "a.db.runs" / second.run).exists()
    assert float(caught.value.left) == pytest.approx(rho_for(9.5, 1e-6) - allowed)


@pytest.mark.parametrize("stage", ["prototypes", "popularity"])
def test_a_delta_that_does_not_fit_is_refused_before_the_first_charge(made: Any, stage: str) -> None:
    """Accounting 'basic' adds up delta too: there is epsilon enough, and of delta less than the run needs."""
    world = made("tree") if stage == "prototypes" else made("moments", aggregation="none")
    few = 0.9e-6 if stage == "prototypes" else 1.9e-6  # the two uploads have a delta of 1e-6 each
    entity = world.entity("a", no_rows, budget=Budget(100.0, few), accounting="basic")
    with pytest.raises(BudgetExhausted, match="delta") as caught:
        entity.answer(world.opening())
    assert (charges(entity), caught.value.measure) == (0, "delta")
    assert not (world.folder / "a.db.runs").exists()
    enough = world.entity("b", budget=Budget(100.0, 2.1e-6), accounting="basic")
    assert enough.answer(world.opening()) is not None


def test_a_run_of_which_the_second_upload_would_not_fit_is_not_begun(made: Any) -> None:
    world = made("moments", aggregation="none")
    entity = world.entity("a", no_rows, budget=Budget(4.0, 1e-6))  # the popularity alone would fit
    with pytest.raises(BudgetExhausted, match="Nothing was charged"):
        entity.answer(world.opening())
    assert charges(entity) == 0


def test_the_charge_is_on_the_disk_before_anything_is_drawn(made: Any) -> None:
    world = made("moments", aggregation="none")
    seen = []

    class Watching(CountedNoise):
        def draw(self, count: int) -> bytes:
            if not seen:
                with PrivacyLedger.open(world.folder / "a.db") as ledger:
                    seen.append(ledger.statement("users").charges)
            return super().draw(count)

    world.entity("a", noise=Watching()).answer(world.opening())
    assert seen == [1]


@pytest.mark.parametrize(("mechanism", "own"), OPEN, ids=str)
def test_an_error_after_the_first_draw_leaves_the_budget_spent_and_tells_nothing(
    made: Any, mechanism: str, own: dict[str, Any]
) -> None:
    world = made(mechanism, **own)
    entity = world.entity("a", noise=CountedNoise(fail_after=1))
    with pytest.raises(Conflict) as caught:
        entity.answer(world.opening())
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert charges(entity) == 1
    # Nor is anything drawn when it is asked again, with good noise.
    noise = CountedNoise()
    entity = world.entity("a", again=True, noise=noise)
    with pytest.raises(Conflict):
        entity.answer(world.opening())
    assert (noise.asked, charges(entity)) == (0, 1)


@pytest.mark.parametrize("stage", ["popularity", "gram"])
def test_an_error_after_the_first_draw_puts_an_entity_out_of_a_secure_run(made: Any, stage: str) -> None:
    """The charge stands, nothing is sent, and nothing is drawn when it is asked again; the run goes on without it."""
    world = made("moments", names=("a", "b", "c", "d"), fewest=3)
    run = world.federation()
    world.converse(run, until=stage)
    sent, spent = run.outgoing()["a"], charges(world.entity("a"))
    entity = world.entity("a", again=True, noise=CountedNoise(fail_after=1))
    with pytest.raises(Conflict) as caught:
        entity.answer(sent)
    assert "secret" not in str(caught.value)
    assert (caught.value.__cause__, charges(entity)) == (None, spent + 1)
    noise = CountedNoise()
    entity = world.entity("a", again=True, noise=noise)
    with pytest.raises(Conflict, match="used up"):
        entity.answer(sent)
    assert (noise.asked, charges(entity)) == (0, spent + 1)
    assert not (world.folder / "a.db.runs" / world.manifest.run / stage).exists()
    world.converse(run, silent=("a",))
    assert run.model is not None
    assert run.model.contributors == 3


@pytest.mark.parametrize(("mechanism", "own"), OPEN, ids=str)
def test_what_a_caller_has_set_for_numpy_makes_no_error_of_a_draw(
    made: Any, mechanism: str, own: dict[str, Any]
) -> None:
    """An underflow while rows are read must not use the stage up: it would tell of the rows."""
    world = made(mechanism, **own)
    original = uploads.upload_of

    def underflows(*arguments: Any) -> Any:
        upload = original(*arguments)
        return replace(upload, draw=lambda rows: (np.float64(1e-300) * np.full(2, 1e-300), upload.draw(rows))[1])

    with pytest.MonkeyPatch.context() as patch, np.errstate(all="raise"):
        patch.setattr("tacit.entity.stages.upload_of", underflows)
        entity = world.entity("a")
        entity._rows.table()  # the caller's own settings hold there
        assert entity.answer(world.opening()) is not None


def test_a_process_that_dies_while_drawing_draws_again_for_the_same_charge(made: Any) -> None:
    world = made("tree")

    class Killed(CountedNoise):
        def draw(self, count: int) -> bytes:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        world.entity("a", noise=Killed()).answer(world.opening())
    entity = world.entity("a", again=True)
    assert charges(entity) == 1
    assert entity.answer(world.opening()) is not None
    assert charges(entity) == 1


def test_rows_of_the_wrong_shape_are_found_out_before_the_charge(made: Any) -> None:
    world = made("tree")
    entity = world.entity("a", np.zeros((3, ITEMS + 1)))
    with pytest.raises(InvalidInput):
        entity.answer(world.opening())
    assert charges(entity) == 0


def test_terms_are_agreed_once(made: Any) -> None:
    world = made("tree")
    world.entity("a", budget=Budget(8.0, 1e-6))
    with pytest.raises(Conflict):
        world.entity("a", again=True, budget=Budget(9.0, 1e-6))
    assert world.entity("a", budget=None).statement().terms.budgets == (Budget(8.0, 1e-6),)
    assert world.entity("a").statement().terms.accounting is Accounting.ZCDP


def test_replayed_noise_promises_nothing_and_is_refused(made: Any) -> None:
    world = made("tree")
    entity = world.entity("a", no_rows, noise=ReplayedNoise(1))
    with pytest.raises(GuaranteeRefused):
        entity.answer(world.opening())
    assert charges(entity) == 0


# --- what leaves ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mechanism", "own"), KINDS, ids=str)
@pytest.mark.parametrize("rows", ["nobody", "one", "odd", "many"])
def test_the_size_of_a_reply_follows_from_public_numbers_alone(
    made: Any, mechanism: str, own: dict[str, Any], rows: str
) -> None:
    world = made(mechanism, **own)
    odd = rows_of("a")
    odd[0], odd[1, 3], odd[2], odd[3, 3] = np.nan, np.inf, -4.0, 1e300
    given = {
        "nobody": np.zeros((0, ITEMS)),
        "one": np.eye(1, ITEMS),
        "odd": odd,
        "many": np.ones((300, ITEMS)),
    }[rows]
    usual = world.entity("b").answer(world.opening())
    reply = world.entity("a", given).answer(world.opening())
    assert len(reply) == len(usual)
    assert world.federation().accept(reply).status == "accepted"


def test_a_reply_names_no_user_and_no_number_of_users(made: Any) -> None:
    world = made("grid")
    rows = {f"patient-{user}": {"item-1": 1.0} for user in range(USERS)}
    reply = world.entity("a", rows).answer(world.opening())
    assert b"patient" not in reply
    assert open_frame(reply).header["entry"] == f"fp/1 {world.manifest.run} ca978112ca1bbdca prototypes"  # of "a"


def test_prototypes_are_cut_to_the_bounds(made: Any) -> None:
    world = made("tree", epsilon=1.0)
    reply = open_frame(world.entity("a").answer(world.opening()))
    assert 0.0 <= reply.arrays["values"].min() <= reply.arrays["values"].max() <= 5.0
    assert reply.arrays["values"].shape == (3, ITEMS)


def test_more_prototypes_than_candidates_are_allowed(made: Any) -> None:
    world = made("grid", k=30, epsilon=0.1)
    assert world.federation().accept(world.entity("a", rows_of("a", 2)).answer(world.opening())).status == "accepted"


def test_a_projection_beyond_62_dimensions_works(made: Any) -> None:
    world = made("grid", dimension=70)
    assert world.federation().accept(world.entity("a").answer(world.opening())).status == "accepted"


def test_several_trials_cost_the_same(made: Any) -> None:
    world = made("grid", trials=3)
    entity = world.entity("a")
    assert entity.answer(world.opening()) is not None
    assert entity.statement().spent.amount == 8 * 10**9


def test_the_share_is_the_ledgers_and_the_mask_hides_it(made: Any) -> None:
    """What leaves under secure aggregation is not what was released; without it, it is."""
    world = made("moments", aggregation="none")
    reply = open_frame(world.entity("a").answer(world.opening()))
    with PrivacyLedger.open(world.folder / "a.db") as ledger:
        (kept,) = ledger.stored("users")
    assert kept.content.endswith(reply.arrays["steps"].tobytes())
    world = made("moments")
    run = world.federation()
    world.converse(run, until="popularity")
    reply = open_frame(world.entity("a").answer(run.outgoing()["a"]))
    with PrivacyLedger.open(world.folder / "a.db") as ledger:
        (kept,) = ledger.stored("users")
    share = kept.content[-8 * ITEMS :]
    assert share not in reply.arrays["body"].tobytes()


# --- stages -----------------------------------------------------------------------------------------------------------------------


def test_a_receiver_sends_nothing_and_gets_the_model(made: Any) -> None:
    world = made("tree", receivers=("tiny",))
    entity = world.entity("tiny", rows_of("tiny", 5))
    assert entity.answer(world.opening()) is None
    run = world.federation()
    world.converse(run)
    assert entity.answer(run.outgoing()["tiny"]) is None
    assert charges(entity) == 0
    assert entity.fit(rng=np.random.default_rng(0)).scores().shape == (5, ITEMS)
    with pytest.raises(InvalidParameter, match="receiver"):
        entity.release(world.opening())


def test_release_is_the_answer_to_a_manifest_of_prototypes(made: Any) -> None:
    world = made("grid")
    assert world.entity("a").release(world.opening()) == world.entity("a").answer(world.opening())
    world = made("moments")
    with pytest.raises(InvalidParameter):
        world.entity("a", no_rows).release(world.opening())


@pytest.mark.parametrize("aggregation", ["none", "secure"])
def test_another_message_for_an_answered_stage_is_refused(made: Any, aggregation: str) -> None:
    world = made("moments", aggregation=aggregation)
    run = world.federation()
    world.converse(run, until="gram")
    entity, sent = world.entity("a"), run.outgoing()["a"]
    first = entity.answer(sent)
    other = Step(world.manifest.run, "gram", "a", head=np.arange(20)).signed(world.key)
    for again in (False, True):
        entity = world.entity("a", again=again)
        with pytest.raises(Conflict, match="answered once"):
            entity.answer(other)
        assert entity.answer(sent) == first


def test_another_head_is_refused_even_if_the_journal_is_lost(made: Any) -> None:
    world = made("moments", aggregation="none")
    run = world.federation()
    world.converse(run, until="gram")
    entity = world.entity("a")
    first = entity.answer(run.outgoing()["a"])
    kept = world.folder / "a.db.runs" / world.manifest.run
    (kept / "gram").unlink()
    other = Step(world.manifest.run, "gram", "a", head=np.arange(20)).signed(world.key)
    with pytest.raises(Conflict):
        entity.answer(other)
    assert entity.answer(run.outgoing()["a"]) == first  # from the ledger, to the bit
    assert charges(entity) == 2


@pytest.mark.parametrize("lost", ["shares", "popularity", "unmask-popularity"])
def test_a_journal_that_came_back_from_a_backup_cannot_answer_twice(made: Any, lost: str) -> None:
    """Two answers of a secure sum for two sets of survivors can unmask a single entity."""
    world = made("moments", names=("a", "b", "c", "d"), fewest=3)
    run = world.federation()
    world.converse(run, until=lost)
    folder, backup = world.folder / "a.db.runs", world.folder / "backup"
    shutil.copytree(folder, backup)
    entity = world.entity("a")
    sent = run.outgoing()["a"]
    first = entity.answer(sent)
    shutil.rmtree(folder)
    shutil.copytree(backup, folder)
    if lost == "unmask-popularity":
        from tacit.messages.federated_prototypes_secure import pack

        other = Step(world.manifest.run, lost, "a", body=pack(dict.fromkeys("abc", b""))).signed(world.key)
        with pytest.raises(Conflict):
            entity.answer(other)
    if lost == "popularity":
        assert entity.answer(sent) == first


def test_an_entity_that_lost_its_journal_is_out_of_a_secure_run(made: Any) -> None:
    world = made("moments")
    entity = world.entity("a", budget=Budget(20.0, 1e-6))
    entity.answer(world.opening())
    shutil.rmtree(world.folder / "a.db.runs")
    with pytest.raises(Conflict, match="journal"):
        entity.answer(world.opening())  # its new keys are not those that it sent


@pytest.mark.parametrize("stage", ["shares", "popularity", "unmask-popularity", "gram", "unmask-gram"])
def test_whatever_a_coordinator_signs_is_refused_by_an_error_of_ours(made: Any, stage: str) -> None:
    """And the honest message is answered afterwards: nothing of it has stuck."""
    from tacit.messages.federated_prototypes_secure import pack

    world = made("moments")
    run = world.federation()
    world.converse(run, until=stage)
    entity = world.entity("a")
    before = charges(entity)
    rng = np.random.default_rng(3)
    honest = open_frame(run.outgoing()["a"])
    bodies = [b"", b"x", rng.bytes(200), pack({}), pack({"a": b""}), pack({"a": b"", "b": b"x", "c": rng.bytes(300)})]
    bodies += [pack({"zz": b"", "a": b"", "b": b""}), pack(dict.fromkeys("abcd", b""))]
    if "body" in honest.arrays:
        good = honest.arrays["body"].tobytes()
        bodies += [good[:-1], good + b"\x00", good[:5] + bytes([good[5] ^ 1]) + good[6:]]
    for body in bodies:
        with pytest.raises(TacitError):
            entity.answer(Step(world.manifest.run, stage, "a", body=body).signed(world.key))
    assert charges(entity) == before
    assert entity.answer(run.outgoing()["a"]) is not None


def test_stages_come_in_their_order(made: Any) -> None:
    world = made("moments", aggregation="none")
    step = Step(world.manifest.run, "gram", "a", head=np.arange(15)).signed(world.key)
    entity = world.entity("a")
    with pytest.raises(InvalidMessage, match="manifest"):
        entity.answer(step)
    entity.answer(world.opening())
    assert entity.answer(step) is not None
    secure = made("moments")
    entity = secure.entity("a")
    entity.answer(secure.opening())
    step = Step(secure.manifest.run, "gram", "a", head=np.arange(15)).signed(secure.key)
    with pytest.raises(InvalidMessage, match="earlier"):
        entity.answer(step)
    assert charges(entity) == 0


def test_a_step_for_another_entity_is_refused(made: Any) -> None:
    world = made("moments", aggregation="none")
    entity = world.entity("a")
    entity.answer(world.opening())
    for to in ("b", "nobody"):
        step = Step(world.manifest.run, "gram", to, head=np.arange(15)).signed(world.key)
        with pytest.raises(InvalidMessage, match="another entity"):
            entity.answer(step)


def test_steps_and_models_of_anybody_else_are_refused(made: Any) -> None:
    world = made("moments", aggregation="none")
    run = world.federation()
    world.converse(run, until="gram")
    entity = world.entity("a")
    forged = Step(world.manifest.run, "gram", "a", head=np.arange(20))
    with pytest.raises(InvalidMessage, match="signature"):
        entity.answer(forged.signed(key_of("b")))
    assert charges(entity) == 1
    world.converse(run)
    assert run.model is not None
    with pytest.raises(InvalidMessage, match="signature"):
        entity.answer(run.model.signed(key_of("b")))
    with pytest.raises(InvalidParameter, match="no model"):
        entity.shared()


def test_a_policy_that_became_stricter_stops_a_run_that_has_begun(made: Any) -> None:
    world = made("moments", aggregation="none")
    run = world.federation()
    world.converse(run, until="gram")
    entity = world.entity("a", again=True, policy=Policy(epsilon=1.0))
    with pytest.raises(GuaranteeRefused):
        entity.answer(run.outgoing()["a"])
    assert charges(entity) == 1
    assert entity.answer(world.opening()) is not None  # what was sent before is sent again


def test_after_the_model_nothing_more_is_answered(made: Any) -> None:
    world = made("moments", aggregation="none")
    run = world.federation()
    world.converse(run, until="gram", silent=())
    sent = run.outgoing()["a"]
    for name in "bc":
        run.accept(world.entity(name).answer(run.outgoing()[name]))
    run.advance()
    entity = world.entity("a")
    assert entity.answer(run.outgoing()["a"]) is None
    with pytest.raises(Conflict, match="over"):
        entity.answer(sent)
    assert charges(entity) == 1


def test_secrets_are_deleted_when_the_last_of_them_was_given(made: Any) -> None:
    world = made("moments")
    run = world.federation()
    world.converse(run, until="unmask-gram")
    folder = world.folder / "a.db.runs" / world.manifest.run

    def state_bytes() -> int:
        from tacit.entity.journal import Record

        return sum(len(Record.from_bytes(file.read_bytes()).state) for file in folder.iterdir())

    assert state_bytes() > 0
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in folder.iterdir())
    reply = world.entity("a").answer(run.outgoing()["a"])
    assert state_bytes() == 0
    assert world.entity("a", again=True).answer(run.outgoing()["a"]) == reply


def test_a_run_that_ends_early_deletes_its_secrets_too(made: Any) -> None:
    """No information at this budget: the model comes after the first sum."""
    world = made("moments", epsilon=0.2)
    run = world.federation()
    world.converse(run)
    assert run.model is not None
    assert not run.model.informed
    entity = world.entity("a")
    entity.answer(run.outgoing()["a"])
    from tacit.entity.journal import Record

    folder = world.folder / "a.db.runs" / world.manifest.run
    assert sum(len(Record.from_bytes(file.read_bytes()).state) for file in folder.iterdir()) == 0
    assert charges(entity) == 1


def test_an_entity_may_leave_a_run_that_was_given_up(made: Any) -> None:
    world = made("moments")
    run = world.federation()
    world.converse(run, until="popularity")
    entity = world.entity("a")
    entity.leave(world.manifest.run)
    from tacit.entity.journal import Record

    folder = world.folder / "a.db.runs" / world.manifest.run
    assert sum(len(Record.from_bytes(file.read_bytes()).state) for file in folder.iterdir()) == 0
    with pytest.raises(Conflict, match="over for this entity"):
        entity.answer(run.outgoing()["a"])
    assert charges(entity) == 0
    with pytest.raises(InvalidMessage):
        entity.leave("0" * 64)


def test_two_models_of_one_number_are_a_story_too_many(made: Any) -> None:
    world = made("tree")
    run = world.federation()
    world.converse(run)
    model = run.model
    assert model is not None
    assert model.factors is not None
    entity = world.entity("a")
    entity.answer(model.signed(world.key))
    entity.answer(model.signed(world.key))
    other = replace(model, factors=model.factors + 1)
    with pytest.raises(Conflict, match="hash"):
        entity.answer(other.signed(world.key))
    newer = replace(other, number=2)
    entity.answer(newer.signed(world.key))
    assert entity.shared()[1].hash == newer.hash
    entity.answer(model.signed(world.key))  # an older one changes nothing
    assert entity.shared()[1].hash == newer.hash


def test_a_message_of_an_unknown_kind_is_refused(made: Any) -> None:
    world = made("tree")
    entity = world.entity("a", no_rows)
    entity_messages = [sign(world.key, {"kind": kind, "run": world.manifest.run}) for kind in ("reply", None, 3)]
    for message in entity_messages:
        with pytest.raises(InvalidMessage):
            entity.answer(message)
    for run in (None, 3, "x", "../../etc"):
        with pytest.raises(InvalidMessage):
            entity.answer(sign(world.key, {"kind": "model", "run": run}))


def test_a_fit_needs_a_model(made: Any) -> None:
    world = made("tree")
    with pytest.raises(InvalidParameter, match="no model"):
        world.entity("a").fit()


@pytest.mark.parametrize(("mechanism", "own"), KINDS, ids=str)
def test_the_fit_scores_every_user_and_item_and_shows_nothing(made: Any, mechanism: str, own: dict[str, Any]) -> None:
    world = made(mechanism, **own)
    run = world.federation()
    world.converse(run)
    fit = world.entity("a").fit(run.outgoing()["a"], rng=np.random.default_rng(0))
    scores = fit.scores()
    assert scores.shape == (USERS, ITEMS)
    assert np.isfinite(scores).all()
    assert fit.report is not None
    assert "0." not in repr(fit) + repr(fit.report)
    assert world.entity("a", again=True).fit(
        run=world.manifest.run, rng=np.random.default_rng(0)
    ).scores() == pytest.approx(scores)


def test_nobodys_rows_can_be_fitted(made: Any) -> None:
    world = made("moments", aggregation="none")
    world.entity("a", np.zeros((0, ITEMS)))
    run = world.federation()
    world.converse(run)
    assert world.entity("a").fit(run.outgoing()["a"]).scores().shape == (0, ITEMS)


def test_a_ledger_without_a_place_of_its_own_needs_a_place_for_the_journal(made: Any, tmp_path: Path) -> None:
    world = made("tree")
    with PrivacyLedger.create(tmp_path / "shared.db") as ledger:
        with pytest.raises(InvalidParameter, match="journal"):
            Entity([], ledger, name="a", key=key_of("a"), coordinator=public_of(world.key), catalogue=world.catalogue)
        with Entity(
            rows_of("a"),
            ledger,
            name="a",
            key=key_of("a"),
            coordinator=public_of(world.key),
            catalogue=world.catalogue,
            budget=Budget(8.0, 1e-6),
            journal=tmp_path / "runs",
        ) as entity:
            assert entity.answer(world.opening()) is not None
        assert ledger.statement("users").charges == 1  # it was not closed with the entity


def test_an_entity_shows_its_name_and_nothing_else(made: Any) -> None:
    assert repr(made("tree").entity("a")) == "Entity('a')"


def test_the_manifest_asks_the_mechanisms_for_what_it_states(made: Any) -> None:
    grid = made("grid", l1_bound=7.0, l2_bound=4.0, dimension=3, depth=4, swaps=5, picked=6, seed=9, trials=2).manifest
    made_grid: Any = uploads.prototype_mechanism(grid)
    assert (made_grid.bounds.items_each, made_grid.bounds.value_bound) == (8, 5.0)
    assert (made_grid.bounds.l1_bound, made_grid.bounds.l2_bound, made_grid.k) == (7.0, 4.0, 3)
    assert (made_grid.p, made_grid.depth, made_grid.swaps, made_grid.picked) == (3, 4, 5, 6)
    assert (made_grid.seed, made_grid.trials, made_grid.users, made_grid.epsilon) == (9, 2, USERS, 8.0)
    assert tuple(vars(made_grid.shares).values()) == grid.shares
    tree = made("tree", depth=7, lloyd=1, seed=4, delta=1e-7).manifest
    made_tree: Any = uploads.prototype_mechanism(tree)
    assert (made_tree.depth, made_tree.lloyd, made_tree.seed, made_tree.delta) == (7, 1, 4, 1e-7)
    assert made_tree.epsilon == pytest.approx(8.0, rel=1e-9)


def test_the_noise_of_a_share_is_the_stated_one(made: Any) -> None:
    """Each share of a secure sum carries 1 / honest of the variance; alone, it carries all of it."""
    for own, honest in (
        ({"aggregation": "none"}, 1),
        ({"names": ("a", "b", "c", "d"), "fewest": 4, "colluding": 1}, 3),
    ):
        world = made("moments", **own)
        mechanisms: list[Any] = []
        for name in ("PopularityShare", "GramShare"):
            original = getattr(uploads, name)

            def kept(*arguments: Any, original: Any = original, mechanisms: list[Any] = mechanisms) -> Any:
                mechanisms.append(original(*arguments))
                return mechanisms[-1]

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(uploads, name, kept)
                uploads.upload_of(
                    world.manifest, "popularity" if name[0] == "P" else "gram", np.arange(5), SystemNoise()
                )
        assert [one.honest for one in mechanisms] == [honest, honest]
        assert [one.rho for one in mechanisms] == list(world.manifest.rhos)
        assert mechanisms[1].head == (0, 1, 2, 3, 4)


def test_refusals_have_stable_codes(made: Any) -> None:
    world = made("tree")
    assert refusal(world.entity("a", no_rows).answer, b"x") == "invalid-message"
