"""What goes into a charge, and what comes out."""

from typing import NamedTuple

from tacit.errors import InvalidParameter
from tacit.guarantees import Guarantee
from tacit.ledger.amounts import Cost
from tacit.ledger.names import MOST_CHARACTERS, name


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


def checked_charge(charge: Charge | tuple[str, str, Guarantee]) -> Charge:
    """``charge``, if it could stand in the ledger."""
    if not isinstance(charge, tuple) or len(charge) != 3:
        raise InvalidParameter("a charge is (subject, release_id, guarantee).")
    subject, release_id, guarantee = charge
    # As in names.name, written out: it is done for every charge.
    if not (type(subject) is str and 0 < len(subject) <= MOST_CHARACTERS and subject.isprintable()):
        name("a subject", subject)
    if not (type(release_id) is str and 0 < len(release_id) <= MOST_CHARACTERS and release_id.isprintable()):
        name("a release_id", release_id)
    return charge if type(charge) is Charge else Charge(subject, release_id, guarantee)
