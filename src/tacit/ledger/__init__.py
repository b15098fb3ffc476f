"""The ledger: budgets that cannot be overspent, impressions that cannot be lost."""

from tacit.ledger.accounting import price
from tacit.ledger.amounts import Cost
from tacit.ledger.booking import Counted
from tacit.ledger.budgets import Accounting, Budget, Period, Terms
from tacit.ledger.chain import Head
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
from tacit.ledger.totals import ImpressionStatement, ItemTotal, month

__all__ = [
    "Accounting",
    "Budget",
    "Charge",
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
    "Terms",
    "Window",
    "month",
    "price",
]
