"""What both applications have in common: errors as problems, one OpenAPI document, an edge around everything."""

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.types import ASGIApp, Lifespan

from tacit.errors import TacitError
from tacit.service.bodies import BINARY
from tacit.service.edge import Edge
from tacit.service.keys import Keys
from tacit.service.logs import LOG, places_of
from tacit.service.origins import Origins, Preflights
from tacit.service.problems import Problem, problem_of
from tacit.service.schemas import KEY, PROBLEM, SCHEMAS
from tacit.service.settings import Settings

_BY_STATUS = {404: "not-found", 405: "method-not-allowed"}


def application(
    title: str,
    routers: list[APIRouter],
    settings: Settings,
    keys: Keys,
    lifespan: Lifespan[FastAPI],
    *,
    most_body: Callable[[str], int] | None = None,
) -> tuple[FastAPI, ASGIApp]:
    """The inner application, and the same with its edge: that is what is served."""
    app = FastAPI(
        title=title,
        version=version("tacit"),
        description=f"Errors are application/problem+json with a stable code. The compact binary form is {BINARY}.",
        docs_url=None,  # it would load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,  # a redirect would go wherever the caller's Host header says
        lifespan=lifespan,
    )
    for router in routers:
        app.router.routes += router.routes  # flat: `include_router` would have every request matched level by level
    app.add_exception_handler(Problem, _problem)
    app.add_exception_handler(TacitError, _known)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _parameters)
    app.add_exception_handler(Exception, _unexpected)
    app.openapi = lambda: _document(app)  # type: ignore[method-assign]
    if not settings.origins:
        return app, Edge(app, settings, keys, most_body=most_body)
    edge = Edge(Preflights(app, settings.origins), settings, keys, most_body=most_body)
    return app, Origins(edge, settings.origins)


def _document(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is None:
        found = FastAPI.openapi(app)
        for operations in found["paths"].values():
            for operation in operations.values():  # FastAPI's own way to say what is wrong with a parameter is not ours
                if "422" in operation["responses"]:
                    operation["responses"]["422"] = PROBLEM
        parts = found.setdefault("components", {})
        parts["schemas"] = SCHEMAS
        parts["securitySchemes"] = {"key": KEY}
    assert app.openapi_schema is not None  # noqa: S101 (FastAPI has just made it)
    return app.openapi_schema


async def _problem(_: HttpRequest, error: Exception) -> Response:
    return error.response() if isinstance(error, Problem) else await _unexpected(_, error)


async def _known(_: HttpRequest, error: Exception) -> Response:
    if not isinstance(error, TacitError):
        return await _unexpected(_, error)
    found = problem_of(error)
    if found.status >= 500:
        LOG.error("failed", extra={"about": {"code": error.code, **places_of(error)}})
    return found.response()


async def _http(_: HttpRequest, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status not in _BY_STATUS:
        return Problem("malformed-body", "the request cannot be read.").response()
    headers = dict(getattr(error, "headers", None) or {})
    return Problem(
        _BY_STATUS[status], "there is nothing like that here: /openapi.json names what is.", headers
    ).response()


async def _parameters(_: HttpRequest, error: Exception) -> Response:
    """Names and reasons, without what was sent."""
    found = error.errors() if isinstance(error, RequestValidationError) else []
    told = "; ".join(f"{'.'.join(str(part) for part in one['loc'][1:])}: {one['msg']}" for one in found[:3])
    return Problem("invalid-parameter", f"{told}.").response()


async def _unexpected(_: HttpRequest, __: Exception) -> Response:
    """Only the answer: the error itself goes on to the edge, which notes where it came from."""
    return Problem("internal-error", "the server could not do this; its log says why.").response()
