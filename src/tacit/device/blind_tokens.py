"""A device's token for one shuffled report: blinded for the server to sign, checked against the batch's published key.

    blinded = blind(offer)                      # before anything is chosen, for every offer of a batch alike
    issued = server.issue(blinded.request)      # the server learns a random point
    token = blinded.finish(issued)              # goes into the ShuffledReport

The nonce is drawn here, so that no server can mark it. The proof is checked against the key in the offer, and that key is in the
digest that names the group: whoever is given a key of her own reports in a group of her own, which nobody calls amplified.
"""

from dataclasses import dataclass, field
from typing import Any

from tacit.errors import InvalidMessage, MissingExtra
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise
from tacit.messages.private_selection import Offer
from tacit.messages.private_selection_tokens import KEY_DIGITS, NONCE_BYTES, IssuedToken, TokenRequest


@dataclass(frozen=True, repr=False)
class Blinded:
    """One nonce on its way to become a token. It lives in memory only: after a crash the offer is dropped, nothing was shown."""

    request: TokenRequest
    _nonce: bytes = field(compare=False)
    _client: Any = field(compare=False)
    _key: Any = field(compare=False)

    def finish(self, issued: IssuedToken) -> str:
        """The token, in hexadecimal digits: nonce and output. Refused where the proof does not fit the published key."""
        try:
            output: bytes = self._client.finalize(_voprf().VerifiableOutput.deserialize(_bytes(issued)), self._key)
        except ValueError:
            raise InvalidMessage("the issued token was not made with the key that the offer publishes.") from None
        return (self._nonce + output).hex()

    def __repr__(self) -> str:
        return "Blinded(...)"  # the nonce is the link between offer and report


def blind(offer: Offer, noise: Noise = SYSTEM_NOISE) -> Blinded:
    """A fresh nonce, blinded, for an offer whose batch has a key."""
    if offer.batch is None or len(offer.batch.key) != KEY_DIGITS:
        raise InvalidMessage("only offers of a batch with a published key have blind tokens.")
    voprf = _voprf()
    try:
        key = voprf.PublicKey.deserialize(bytes.fromhex(offer.batch.key))
    except ValueError:
        raise InvalidMessage("the key that the offer publishes is no key.") from None
    nonce = noise.draw(NONCE_BYTES)
    client, blinded = voprf.Client.blind(nonce)  # blinded by the operating system's entropy
    return Blinded(TokenRequest(offer.token, blinded.serialize().hex()), nonce, client, key)


def _bytes(issued: IssuedToken) -> bytes:
    return bytes.fromhex(issued.evaluated)


def _voprf() -> Any:
    try:
        from voprf import ristretto
    except ImportError:
        raise MissingExtra("blind tokens need the package voprf: pip install 'tacit[tokens]'.") from None
    return ristretto
