"""The plan: which route, why, and figures that are those of the theorems."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from tacit.curator import Plan, Route, plan
from tacit.curator.private_slates.plan import each_of, together
from tacit.curator.private_slates.routes import Options, promise, sparse_vector
from tacit.errors import BudgetExhausted, InvalidParameter
from tacit.guarantees import ONE_USER, Guarantee, LossKind, approximate
from tacit.ledger import Accounting, Budget, PrivacyLedger
from tacit.mechanisms import SYSTEM_NOISE, NaturalSlate, TemperedSlate
from tacit.mechanisms.slates import natural_epsilon, published_epsilon
from tests.unit.mechanisms.slate_bounds import range_each

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
        ({"rank": 9, "slates": 10}, Route.TOP_K),  # against counts as tempered slates are
        ({"rank": 9, "slates": 11}, Route.COUNTS),
        ({"rank": 9, "slates": 1_000}, Route.COUNTS),
        ({"rank": 9, "slates": None}, Route.COUNTS),
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
    assert "sigma = 0.582, for which the whole draw costs log(1 + 1/sigma) = 1;" in found.why
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


def test_where_no_range_is_given_a_tenth_of_epsilon_finds_one_and_that_is_said() -> None:
    found = planned(epsilon=1.0)
    assert found.epsilon == found.each.epsilon == found.total.epsilon == 1.0
    assert "A tenth of epsilon finds out up to how many likes count" in found.why
    assert "theta = 0.09 nats" in found.why
    assert "more than 444 likes" in found.why  # 40 nats at 0.09 for each
    assert "part of epsilon is not used. Give `most_likes`" in found.why
    assert "tenth of epsilon" not in planned(most_likes=300.0).why
    assert "300 likes" in planned(most_likes=300.0).why
    assert "up to 1 like," in planned(most_likes=1.0).why
    assert "tenth of epsilon" not in planned(slates=10**8, route="tempered").why  # nothing to be found out


def test_a_range_that_is_too_wide_lowers_epsilon_and_says_so() -> None:
    found = planned(most_likes=2_750.0)
    assert found.epsilon == found.each.epsilon == found.total.epsilon
    assert found.epsilon == pytest.approx(40 * 10 / 2_750, rel=1e-12)
    assert "275 nats" in found.why
    assert "the rest is not spent" in found.why
    assert planned(most_likes=2_750.0, epsilon=0.1).epsilon == 0.1
    assert "not spent" not in planned(most_likes=2_750.0, epsilon=0.1).why


@pytest.mark.parametrize("slates", [1, 100])
def test_a_given_range_is_calibrated_by_the_slate_alone(tmp_path: Path, slates: int) -> None:
    found = planned(most_likes=5.0, slates=slates, delta=1e-6, accounting="zcdp", route="tempered")
    # rho = epsilon^2 / 8 for each, so that epsilon falls with the square root of how many there are
    assert found.epsilon == pytest.approx(range_each(1_000, 1.0, 1e-6) * (1_000 / slates) ** 0.5, rel=1e-6)
    with PrivacyLedger.create(tmp_path / "ledger.db") as ledger:
        ledger.enrol("users", Budget(1.0, 1e-6), protects=ONE_USER, accounting="zcdp")
        for number in range(slates):
            ledger.charge("users", f"slate {number}", found.each)
        with pytest.raises(BudgetExhausted):
            ledger.charge("users", "one more", found.each)


def test_a_slate_of_all_items_costs_nothing() -> None:
    for route in (Route.NATURAL, Route.TEMPERED, Route.FEATURE):
        found = plan(items=10, route=route)
        assert found.each.epsilon == found.total.epsilon == 0.0
        assert "costs nothing" in found.why
        assert "tenth" not in found.why


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


@pytest.mark.parametrize(("epsilon", "cost"), [(0.01, "0.01"), (14.0, "14"), (22.0, "21.49"), (30.0, "22.18")])
def test_the_cost_of_a_jitter_is_what_it_costs(epsilon: float, cost: str) -> None:
    why = planned(similarity="private", epsilon=epsilon).why
    assert f"log(1 + 1/sigma) = {cost}" in why
    assert natural_epsilon(1.0, NaturalSlate(MOVIELENS, 10, epsilon).sigma) == pytest.approx(float(cost), abs=5e-3)
    assert (f"not all of epsilon = {epsilon:g} is of use" in why) == (epsilon > 20.0)


def test_many_natural_slates_say_what_each_gets_and_how_much_of_it_is_chance() -> None:
    found = planned(similarity="private", slates=1_000, delta=1e-6, items=1_000)
    assert f"Each gets epsilon {found.epsilon:.4g}" in found.why
    assert "0.93 of it for 5,000 users" in found.why
    assert 1_000 / (1_000 + 5_000 * math.expm1(found.epsilon)) == pytest.approx(0.934, abs=5e-4)
    # that is the share of the jitter in the trace of the kernel, of users whose rows have length 1
    sigma = NaturalSlate(1_000, 10, found.epsilon).sigma
    assert sigma * 1_000 / (sigma * 1_000 + 5_000) == pytest.approx(0.934, abs=5e-4)
    assert "'kernel' (up to 1,000 items, with a delta)" in found.why
    assert "uniform" not in planned(similarity="private").why


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            {"similarity": "private"},
            "room for 0.4414 for the slate; accounting='basic' or a budget without delta would give 1.",
        ),
        ({}, "room for 0.4867 for the slate; accounting='basic' or a budget without delta would give 1."),
        (
            {"slates": None},
            "room for 0.2207 for the release; accounting='basic' or a budget without delta would give 1.",
        ),
        ({"slates": 2, "similarity": "private"}, "room for 0.3121 for each slate; accounting='basic'"),
    ],
)
def test_an_accounting_that_leaves_less_is_named(asked: dict[str, Any], said: str) -> None:
    found = planned(**asked, delta=1e-6, accounting="zcdp")
    assert f"Charges add up by zCDP, and epsilon 1 at delta = 1e-06 has {said}" in found.why
    assert "zCDP" not in planned(**asked, delta=1e-6, accounting="basic").why
    assert "zCDP" not in planned(**asked, delta=1e-6).why
    assert "zCDP" not in planned(**asked).why
    assert "zCDP" not in planned(**{**asked, "slates": 1_000}, delta=1e-6, accounting="zcdp", route="natural").why


@pytest.mark.parametrize("slates", [1, 3, 7, 10, 11, 100, 1_000])
@pytest.mark.parametrize("epsilon", [0.1, 0.7, 1.0, 3.0])
def test_the_total_is_not_above_what_was_asked_for(slates: int, epsilon: float) -> None:
    for route in ("tempered", "natural", "top-k"):
        found = planned(slates=slates, epsilon=epsilon, route=route)
        assert found.total.epsilon <= epsilon
        assert found.epsilon == pytest.approx(epsilon / slates, rel=1e-6)
        assert f"total: epsilon = {epsilon:g};" in str(found) or slates in (3, 7, 11)  # whole units of a ledger


def test_a_size_that_is_drawn_is_said_to_be() -> None:
    assert "how many items there are is drawn, too, and k = 7 is not used" in planned(route="subset", k=7).why


@pytest.mark.parametrize(("epsilon", "likes_each", "scale"), [(1.0, 20.0, "20"), (0.5, 5.0, "10"), (8.0, 1.0, "0.125")])
def test_the_noise_of_counts_is_said_in_likes(epsilon: float, likes_each: float, scale: str) -> None:
    why = planned(slates=None, epsilon=epsilon, likes_each=likes_each).why
    assert f"the noise has scale {scale} likes." in why
    assert f"up to {likes_each:g} like{'s' if likes_each > 1 else ''} count" in why


@pytest.mark.parametrize("threshold", [0, 1, 7])
def test_a_threshold_is_the_one_that_was_given(threshold: int) -> None:
    assert sparse_vector(Options(20, 5, threshold=threshold), 1.0).threshold == threshold
    assert f"about {threshold} like" in planned(route="sparse", threshold=threshold).why


def test_a_delta_has_to_have_room_as_well() -> None:
    def promise(epsilon: float) -> Guarantee:
        return approximate(epsilon, epsilon * 1e-6, ONE_USER)

    found = each_of(promise, 2, Budget(1.0, 4e-7), Accounting.BASIC)
    assert 0.1 < found <= 0.2  # twice 0.2e-6; by epsilon alone 0.5 would fit
    with pytest.raises(InvalidParameter, match="no share"):
        each_of(lambda epsilon: approximate(epsilon, 1e-6, ONE_USER), 2, Budget(1.0, 1e-6), Accounting.BASIC)


def test_a_request_weighs_the_public_choice_among_those_that_were_found() -> None:
    likes = sparse.csr_array(np.ones((2_000, 12)))
    request = np.repeat([1.0, 0.0], 6)
    found = plan(3, 50.0, items=12, route="sparse", threshold=1_000)
    draw = found.set_up(np.eye(12), request)(likes)
    others = sum(int((draw(SYSTEM_NOISE).value >= 6).sum()) for _ in range(40))
    assert others < 20  # about 2 of 120, by the jitter; 60 if the request did not count


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
