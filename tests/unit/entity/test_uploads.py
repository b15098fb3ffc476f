"""What an entity is charged for its part in a run, and what its charge assumes."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tacit.entity.federated_prototypes import all_guarantees
from tacit.errors import BudgetExhausted
from tacit.guarantees import epsilon_of_rho, rho_for
from tacit.ledger import Budget
from tacit.mechanisms import ReplayedNoise, SystemNoise
from tests.unit.federated_world import World, no_rows

KINDS: list[tuple[str, dict[str, Any]]] = [
    ("grid", {}),
    ("tree", {}),
    ("moments", {"aggregation": "none"}),
    ("moments", {"aggregation": "secure"}),
]


@pytest.fixture
def world(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    mechanism, own = request.param
    found = World(tmp_path, mechanism, **own)
    yield found
    found.close()


def secure(each: int) -> tuple[str, dict[str, Any]]:
    return "moments", {"aggregation": "secure", "entities_each": each}


@pytest.mark.parametrize("world", [secure(1), secure(2), secure(3)], indirect=True)
def test_the_ledgers_of_a_user_in_q_entities_add_up_to_what_the_run_costs_her(world: World) -> None:
    q = world.manifest.entities_each
    rho = rho_for(8.0, 1e-6)
    budget = Budget(epsilon_of_rho(q * rho * (1 + 1e-9), 1e-6), 1e-6)
    for name in world.names:
        world.entity(name, budget=budget)
    run = world.federation()
    world.converse(run)
    spent = [world.entity(name).statement().spent.amount for name in world.names[:q]]
    loss = world.manifest.guarantee.loss
    assert loss is not None
    assert len(set(spent)) == 1
    # Each charge is rounded to a unit of 10^-12.
    assert abs(sum(spent) - Fraction(loss.value) * 10**12) <= 2 * q
    assert sum(spent) == pytest.approx(q**2 * rho * 1e12, rel=1e-9)


@pytest.mark.parametrize("world", [secure(2)], indirect=True)
def test_there_must_be_room_for_the_users_of_q_entities(world: World) -> None:
    """A budget that would hold the run of one entity's own users does not hold this one; twice its rho does."""
    once, twice = rho_for(8.0, 1e-6), 2.0 * rho_for(8.0, 1e-6)
    for rho in (once * 1.001, twice * 0.999):
        entity = world.entity(
            "a", no_rows, again=True, budget=Budget(epsilon_of_rho(rho, 1e-6), 1e-6), subject=str(rho)
        )
        with pytest.raises(BudgetExhausted, match="Nothing was charged"):
            entity.answer(world.opening())
        assert entity.statement().charges == 0
    entity = world.entity("a", again=True, budget=Budget(epsilon_of_rho(twice * 1.001, 1e-6), 1e-6), subject="enough")
    assert entity.answer(world.opening()) is not None


@pytest.mark.parametrize(
    "world", [(mechanism, {**own, "entities_each": 3}) for mechanism, own in KINDS[:3]], indirect=True
)
def test_under_noise_of_its_own_each_entity_charges_its_own_release(world: World) -> None:
    """The q ledgers add up to q epsilon, or q rho, by themselves."""
    alone = World(world.folder, world.manifest.mechanism.value, **_aggregation(world))
    for one, other in zip(
        all_guarantees(world.manifest, SystemNoise()).values(),
        all_guarantees(alone.manifest, SystemNoise()).values(),
        strict=True,
    ):
        assert (one.epsilon, one.delta, one.loss) == (other.epsilon, other.delta, other.loss)


def _aggregation(world: World) -> dict[str, Any]:
    told = world.manifest.aggregation
    return {} if told is None else {"aggregation": told.value}


@pytest.mark.parametrize("each", [1, 2])
@pytest.mark.parametrize(("mechanism", "own"), KINDS, ids=str)
def test_every_charge_says_in_how_many_entities_a_user_is(
    tmp_path: Path, mechanism: str, own: dict[str, Any], each: int
) -> None:
    world = World(tmp_path, mechanism, entities_each=each, **own)
    said = "no user is in two entities" if each == 1 else "no user is in more than 2 entities"
    for guarantee in all_guarantees(world.manifest, SystemNoise()).values():
        assert said in guarantee.assumes
        assert world.manifest.guarantee.assumes <= guarantee.assumes
    budget = Budget(40.0, 0.0 if mechanism == "grid" else 1e-6)
    for name in world.names:
        world.entity(name, budget=budget)
    run = world.federation()
    world.converse(run)
    assert said in world.entity("a").statement().promised.assumes
    world.close()


@pytest.mark.parametrize("world", [*KINDS, secure(2)], ids=str, indirect=True)
def test_replayed_noise_promises_nothing_whatever_is_assumed(world: World) -> None:
    for guarantee in all_guarantees(world.manifest, ReplayedNoise(1)).values():
        assert guarantee.promises_nothing
        assert not any("entities" in reason for reason in guarantee.assumes)
