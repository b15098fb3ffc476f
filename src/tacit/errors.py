"""The errors that tacit raises.

Every error has a stable ``code``, and a message that says what is wrong, what is allowed and what to do. A message may show
public parameters (epsilon, a file name, a line number). It never shows a score, a rating or a feature.

```
TacitError
├── InvalidParameter          a public parameter is outside its range        (also a ValueError)
│   └── InvalidGuarantee      epsilon, delta or neighbours make no guarantee
├── MixedUnits                guarantees that protect different things cannot be added up
├── InvalidInput              private input of a mechanism has the wrong shape or is not finite (also a ValueError)
│   └── InvalidFeatures       features outside their public domain: refused before any noise is drawn
├── InvalidMessage            bytes or JSON from another party are not a valid message   (also a ValueError)
├── InvalidModel              a model gives scores that cannot be used, or a stored model cannot be read   (also a ValueError)
│   └── NoLookAlikes          an algorithm that weighs look-alikes got no look-alikes
├── InvalidData               a file or table has missing, malformed or contradictory content   (also a ValueError)
│   ├── MissingColumn
│   ├── DuplicateRatings
│   └── RatingOutsideScale
├── UnknownName               no data set, mechanism or column of that name
│   └── UnknownSubject        the ledger knows no subject of that name
├── MissingExtra              an optional package is not installed
├── SystemNoiseUnavailable    the operating system gave no entropy
├── BudgetExhausted           a charge does not fit into what is left; nothing was charged
├── GuaranteeRefused          a guarantee that the subject's terms cannot charge
├── Conflict                  an id was used before with other content
├── ServerRefused             a server rejected a request for good
├── ServerUnavailable         a server does not answer, or asks you to try again later
├── ServiceFailed             a service could not start
├── TooFewEntities            too few entities are left for a sum to hide each of them; nothing was unmasked
├── InconsistentShares        an entity dealt shares that contradict its commitment; there is no total
└── LedgerError
    ├── LedgerMissing         there is no ledger at that address
    ├── LedgerExists          there is already a ledger at that address
    ├── LedgerUnavailable     the ledger cannot be read or written now (disk full, read-only, busy, connection lost)
    ├── LedgerDamaged         the content of the ledger was changed after it was written
    ├── LedgerBehind          the ledger lacks entries that it once had (an old backup?)
    └── LedgerTooNew          a later version of tacit wrote the ledger
```
"""

from datetime import datetime
from decimal import Decimal

__all__ = [
    "BudgetExhausted",
    "Conflict",
    "DuplicateRatings",
    "GuaranteeRefused",
    "InconsistentShares",
    "InvalidData",
    "InvalidFeatures",
    "InvalidGuarantee",
    "InvalidInput",
    "InvalidMessage",
    "InvalidModel",
    "InvalidParameter",
    "LedgerBehind",
    "LedgerDamaged",
    "LedgerError",
    "LedgerExists",
    "LedgerMissing",
    "LedgerTooNew",
    "LedgerUnavailable",
    "MissingColumn",
    "MissingExtra",
    "MixedUnits",
    "NoLookAlikes",
    "RatingOutsideScale",
    "ServerRefused",
    "ServerUnavailable",
    "ServiceFailed",
    "SystemNoiseUnavailable",
    "TacitError",
    "TooFewEntities",
    "UnknownName",
    "UnknownSubject",
]


class TacitError(Exception):
    """The base of all errors that tacit raises on purpose."""

    code = "tacit-error"

    def __str__(self) -> str:
        return f"{self.code}: {super().__str__()}"


class InvalidParameter(TacitError, ValueError):
    """A public parameter is outside its range. The message names the parameter and the allowed values."""

    code = "invalid-parameter"


class InvalidGuarantee(InvalidParameter):
    """Epsilon, delta or neighbours make no guarantee."""

    code = "invalid-guarantee"


class MixedUnits(TacitError):
    """Guarantees that protect different things cannot be added up."""

    code = "mixed-units"


class InvalidInput(TacitError, ValueError):
    """Private input of a mechanism has the wrong shape or is not finite. The message shows none of it."""

    code = "invalid-input"


class InvalidFeatures(InvalidInput):
    """Features outside their public domain: refused before any noise is drawn."""

    code = "invalid-features"


class InvalidMessage(TacitError, ValueError):
    """Bytes or JSON from another party are not a valid message of the expected type."""

    code = "invalid-message"


class InvalidModel(TacitError, ValueError):
    """A model gives scores that cannot be used, or a stored model cannot be read."""

    code = "invalid-model"


class NoLookAlikes(InvalidModel):
    """An algorithm that weighs look-alikes got no look-alikes."""

    code = "no-look-alikes"


class InvalidData(TacitError, ValueError):
    """A file or table has missing, malformed or contradictory content. The message names the file and line, never a value."""

    code = "invalid-data"


class MissingColumn(InvalidData):
    """A table lacks a column that its reader needs."""

    code = "missing-column"


class DuplicateRatings(InvalidData):
    """A user rated an item twice. Pass ``duplicates`` to choose which rating counts."""

    code = "duplicate-ratings"


class RatingOutsideScale(InvalidData):
    """A rating lies below or above the public scale."""

    code = "rating-outside-scale"


class UnknownName(TacitError, LookupError):
    """No data set, mechanism, item or column has that name."""

    code = "unknown-name"


class MissingExtra(TacitError, ImportError):
    """An optional package is not installed. The message names the extra that contains it."""

    code = "missing-extra"


class SystemNoiseUnavailable(TacitError, OSError):
    """The operating system gave no entropy; nothing was released."""

    code = "system-noise-unavailable"


class UnknownSubject(UnknownName):
    """The ledger knows no subject of that name."""

    code = "unknown-subject"


class BudgetExhausted(TacitError):
    """A charge does not fit into the budget; nothing was charged.

    The figures are exact decimals. ``measure`` names their unit, which is that of the accounting: epsilon, rho or releases. If
    delta is what does not fit, the unit is "delta".
    """

    code = "budget-exhausted"

    def __init__(
        self,
        message: str,
        *,
        measure: str,
        spent: Decimal,
        requested: Decimal,
        left: Decimal,
        budget: Decimal,
        renews: datetime | None,
    ) -> None:
        super().__init__(message)
        self.measure, self.spent, self.requested, self.left, self.budget = measure, spent, requested, left, budget
        self.renews = renews


class GuaranteeRefused(TacitError):
    """The subject's terms cannot charge this guarantee; nothing was charged or drawn."""

    code = "guarantee-refused"


class Conflict(TacitError):
    """An id was used before with other content."""

    code = "conflict"


class ServerRefused(TacitError):
    """A server rejected a request for good: do not repeat it.

    ``problem`` is the server's stable code, or None if something between you and the server gave the answer.
    """

    code = "server-refused"

    def __init__(self, message: str, *, status: int, problem: str | None) -> None:
        super().__init__(message)
        self.status, self.problem = status, problem


class ServerUnavailable(TacitError):
    """A server gave no final answer: try again later.

    ``status`` is the HTTP status of the last answer, or None without an answer. ``retry_after`` is in seconds.
    """

    code = "server-unavailable"

    def __init__(self, message: str, *, status: int | None, retry_after: float | None) -> None:
        super().__init__(message)
        self.status, self.retry_after = status, retry_after


class ServiceFailed(TacitError):
    """A service could not start. Its log gives the reason."""

    code = "service-failed"


class TooFewEntities(TacitError):
    """Too few entities are left for a sum to hide each of them; nothing was unmasked."""

    code = "too-few-entities"


class InconsistentShares(TacitError):
    """An entity dealt shares that contradict its commitment; there is no total."""

    code = "inconsistent-shares"


class LedgerError(TacitError):
    """The base of all errors of a ledger."""

    code = "ledger-error"


class LedgerMissing(LedgerError):
    """There is no ledger at that address. tacit never recreates one: a lost ledger would become a fresh budget."""

    code = "ledger-missing"


class LedgerExists(LedgerError):
    """There is already a ledger at that address."""

    code = "ledger-exists"


class LedgerUnavailable(LedgerError):
    """The ledger cannot be read or written now: disk full, read-only, busy, connection lost."""

    code = "ledger-unavailable"


class LedgerDamaged(LedgerError):
    """The content of the ledger was changed after it was written."""

    code = "ledger-damaged"


class LedgerBehind(LedgerError):
    """The ledger lacks entries that it once had: an old backup?"""

    code = "ledger-behind"


class LedgerTooNew(LedgerError):
    """A later version of tacit wrote the ledger."""

    code = "ledger-too-new"
