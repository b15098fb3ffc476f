"""The ledger: budgets that cannot be overspent, impressions that cannot be lost."""

from typing import TYPE_CHECKING

from tacit.ledger.accounting import price
from tacit.ledger.amounts import Cost
from tacit.ledger.booking import Counted
from tacit.ledger.budgets import Accounting, Budget, Period, Terms
from tacit.ledger.chain import Head
from tacit.ledger.clock import SECOND, Clock, now
from tacit.ledger.consents import Consent
from tacit.ledger.display_rows import Display, DisplayState
from tacit.ledger.displays import DisplayLedger
from tacit.ledger.engagements import Engagements
from tacit.ledger.impressions import ImpressionLedger
from tacit.ledger.keeping import Stored
from tacit.ledger.mail import MailLedger
from tacit.ledger.offers import Offered
from tacit.ledger.privacy import PrivacyLedger
from tacit.ledger.receipts import Charge, Receipt
from tacit.ledger.reporting import Report
from tacit.ledger.settling import Settlement
from tacit.ledger.statements import Statement, Window
from tacit.ledger.stores import Target, open_store
from tacit.ledger.totals import ImpressionStatement, ItemTotal, month
from tacit.loading import on_demand

if TYPE_CHECKING:
    from tacit.ledger.verification.check import check
    from tacit.ledger.verification.export import export
    from tacit.ledger.verification.recompute import recompute

_VERIFYING = {
    f"verification.{name}": [name] for name in ("check", "export", "recompute")
}  # loaded when it is asked for

__all__ = [
    "SECOND",
    "Accounting",
    "Budget",
    "Charge",
    "Clock",
    "Consent",
    "Cost",
    "Counted",
    "Display",
    "DisplayLedger",
    "DisplayState",
    "Engagements",
    "Head",
    "ImpressionLedger",
    "ImpressionStatement",
    "ItemTotal",
    "MailLedger",
    "Offered",
    "Period",
    "PrivacyLedger",
    "Receipt",
    "Report",
    "Settlement",
    "Statement",
    "Stored",
    "Target",
    "Terms",
    "Window",
    "check",
    "export",
    "month",
    "now",
    "open_store",
    "price",
    "recompute",
]

if not TYPE_CHECKING:
    __getattr__, _ = on_demand(__name__, _VERIFYING)

    def __dir__() -> list[str]:
        return __all__
