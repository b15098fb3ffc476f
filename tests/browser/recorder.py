"""The browser's only way to the network: a proxy that keeps every byte the browser sends, and lets it reach one server alone.

The browser is told to use it for every address, this machine's own too. So what it keeps is all there is: pages, scripts,
preflights, beacons, and whatever the browser might want of others for itself. It also plays the faults of a network.
"""

import socket
import threading
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from enum import Enum
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Self
from urllib.parse import urlsplit

INSECURE = "tacit.example"  # the same server under a name that no browser takes for this machine
_END = b"\r\n\r\n"


class Fate(Enum):
    """What becomes of a request."""

    ANSWERED = "answered"
    CUT = "cut"  # it does not reach the server
    LOST = "lost"  # it reaches the server, whose answer does not come back
    HELD = "held"  # it reaches the server, and the answer comes when it is too late


@dataclass
class Sent:
    """One request, byte by byte, and the answer to it."""

    raw: bytes
    foreign: bool = False
    answer: bytes = b""
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def head(self) -> list[str]:
        return self.raw.split(_END, 1)[0].decode("latin-1").split("\r\n")

    @property
    def method(self) -> str:
        return self.head[0].split(" ")[0]

    @property
    def url(self) -> str:
        return self.head[0].split(" ")[1]

    @property
    def path(self) -> str:
        """With the query."""
        parts = urlsplit(self.url)
        return parts.path + (f"?{parts.query}" if parts.query else "")

    @property
    def headers(self) -> dict[str, str]:
        return {name.lower(): value for name, _, value in (line.partition(": ") for line in self.head[1:])}

    @property
    def body(self) -> bytes:
        return self.raw.split(_END, 1)[1]

    @property
    def answered(self) -> bytes:
        """The body of the answer."""
        return self.answer.partition(_END)[2]


class Recorder:
    """``fate`` decides about each request. All that was sent stands in ``sent``, in the order of arrival."""

    def __init__(self, server: int) -> None:
        self.sent: list[Sent] = []
        self.strange: list[bytes] = []  # bytes that are no request
        self.fate: Callable[[Sent], Fate] = lambda sent: Fate.ANSWERED
        self._hosts = {f"127.0.0.1:{server}", f"{INSECURE}:{server}"}
        self._server = server
        recorder = self

        class Handler(BaseRequestHandler):
            def handle(self) -> None:
                with suppress(OSError):  # the browser closes connections as it likes
                    recorder._serve(self.request)

        self._listener = ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._listener.daemon_threads = True
        self._thread = threading.Thread(target=lambda: self._listener.serve_forever(0.02), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown()
        self._listener.server_close()
        self._thread.join()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._listener.server_address[1]}"

    def _serve(self, browser: socket.socket) -> None:
        """One request for each connection: simple, and every byte has its place."""
        raw = _request(browser)
        if not raw:
            return  # opened in advance, and not used
        sent = Sent(raw)
        try:
            sent.foreign = sent.method == "CONNECT" or urlsplit(sent.url).netloc not in self._hosts
        except (IndexError, ValueError):
            self.strange.append(raw)
            return
        self.sent.append(sent)
        fate = Fate.CUT if sent.foreign else self.fate(sent)
        if fate is not Fate.CUT:
            sent.answer = self._ask(sent)
        if fate is Fate.ANSWERED:
            browser.sendall(sent.answer)
        elif fate is Fate.HELD:
            sent.over.set()
            browser.recv(1)  # returns when the browser goes away
        sent.over.set()

    def _ask(self, sent: Sent) -> bytes:
        kept = [line for line in sent.head[1:] if line.split(":")[0].lower() not in ("connection", "proxy-connection")]
        head = "\r\n".join([f"{sent.method} {sent.path} HTTP/1.1", *kept, "Connection: close"])
        with closing(socket.create_connection(("127.0.0.1", self._server), 30.0)) as server:
            server.sendall(head.encode("latin-1") + _END + sent.body)
            return b"".join(iter(lambda: server.recv(1 << 16), b""))


def _request(browser: socket.socket) -> bytes:
    """A whole request: head, and as many bytes of a body as it says; or what came until the browser closed."""
    raw = b""
    while True:
        head, end, body = raw.partition(_END)
        if end and len(body) >= _length(head.lower().split(b"\r\n")):
            return raw
        more = browser.recv(1 << 16)
        if not more:
            return raw
        raw += more


def _length(lines: Iterable[bytes]) -> int:
    return next((int(line.partition(b":")[2]) for line in lines if line.startswith(b"content-length:")), 0)
