"""How much a caller may ask for: so many requests a second, so many bytes, in so much time.

Addresses are kept in memory, for as long as their bucket is not full again, and nowhere else.
"""

from asyncio import timeout
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address
from time import monotonic

from starlette.types import Message, Receive

from tacit.service.problems import Problem

_MOST_CALLERS = 100_000
_SUBNET = 64  # bits: one household, or one machine, has a whole network of IPv6 addresses


class Buckets:
    """A token bucket for each caller, in this process. ``rate`` 0 limits nobody."""

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = monotonic) -> None:
        self._rate, self._burst, self._clock = rate, float(burst), clock
        self._left: dict[str, tuple[float, float]] = {}  # what was left, and when

    def wait(self, caller: str) -> float:
        """0 if this request may go on; else in how many seconds it might."""
        if self._rate == 0.0:
            return 0.0
        now = self._clock()
        left, at = self._left.get(caller, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._rate)
        if left < 1.0:
            self._left[caller] = (left, now)
            return (1.0 - left) / self._rate
        if caller not in self._left and len(self._left) >= _MOST_CALLERS:
            self._tidy(now)
        self._left[caller] = (left - 1.0, now)
        return 0.0

    def _tidy(self, now: float) -> None:
        """Forgets full buckets; if there is none, all: who is limited then was one of very many."""
        full = [one for one, (left, at) in self._left.items() if left + (now - at) * self._rate >= self._burst]
        for one in full:
            del self._left[one]
        if not full:
            self._left.clear()


def caller_of(client: tuple[str, int] | None) -> str:
    """Whom requests from this address count for."""
    host = "" if client is None else client[0]
    if ":" not in host:
        return host
    try:
        address = IPv6Address(host.partition("%")[0])
    except ValueError:
        return host
    if address.ipv4_mapped is not None:  # through a socket for both
        return str(address.ipv4_mapped)
    return str(ip_address(int(address) >> (128 - _SUBNET) << (128 - _SUBNET)))


def bounded(receive: Receive, most: int, seconds: float) -> Receive:
    """The same body, if it has at most ``most`` bytes and is here within ``seconds``."""
    size, complete, deadline = 0, False, monotonic() + seconds

    async def limited() -> Message:
        nonlocal size, complete
        if complete:  # what comes after a body is the end of the connection: that may take its time
            return await receive()
        try:
            async with timeout(max(0.0, deadline - monotonic())):
                message = await receive()
        except TimeoutError:
            raise Problem("too-slow", f"the request was not here within {seconds:g} seconds.", _CLOSE) from None
        size += len(message.get("body", b""))
        if size > most:
            raise too_large(most)
        complete = not message.get("more_body", False)
        return message

    return limited


def too_large(most: int) -> Problem:
    return Problem("too-large", f"a request has at most {most:,} bytes here.", _CLOSE)


_CLOSE = {"Connection": "close"}  # what is still on its way is not read
