"""The edge of an application: whatever comes in or goes out passes here, once.

Limits first, then the application, then headers, metrics and one line of the log. One plain ASGI layer: it costs microseconds.
"""

from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tacit.service.keys import Keys
from tacit.service.limits import Buckets, bounded, caller_of, too_large
from tacit.service.logs import LOG, note_request, places_of
from tacit.service.metrics import SECONDS
from tacit.service.problems import Problem
from tacit.service.settings import Settings

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": PAGE_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), browsing-topics=()",
}
_HTTPS = {"Strict-Transport-Security": "max-age=31536000; includeSubDomains"}
UNKNOWN_ROUTE = "none"
_LEAST_RATE, _LEAST_BURST = 10.0, 100  # of each worker
# Of an impression the ledger keeps the day, and in which order they came: a line with the time of each would give the time of all.
_UNWRITTEN = frozenset(f"/v1/private-selection/{what}" for what in ("offers", "impressions", "engagements"))
_NO_SUCH_METHOD = 405
_LEFT = 499  # the caller went away; nobody reads this status but the log


class Edge:
    """``most_body`` may say another limit for a path's beginning than the usual one."""

    def __init__(
        self,
        app: ASGIApp,
        settings: Settings,
        keys: Keys,
        *,
        most_body: Callable[[str], int] | None = None,
    ) -> None:
        self._app, self._settings, self._keys = app, settings, keys
        # A kept connection stays with one worker: however many there are, one of them lets a page load.
        rate = settings.rate / settings.workers
        least = min(settings.rate, _LEAST_RATE), min(settings.burst, _LEAST_BURST)
        self._buckets = Buckets(max(rate, least[0]), max(settings.burst // settings.workers, least[1]))
        self._most_body = most_body or (lambda path: settings.most_body)
        shared = settings.origins and {"Cross-Origin-Resource-Policy": "cross-origin"}
        named = _HEADERS | (shared or {"Cross-Origin-Resource-Policy": "same-origin"})
        named |= _HTTPS if settings.https or settings.tls_certificate else {}
        self._headers = _raw(named.items())
        self._uncached = _raw([("Cache-Control", "no-store")])
        self._measured: dict[tuple[str, str, int], Any] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["method"] == "HEAD":
            scope = {**scope, "method": "GET"}  # the same but for the body, which the connection leaves out
        started, status, sent, whole = perf_counter(), 0, 0, False

        async def counted(message: Message) -> None:
            nonlocal status, sent, whole
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [*message.get("headers", ()), *self._headers]
                if not any(name == b"cache-control" for name, _ in headers):
                    headers += self._uncached
                message["headers"] = headers
            else:
                sent += len(message.get("body", b""))
            await send(message)
            whole = message["type"] == "http.response.body" and not message.get("more_body", False)

        try:
            await self._app(scope, self._limited(scope, receive), counted)
        except Problem as problem:
            if not status:
                await problem.response()(scope, receive, counted)
        except ClientDisconnect:
            status = _LEFT
        except Exception as error:
            if isinstance(error, RuntimeError) and status and not whole:
                status = _LEFT  # written to a connection that was closed meanwhile: nothing is wrong here
                return
            LOG.error("unexpected", extra={"about": places_of(error)})
            if not status:
                unexpected = Problem("internal-error", "the server could not do this; its log says why.")
                await unexpected.response()(scope, receive, counted)
        finally:
            self._note(scope, status, perf_counter() - started, sent)

    def _limited(self, scope: Scope, receive: Receive) -> Receive:
        """The body within its limits; raises where the caller is to wait, or says beforehand that it will send too much."""
        announced, key, has_body = b"", b"", False
        for name, value in scope["headers"]:
            if name == b"content-length":
                announced, has_body = value, True
            elif name == b"authorization":
                key = value
            elif name == b"transfer-encoding":
                has_body = True
        seconds = self._buckets.wait(self._caller(scope, key))
        if seconds > 0.0:
            again = {"Retry-After": str(max(1, round(seconds + 0.5)))}
            raise Problem(
                "too-many-requests", "more requests came from there than are allowed. Wait, then try again.", again
            )
        if not has_body:
            return receive
        most = self._most_body(scope["path"])
        if announced.isdigit() and (len(announced) > 15 or int(announced) > most):
            raise too_large(most)
        return bounded(receive, most, self._settings.body_seconds)

    def _caller(self, scope: Scope, authorization: bytes) -> str:
        key = self._keys.find(authorization.decode("latin-1")) if authorization else None
        return caller_of(scope.get("client")) if key is None else key.id

    def _note(self, scope: Scope, status: int, seconds: float, sent: int) -> None:
        route = getattr(scope.get("route"), "path", UNKNOWN_ROUTE)
        # A caller could make up as many others as she likes, and each would be kept for good.
        method = scope["method"] if route != UNKNOWN_ROUTE and status != _NO_SUCH_METHOD else "any"
        about = (route, method, status)
        measured = self._measured.get(about)
        if measured is None:
            measured = self._measured[about] = SECONDS.labels(route, method, str(status))
        measured.observe(seconds)
        if self._settings.logs_requests and not (status < 400 and route in _UNWRITTEN):
            note_request(route, method, status, seconds, sent)


def _raw(headers: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode(), value.encode()) for name, value in headers]
