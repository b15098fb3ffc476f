"""What both applications share: problems, the OpenAPI document, and the edge that every request passes.

The layers from outside to inside: origins of other sites, the edge (limits, headers, metrics, one line in the log), the
routes. The edge is one plain ASGI layer and costs microseconds. It keeps the addresses of callers in memory only, and only
until their bucket is full again.
"""

from asyncio import timeout
from collections.abc import Callable
from importlib.metadata import version
from ipaddress import IPv6Address
from time import monotonic, perf_counter
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.types import ASGIApp, Lifespan, Message, Receive, Scope, Send

from tacit.errors import TacitError
from tacit.service.bodies import BINARY, KEY, PROBLEM, SCHEMAS, Problem, internal_error, problem_of
from tacit.service.keys import KeyRing
from tacit.service.settings import Settings
from tacit.service.telemetry import LOG, SECONDS, note_request, places_of

_MOST_CALLERS = 100_000
_SUBNET = 64  # bits: one household or machine has a whole network of IPv6 addresses
_CLOSE = {"Connection": "close"}  # because the rest of the request stays unread
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
_LEAST_RATE, _LEAST_BURST = 10.0, 100  # for each worker
# The ledger keeps the day and the order of impressions. A line in the log for each would reveal the time of all.
_UNLOGGED = frozenset(f"/v1/private-selection/{name}" for name in ("offers", "impressions", "engagements"))
_NO_SUCH_METHOD = 405
_DISCONNECTED = 499  # the caller has gone: this status appears in the log and the metrics only
_BY_STATUS = {404: "not-found", 405: "method-not-allowed"}


def application(
    title: str,
    routers: list[APIRouter],
    settings: Settings,
    keys: KeyRing,
    lifespan: Lifespan[FastAPI],
    *,
    most_body: Callable[[str], int] | None = None,
) -> ASGIApp:
    """The application with its routes, its documents and its edge.

    ``most_body`` gives the largest body in bytes for a path; by default the setting of that name.
    """
    app = FastAPI(
        title=title,
        version=version("tacit"),
        description=f"Errors are application/problem+json with a stable code. The compact binary form is {BINARY}.",
        docs_url=None,  # it would load scripts from another site
        redoc_url=None,
        redirect_slashes=False,  # a redirect would follow the caller's Host header
        lifespan=lifespan,
    )
    for router in routers:
        app.router.routes += router.routes  # flat: `include_router` would match every request level by level
    app.exception_handler(Problem)(_answer_problem)
    app.exception_handler(TacitError)(_answer_tacit_error)
    app.exception_handler(HTTPException)(_answer_http_error)
    app.exception_handler(RequestValidationError)(_answer_wrong_parameters)
    app.exception_handler(Exception)(_answer_unexpected)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    if not settings.origins:
        return Edge(app, settings, keys, most_body=most_body)
    edge = Edge(Preflights(app, settings.origins), settings, keys, most_body=most_body)
    return Origins(edge, settings.origins)


def _openapi(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is None:
        document = FastAPI.openapi(app)
        for operations in document["paths"].values():
            for operation in operations.values():  # replaces FastAPI's own form of this error
                if "422" in operation["responses"]:
                    operation["responses"]["422"] = PROBLEM
        components = document.setdefault("components", {})
        components["schemas"] = SCHEMAS
        components["securitySchemes"] = {"key": KEY}
    assert app.openapi_schema is not None  # noqa: S101 (FastAPI.openapi has set it)
    return app.openapi_schema


async def _answer_problem(_: HttpRequest, problem: Problem) -> Response:
    return problem.response()


async def _answer_tacit_error(_: HttpRequest, error: TacitError) -> Response:
    problem = problem_of(error)
    if problem.status >= 500:
        LOG.error("failed", extra={"about": {"code": error.code, **places_of(error)}})
    return problem.response()


async def _answer_http_error(_: HttpRequest, error: HTTPException) -> Response:
    code = _BY_STATUS.get(error.status_code)
    if code is None:
        return Problem("malformed-body", "the request cannot be read.").response()
    return Problem(code, "there is no such path or method; /openapi.json lists all.", error.headers).response()


async def _answer_wrong_parameters(_: HttpRequest, error: RequestValidationError) -> Response:
    """Names the parameters and their mistakes, without the values that were sent."""
    mistakes = error.errors()[:3]
    text = "; ".join(f"{'.'.join(map(str, mistake['loc'][1:]))}: {mistake['msg']}" for mistake in mistakes)
    return Problem("invalid-parameter", f"{text}.").response()


async def _answer_unexpected(_: HttpRequest, __: Exception) -> Response:
    """Answers only: the error also reaches the edge, which logs where it came from."""
    return internal_error().response()


class Edge:
    """Limits, headers, metrics and the log, around the whole application."""

    def __init__(
        self,
        app: ASGIApp,
        settings: Settings,
        keys: KeyRing,
        *,
        most_body: Callable[[str], int] | None = None,
    ) -> None:
        self._app, self._settings, self._keys = app, settings, keys
        # A kept connection stays with one worker, so the share of one worker must be enough to load a page.
        rate = max(settings.rate / settings.workers, min(settings.rate, _LEAST_RATE))
        burst = max(settings.burst // settings.workers, min(settings.burst, _LEAST_BURST))
        self._buckets = Buckets(rate, burst)
        self._most_body = most_body or (lambda path: settings.most_body)
        shared = "cross-origin" if settings.origins else "same-origin"
        headers = {**_HEADERS, "Cross-Origin-Resource-Policy": shared}
        headers |= _HTTPS if settings.https or settings.tls_certificate else {}
        self._headers = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        self._uncached = [(b"cache-control", b"no-store")]
        self._histograms: dict[tuple[str, str, int], Any] = {}  # by route, method and status

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["method"] == "HEAD":
            scope = {**scope, "method": "GET"}  # the same answer; the connection drops its body
        started, status, sent, complete = perf_counter(), 0, 0, False

        async def send_counted(message: Message) -> None:
            nonlocal status, sent, complete
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [*message.get("headers", ()), *self._headers]
                if not any(name == b"cache-control" for name, _ in headers):
                    headers += self._uncached
                message["headers"] = headers
            else:
                sent += len(message.get("body", b""))
            await send(message)
            complete = message["type"] == "http.response.body" and not message.get("more_body", False)

        try:
            await self._app(scope, self._limit(scope, receive), send_counted)
        except Problem as problem:
            if not status:
                await problem.response()(scope, receive, send_counted)
        except ClientDisconnect:
            status = _DISCONNECTED
        except Exception as error:
            if isinstance(error, RuntimeError) and status and not complete:
                status = _DISCONNECTED  # the caller closed the connection during the answer: no fault of ours
                return
            LOG.error("unexpected", extra={"about": places_of(error)})
            if not status:
                await internal_error().response()(scope, receive, send_counted)
        finally:
            self._note(scope, status, perf_counter() - started, sent)

    def _limit(self, scope: Scope, receive: Receive) -> Receive:
        """Limits the body. Raises a Problem if the caller has to wait, or announces a body that is too large."""
        announced, key, has_body = b"", b"", False
        for name, value in scope["headers"]:
            if name == b"content-length":
                announced, has_body = value, True
            elif name == b"authorization":
                key = value
            elif name == b"transfer-encoding":
                has_body = True
        owner = self._keys.find(key.decode("latin-1")) if key else None
        seconds = self._buckets.wait(caller_of(scope.get("client")) if owner is None else owner.id)
        if seconds > 0.0:
            retry = {"Retry-After": str(max(1, round(seconds + 0.5)))}
            raise Problem("too-many-requests", "you have sent too many requests. Wait, then try again.", retry)
        if not has_body:
            return receive
        most = self._most_body(scope["path"])
        if announced.isdigit() and (len(announced) > 15 or int(announced) > most):
            raise too_large(most)
        return bounded(receive, most, self._settings.body_seconds)

    def _note(self, scope: Scope, status: int, seconds: float, sent: int) -> None:
        route = getattr(scope.get("route"), "path", UNKNOWN_ROUTE)
        # Callers can invent any number of methods, and each label stays in memory.
        method = scope["method"] if route != UNKNOWN_ROUTE and status != _NO_SUCH_METHOD else "any"
        labels = (route, method, status)
        histogram = self._histograms.get(labels)
        if histogram is None:
            histogram = self._histograms[labels] = SECONDS.labels(route, method, str(status))
        histogram.observe(seconds)
        if self._settings.logs_requests and not (status < 400 and route in _UNLOGGED):
            note_request(route, method, status, seconds, sent)


class Buckets:
    """A token bucket for each caller, in this process. ``rate`` 0 limits nobody."""

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = monotonic) -> None:
        self._rate, self._burst, self._clock = rate, float(burst), clock
        self._left: dict[str, tuple[float, float]] = {}  # tokens left at a time, by caller

    def wait(self, caller: str) -> float:
        """The seconds that the caller has to wait. Returns 0, and takes a token, if the request may go on."""
        if self._rate == 0.0:
            return 0.0
        now = self._clock()
        left, since = self._left.get(caller, (self._burst, now))
        left = min(self._burst, left + (now - since) * self._rate)
        if left < 1.0:
            self._left[caller] = (left, now)
            return (1.0 - left) / self._rate
        if caller not in self._left and len(self._left) >= _MOST_CALLERS:
            self._tidy(now)
        self._left[caller] = (left - 1.0, now)
        return 0.0

    def _tidy(self, now: float) -> None:
        """Drops full buckets. If no bucket is full, drops all: limited callers are then few among very many."""
        full = [
            caller for caller, (left, since) in self._left.items() if left + (now - since) * self._rate >= self._burst
        ]
        for caller in full:
            del self._left[caller]
        if not full:
            self._left.clear()


def caller_of(client: tuple[str, int] | None) -> str:
    """The caller that requests from this address count for: an IPv4 address or an IPv6 network."""
    host = "" if client is None else client[0]
    if ":" not in host:
        return host
    try:
        address = IPv6Address(host.partition("%")[0])
    except ValueError:
        return host
    if address.ipv4_mapped is not None:  # from a socket for both versions
        return str(address.ipv4_mapped)
    return str(IPv6Address(int(address) >> (128 - _SUBNET) << (128 - _SUBNET)))


def bounded(receive: Receive, most: int, seconds: float) -> Receive:
    """The same body; raises a Problem if it has more than ``most`` bytes or takes longer than ``seconds``."""
    size, complete, deadline = 0, False, monotonic() + seconds

    async def limited() -> Message:
        nonlocal size, complete
        if complete:  # after the body only the end of the connection comes, which may take its time
            return await receive()
        try:
            async with timeout(max(0.0, deadline - monotonic())):
                message = await receive()
        except TimeoutError:
            raise Problem("too-slow", f"the request did not arrive within {seconds:g} seconds.", _CLOSE) from None
        size += len(message.get("body", b""))
        if size > most:
            raise too_large(most)
        complete = not message.get("more_body", False)
        return message

    return limited


def too_large(most: int) -> Problem:
    return Problem("too-large", f"the body of a request may have at most {most:,} bytes here.", _CLOSE)


class Origins(CORSMiddleware):
    """Lets pages of the sites that the operator names call the service.

    It is the outermost layer, so that such a page can also read the edge's answers, such as "wait".
    """

    def __init__(self, app: ASGIApp, origins: tuple[str, ...]) -> None:
        super().__init__(
            app,
            allow_origins=list(origins),
            allow_methods=["GET", "POST"],
            allow_headers=["Content-Type", "Accept"],
            expose_headers=["Tacit-Parts", "Tacit-Version", "ETag", "Retry-After"],
            max_age=600,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
        else:
            await self.simple_response(scope, receive, send, request_headers=Headers(scope=scope))


class Preflights:
    """Answers the preflight requests of browsers. It is inside the edge, so the same limits and logs apply."""

    def __init__(self, app: ASGIApp, origins: tuple[str, ...]) -> None:
        self._app, self._origins = app, Origins(app, origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "OPTIONS":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if "origin" not in headers or "access-control-request-method" not in headers:
            await self._app(scope, receive, send)
            return
        answer = self._origins.preflight_response(request_headers=headers)
        if answer.status_code >= 400:
            answer = Problem("forbidden", "pages of that site may not send this request.").response()
        await answer(scope, receive, send)
