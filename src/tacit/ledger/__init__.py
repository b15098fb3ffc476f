"""The ledger: budgets that cannot be overspent, impressions that cannot be lost."""

from tacit.ledger.accounting import price
from tacit.ledger.amounts import Cost
from tacit.ledger.budgets import Accounting, Budget, Period, Terms
from tacit.ledger.chain import Head
from tacit.ledger.impressions import ImpressionLedger
from tacit.ledger.keeping import Stored
from tacit.ledger.privacy import PrivacyLedger
from tacit.ledger.receipts import Charge, Receipt
from tacit.ledger.reporting import Counted, Report
from tacit.ledger.statements import Statement, Window
from tacit.ledger.totals import ImpressionStatement, ItemTotal, month

__all__ = [
    "Accounting",
    "Budget",
    "Charge",
    "Cost",
    "Counted",
    "Head",
    "ImpressionLedger",
    "ImpressionStatement",
    "ItemTotal",
    "Period",
    "PrivacyLedger",
    "Receipt",
    "Report",
    "Statement",
    "Stored",
    "Terms",
    "Window",
    "month",
    "price",
]
