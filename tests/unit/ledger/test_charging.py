"""Charges: what fits, what does not, what is said about it, and what is on the disk afterwards."""

import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from tacit.errors import (
    BudgetExhausted,
    Conflict,
    GuaranteeRefused,
    InvalidParameter,
    LedgerUnavailable,
    MixedUnits,
    TacitError,
    UnknownSubject,
)
from tacit.guarantees import (
    ONE_PROFILE,
    ONE_USER,
    Guarantee,
    Loss,
    LossKind,
    approximate,
    compose,
    nothing,
    pure,
    tight,
)
from tacit.ledger import Budget, Charge, Cost, PrivacyLedger, Receipt
from tacit.ledger.privacy import LONGEST_DRAW
from tacit.ledger.verification import check

SECOND, DAY = 1_000_000, 86_400_000_000
NOON = int(datetime(2028, 2, 29, 12, tzinfo=UTC).timestamp()) * SECOND
TENTH = pure(0.1, ONE_USER)
UNPROVEN = nothing(ONE_USER, "unproven: a step")
GAUSSIAN = Guarantee(1.0, ONE_USER, delta=1e-6, loss=Loss(LossKind.GAUSSIAN, 0.2))


class Clock:
    moment = NOON

    def __call__(self) -> int:
        return self.moment


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(path: Path, clock: Clock) -> Iterator[PrivacyLedger]:
    with PrivacyLedger.create(path, clock=clock) as created:
        yield created
    assert check(path).sound


def rows(path: Path) -> list[str]:
    """Everything that the ledger holds, as SQL."""
    connection = sqlite3.connect(path)
    try:
        return list(connection.iterdump())
    finally:
        connection.close()


def charges(ledger: PrivacyLedger, subject: str, number: int, guarantee: Guarantee = TENTH, prefix: str = "r") -> int:
    """How many of so many charges fit."""
    wished = [(subject, f"{prefix}-{one}", guarantee) for one in range(number)]
    return sum(isinstance(outcome, Receipt) for outcome in ledger.charge_many(wished))


def test_three_tenths_fit_into_three_tenths_and_a_fourth_does_not(ledger: PrivacyLedger) -> None:
    ledger.enrol("s", Budget(0.3), protects=ONE_USER)
    for number in range(3):
        assert ledger.charge("s", f"r-{number}", TENTH).fresh
    with pytest.raises(BudgetExhausted):
        ledger.charge("s", "r-3", TENTH)
    with pytest.raises(BudgetExhausted):
        ledger.charge("s", "r-3", pure(1e-12, ONE_USER))
    assert ledger.charge("s", "free", pure(0.0, ONE_USER)).cost == Cost(0)


@pytest.mark.parametrize("epsilon", [0.1, 0.2, 0.3, 0.7, 1 / 3])
@pytest.mark.parametrize("times", [1, 3, 10])
def test_budget_of_so_many_charges_fits_exactly_so_many(ledger: PrivacyLedger, epsilon: float, times: int) -> None:
    cost = ledger.enrol("s", Budget(100.0), protects=ONE_USER) and ledger.price("s", pure(epsilon, ONE_USER)).amount
    ledger.enrol("t", Budget(times * cost / 10**9), protects=ONE_USER)
    assert charges(ledger, "t", times + 3, pure(epsilon, ONE_USER)) == times


def test_smallest_charge_costs_one_unit(ledger: PrivacyLedger) -> None:
    ledger.enrol("s", Budget(5e-9), protects=ONE_USER)
    assert ledger.charge("s", "r", pure(1e-10, ONE_USER)).cost == Cost(1)
    assert charges(ledger, "s", 9, pure(1e-300, ONE_USER)) == 4


def test_delta_is_a_budget_of_its_own(ledger: PrivacyLedger) -> None:
    ledger.enrol("s", Budget(10.0, 3e-7), protects=ONE_USER)
    assert charges(ledger, "s", 5, approximate(0.1, 1e-7, ONE_USER)) == 3
    with pytest.raises(BudgetExhausted) as caught:
        ledger.charge("s", "more", approximate(0.1, 1e-12, ONE_USER))
    assert caught.value.measure == "delta"
    assert (caught.value.spent, caught.value.left) == (Decimal("3E-7"), Decimal(0))
    assert caught.value.requested == Decimal("1E-12")
    assert ledger.charge("s", "pure", TENTH).fresh


def test_budget_without_a_delta_takes_no_charge_with_one(ledger: PrivacyLedger) -> None:
    ledger.enrol("s", Budget(10.0), protects=ONE_USER)
    with pytest.raises(BudgetExhausted) as caught:
        ledger.charge("s", "r", approximate(0.1, 1e-300, ONE_USER))
    assert (caught.value.measure, caught.value.budget) == ("delta", Decimal(0))


def test_price_is_what_is_charged(ledger: PrivacyLedger) -> None:
    ledger.enrol("basic", Budget(10.0, 1e-5), protects=ONE_USER, unprotected=["unproven: a step"])
    ledger.enrol("zcdp", Budget(10.0, 1e-5), protects=ONE_USER, accounting="zcdp")
    ledger.enrol("pld", Budget(0.3, 1e-5), protects=ONE_USER, accounting="pld", each=TENTH)
    for subject in ("basic", "zcdp", "pld"):
        for number, guarantee in enumerate((TENTH, GAUSSIAN, UNPROVEN, approximate(0.1, 1e-9, ONE_USER))):
            try:
                wanted: object = ledger.price(subject, guarantee)
            except TacitError as refused:
                wanted = type(refused)
            (outcome,) = ledger.charge_many([(subject, f"r-{number}", guarantee)])
            assert wanted == (outcome.cost if isinstance(outcome, Receipt) else type(outcome))


def test_exhausted_budget_says_what_was_spent_asked_and_left(ledger: PrivacyLedger) -> None:
    ledger.enrol("s", Budget(0.5, per="day"), protects=ONE_USER)
    ledger.charge("s", "one", pure(0.25, ONE_USER))
    with pytest.raises(BudgetExhausted) as caught:
        ledger.charge("s", "two", pure(0.2500000001, ONE_USER))
    problem = caught.value
    assert problem.measure == "epsilon"
    assert (problem.spent, problem.budget) == (Decimal("0.25"), Decimal("0.5"))
    assert (problem.requested, problem.left) == (Decimal("0.250000001"), Decimal("0.25"))
    assert problem.renews == datetime(2028, 3, 1, tzinfo=UTC)
    assert "a charge of 0.250000001 epsilon was refused; 0.25 of 0.5 is left" in str(problem)
    assert "until 1 March 2028, 00:00 UTC" in str(problem)


@pytest.mark.parametrize(
    ("accounting", "measure", "spent"), [("zcdp", "rho", Decimal("0.005000000001")), ("pld", "releases", Decimal(1))]
)
def test_exhausted_budget_speaks_in_the_measure_of_its_accounting(
    ledger: PrivacyLedger, accounting: str, measure: str, spent: Decimal
) -> None:
    each = TENTH if accounting == "pld" else None
    ledger.enrol("s", Budget(0.5, 1e-7), protects=ONE_USER, accounting=accounting, each=each)
    assert charges(ledger, "s", 20) < 20
    with pytest.raises(BudgetExhausted) as caught:
        ledger.charge("s", "more", TENTH)
    problem = caught.value
    assert problem.measure == measure
    assert problem.requested == spent
    assert problem.spent + problem.left == problem.budget
    assert problem.left < problem.requested
    assert problem.renews is None


def test_first_budget_that_is_exhausted_is_the_one_that_is_named(ledger: PrivacyLedger, clock: Clock) -> None:
    budgets = [Budget(0.3), Budget(0.2, per="day"), Budget(0.2, per="day", sliding=True)]
    ledger.enrol("s", budgets, protects=ONE_USER)
    assert charges(ledger, "s", 3) == 2
    with pytest.raises(BudgetExhausted, match="in each day"):
        ledger.charge("s", "day", TENTH)
    clock.moment += DAY // 2
    with pytest.raises(BudgetExhausted, match="any 24 hours"):
        ledger.charge("s", "sliding", TENTH)
    clock.moment += DAY // 2
    ledger.charge("s", "last", TENTH)
    with pytest.raises(BudgetExhausted, match="in all"):
        ledger.charge("s", "over", TENTH)


@pytest.mark.parametrize(("per", "length"), [("day", DAY), ("month", 31 * DAY)])
def test_charge_leaves_a_sliding_window_when_it_is_exactly_so_old(
    ledger: PrivacyLedger, clock: Clock, per: str, length: int
) -> None:
    ledger.enrol("s", Budget(0.1, per=per, sliding=True), protects=ONE_USER)
    ledger.charge("s", "one", TENTH)
    clock.moment = NOON + length - 1
    with pytest.raises(BudgetExhausted):
        ledger.charge("s", "two", TENTH)
    clock.moment = NOON + length
    assert ledger.charge("s", "two", TENTH).fresh


@pytest.mark.parametrize(
    ("per", "renews"), [("day", datetime(2028, 3, 1, tzinfo=UTC)), ("month", datetime(2028, 3, 1, tzinfo=UTC))]
)
def test_window_of_the_calendar_ends_at_midnight_utc(
    ledger: PrivacyLedger, clock: Clock, per: str, renews: datetime
) -> None:
    ledger.enrol("s", Budget(0.1, per=per), protects=ONE_USER)
    ledger.charge("s", "one", TENTH)
    clock.moment = int(renews.timestamp()) * SECOND - 1
    with pytest.raises(BudgetExhausted) as caught:
        ledger.charge("s", "two", TENTH)
    assert caught.value.renews == renews
    clock.moment += 1
    assert ledger.charge("s", "two", TENTH).fresh


def test_sliding_window_counts_what_falls_out_piece_by_piece(ledger: PrivacyLedger, clock: Clock) -> None:
    ledger.enrol("s", Budget(0.3, per="day", sliding=True), protects=ONE_USER)
    for hour in (0, 6, 12):
        clock.moment = NOON + hour * 3600 * SECOND
        ledger.charge("s", f"at-{hour}", TENTH)
    for hour in (24, 30, 36):
        clock.moment = NOON + hour * 3600 * SECOND - 1
        with pytest.raises(BudgetExhausted):
            ledger.charge("s", f"at-{hour}", TENTH)
        clock.moment += 1
        ledger.charge("s", f"at-{hour}", TENTH)


def test_same_release_id_is_charged_once(ledger: PrivacyLedger, path: Path, clock: Clock) -> None:
    ledger.enrol("s", Budget(0.1), protects=ONE_USER)
    first = ledger.charge("s", "r", TENTH)
    before = rows(path)
    clock.moment += DAY
    again = ledger.charge("s", "r", pure(0.1, ONE_USER))
    assert again == first._replace(fresh=False)
    assert rows(path) == before


def test_retry_is_answered_also_when_nothing_is_left(ledger: PrivacyLedger) -> None:
    ledger.enrol("s", Budget(2.0), protects=ONE_USER)
    wished = [("s", f"r-{number}", TENTH) for number in range(20)]
    fresh = ledger.charge_many(wished)
    assert all(receipt.fresh for receipt in fresh)
    for again in (wished, wished[:1], [*wished, ("s", "more", TENTH)]):
        outcomes = ledger.charge_many(again)
        assert [outcome.entry for outcome in outcomes[: len(again)] if isinstance(outcome, Receipt)] == [
            receipt.entry for receipt in fresh[: len(again)]
        ]
        assert not any(outcome.fresh for outcome in outcomes if isinstance(outcome, Receipt))
    assert isinstance(ledger.charge_many([("s", "more", TENTH)])[0], BudgetExhausted)


@pytest.mark.parametrize("other", [pure(0.2, ONE_USER), pure(0.1, ONE_USER, proof="laplace"), TENTH.assuming("x")])
def test_same_release_id_under_another_guarantee_is_a_conflict(
    ledger: PrivacyLedger, path: Path, other: Guarantee
) -> None:
    ledger.enrol("s", Budget(10.0), protects=ONE_USER)
    ledger.charge("s", "r", TENTH)
    before = rows(path)
    with pytest.raises(Conflict):
        ledger.charge("s", "r", other)
    many = [("s", "r", other), *(("s", f"r-{number}", TENTH) for number in range(20))]
    assert isinstance(ledger.charge_many([many[0]])[0], Conflict)
    assert rows(path) == before
    outcomes = ledger.charge_many(many)
    assert isinstance(outcomes[0], Conflict)
    assert all(isinstance(outcome, Receipt) and outcome.fresh for outcome in outcomes[1:])


def test_same_release_id_of_another_subject_is_another_charge(ledger: PrivacyLedger) -> None:
    for subject in ("s", "t"):
        ledger.enrol(subject, Budget(0.1), protects=ONE_USER)
        assert ledger.charge(subject, "r", TENTH).fresh


def test_many_charges_are_decided_in_their_order(ledger: PrivacyLedger) -> None:
    ledger.enrol("s", Budget(0.3), protects=ONE_USER)
    ledger.enrol("t", Budget(0.1), protects=ONE_USER)
    outcomes = ledger.charge_many(
        [
            Charge("s", "a", TENTH),
            ("s", "b", pure(0.3, ONE_USER)),  # does not fit after the first
            ("s", "c", TENTH),
            ("s", "a", TENTH),  # the first again
            ("s", "a", pure(0.2, ONE_USER)),  # the first under another guarantee
            ("nobody", "a", TENTH),
            ("t", "a", TENTH),
            ("t", "b", pure(0.1, ONE_PROFILE)),
            ("t", "c", UNPROVEN),
            ("t", "", TENTH),
            ("t", "d", None),
            ("s", "d", TENTH),
            ("s", "e", pure(1e-9, ONE_USER)),
        ]
    )
    assert [type(outcome) for outcome in outcomes] == [
        *(Receipt, BudgetExhausted, Receipt, Receipt, Conflict, UnknownSubject, Receipt),
        *(MixedUnits, GuaranteeRefused, InvalidParameter, InvalidParameter, Receipt, BudgetExhausted),
    ]
    assert outcomes[3] == outcomes[0]._replace(fresh=False)
    assert [outcome.fresh for outcome in outcomes if isinstance(outcome, Receipt)] == [True, True, False, True, True]
    assert ledger.statement("s").charges == 3
    assert ledger.statement("t").charges == 1


def test_charge_that_appears_twice_among_many_is_made_once(ledger: PrivacyLedger) -> None:
    ledger.enrol("s", Budget(2.0), protects=ONE_USER)
    wished = [("s", f"r-{number % 20}", TENTH) for number in range(60)]
    outcomes = ledger.charge_many(wished)
    assert [outcome.fresh for outcome in outcomes] == [True] * 20 + [False] * 40
    assert len({outcome.entry for outcome in outcomes}) == 20
    assert ledger.charge_many([]) == []


def test_every_refusal_leaves_the_ledger_as_it_was(ledger: PrivacyLedger, path: Path) -> None:
    ledger.enrol("s", [Budget(0.3, per="day"), Budget(0.5)], protects=ONE_USER)
    ledger.enrol("zcdp", Budget(1.0, 1e-6), protects=ONE_USER, accounting="zcdp")
    ledger.release("s", "r", TENTH, lambda: b"sent")
    before = rows(path)
    for subject, release_id, guarantee, error in [
        ("s", "big", pure(0.3, ONE_USER), BudgetExhausted),
        ("s", "delta", approximate(0.1, 1e-9, ONE_USER), BudgetExhausted),
        ("s", "r", pure(0.2, ONE_USER), Conflict),
        ("s", "unit", pure(0.1, ONE_PROFILE), MixedUnits),
        ("s", "no", UNPROVEN, GuaranteeRefused),
        ("s", "huge", pure(1e9, ONE_USER), BudgetExhausted),
        ("zcdp", "no rho", approximate(0.1, 1e-9, ONE_USER), GuaranteeRefused),
        ("nobody", "r", TENTH, UnknownSubject),
        ("s", "not a guarantee", 0.1, InvalidParameter),
        ("s", "", TENTH, InvalidParameter),
    ]:
        with pytest.raises(error):
            ledger.charge(subject, release_id, guarantee)
    with pytest.raises(Conflict):
        ledger.enrol("s", Budget(9.0), protects=ONE_USER)
    with pytest.raises(Conflict):
        ledger.enrol_many(["new", "s"], ledger.terms("zcdp"))
    with pytest.raises(InvalidParameter):
        ledger.keep("s", "never charged", b"x")
    ledger.enrol("s", [Budget(0.3, per="day"), Budget(0.5)], protects=ONE_USER)
    ledger.keep("s", "r", b"other")
    assert rows(path) == before


def test_sum_beyond_what_can_be_counted_is_refused(ledger: PrivacyLedger) -> None:
    """With a budget per day the sum over all days may come there; it must not wrap around."""
    ledger.enrol("s", Budget(4.6e9, per="day"), protects=ONE_USER)
    assert ledger.charge("s", "one", pure(4.6e9, ONE_USER)).fresh
    ledger._clock.moment += DAY
    with pytest.raises(GuaranteeRefused, match="beyond"):
        ledger.charge("s", "two", pure(4.6e9, ONE_USER))
    assert ledger.charge("s", "three", TENTH).fresh


def test_release_is_drawn_once_and_sent_again(ledger: PrivacyLedger) -> None:
    ledger.enrol("s", Budget(0.1), protects=ONE_USER)
    drawn = []

    def draw() -> bytes:
        drawn.append(1)
        return f"noise {len(drawn)}".encode()

    assert ledger.release("s", "r", TENTH, draw) == ledger.release("s", "r", TENTH, draw) == b"noise 1"
    assert len(drawn) == 1
    assert ledger.keep("s", "r", b"later") == b"noise 1"
    assert ledger.charge("s", "r", TENTH).stored == b"noise 1"


def test_empty_release_is_a_release(ledger: PrivacyLedger) -> None:
    ledger.enrol("s", Budget(0.1), protects=ONE_USER)
    assert ledger.release("s", "r", TENTH, lambda: b"") == b""
    assert ledger.release("s", "r", TENTH, lambda: b"fresh noise") == b""


def test_nothing_is_drawn_where_nothing_was_charged(ledger: PrivacyLedger) -> None:
    ledger.enrol("s", Budget(0.1), protects=ONE_USER)
    for subject, guarantee in [
        ("s", pure(0.2, ONE_USER)),
        ("nobody", TENTH),
        ("s", UNPROVEN),
        ("s", pure(0.1, ONE_PROFILE)),
    ]:
        with pytest.raises(TacitError):
            ledger.release(subject, "r", guarantee, lambda: pytest.fail("drawn without a charge"))


def test_draw_that_fails_loses_budget_and_is_made_good_by_a_retry(ledger: PrivacyLedger, clock: Clock) -> None:
    ledger.enrol("s", Budget(0.1), protects=ONE_USER)
    with pytest.raises(ZeroDivisionError):
        ledger.release("s", "r", TENTH, lambda: 1 // 0)
    assert ledger.statement("s").charges == 1
    clock.moment += LONGEST_DRAW  # nobody can still be drawing
    assert ledger.release("s", "r", TENTH, lambda: b"second try") == b"second try"
    assert ledger.statement("s").charges == 1


def test_clock_that_fails_charges_nothing_and_holds_up_nobody(path: Path) -> None:
    with PrivacyLedger.create(path, clock=lambda: 1 // 0) as broken, PrivacyLedger.open(path) as ledger:
        with pytest.raises(ZeroDivisionError):
            broken.enrol("s", Budget(1.0), protects=ONE_USER)
        ledger.enrol("s", Budget(1.0), protects=ONE_USER)
        with pytest.raises(ZeroDivisionError):
            broken.charge("s", "r", TENTH)
        assert ledger.charge("s", "r", TENTH).fresh


def test_closed_ledger_charges_nothing(path: Path) -> None:
    ledger = PrivacyLedger.create(path)
    ledger.enrol("s", Budget(1.0), protects=ONE_USER)
    ledger.close()
    ledger.close()
    with pytest.raises(LedgerUnavailable):
        ledger.release("s", "r", TENTH, lambda: pytest.fail("drawn without a charge"))


def test_statement_promises_what_composing_the_charges_by_hand_does(ledger: PrivacyLedger) -> None:
    made = [TENTH, TENTH, pure(0.25, ONE_USER, proof="laplace"), approximate(0.1, 1e-9, ONE_USER)]
    ledger.enrol("s", Budget(1.0, 1e-6), protects=ONE_USER)
    for number, guarantee in enumerate(made):
        ledger.charge("s", f"r-{number}", guarantee)
    promised, by_hand = ledger.statement("s").promised, compose(made)
    assert (promised.epsilon, promised.delta, promised.protects) == (by_hand.epsilon, by_hand.delta, by_hand.protects)
    assert by_hand.assumes <= promised.assumes
    ledger.enrol("z", Budget(2.0, 1e-6), protects=ONE_USER, accounting="zcdp")
    for number in range(3):
        ledger.charge("z", f"r-{number}", GAUSSIAN)
    assert ledger.statement("z").promised.epsilon == tight({GAUSSIAN: 3}, 1e-6, "zcdp").epsilon <= 2.0


def test_statement_shows_what_is_left_in_each_window(ledger: PrivacyLedger, clock: Clock) -> None:
    ledger.enrol("s", [Budget(1.0), Budget(0.3, per="day"), Budget(0.4, per="day", sliding=True)], protects=ONE_USER)
    charges(ledger, "s", 2)
    clock.moment += DAY // 2
    ledger.charge("s", "next day", TENTH)
    statement = ledger.statement("s")
    assert statement.at == clock.moment
    assert [window.spent.amount for window in statement.windows] == [300_000_000, 100_000_000, 300_000_000]
    assert [window.left.amount for window in statement.windows] == [700_000_000, 200_000_000, 100_000_000]
    shown = statement.to_json()
    assert shown["spent"] == {"epsilon": "0.3", "delta": "0", "unprotected": 0}
    assert shown["windows"][2]["left"] == {"epsilon": "0.1", "delta": "0", "unprotected": 0}
    clock.moment += 31 * DAY
    assert [window.spent.amount for window in ledger.statement("s").windows] == [300_000_000, 0, 0]


def test_release_without_a_promise_costs_nothing_and_ends_every_promise(ledger: PrivacyLedger) -> None:
    ledger.enrol("s", Budget(0.2), protects=ONE_USER, unprotected={"unproven: a step"})
    ledger.charge("s", "kept", TENTH)
    assert not ledger.statement("s").promised.promises_nothing
    assert ledger.charge("s", "not kept", UNPROVEN).cost == Cost(0, 0, 1)
    statement = ledger.statement("s")
    assert statement.promised.promises_nothing
    assert statement.spent == Cost(100_000_000, 0, 1)
    assert "unproven: a step" in statement.promised.assumes
    assert ledger.charge("s", "kept too", TENTH).fresh


def test_subject_without_charges_is_promised_everything(ledger: PrivacyLedger) -> None:
    ledger.enrol("s", Budget(0.2), protects=ONE_USER)
    statement = ledger.statement("s")
    assert (statement.charges, statement.spent, statement.promised.epsilon) == (0, Cost(0), 0.0)


def test_refusals_do_not_pile_up_in_memory(ledger: PrivacyLedger) -> None:
    """An exception that is kept and raised again keeps every frame it ever passed through, and what they held."""
    ledger.enrol("s", Budget(0.2), protects=ONE_USER)
    for _ in range(20):
        with pytest.raises(GuaranteeRefused) as caught:
            ledger.charge("s", "r", UNPROVEN)
    depth, trace = 0, caught.value.__traceback__
    while trace is not None:
        depth, trace = depth + 1, trace.tb_next
    assert depth < 10


def test_statement_reads_well(ledger: PrivacyLedger) -> None:
    ledger.enrol("s", [Budget(0.3), Budget(0.2, per="day")], protects=ONE_USER)
    ledger.charge("s", "r", TENTH)
    assert str(ledger.statement("s")).splitlines() == [
        "s: 1 charged, 0.1 epsilon in all",
        "  epsilon 0.3 in all: 0.1 epsilon spent, 0.2 left",
        "  epsilon 0.2 in each day: 0.1 epsilon spent, 0.1 left",
        "  promised: epsilon = 0.1; protects one user's rows, added or removed",
    ]
