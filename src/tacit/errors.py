"""What can go wrong, as types.

Every error has a stable ``code``, says what is wrong, what is allowed and what to do, and shows no private value: public
parameters (epsilon, a file name, a line number) may appear in a message, scores, ratings and features never.

```
TacitError
├── InvalidParameter          a public parameter is outside its range        (also a ValueError)
│   └── InvalidGuarantee      epsilon, delta or neighbours make no guarantee
├── MixedUnits                guarantees that protect different things were to be added up
├── InvalidInput              private input of a mechanism has the wrong shape or is not finite (also a ValueError)
│   └── InvalidFeatures       features outside their public domain: refused before any noise is drawn
├── InvalidMessage            bytes or JSON from another party are not the message they should be   (also a ValueError)
├── InvalidModel              a model gives scores that cannot be used, or a stored model cannot be read   (also a ValueError)
│   └── NoLookAlikes          an algorithm that weighs look-alikes was given none
├── InvalidData               a file or table does not hold what it should   (also a ValueError)
│   ├── MissingColumn
│   ├── DuplicateRatings
│   └── RatingOutsideScale
├── UnknownName               no data set, mechanism or column of that name
│   └── UnknownSubject        the ledger knows no subject of that name
├── MissingExtra              an optional package is not installed
├── SystemNoiseUnavailable    the operating system gave no entropy
├── BudgetExhausted           a charge does not fit into what is left; nothing was charged
├── GuaranteeRefused          a guarantee that the subject's terms cannot charge
├── Conflict                  an id that was used before, for something else
├── ServerRefused             a server gave a final answer that is no message
├── ServerUnavailable         a server does not answer, or asks to be asked later
├── ServiceFailed             a service could not start
├── TooFewEntities            too few entities are left for a sum to hide each of them; nothing was unmasked
├── InconsistentShares        an entity dealt shares that do not give what it is committed to; there is no total
└── LedgerError
    ├── LedgerMissing         there is no ledger at that place
    ├── LedgerExists          there is one already
    ├── LedgerUnavailable     it cannot be read or written now (disk full, read-only, busy, connection lost)
    ├── LedgerDamaged         what it holds is not what was written
    ├── LedgerBehind          it lacks entries that it once had (an old backup?)
    └── LedgerTooNew          it was written by a later version
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
    """A public parameter is outside its range; the message names the parameter and what is allowed."""

    code = "invalid-parameter"


class InvalidGuarantee(InvalidParameter):
    """Epsilon, delta or neighbours make no guarantee."""

    code = "invalid-guarantee"


class MixedUnits(TacitError):
    """Guarantees that protect different things were to be added up."""

    code = "mixed-units"


class InvalidInput(TacitError, ValueError):
    """Private input of a mechanism has the wrong shape or is not finite. The message shows none of it."""

    code = "invalid-input"


class InvalidFeatures(InvalidInput):
    """Features outside their public domain: refused before any noise is drawn."""

    code = "invalid-features"


class InvalidMessage(TacitError, ValueError):
    """Bytes or JSON from another party are not the message that they should be."""

    code = "invalid-message"


class InvalidModel(TacitError, ValueError):
    """A model gives scores that cannot be used, or a stored model cannot be read."""

    code = "invalid-model"


class NoLookAlikes(InvalidModel):
    """An algorithm that weighs look-alikes was given none."""

    code = "no-look-alikes"


class InvalidData(TacitError, ValueError):
    """A file or table does not hold what it should; the message names the file and the line, and no value."""

    code = "invalid-data"


class MissingColumn(InvalidData):
    """A table lacks a column that its reader was told to read."""

    code = "missing-column"


class DuplicateRatings(InvalidData):
    """A user rated an item twice, and nobody said which rating counts."""

    code = "duplicate-ratings"


class RatingOutsideScale(InvalidData):
    """A rating lies below or above the public scale."""

    code = "rating-outside-scale"


class UnknownName(TacitError, LookupError):
    """No data set, mechanism, item or column has that name."""

    code = "unknown-name"


class MissingExtra(TacitError, ImportError):
    """An optional package is not installed; the message names the extra that has it."""

    code = "missing-extra"


class SystemNoiseUnavailable(TacitError, OSError):
    """The operating system gave no entropy; nothing was released."""

    code = "system-noise-unavailable"


class UnknownSubject(UnknownName):
    """The ledger knows no subject of that name."""

    code = "unknown-subject"


class BudgetExhausted(TacitError):
    """A refused charge. The figures are exact decimals in the unit of the accounting: epsilon, rho or releases.

    ``measure`` names that unit. Where delta was what did not fit, it is "delta".
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
    """A guarantee that the subject's terms cannot charge: nothing was charged, nothing drawn."""

    code = "guarantee-refused"


class Conflict(TacitError):
    """An id that was used before, for something else."""

    code = "conflict"


class ServerRefused(TacitError):
    """A final answer that is no message. ``problem`` is the server's own stable code; None where the answer is somebody else's."""

    code = "server-refused"

    def __init__(self, message: str, *, status: int, problem: str | None) -> None:
        super().__init__(message)
        self.status, self.problem = status, problem


class ServerUnavailable(TacitError):
    """No final answer. ``status`` is that of the last answer, None where there was none; ``retry_after`` is in seconds."""

    code = "server-unavailable"

    def __init__(self, message: str, *, status: int | None, retry_after: float | None) -> None:
        super().__init__(message)
        self.status, self.retry_after = status, retry_after


class ServiceFailed(TacitError):
    """A service could not start; its log says why."""

    code = "service-failed"


class TooFewEntities(TacitError):
    """Too few entities are left for a sum to hide each of them; nothing was unmasked."""

    code = "too-few-entities"


class InconsistentShares(TacitError):
    """An entity dealt shares that do not give what it is committed to; there is no total."""

    code = "inconsistent-shares"


class LedgerError(TacitError):
    """Something is wrong with a ledger; subclasses say what."""

    code = "ledger-error"


class LedgerMissing(LedgerError):
    """There is no ledger at that place, and none is made by the way: a lost one must not look like a new one."""

    code = "ledger-missing"


class LedgerExists(LedgerError):
    """There is a ledger at that place already."""

    code = "ledger-exists"


class LedgerUnavailable(LedgerError):
    """The ledger cannot be read or written now: disk full, read-only, busy, connection lost."""

    code = "ledger-unavailable"


class LedgerDamaged(LedgerError):
    """What the ledger holds is not what was written."""

    code = "ledger-damaged"


class LedgerBehind(LedgerError):
    """The ledger lacks entries that it once had: an old backup?"""

    code = "ledger-behind"


class LedgerTooNew(LedgerError):
    """The ledger was written by a later version of tacit."""

    code = "ledger-too-new"
