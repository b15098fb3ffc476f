"""Consent: granted or not, and since which day. Every change is a row of its own; none is ever altered."""

from hashlib import sha256
from typing import NamedTuple

from tacit.errors import InvalidParameter, LedgerDamaged
from tacit.ledger.clock import day_of
from tacit.ledger.stores.interface import Query, Reader, Row, Writer
from tacit.ledger.stores.schema import CONSENTS

_LAST = Query("SELECT number, granted, day, seal FROM consents ORDER BY number DESC LIMIT 1", ())


class Consent(NamedTuple):
    """Whether she consents, and since which day (counted from 1970). Nobody who was never asked has consented."""

    granted: bool
    day: int | None


NEVER_ASKED = Consent(False, None)


def commit_consent(writer: Writer, moment: int, granted: bool) -> Consent:
    """Adds the consent, or its end, if that is a change. The caller's transaction makes it durable."""
    if type(granted) is not bool:
        raise InvalidParameter("consent is granted, or it is not: True or False.")
    (row,) = writer.ask(_LAST, [()])()
    number, last = _sealed(row)
    if row is not None and last.granted == granted:
        return last
    kept = (number + 1, int(granted), max(day_of(moment), last.day or 0))  # the clock may go back, a later row does not
    writer.insert(CONSENTS, [(*kept, seal_of_consent(*kept))])
    return Consent(granted, kept[2])


def last_consent(reader: Reader) -> Consent:
    (row,) = reader.ask(_LAST, [()])()
    return _sealed(row)[1]


def all_consents(reader: Reader) -> list[Consent]:
    """Every change, the first one first."""
    rows = reader.stream("SELECT number, granted, day, seal FROM consents ORDER BY number")
    return [_sealed(row)[1] for row in rows]


def seal_of_consent(number: int, granted: int, day: int) -> bytes:
    return sha256(f"consent\n{number}\n{granted}\n{day}".encode()).digest()[:8]


def _sealed(row: Row | None) -> tuple[int, Consent]:
    if row is None:
        return 0, NEVER_ASKED
    number, granted, day, seal = row
    if seal_of_consent(number, granted, day) != seal:
        raise LedgerDamaged("a consent is not what was written. Run `tacit ledger check`, restore a backup.")
    return number, Consent(granted == 1, day)
