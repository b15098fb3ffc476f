"""Problems: every error has a status and a code that stays, and tells nothing that is not the caller's affair."""

import inspect
import json

import pytest

import tacit.errors
from tacit.errors import (
    Conflict,
    GuaranteeRefused,
    InvalidMessage,
    InvalidParameter,
    LedgerDamaged,
    LedgerUnavailable,
    SystemNoiseUnavailable,
    TacitError,
    UnknownName,
)
from tacit.service.bodies import CODES, Problem, problem_of

ERRORS = [one for one in vars(tacit.errors).values() if inspect.isclass(one) and issubclass(one, TacitError)]
# What goes wrong inside, at an operator's or on a device: a caller is told that it did, and no more.
INSIDE = {
    "tacit-error", "invalid-guarantee", "mixed-units", "invalid-input", "invalid-features", "invalid-model", "no-look-alikes",
    "invalid-data", "missing-column", "duplicate-ratings", "rating-outside-scale", "missing-extra", "server-refused",
    "server-unavailable", "service-failed",
    "too-few-entities", "inconsistent-shares", "ledger-error", "ledger-missing", "ledger-exists",
    "ledger-damaged", "ledger-behind", "ledger-too-new",
}  # fmt: skip
STATUS = {
    "malformed-body": 400, "unauthorised": 401, "forbidden": 403, "not-found": 404, "method-not-allowed": 405,
    "not-acceptable": 406, "too-slow": 408, "too-large": 413, "unsupported-media-type": 415, "too-many-requests": 429,
    "internal-error": 500, "not-ready": 503, "invalid-message": 422, "invalid-parameter": 422, "unknown-name": 404,
    "unknown-subject": 404, "conflict": 409, "budget-exhausted": 409, "guarantee-refused": 409, "ledger-unavailable": 503,
    "system-noise-unavailable": 503,
}  # fmt: skip


def made(kind: type[TacitError], message: str) -> TacitError:
    """An error of this kind, whatever else it wants to know."""
    error = kind.__new__(kind)
    Exception.__init__(error, message)
    return error


def test_codes_and_their_statuses_stay_what_they_are() -> None:
    """Devices go by them: 408, 429 and 5xx are tried again, everything else is final."""
    assert {code: Problem(code, "").status for code in CODES} == STATUS


def test_every_error_of_the_library_is_either_told_or_of_the_inside() -> None:
    """A new error has to find its place here."""
    codes = {kind.code for kind in ERRORS}
    assert codes & CODES == codes - INSIDE
    assert not INSIDE & CODES


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.code)
def test_what_happened_inside_is_not_told(kind: type[TacitError]) -> None:
    problem = problem_of(made(kind, "a row of user 7 in a secret place"))
    if kind.code in INSIDE:
        assert (problem.code, problem.status) == ("internal-error", 500)
    else:
        assert problem.code == kind.code
    if problem.status >= 500:
        assert "secret" not in problem.response().body.decode()


@pytest.mark.parametrize("kind", [InvalidMessage, InvalidParameter, UnknownName, Conflict, GuaranteeRefused])
def test_what_the_caller_did_wrong_is_told_in_the_librarys_words(kind: type[TacitError]) -> None:
    assert problem_of(kind("expected a number at $.k.")).detail == "expected a number at $.k."


@pytest.mark.parametrize("kind", [LedgerUnavailable, SystemNoiseUnavailable])
def test_what_passes_is_to_be_tried_again(kind: type[TacitError]) -> None:
    problem = problem_of(kind("the disk of db-3 is full."))
    assert problem.status == 503
    assert int(problem.headers["Retry-After"]) >= 1
    assert "Retry-After" not in problem_of(LedgerDamaged("x")).headers


def test_a_problem_is_a_document_of_rfc_9457() -> None:
    response = Problem("too-large", "a request has at most 5 bytes here.", {"Connection": "close"}).response()
    assert (response.status_code, response.headers["content-type"]) == (413, "application/problem+json")
    assert response.headers["connection"] == "close"
    assert json.loads(response.body) == {
        "type": "urn:tacit:too-large",
        "code": "too-large",
        "title": "Too large",
        "status": 413,
        "detail": "a request has at most 5 bytes here.",
    }


def test_a_code_that_nobody_knows_cannot_be_answered() -> None:
    with pytest.raises(KeyError):
        Problem("made-up", "")


def test_two_problems_do_not_share_their_headers() -> None:
    given = {"Retry-After": "1"}
    Problem("not-ready", "", given).headers["X"] = "y"
    assert given == {"Retry-After": "1"}
