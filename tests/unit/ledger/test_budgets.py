"""Budgets, their windows and the terms that hold them."""

import json
from calendar import monthrange
from datetime import UTC, datetime, timedelta

import pytest

from tacit.errors import InvalidGuarantee, InvalidParameter
from tacit.guarantees import ONE_PROFILE, ONE_USER, Neighbours, nothing, pure
from tacit.ledger import Accounting, Budget, Period, Terms
from tacit.ledger.budgets import allowance

DAY = 86_400_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def at(text: str) -> int:
    """Microseconds since 1970 of a time in UTC."""
    return (datetime.fromisoformat(text).replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("now", "start", "renews"),
    [
        ("2026-11-16T00:00:00.000000", "2026-11-16", "2026-11-17"),
        ("2026-11-16T23:59:59.999999", "2026-11-16", "2026-11-17"),
        ("2028-02-29T12:00:00", "2028-02-29", "2028-03-01"),
        ("2027-12-31T23:59:59.999999", "2027-12-31", "2028-01-01"),
        (
            "2016-12-31T23:59:59.999999",
            "2016-12-31",
            "2017-01-01",
        ),  # a leap second followed, which this clock does not know
        ("1970-01-01T00:00:00", "1970-01-01", "1970-01-02"),
    ],
)
def test_day_of_the_calendar_begins_and_ends_at_midnight_utc(now: str, start: str, renews: str) -> None:
    budget = Budget(1.0, per="day")
    assert budget.start(at(now)) == at(start)
    assert budget.renews(at(now)) == at(renews)


@pytest.mark.parametrize("year", [1970, 1999, 2000, 2027, 2028, 2100])
@pytest.mark.parametrize("month", range(1, 13))
def test_month_of_the_calendar_holds_its_first_and_last_microsecond(year: int, month: int) -> None:
    budget = Budget(1.0, per="month")
    first = at(f"{year}-{month:02}-01")
    following = first + monthrange(year, month)[1] * DAY
    for moment in (first, first + DAY, following - 1):
        assert budget.start(moment) == first
        assert budget.renews(moment) == following
    assert budget.start(following) == following
    assert budget.start(first - 1) < first


@pytest.mark.parametrize(("per", "days"), [("day", 1), ("month", 31)])
def test_sliding_window_holds_its_length_and_not_a_microsecond_more(per: str, days: int) -> None:
    budget = Budget(1.0, per=per, sliding=True)
    now = at("2028-03-01T10:00:00")
    assert budget.start(now) == now - days * DAY + 1
    assert budget.renews(now) is None


def test_sliding_month_is_no_shorter_than_any_month_of_the_calendar() -> None:
    sliding, calendar = Budget(1.0, per="month", sliding=True), Budget(1.0, per="month")
    for month in range(1, 13):
        last = at(f"2028-{month:02}-01") + monthrange(2028, month)[1] * DAY - 1
        assert sliding.start(last) <= calendar.start(last)


def test_lifetime_has_no_end_and_holds_every_time() -> None:
    budget = Budget(1.0)
    assert budget.per is Period.LIFETIME
    assert budget.renews(0) is None
    assert budget.start(0) == budget.start(at("2999-01-01")) < -(2**60)


@pytest.mark.parametrize(
    "epsilon", [0.0, -1.0, float("nan"), float("inf"), -float("inf"), None, "1", True, b"1", [1.0]]
)
def test_budget_needs_a_finite_epsilon_above_zero(epsilon: object) -> None:
    with pytest.raises(InvalidParameter):
        Budget(epsilon)


@pytest.mark.parametrize("delta", [-1e-9, 1.0, 1.5, float("nan"), float("inf"), None, "0", True, False])
def test_budget_needs_a_delta_below_one(delta: object) -> None:
    with pytest.raises(InvalidParameter):
        Budget(1.0, delta)


@pytest.mark.parametrize("per", ["week", "DAY", "", None, 1, "year"])
def test_budget_needs_a_known_period(per: object) -> None:
    with pytest.raises(InvalidParameter):
        Budget(1.0, per=per)


@pytest.mark.parametrize("sliding", [1, 0, "yes", None])
def test_sliding_is_true_or_false(sliding: object) -> None:
    with pytest.raises(InvalidParameter):
        Budget(1.0, per="day", sliding=sliding)


def test_lifetime_does_not_slide() -> None:
    with pytest.raises(InvalidParameter, match="does not slide"):
        Budget(1.0, sliding=True)
    with pytest.raises(InvalidParameter, match="does not slide"):
        Budget(1.0, per="lifetime", sliding=True)


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        (Budget(2), "epsilon 2 in all"),
        (Budget(0.5, 1e-6, "day"), "epsilon 0.5, delta 1e-06 in each day"),
        (Budget(0.5, per="day", sliding=True), "epsilon 0.5 in any 24 hours"),
        (Budget(0.5, per="month"), "epsilon 0.5 in each month"),
        (Budget(0.5, per="month", sliding=True), "epsilon 0.5 in any 31 days"),
    ],
)
def test_budget_says_what_it_allows(budget: Budget, words: str) -> None:
    assert str(budget) == words


@pytest.mark.parametrize(
    "budgets",
    [
        (Budget(1.0), Budget(2.0)),
        (Budget(1.0, per="day"), Budget(1.0, 1e-6, per="day")),
        (Budget(1.0, per="day", sliding=True), Budget(1.0, per="day", sliding=True)),
    ],
)
def test_two_budgets_for_one_period_contradict_each_other(budgets: tuple[Budget, ...]) -> None:
    with pytest.raises(InvalidParameter, match="contradict"):
        Terms(budgets, ONE_USER)


def test_calendar_and_sliding_days_are_two_kinds_of_period() -> None:
    terms = Terms((Budget(1.0, per="day"), Budget(1.0, per="day", sliding=True), Budget(9.0)), ONE_USER)
    assert terms.windowed
    assert not Terms((Budget(1.0),), ONE_USER).windowed


@pytest.mark.parametrize("budgets", [(), [], None, 5, "budget", (1.0,), [Budget(1.0), None], {1.0}])
def test_terms_need_budgets(budgets: object) -> None:
    with pytest.raises(InvalidParameter):
        Terms(budgets, ONE_USER)


def test_one_budget_needs_no_list() -> None:
    assert Terms(Budget(1.0), ONE_USER) == Terms((Budget(1.0),), ONE_USER) == Terms([Budget(1.0)], ONE_USER)


@pytest.mark.parametrize("protects", [None, "one user", ONE_USER.unit, pure(1.0, ONE_USER)])
def test_terms_need_neighbours(protects: object) -> None:
    with pytest.raises(InvalidParameter):
        Terms(Budget(1.0), protects)


@pytest.mark.parametrize(
    ("accounting", "each"),
    [("pld", None), ("basic", pure(0.1, ONE_USER)), ("zcdp", pure(0.1, ONE_USER)), ("pld", pure(0.1, ONE_PROFILE))],
)
def test_pld_and_only_pld_states_the_guarantee_of_each_release(accounting: str, each: object) -> None:
    with pytest.raises(InvalidParameter):
        Terms(Budget(1.0, 1e-6), ONE_USER, accounting, each)


@pytest.mark.parametrize("each", [0.1, "pure", ONE_USER, Budget(1.0)])
def test_each_is_a_guarantee(each: object) -> None:
    with pytest.raises(InvalidParameter):
        Terms(Budget(1.0, 1e-6), ONE_USER, "pld", each)


@pytest.mark.parametrize("accounting", ["rdp", "", None, 1, "PLD"])
def test_accounting_is_one_that_is_known(accounting: object) -> None:
    with pytest.raises(InvalidParameter):
        Terms(Budget(1.0, 1e-6), ONE_USER, accounting)


@pytest.mark.parametrize("accounting", ["zcdp", "pld"])
def test_converted_budgets_need_a_delta_in_every_period(accounting: str) -> None:
    each = pure(0.1, ONE_USER) if accounting == "pld" else None
    with pytest.raises(InvalidParameter, match="delta"):
        Terms((Budget(1.0, 1e-6), Budget(1.0, per="day")), ONE_USER, accounting, each)


@pytest.mark.parametrize("unprotected", ["unproven: a step", b"x", [1], [""], ["a\nb"], [None], ["x" * 1001], 5])
def test_unprotected_is_a_collection_of_names(unprotected: object) -> None:
    with pytest.raises(InvalidParameter):
        Terms(Budget(1.0), ONE_USER, unprotected=unprotected)


@pytest.mark.parametrize(
    "terms",
    [
        Terms(Budget(0.1), ONE_USER),
        Terms(Budget(0.1), Neighbours.features("L2")),
        Terms((Budget(0.1, 1e-9, "day", True), Budget(3, 1e-9)), ONE_PROFILE, "zcdp"),
        Terms(Budget(1.0, 1e-6), ONE_USER, "pld", pure(0.1, ONE_USER, proof="laplace")),
        Terms(Budget(0.1), ONE_USER, unprotected=frozenset({"unproven: ü 🦉", "subset"})),
    ],
)
def test_terms_come_back_from_json(terms: Terms) -> None:
    assert Terms.from_json(json.loads(json.dumps(terms.to_json()))) == terms


@pytest.mark.parametrize("missing", ["budgets", "protects", "accounting", "each", "unprotected"])
def test_terms_with_a_part_missing_are_refused(missing: str) -> None:
    written = Terms(Budget(0.1), ONE_USER).to_json()
    del written[missing]
    with pytest.raises(InvalidParameter):
        Terms.from_json(written)


@pytest.mark.parametrize("value", [None, 5, [], "{}", {"budgets": [5]}, {"budgets": [{"epsilon": 1.0, "more": 2}]}])
def test_what_is_no_terms_is_refused(value: object) -> None:
    with pytest.raises(InvalidParameter):
        Terms.from_json(value)


def test_no_promise_cannot_be_counted() -> None:
    terms = Terms(Budget(1.0, 1e-6), ONE_USER, Accounting.PLD, nothing(ONE_USER, "unproven: a step"))
    with pytest.raises(InvalidGuarantee):
        allowance(terms.budgets[0], terms)
