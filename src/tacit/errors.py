"""What can go wrong, as types.

Every error has a stable ``code``, says what is wrong, what is allowed and what to do, and shows no private value: public
parameters (epsilon, a file name, a line number) may appear in a message, scores, ratings and features never.

```
TacitError
├── InvalidParameter          a public parameter is outside its range        (also a ValueError)
│   └── InvalidGuarantee      epsilon, delta or neighbours make no guarantee
├── MixedUnits                guarantees that protect different things were to be added up
├── InvalidInput              private input of a mechanism has the wrong shape or is not finite (also a ValueError)
├── InvalidData               a file or table does not hold what it should   (also a ValueError)
│   ├── MissingColumn
│   ├── DuplicateRatings
│   └── RatingOutsideScale
├── UnknownName               no data set, mechanism or column of that name
├── MissingExtra              an optional package is not installed
└── SystemNoiseUnavailable    the operating system gave no entropy
```
"""


class TacitError(Exception):
    """The base of all errors that tacit raises on purpose."""

    code = "tacit-error"

    def __str__(self) -> str:
        return f"{self.code}: {super().__str__()}"


class InvalidParameter(TacitError, ValueError):
    code = "invalid-parameter"


class InvalidGuarantee(InvalidParameter):
    code = "invalid-guarantee"


class MixedUnits(TacitError):
    code = "mixed-units"


class InvalidInput(TacitError, ValueError):
    code = "invalid-input"


class InvalidData(TacitError, ValueError):
    code = "invalid-data"


class MissingColumn(InvalidData):
    code = "missing-column"


class DuplicateRatings(InvalidData):
    code = "duplicate-ratings"


class RatingOutsideScale(InvalidData):
    code = "rating-outside-scale"


class UnknownName(TacitError, LookupError):
    code = "unknown-name"


class MissingExtra(TacitError, ImportError):
    code = "missing-extra"


class SystemNoiseUnavailable(TacitError, OSError):
    code = "system-noise-unavailable"
