"""Calls and responses without their transport: the requests, their retries, and the checks of each answer.

Nothing here opens a connection. A conversation is a generator: it yields a ``Call`` and is sent the ``Response``, or yields a
``Pause`` and is sent None. So the sync and the async client share their code, and tests need no server.
"""

import json
import re
import zlib
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from http.cookiejar import CookieJar, DefaultCookiePolicy
from ipaddress import IPv4Address, IPv6Address, ip_address
from time import monotonic
from types import ModuleType
from typing import Any, TypeAlias, TypeVar
from urllib.parse import urlsplit

import numpy as np

from tacit.checks import positive, whole
from tacit.device.limits import MOST_SERVER
from tacit.errors import InvalidMessage, InvalidParameter, MissingExtra, ServerRefused, ServerUnavailable

BINARY, JSON, PROBLEM = "application/vnd.tacit", "application/json", "application/problem+json"
MOST_REPLY = 1 << 23  # bytes of a response, unpacked, unless a call states another limit
MOST_PROBLEM = 1 << 16  # bytes of a response with an error status
MOST_SHOWN = 200  # characters of a server's own words in an error
# The same in all calls of all clients: versions, languages and packings would tell one machine from another.
HEADERS = {"User-Agent": "tacit", "Accept-Encoding": "gzip"}
_LONGEST = 1e9  # seconds: a longer Retry-After counts as this
_MOST_HEADER = 200  # characters
_READ_HEADERS = ("content-type", "content-encoding", "retry-after", "tacit-parts", "tacit-version")
_CODE = re.compile(r"[a-z]{1,20}(-[a-z]{1,20}){0,5}")
_HOST = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)*")
_USUAL_PORTS = {"http": 80, "https": 443}

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call:
    """One HTTP request. It is a value, so a retry sends the same bytes."""

    method: str
    path: str
    accept: str
    body: bytes | None = field(default=None, repr=False)
    content_type: str | None = None
    most: int = MOST_REPLY

    @property
    def headers(self) -> dict[str, str]:
        """The headers of this call, in addition to those that are the same in every call."""
        named = {"Accept": self.accept}
        return named if self.content_type is None else {**named, "Content-Type": self.content_type}


@dataclass(frozen=True, slots=True)
class Response:
    """The answer to a call. ``whole`` is False if it was larger than the call allows, or if it could not be unpacked."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)
    whole: bool = True

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


@dataclass(frozen=True, slots=True)
class NoResponse:
    """The server did not answer, or not in time."""

    reason: str


@dataclass(frozen=True, slots=True)
class Pause:
    seconds: float


Steps: TypeAlias = Generator[Call | Pause, Response | NoResponse | None, T]


@dataclass(frozen=True, slots=True)
class Retries:
    """How often a call is made, the seconds before the second time (doubled each time after that), and the longest wait."""

    tries: int = 4
    first: float = 0.5
    most: float = 30.0

    def __post_init__(self) -> None:
        whole("tries", self.tries, least=1, most=20)
        positive("first", self.first)
        positive("most", self.most)

    def wait(self, turn: int, response: Response | NoResponse | None, rng: np.random.Generator) -> float:
        """Seconds before the next try: what the server asks for, or an exponential backoff with jitter if that is longer."""
        requested = _retry_after(response)
        usual = min(self.most, self.first * 2.0**turn) * (0.5 + 0.5 * float(rng.random()))
        return usual if requested is None else max(requested, usual)


def fetch(call: Call, retries: Retries, rng: np.random.Generator) -> Steps[Response]:
    """The final response to a call. It is repeated, unchanged, after 408, 429, 5xx and silence.

    Raises ServerUnavailable if there is no final response.
    """
    for turn in range(retries.tries):
        response = yield call
        if isinstance(response, Response) and not (response.status in (408, 429) or response.status >= 500):
            return response
        wait = retries.wait(turn, response, rng)
        if turn + 1 == retries.tries or wait > retries.most:  # never sooner than the server asks for
            break
        yield Pause(wait)
    after = _retry_after(response)
    if isinstance(response, Response):
        until = "later" if after is None else f"in {after:.0f} seconds"
        text = f"the server answers with status {response.status}; try again {until}."
        raise ServerUnavailable(text, status=response.status, retry_after=after)
    reason = "" if response is None else response.reason
    raise ServerUnavailable(f"the server does not answer ({reason}); try again later.", status=None, retry_after=None)


def body_of(response: Response, call: Call) -> bytes:
    """The body of a response, if it has the type that the call asked for."""
    if response.status != 200:
        raise _refusal(response)
    if not response.whole:
        raise InvalidMessage(
            f"a response is larger than {call.most:,} bytes, or is compressed in a way that the client did not ask for."
        )
    if response.content_type != call.accept:
        raise InvalidMessage(f"a response does not have the type {call.accept}, which the client asked for.")
    return response.body


def read_json(content: str | bytes) -> Any:
    """JSON in which no object has the same name twice. The error repeats none of it."""
    try:
        return json.loads(content, object_pairs_hook=_require_unique)
    except (ValueError, RecursionError):  # not JSON, not UTF-8, a number with too many digits, nested too deep
        raise InvalidMessage("a message is not valid JSON.") from None


def _require_unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError
    return members


def _refusal(response: Response) -> ServerRefused:
    problem = _read_problem(response)
    if problem is not None:
        code, detail = problem
        return ServerRefused(f"the server says {code}: {detail}", status=response.status, problem=code)
    hint = " Redirects are not followed: use the right address." if 300 <= response.status < 400 else ""
    text = f"the server answers with status {response.status}, and not with a problem of tacit.{hint}"
    return ServerRefused(text, status=response.status, problem=None)


def _read_problem(response: Response) -> tuple[str, str] | None:
    """The stable code and the detail of a problem, if the response is one."""
    if response.content_type != PROBLEM or not response.whole:
        return None
    try:
        problem = read_json(response.body)
    except InvalidMessage:
        return None
    code = problem.get("code") if isinstance(problem, dict) else None
    if not isinstance(code, str) or not _CODE.fullmatch(code):
        return None
    detail = problem.get("detail")
    return code, _one_line(detail) if isinstance(detail, str) else "no details."


def _retry_after(response: Response | NoResponse | None) -> float | None:
    """In seconds. A date is ignored, since two clocks seldom agree."""
    text = response.headers.get("retry-after", "") if isinstance(response, Response) else ""
    return min(float(text), _LONGEST) if text.isascii() and text.isdigit() else None


def _one_line(text: str) -> str:
    """Text from outside, made fit for an error and a terminal."""
    return "".join(letter if letter.isprintable() else " " for letter in text[:MOST_SHOWN]).strip()


class ResponseReader:
    """Reads a response while it arrives, until it is too large, packed or unpacked, or until ``seconds`` are over."""

    def __init__(self, call: Call, status: int, headers: Mapping[str, str], seconds: float) -> None:
        self._status, self._most = status, call.most if status == 200 else MOST_PROBLEM
        self._headers = {name: headers[name][:_MOST_HEADER] for name in _READ_HEADERS if name in headers}
        self._body, self._received, self._broken, self._late = bytearray(), 0, False, False
        self._until = monotonic() + seconds
        encoding = self._headers.get("content-encoding", "identity").strip().lower()
        self._unpacker = zlib.decompressobj(wbits=31) if encoding == "gzip" else None
        if encoding not in ("gzip", "identity", ""):
            self._broken = True  # the client did not ask for any other encoding

    def feed(self, chunk: bytes) -> bool:
        """Takes a chunk. Returns whether it wants more."""
        self._received += len(chunk)
        if self._unpacker is not None:
            try:
                # One byte above the limit is enough to know, however much a few packed bytes would become.
                chunk = self._unpacker.decompress(chunk, self._most + 1 - len(self._body))
            except zlib.error:
                self._broken, chunk = True, b""
        self._body += chunk
        self._broken |= max(self._received, len(self._body)) > self._most
        self._late = monotonic() > self._until  # a server that sends a byte now and then would hold a client for ever
        return not (self._broken or self._late)

    def response(self) -> Response | NoResponse:
        """The response, when there are no more chunks."""
        if self._late:
            return NoResponse("its answer took too long")
        is_cut = self._unpacker is not None and not (self._unpacker.eof and not self._unpacker.unused_data)
        is_whole = not (self._broken or is_cut)
        return Response(self._status, self._headers, bytes(self._body) if is_whole else b"", is_whole)


def no_response(problem: Exception) -> NoResponse:
    """The failure of a connection."""
    return NoResponse(_one_line(f"{type(problem).__name__}: {problem}"))


def checked_address(server: str, *, insecure: bool = False) -> str:
    """The address of a server, in one spelling. Plain HTTP is for this machine only, unless ``insecure`` is set.

    Over plain HTTP anybody on the way could read each signal and choice, and send a catalogue and offers of their own.
    """
    parts = _split_address(server)
    if parts is None:
        raise InvalidParameter("a server must be named as https://host, https://host:port or https://host/path.")
    scheme, host, port, path = parts
    address = _ip_address(host)
    is_local = host == "localhost" or (address is not None and address.is_loopback)
    if scheme == "http" and not insecure and not is_local:
        raise InvalidParameter(
            "http:// is for a server on this machine: use https://, or set insecure=True if others may read everything."
        )
    name = f"[{host}]" if ":" in host else host
    # As in a browser's origin: with or without its usual port it is one server, with one name in the ledger and one budget.
    shown_port = "" if port in (None, _USUAL_PORTS[scheme]) else f":{port}"
    return f"{scheme}://{name}{shown_port}{path}"


def name_of(address: str) -> str:
    """A server's name in the device's ledger: its address without the scheme, or a digest if that is too long."""
    name = address.partition("://")[2]
    return name if len(name) <= MOST_SERVER else sha256(name.encode()).hexdigest()[:32]


def import_httpx() -> ModuleType:
    try:
        import httpx
    except ImportError:
        raise MissingExtra("a client needs the package httpx: pip install 'tacit[client]'.") from None
    return httpx


def connection_settings(address: str, timeout: float, trust_env: bool) -> dict[str, Any]:
    """For ``httpx.Client`` and ``httpx.AsyncClient``: no cookies, no redirects, checked certificates, no environment."""
    if type(trust_env) is not bool:
        raise InvalidParameter("trust_env must be True or False.")
    return {
        "base_url": address,
        "headers": HEADERS,
        "timeout": positive("timeout", timeout),
        "cookies": CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        "follow_redirects": False,
        "verify": True,
        "trust_env": trust_env,
    }


def _split_address(server: object) -> tuple[str, str, int | None, str] | None:
    """Scheme, host, port and path; None if two programs could read the address differently."""
    if not isinstance(server, str) or not (server.isascii() and server.isprintable()) or set("@?# \\") & set(server):
        return None
    try:
        parts = urlsplit(server)
        host, port, path = parts.hostname or "", parts.port, parts.path.rstrip("/")
    except ValueError:
        return None
    # "%" names an interface of one machine.
    is_named = _HOST.fullmatch(host) or (_ip_address(host) is not None and "%" not in host)
    if parts.scheme not in ("http", "https") or not is_named or not _PATH.fullmatch(path) or ".." in path:
        return None
    return parts.scheme, host, port, path


def _ip_address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None
