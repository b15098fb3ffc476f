"""A device's own record of what it chose, showed and reported, in the same file as its privacy ledger.

    kept = displays.choose("shop", token, ("item-7",), expires)   # on the disk before anything is shown; the first wins
    show(kept.items)
    displays.mark_shown("shop", token)                            # on the disk before anything is reported
    for display in displays.pending("shop"):
        report(display)                                           # until ok, duplicate or a final refusal
        displays.mark_reported("shop", display.token)

In this order whatever is billed was shown, and a token has one draw, wherever the device may crash.
"""

from tacit.errors import InvalidParameter, LedgerDamaged, TacitError, UnknownName
from tacit.ledger.chain import lane_of
from tacit.ledger.clock import END_OF_TIME, SECOND, Clock, now
from tacit.ledger.consents import Consent, all_consents, commit_consent, last_consent, last_revocation
from tacit.ledger.display_rows import Display, DisplayState, row_of, sealed_display
from tacit.ledger.forgetting import forget
from tacit.ledger.grouping import GroupCommit
from tacit.ledger.impression_rows import BOOK
from tacit.ledger.names import name
from tacit.ledger.offers import MOST_SLOTS, MOST_TOKEN, lapsed_before
from tacit.ledger.opened import OpenedLedger
from tacit.ledger.stores.interface import Query, Store, Writer
from tacit.ledger.stores.schema import DISPLAYS

MOST_EXTRA = 1024 * 1024  # bytes
_COLUMNS = "server, token, items, expires, state, extra, seal"
_DISPLAY = Query(f"SELECT {_COLUMNS} FROM displays WHERE server = ? AND token = ?", ("text", "text"))
_PENDING = f"SELECT {_COLUMNS} FROM displays WHERE server = ? AND state = 1 ORDER BY token"  # shown, not reported
_SHOWN = f"SELECT {_COLUMNS} FROM displays WHERE server = ? AND state > 0 ORDER BY token"
_LAPSED = "SELECT server, token FROM displays WHERE expires < ? LIMIT 2000"
_STILL_LAPSED = Query("SELECT 1 FROM displays WHERE server = ? AND token = ? AND expires < ?", ("text", "text", "int"))


_Change = tuple[Display, DisplayState]  # a display, as it is to begin, and the state to be reached


class DisplayLedger(OpenedLedger):
    """Displays and consents of one device. One object may be shared by many threads, one file by many processes."""

    def __init__(self, store: Store, *, clock: Clock = now) -> None:
        super().__init__(store, clock=clock)
        self._change: GroupCommit[_Change, Display | TacitError] = GroupCommit(self._commit)

    def choose(self, server: str, token: str, items: tuple[str, ...], expires: int, extra: bytes = b"") -> Display:
        """Keeps a choice, durably; the first to do so wins. Returns what is kept: show that, and nothing else.

        ``expires`` is in seconds since 1970.
        """
        return self._reach(_checked(server, token, items, expires, extra), DisplayState.CHOSEN)

    def find(self, server: str, token: str) -> Display | None:
        """What was chosen for this offer, if it was."""
        with self._store.read() as reader:
            (row,) = reader.ask(_DISPLAY, [(name("a server", server), name("a token", token, MOST_TOKEN))])()
            return None if row is None else sealed_display(row)

    def mark_shown(self, server: str, token: str) -> Display:
        """Notes, durably, that the items are on the screen. Only after this may they be reported."""
        return self._reach(_named(server, token), DisplayState.SHOWN)

    def mark_reported(self, server: str, token: str) -> Display:
        """Notes that the server has given its final answer. Refused for what was not shown."""
        return self._reach(_named(server, token), DisplayState.REPORTED)

    def pending(self, server: str) -> list[Display]:
        """What was shown and not reported yet, in the order of tokens: an order that says nothing."""
        with self._store.read() as reader:
            return [sealed_display(row) for row in reader.stream(_PENDING, (name("a server", server),))]

    def shown(self, server: str) -> list[Display]:
        """What was shown, reported or not, and is not forgotten yet, in the order of tokens."""
        with self._store.read() as reader:
            return [sealed_display(row) for row in reader.stream(_SHOWN, (name("a server", server),))]

    def forget(self) -> int:
        """Deletes what expired more than 24 hours ago, and returns how many. Until then a repeated token finds its choice."""
        given = (lapsed_before(self._moment()),)
        return forget(self._store, DISPLAYS, _LAPSED, _STILL_LAPSED, given, lambda key: self._lane(*key))

    def consent(self, granted: bool) -> Consent:
        """Notes, durably, that she consents, or no longer does. Saying the same again changes nothing of it, not the day either;
        a revocation that is said again is one more for ``last_revocation``."""
        with self._store.write(BOOK, [0]) as writer:
            return commit_consent(writer, self._moment(), granted)

    def consent_state(self) -> Consent:
        """Whether she consents, and since which day; no consent where she was never asked."""
        with self._store.read() as reader:
            return last_consent(reader)

    def last_revocation(self) -> int:
        """A number that grows whenever consent is revoked, by whatever process: what was private before that is to be wiped."""
        with self._store.read() as reader:
            return last_revocation(reader)

    def consents(self) -> list[Consent]:
        """Every change of it, the first one first."""
        with self._store.read() as reader:
            return all_consents(reader)

    def _reach(self, display: Display, state: DisplayState) -> Display:
        (outcome,) = self._change([(display, state)])
        if isinstance(outcome, TacitError):
            raise outcome
        return outcome

    def _lane(self, server: str, token: str) -> int:
        return lane_of(f"{server}\n{token}", self._store.lanes)

    def _commit(self, changes: list[_Change]) -> list[Display | TacitError]:
        lanes = sorted({self._lane(display.server, display.token) for display, _ in changes})
        with self._store.write(BOOK, lanes) as writer:
            return _commit_changes(writer, changes)


def _commit_changes(writer: Writer, changes: list[_Change]) -> list[Display | TacitError]:
    """Where each display stands afterwards, in order. The caller's transaction makes it durable."""
    rows = writer.ask(_DISPLAY, [display[:2] for display, _ in changes])()
    kept: dict[tuple[str, str], Display] = {}
    new: set[tuple[str, str]] = set()
    changed: set[tuple[str, str]] = set()
    outcomes: list[Display | TacitError] = []
    for (display, state), row in zip(changes, rows, strict=True):
        key = display[:2]
        try:
            found = kept.get(key) or (None if row is None else sealed_display(row))
        except LedgerDamaged as problem:
            outcomes.append(problem)
            continue
        if found is None and state is DisplayState.CHOSEN:
            found = display
            new.add(key)
        elif found is None:
            outcomes.append(UnknownName("there is no choice for this offer: choose first."))
            continue
        elif state > found.state + 1:
            outcomes.append(InvalidParameter("what was not marked as shown is not reported: mark it first."))
            continue
        elif state > found.state:
            found = found._replace(state=state)
            changed.add(key)
        kept[key] = found
        outcomes.append(found)
    writer.insert(DISPLAYS, [row_of(kept[key]) for key in sorted(new)])
    updated = [row_of(kept[key]) for key in sorted(changed - new)]
    writer.update(DISPLAYS, ("state", "seal"), [(row[4], row[6], row[0], row[1]) for row in updated])
    return outcomes


def _checked(server: str, token: str, items: tuple[str, ...], expires: int, extra: bytes) -> Display:
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
        raise InvalidParameter(f"what is kept with a display is bytes, at most {MOST_EXTRA:,}.")
    return key._replace(items=items, expires=expires, extra=extra)


def _named(server: str, token: str) -> Display:
    return Display(name("a server", server), name("a token", token, MOST_TOKEN), (), 0)
