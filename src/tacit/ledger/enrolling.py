"""Enrolment: terms agreed with a subject become an entry of the chain."""

from tacit.errors import Conflict
from tacit.ledger.budgets import Terms
from tacit.ledger.chain import Tip, digest, lane_of
from tacit.ledger.entries import SUBJECT, canonical, link_of_charge, link_of_enrolment, seal_of_subject
from tacit.ledger.stores.interface import Row, Writer
from tacit.ledger.stores.schema import ENTRIES, SUBJECTS, TEXTS


def commit_enrolments(writer: Writer, lanes: int, moment: int, names: list[str], terms: Terms) -> None:
    """Enrols those who are not there yet; refuses all if one is there under other terms."""
    text = canonical(terms.to_json())
    key = digest(text)
    found = writer.ask(SUBJECT, [(name,) for name in names])()
    if any(row is not None and row[1] != key for row in found):
        raise Conflict("a subject of that name has other terms, and terms never change. Enrol under another name.")
    tips = dict(writer.tips)
    entries: list[Row] = []
    subjects: list[Row] = []
    for name, row in zip(names, found, strict=True):
        if row is not None:
            continue
        lane = lane_of(name, lanes)
        tip = tips[lane]
        at, number = max(moment, tip.at), (tip.position + 1) * lanes + lane
        body = (number, number, "", at, key, 0, 0, 0, 0, 0, 0, int(terms.windowed))
        link = link_of_enrolment(link_of_charge(tip.link, *body), name)
        entries.append((*body, link))
        subjects.append((number, name, key, 0, 0, 0, at, seal_of_subject(number, name, key, 0, 0, 0, at)))
        tips[lane] = Tip(tip.position + 1, link, at)
    if entries:
        writer.insert(TEXTS, [(key, text)], unless_there=True)
        writer.insert(SUBJECTS, subjects)
        writer.insert(ENTRIES, entries)
        writer.advance(tips)
