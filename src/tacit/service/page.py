"""The web page: a handful of files that come with the package, and nothing from anywhere else."""

from importlib.resources import files

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from tacit.service.bodies import Packed
from tacit.service.problems import Problem

router = APIRouter(include_in_schema=False)
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_START = "index.html"


def _read() -> dict[str, Packed]:
    found = {}
    for file in (files("tacit.service") / "web").iterdir():
        media_type = next((kind for ending, kind in _TYPES.items() if file.name.endswith(ending)), None)
        if media_type is not None:
            found[file.name] = Packed(file.read_bytes(), media_type)
    return found


_FILES = _read()


@router.get("/")
async def start(http: HttpRequest) -> Response:
    return _sent(http, _START)


@router.get("/web/{name}")
async def file(http: HttpRequest, name: str) -> Response:
    return _sent(http, name)


def _sent(http: HttpRequest, name: str) -> Response:
    if name not in _FILES:
        raise Problem("not-found", "there is no such file.")
    return _FILES[name].sent(http, "no-cache")
