"""Choosing from an offer, in the one order that is both private and exact:

a repeated token gets the items that were written for it; on public data it is decided which policy applies, and that is
charged; only then what is private is looked at; the draw; the writing; the showing. What is refused is refused on public data.
"""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256

from numpy.typing import ArrayLike

from tacit.device.accounts import Accounts
from tacit.device.choice import Choice
from tacit.device.limits import Limits
from tacit.device.private_selection import guarantee_of, select
from tacit.device.scoring import private_scores
from tacit.errors import InvalidParameter
from tacit.guarantees import Guarantee, nothing
from tacit.ledger import DisplayLedger
from tacit.ledger.clock import SECOND, Clock
from tacit.mechanisms import Noise
from tacit.messages.private_selection import Impression, Offer

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
        """What to show. None, no fill, for an offer that has expired, or whose policy no mechanism can follow."""
        stored = self.displays.find(server, offer.token)
        if stored is not None:  # nothing private is touched: neither time nor outcome of a repetition depends on it
            return Choice.of(stored)
        if self.clock() >= offer.expires * SECOND:
            return None
        public = tuple(one.public_score for one in offer.candidates)
        try:
            guarantee = guarantee_of(offer.policy, public)
        except InvalidParameter:
            return None
        consented = self.displays.consent_state().granted
        applied, scores = offer.policy.without_cost(), None
        if consented and self._allowed(offer, guarantee):
            if guarantee.epsilon == 0.0:
                applied = offer.policy
            elif self.quality is not None and self._paid(offer, server, guarantee):
                applied, quality = offer.policy, self.quality
                scores = private_scores(offer.candidates, lambda: quality(offer.items))
        items = Impression.from_release(select(applied, scores, public, self.noise), offer).items
        batch = None if offer.batch is None else offer.batch.id
        group = None if offer.batch is None else offer.group_under(applied)
        made = Choice(server, offer.token, items, offer.expires, applied, consented, batch, group, report_token)
        return Choice.of(self.displays.choose(server, offer.token, items, offer.expires, made.extra()))

    def _allowed(self, offer: Offer, guarantee: Guarantee) -> bool:
        """Whether the owner allows this policy, whatever is left of the budget."""
        if offer.policy.rule not in self.limits.rules:
            return False
        return self.limits.non_private if guarantee.promises_nothing else guarantee.epsilon <= self.limits.most_epsilon

    def _paid(self, offer: Offer, server: str, guarantee: Guarantee) -> bool:
        """Whether the choice could be charged, for the first time.

        A token that was charged before and has no display was lost in a crash, or has outlived its display: another draw for
        the same charge would be another answer. A batch is charged once, whatever its offers are called: the bound for shuffled
        reports is for one report of each user, so that further offers of it are answered publicly.
        """
        what = ("choice", offer.token)
        if offer.batch is not None:
            what = ("batch", sha256(offer.batch.id.encode()).hexdigest()[:32])
        receipt = self.accounts.pay(server, what, charged(guarantee, self.noise))
        return receipt is not None and receipt.fresh


def charged(guarantee: Guarantee, noise: Noise) -> Guarantee:
    """What a release from this noise promises, known before it is drawn."""
    if noise.caveat is None or guarantee.promises_nothing:
        return guarantee
    return nothing(guarantee.protects, noise.caveat, proof=guarantee.proof)
