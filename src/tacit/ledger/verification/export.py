"""A ledger as one file of JSON Lines that needs neither the store nor trust: whoever holds it can recompute every figure.

The lines, in this order, each with its ``kind``: one ``header``; every ``text`` of terms or of a guarantee, under its digest;
every ``enrolment`` and ``charge`` in the order of their numbers; every ``impression`` likewise; one ``end`` with the head, the
counts and the SHA-256 of all lines before it. Stored releases are not exported: they are the subjects'.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from tacit.errors import LedgerDamaged
from tacit.ledger.heads import read_head
from tacit.ledger.stores.interface import Reader, Store

FORMAT = "tacit-ledger-export"
VERSION = 1

_ENTRIES = (
    "SELECT e.number, e.release_id, e.at, e.guarantee, e.amount, e.delta, e.unprotected, e.total, e.total_delta, "
    "e.total_unprotected, e.windowed, e.link, s.name "
    "FROM entries e LEFT JOIN subjects s ON s.number = e.subject ORDER BY e.number"
)
_IMPRESSIONS = (
    "SELECT i.number, i.id, a.item, i.day, i.micros, i.link "
    "FROM impressions i LEFT JOIN accounts a ON a.number = i.account ORDER BY i.number"
)
_TOLD = 2_000  # lines between two reports of progress


def export(store: Store, out: TextIO, *, progress: Callable[[int], None] | None = None) -> int:
    """Writes the whole ledger, as it was at one moment, and returns how many lines. ``progress`` hears how many so far."""
    seen = hashlib.sha256()
    lines = 0
    with store.read() as reader:
        for content in _contents(reader, store):
            if content["kind"] == "end":
                content["sha256"] = seen.hexdigest()
            line = line_of(content)
            seen.update(line.encode())
            out.write(line)
            lines += 1
            if progress is not None and lines % _TOLD == 0:
                progress(lines)
    return lines


def line_of(content: dict[str, Any]) -> str:
    """The one way in which a line is written."""
    return json.dumps(content, separators=(",", ":"), allow_nan=False) + "\n"


def _contents(reader: Reader, store: Store) -> Iterator[dict[str, Any]]:
    try:
        yield from _header_and_texts(reader, store)
        entries = subjects = impressions = 0
        for number, release_id, at, key, *figures, windowed, link, name in reader.stream(_ENTRIES):
            entries += 1
            told = {"number": number, "subject": _there(name), "at": at, "windowed": windowed, "link": link.hex()}
            if release_id:
                cost, total = figures[:3], figures[3:]
                charge = {"release_id": release_id, "guarantee": key.hex(), "cost": cost, "total": total}
                yield {"kind": "charge", **told, **charge}
            else:
                subjects += 1
                yield {"kind": "enrolment", **told, "terms": key.hex()}
        for number, id, item, day, micros, link in reader.stream(_IMPRESSIONS):
            impressions += 1
            told = {"number": number, "id": id.hex(), "item": _there(item), "day": day, "micros": micros}
            yield {"kind": "impression", **told, "link": link.hex()}
        head = read_head(reader, store.ledger).to_json()
        yield {"kind": "end", "head": head, "entries": entries, "subjects": subjects, "impressions": impressions}
    except (AttributeError, KeyError, TypeError, ValueError) as problem:  # values of the wrong kind
        raise _damaged() from problem


def _header_and_texts(reader: Reader, store: Store) -> Iterator[dict[str, Any]]:
    ((created,),) = reader.stream("SELECT value FROM facts WHERE name = 'created'")
    told = {"format": FORMAT, "version": VERSION, "ledger": store.ledger, "lanes": store.lanes, "created": created}
    yield {"kind": "header", **told}
    for key, text in reader.stream("SELECT digest, text FROM texts ORDER BY digest"):
        yield {"kind": "text", "digest": key.hex(), "text": text}


def _there(name: str | None) -> str:
    if name is None:
        raise _damaged()
    return name


def _damaged() -> LedgerDamaged:
    return LedgerDamaged("rows are lost or damaged, so that nothing can be exported. Run `tacit ledger check`.")
