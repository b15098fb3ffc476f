"""What goes into a charge, and what comes out."""

from typing import NamedTuple

from tacit.errors import InvalidParameter
from tacit.guarantees import Guarantee
from tacit.ledger.amounts import Cost


class Charge(NamedTuple):
    """A wish to release something about a subject."""

    subject: str
    release_id: str
    guarantee: Guarantee


class Receipt(NamedTuple):
    """A charge that is on the disk. ``fresh`` is False where this id had been charged before; ``stored`` is then what was
    released, if that was kept."""

    entry: int
    at: int  # microseconds since 1970
    cost: Cost
    fresh: bool
    stored: bytes | None = None


def as_charge(charge: Charge | tuple[str, str, Guarantee]) -> Charge | tuple[str, str, Guarantee]:
    """``charge``, if it has the three parts of one."""
    if not isinstance(charge, tuple) or len(charge) != 3:
        raise InvalidParameter("a charge is (subject, release_id, guarantee).")
    return charge
