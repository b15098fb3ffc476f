"""Whom an entity takes part with: the coordinator writes the roster, and could fill it with entities of its own."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tacit.entity import Policy
from tacit.errors import GuaranteeRefused, InvalidParameter
from tacit.messages.federated_prototypes import public_of
from tests.unit.federated_world import World, key_of, no_rows

NAMES = tuple("abcdefghij")  # ten contributors: 9 at least are left, one may collude


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Callable[..., World]]:
    worlds = []

    def make(**own: Any) -> World:
        worlds.append(World(tmp_path, "moments", **{"names": NAMES, **own}))
        return worlds[-1]

    yield make
    for world in worlds:
        world.close()


def peers(names: str) -> dict[str, str]:
    return {name: public_of(key_of(name)).hex() for name in names}


def joins(world: World, policy: Policy) -> bool:
    entity = world.entity("a", no_rows, again=True, policy=policy)
    try:
        entity.answer(world.opening())
    except GuaranteeRefused:
        assert entity.statement().charges == 0
        assert not (world.folder / "a.db.runs").exists()
        return False
    return True


def test_a_roster_of_invented_entities_is_refused(made: Callable[..., World]) -> None:
    world = made()
    assert (world.manifest.fewest, world.manifest.colluding) == (9, 1)
    assert not joins(world, Policy(peers={}))
    assert not joins(world, Policy(peers=peers("bcdefgh")))  # 8 with this one: two may be the coordinator's
    assert joins(world, Policy(peers=peers("bcdefghi")))


def test_all_but_the_colluding_must_be_known_also_where_fewer_may_be_left(made: Callable[..., World]) -> None:
    """Of 20, 18 are left: with two invented among them only 16 would be real, where 17 are counted on."""
    names = tuple("abcdefghijklmnopqrst")
    world = made(names=names)
    assert (world.manifest.fewest, world.manifest.honest) == (18, 17)
    assert not joins(world, Policy(peers=peers("".join(names[1:18]))))
    assert joins(world, Policy(peers=peers("".join(names[1:19]))))


def test_a_name_with_another_key_is_not_the_peer(made: Callable[..., World]) -> None:
    world = made()
    wrong = {**peers("bcdefgh"), "i": public_of(key_of("somebody else")).hex()}
    entity = world.entity("a", no_rows, policy=Policy(peers=wrong))
    with pytest.raises(GuaranteeRefused, match="8 of the 10 contributors"):
        entity.answer(world.opening())


def test_a_key_under_another_name_is_not_the_peer(made: Callable[..., World]) -> None:
    known = peers("bcdefghi")
    moved = {("j" if name == "i" else name): key for name, key in known.items()}
    assert not joins(made(), Policy(peers=moved))


def test_the_number_may_be_said(made: Callable[..., World]) -> None:
    world = made()
    assert not joins(world, Policy(peers=peers("bc"), known=4))
    assert joins(world, Policy(peers=peers("bc"), known=3))


def test_receivers_are_not_counted(made: Callable[..., World]) -> None:
    world = made(receivers=("x", "y"))
    assert not joins(world, Policy(peers=peers("bcdefgh") | peers("x") | peers("y")))


def test_without_secure_sums_each_entitys_own_noise_suffices(made: Callable[..., World]) -> None:
    world = made(aggregation="none")
    assert not joins(world, Policy(peers=peers("b"), known=3))
    with pytest.raises(AssertionError, match="rows were read"):  # allowed: the release begins
        joins(world, Policy(peers={}))


def test_peers_that_became_fewer_stop_a_run_that_has_begun(made: Callable[..., World]) -> None:
    world = made()
    run = world.federation()
    world.converse(run, until="popularity")
    entity = world.entity("a", no_rows, again=True, policy=Policy(peers=peers("bc")))
    with pytest.raises(GuaranteeRefused):
        entity.answer(run.outgoing()["a"])


@pytest.mark.parametrize(
    "wrong",
    [
        {"peers": ["b"]},
        {"peers": {"b": "00"}},
        {"peers": {"b": 3}},
        {"peers": {"B!": "0" * 64}},
        {"peers": {}, "known": 0},
        {"known": 3},
    ],
    ids=str,
)
def test_peers_are_names_and_public_keys(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        Policy(**wrong)


def test_peers_do_not_change_with_the_mapping_they_came_from(made: Callable[..., World]) -> None:
    mine = peers("bcdefghi")
    policy = Policy(peers=mine)
    mine.clear()
    assert joins(made(), policy)
