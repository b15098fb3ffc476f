"""The plan: which route, why, and figures that are those of the theorems."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.curator import Plan, Route, plan
from tacit.curator.slate_plan import together
from tacit.curator.slate_routes import Options, promise
from tacit.errors import BudgetExhausted, InvalidParameter
from tacit.guarantees import ONE_USER, LossKind
from tacit.guarantees.slate_bounds import natural_epsilon, published_epsilon, range_each
from tacit.ledger import Accounting, Budget, PrivacyLedger
from tacit.mechanisms import NaturalSlate, TemperedSlate

MOVIELENS = 3_883


def planned(**parts: Any) -> Plan:
    return plan(**{"items": MOVIELENS, **parts})


@pytest.mark.parametrize(
    ("asked", "route"),
    [
        ({}, Route.TEMPERED),
        ({"slates": 10}, Route.TEMPERED),  # a tenth of epsilon each
        ({"slates": 11}, Route.COUNTS),
        ({"slates": None}, Route.COUNTS),
        ({"slates": 40, "delta": 0.1, "accounting": "zcdp"}, Route.TEMPERED),
        ({"similarity": "private"}, Route.NATURAL),
        ({"similarity": "private", "slates": 1_000, "delta": 1e-6}, Route.NATURAL),
        ({"similarity": "private", "slates": None, "delta": 1e-6, "items": 500}, Route.KERNEL),
        ({"rank": 9}, Route.TOP_K),  # features that cannot tell ten items apart
        ({"rank": 10}, Route.TEMPERED),
    ],
)
def test_the_route_follows_from_how_many_slates_and_whether_similarity_is_public(
    asked: dict[str, Any], route: Route
) -> None:
    found = planned(**asked)
    assert found.route is route
    assert ("public" if "private" not in asked.values() else "private") in found.why
    assert str(found).startswith(route.value)


def test_one_natural_slate_costs_what_the_theorem_says() -> None:
    found = planned(similarity="private")
    mechanism = NaturalSlate(MOVIELENS, 10, found.epsilon, sampler="hybrid")
    assert planned(similarity="private", sampler="exact").each == NaturalSlate(MOVIELENS, 10, 1.0).guarantee
    assert (
        planned(similarity="private", items=10_001).each == NaturalSlate(10_001, 10, 1.0).guarantee
    )  # too many for floats
    assert found.epsilon == found.each.epsilon == found.total.epsilon == 1.0
    assert natural_epsilon(1.0, mechanism.sigma) == pytest.approx(1.0, abs=1e-9)
    assert found.each == mechanism.guarantee
    assert found.each.loss is not None
    assert found.each.loss.kind is LossKind.BOUNDED_RANGE
    assert "sigma = 0.582" in found.why
    assert "124.6" in found.why  # what the paper's bound asks for


def test_many_slates_are_calibrated_by_the_range_of_their_losses() -> None:
    found = planned(similarity="private", slates=1_000, delta=1e-6)
    best = range_each(1_000, 1.0, 1e-6)
    assert best == pytest.approx(0.013959, abs=5e-7)
    assert best - 1e-9 <= found.epsilon <= best  # below it only by the units that a ledger counts in
    assert found.total.delta == 1e-6
    assert 0.99999 < found.total.epsilon <= 1.0
    assert "by the range of their losses" in found.why


def test_a_hundred_slates_of_a_tenth_cost_less_than_ten() -> None:
    each = NaturalSlate(MOVIELENS, 10, 0.1).guarantee
    assert together(each, 100, 1e-6).epsilon == pytest.approx(2.419093, abs=5e-7)
    assert together(each, 100, 0.0).epsilon == pytest.approx(10.0)
    assert together(each, 2, 1e-6).epsilon == pytest.approx(0.2)  # where adding up is better it is taken


def test_few_slates_at_a_delta_share_epsilon_where_that_gives_more() -> None:
    assert planned(similarity="private", slates=2, delta=1e-6).epsilon == 0.5
    ledgers = planned(similarity="private", slates=2, delta=1e-6, accounting="zcdp")
    assert ledgers.epsilon < 0.5  # a ledger that adds up rhos has no room for the others
    assert 2 * ledgers.epsilon**2 / 8 == pytest.approx(1_000 * 0.01395869**2 / 8, rel=1e-3)


@pytest.mark.parametrize("route", [one for one in Route if one is not Route.PUBLISHED])
@pytest.mark.parametrize("accounting", [Accounting.BASIC, Accounting.ZCDP])
@pytest.mark.parametrize("slates", [1, 3, 7])
def test_all_planned_slates_have_room_in_a_ledger_of_that_budget_and_not_one_more(
    tmp_path: Path, route: Route, accounting: Accounting, slates: int
) -> None:
    options = {"items": 200, "k": 5, "epsilon": 0.7, "delta": 1e-5, "route": route, "threshold": 10}
    found = plan(**options, slates=slates, accounting=accounting)  # type: ignore[arg-type]
    with PrivacyLedger.create(tmp_path / "ledger.db") as ledger:
        ledger.enrol("users", Budget(0.7, 1e-5), protects=ONE_USER, accounting=accounting)
        for number in range(1 if found.once else slates):
            ledger.charge("users", f"slate {number}", found.each)
        with pytest.raises(BudgetExhausted):
            ledger.charge("users", "one more", found.each)


def test_scores_reach_as_far_as_forty_nats_where_no_range_is_given() -> None:
    found = planned(epsilon=1.0)
    assert Options(MOVIELENS).high(found.epsilon) == 400.0
    assert found.epsilon == found.each.epsilon == 1.0
    assert "400 likes" in found.why
    assert "not spent" not in found.why
    for epsilon in (0.1, 0.2, 0.3, 1 / 3, 0.7, 2.0, 1000.0):
        high = Options(MOVIELENS).high(epsilon)
        assert epsilon / 10 * high <= 40.0 or high == 1.0


def test_a_range_that_is_too_wide_lowers_epsilon_and_says_so() -> None:
    found = planned(most_likes=2_750.0)
    assert found.epsilon == found.each.epsilon == found.total.epsilon
    assert found.epsilon == pytest.approx(40 * 10 / 2_750, rel=1e-12)
    assert "275 nats" in found.why
    assert "the rest is not spent" in found.why
    assert planned(most_likes=2_750.0, epsilon=0.1).epsilon == 0.1
    assert "not spent" not in planned(most_likes=2_750.0, epsilon=0.1).why


def test_a_slate_of_all_items_costs_nothing() -> None:
    for route in (Route.NATURAL, Route.TEMPERED, Route.FEATURE):
        found = plan(items=10, route=route)
        assert found.each.epsilon == found.total.epsilon == 0.0


def test_the_published_bound_promises_nothing_and_shows_what_is_proved() -> None:
    found = planned(route="published")
    proved = NaturalSlate.published(MOVIELENS, 10, 1.0)
    assert found.each.promises_nothing
    assert found.total.promises_nothing
    assert published_epsilon(1.0, proved.sigma, MOVIELENS) == pytest.approx(1.0, rel=1e-6)
    assert f"{math.ceil(proved.proved.epsilon * 1e6) / 1e6:g}" in found.why
    assert "eigenvalue step only" in found.why


def test_two_stages_cost_the_sum_of_both() -> None:
    found = planned(route="two-stage")
    assert found.each.epsilon == 1.0
    assert "100 most liked" in found.why
    rho = (0.5**2 / (8 * 100)) + 0.5**2 / 8
    assert found.each.loss is not None
    assert found.each.loss.value == pytest.approx(rho, rel=1e-12)


def test_what_is_promised_does_not_depend_on_the_features() -> None:
    features = np.random.default_rng(1).random((30, 8))
    found = TemperedSlate(features, 5, 0.3, high=50.0).guarantee
    assert promise(Route.TEMPERED, Options(30, 5, most_likes=50.0))(0.3) == found


@pytest.mark.parametrize(
    "wrong",
    [
        {"k": 0},
        {"k": MOVIELENS + 1},
        {"k": 2.5},
        {"epsilon": 0.0},
        {"epsilon": math.nan},
        {"epsilon": math.inf},
        {"delta": -1e-6},
        {"delta": 1.0},
        {"slates": 0},
        {"slates": 1.5},
        {"similarity": "secret"},
        {"route": "best"},
        {"accounting": "pld"},
        {"most_likes": 0.0},
        {"likes_each": -1.0},
        {"route": "sparse"},  # without a threshold
        {"route": "two-stage", "items": 50},  # fewer items than candidates
        {"route": "two-stage", "candidates": 5},  # fewer candidates than slots
        {"similarity": "private", "slates": None},  # a kernel without a delta
        {"similarity": "private", "slates": None, "delta": 1e-6},  # a kernel of too many items
        {"route": "tempered", "rank": 9},
        {"route": "tempered", "rank": 0},
        {"slates": 10**12},
    ],
)
def test_what_cannot_be_is_refused_on_public_parameters(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        planned(**wrong)
