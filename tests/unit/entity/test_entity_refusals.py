"""What an entity refuses before it reads a row: bad constants, strangers, what its policy or a deadline rules out."""

import math
from dataclasses import replace
from typing import Any

import pytest

from tacit.entity import Entity, Policy
from tacit.errors import (
    GuaranteeRefused,
    InvalidMessage,
    InvalidParameter,
)
from tacit.ledger import Budget
from tacit.messages.federated_prototypes import public_of, sign
from tests.unit.entity.runs import KINDS, CountedNoise, charges
from tests.unit.federated_world import ITEMS, World, key_of, no_rows

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
        budget=Budget(8.0, 1e-6),
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
