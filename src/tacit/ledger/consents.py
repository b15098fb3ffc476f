"""Consent: granted or not, and since which day. Every change is a row of its own; none is ever altered.

A refusal is a row also where nothing had been granted: whoever holds anything private in memory tells by the number of the last
one whether it is to be wiped, and something may have been rated since the refusal before.
"""

from hashlib import sha256
from typing import NamedTuple

from tacit.errors import InvalidParameter, LedgerDamaged
from tacit.ledger.clock import day_of
from tacit.ledger.stores.interface import Query, Reader, Row, Writer
from tacit.ledger.stores.schema import CONSENTS

_LAST = Query("SELECT number, granted, day, seal FROM consents ORDER BY number DESC LIMIT 1", ())
_LAST_REFUSAL = Query(
    "SELECT number, granted, day, seal FROM consents WHERE granted = 0 ORDER BY number DESC LIMIT 1", ()
)


class Consent(NamedTuple):
    """Whether she consents, and since which day (counted from 1970). Nobody who was never asked has consented."""

    granted: bool
    day: int | None


NEVER_ASKED = Consent(False, None)


def commit_consent(writer: Writer, moment: int, granted: bool) -> Consent:
    """Adds the consent, if that is a change, or its end. The caller's transaction makes it durable."""
    if type(granted) is not bool:
        raise InvalidParameter("consent is granted, or it is not: True or False.")
    (row,) = writer.ask(_LAST, [()])()
    number, last = _sealed(row)
    again = row is not None and last.granted == granted
    if again and granted:
        return last
    since = last.day or 0
    # Said again, it is still since the first day. The clock may go back, a later row does not.
    kept = (number + 1, int(granted), since if again else max(day_of(moment), since))
    writer.insert(CONSENTS, [(*kept, seal_of_consent(*kept))])
    return Consent(granted, kept[2])


def last_consent(reader: Reader) -> Consent:
    (row,) = reader.ask(_LAST, [()])()
    return _sealed(row)[1]


def last_revocation(reader: Reader) -> int:
    """The number of the last refusal or revocation: it grows with each of them. 0 where there was none."""
    (row,) = reader.ask(_LAST_REFUSAL, [()])()
    return _sealed(row)[0]


def all_consents(reader: Reader) -> list[Consent]:
    """Every change, the first one first."""
    rows = reader.stream("SELECT number, granted, day, seal FROM consents ORDER BY number")
    found = [_sealed(row)[1] for row in rows]
    return [one for place, one in enumerate(found) if place == 0 or one.granted != found[place - 1].granted]


def seal_of_consent(number: int, granted: int, day: int) -> bytes:
    return sha256(f"consent\n{number}\n{granted}\n{day}".encode()).digest()[:8]


def _sealed(row: Row | None) -> tuple[int, Consent]:
    if row is None:
        return 0, NEVER_ASKED
    number, granted, day, seal = row
    if seal_of_consent(number, granted, day) != seal:
        raise LedgerDamaged("a consent is not what was written. Run `tacit ledger check`, restore a backup.")
    return number, Consent(granted == 1, day)
