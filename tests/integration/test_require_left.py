"""Whether several charges fit together is asked without a trace, on a real file and a real server."""

import pytest

from tacit.errors import BudgetExhausted
from tacit.guarantees import ONE_USER, pure
from tacit.ledger import Budget, PrivacyLedger
from tacit.ledger.verification import check

TENTH = pure(0.1, ONE_USER)


def test_what_was_asked_leaves_no_trace_and_others_charge_meanwhile(target):
    with PrivacyLedger.create(target, lanes=4) as one, PrivacyLedger.open(target) as other:
        one.enrol("ann", Budget(epsilon=0.3), protects=ONE_USER)
        wished = [("ann", f"r{number}", TENTH) for number in range(3)]
        one.require_left(wished)
        assert other.statement("ann").charges == 0
        assert other.charge("ann", "another", TENTH).fresh
        with pytest.raises(BudgetExhausted):
            one.require_left(wished)
        one.require_left(wished[:2])
        assert all(one.charge(*charge).fresh for charge in wished[:2])
        assert other.statement("ann").charges == 3
    assert check(target).sound
