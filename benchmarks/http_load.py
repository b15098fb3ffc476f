"""Load over a few kept connections from one thread: each sends its next request when the answer to the last is complete."""

import selectors
import socket
import time
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Post:
    """One request, as it stands on the wire."""

    path: str
    body: bytes
    media_type: str = "application/json"

    def wire(self, port: int) -> bytes:
        head = (
            f"POST {self.path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            f"Content-Type: {self.media_type}\r\nContent-Length: {len(self.body)}\r\n\r\n"
        )
        return head.encode() + self.body


@dataclass(frozen=True)
class Load:
    """What was seen: the times of single requests, and of all together, in seconds."""

    times: tuple[float, ...]
    seconds: float

    @property
    def count(self) -> int:
        return len(self.times)


def together(loads: Iterable[Load]) -> Load:
    """Several rounds as one."""
    found = list(loads)
    return Load(tuple(time for one in found for time in one.times), sum(one.seconds for one in found))


class _Connection:
    def __init__(self, port: int, request: bytes) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._request, self._read, self._sent = request, b"", 0.0

    def send(self) -> None:
        self._read, self._sent = b"", time.perf_counter()
        self.socket.sendall(self._request)

    def answered(self) -> float | None:
        """Seconds since it was sent, if the answer is complete now."""
        more = self.socket.recv(1 << 16)
        if not more:
            raise ConnectionError("the server closed a connection under load.")
        self._read += more
        head, end, body = self._read.partition(b"\r\n\r\n")
        if not end:
            return None
        if not head.startswith(b"HTTP/1.1 200"):
            raise ConnectionError(f"the server answered {head[:40]!r} under load.")
        size = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        return time.perf_counter() - self._sent if len(body) >= int(size[15:]) else None


def load(port: int, post: Post, *, connections: int = 1, seconds: float = 2.0) -> Load:
    """Posts to a server on this machine for some seconds."""
    selector, times = selectors.DefaultSelector(), list[float]()
    opened = [_Connection(port, post.wire(port)) for _ in range(connections)]
    for one in opened:
        selector.register(one.socket, selectors.EVENT_READ, one)
    started = time.perf_counter()
    for one in opened:
        one.send()
    waiting = connections
    while waiting:
        for key, _ in selector.select(timeout=30):
            took = key.data.answered()
            if took is None:
                continue
            times.append(took)
            if time.perf_counter() - started < seconds:
                key.data.send()
            else:
                waiting -= 1
                selector.unregister(key.fileobj)
                key.data.socket.close()
    return Load(tuple(times), time.perf_counter() - started)
