"""What a simulated run of a system leaves behind."""

import json
from dataclasses import dataclass
from typing import Any

from tacit.guarantees import Guarantee


@dataclass(frozen=True, repr=False)
class Transcript:
    """One run of a system in one process. Each system adds what its run produced.

    ``guarantee`` is what was promised for everything that left the parties with raw data, ``bytes_sent`` how many bytes that was.
    """

    guarantee: Guarantee
    bytes_sent: int

    @property
    def summary(self) -> str:
        """What the run produced, in public numbers."""
        return ""

    def __repr__(self) -> str:
        parts = [self.summary] if self.summary else []
        return f"{type(self).__name__}({', '.join([*parts, f'{self.bytes_sent:,} bytes sent'])})"


def write(message: dict[str, Any]) -> str:
    """A message as it goes over the wire."""
    return json.dumps(message, separators=(",", ":"), allow_nan=False)
