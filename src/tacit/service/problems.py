"""What went wrong, as application/problem+json (RFC 9457) with a stable code; no private value, token or address is in it."""

from collections.abc import Mapping

import orjson
from starlette.responses import Response

from tacit import errors
from tacit.errors import TacitError

MEDIA_TYPE = "application/problem+json"
_STATUS: dict[str, int] = {
    "malformed-body": 400,
    "unauthorised": 401,
    "forbidden": 403,
    "not-found": 404,
    "method-not-allowed": 405,
    "not-acceptable": 406,
    "too-slow": 408,
    "too-large": 413,
    "unsupported-media-type": 415,
    "too-many-requests": 429,
    "internal-error": 500,
    "not-ready": 503,
    errors.InvalidMessage.code: 422,
    errors.InvalidParameter.code: 422,
    errors.UnknownName.code: 404,
    errors.UnknownSubject.code: 404,
    errors.Conflict.code: 409,
    errors.BudgetExhausted.code: 409,
    errors.GuaranteeRefused.code: 409,
    errors.LedgerUnavailable.code: 503,
    errors.SystemNoiseUnavailable.code: 503,
}
CODES = frozenset(_STATUS)
TRY_AGAIN = {"Retry-After": "1"}


class Problem(Exception):
    """An answer that is an error."""

    def __init__(self, code: str, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(code)
        self.code, self.detail, self.status = code, detail, _STATUS[code]
        self.headers = dict(headers or {})

    def response(self) -> Response:
        content = {
            "type": f"urn:tacit:{self.code}",
            "code": self.code,
            "title": self.code.replace("-", " ").capitalize(),
            "status": self.status,
            "detail": self.detail,
        }
        return Response(orjson.dumps(content), self.status, self.headers, MEDIA_TYPE)


def problem_of(error: TacitError) -> Problem:
    """An error of the library, as an answer. What is the operator's affair alone, such as a damaged ledger, is not told."""
    if error.code not in _STATUS:
        return Problem("internal-error", "the server could not do this; its log says why.")
    detail = str(error).removeprefix(f"{error.code}: ")
    if _STATUS[error.code] == 503:
        return Problem(error.code, "this cannot be written or drawn now; nothing was counted. Try again.", TRY_AGAIN)
    return Problem(error.code, detail)
