"""The manifest: every public constant stated once, its hash the run's id, and nothing in it that could not be run."""

import copy
import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.entity.federated_prototypes import prototype_mechanism
from tacit.errors import InvalidMessage, InvalidParameter
from tacit.guarantees import LossKind, epsilon_of_rho, rho_for
from tacit.guarantees.concentrated import epsilon_within
from tacit.mechanisms import inputs, partition, tree_prototypes
from tacit.mechanisms import tree_prototypes as hyperplane_tree
from tacit.mechanisms.samplers import integers
from tacit.messages import values
from tacit.messages.federated_prototypes import (
    Manifest,
    Member,
    Role,
    catalogue_hash,
    open_frame,
    public_of,
    role_for,
    sign,
)
from tacit.messages.federated_prototypes import terms as limits
from tests.unit.federated_world import ITEMS, PROTOTYPES, World, key_of

MECHANISMS = ("moments", "grid", "tree")
COORDINATOR = public_of(key_of("coordinator"))
FOUR = ("a", "b", "c", "d")


def manifest(mechanism: str = "moments", **own: Any) -> Manifest:
    return World(Path(), mechanism, **own).manifest


def message(changed: dict[str, Any], mechanism: str = "moments") -> bytes:
    """A manifest whose author did not check it, signed."""
    return sign(key_of("coordinator"), {**manifest(mechanism).to_json(), **changed})


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_what_was_signed_is_read_again(mechanism: str) -> None:
    made = manifest(mechanism, title="drugs", deadline="2026-12-01T12:00:00Z")
    read = Manifest.from_frame(open_frame(made.signed(key_of("coordinator"))), COORDINATOR)
    assert read == made
    assert read.run == made.run


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_constant_is_in_the_runs_id(mechanism: str) -> None:
    made = manifest(mechanism)
    others = {
        "title": "another",
        "users": 41,
        "seed": 1,
        "epsilon": 4.0,
        "min_entities": 1,
        "entities_each": 2,
        "deadline": "2026-12-01T12:00:00Z",
        "catalogue": "0" * 64,
        "coordinator": "0" * 64,
        "roster": (*made.roster, Member("z", "f" * 64)),
    }
    if mechanism == "moments":
        others |= {"part": 0.3, "delta": 1e-7}
    else:
        others |= {"k": 4, "items_each": 7, "value_bound": 4.0, "l1_bound": 3.0, "depth": 5, "rank": 3, "ridge": 0.1}
        others |= {"zeros_observed": True, "most_weight": 0.9, "regulariser": "sum", "l2_bound": 2.0}
        others |= {"swaps": 2, "picked": 3, "dimension": 3, "trials": 1} if mechanism == "grid" else {"lloyd": 1}
    runs = {replace(made, **{name: value}).run for name, value in others.items() if getattr(made, name) != value}
    assert len(runs) == sum(getattr(made, name) != value for name, value in others.items())
    assert made.run not in runs


def test_the_runs_id_stays_what_it_is() -> None:
    """A change of the format would change what older entities sign: it needs a new version of the protocol."""
    assert manifest().run == Manifest.from_json(json.loads(json.dumps(manifest().to_json()))).run
    assert len(manifest().run) == 64


# Rejected before any row is read: the constructor, and the same from a coordinator that did not check.
BAD = [
    *[(one, {"epsilon": bad}) for one in MECHANISMS for bad in (0.0, -1.0, math.inf, math.nan, "1", True)],
    *[(one, {"delta": bad}) for one in ("moments", "tree") for bad in (0.0, 1.0, -1e-6, 2.0, math.nan)],
    ("grid", {"delta": 1e-6}),
    *[(one, {"k": bad}) for one in ("grid", "tree") for bad in (0, -1, 1.5)],
    *[(one, {"items_each": bad}) for one in ("grid", "tree") for bad in (0, -3, ITEMS + 1)],
    *[(one, {"value_bound": bad}) for one in ("grid", "tree") for bad in (0.0, -1.0, math.inf, math.nan)],
    *[(one, {name: bad}) for one in ("grid", "tree") for name in ("l1_bound", "l2_bound") for bad in (0.0, math.inf)],
    ("grid", {"picked": ITEMS + 1}),
    ("grid", {"picked": 0}),
    ("grid", {"shares": (0.1, 0.1, 0.05, 0.2, 0.5, 0.0)}),
    ("grid", {"shares": (0.1, 0.1, 0.05, 0.2, 0.55 + 1e-8, 0.0)}),
    ("grid", {"shares": (0.3, -0.1, 0.05, 0.2, 0.55, 0.0)}),
    ("grid", {"shares": (0.1, 0.1, 0.05, 0.2, 0.55)}),
    ("grid", {"shares": (0.1, 0.1, 0.05, 0.2, 0.45, 0.1)}),  # a last choice without several trials
    ("grid", {"trials": 0}),
    ("grid", {"swaps": 0}),
    ("grid", {"dimension": 0}),
    ("grid", {"depth": 0}),
    ("tree", {"lloyd": -1}),
    ("tree", {"swaps": 3}),  # another mechanism's
    ("moments", {"k": 3}),
    *[("moments", {"part": bad}) for bad in (0.0, 1.0, -0.1, 1.5, math.nan)],
    ("moments", {"fewest": 1, "colluding": 1}),  # no noise that nobody knows
    ("moments", {"fewest": 2, "colluding": 2}),
    ("moments", {"colluding": 0}),  # other entities are adversaries here
    ("moments", {"fewest": 4}),  # of three
    ("moments", {"aggregation": "none", "fewest": 2}),
    ("moments", {"aggregation": "blind"}),
    *[(one, {"users": bad}) for one in MECHANISMS for bad in (0, 1.5, None)],
    ("moments", {"mechanism": "magic"}),
    ("moments", {"entities_each": 0}),
    ("moments", {"entities_each": 4}),
    ("moments", {"seed": -1}),
    ("moments", {"min_entities": 4}),
    ("moments", {"catalogue": "abc"}),
    ("moments", {"coordinator": "abc"}),
    ("moments", {"deadline": "tomorrow"}),
    ("moments", {"items": 0}),
    ("moments", {"roster": ()}),
    *[
        (one, {name: bad})
        for one in ("grid", "tree")
        for name, bad in (("rank", 0), ("ridge", 0.0), ("most_weight", 1.5))
    ],
    ("tree", {"k": 100_000}),  # more than a ledger keeps
    # What a 32-bit float cannot carry, or what the mechanism would refuse at every entity once the run is open.
    *[
        (one, {"value_bound": bad})
        for one in ("grid", "tree")
        for bad in (1e-308, 1e-46, 2.0**-111, 2.0**128, 1e39, 1e308)
    ],
    *[(one, {"depth": bad}) for one in ("grid", "tree") for bad in (17, 64)],
    *[(one, {name: bad}) for one in ("grid", "tree") for name in ("l1_bound", "l2_bound") for bad in (1e-300, 5e-5)],
    *[(one, {"epsilon": 1e-12}) for one in ("grid", "tree")],
    ("grid", {"dimension": (1 << 14) + 1}),
    ("grid", {"users": (1 << 28) + 1}),
    ("grid", {"k": (1 << 16) + 1}),
    ("tree", {"k": (1 << 14) + 1}),
]


@pytest.mark.parametrize(("mechanism", "changed"), BAD, ids=str)
def test_constants_that_cannot_be_run_are_refused(mechanism: str, changed: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        replace(manifest(mechanism), **changed)


@pytest.mark.parametrize(("mechanism", "changed"), [one for one in BAD if "roster" not in one[1]], ids=str)
def test_so_are_those_that_a_coordinator_did_not_check(mechanism: str, changed: dict[str, Any]) -> None:
    told = {name: list(value) if isinstance(value, tuple) else value for name, value in changed.items()}
    if any(isinstance(value, float) and not math.isfinite(value) for value in told.values()):
        return  # no frame can carry it
    with pytest.raises(InvalidMessage):
        Manifest.from_frame(open_frame(message(told, mechanism)), COORDINATOR)


def test_a_manifest_of_another_protocol_is_told_which_one_this_is() -> None:
    with pytest.raises(InvalidMessage, match="expected a manifest of the protocol fp/1"):
        Manifest.from_frame(open_frame(message({"version": "fp/2"})), COORDINATOR)


@pytest.mark.parametrize(
    "changed",
    [
        {"version": "fp/2"},
        {"kind": "step"},
        {"more": 1},
        {"epsilon": 8},  # a second way to write 8.0 would be a second id
        {"fewest": None},  # what is left open would be decided by each reader
        {"roster": [{"name": "a", "key": "0" * 64}]},
        {"roster": "a"},
        {"roster": [{"name": "A!", "key": "0" * 64, "role": "contributor"}]},
        {"roster": [{"name": "a", "key": "0", "role": "contributor"}]},
        {"roster": [{"name": "a", "key": "0" * 64, "role": "king"}]},
        {"shares": [1]},
    ],
    ids=str,
)
def test_a_manifest_states_everything_in_one_way(changed: dict[str, Any]) -> None:
    with pytest.raises(InvalidMessage):
        Manifest.from_frame(open_frame(message(changed)), COORDINATOR)


ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4),
    lambda one: st.lists(one, max_size=3) | st.dictionaries(st.text(max_size=3), one, max_size=2),
    max_leaves=5,
)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(MECHANISMS), st.sampled_from(sorted(manifest().to_json())), ANY)
def test_whatever_a_coordinator_signs_is_a_manifest_or_refused(mechanism: str, name: str, value: Any) -> None:
    frame = open_frame(message({name: value}, mechanism))
    try:
        read = Manifest.from_frame(frame, COORDINATOR)
    except InvalidMessage:
        return
    assert read.to_json() == frame.header


def test_a_manifest_of_another_coordinator_is_refused() -> None:
    made = manifest()
    for data in (made.signed(key_of("a")), sign(key_of("a"), {**made.to_json(), "coordinator": COORDINATOR.hex()})):
        with pytest.raises(InvalidMessage, match="signature"):
            Manifest.from_frame(open_frame(data), COORDINATOR)
    with pytest.raises(InvalidMessage, match="another coordinator"):
        Manifest.from_frame(open_frame(made.signed(key_of("a"))), public_of(key_of("a")))


def test_how_many_digits_are_expected_is_said_once() -> None:
    with pytest.raises(InvalidParameter, match="expected 64 hexadecimal digits"):
        replace(manifest(), catalogue="abc")
    with pytest.raises(InvalidMessage, match="expected 2 to 8 hexadecimal digits"):
        values.hexadecimal("xyz", "$", least=2, most=8)


def test_two_entities_with_one_name_or_one_key_are_refused() -> None:
    one, other = Member("a", "0" * 64), Member("b", "1" * 64)
    for roster in (
        (one, replace(other, name="a")),
        (one, replace(other, key="0" * 64)),
        (replace(one, role="receiver"),),
    ):
        with pytest.raises(InvalidParameter):
            replace(manifest(), roster=roster, min_entities=1)


@pytest.mark.parametrize("name", ["", "../x", "A", "a/b", ".a", "a" * 65, "ü", 3])
def test_a_name_can_stand_in_a_files_name(name: Any) -> None:
    with pytest.raises(InvalidParameter):
        Member(name, "0" * 64)


def test_the_stages_follow_from_the_mechanism_and_the_aggregation() -> None:
    assert manifest("grid").stages == manifest("tree").stages == ("prototypes",)
    assert manifest(aggregation="none").stages == ("popularity", "gram")
    assert manifest().stages == ("keys", "shares", "popularity", "unmask-popularity", "gram", "unmask-gram")


def test_honest_shares_are_those_that_are_left_and_do_not_collude() -> None:
    assert manifest(names=FOUR, fewest=4, colluding=1).honest == 3
    assert manifest(names=FOUR, fewest=4, colluding=2).honest == 2
    assert manifest(aggregation="none").honest == 1
    assert manifest("tree").honest == 1


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 10.0])
@pytest.mark.parametrize("part", [0.15, 0.3, 0.5])
def test_the_two_uploads_cost_what_epsilon_allows_to_12_digits(epsilon: float, part: float) -> None:
    first, second = manifest(epsilon=epsilon, part=part).rhos
    allowed = rho_for(epsilon, 1e-6)
    assert 0.0 <= allowed - (Fraction(repr(first)) + Fraction(repr(second))) <= 1e-12
    assert first == pytest.approx(part * allowed, abs=2e-12)
    assert {len(repr(one).partition(".")[2]) <= 12 or "e" in repr(one) for one in (first, second)} == {True}


@pytest.mark.parametrize("epsilon", [0.05, 0.1, 1.0, 4.0, 10.0])
def test_a_tree_fits_into_a_budget_of_the_same_epsilon(epsilon: float) -> None:
    least = epsilon_within(epsilon, 1e-6)
    assert epsilon * (1.0 - 1e-5) <= least <= epsilon
    spent, allowed = rho_for(least, 1e-6), rho_for(epsilon, 1e-6)
    assert math.ceil(Fraction(repr(spent)) * 10**12) <= math.floor(Fraction(repr(allowed)) * 10**12)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_user_of_one_entity_is_promised_epsilon(mechanism: str) -> None:
    promised = manifest(mechanism, epsilon=1.0).guarantee
    assert (promised.epsilon, promised.delta) == (1.0, 0.0 if mechanism == "grid" else 1e-6)
    assert "no user is in two entities" in promised.assumes


def test_a_user_of_two_entities_is_promised_the_sum_or_the_square_under_one_noise() -> None:
    grid = manifest("grid", epsilon=1.0, entities_each=2).guarantee
    assert (grid.epsilon, grid.delta) == (2.0, 0.0)
    rho = rho_for(1.0, 1e-6)
    for made, times in (
        (manifest("tree", epsilon=1.0, entities_each=2), 2),
        (manifest(epsilon=1.0, entities_each=2), 4),
    ):
        promised = made.guarantee
        assert promised.loss is not None
        assert promised.loss.kind is LossKind.ZCDP
        assert promised.loss.value == pytest.approx(times * rho, rel=1e-12)
        assert promised.loss.value >= times * rho
        assert promised.epsilon == pytest.approx(epsilon_of_rho(times * rho, 2e-6))
        assert promised.delta == pytest.approx(2e-6)
    open_sums = manifest(epsilon=1.0, entities_each=2, aggregation="none").guarantee
    assert open_sums.loss is not None
    assert open_sums.loss.value == pytest.approx(2 * rho, rel=1e-12)


def test_a_secure_sum_says_what_it_assumes() -> None:
    assumed = manifest(names=FOUR, fewest=4).guarantee.assumes
    assert "only the sum of the shares is seen" in assumed
    assert "at least 3 shares in it have noise that the adversary does not know" in assumed
    assert not any("share" in one for one in manifest(aggregation="none").guarantee.assumes)


def test_a_run_that_can_tell_nothing_is_warned_of() -> None:
    """The paper's own setting on MovieLens: about 12 users for each prototype against a noise of 15,000."""
    paper = manifest("grid", epsilon=0.1, k=20, items_each=8)
    assert any("no information" in warning for warning in paper.warnings())
    assert any("too small" in warning for warning in paper.warnings())
    rich = replace(manifest("tree", epsilon=8.0, k=1), users=1_000_000)
    assert rich.warnings() == ()
    assert any("no information" in warning for warning in replace(manifest(epsilon=0.01), users=1).warnings())
    assert manifest(epsilon=8.0).warnings() == ()


@pytest.mark.parametrize("items", [40, 9066])
def test_moments_are_warned_of_where_no_item_could_stand_out(items: int) -> None:
    """Five entities of about 130 users: at epsilon .05 an item that all 650 have would be lost in the noise."""
    five = replace(manifest(epsilon=0.05, names=tuple("abcde")), items=items, users=130)
    (warning,) = five.warnings()
    assert "no information at this budget" in warning
    assert "Raise epsilon, or find more users" in warning
    assert replace(five, epsilon=4.0).warnings() == ()
    alone = replace(five, epsilon=0.5, aggregation="none", fewest=None, colluding=None)
    assert "take secure sums" in alone.warnings()[0]
    assert replace(five, epsilon=0.5).warnings() == ()


def test_the_warning_is_at_the_bound_of_a_unit_row() -> None:
    """No rows give ``needed`` items more than users / sqrt(needed) each; the users that it asks for are just enough for that."""
    poor = replace(manifest(epsilon=0.05, names=tuple("abcde")), items=9066, users=130)
    enough = int(poor.warnings()[0].rsplit("several times ", 1)[1].split(" ")[0].replace(",", ""))
    assert replace(poor, users=enough - 1).warnings() != ()
    assert replace(poor, users=enough + 1).warnings() == ()
    sd = math.sqrt(5 / poor.honest / (2 * poor.rhos[0]))
    needed = 10 + 0.004 * 9066
    assert 5 * (enough - 1) / math.sqrt(needed) <= 3 * sd < 5 * (enough + 1) / math.sqrt(needed)


def test_the_limits_of_prototypes_are_those_of_their_mechanisms() -> None:
    """Messages reach no mechanism: what they know of one is written twice, and is the same here."""
    assert limits.STEPS == inputs.VALUE_STEPS
    assert limits.MOST_DEPTH == hyperplane_tree.MOST_DEPTH
    assert limits.MOST_DIMENSIONS == partition.MOST_DIMENSIONS
    assert limits._LONGEST == tree_prototypes._LONGEST
    assert limits._COUNTS == tree_prototypes._COUNTS
    integers.require_drawable_discrete_laplace(limits._WIDEST)
    with pytest.raises(InvalidParameter):
        integers.require_drawable_discrete_laplace(limits._WIDEST + Fraction(1, 23))


def drawable(made: Manifest) -> bool:
    try:
        prototype_mechanism(made)
    except InvalidParameter:
        return False
    return True


@pytest.mark.parametrize(
    ("mechanism", "name", "below", "above"),
    [
        ("grid", "depth", 16, 17),
        ("tree", "depth", 16, 17),
        ("grid", "dimension", 1 << 14, (1 << 14) + 1),
        ("grid", "users", 1 << 28, (1 << 28) + 1),
        ("grid", "k", 1 << 16, (1 << 16) + 1),
        ("tree", "k", 1 << 14, (1 << 14) + 1),
        *[(one, bound, 5.0 / 65536, 4.99 / 65536) for one in ("grid", "tree") for bound in ("l1_bound", "l2_bound")],
    ],
)
def test_both_sides_of_a_limit_are_seen_alike_by_manifest_and_mechanism(
    mechanism: str, name: str, below: Any, above: Any
) -> None:
    made = manifest(mechanism)
    for value in (below, above):
        unchecked = copy.copy(made)
        object.__setattr__(unchecked, name, value)
        assert drawable(unchecked) is (value == below)
    try:
        assert replace(made, **{name: below})
    except InvalidParameter as problem:  # another limit comes first: that of a reply's bytes
        assert name == "k" and "bytes" in str(problem)  # noqa: PT017, PT018
    with pytest.raises(InvalidParameter):
        replace(made, **{name: above})


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(("grid", "tree")),
    st.floats(-13.0, 8.0),
    st.floats(-40.0, 40.0),
    st.one_of(st.none(), st.floats(-8.0, 4.0)),
    st.one_of(st.none(), st.floats(-8.0, 4.0)),
    st.integers(1, 18),
    st.integers(0, 4),
)
def test_a_manifest_is_refused_where_its_mechanism_is_and_only_there(
    mechanism: str, epsilon: float, bound: float, l1: float | None, l2: float | None, depth: int, times: int
) -> None:
    made = manifest(mechanism)
    value = 10.0**bound
    changed: dict[str, Any] = {"epsilon": 10.0**epsilon, "value_bound": value, "depth": depth}
    changed |= {
        "l1_bound": None if l1 is None else value * 10.0**l1,
        "l2_bound": None if l2 is None else value * 10.0**l2,
    }
    changed |= {"trials": times + 1, "shares": None} if mechanism == "grid" else {"lloyd": times}
    unchecked = copy.copy(made)
    for name, one in (changed | ({"shares": ()} if mechanism == "grid" else {})).items():
        object.__setattr__(unchecked, name, one)
    carried = limits.LEAST_VALUE <= value <= limits.MOST_VALUE
    try:
        checked = replace(made, **changed)
    except InvalidParameter:
        assert not (carried and drawable(unchecked))
    else:
        assert drawable(checked)
        assert np.isfinite(np.float32(value))
        assert np.float32(value) / np.float32(limits.STEPS) >= np.finfo(np.float32).tiny


def test_rows_of_a_tree_are_short_enough_for_exact_products() -> None:
    """2^49 squared steps: 2^17 items of the largest value each."""
    made = replace(manifest("tree", k=1), items=1 << 18, items_each=1 << 17)
    assert drawable(made)
    with pytest.raises(InvalidParameter, match="l2_bound"):
        replace(made, items_each=(1 << 17) + 1)
    assert drawable(replace(made, items_each=(1 << 17) + 1, l2_bound=10.0))


def test_what_a_coordinator_could_not_combine_is_refused() -> None:
    """Sparse replies of 2 MB each, of which the table would have 2.5 x 10^9 cells for every entity."""
    small = manifest("grid", k=1000, picked=8)
    with pytest.raises(InvalidParameter, match="the most that a coordinator combines"):
        replace(small, items=500_000, k=5000, picked=50)
    assert limits.MOST_CELLS * 8 <= 1 << 29
    items = limits.MOST_CELLS // (3 * 1000)
    assert replace(small, items=items).items == items
    with pytest.raises(InvalidParameter, match="combines"):
        replace(small, items=items + 1)


def test_too_small_an_entity_receives_only_by_a_public_rule() -> None:
    assert role_for(users=99, k=5) is Role.RECEIVER
    assert role_for(users=100, k=5) is Role.CONTRIBUTOR


def test_the_hash_of_a_catalogue_tells_ids_and_order() -> None:
    hashes = {catalogue_hash(one) for one in (["a", "b"], ["b", "a"], ["a"], [1, 2], ["1", "2"])}
    assert len(hashes) == 5
    for wrong in ([], ["a", "a"], ["a", 1], [1.5]):
        with pytest.raises(InvalidParameter):
            catalogue_hash(wrong)


def test_defaults_are_those_of_public_numbers() -> None:
    made = manifest("grid", k=50, **{name: PROTOTYPES[name] for name in ("items_each", "value_bound")})
    assert (made.dimension, made.depth, made.swaps, made.trials, made.picked) == (2, 2, 20, 1, 8)
    large = replace(made, users=100_000, dimension=None, depth=None)
    assert (large.dimension, large.depth) == (5, 8)
    trials = manifest("grid", trials=3)
    assert trials.shares == (0.1, 0.1, 0.05, 0.2, 0.45, 0.1) or trials.shares == pytest.approx(
        (0.1, 0.1, 0.05, 0.2, 0.45, 0.1)
    )
    assert (manifest("tree").depth, manifest("tree").lloyd, manifest("tree").delta) == (12, 2, 1e-6)
