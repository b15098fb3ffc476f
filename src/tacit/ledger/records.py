"""Records beside the books: a device's displays and consents, and a shuffler's mail.

A device records each item that it chose, showed and reported, in the same file as its privacy ledger:

    kept = displays.choose("shop", token, ("item-7",), expires)   # on the disk before anything is shown; the first wins
    show(kept.items)
    displays.mark_shown("shop", token)                            # on the disk before anything is reported
    for display in displays.pending("shop"):
        report(display)                                           # until ok, duplicate or a final refusal
        displays.mark_reported("shop", display.token)

In this order everything that is billed was shown, and each token has one draw, even if the device crashes in between.

A shuffler records the reports that wait for their batch, each token once, on the disk before it acknowledges them:

    mail.add("batch-9", group, "item-7", token)                   # True: it is kept; False: this token was there before
    mail.close_batch("batch-9")                                   # no more are taken
    for group in mail.groups("batch-9"):
        send("batch-9", group, mail.reports("batch-9", group))    # in the order of tokens, the same at every call
    mail.forget("batch-9")                                        # after the server has acknowledged all of them
"""

import json
import os
from collections.abc import Iterable
from enum import IntEnum
from hashlib import sha256
from typing import NamedTuple

from tacit.errors import Conflict, InvalidParameter, LedgerDamaged, TacitError, UnknownName
from tacit.ledger.book import GroupCommit, Ledger, delete_rows, sole_outcome
from tacit.ledger.chain import END_OF_TIME, SECOND, Clock, checked_name, day_of, lane_of, lapsed_before, now
from tacit.ledger.offers import MOST_SLOTS, MOST_TOKEN
from tacit.ledger.stores.interface import CLOSED, CONSENTS, DISPLAYS, MAIL, LedgerStore, Query, Row, Writer
from tacit.ledger.tally import BOOK

_CLAIM = 16  # random bytes that tell one claim from another
MOST_EXTRA = 1024 * 1024  # bytes
_DISPLAY = Query(f"{DISPLAYS.select} WHERE server = ? AND token = ?", ("text", "text"))
_PENDING = f"{DISPLAYS.select} WHERE server = ? AND state = 1 ORDER BY token"  # shown, not reported
_SHOWN = f"{DISPLAYS.select} WHERE server = ? AND state > 0 ORDER BY token"
_LAPSED = "SELECT server, token FROM displays WHERE expires < ? LIMIT 2000"
_STILL_LAPSED = Query("SELECT 1 FROM displays WHERE server = ? AND token = ? AND expires < ?", ("text", "text", "int"))
_LAST = Query(f"{CONSENTS.select} ORDER BY number DESC LIMIT 1", ())
_LAST_REFUSAL = Query(f"{CONSENTS.select} WHERE granted = 0 ORDER BY number DESC LIMIT 1", ())


class DisplayState(IntEnum):
    """How far a display has come. It never goes back."""

    CHOSEN = 0
    SHOWN = 1
    REPORTED = 2


class Display(NamedTuple):
    """The choice for an offer of a server: one item for each slot."""

    server: str
    token: str
    items: tuple[str, ...]
    expires: int  # seconds since 1970
    state: DisplayState = DisplayState.CHOSEN
    extra: bytes = b""  # anything else that the device has to remember

    def __repr__(self) -> str:
        return f"Display({self.state.name.lower()})"  # no log may show the choice


_Change = tuple[Display, DisplayState]  # a display as it begins, and the state to reach


class Consent(NamedTuple):
    """Whether the user consents, and since which day (counted from 1970). A user who was never asked has not consented."""

    granted: bool
    day: int | None


NEVER_ASKED = Consent(False, None)


class DisplayLedger(Ledger):
    """Displays and consents of one device. One object may be shared by many threads, one file by many processes."""

    def __init__(self, store: LedgerStore, *, clock: Clock = now) -> None:
        super().__init__(store, clock=clock)
        self._change: GroupCommit[_Change, Display | TacitError] = GroupCommit(self._commit)

    def choose(self, server: str, token: str, items: tuple[str, ...], expires: int, extra: bytes = b"") -> Display:
        """Keeps a choice, durably. The first call wins; show what this returns, and nothing else.

        ``expires`` is in seconds since 1970.
        """
        return self._reach(_checked_display(server, token, items, expires, extra), DisplayState.CHOSEN)

    def claim(self, server: str, token: str, expires: int) -> bool:
        """Takes a token for the caller alone: True for the first caller, False for all later ones, in any process.

        A claim is a row of its own: a display of one item without a name, which is never shown. It is forgotten like any other
        display, 24 hours after ``expires`` (seconds since 1970).
        """
        checked_name("a token", token, MOST_TOKEN)
        key = f"claim {sha256(token.encode()).hexdigest()[:32]}"  # no offer has such a token: it is not hexadecimal
        claim = os.urandom(_CLAIM)
        return self.choose(server, key, ("",), expires, claim).extra == claim

    def find(self, server: str, token: str) -> Display | None:
        """The choice for this offer; None if there is none yet."""
        with self._store.read() as reader:
            (row,) = reader.ask(
                _DISPLAY, [(checked_name("a server", server), checked_name("a token", token, MOST_TOKEN))]
            )()
            return None if row is None else _read_display(row)

    def mark_shown(self, server: str, token: str) -> Display:
        """Records, durably, that the items are on the screen. Report them only after this."""
        return self._reach(_named(server, token), DisplayState.SHOWN)

    def mark_reported(self, server: str, token: str) -> Display:
        """Records that the server has given its final answer. Raises InvalidParameter for a display that was not shown."""
        return self._reach(_named(server, token), DisplayState.REPORTED)

    def pending(self, server: str) -> list[Display]:
        """Displays that were shown and not reported yet, in the order of tokens, which does not depend on time."""
        with self._store.read() as reader:
            return [_read_display(row) for row in reader.stream(_PENDING, (checked_name("a server", server),))]

    def shown(self, server: str) -> list[Display]:
        """Displays that were shown, reported or not, and are not deleted yet, in the order of tokens."""
        with self._store.read() as reader:
            return [_read_display(row) for row in reader.stream(_SHOWN, (checked_name("a server", server),))]

    def forget(self) -> int:
        """Deletes displays that expired more than 24 hours ago, and returns how many. Until then a token finds its choice again."""
        values = (lapsed_before(self._moment()),)
        return delete_rows(self._store, BOOK, DISPLAYS, _LAPSED, _STILL_LAPSED, values, lambda key: self._lane(*key))

    def consent(self, granted: bool) -> Consent:
        """Records, durably, that the user consents or no longer does.

        The same again changes nothing, not even the day; but a repeated revocation counts in ``last_revocation``.
        """
        with self._store.write(BOOK, [0]) as writer:
            return _commit_consent(writer, self._moment(), granted)

    def consent_state(self) -> Consent:
        """Whether the user consents, and since which day. A user who was never asked does not consent."""
        with self._store.read() as reader:
            (row,) = reader.ask(_LAST, [()])()
            return _read_consent(row)[1]

    def last_revocation(self) -> int:
        """The number of the last refusal or revocation, in any process; 0 if there was none.

        When it grows, wipe all private data from before.
        """
        with self._store.read() as reader:
            (row,) = reader.ask(_LAST_REFUSAL, [()])()
            return _read_consent(row)[0]

    def consents(self) -> list[Consent]:
        """Every change of consent, oldest first."""
        with self._store.read() as reader:
            rows = reader.stream(f"{CONSENTS.select} ORDER BY number")
            consents = [_read_consent(row)[1] for row in rows]
        # A repeated refusal is not a change.
        changes = zip([None, *consents], consents, strict=False)
        return [consent for before, consent in changes if before is None or before.granted != consent.granted]

    def _reach(self, display: Display, state: DisplayState) -> Display:
        return sole_outcome(self._change([(display, state)]))

    def _lane(self, server: str, token: str) -> int:
        return lane_of(f"{server}\n{token}", self._store.lanes)

    def _commit(self, changes: list[_Change]) -> list[Display | TacitError]:
        lanes = sorted({self._lane(display.server, display.token) for display, _ in changes})
        with self._store.write(BOOK, lanes) as writer:
            return _commit_changes(writer, changes)


def _commit_changes(writer: Writer, changes: list[_Change]) -> list[Display | TacitError]:
    """Each display after its change, in order. The caller's transaction makes it durable."""
    rows = writer.ask(_DISPLAY, [display[:2] for display, _ in changes])()
    kept: dict[tuple[str, str], Display] = {}
    new: set[tuple[str, str]] = set()
    changed: set[tuple[str, str]] = set()
    outcomes: list[Display | TacitError] = []
    for (display, state), row in zip(changes, rows, strict=True):
        key = display[:2]
        try:
            current = kept.get(key) or (None if row is None else _read_display(row))
        except LedgerDamaged as problem:
            outcomes.append(problem)
            continue
        if current is None and state is DisplayState.CHOSEN:
            current = display
            new.add(key)
        elif current is None:
            outcomes.append(UnknownName("there is no choice for this offer: choose first."))
            continue
        elif state > current.state + 1:
            outcomes.append(InvalidParameter("mark a display as shown before you mark it as reported."))
            continue
        elif state > current.state:
            current = current._replace(state=state)
            changed.add(key)
        kept[key] = current
        outcomes.append(current)
    writer.insert(DISPLAYS, [_row_of(kept[key]) for key in sorted(new)])
    updated = [_row_of(kept[key]) for key in sorted(changed - new)]
    writer.update(DISPLAYS, ("state", "seal"), [(row[4], row[6], row[0], row[1]) for row in updated])
    return outcomes


def _checked_display(server: str, token: str, items: tuple[str, ...], expires: int, extra: bytes) -> Display:
    key = _named(server, token)
    if (
        not isinstance(items, tuple)
        or not 1 <= len(items) <= MOST_SLOTS
        or not all(type(item) is str for item in items)
    ):
        raise InvalidParameter(f"a display is a tuple of 1 to {MOST_SLOTS} items.")
    if type(expires) is not int or not 0 <= expires <= END_OF_TIME // SECOND:
        raise InvalidParameter("a display expires at a whole number of seconds since 1970, before the year 9909.")
    if type(extra) is not bytes or len(extra) > MOST_EXTRA:
        raise InvalidParameter(f"the extra content of a display must be bytes, at most {MOST_EXTRA:,}.")
    return key._replace(items=items, expires=expires, extra=extra)


def _row_of(display: Display) -> Row:
    server, token, items, expires, state, extra = display
    return DISPLAYS.sealed(server, token, json.dumps(items), expires, int(state), extra)


def _read_display(row: Row) -> Display:
    server, token, items, expires, state, extra = DISPLAYS.unsealed(row)
    return Display(server, token, tuple(json.loads(items)), expires, DisplayState(state), extra)


def _named(server: str, token: str) -> Display:
    return Display(checked_name("a server", server), checked_name("a token", token, MOST_TOKEN), (), 0)


def _commit_consent(writer: Writer, moment: int, granted: bool) -> Consent:
    """Adds a row for a new consent, or for a refusal. The caller's transaction makes it durable.

    Every change is a row of its own, and no row is ever altered. A refusal is a row even if nothing was granted before: from the
    number of the last refusal a process knows whether to wipe its memory, and ratings may have come since an earlier refusal.
    """
    if type(granted) is not bool:
        raise InvalidParameter("consent is True or False.")
    (row,) = writer.ask(_LAST, [()])()
    number, last = _read_consent(row)
    again = row is not None and last.granted == granted
    if again and granted:
        return last
    since = last.day or 0
    # A repeated refusal keeps its first day. The clock may go back, the day of a later row does not.
    day = since if again else max(day_of(moment), since)
    writer.insert(CONSENTS, [CONSENTS.sealed(number + 1, int(granted), day)])
    return Consent(granted, day)


def _read_consent(row: Row | None) -> tuple[int, Consent]:
    """The number of a row of consents, and the consent in it."""
    if row is None:
        return 0, NEVER_ASKED
    number, granted, day = CONSENTS.unsealed(row)
    return number, Consent(granted == 1, day)


# The mail of a shuffler

_TOKEN = Query("SELECT 1 FROM mail WHERE batch = ? AND token = ?", ("text", "text"))
_CLOSED = Query("SELECT 1 FROM closed WHERE batch = ?", ("text",))
_GROUPS = "SELECT group_id, count(*) FROM mail WHERE batch = ? GROUP BY group_id ORDER BY group_id"
_REPORTS = "SELECT token, item, seal FROM mail WHERE batch = ? AND group_id = ? ORDER BY token"
_MAIL = "SELECT batch, token FROM mail WHERE batch = ? LIMIT 2000"
_STILL_MAIL = Query("SELECT 1 FROM mail WHERE batch = ? AND token = ? AND batch = ?", ("text", "text", "text"))


class Letter(NamedTuple):
    """One report: which batch and group it belongs to, its item, and the token that makes it count once."""

    batch: str
    group: str
    item: str
    token: str


class MailLedger(Ledger):
    """The mail of one shuffler. One object may be shared by many threads, one store by many processes."""

    def __init__(self, store: LedgerStore, *, clock: Clock = now) -> None:
        super().__init__(store, clock=clock)
        self._add: GroupCommit[Letter, bool | TacitError] = GroupCommit(self._commit)

    def add(self, batch: str, group: str, item: str, token: str) -> bool:
        """Keeps a report, and returns when it is on the disk: True, or False if the batch has this token already.

        A closed batch raises Conflict for new tokens.
        """
        return sole_outcome(self.add_many([Letter(batch, group, item, token)]))

    def add_many(self, letters: Iterable[Letter | tuple[str, str, str, str]]) -> list[bool | TacitError]:
        """One transaction for many reports, in their order. Each has its own outcome."""
        checked = [_checked_letter(*letter) for letter in letters]
        return self._add(checked) if checked else []

    def groups(self, batch: str) -> dict[str, int]:
        """The groups of a batch, in order, and how many reports each has."""
        with self._store.read() as reader:
            return dict(reader.stream(_GROUPS, (checked_name("a batch", batch),)))

    def reports(self, batch: str, group: str) -> list[tuple[str, str]]:
        """The reports of one group as (token, item), in the order of tokens, which does not depend on the order of arrival."""
        with self._store.read() as reader:
            rows = reader.stream(_REPORTS, (checked_name("a batch", batch), checked_name("a group", group)))
            letters = [MAIL.unsealed((batch, token, group, item, seal)) for token, item, seal in rows]
        return [(token, item) for _, token, _, item in letters]

    def close_batch(self, batch: str) -> None:
        """Closes a batch for good: it takes no more reports."""
        with self._store.write(BOOK, [self._lane(checked_name("a batch", batch))]) as writer:
            if writer.ask(_CLOSED, [(batch,)])()[0] is None:
                writer.insert(CLOSED, [(batch,)])

    def closed(self, batch: str) -> bool:
        """Whether a batch is closed."""
        with self._store.read() as reader:
            return reader.ask(_CLOSED, [(checked_name("a batch", batch),)])()[0] is not None

    def forget(self, batch: str) -> int:
        """Deletes the reports of a closed batch, and returns how many. The batch stays closed."""
        if not self.closed(batch):
            raise Conflict("a batch that still takes reports cannot be deleted: close it first.")
        return delete_rows(self._store, BOOK, MAIL, _MAIL, _STILL_MAIL, (batch,), lambda key: self._lane(key[0]))

    def _lane(self, batch: str) -> int:
        return lane_of(batch, self._store.lanes)

    def _commit(self, letters: list[Letter]) -> list[bool | TacitError]:
        with self._store.write(BOOK, sorted({self._lane(letter.batch) for letter in letters})) as writer:
            return _commit_letters(writer, letters)


def _commit_letters(writer: Writer, letters: list[Letter]) -> list[bool | TacitError]:
    batches = list(dict.fromkeys(letter.batch for letter in letters))
    token_rows = writer.ask(_TOKEN, [(letter.batch, letter.token) for letter in letters])
    closed_rows = writer.ask(_CLOSED, [(batch,) for batch in batches])()
    closed = {batch for batch, row in zip(batches, closed_rows, strict=True) if row is not None}
    new: dict[tuple[str, str], Row] = {}
    outcomes: list[bool | TacitError] = []
    for (batch, group, item, token), row in zip(letters, token_rows(), strict=True):
        key = (batch, token)
        if row is not None or key in new:
            outcomes.append(False)
        elif batch in closed:
            outcomes.append(Conflict("this batch is closed: it takes no more reports."))
        else:
            new[key] = MAIL.sealed(batch, token, group, item)
            outcomes.append(True)
    writer.insert(MAIL, sorted(new.values()))
    return outcomes


def _checked_letter(batch: str, group: str, item: str, token: str) -> Letter:
    checked_name("a token", token, MOST_TOKEN)
    return Letter(
        checked_name("a batch", batch), checked_name("a group", group), checked_name("an item", item, 200), token
    )
