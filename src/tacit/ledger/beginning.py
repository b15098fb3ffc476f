"""Where a party that holds raw data begins its ledger: with a budget, and never by the way."""

from tacit.errors import LedgerMissing
from tacit.ledger.chain import Head
from tacit.ledger.clock import Clock
from tacit.ledger.privacy import PrivacyLedger
from tacit.ledger.stores import Target


def begun(target: Target, *, with_budget: bool, head: Head | None, clock: Clock) -> PrivacyLedger:
    """The ledger at ``target``; one that is missing is made where its owner states a budget, and refused where nothing is stated.

    Whoever states no budget goes by what was agreed before: then there was a ledger, and a lost one must not look like a fresh
    budget. With a ``head`` that was noted earlier none is made in either case.
    """
    if with_budget:
        return PrivacyLedger.open_or_create(target, head=head, clock=clock)
    try:
        return PrivacyLedger.open(target, head=head, clock=clock)
    except LedgerMissing as problem:
        raise LedgerMissing(
            f"{problem.args[0]} Or state the budget that it begins with, budget=Budget(epsilon, delta), on the command line "
            "--budget. One that was lost is restored from a backup: its users were charged already."
        ) from None
