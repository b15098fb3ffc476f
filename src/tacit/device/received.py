"""An answer while it arrives: no more of it is taken, unpacked or waited for than the call allows."""

import zlib
from collections.abc import Mapping
from time import monotonic

from tacit.device.exchange import Answer, Call, NoAnswer

MOST_PROBLEM = 1 << 16  # bytes of an answer that is no message
_WANTED = ("content-type", "content-encoding", "retry-after", "tacit-parts", "tacit-version")
_MOST_HEADER = 200  # characters


class Received:
    """Takes bytes as they come, until there are too many of them, packed or unpacked, or until ``seconds`` are over."""

    def __init__(self, call: Call, status: int, headers: Mapping[str, str], seconds: float) -> None:
        self._status, self._most = status, call.most if status == 200 else MOST_PROBLEM
        self._headers = {name: headers[name][:_MOST_HEADER] for name in _WANTED if name in headers}
        self._body, self._taken, self._broken, self._late = bytearray(), 0, False, False
        self._until = monotonic() + seconds
        encoding = self._headers.get("content-encoding", "identity").strip().lower()
        self._unpacking = zlib.decompressobj(wbits=31) if encoding == "gzip" else None
        if encoding not in ("gzip", "identity", ""):
            self._broken = True  # nothing else was asked for

    def goes_on(self, chunk: bytes) -> bool:
        """Whether more is wanted after this chunk."""
        self._taken += len(chunk)
        self._body += self._unpacked(chunk)
        self._broken |= max(self._taken, len(self._body)) > self._most
        self._late = monotonic() > self._until  # a byte now and then would hold a client for ever
        return not (self._broken or self._late)

    def answer(self) -> Answer | NoAnswer:
        """What there is, at the end of it."""
        if self._late:
            return NoAnswer("its answer took too long")
        packed = self._unpacking is not None and not (self._unpacking.eof and not self._unpacking.unused_data)
        whole = not (self._broken or packed)
        return Answer(self._status, self._headers, bytes(self._body) if whole else b"", whole)

    def _unpacked(self, chunk: bytes) -> bytes:
        if self._unpacking is None:
            return chunk
        try:
            # one byte beyond the limit is enough to know, whatever a few packed bytes would become
            return self._unpacking.decompress(chunk, self._most + 1 - len(self._body))
        except zlib.error:
            self._broken = True
            return b""
