"""A recipe: how one system would be used in a situation, what it promises, and the words that run it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_FLOOR, Context
from types import MappingProxyType

from tacit.curator.private_slates.plan import each_of
from tacit.errors import InvalidParameter
from tacit.guarantees import Guarantee
from tacit.ledger import Accounting, Budget

IMPORT = "tacit data import ratings.csv --user user_id --item item_id --rating rating --scale 1 5 --out ratings.parquet"
FIT = "tacit fit ratings.parquet --model factors --models tacit-home/models"  # a file of ratings has no genres to learn from
_IMPORTED = {
    "ratings.csv": "one rating in each line: a user, an item and a rating from 1 to 5; the first line names the columns. Write "
    'your own columns and scale into the command. An example: docs/data.md, "Your own file".',
}
_DIGITS = Context(prec=6, rounding=ROUND_FLOOR)


@dataclass(frozen=True, slots=True)
class Recipe:
    """``each`` is what one release promises and ``total`` all of them together, both from the library's own objects.

    ``read_at`` is the epsilon at which a curve is read, ``line`` a word of the method's name there (None: the default method).
    ``of_sums``: the noise hides in sums over users, so that half the users are as bad as half the epsilon. ``is_hopeless``:
    public constants alone show that nothing can be learned. ``commands`` run it, ``files`` are what they read, ``needs``
    says what other files hold that have to be there, and ``python`` does the same in one process, on embedded data.
    """

    mode: str
    each: Guarantee
    total: Guarantee
    read_at: float
    users: int
    commands: tuple[str, ...]
    python: str
    reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    line: str | None = None
    of_sums: bool = False
    is_hopeless: bool = False
    is_measured: bool = True  # this mode, by some evaluation
    files: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    needs: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


def needed_by(found: Recipe) -> Mapping[str, str]:
    """Every file that the commands read and that nobody has made yet, with what it holds."""
    return {**(_IMPORTED if IMPORT in found.commands else {}), **found.needs}


def digits(value: float) -> str:
    """At most six digits, rounded down, as a person would type them: 0.333333, 2, 1e-06."""
    return f"{float(_DIGITS.create_decimal(repr(value))):g}"


def share_of(promise: Callable[[float], Guarantee], times: int, budget: Budget, accounting: Accounting) -> float:
    """The epsilon of each of ``times`` releases that a ledger has room for, as it is typed."""
    promise(budget.epsilon)  # whatever else is wrong is told as it is
    try:
        return float(digits(each_of(promise, times, budget, accounting)))
    except InvalidParameter:
        raise InvalidParameter(
            f"{times:,} releases have no share in {budget}: release less often, or give a larger one."
        ) from None
