"""A wire with a listener on it: passes bytes on between a SuperNode and the SuperLink, and keeps a copy."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


class Wire:
    def __init__(self, port: int) -> None:
        self._to = ("127.0.0.1", port)
        self._parts: list[bytes] = []
        self._open = True
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.settimeout(0.5)
        self._threads = [self._start(self._listen)]

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._listening.getsockname()[1]}"

    @property
    def heard(self) -> bytes:
        """All that has passed, both ways."""
        return b"".join(self._parts)

    def close(self) -> None:
        self._open = False
        for one in self._threads:
            one.join(timeout=20)

    def _start(self, what: Callable[..., None], *arguments: object) -> threading.Thread:
        thread = threading.Thread(target=what, args=arguments, daemon=True)
        thread.start()
        return thread

    def _listen(self) -> None:
        with self._listening:
            while self._open:
                try:
                    near, _ = self._listening.accept()
                except TimeoutError:
                    continue
                self._threads.append(self._start(self._connect, near))

    def _connect(self, near: socket.socket) -> None:
        with near, socket.create_connection(self._to, timeout=10) as far:
            for one in (near, far):
                one.settimeout(0.5)
            back = self._start(self._pass_on, far, near)
            self._pass_on(near, far)
            back.join(timeout=20)

    def _pass_on(self, here: socket.socket, there: socket.socket) -> None:
        while self._open:
            try:
                part = here.recv(1 << 16)
                if not part:
                    break
                self._parts.append(part)
                there.sendall(part)
            except TimeoutError:
                continue
            except OSError:
                break
        with suppress(OSError):
            there.shutdown(socket.SHUT_WR)


@contextmanager
def wire(port: int) -> Iterator[Wire]:
    made = Wire(port)
    try:
        yield made
    finally:
        made.close()
