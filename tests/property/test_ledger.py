"""The privacy ledger against a model of plain lists and fractions: whatever is done to it in whatever order, both agree."""

import math
import shutil
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tacit.errors import (
    BudgetExhausted,
    Conflict,
    GuaranteeRefused,
    InvalidParameter,
    MixedUnits,
    TacitError,
    UnknownSubject,
)
from tacit.guarantees import ONE_PROFILE, ONE_USER, Guarantee, Loss, LossKind, approximate, nothing, pure
from tacit.ledger import Accounting, Budget, Cost, Period, PrivacyLedger, Receipt, Terms, price
from tacit.ledger.budgets import allowance
from tacit.ledger.chain import lane_of
from tacit.ledger.verification import check

HOUR, DAY = 3_600_000_000, 86_400_000_000
START = int(datetime(2028, 2, 28, 23, 59, 59, tzinfo=UTC).timestamp()) * 1_000_000  # a leap day comes next
UNPROVEN = "unproven: subset step"
SUBJECTS = ("amber", "birch", "Ünïcode 🦉 ' \" % _", "dusk")  # the last one is enrolled late, if at all
GUARANTEES = (
    pure(0.1, ONE_USER),
    pure(0.25, ONE_USER),
    pure(1e-10, ONE_USER),
    pure(0.1, ONE_USER, proof="laplace"),  # equal in price, not in text: another guarantee
    approximate(0.2, 1e-7, ONE_USER),
    Guarantee(1.0, ONE_USER, delta=1e-6, loss=Loss(LossKind.GAUSSIAN, 0.2)),
    nothing(ONE_USER, UNPROVEN),
    pure(0.1, ONE_PROFILE),
)
TERMS = (
    Terms((Budget(1.0),), ONE_USER),
    Terms((Budget(0.5, per=Period.DAY),), ONE_USER),
    Terms((Budget(1.0, per=Period.MONTH), Budget(0.35, per=Period.DAY, sliding=True)), ONE_USER),
    Terms((Budget(0.7, 3e-7, Period.MONTH, sliding=True),), ONE_USER),
    Terms((Budget(1.0, 1e-6, Period.DAY),), ONE_USER, Accounting.ZCDP),
    Terms((Budget(0.4, 1e-6, Period.MONTH), Budget(0.6, 1e-6)), ONE_USER, Accounting.PLD, each=GUARANTEES[0]),
    Terms((Budget(0.3),), ONE_USER, unprotected=frozenset({UNPROVEN})),
    Terms(
        (
            Budget(2.0, 1e-6),
            Budget(0.5, 2e-7, Period.DAY),
            Budget(0.4, 1e-6, Period.DAY, sliding=True),
            Budget(1.2, 1e-6, Period.MONTH, sliding=True),
        ),
        ONE_USER,
    ),
)
ALLOWED = tuple(tuple(allowance(budget, terms) for budget in terms.budgets) for terms in TERMS)
LENGTHS = {Period.DAY: DAY, Period.MONTH: 31 * DAY}
STEPS = (1, HOUR, DAY - 1, DAY, DAY + 1, 31 * DAY - 1, 31 * DAY, -1, -HOUR, -DAY, -40 * DAY, 400 * DAY)

subjects = st.sampled_from(SUBJECTS)
release_ids = st.sampled_from([f"r-{number}" for number in range(12)])
wishes = st.tuples(subjects, release_ids, st.sampled_from(range(len(GUARANTEES))))
Wish = tuple[str, str, int]  # a subject, a release id, which guarantee


class Spend(NamedTuple):
    """One charge, as the model remembers it."""

    at: int
    release_id: str
    guarantee: Guarantee
    cost: Cost
    entry: int


@dataclass
class Account:
    """A subject, as the model remembers her."""

    terms: int
    at: int
    spends: list[Spend] = field(default_factory=list)
    kept: dict[str, bytes] = field(default_factory=dict)

    def in_window(self, budget: Budget, at: int) -> Cost:
        """What was spent in the window that a charge at ``at`` would fall into, by counting."""
        return _sum(spend.cost for spend in self.spends if _same_window(budget, spend.at, at))


class LedgerMachine(RuleBasedStateMachine):
    """Enrols, charges, keeps, reopens, lets the clock jump; a subclass says where the ledger lives."""

    def __init__(self) -> None:
        super().__init__()
        self.moment, self.drawn, self.batches = START, 0, 0
        self.accounts: dict[str, Account] = {}
        self.lane_at: dict[int, int] = {}

    def place(self) -> str:
        self.folder = tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
        return f"{self.folder}/ledger.db"

    def clear(self) -> None:
        shutil.rmtree(self.folder)

    @initialize(lanes=st.sampled_from([1, 3]), agreed=st.permutations(range(len(TERMS))))
    def create(self, lanes: int, agreed: list[int]) -> None:
        self.lanes, self.target = lanes, self.place()
        self.ledger = PrivacyLedger.create(self.target, lanes=lanes, clock=self.clock)
        for subject, terms in zip(SUBJECTS[:-1], agreed, strict=False):
            self.enrol(subject, terms)

    def clock(self) -> int:
        return self.moment

    @rule(subject=subjects, terms=st.sampled_from(range(len(TERMS))))
    def enrol(self, subject: str, terms: int) -> None:
        known = self.accounts.get(subject)
        if known is not None and known.terms != terms:
            _raises(Conflict, self.ledger.enrol_many, [subject], TERMS[terms])
            return
        self.ledger.enrol_many([subject], TERMS[terms])
        if known is None:
            self.accounts[subject] = Account(terms, self.now(subject))
            self.written(subject)

    @rule(wish=wishes)
    def charge(self, wish: Wish) -> None:
        expected = self.expect([wish])
        try:
            outcome: Receipt | TacitError = self.ledger.charge(*_meant(wish))
        except TacitError as problem:
            outcome = problem
        self.compare([wish], expected, [outcome])

    @rule(wished=st.lists(wishes, max_size=12))
    def charge_many(self, wished: list[Wish]) -> None:
        self.compare(wished, self.expect(wished), self.ledger.charge_many(map(_meant, wished)))

    @rule(subject=subjects, which=st.sampled_from(range(len(GUARANTEES))), extra=st.lists(wishes, max_size=2))
    def charge_many_at_once(self, subject: str, which: int, extra: list[Wish]) -> None:
        """So many that the ledger may hope that none was charged before; ``extra`` disappoints it now and then."""
        self.batches += 1
        wished = [(subject, f"batch-{self.batches}-{number}", which) for number in range(20)] + extra
        self.compare(wished, self.expect(wished), self.ledger.charge_many(map(_meant, wished)))

    @precondition(lambda self: any(account.spends for account in self.accounts.values()))
    @rule(data=st.data(), alone=st.booleans())
    def charge_again(self, data: st.DataObject, alone: bool) -> None:
        made = [(name, spend) for name, account in self.accounts.items() for spend in account.spends]
        again = data.draw(st.lists(st.sampled_from(made), min_size=1, max_size=1 if alone else 20))
        wished = [(name, spend.release_id, GUARANTEES.index(spend.guarantee)) for name, spend in again]
        self.charge(wished[0]) if alone else self.charge_many(wished)

    @rule(wish=wishes)
    def release(self, wish: Wish) -> None:
        subject, release_id, _ = wish
        (expected,) = self.expect([wish])
        self.drawn += 1
        fresh, drew = f"noise {self.drawn}".encode(), []
        try:
            outcome = self.ledger.release(*_meant(wish), lambda: drew.append(1) or fresh)
        except TacitError as problem:
            _same_error(expected, problem)
            assert not drew, "drawn without a charge"
            return
        kept = self.accounts[subject].kept
        assert bool(drew) == (release_id not in kept)
        assert outcome == kept.setdefault(release_id, fresh), "a retry sent fresh noise"
        receipt = self.ledger.charge(*_meant(wish))
        assert receipt.stored == outcome
        assert not receipt.fresh
        self.record(wish, expected, receipt._replace(fresh=type(expected) is tuple))

    @rule(subject=subjects, release_id=release_ids, content=st.binary(max_size=40))
    def keep(self, subject: str, release_id: str, content: bytes) -> None:
        account = self.accounts.get(subject)
        if account is None or all(spend.release_id != release_id for spend in account.spends):
            _raises(InvalidParameter, self.ledger.keep, subject, release_id, content)
        else:
            assert self.ledger.keep(subject, release_id, content) == account.kept.setdefault(release_id, content)

    @rule(step=st.sampled_from(STEPS))
    def let_time_jump(self, step: int) -> None:
        self.moment += step

    @rule()
    def reopen(self) -> None:
        head = self.ledger.head()
        self.ledger.close()
        self.ledger = PrivacyLedger.open(self.target, head=head, clock=self.clock)

    @precondition(lambda self: self.accounts)
    @rule(data=st.data())
    def state(self, data: st.DataObject) -> None:
        subject = data.draw(st.sampled_from(sorted(self.accounts)))
        account = self.accounts[subject]
        statement = self.ledger.statement(subject)
        terms = TERMS[account.terms]
        assert statement.terms == self.ledger.terms(subject) == terms
        assert statement.charges == len(account.spends)
        assert statement.spent == _sum(spend.cost for spend in account.spends)
        assert statement.at == max(self.moment, account.at)
        for budget, allowed, window in zip(terms.budgets, ALLOWED[account.terms], statement.windows, strict=True):
            spent = account.in_window(budget, statement.at)
            assert (window.budget, window.spent) == (budget, spent)
            assert window.left == Cost(allowed.amount - spent.amount, allowed.delta - spent.delta)
        if any(spend.cost.unprotected for spend in account.spends):
            assert statement.promised.promises_nothing
        elif terms.accounting is Accounting.BASIC:
            exactly = sum((Fraction(spend.guarantee.epsilon) for spend in account.spends), Fraction(0))
            assert exactly <= Fraction(statement.promised.epsilon) <= exactly * (1 + Fraction(1, 2**51))

    @invariant()
    def no_window_ever_held_more_than_its_budget(self) -> None:
        for account in self.accounts.values():
            for budget, allowed in zip(TERMS[account.terms].budgets, ALLOWED[account.terms], strict=True):
                for at in {
                    spend.at for spend in account.spends
                }:  # windows that end with a charge; the others hold no more
                    spent = account.in_window(budget, at)
                    assert spent.amount <= allowed.amount
                    assert spent.delta <= allowed.delta

    def teardown(self) -> None:
        if not hasattr(self, "ledger"):
            return
        assert list(self.ledger.subjects()) == sorted(self.accounts, key=self.enrolled_as)
        head = self.ledger.head()
        self.ledger.close()
        findings = check(self.target, head=head)
        assert findings.sound, findings.to_json()
        self.clear()

    def enrolled_as(self, subject: str) -> tuple[int, int]:
        """Subjects are listed by their numbers, which interleave the lanes."""
        lane = lane_of(subject, self.lanes)
        before = [name for name in self.accounts if lane_of(name, self.lanes) == lane]
        first = min((spend.entry for spend in self.accounts[subject].spends), default=math.inf)
        with self.ledger._store.read() as reader:
            ((number,),) = list(reader.stream("SELECT number FROM subjects WHERE name = ?", (subject,)))
        assert number < first
        assert number % self.lanes == lane
        return number, len(before)

    # What the model expects: an entry's (time, cost), an error's class, or the charge that was made before.
    def expect(self, wished: list[Wish]) -> list[object]:
        expected: list[object] = []
        pending = {name: list(account.spends) for name, account in self.accounts.items()}
        for subject, release_id, guarantee in map(_meant, wished):
            account = self.accounts.get(subject)
            outcome = self.outcome(subject, account, pending.get(subject, []), release_id, guarantee)
            if account is not None and type(outcome) is tuple:
                pending[subject].append(Spend(*outcome[:1], release_id, guarantee, outcome[1], -1))
            expected.append(outcome)
        return expected

    def outcome(
        self, subject: str, account: Account | None, spends: list[Spend], release_id: str, guarantee: Guarantee
    ) -> object:
        if account is None:
            return UnknownSubject
        terms, allowances = TERMS[account.terms], ALLOWED[account.terms]
        cost = model_price(guarantee, terms)
        if isinstance(cost, type):
            return cost
        earlier = next((spend for spend in spends if spend.release_id == release_id), None)
        if earlier is not None:
            return earlier if earlier.guarantee == guarantee else Conflict
        at = self.now(subject)
        wanted = Account(account.terms, at, spends)
        for budget, allowed in zip(terms.budgets, allowances, strict=True):
            spent = wanted.in_window(budget, at)
            if spent.amount + cost.amount > allowed.amount:
                return _figures(terms, spent.amount, cost.amount, allowed.amount)
            if spent.delta + cost.delta > allowed.delta:
                return _figures(terms, spent.delta, cost.delta, allowed.delta, delta=True)
        return (at, cost)

    def compare(self, wished: list[Wish], expected: list[object], outcomes: list[Receipt | TacitError]) -> None:
        assert len(wished) == len(outcomes)
        for wish, wanted, outcome in zip(wished, expected, outcomes, strict=True):
            if isinstance(outcome, TacitError):
                _same_error(wanted, outcome)
            else:
                self.record(wish, wanted, outcome)

    def record(self, wish: Wish, wanted: object, receipt: Receipt) -> None:
        subject, release_id, guarantee = _meant(wish)
        account = self.accounts[subject]
        if isinstance(wanted, Spend):
            made = next(spend for spend in account.spends if spend.release_id == release_id)
            assert not receipt.fresh
            assert (receipt.entry, receipt.at, receipt.cost) == (made.entry, made.at, made.cost)
            assert receipt.stored == account.kept.get(release_id)
            return
        assert type(wanted) is tuple, (wanted, receipt)
        assert receipt.fresh
        assert (receipt.at, receipt.cost) == wanted
        assert receipt.cost == self.ledger.price(subject, guarantee)
        assert all(spend.at <= receipt.at for spend in account.spends), "time went back"
        account.spends.append(Spend(receipt.at, release_id, guarantee, receipt.cost, receipt.entry))
        account.at = receipt.at
        self.written(subject)

    def now(self, subject: str) -> int:
        """The ledger's time for a subject: the clock's, but never before the last entry of her lane."""
        return max(self.moment, self.lane_at.get(lane_of(subject, self.lanes), 0))

    def written(self, subject: str) -> None:
        self.lane_at[lane_of(subject, self.lanes)] = self.now(subject)


def model_price(guarantee: Guarantee, terms: Terms) -> Cost | type[TacitError]:
    """What a guarantee costs, in fractions; or the error that refuses it."""
    if guarantee.protects != terms.protects:
        return MixedUnits
    if math.isinf(guarantee.epsilon):
        return Cost(0, 0, 1) if terms.unprotected & guarantee.assumes else GuaranteeRefused
    if terms.accounting is Accounting.PLD:
        same = (guarantee.epsilon, guarantee.delta) == (terms.each.epsilon, terms.each.delta)
        return Cost(1) if same else GuaranteeRefused
    if terms.accounting is Accounting.ZCDP:
        if guarantee.loss is None:
            return GuaranteeRefused
        return Cost(math.ceil(Fraction(guarantee.loss.value) ** 2 / 2 * 10**12))
    return Cost(math.ceil(_decimal(guarantee.epsilon) * 10**9), math.ceil(_decimal(guarantee.delta) * 10**18))


def _meant(wish: Wish) -> tuple[str, str, Guarantee]:
    subject, release_id, which = wish
    return subject, release_id, GUARANTEES[which]


def _decimal(value: float) -> Fraction:
    return Fraction(Decimal(repr(value)))


def _sum(costs) -> Cost:
    total = Cost(0)
    for cost in costs:
        total += cost
    return total


def _same_window(budget: Budget, then: int, at: int) -> bool:
    if budget.per is Period.LIFETIME:
        return True
    if budget.sliding:
        return at - LENGTHS[budget.per] < then <= at
    digits = 10 if budget.per is Period.DAY else 7  # of 2028-02-29
    return _date(then)[:digits] == _date(at)[:digits]


def _date(at: int) -> str:
    return (datetime(1970, 1, 1) + timedelta(microseconds=at)).isoformat()


def _figures(terms: Terms, spent: int, cost: int, allowed: int, *, delta: bool = False) -> BudgetExhausted:
    measure, digits = {"basic": ("epsilon", 9), "zcdp": ("rho", 12), "pld": ("releases", 0)}[terms.accounting]
    measure, digits = ("delta", 18) if delta else (measure, digits)

    def exact(units: int) -> Fraction:
        return Fraction(units, 10**digits)

    return BudgetExhausted(
        "",
        measure=measure,
        spent=exact(spent),
        requested=exact(cost),
        left=exact(allowed - spent),
        budget=exact(allowed),
        renews=None,
    )


def _same_error(wanted: object, problem: TacitError) -> None:
    if not isinstance(wanted, BudgetExhausted):
        assert wanted is type(problem), (wanted, problem)
        return
    assert isinstance(problem, BudgetExhausted), (wanted, problem)
    for figure in ("spent", "requested", "left", "budget"):
        assert Fraction(getattr(problem, figure)) == getattr(wanted, figure)
    assert problem.measure == wanted.measure
    assert not any(subject in str(problem) for subject in SUBJECTS)


def _raises(error: type[TacitError], call, *arguments: object) -> None:
    try:
        call(*arguments)
    except error:
        return
    raise AssertionError(f"{error.__name__} was expected")


def test_model_prices_as_the_ledger_does() -> None:
    for terms in TERMS:
        for guarantee in GUARANTEES:
            wanted = model_price(guarantee, terms)
            if isinstance(wanted, type):
                _raises(wanted, price, guarantee, terms)
            else:
                assert price(guarantee, terms) == wanted


def test_terms_of_the_model_can_be_exhausted_within_its_runs() -> None:
    """Otherwise the machine would only ever see charges that fit."""
    assert {min(one.amount for one in allowed) for terms, allowed in zip(TERMS, ALLOWED, strict=True) if terms.each}
    for terms, allowed in zip(TERMS, ALLOWED, strict=True):
        costs = [cost for one in GUARANTEES if isinstance(cost := model_price(one, terms), Cost)]
        assert min(one.amount for one in allowed) / max(cost.amount for cost in costs) < 30


TestLedgerAgreesWithItsModel = LedgerMachine.TestCase
TestLedgerAgreesWithItsModel.settings = settings(max_examples=90, stateful_step_count=40, deadline=None)
