"""Prices, allowances and promises: whole numbers, rounded so that nothing is ever promised that was not kept."""

import math
from decimal import Decimal
from fractions import Fraction

import pytest

from tacit.errors import GuaranteeRefused, InvalidParameter, MixedUnits
from tacit.guarantees import (
    ONE_PROFILE,
    ONE_USER,
    Guarantee,
    Loss,
    LossKind,
    Neighbours,
    approximate,
    compose,
    epsilon_of_rho,
    metric,
    nothing,
    pure,
    tight,
)
from tacit.ledger import Accounting, Budget, Cost, Terms, price
from tacit.ledger.budgets import ADAPTIVE, MOST, NOTHING_YET, allowance, promised, shown, units_down, units_up

BASIC = Terms(Budget(1.0, 1e-6), ONE_USER)
ZCDP = Terms(Budget(1.0, 1e-6), ONE_USER, Accounting.ZCDP)
EACH = pure(0.05, ONE_USER)
PLD = Terms(Budget(0.5, 1e-6), ONE_USER, Accounting.PLD, EACH)
GAUSSIAN = Guarantee(1.0, ONE_USER, delta=1e-6, loss=Loss(LossKind.GAUSSIAN, 0.2))


@pytest.mark.parametrize(
    ("value", "up", "down"),
    [
        (0.1, 100_000_000, 100_000_000),
        (0.3, 300_000_000, 300_000_000),
        (1e-9, 1, 1),
        (1e-10, 1, 0),
        (5e-324, 1, 0),
        (0.0, 0, 0),
        (-0.0, 0, 0),
        (0.1234567891, 123_456_790, 123_456_789),
        (1.0000000001, 1_000_000_001, 1_000_000_000),
        (2, 2_000_000_000, 2_000_000_000),
        (1e300, 10**309, 10**309),
    ],
)
def test_charges_round_up_and_budgets_down(value: float, up: int, down: int) -> None:
    assert units_up(value, 9) == up
    assert units_down(value, 9) == down


@pytest.mark.parametrize("value", [0.1, 0.7, 1 / 3, 2 / 3, math.pi, 1e-7, 123.456, 0.1 + 0.2])
def test_rounding_is_from_the_shortest_decimal_that_reads_back(value: float) -> None:
    exactly = Fraction(Decimal(repr(value))) * 10**9
    assert units_up(value, 9) == math.ceil(exactly)
    assert units_down(value, 9) == math.floor(exactly)


def test_tenth_three_times_is_three_tenths() -> None:
    """In floats it is more: 0.1 + 0.1 + 0.1 > 0.3."""
    assert 3 * units_up(0.1, 9) == units_down(0.3, 9)


def test_sum_of_a_float_that_drifted_costs_what_it_says() -> None:
    assert units_up(0.1 + 0.2, 9) == 300_000_001


@pytest.mark.parametrize(
    ("units", "digits", "text"),
    [
        (0, 9, "0"),
        (300_000_000, 9, "0.3"),
        (1, 9, "0.000000001"),
        (20_000_000_000, 9, "20"),
        (7, 0, "7"),
        (1, 18, "1E-18"),
    ],
)
def test_units_are_shown_as_the_exact_decimal(units: int, digits: int, text: str) -> None:
    value = shown(units, digits)
    assert str(value) == text or f"{value:f}" == f"{Decimal(text):f}"
    assert Fraction(value) == Fraction(units, 10**digits)


def test_largest_sum_is_shown_without_losing_a_digit() -> None:
    assert Fraction(shown(MOST - 1, 18)) == Fraction(MOST - 1, 10**18)


@pytest.mark.parametrize(
    ("guarantee", "cost"),
    [
        (pure(0.1, ONE_USER), Cost(100_000_000)),
        (pure(0.0, ONE_USER), Cost(0)),
        (pure(1e-10, ONE_USER), Cost(1)),
        (approximate(0.5, 1e-7, ONE_USER), Cost(500_000_000, 100_000_000_000)),
        (approximate(0.5, 1e-30, ONE_USER), Cost(500_000_000, 1)),
        (GAUSSIAN, Cost(1_000_000_000, 10**12)),
    ],
)
def test_basic_price_is_epsilon_and_delta(guarantee: Guarantee, cost: Cost) -> None:
    assert price(guarantee, BASIC) == cost


@pytest.mark.parametrize(
    ("guarantee", "rho"),
    [
        (pure(0.1, ONE_USER), Fraction(0.1) ** 2 / 2),
        (GAUSSIAN, Fraction(0.2) ** 2 / 2),
        (Guarantee(1.0, ONE_USER, loss=Loss(LossKind.BOUNDED_RANGE, 1.0)), Fraction(1, 8)),
        (Guarantee(3.0, ONE_USER, delta=1e-6, loss=Loss(LossKind.ZCDP, 0.25)), Fraction(1, 4)),
        (pure(1e-9, ONE_USER), Fraction(1, 10**18)),
    ],
)
def test_zcdp_price_is_the_smallest_rho_rounded_up(guarantee: Guarantee, rho: Fraction) -> None:
    cost = price(guarantee, ZCDP)
    assert cost == Cost(math.ceil(rho * 10**12))
    assert cost.amount >= 1


@pytest.mark.parametrize(
    "guarantee",
    [
        approximate(0.5, 1e-7, ONE_USER),
        Guarantee(1.0, ONE_USER, delta=1e-7, loss=Loss(LossKind.PURE, 0.5)),
        Guarantee(1.0, ONE_USER, delta=1e-7, loss=Loss(LossKind.BOUNDED_RANGE, 0.5)),
    ],
)
def test_guarantee_without_a_rho_cannot_be_charged_by_zcdp(guarantee: Guarantee) -> None:
    with pytest.raises(GuaranteeRefused):
        price(guarantee, ZCDP)


@pytest.mark.parametrize(
    "guarantee", [pure(0.04, ONE_USER), pure(0.06, ONE_USER), approximate(0.05, 1e-9, ONE_USER), GAUSSIAN]
)
def test_only_the_stated_guarantee_can_be_counted(guarantee: Guarantee) -> None:
    assert price(EACH, PLD) == Cost(1)
    with pytest.raises(GuaranteeRefused):
        price(guarantee, PLD)


def test_counted_releases_may_differ_in_what_they_assume() -> None:
    assert price(EACH.assuming("public prior"), PLD) == Cost(1)
    assert price(pure(0.05, ONE_USER, proof="laplace"), PLD) == Cost(1)


@pytest.mark.parametrize("terms", [BASIC, ZCDP, PLD])
@pytest.mark.parametrize("guarantee", [pure(0.05, ONE_PROFILE), metric(0.05), nothing(ONE_PROFILE, "unproven: a step")])
def test_units_are_never_mixed(terms: Terms, guarantee: Guarantee) -> None:
    with pytest.raises(MixedUnits):
        price(guarantee, terms)


def test_metric_guarantee_is_charged_to_a_metric_budget_of_the_same_distance() -> None:
    terms = Terms(Budget(1.0), Neighbours.features("L1"))
    assert price(metric(0.25), terms) == Cost(250_000_000)
    with pytest.raises(GuaranteeRefused, match="rounding"):  # its loss at distance d is 0.25 * (d + 0.5)
        price(metric(0.25, rounding=0.5), terms)
    rounded = Terms(Budget(1.0), Neighbours.features("L1"), rounding=0.5)
    assert price(metric(0.25, rounding=0.5), rounded) == Cost(250_000_000)
    assert Terms.from_json(rounded.to_json()) == rounded
    with pytest.raises(InvalidParameter):
        Terms(Budget(1.0), ONE_USER, rounding=0.5)
    for other in (metric(0.25, distance="L2"), pure(0.25, Neighbours.features("L1", 1.0)), pure(0.25, ONE_USER)):
        with pytest.raises(MixedUnits):
            price(other, terms)


def test_metric_guarantee_has_no_rho() -> None:
    terms = Terms(Budget(1.0, 1e-6), Neighbours.features("L1"), Accounting.ZCDP)
    with pytest.raises(GuaranteeRefused):
        price(metric(0.25), terms)


@pytest.mark.parametrize("terms", [BASIC, ZCDP, PLD])
def test_no_promise_is_refused_unless_the_terms_name_it(terms: Terms) -> None:
    unproven = nothing(ONE_USER, "unproven: a step", proof="slates")
    with pytest.raises(GuaranteeRefused, match="unproven: a step"):
        price(unproven, terms)
    for opted in ({"unproven: a step"}, {"slates"}, {"other", "slates"}):
        allowing = Terms(terms.budgets, ONE_USER, terms.accounting, terms.each, frozenset(opted))
        assert price(unproven, allowing) == Cost(0, 0, 1)
    for other in ({"unproven"}, {"unproven: another step"}, {"UNPROVEN: A STEP"}):
        with pytest.raises(GuaranteeRefused):
            price(unproven, Terms(terms.budgets, ONE_USER, terms.accounting, terms.each, frozenset(other)))


def test_guarantee_without_a_proof_page_is_not_matched_by_anything() -> None:
    terms = Terms(Budget(1.0), ONE_USER, unprotected=frozenset({"slates"}))
    with pytest.raises(GuaranteeRefused):
        price(nothing(ONE_USER, "unproven: a step"), terms)


def test_naming_a_promise_does_not_make_it_free() -> None:
    terms = Terms(Budget(1.0), ONE_USER, unprotected=frozenset({"laplace", "real arithmetic"}))
    kept = pure(0.1, ONE_USER, proof="laplace", assumes=frozenset({"real arithmetic"}))
    assert price(kept, terms) == Cost(100_000_000)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.01])
def test_rho_that_is_allowed_converts_to_at_most_the_budget_and_not_much_less(epsilon: float, delta: float) -> None:
    terms = Terms(Budget(epsilon, delta), ONE_USER, Accounting.ZCDP)
    allowed = allowance(terms.budgets[0], terms).amount
    assert epsilon_of_rho(float(Fraction(allowed, 10**12)), delta) <= epsilon
    assert epsilon_of_rho(float(Fraction(allowed + max(2, allowed // 10**9), 10**12)), delta) > epsilon


def test_charges_by_zcdp_that_fit_compose_to_at_most_the_budget() -> None:
    """The sum of what the ledger rounds up, against the tight composition of the guarantees themselves."""
    for guarantee in (GAUSSIAN, pure(0.01, ONE_USER), pure(0.1, ONE_USER)):
        times = allowance(ZCDP.budgets[0], ZCDP).amount // price(guarantee, ZCDP).amount
        assert times >= 1
        assert tight({guarantee: times}, 1e-6, "zcdp").epsilon <= 1.0
        assert tight({guarantee: times + 1}, 1e-6, "zcdp").epsilon > 1.0


def test_count_by_pld_is_the_largest_whose_tight_composition_fits() -> None:
    allowed = allowance(PLD.budgets[0], PLD)
    assert allowed.delta == allowed.unprotected == 0
    assert tight({EACH: allowed.amount}, 1e-6).epsilon <= 0.5
    assert tight({EACH: allowed.amount + 1}, 1e-6).epsilon > 0.5
    assert allowed.amount >= 10  # what adding up epsilons would allow


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        (Terms(Budget(9.99e-10), ONE_USER), "too small"),
        (Terms(Budget(5e9), ONE_USER), "beyond"),
        (Terms(Budget(1e300), ONE_USER), "beyond"),
        (Terms(Budget(1e-6, 1e-300), ONE_USER, "zcdp"), "too small"),
        (Terms(Budget(1e8, 1e-6), ONE_USER, "zcdp"), "beyond"),
        (Terms(Budget(0.1, 1e-6), ONE_USER, "pld", pure(0.2, ONE_USER)), "too small"),
    ],
)
def test_budget_that_nothing_could_be_charged_to_is_refused(terms: Terms, words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        allowance(terms.budgets[0], terms)


def test_smallest_and_largest_budgets_are_allowed() -> None:
    assert allowance(Budget(1e-9), Terms(Budget(1e-9), ONE_USER)) == Cost(1)
    assert allowance(Budget(4.6e9), Terms(Budget(4.6e9), ONE_USER)) == Cost(4_600_000_000 * 10**9)


def test_nothing_released_promises_everything() -> None:
    assert promised({}, BASIC) == pure(0.0, ONE_USER, assumes=frozenset({NOTHING_YET}))
    metric_terms = Terms(Budget(1.0), Neighbours.features("L1"))
    assert promised({}, metric_terms) == metric(0.0, assumes=frozenset({NOTHING_YET}))


def test_promise_under_basic_accounting_is_the_composition_by_hand() -> None:
    counted = {pure(0.1, ONE_USER): 3, pure(0.25, ONE_USER, proof="laplace"): 1}
    total = promised(counted, BASIC)
    assert total == compose([one for one, times in counted.items() for _ in range(times)])
    exactly = 3 * Fraction(0.1) + Fraction(0.25)
    assert exactly <= Fraction(total.epsilon) < exactly + Fraction(1, 2**50)


def test_promise_with_a_delta_says_that_charges_were_planned() -> None:
    assert ADAPTIVE in promised({approximate(0.1, 1e-9, ONE_USER): 2}, BASIC).assumes
    assert ADAPTIVE not in promised({pure(0.1, ONE_USER): 2}, BASIC).assumes
    assert ADAPTIVE in promised({GAUSSIAN: 2}, ZCDP).assumes


def test_promise_under_zcdp_is_the_tight_composition_at_the_smallest_delta() -> None:
    terms = Terms((Budget(1.0, 1e-6), Budget(1.0, 1e-9, "day")), ONE_USER, Accounting.ZCDP)
    counted = {GAUSSIAN: 3, pure(0.1, ONE_USER): 2}
    total = promised(counted, terms)
    assert (total.epsilon, total.delta) == (tight(counted, 1e-9, "zcdp").epsilon, 1e-9)


def test_promise_under_pld_is_within_the_budget_when_the_count_is_used_up() -> None:
    allowed = allowance(PLD.budgets[0], PLD).amount
    halves = {EACH: allowed // 2, EACH.assuming("public prior"): allowed - allowed // 2}
    total = promised(halves, PLD)
    assert total.epsilon <= 0.5
    assert total.epsilon == tight({EACH: allowed}, 1e-6).epsilon
    assert "public prior" in total.assumes


@pytest.mark.parametrize("terms", [BASIC, ZCDP, PLD])
def test_one_release_without_a_promise_leaves_no_promise(terms: Terms) -> None:
    unproven = nothing(ONE_USER, "unproven: a step")
    total = promised({EACH: 2, unproven: 1}, terms)
    assert total.promises_nothing
    assert "unproven: a step" in total.assumes


@pytest.mark.parametrize("guarantee", [None, 0.1, "pure", ONE_USER, {"epsilon": 0.1}])
def test_price_is_of_a_guarantee(guarantee: object) -> None:
    with pytest.raises(InvalidParameter):
        price(guarantee, BASIC)


def test_costs_add_and_subtract_by_their_parts() -> None:
    assert Cost(1, 2, 3) + Cost(10, 20, 30) == Cost(11, 22, 33)
    assert Cost(11, 22, 33) - Cost(10, 20, 30) == Cost(1, 2, 3)
