"""Tokens of shuffled reports, on the server's side: one is issued for each offer, and each is known again when it comes back.

``BlindTokens`` are unlinkable: the server evaluates a blinded element under the batch's key and proves that it used that key;
later it evaluates the nonce of a report itself and compares. ``PlainTokens`` are the offers' own: they stop double counting and
undo the shuffling, so nothing is called amplified with them.
"""

import hmac
import os
from hashlib import sha256
from typing import Any, Protocol

from tacit.errors import Conflict, InvalidMessage, InvalidParameter, MissingExtra
from tacit.ledger import MailLedger
from tacit.messages.private_selection_tokens import (
    NONCE_BYTES,
    PRIMITIVE,
    TOKEN_DIGITS,
    IssuedToken,
    TokenRequest,
)

SEED_BYTES = 32
_DRAWN, _TAGGED = 8, 8  # bytes of an offer's token: drawn, and an authentication of them


class Issued(Protocol):
    """Remembers which element was evaluated for which offer. What it says must survive whatever the keys survive."""

    def first(self, scope: str, token: str, blinded: str) -> str:
        """``blinded``, or what was given here before for this scope and token; remembered when it returns."""


class InMemory:
    """For keys that are in memory only: with the process both end, and nothing can be issued twice under one key."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], str] = {}

    def first(self, scope: str, token: str, blinded: str) -> str:
        return self._kept.setdefault((scope, token), blinded)  # one step, also between threads


class OnDisk:
    """In a ledger, one row for each offer: it survives what a kept seed survives. The row is there before the token is made."""

    def __init__(self, rows: MailLedger) -> None:
        self._rows = rows

    def first(self, scope: str, token: str, blinded: str) -> str:
        """The blinded token that was the first for this offer: the one given now, or an earlier one. On the disk when
        it returns.
        """
        if self._rows.add(scope, token, blinded, token):
            return blinded
        ((_, kept),) = self._rows.reports(scope, token)  # a group of one
        return kept


class Tokens(Protocol):
    """``scope`` names a batch and its view: candidates, prices, policy."""

    @property
    def assumption(self) -> str | None:
        """Why its tokens are unlinkable; None where they are not."""

    def key(self, scope: str) -> str:
        """The public key of a batch, in hexadecimal digits; empty where tokens are not blind."""

    def offer_token(self, scope: str) -> str:
        """A fresh token for an offer. It can be told from any that was not made here for this scope."""

    def issue(self, scope: str, request: TokenRequest) -> IssuedToken:
        """One token for one offer. The same request again is answered again; another for the same offer raises Conflict."""

    def accepts(self, scope: str, token: str) -> bool:
        """Whether a report's token was issued for this scope."""


class PlainTokens:
    """The offer's token is the report's. Whoever made the offer knows who reports: the local epsilon is all that holds."""

    assumption: str | None = None

    def __init__(self, seed: bytes | None = None) -> None:
        self._offers = _Offers(_seed(seed))

    def key(self, scope: str) -> str:
        """No key: devices report with the offer's own token."""
        return ""

    def offer_token(self, scope: str) -> str:
        """A fresh token for an offer of this batch."""
        return self._offers.token(scope)

    def issue(self, scope: str, request: TokenRequest) -> IssuedToken:
        """Refuses: there are no blind tokens here."""
        raise InvalidMessage("this batch has no blind tokens: report with the offer's token.")

    def accepts(self, scope: str, token: str) -> bool:
        """Whether a report's token is that of an offer of this batch."""
        return self._offers.made(scope, token)


class BlindTokens:
    """Tokens by a verifiable oblivious function, one key for each batch and view, all derived from one secret ``seed``.

    Without a seed it is drawn, and ends with the process: reports of a batch that is still open are then lost. A seed that is
    kept elsewhere needs a durable ``issued``, or a restart would allow a second token for the same offer.
    """

    assumption: str | None = (
        f"tokens are blind by {PRIMITIVE}, in the package voprf, and one published key serves a batch"
    )

    def __init__(self, seed: bytes | None = None, issued: Issued | None = None) -> None:
        if seed is not None and issued is None:
            raise InvalidParameter("a seed that outlives the process needs a durable record of what was issued.")
        self._seed, self._issued, self._voprf = _seed(seed), issued or InMemory(), _voprf()
        self._offers, self._evaluators = _Offers(self._seed), dict[str, Any]()

    def key(self, scope: str) -> str:
        """The public key of a batch, in hexadecimal: devices check issued tokens by it."""
        public: bytes = self._evaluator(scope).public_key.serialize()
        return public.hex()

    def offer_token(self, scope: str) -> str:
        """A fresh token for an offer of this batch."""
        return self._offers.token(scope)

    def issue(self, scope: str, request: TokenRequest) -> IssuedToken:
        """Signs a device's blinded token, once for each offer, without seeing it; the same blinded token again gives
        the same answer.
        """
        if not self._offers.made(scope, request.token):
            raise InvalidMessage("no offer of this batch has that token.")
        try:
            blinded = self._voprf.BlindedInput.deserialize(bytes.fromhex(request.blinded))
        except ValueError:
            raise InvalidMessage("the blinded element is no element of the group.") from None
        # Remembered before it is evaluated: a crash in between loses a token, and never gives two.
        if self._issued.first(scope, request.token, request.blinded) != request.blinded:
            raise Conflict("this offer has its token already: one offer, one report.")
        return IssuedToken(self._evaluator(scope).evaluate(blinded).serialize().hex())

    def accepts(self, scope: str, token: str) -> bool:
        """Whether a report's token was issued for this batch."""
        if len(token) != TOKEN_DIGITS:
            return False
        raw = bytes.fromhex(token)
        expected: bytes = self._evaluator(scope).evaluate_known_input(raw[:NONCE_BYTES])
        return hmac.compare_digest(raw[NONCE_BYTES:], expected)

    def _evaluator(self, scope: str) -> Any:
        found = self._evaluators.get(scope)
        if found is None:
            info = sha256(scope.encode()).digest()
            found = self._evaluators.setdefault(scope, self._voprf.Evaluator.from_seed(self._seed, info))
        return found


class _Offers:
    """Offers' tokens that carry their own authentication: no table has to be asked whether one was made here."""

    def __init__(self, seed: bytes) -> None:
        self._key = hmac.digest(seed, b"offers", sha256)

    def token(self, scope: str) -> str:
        drawn = os.urandom(_DRAWN)
        return (drawn + self._tag(scope, drawn)).hex()

    def made(self, scope: str, token: str) -> bool:
        if len(token) != 2 * (_DRAWN + _TAGGED):
            return False
        raw = bytes.fromhex(token)
        return hmac.compare_digest(raw[_DRAWN:], self._tag(scope, raw[:_DRAWN]))

    def _tag(self, scope: str, drawn: bytes) -> bytes:
        return hmac.digest(self._key, drawn + scope.encode(), sha256)[:_TAGGED]


def _seed(given: bytes | None) -> bytes:
    seed = os.urandom(SEED_BYTES) if given is None else given
    if not isinstance(seed, bytes) or len(seed) != SEED_BYTES:
        raise InvalidParameter(f"a seed is {SEED_BYTES} random bytes, and secret.")
    return seed


def _voprf() -> Any:
    try:
        from voprf import ristretto
    except ImportError:
        raise MissingExtra("blind tokens need the package voprf: pip install 'tacit[tokens]'.") from None
    return ristretto
