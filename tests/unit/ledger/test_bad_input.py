"""What should not be given to a ledger: refused with an error that says why and repeats nothing private."""

import math
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tacit.errors import (
    BudgetExhausted,
    Conflict,
    GuaranteeRefused,
    InvalidGuarantee,
    InvalidParameter,
    LedgerError,
    LedgerExists,
    LedgerMissing,
    MixedUnits,
    TacitError,
    UnknownSubject,
)
from tacit.guarantees import ONE_PROFILE, ONE_USER, Guarantee, Neighbours, approximate, metric, nothing, pure
from tacit.ledger import Budget, PrivacyLedger, Terms
from tacit.ledger.privacy import LONGEST_DRAW
from tacit.ledger.verification import check
from tests.unit.ledger.small_ledger import Hand

TENTH = pure(0.1, ONE_USER)
SUBJECT, RELEASE, CONTENT = "ward-seven-pseudonym", "mean-of-november", b"the-content-that-was-released"
SECRETS = (SUBJECT, RELEASE, CONTENT.decode(), "another-pseudonym", "secret-subject", "secret-release")


class Text(str):
    """Looks like a text, and might say something else the next time."""


BAD_NAMES = {
    "empty": "",
    "129 characters": "x" * 129,
    "a million characters": "secret-subject" * 71_429,
    "a line break": "secret-subject\nsecret-release",
    "a carriage return": "secret-subject\r",
    "a tab": "secret-subject\t",
    "NUL": "secret-subject\0",
    "a lone surrogate": "secret-subject\ud800",
    "a right-to-left mark": "secret-subject\u200f",
    "a right-to-left override": "\u202esecret-subject",
    "a zero-width space": "secret\u200b-subject",
    "a byte order mark": "\ufeffsecret-subject",
    "a line separator": "secret-subject\u2028",
    "a delete character": "secret-subject\x7f",
    "an unassigned character": "secret-subject\U000e0080",
    "a private character": "secret-subject\ue000",
    "a no-break space": "secret-subject\xa0",
    "bytes": b"secret-subject",
    "a bytearray": bytearray(b"secret-subject"),
    "None": None,
    "an int": 5,
    "a float": 0.5,
    "a truth value": True,
    "a str subclass": Text("secret-subject"),
    "a list": ["secret-subject"],
    "a guarantee": TENTH,
}
GOOD_NAMES = [
    "x",
    " ",
    "x" * 128,
    "'; DROP TABLE entries; --",
    '" OR 1=1 --',
    "Robert'); DELETE FROM subjects WHERE ('a'='a",
    "% _ \\ ? ?1 :a $1 %s %(a)s {} {0}",
    "null",
    "0",
    "e\u0301",  # with a combining accent
    "é",  # the same to the eye, and another subject
    "🦉👩‍👩‍👧"[:1],
    "ﬀ",
    "שלום",
    "日本語",
    "A",
    "a",
    "a ",
    "ß",
    "SS",
    "İ",
    "ı",
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def clock() -> Hand:
    return Hand()


@pytest.fixture
def ledger(path: Path, clock: Hand) -> Iterator[PrivacyLedger]:
    """With one subject who has one release, and hardly anything left."""
    with PrivacyLedger.create(path, clock=clock) as created:
        created.enrol(SUBJECT, Budget(0.15), protects=ONE_USER)
        created.release(SUBJECT, RELEASE, TENTH, lambda: CONTENT)
        yield created
    assert check(path).sound


def refused(error: type[TacitError], call: Callable[..., object], *arguments: object, **named: object) -> str:
    """The message of the error, after a look at all that is printed of it and of what led to it."""
    with pytest.raises(error) as caught:
        call(*arguments, **named)
    problem: BaseException | None = caught.value
    while problem is not None:
        printed = f"{problem} {problem!r} {vars(problem)}"
        assert not any(secret in printed for secret in SECRETS), type(problem)
        assert len(printed) < 2_000
        problem = problem.__cause__ or (None if problem.__suppress_context__ else problem.__context__)
    message = str(caught.value)
    assert message.startswith(f"{caught.value.code}: ")
    return message


def dump(path: Path) -> list[str]:
    connection = sqlite3.connect(path)
    try:
        return list(connection.iterdump())
    finally:
        connection.close()


@pytest.mark.parametrize("bad", BAD_NAMES.values(), ids=BAD_NAMES.keys())
def test_subject_or_release_id_that_is_no_printable_name_is_refused(
    ledger: PrivacyLedger, path: Path, bad: object
) -> None:
    before = dump(path)
    refused(InvalidParameter, ledger.enrol, bad, Budget(1.0), protects=ONE_USER)
    refused(InvalidParameter, ledger.enrol_many, ["good", bad], Terms(Budget(1.0), ONE_USER))
    refused(InvalidParameter, ledger.charge, bad, "r", TENTH)
    refused(InvalidParameter, ledger.charge, SUBJECT, bad, TENTH)
    refused(InvalidParameter, ledger.release, SUBJECT, bad, TENTH, lambda: pytest.fail("drawn"))
    refused(InvalidParameter, ledger.keep, bad, RELEASE, b"x")
    refused(InvalidParameter, ledger.keep, SUBJECT, bad, b"x")
    refused(InvalidParameter, ledger.terms, bad)
    refused(InvalidParameter, ledger.price, bad, TENTH)
    refused(InvalidParameter, ledger.statement, bad)
    assert dump(path) == before


@pytest.mark.parametrize("bad", BAD_NAMES.values(), ids=BAD_NAMES.keys())
def test_bad_name_among_many_charges_spoils_none_of_the_others(ledger: PrivacyLedger, bad: object) -> None:
    ledger.enrol("good", Budget(1.0), protects=ONE_USER)
    outcomes = ledger.charge_many(
        [("good", "one", TENTH), (bad, "r", TENTH), ("good", bad, TENTH), ("good", "two", TENTH)]
    )
    assert [isinstance(outcome, InvalidParameter) for outcome in outcomes] == [False, True, True, False]
    assert ledger.statement("good").charges == 2


def test_names_with_quotes_and_letters_of_every_kind_are_names(ledger: PrivacyLedger) -> None:
    for number, name in enumerate(GOOD_NAMES):
        ledger.enrol(name, Budget(0.1 * (number + 1)), protects=ONE_USER)
    for number, name in enumerate(GOOD_NAMES):
        for release_id in GOOD_NAMES[: number + 1]:
            content = f"{name} {release_id}".encode()
            assert ledger.release(name, release_id, TENTH, lambda content=content: content) == content
    assert list(ledger.subjects()) == [SUBJECT, *GOOD_NAMES]
    for number, name in enumerate(GOOD_NAMES):
        assert ledger.statement(name).charges == number + 1
        assert ledger.charge(name, GOOD_NAMES[0], TENTH).stored == f"{name} {GOOD_NAMES[0]}".encode()
        refused(BudgetExhausted, ledger.charge, name, "one more", pure(0.2, ONE_USER))


@pytest.mark.parametrize("epsilon", [-0.1, -1e-300, math.nan, -math.inf, None, "0.1", True])
def test_guarantee_that_is_none_does_not_come_into_being(epsilon: object) -> None:
    for build in (lambda: pure(epsilon, ONE_USER), lambda: Guarantee(epsilon, ONE_USER)):
        with pytest.raises(InvalidGuarantee):
            build()


@pytest.mark.parametrize("guarantee", [None, 0.1, "0.1", ONE_USER, {"epsilon": 0.1}, [TENTH], Budget(0.1), math.nan])
def test_charge_is_made_for_a_guarantee_and_nothing_else(ledger: PrivacyLedger, guarantee: object) -> None:
    refused(InvalidParameter, ledger.charge, SUBJECT, "r", guarantee)
    refused(InvalidParameter, ledger.price, SUBJECT, guarantee)
    refused(InvalidParameter, ledger.release, SUBJECT, "r", guarantee, lambda: pytest.fail("drawn"))
    assert ledger.statement(SUBJECT).charges == 1


def test_unknown_subject_is_told_so_and_not_named(ledger: PrivacyLedger) -> None:
    refused(UnknownSubject, ledger.charge, "another-pseudonym", "r", TENTH)
    refused(UnknownSubject, ledger.price, "another-pseudonym", TENTH)
    refused(UnknownSubject, ledger.terms, "another-pseudonym")
    refused(UnknownSubject, ledger.statement, "another-pseudonym")
    refused(InvalidParameter, ledger.keep, "another-pseudonym", RELEASE, b"x")
    refused(UnknownSubject, ledger.release, "another-pseudonym", "r", TENTH, lambda: pytest.fail("drawn"))


def test_no_refusal_names_the_subject_the_release_or_its_content(ledger: PrivacyLedger) -> None:
    refused(BudgetExhausted, ledger.charge, SUBJECT, "secret-release", TENTH)
    refused(BudgetExhausted, ledger.charge, SUBJECT, "secret-release", approximate(0.01, 1e-9, ONE_USER))
    refused(Conflict, ledger.charge, SUBJECT, RELEASE, pure(0.05, ONE_USER))
    refused(Conflict, ledger.enrol, SUBJECT, Budget(9.0), protects=ONE_USER)
    refused(Conflict, ledger.enrol, SUBJECT, Budget(0.15), protects=ONE_PROFILE)
    refused(MixedUnits, ledger.charge, SUBJECT, "secret-release", pure(0.01, ONE_PROFILE))
    refused(MixedUnits, ledger.charge, SUBJECT, "secret-release", metric(0.01))
    refused(GuaranteeRefused, ledger.charge, SUBJECT, "secret-release", nothing(ONE_USER, "unproven: a step"))
    refused(InvalidParameter, ledger.keep, SUBJECT, "secret-release", CONTENT)
    refused(InvalidParameter, ledger.keep, SUBJECT, RELEASE, CONTENT.decode())
    refused(InvalidParameter, ledger.keep, SUBJECT, RELEASE, bytearray(CONTENT))


@pytest.mark.parametrize("content", ["text", None, 5, bytearray(b"x"), memoryview(b"x"), [b"x"]])
def test_release_that_is_no_bytes_is_refused_and_can_be_drawn_again(
    ledger: PrivacyLedger, clock: Hand, content: object
) -> None:
    ledger.enrol("good", Budget(0.1), protects=ONE_USER)
    refused(InvalidParameter, ledger.release, "good", "r", TENTH, lambda: content)
    clock.at += LONGEST_DRAW  # nobody can still be drawing
    assert ledger.release("good", "r", TENTH, lambda: b"bytes") == b"bytes"


def test_release_of_more_than_sixteen_megabytes_is_refused(ledger: PrivacyLedger) -> None:
    refused(InvalidParameter, ledger.keep, SUBJECT, RELEASE, bytes(16 * 1024 * 1024 + 1))


def test_metric_and_other_guarantees_do_not_mix(ledger: PrivacyLedger) -> None:
    ledger.enrol("metric", Budget(1.0), protects=Neighbours.features("L1"))
    assert ledger.charge("metric", "r", metric(0.5)).fresh
    refused(MixedUnits, ledger.charge, "metric", "s", metric(0.5, distance="L2"))
    refused(MixedUnits, ledger.charge, "metric", "s", pure(0.5, Neighbours.features("L1", 2.0)))
    refused(MixedUnits, ledger.charge, "metric", "s", TENTH)
    refused(MixedUnits, ledger.charge, SUBJECT, "s", metric(0.01))
    statement = ledger.statement("metric")
    assert (statement.promised.epsilon, statement.promised.per_distance) == (0.5, True)


@pytest.mark.parametrize("epsilon", [1e29, 1e100, 1.7e308])
def test_absurd_epsilon_is_refused_like_any_other(ledger: PrivacyLedger, epsilon: float) -> None:
    refused(BudgetExhausted, ledger.charge, SUBJECT, "r", pure(epsilon, ONE_USER))
    outcomes = ledger.charge_many([(SUBJECT, "big", pure(epsilon, ONE_USER)), (SUBJECT, "small", pure(0.05, ONE_USER))])
    assert isinstance(outcomes[0], TacitError)
    assert outcomes[1].fresh


@pytest.mark.parametrize(
    ("budgets", "named"),
    [
        (None, {}),
        ([], {}),
        ([None], {}),
        (0.3, {}),
        ("0.3", {}),
        ([Budget(1.0), Budget(2.0)], {}),
        (Budget(1e-10), {}),
        (Budget(1e10), {}),
        (Budget(1.0), {"protects": None}),
        (Budget(1.0), {"accounting": "rdp"}),
        (Budget(1.0), {"accounting": None}),
        (Budget(1.0), {"accounting": "zcdp"}),
        (Budget(1.0), {"each": TENTH}),
        (Budget(1.0, 1e-6), {"accounting": "pld"}),
        (Budget(1.0, 1e-6), {"accounting": "pld", "each": pure(0.1, ONE_PROFILE)}),
        (Budget(1.0, 1e-6), {"accounting": "pld", "each": nothing(ONE_USER, "unproven: a step")}),
        (Budget(1.0, 1e-6), {"accounting": "pld", "each": pure(0.0, ONE_USER)}),
        (Budget(1.0), {"unprotected": "unproven: a step"}),
        (Budget(1.0), {"unprotected": b"unproven"}),
        (Budget(1.0), {"unprotected": [None]}),
        (Budget(1.0), {"unprotected": None}),
    ],
)
def test_terms_that_make_no_sense_enrol_nobody(
    ledger: PrivacyLedger, path: Path, budgets: object, named: dict[str, object]
) -> None:
    before = dump(path)
    refused(InvalidParameter, ledger.enrol, "secret-subject", budgets, **{"protects": ONE_USER, **named})
    assert dump(path) == before


def test_many_subjects_are_a_list_of_names_and_not_one_name(ledger: PrivacyLedger, path: Path) -> None:
    before = dump(path)
    refused(InvalidParameter, ledger.enrol_many, "secret-subject", Terms(Budget(1.0), ONE_USER))
    refused(InvalidParameter, ledger.enrol_many, ["secret-subject"], Budget(1.0))
    assert dump(path) == before


def test_many_subjects_are_enrolled_once_each(ledger: PrivacyLedger) -> None:
    ledger.enrol_many(["b", "a", "b", SUBJECT], Terms(Budget(0.15), ONE_USER))
    ledger.enrol_many([], Terms(Budget(9.0), ONE_USER))
    assert list(ledger.subjects()) == [SUBJECT, "b", "a"]
    assert ledger.statement(SUBJECT).charges == 1


def test_ledger_is_not_created_where_there_is_one(ledger: PrivacyLedger, path: Path) -> None:
    refused(LedgerExists, PrivacyLedger.create, path)
    assert ledger.statement(SUBJECT).charges == 1


def test_database_of_something_else_is_left_as_it_is(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.db"
    connection = sqlite3.connect(foreign)
    connection.execute("CREATE TABLE precious (thing TEXT)")
    connection.commit()
    connection.close()
    before = foreign.read_bytes()
    refused(LedgerExists, PrivacyLedger.create, foreign)
    refused(LedgerMissing, PrivacyLedger.open, foreign)
    assert foreign.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["foreign.db"]


def test_file_of_something_else_is_left_as_it_is(tmp_path: Path) -> None:
    foreign = tmp_path / "notes.txt"
    foreign.write_bytes(b"dear diary, secret-subject " * 300)
    before = foreign.read_bytes()
    refused(LedgerError, PrivacyLedger.create, foreign)
    refused(LedgerError, PrivacyLedger.open, foreign)
    assert foreign.read_bytes() == before


def test_place_that_does_not_exist_is_told_so(tmp_path: Path) -> None:
    refused(LedgerMissing, PrivacyLedger.open, tmp_path / "none.db")
    refused(LedgerMissing, PrivacyLedger.create, tmp_path / "none" / "ledger.db")
    refused(LedgerMissing, PrivacyLedger.open, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("lanes", [0, -1, 257, 1.5, "1", True])
def test_lanes_are_a_small_whole_number(tmp_path: Path, lanes: object) -> None:
    refused(InvalidParameter, PrivacyLedger.create, tmp_path / "ledger.db", lanes=lanes)
    PrivacyLedger.create(tmp_path / "ledger.db").close()


@pytest.mark.parametrize("odd", ["a b?c#d%20e&mode=memory.db", "üñí 🦉.db", "'; DROP.db", "%41.db"])
def test_file_name_with_odd_characters_is_that_file(tmp_path: Path, odd: str) -> None:
    with PrivacyLedger.create(tmp_path / odd) as ledger:
        ledger.enrol("s", Budget(1.0), protects=ONE_USER)
    assert (tmp_path / odd).is_file()
    with PrivacyLedger.open(str(tmp_path / odd)) as ledger:
        assert list(ledger.subjects()) == ["s"]
