"""How a device comes by a token that makes its report count once and leads nobody back to its offer.

device -> server    TokenRequest    the offer's token, and a blinded element: a random point to everybody but the device
server -> device    IssuedToken     that element under the batch's secret key, with the proof that it was that key

The token itself is the device's nonce, and the output of the function at it; the server has seen neither when a report arrives.
Sizes are those of VOPRF(ristretto255, SHA-512), RFC 9497.
"""

from dataclasses import dataclass
from typing import Any

from tacit.messages import fields

VERSION = 1
PRIMITIVE = "VOPRF(ristretto255, SHA-512) of RFC 9497"
NONCE_BYTES = 32
OUTPUT_BYTES = 64
ELEMENT_DIGITS = 2 * 32
KEY_DIGITS = 2 * 32
PROOF_DIGITS = 2 * 64
TOKEN_DIGITS = 2 * (NONCE_BYTES + OUTPUT_BYTES)


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """A blinded element for the offer with this token. Made before anything is chosen, and for every offer alike."""

    token: str
    blinded: str  # in hexadecimal digits

    def __post_init__(self) -> None:
        fields.hexadecimal(self.token, "$.token", length=32)
        fields.hexadecimal(self.blinded, "$.blinded", length=ELEMENT_DIGITS)

    def to_json(self) -> dict[str, Any]:
        return {"version": VERSION, "token": self.token, "blinded": self.blinded}

    @classmethod
    def from_json(cls, value: object) -> "TokenRequest":
        found = fields.members(value, "a request for a token", ("version", "token", "blinded"))
        fields.whole(found["version"], "$.version", least=VERSION, most=VERSION)
        return cls(found["token"], found["blinded"])


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """The proof, then the element, as one text of hexadecimal digits."""

    evaluated: str

    def __post_init__(self) -> None:
        fields.hexadecimal(self.evaluated, "$.evaluated", length=PROOF_DIGITS + ELEMENT_DIGITS)

    def to_json(self) -> dict[str, Any]:
        return {"version": VERSION, "evaluated": self.evaluated}

    @classmethod
    def from_json(cls, value: object) -> "IssuedToken":
        found = fields.members(value, "an issued token", ("version", "evaluated"))
        fields.whole(found["version"], "$.version", least=VERSION, most=VERSION)
        return cls(found["evaluated"])
