"""Several charges that are wanted together: whether all would fit is known before the first is made."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tacit.errors import BudgetExhausted, Conflict, InvalidParameter, MixedUnits, UnknownSubject
from tacit.guarantees import ONE_PROFILE, ONE_USER, pure
from tacit.ledger import Budget, PrivacyLedger
from tacit.ledger.verification import check

TENTH = pure(0.1, ONE_USER)


@pytest.fixture(params=[1, 4], ids=["one lane", "four lanes"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PrivacyLedger]:
    with PrivacyLedger.create(tmp_path / "ledger.db", lanes=request.param) as made:
        for subject in ("ann", "bob"):
            made.enrol(subject, Budget(epsilon=0.3), protects=ONE_USER)
        yield made


def test_nothing_is_charged_whether_they_fit_or_not(ledger: PrivacyLedger, tmp_path: Path) -> None:
    ledger.require_left([("ann", f"r{number}", TENTH) for number in range(3)])
    with pytest.raises(BudgetExhausted, match=r"a charge of 0\.1 epsilon was refused; 0 of 0\.3 is left"):
        ledger.require_left([("ann", f"r{number}", TENTH) for number in range(4)])
    assert ledger.statement("ann").charges == 0
    assert ledger.charge("ann", "r0", TENTH).fresh
    ledger.require_left([("ann", f"r{number}", TENTH) for number in range(3)])  # the first was paid
    with pytest.raises(BudgetExhausted):
        ledger.require_left([("ann", f"r{number}", TENTH) for number in range(1, 4)])
    assert ledger.statement("ann").charges == 1
    assert [ledger.charge("ann", f"r{number}", TENTH).fresh for number in range(3)] == [False, True, True]
    assert check(tmp_path / "ledger.db").sound


def test_each_subject_has_what_is_left_to_her(ledger: PrivacyLedger) -> None:
    ledger.require_left([(subject, f"r{number}", TENTH) for subject in ("ann", "bob") for number in range(3)])
    ledger.charge("bob", "before", TENTH)
    with pytest.raises(BudgetExhausted):
        ledger.require_left([(subject, f"r{number}", TENTH) for subject in ("ann", "bob") for number in range(3)])


def test_whatever_a_charge_would_meet_is_raised(ledger: PrivacyLedger) -> None:
    ledger.charge("ann", "used", TENTH)
    with pytest.raises(Conflict):
        ledger.require_left([("ann", "used", pure(0.05, ONE_USER))])
    with pytest.raises(MixedUnits):
        ledger.require_left([("ann", "fresh", TENTH), ("ann", "other", pure(0.1, ONE_PROFILE))])
    with pytest.raises(UnknownSubject):
        ledger.require_left([("cleo", "fresh", TENTH)])
    with pytest.raises(InvalidParameter):
        ledger.require_left([("ann", "", TENTH)])
