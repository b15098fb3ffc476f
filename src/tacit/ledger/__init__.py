"""Ledgers: budgets that cannot be overspent, and impressions that cannot be lost."""

from typing import TYPE_CHECKING

from tacit.ledger.budgets import Accounting, Budget, Cost, Period, Statement, Terms, Window, price
from tacit.ledger.chain import SECOND, Clock, Head, now
from tacit.ledger.impressions import ImpressionLedger, Report
from tacit.ledger.offers import Engagements, Offered, Settlement
from tacit.ledger.privacy import PrivacyLedger, Stored
from tacit.ledger.records import Consent, Display, DisplayLedger, DisplayState, MailLedger
from tacit.ledger.stores import Target, open_store
from tacit.ledger.tally import Counted, ImpressionStatement, ItemTotal, month
from tacit.ledger.transaction import Charge, Receipt
from tacit.loading import lazy

if TYPE_CHECKING:
    from tacit.ledger.verification import check
    from tacit.ledger.verification.export import export, recompute
else:
    __getattr__, __dir__ = lazy(__name__, verification="check", **{"verification.export": "export recompute"})

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
