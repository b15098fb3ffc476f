"""Bytes over a socket, for callers that no HTTP client would be."""

import socket
import time
from collections.abc import Iterable
from typing import Self

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: here\r\n\r\n"


def post(path: str, *headers: str, content: bytes = b"") -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: here", *headers, "", ""]
    return "\r\n".join(lines).encode() + content


def chunks(*parts: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)


class Raw:
    """One connection."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # every part goes by itself
        self._begun = time.monotonic()
        self.answer, self.closed_after = b"", -1.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, content: bytes) -> bool:
        """Whether it was taken: a connection that the other side has closed takes nothing."""
        try:
            self._socket.sendall(content)
        except OSError:
            return False
        return True

    def dribble(self, parts: Iterable[bytes], pause: float) -> int:
        """Sends one part after the other for as long as they are taken; how many were."""
        for number, part in enumerate(parts):
            if not self.send(part):
                return number
            time.sleep(pause)
        return number + 1

    def listen(self, seconds: float, enough: int | None = None) -> bytes:
        """All that comes until the other side closes, or until there are so many answers, or no longer than this."""
        end = time.monotonic() + seconds
        while enough is None or self.answer.count(b"HTTP/1.1 ") < enough or not self.answer.endswith(b"}"):
            self._socket.settimeout(max(0.01, end - time.monotonic()))
            try:
                part = self._socket.recv(65_536)
            except TimeoutError:
                break
            except ConnectionError:
                part = b""
            if not part:
                self.closed_after = time.monotonic() - self._begun
                break
            self.answer += part
        return self.answer

    @property
    def closed(self) -> bool:
        return self.closed_after >= 0.0

    @property
    def status(self) -> int:
        """Of the first answer; 0 where there is none."""
        return int(self.answer.split()[1]) if self.answer.startswith(b"HTTP/1.1 ") else 0
