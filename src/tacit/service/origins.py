"""Which other sites' pages may call a service: those that its operator names."""

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from tacit.service.problems import Problem


class Origins(CORSMiddleware):
    """Around the edge, so that a page that may call here may also read that it has to wait."""

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
    """Inside the edge: what browsers ask before they call counts against the same limits, and is noted like all else."""

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
            answer = Problem(
                "forbidden", "pages of that site may not call this service, or not in that way."
            ).response()
        await answer(scope, receive, send)
