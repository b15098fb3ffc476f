"""Private selection by shuffled reports, on the server's side: a batch is opened, offered, settled once, and its guarantee stated.

    shop = ShuffledSelection(ledger, BlindTokens())
    shop.open("2026-11-16 sport", policy, candidates, prices, expires)
    offer = shop.offer("2026-11-16 sport")            # to every device the same, but for its token
    issued = shop.issue("2026-11-16 sport", request)
    settled = shop.settle(batch)                      # from the shuffler, one for each group
    shop.guarantee(settled, delta=1e-6, honest_share=0.9, stated=[...])

Everything an offer says is the same in the whole batch, prices included. What links a report to its offer is only its token.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from json import dumps

from tacit.errors import Conflict, InvalidMessage, InvalidParameter, UnknownName
from tacit.guarantees import Guarantee, ShuffleCondition, repeat
from tacit.ledger import ImpressionLedger, Offered, Settlement
from tacit.ledger.clock import SECOND, Clock, now
from tacit.ledger.names import name
from tacit.messages.private_selection import Batch, BatchTerms, Candidate, Offer, Policy
from tacit.messages.private_selection_tokens import IssuedToken, TokenRequest
from tacit.server.batch_guarantees import N_MIN, batch_guarantee, local_guarantee
from tacit.server.blind_tokens import Tokens

_MADE_SURE = frozenset({ShuffleCondition.SAME_RANDOMIZER, ShuffleCondition.NO_LINK_BY_PRICE})
_STATED = frozenset({ShuffleCondition.ONE_REPORT_EACH, ShuffleCondition.NO_OTHER_PATH})
_NO_TOKEN = "0" * 32


@dataclass(frozen=True, slots=True)
class SettledBatch:
    """A group's reports as the ledger took them. ``counted`` of them are in the ledger; ``refused`` are not."""

    id: str
    group: str
    settlement: Settlement
    policy: Policy  # that was applied to them
    counted: int
    refused: int


class ShuffledSelection:
    """``tokens`` are BlindTokens, or PlainTokens: with these nothing is ever amplified.

    Batches are opened again, with the same terms, after a restart; what was settled is in the ledger.
    """

    def __init__(self, ledger: ImpressionLedger, tokens: Tokens, *, clock: Clock = now) -> None:
        self._ledger, self._tokens, self._clock = ledger, tokens, clock
        self._opened: dict[
            str, tuple[Offer, str]
        ] = {}  # the offer of a batch, with no token, and the scope of its tokens

    def open(
        self, batch: str, policy: Policy, candidates: Sequence[Candidate], prices: Sequence[int], expires: int
    ) -> Offer:
        """Fixes what all offers of ``batch`` say, on the disk before any is made. The same again has no effect.

        Anything else under its name is a Conflict, also after a restart.
        ``prices`` are in micro-units of the currency, ``expires`` in seconds since 1970.
        """
        name("a batch", batch)
        bare = Offer(_NO_TOKEN, expires, policy, tuple(candidates), BatchTerms(batch, tuple(prices)))
        scope = sha256(dumps(bare.to_json(), sort_keys=True, allow_nan=False).encode()).hexdigest()
        # As an offer that nobody can report: a device's token has no space in it.
        terms = tuple(zip(bare.items, prices, strict=True))
        self._ledger.offer(Offered(f"batch {batch}", terms, scope, expires))
        offer = replace(bare, batch=BatchTerms(batch, tuple(prices), self._tokens.key(scope)))
        if self._opened.setdefault(batch, (offer, scope)) != (offer, scope):
            raise Conflict("this batch was opened with another view, and a batch has one.")
        return offer

    def offer(self, batch: str) -> Offer:
        """An offer for one device. Not written down: until it is reported nothing is owed, and its token proves itself."""
        offer, scope = self._running(batch)
        return replace(offer, token=self._tokens.offer_token(scope))

    def issue(self, batch: str, request: TokenRequest) -> IssuedToken:
        """The one token of an offer, to be asked for before anything is chosen."""
        return self._tokens.issue(self._running(batch)[1], request)

    def settle(self, batch: Batch) -> SettledBatch:
        """Counts and prices a group's reports, all in one transaction, once: a batch that is sent again has no effect."""
        offer, scope = self._find(batch.id)
        applied = self._applied(offer, batch.group)
        prices = dict(zip(offer.items, offer.batch.prices, strict=True)) if offer.batch is not None else {}
        good = [(token, item) for token, item in batch.reports if item in prices and self._tokens.accepts(scope, token)]
        if batch.reports and not good:
            # To settle it with nothing would use its name up, and the reports could never be counted.
            raise InvalidMessage(
                "not one report of this batch has a good token, and nothing was settled. Was the server started again with "
                "another seed? Then settle it with the seed that its tokens were made from."
            )
        settlement = self._ledger.settle_batch(batch.id, batch.group, good, prices)
        counted = len(good) if settlement in (Settlement.OK, Settlement.DUPLICATE) else 0
        return SettledBatch(batch.id, batch.group, settlement, applied, counted, len(batch.reports) - counted)

    def guarantee(
        self,
        settled: SettledBatch,
        *,
        delta: float,
        honest_share: float,
        stated: Collection[ShuffleCondition] = (),
        n_min: int = N_MIN,
        reports_each: int = 1,
        everybody: bool = True,
    ) -> Guarantee:
        """What holds of a user whose report is in this group. Only ``counted`` reports of the group itself are cover.

        The operator may state ONE_REPORT_EACH (devices keep to it) and NO_OTHER_PATH. The other three are made sure of here, or
        are not true.
        ``delta`` is a probability, ``honest_share`` the share (0 to 1) of the reports that honest devices sent.
        """
        if not frozenset(stated) <= _STATED:
            raise InvalidParameter("only ONE_REPORT_EACH and NO_OTHER_PATH are the operator's to state.")
        if self._ledger.refused(settled.id, settled.group):
            # Two versions of one group differ by single reports, in the open. The ledger knows of all processes.
            note = "not amplified: the group was told twice, with different reports"
            return repeat(local_guarantee(settled.policy), reports_each).assuming(note)
        blind = self._tokens.assumption
        conditions = _MADE_SURE | frozenset(stated) | ({ShuffleCondition.UNLINKABLE_TOKENS} if blind else frozenset())
        found = batch_guarantee(
            settled.policy,
            n=settled.counted,
            delta=delta,
            honest_share=honest_share,
            conditions=conditions,
            n_min=n_min,
            reports_each=reports_each,
            everybody=everybody,
        )
        return found.assuming(blind) if blind and found.delta > 0.0 else found

    def _find(self, batch: str) -> tuple[Offer, str]:
        found = self._opened.get(batch)
        if found is None:
            raise UnknownName("no batch of that name was opened here.")
        return found

    def _running(self, batch: str) -> tuple[Offer, str]:
        offer, scope = self._find(batch)
        if self._clock() >= offer.expires * SECOND:
            raise UnknownName("this batch is over; open another.")
        return offer, scope

    @staticmethod
    def _applied(offer: Offer, group: str) -> Policy:
        """The policy that a group id stands for, worked out from the view of the batch: no other groups are taken."""
        for applied in (offer.policy, offer.policy.without_cost()):
            if offer.group_under(applied) == group:
                return applied
        raise InvalidMessage("this group does not belong to the batch: its view or its policy is another one.")
