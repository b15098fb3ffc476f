"""Choosing from an offer, in the one order that is both private and exact:

a repeated token gets the items that were written for it; the token is claimed, by one call only; on public data it is decided
which policy applies, and that is charged; only then what is private is looked at; the draw; the writing; the showing. What is
refused is refused on public data.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256

from numpy.typing import ArrayLike

from tacit.device.accounts import Accounts
from tacit.device.choice import Choice
from tacit.device.limits import Limits
from tacit.device.private_selection import guarantee_of, select
from tacit.device.scoring import private_scores
from tacit.errors import TacitError
from tacit.guarantees import Guarantee, nothing
from tacit.ledger import DisplayLedger
from tacit.ledger.clock import SECOND, Clock
from tacit.mechanisms import Noise
from tacit.messages.private_selection import Impression, Offer

MOST_AHEAD = (
    31 * 24 * 3600
)  # seconds: a display is kept until a day after its offer expires, so a server must not say when that is
LEAST_EPSILON = (
    1e-3  # what costs less, and not nothing, is answered publicly: charges are kept for good, and none is to be pumped
)
Quality = Callable[[tuple[str, ...]], ArrayLike]  # of items: reads what is private


@dataclass(frozen=True)
class Choosing:
    """What a choice needs beside the offer. ``quality`` is None where the device has nothing private to choose by."""

    displays: DisplayLedger
    accounts: Accounts
    limits: Limits
    quality: Quality | None
    noise: Noise
    clock: Clock

    def choose(self, offer: Offer, server: str, report_token: str | None = None) -> Choice | None:
        """What to show. None, no fill, for an offer that expired or expires too late, or whose policy no mechanism can follow; and
        for a token that another call has claimed, and not written anything for."""
        stored = self.displays.find(server, offer.token)
        if stored is not None:  # nothing private is touched: neither time nor outcome of a repetition depends on it
            return Choice.of(stored)
        if not 0 < offer.expires * SECOND - self.clock() <= MOST_AHEAD * SECOND:
            return None
        public = tuple(one.public_score for one in offer.candidates)
        try:
            guarantee = guarantee_of(offer.policy, public)
        except (TacitError, ArithmeticError, ValueError):  # all that the draw will need was made, from public numbers
            return None
        if not self._claimed(offer, server):  # meanwhile the other call may have written what it drew
            stored = self.displays.find(server, offer.token)
            return None if stored is None else Choice.of(stored)
        consented = self.displays.consent_state().granted
        applied, scores = offer.policy.without_cost(), None
        if consented and self._allowed(offer, guarantee):
            if guarantee.epsilon == 0.0:
                applied = offer.policy
            elif self.quality is not None:
                receipt = self.accounts.pay(server, _charge_of(offer), charged(guarantee, self.noise))
                if receipt is not None and receipt.fresh:
                    applied, quality = offer.policy, self.quality
                    scores = private_scores(offer.candidates, lambda: quality(offer.items))
                elif receipt is not None and offer.batch is None:
                    return None  # it has outlived its display: another draw for the same charge would be another answer
        items = Impression.from_release(select(applied, scores, public, self.noise), offer).items
        batch = None if offer.batch is None else offer.batch.id
        group = None if offer.batch is None else offer.group_under(applied)
        made = Choice(server, offer.token, items, offer.expires, applied, consented, batch, group, report_token)
        return Choice.of(self.displays.choose(server, offer.token, items, offer.expires, made.extra()))

    def _allowed(self, offer: Offer, guarantee: Guarantee) -> bool:
        """Whether the owner allows this policy, whatever is left of the budget."""
        if offer.policy.rule not in self.limits.rules:
            return False
        if guarantee.promises_nothing:
            return self.limits.non_private
        return guarantee.epsilon == 0.0 or LEAST_EPSILON <= guarantee.epsilon <= self.limits.most_epsilon

    def _claimed(self, offer: Offer, server: str) -> bool:
        """Whether this call is the first for the token, in any thread or process: it alone may write what is shown.

        If a second call wrote anything while the first is scoring, whatever its offer says and whatever it costs, then the time
        that scoring takes would decide which of the two is shown. So it writes nothing. Where the first one died, nobody does.
        """
        mine, key = os.urandom(16), f"claim {_digest(offer.token)}"  # no offer has such a token: it is not hexadecimal
        return self.displays.choose(server, key, ("",), offer.expires, mine).extra == mine


def _charge_of(offer: Offer) -> tuple[str, str]:
    """A batch is charged once, whatever its offers are called: the bound for shuffled reports is for one report of each user, so
    that further offers of it are answered publicly."""
    return ("choice", offer.token) if offer.batch is None else ("batch", _digest(offer.batch.id))


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:32]


def charged(guarantee: Guarantee, noise: Noise) -> Guarantee:
    """What a release from this noise promises, known before it is drawn."""
    if noise.caveat is None or guarantee.promises_nothing:
        return guarantee
    return nothing(guarantee.protects, noise.caveat, proof=guarantee.proof)
