"""What all calls of all clients have in common, so that none is told from another by it."""

import re
from hashlib import sha256
from http.cookiejar import CookieJar, DefaultCookiePolicy
from ipaddress import IPv4Address, IPv6Address, ip_address
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from tacit.checks import positive
from tacit.device.exchange import NoAnswer, in_one_line
from tacit.device.limits import MOST_SERVER
from tacit.errors import InvalidParameter, MissingExtra

# Fixed: versions, languages and packings would tell one machine from another.
HEADERS = {"User-Agent": "tacit", "Accept-Encoding": "gzip"}
_HOST = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)*")
_USUAL_PORTS = {"http": 80, "https": 443}


def checked_address(server: str, *, insecure: bool = False) -> str:
    """The address of a server, written in one way. Without TLS only this machine's own, unless ``insecure`` is said openly.

    Over plain HTTP anybody on the way could read each signal and choice, and hand out a catalogue and offers of his own.
    """
    found = _parts(server)
    if found is None:
        raise InvalidParameter("a server is named as https://host, https://host:port or https://host/path.")
    scheme, host, port, path = found
    if scheme == "http" and not insecure and not (host == "localhost" or _is_loopback(host)):
        raise InvalidParameter(
            "http:// is for a server on this machine: name it by https://, or say insecure=True if others may read along."
        )
    name = f"[{host}]" if ":" in host else host
    # As in a browser's origin: the usual port, said or not, is one server, with one name in the ledger and one budget.
    said = "" if port in (None, _USUAL_PORTS[scheme]) else f":{port}"
    return f"{scheme}://{name}{said}{path}"


def name_of(address: str) -> str:
    """A server's name in the device's ledger: its address without the scheme, or a digest where that is too long."""
    name = address.partition("://")[2]
    return name if len(name) <= MOST_SERVER else sha256(name.encode()).hexdigest()[:32]


def imported_httpx() -> ModuleType:
    try:
        import httpx
    except ImportError:
        raise MissingExtra("a client needs the package httpx: pip install 'tacit[client]'.") from None
    return httpx


def connection_settings(address: str, timeout: float, trust_env: bool) -> dict[str, Any]:
    """For ``httpx.Client`` and ``httpx.AsyncClient``: no cookies, no redirects, certificates checked, the environment unread."""
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


def no_answer(problem: Exception) -> NoAnswer:
    return NoAnswer(in_one_line(f"{type(problem).__name__}: {problem}"))


def _parts(server: object) -> tuple[str, str, int | None, str] | None:
    """Scheme, host, port and path, if all of them are plain: what two readers of an address could read differently is refused."""
    if not isinstance(server, str) or not (server.isascii() and server.isprintable()) or set("@?# \\") & set(server):
        return None
    try:
        parts = urlsplit(server)
        host, port, path = parts.hostname or "", parts.port, parts.path.rstrip("/")
    except ValueError:
        return None
    named = _HOST.fullmatch(host) or (_address(host) is not None and "%" not in host)  # %: an interface of one machine
    if parts.scheme not in ("http", "https") or not named or not _PATH.fullmatch(path) or ".." in path:
        return None
    return parts.scheme, host, port, path


def _is_loopback(host: str) -> bool:
    address = _address(host)
    return address is not None and address.is_loopback


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None
