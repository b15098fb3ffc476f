"""The request of multi-selection, from device to server: a signal, and the wanted size of the slate. 168 bytes for 38 features."""

from dataclasses import dataclass
from typing import Any

from tacit.errors import InvalidMessage
from tacit.messages import fields
from tacit.messages.multi_selection_signal import NAMES, Signal, packed, unpacked

MOST_K = 255


@dataclass(frozen=True)
class Request:
    """A signal, how many items the slate shall have (``k``) and how many of them the device will show (``t``)."""

    signal: Signal
    k: int = 5
    t: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.signal, Signal):
            raise InvalidMessage("a request carries a Signal.")
        if type(self.k) is not int or type(self.t) is not int or not 1 <= self.t <= self.k <= MOST_K:
            raise InvalidMessage(f"a request needs 1 <= t <= k <= {MOST_K}.")

    def require(self, *, dimension: int, most_k: int = MOST_K, simulated: bool = True) -> "Request":
        """This request, if a server with such features can answer it; the error does not show the signal.

        With ``simulated=False`` a server refuses signals of replayed noise: their senders are promised nothing.
        """
        if self.signal.dimension != dimension:
            raise InvalidMessage(
                f"this server's features have {dimension} numbers. Rebuild them with its feature list."
            )
        if self.k > most_k:
            raise InvalidMessage(f"this server offers at most {most_k} items: ask for fewer.")
        if self.signal.simulated and not simulated:
            raise InvalidMessage("this server refuses simulated signals: draw the noise from the operating system.")
        return self

    def to_bytes(self) -> bytes:
        """The request in the compact binary form."""
        return packed(self.signal, self.k, self.t)

    @classmethod
    def from_bytes(cls, content: bytes) -> "Request":
        """The request of such bytes, checked; InvalidMessage for anything else."""
        return cls(*unpacked(content))

    def to_json(self) -> dict[str, Any]:
        """The request as values for JSON."""
        return {**self.signal.to_json(), "k": self.k, "t": self.t}

    @classmethod
    def from_json(cls, value: object) -> "Request":
        """The request of such values, checked; InvalidMessage for anything else."""
        found = dict(fields.members(value, "a request", (*NAMES, "k", "t")))
        k, t = (fields.whole(found.pop(name), f"$.{name}", least=1, most=MOST_K) for name in ("k", "t"))
        return cls(Signal.from_json(found), k, t)
