"""A device's own record: the first choice stands, states only go on, and consent is dated."""

import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tacit.errors import InvalidParameter, LedgerDamaged, LedgerUnavailable, UnknownName
from tacit.guarantees import ONE_PROFILE, pure
from tacit.ledger import Budget, Consent, Display, DisplayLedger, DisplayState, PrivacyLedger
from tacit.ledger.chain import DAY, GRACE, SECOND
from tacit.ledger.stores.interface import CONSENTS
from tacit.ledger.verification import check
from tests.unit.ledger.impression_reference import alter, rows
from tests.unit.ledger.small_ledger import START, Hand

EXPIRES = START // SECOND + 600
CHOSEN, SHOWN, REPORTED = DisplayState


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "device.db"


@pytest.fixture
def clock() -> Hand:
    return Hand(START + 1)


@pytest.fixture(params=[1, 4], ids=["one lane", "four lanes"])
def ledger(request: pytest.FixtureRequest, path: Path, clock: Hand) -> Any:
    with DisplayLedger.create(path, lanes=request.param, clock=clock) as ledger:
        yield ledger
        assert check(path).sound


def test_the_first_choice_is_kept_and_returned_to_everybody(ledger: DisplayLedger, path: Path) -> None:
    first = ledger.choose("shop", "t", ("pear",), EXPIRES, b"\x00extra")
    assert first == Display("shop", "t", ("pear",), EXPIRES, CHOSEN, b"\x00extra")
    assert ledger.choose("shop", "t", ("apple",), EXPIRES + 9, b"other") == first
    assert ledger.find("shop", "t") == first
    ledger.mark_shown("shop", "t")
    assert ledger.choose("shop", "t", ("apple",), EXPIRES) == first._replace(state=SHOWN)  # shown stays shown
    with DisplayLedger.open(path) as other:
        assert other.choose("shop", "t", ("fig",), EXPIRES).items == ("pear",)


def test_tokens_of_different_servers_are_different(ledger: DisplayLedger) -> None:
    ledger.choose("shop", "t", ("pear",), EXPIRES)
    assert ledger.find("mall", "t") is None
    assert ledger.choose("mall", "t", ("fig",), EXPIRES).items == ("fig",)
    ledger.mark_shown("mall", "t")
    assert ledger.pending("shop") == []
    assert [display.items for display in ledger.pending("mall")] == [("fig",)]


def test_states_only_go_on(ledger: DisplayLedger) -> None:
    ledger.choose("shop", "t", ("pear", "fig"), EXPIRES)
    with pytest.raises(InvalidParameter, match="mark a display as shown before"):
        ledger.mark_reported("shop", "t")
    assert ledger.find("shop", "t").state is CHOSEN
    assert ledger.mark_shown("shop", "t").state is SHOWN
    assert ledger.mark_shown("shop", "t").state is SHOWN
    assert ledger.mark_reported("shop", "t").state is REPORTED
    assert ledger.mark_reported("shop", "t").state is REPORTED
    assert ledger.mark_shown("shop", "t").state is REPORTED
    assert ledger.find("shop", "t") == Display("shop", "t", ("pear", "fig"), EXPIRES, REPORTED)


def test_what_was_never_chosen_cannot_be_shown(ledger: DisplayLedger) -> None:
    for call in (ledger.mark_shown, ledger.mark_reported):
        with pytest.raises(UnknownName) as caught:
            call("shop", "secret")
        assert "secret" not in str(caught.value)


def test_pending_is_what_was_shown_and_not_reported_in_the_order_of_tokens(ledger: DisplayLedger) -> None:
    for token in "dbca":
        ledger.choose("shop", token, (f"item-{token}",), EXPIRES)
    for token in "dba":
        ledger.mark_shown("shop", token)
    ledger.mark_reported("shop", "b")
    assert [(display.token, display.state) for display in ledger.pending("shop")] == [("a", SHOWN), ("d", SHOWN)]
    seen = [(display.token, display.state) for display in ledger.shown("shop")]  # the reported ones too
    assert seen == [("a", SHOWN), ("b", REPORTED), ("d", SHOWN)]
    assert ledger.shown("mall") == []


def test_a_choice_is_kept_until_a_day_after_expiry_whatever_became_of_it(ledger: DisplayLedger, clock: Hand) -> None:
    """A repeated token must find the stored item, also after it was reported: a new draw would be a second release."""
    for token in "abc":
        ledger.choose("shop", token, ("pear",), EXPIRES)
        ledger.choose("shop", f"later-{token}", ("pear",), EXPIRES + 1)
    ledger.mark_shown("shop", "b")
    ledger.mark_shown("shop", "c")
    ledger.mark_reported("shop", "c")
    clock.at = (EXPIRES + GRACE) * SECOND
    assert ledger.forget() == 0
    assert ledger.choose("shop", "c", ("fig",), EXPIRES).items == ("pear",)
    clock.at += 1
    assert ledger.forget() == 3
    assert [ledger.find("shop", token) for token in "abc"] == [None] * 3
    assert ledger.find("shop", "later-a") is not None
    assert ledger.forget() == 0


def test_a_display_tells_a_log_nothing() -> None:
    assert repr(Display("shop", "token-1", ("pear",), EXPIRES, SHOWN, b"x")) == "Display(shown)"


def test_awkward_items_come_back_as_they_were(ledger: DisplayLedger) -> None:
    items = ("", "two\nlines", "nul\x00", "ü", "x" * 200, '"]')
    assert ledger.choose("shop", "t", items, EXPIRES).items == items
    assert ledger.find("shop", "t").items == items


@pytest.mark.parametrize(
    "wrong",
    [
        ("", "t", ("a",), 1),
        ("s", "", ("a",), 1),
        ("s", "t", (), 1),
        ("s", "t", "a", 1),
        ("s", "t", ["a"], 1),
        ("s", "t", (1,), 1),
        ("s", "t", ("a",), -1),
        ("s", "t", ("a",), 1.0),
        ("s", "t", ("a",), START),
        ("s", "t", ("a",), 1, "text"),
        ("s", "t", ("a",), 1, bytes(1024 * 1024 + 1)),
    ],
)
def test_what_is_no_display_is_refused(tmp_path: Path, wrong: Any) -> None:
    with DisplayLedger.create(tmp_path / "a.db") as ledger, pytest.raises(InvalidParameter):
        ledger.choose(*wrong)


def test_it_shares_the_file_with_the_privacy_ledger(path: Path, clock: Hand) -> None:
    with PrivacyLedger.create(path, clock=clock) as budget, DisplayLedger.open(path, clock=clock) as displays:
        budget.enrol("me", Budget(10, per="day", sliding=True), protects=ONE_PROFILE)
        budget.charge("me", "t", pure(1.0, ONE_PROFILE))
        displays.choose("shop", "t", ("pear",), EXPIRES)
        displays.consent(True)
        budget.charge("me", "u", pure(1.0, ONE_PROFILE))
        head = budget.head()
    assert check(path, head=head).sound
    with PrivacyLedger.open(path, head=head) as budget:
        assert budget.statement("me").charges == 2


def test_a_ledger_beside_another_shares_its_store_and_its_clock(path: Path, clock: Hand) -> None:
    with PrivacyLedger.create(path, clock=clock) as budget:
        displays = DisplayLedger.beside(budget)
        assert displays.consent(True).day == clock.at // DAY
        clock.at += DAY
        assert displays.consent(False).day == clock.at // DAY
        budget.enrol("me", Budget(1), protects=ONE_PROFILE)
    with pytest.raises(LedgerUnavailable):
        displays.consent(True)
    assert check(path).sound


@pytest.mark.parametrize(
    "change",
    [
        "items = '[\"fig\"]'",
        "expires = expires + 1",
        "state = 2",
        "state = 7",
        "extra = x'00'",
        "token = 'u'",
        "seal = x''",
    ],
)
def test_an_altered_display_is_noticed(ledger: DisplayLedger, path: Path, change: str) -> None:
    ledger.choose("shop", "t", ("pear",), EXPIRES)
    ledger.mark_shown("shop", "t")
    alter(path, f"UPDATE displays SET {change}")
    token = "u" if "token" in change else "t"
    for call in (lambda: ledger.find("shop", token), lambda: ledger.mark_reported("shop", token)):
        with pytest.raises(LedgerDamaged):
            call()
    assert "a display is not what was written" in str(check(path).findings)
    alter(path, "DELETE FROM displays")


def test_threads_that_choose_at_once_all_get_the_same(ledger: DisplayLedger) -> None:
    tokens = [f"t{i}" for i in range(30)]
    got: list[dict[str, tuple[str, ...]]] = []

    def run(number: int) -> None:
        got.append({token: ledger.choose("shop", token, (f"item-{number}",), EXPIRES).items for token in tokens})

    threads = [threading.Thread(target=run, args=(number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 5
    assert all(one == got[0] for one in got)


# --- consent


def test_nobody_has_consented_who_was_never_asked(ledger: DisplayLedger) -> None:
    assert ledger.consent_state() == Consent(False, None)
    assert ledger.consents() == []


def test_consent_is_dated_revocable_and_never_overwritten(ledger: DisplayLedger, path: Path, clock: Hand) -> None:
    today = START // DAY
    assert ledger.consent(True) == Consent(True, today)
    clock.at += 3 * DAY + 17
    assert ledger.consent(True) == Consent(True, today)  # the day it began
    assert ledger.consent(False) == Consent(False, today + 3)
    assert ledger.consent_state() == Consent(False, today + 3)
    clock.at -= 2 * DAY  # a clock that goes back does not date a later change before an earlier one
    assert ledger.consent(True) == Consent(True, today + 3)
    assert ledger.consents() == [Consent(True, today), Consent(False, today + 3), Consent(True, today + 3)]
    with DisplayLedger.open(path) as again:
        assert again.consent_state() == Consent(True, today + 3)
    assert [row[:3] for row in rows(path, "SELECT * FROM consents")] == [
        (1, 1, today),
        (2, 0, today + 3),
        (3, 1, today + 3),
    ]


def test_a_refusal_is_noted_as_well(ledger: DisplayLedger) -> None:
    assert ledger.consent(False) == Consent(False, START // DAY)
    assert ledger.consent_state().day is not None


@pytest.mark.parametrize("wrong", [1, 0, None, "yes"])
def test_consent_is_yes_or_no(ledger: DisplayLedger, wrong: Any) -> None:
    with pytest.raises(InvalidParameter):
        ledger.consent(wrong)
    assert ledger.consents() == []


def test_every_revocation_counts_also_one_that_changes_nothing_else(
    ledger: DisplayLedger, path: Path, clock: Hand
) -> None:
    today, numbers = START // DAY, [ledger.last_revocation()]
    for granted in (True, False, False, True, True, False):
        ledger.consent(granted)
        clock.at += DAY
        numbers.append(ledger.last_revocation())
    assert numbers == [0, 0, 2, 3, 3, 3, 5]
    assert ledger.consents() == [
        Consent(True, today),
        Consent(False, today + 1),  # said again a day later: since the first day still
        Consent(True, today + 3),
        Consent(False, today + 5),
    ]
    assert check(path).sound


@pytest.mark.parametrize("granted", [0, 1])
def test_a_consent_is_not_written_twice_and_a_revocation_not_under_another_day(
    path: Path, clock: Hand, granted: int
) -> None:
    with DisplayLedger.create(path, clock=clock) as ledger:
        ledger.consent(granted == 1)
    later = (2, granted, START // DAY + 1 - granted)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO consents VALUES (?, ?, ?, ?)", (*later, CONSENTS.seal_of(*later)))
    assert not check(path).sound


def test_an_altered_consent_is_noticed(ledger: DisplayLedger, path: Path) -> None:
    ledger.consent(True)
    ledger.consent(False)
    alter(path, "UPDATE consents SET granted = 1 WHERE number = 2")
    for call in (ledger.consent_state, ledger.consents, lambda: ledger.consent(True)):
        with pytest.raises(LedgerDamaged):
            call()
    alter(path, "DELETE FROM consents")


def test_forgetting_displays_leaves_the_consents(ledger: DisplayLedger, clock: Hand) -> None:
    ledger.consent(True)
    ledger.choose("shop", "t", ("pear",), EXPIRES)
    clock.at += 40 * DAY
    assert ledger.forget() == 1
    assert ledger.consent_state().granted
