"""One transaction of the privacy ledger: look up, check, append. Everything that decides whether a charge fits is here."""

from collections.abc import Sequence
from decimal import Decimal
from itertools import repeat

from tacit.errors import BudgetExhausted, Conflict, GuaranteeRefused, LedgerDamaged, TacitError
from tacit.ledger.accounting import MEASURES
from tacit.ledger.accounts import SPENT, Account, Accounts
from tacit.ledger.amounts import DELTA_DIGITS, Cost, shown
from tacit.ledger.budgets import Budget, Period
from tacit.ledger.clock import as_datetime
from tacit.ledger.entries import CHARGED, linked_charge, seal_of_release
from tacit.ledger.known import Known, Priced
from tacit.ledger.receipts import Charge, Receipt
from tacit.ledger.stores.interface import AlreadyThere, Row, Writer
from tacit.ledger.stores.schema import ENTRIES, SUBJECTS, TEXTS


def commit_charges(
    writer: Writer,
    known: Known,
    accounts: Accounts,
    lanes: int,
    moment: int,
    charges: Sequence[Charge],
    *,
    look_up: bool,
) -> list[Receipt | TacitError]:
    """The outcome of each charge, in order: a receipt, or the error for that one. The caller's transaction makes it durable.

    Without ``look_up`` it is hoped that no charge was made before; where that may be wrong AlreadyThere is raised.
    """
    asked = writer.ask(CHARGED, [(lanes, charge[0], charge[1]) for charge in charges]) if look_up else None
    found, ends = accounts.begin(writer, known, list(dict.fromkeys([charge[0] for charge in charges])), lanes, moment)
    outcomes: list[Receipt | TacitError] = []
    entries: list[Row] = []
    rows = asked() if asked is not None else repeat(None, len(charges))
    for (name, release_id, guarantee), row in zip(charges, rows, strict=True):
        account = found[name]
        if isinstance(account, TacitError):
            outcomes.append(type(account)(*account.args))  # one for each: an error that is raised twice grows
            continue
        priced = account.priced.get(id(guarantee))
        if priced is None:
            try:
                priced = account.priced[id(guarantee)] = known.priced(guarantee, account.terms, account.agreed.terms)
            except TacitError as problem:
                outcomes.append(problem)
                continue
        if row is not None or release_id in account.new:
            outcomes.append(_again(row, account.new.get(release_id), priced))
        elif (entry := account.charge(release_id, priced, lanes)) is not None:
            entries.append(entry)
            outcomes.append(account.new[release_id][0])
        elif look_up:
            outcomes.append(_refusal(account, priced.cost))
        else:  # it does not fit, but was perhaps charged before
            raise AlreadyThere
    if entries:
        changed = [account for account in found.values() if isinstance(account, Account) and account.new]
        texts = {priced.digest: priced.text for account in changed for _, priced in account.new.values()}
        if new := known.unwritten(texts):
            writer.insert(TEXTS, new, unless_there=True)
        writer.insert(ENTRIES, entries)
        writer.update(SUBJECTS, SPENT, [account.spent() for account in changed])
        writer.advance({lane: end.tip for lane, end in ends.items() if end.lengthened})
    return outcomes


def stored_release(entry: int, content: bytes | None, seal: bytes | None) -> bytes | None:
    """What was kept for a charge, if it is as it was written."""
    if content is not None and (type(content) is not bytes or seal_of_release(entry, content) != seal):
        raise LedgerDamaged("a stored release is not what was written. Run `tacit ledger check`, restore a backup.")
    return content


def _again(row: Row | None, new: tuple[Receipt, Priced] | None, priced: Priced) -> Receipt | TacitError:
    """The outcome of a charge whose id was used before."""
    if new is not None:
        again, key = new[0]._replace(fresh=False), new[1].digest
    else:
        *found, content, seal = row or ()  # one of the two is there
        try:
            entry = linked_charge(tuple(found))
            stored = stored_release(entry.number, content, seal)
        except LedgerDamaged as problem:
            return problem
        again, key = Receipt(entry.number, entry.at, entry.cost, False, stored), entry.guarantee
    if key != priced.digest:
        return Conflict("this release_id was charged before, under another guarantee. A new release needs a new id.")
    return again


def _refusal(account: Account, cost: Cost) -> TacitError:
    """Why a charge does not fit."""
    terms = account.agreed.terms
    measure, digits = MEASURES[terms.accounting]
    for budget, allowed, before in zip(terms.budgets, account.agreed.allowances, account.before, strict=True):
        spent, spent_delta = account.total - before.amount, account.delta - before.delta
        if spent + cost.amount > allowed.amount:
            return _exhausted(budget, account.lane.at, measure, digits, spent, cost.amount, allowed.amount)
        if spent_delta + cost.delta > allowed.delta:
            return _exhausted(budget, account.lane.at, "delta", DELTA_DIGITS, spent_delta, cost.delta, allowed.delta)
    return GuaranteeRefused("the sum of all charges is beyond what can be counted. Enrol a new subject.")


def _exhausted(
    budget: Budget, at: int, measure: str, digits: int, spent: int, cost: int, allowed: int
) -> BudgetExhausted:
    renews = budget.renews(at)
    figures: dict[str, Decimal] = {
        "spent": shown(spent, digits),
        "requested": shown(cost, digits),
        "left": shown(max(0, allowed - spent), digits),  # a budget never shrinks, but nobody should see a negative one
        "budget": shown(allowed, digits),
    }
    until = "" if renews is None else f" until {as_datetime(renews):%-d %B %Y}, 00:00 UTC"
    advice = "Ask for less, or wait" if budget.per is not Period.LIFETIME else "Ask for less"
    return BudgetExhausted(
        f"a charge of {figures['requested']:f} {measure} was refused; {figures['left']:f} of {figures['budget']:f} is left for "
        f"this subject{until} ({budget}). {advice}.",
        measure=measure,
        renews=None if renews is None else as_datetime(renews),
        **figures,
    )
