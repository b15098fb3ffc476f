"""Private selection with shuffled reports, on the server's side: open a batch, offer, settle once, state its guarantee.

    shop = ShuffledSelection(ledger, BlindTokens())
    shop.open("2026-11-16 sport", policy, candidates, prices, expires)
    offer = shop.offer("2026-11-16 sport")            # the same for every device, except for its token
    issued = shop.issue("2026-11-16 sport", request)
    settled = shop.settle(batch)                      # from the shuffler, one for each group
    shop.guarantee(settled, delta=1e-6, honest_share=0.9, stated=[...])

All offers of a batch say the same, including prices. Only its token links a report to its offer. `BlindTokens` break that link:
the server evaluates a blinded element under the batch's key and proves that it used that key; later it evaluates the nonce of a
report itself and compares. `PlainTokens` are the offers' own tokens: they prevent double counting but undo the shuffling, so
nothing is amplified.
"""

import hmac
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from json import dumps
from typing import Any, Protocol

from tacit.errors import Conflict, InvalidMessage, InvalidParameter, UnknownName
from tacit.guarantees import ONE_PROFILE, Guarantee, ShuffleCondition, amplify, nothing, pure, repeat
from tacit.guarantees.amplification import MOST_REPORTS
from tacit.ledger import ImpressionLedger, MailLedger, Offered, Settlement
from tacit.ledger.chain import SECOND, Clock, checked_name, now
from tacit.messages.private_selection import (
    NONCE_BYTES,
    PRIMITIVE,
    TOKEN_DIGITS,
    Batch,
    BatchTerms,
    Candidate,
    IssuedToken,
    Offer,
    Policy,
    Rule,
    TokenRequest,
    import_ristretto,
)

N_MIN = 1000  # fewest honest reports of a group that is called amplified
SEED_BYTES = 32
_NO_TOKEN = "0" * 32
_ENSURED_HERE = frozenset({ShuffleCondition.SAME_RANDOMIZER, ShuffleCondition.NO_LINK_BY_PRICE})
_STATED_BY_OPERATOR = frozenset({ShuffleCondition.ONE_REPORT_EACH, ShuffleCondition.NO_OTHER_PATH})
_RANDOM_BYTES, _TAG_BYTES = 8, 8  # of an offer's token


@dataclass(frozen=True, slots=True)
class SettledBatch:
    """The reports of one group as the ledger took them. The ledger contains ``counted`` of them, and none of ``refused``."""

    id: str
    group: str
    settlement: Settlement
    policy: Policy  # that was applied to them
    counted: int
    refused: int


class ShuffledSelection:
    """Offers and settles batches of shuffled reports. ``tokens`` are `BlindTokens`, or `PlainTokens` without amplification.

    After a restart, open the batches again with the same terms. Settled batches are in the ledger.
    """

    def __init__(self, ledger: ImpressionLedger, tokens: "Tokens", *, clock: Clock = now) -> None:
        self._ledger, self._tokens, self._clock = ledger, tokens, clock
        # The offer of each batch, without a token, and the scope of its tokens.
        self._batches: dict[str, tuple[Offer, str]] = {}

    def open(
        self, batch: str, policy: Policy, candidates: Sequence[Candidate], prices: Sequence[int], expires: int
    ) -> Offer:
        """Fixes what all offers of ``batch`` say, durably, before any is made. Opening it again with the same terms has no
        effect.

        ``prices`` are in micro-units of the currency, ``expires`` in seconds since 1970. Raises Conflict if the batch was
        opened with other terms, also before a restart.
        """
        checked_name("a batch", batch)
        bare = Offer(_NO_TOKEN, expires, policy, tuple(candidates), BatchTerms(batch, tuple(prices)))
        scope = sha256(dumps(bare.to_json(), sort_keys=True, allow_nan=False).encode()).hexdigest()
        # Stored as an offer that no device can report: a device's token has no space in it.
        terms = tuple(zip(bare.items, prices, strict=True))
        self._ledger.offer(Offered(f"batch {batch}", terms, scope, expires))
        offer = replace(bare, batch=BatchTerms(batch, tuple(prices), self._tokens.key(scope)))
        if self._batches.setdefault(batch, (offer, scope)) != (offer, scope):
            raise Conflict("this batch was opened with another view, and a batch can have only one.")
        return offer

    def offer(self, batch: str) -> Offer:
        """An offer for one device. It is not stored: nothing is owed before a report, and the token authenticates itself."""
        offer, scope = self._find_running(batch)
        return replace(offer, token=self._tokens.offer_token(scope))

    def issue(self, batch: str, request: TokenRequest) -> IssuedToken:
        """The one token of an offer. The device must request it before it chooses."""
        return self._tokens.issue(self._find_running(batch)[1], request)

    def settle(self, batch: Batch) -> SettledBatch:
        """Counts and prices a group's reports once, in one transaction. Settling the same batch again has no effect."""
        offer, scope = self._find(batch.id)
        policy = _policy_of_group(offer, batch.group)
        prices = dict(zip(offer.items, offer.batch.prices, strict=True)) if offer.batch is not None else {}
        good = [(token, item) for token, item in batch.reports if item in prices and self._tokens.accepts(scope, token)]
        if batch.reports and not good:
            # Settling it empty would use up its name, and the reports could never be counted.
            raise InvalidMessage(
                "no report of this batch has a valid token, and nothing was settled. If the server was restarted with another "
                "seed, settle the batch with the seed that its tokens were made from."
            )
        settlement = self._ledger.settle_batch(batch.id, batch.group, good, prices)
        counted = len(good) if settlement in (Settlement.OK, Settlement.DUPLICATE) else 0
        return SettledBatch(batch.id, batch.group, settlement, policy, counted, len(batch.reports) - counted)

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
        """The guarantee of a user whose report is in this group. Only the ``counted`` reports of the same group hide it.

        ``delta`` is a probability, ``honest_share`` the share (0 to 1) of the reports that honest devices sent. As the operator
        you may state ONE_REPORT_EACH (devices keep to it) and NO_OTHER_PATH. The server checks the other three conditions
        itself.
        """
        if not frozenset(stated) <= _STATED_BY_OPERATOR:
            raise InvalidParameter("only ONE_REPORT_EACH and NO_OTHER_PATH are the operator's to state.")
        if self._ledger.refused(settled.id, settled.group):
            # Two versions of one group differ by single reports, in the open. The ledger knows of all processes.
            note = "not amplified: the group was told twice, with different reports"
            return repeat(local_guarantee(settled.policy), reports_each).assuming(note)
        blind = self._tokens.assumption
        unlinkable = {ShuffleCondition.UNLINKABLE_TOKENS} if blind else frozenset()
        guarantee = batch_guarantee(
            settled.policy,
            n=settled.counted,
            delta=delta,
            honest_share=honest_share,
            conditions=_ENSURED_HERE | frozenset(stated) | unlinkable,
            n_min=n_min,
            reports_each=reports_each,
            everybody=everybody,
        )
        return guarantee.assuming(blind) if blind and guarantee.delta > 0.0 else guarantee

    def _find(self, batch: str) -> tuple[Offer, str]:
        entry = self._batches.get(batch)
        if entry is None:
            raise UnknownName("no batch of that name is open here.")
        return entry

    def _find_running(self, batch: str) -> tuple[Offer, str]:
        offer, scope = self._find(batch)
        if self._clock() >= offer.expires * SECOND:
            raise UnknownName("this batch is over; open another.")
        return offer, scope


def _policy_of_group(offer: Offer, group: str) -> Policy:
    """The policy that a group id stands for: that of the batch, or `public` for devices without consent."""
    for policy in (offer.policy, offer.policy.without_cost()):
        if offer.group_under(policy) == group:
            return policy
    raise InvalidMessage("this group does not belong to the batch: its view or its policy differs.")


def local_guarantee(policy: Policy) -> Guarantee:
    """The guarantee of one report under ``policy``, against everybody."""
    if policy.rule is Rule.GREEDY and policy.m > 1:
        return nothing(ONE_PROFILE, "greedy: the privately best candidate is always shown")
    # The blanket bound holds only for the index of the privately best candidate, once, by m-ary randomised response.
    proof = "randomised-response" if _is_response(policy) else ""
    return pure(policy.cost, ONE_PROFILE, proof=proof)


def batch_guarantee(
    policy: Policy,
    *,
    n: int,
    delta: float,
    honest_share: float,
    conditions: Collection[ShuffleCondition],
    n_min: int = N_MIN,
    reports_each: int = 1,
    everybody: bool = True,
) -> Guarantee:
    """The guarantee of a user in a group of ``n`` reports that were all drawn under ``policy``.

    It uses the blanket bound for rr with d = 1, one slot and one report each, and otherwise the numerical bound of all slots
    together, which holds for every mechanism. You get the local guarantee, with a note, if a condition is missing, if the group
    is smaller than ``n_min``, or if next to nothing is gained. `public`, `uniform` and a single candidate have epsilon 0
    without shuffling. The proof is in docs/proofs/shuffle-amplification.
    """
    local = local_guarantee(policy)
    users = n // reports_each if everybody else n
    if local.promises_nothing or local.epsilon == 0.0:
        return repeat(local, reports_each)
    if users < 1:
        return repeat(local, reports_each).assuming(f"not amplified: fewer than {n_min} honest reports")
    return amplify(
        local,
        n=min(users, MOST_REPORTS),
        delta=delta,
        conditions=conditions,
        k=policy.m if _is_response(policy) and (reports_each == 1 or not everybody) else None,
        honest_share=honest_share,
        least=n_min,
        reports_each=reports_each,
        everybody=everybody,
    )


def _is_response(policy: Policy) -> bool:
    return policy.rule is Rule.RR and policy.d == 1 and policy.slots == 1


class Tokens(Protocol):
    """Issues and recognises the tokens of reports. ``scope`` names a batch and its view: candidates, prices, policy."""

    @property
    def assumption(self) -> str | None:
        """Why its tokens are unlinkable; None if they are not."""

    def key(self, scope: str) -> str:
        """The public key of a batch, in hexadecimal digits; empty if tokens are not blind."""

    def offer_token(self, scope: str) -> str:
        """A new token for an offer. It can be distinguished from every token that was not made here for this scope."""

    def issue(self, scope: str, request: TokenRequest) -> IssuedToken:
        """One token for one offer. The same request gets the same answer; another one for the same offer raises Conflict."""

    def accepts(self, scope: str, token: str) -> bool:
        """Whether a report's token was issued for this scope."""


class PlainTokens:
    """The offer's token is the report's token. The server that made the offer can link both: only the local epsilon holds."""

    assumption: str | None = None

    def __init__(self, seed: bytes | None = None) -> None:
        self._offer_tokens = _OfferTokens(_checked_seed(seed))

    def key(self, scope: str) -> str:
        """Empty: devices report with the offer's own token."""
        return ""

    def offer_token(self, scope: str) -> str:
        """A new token for an offer of this batch."""
        return self._offer_tokens.make(scope)

    def issue(self, scope: str, request: TokenRequest) -> IssuedToken:
        """Raises InvalidMessage: plain tokens are not issued separately."""
        raise InvalidMessage("this batch has no blind tokens: report with the offer's token.")

    def accepts(self, scope: str, token: str) -> bool:
        """Whether a report's token is that of an offer of this batch."""
        return self._offer_tokens.recognise(scope, token)


class BlindTokens:
    """Tokens by a verifiable oblivious pseudorandom function, with one key per batch and view, derived from one secret ``seed``.

    Without a ``seed`` one is drawn and ends with the process: reports of batches that are still open are then lost. If you
    store a seed, pass a durable record ``issued`` (`OnDisk`) too; otherwise a restart would allow a second token for the same
    offer.
    """

    assumption: str | None = (
        f"tokens are blind by {PRIMITIVE}, in the package voprf, and one published key serves a batch"
    )

    def __init__(self, seed: bytes | None = None, issued: "IssueRecord | None" = None) -> None:
        if seed is not None and issued is None:
            raise InvalidParameter(
                "a seed that outlives the process needs a durable record of issued tokens: pass issued=OnDisk(...)."
            )
        self._seed, self._issued, self._voprf = _checked_seed(seed), issued or InMemory(), import_ristretto()
        self._offer_tokens, self._evaluators = _OfferTokens(self._seed), dict[str, Any]()

    def key(self, scope: str) -> str:
        """The public key of a batch, in hexadecimal digits. Devices verify issued tokens with it."""
        public: bytes = self._evaluator(scope).public_key.serialize()
        return public.hex()

    def offer_token(self, scope: str) -> str:
        """A new token for an offer of this batch."""
        return self._offer_tokens.make(scope)

    def issue(self, scope: str, request: TokenRequest) -> IssuedToken:
        """Evaluates a device's blinded element without seeing the token, once for each offer.

        The same element again gets the same answer. Another one for the same offer raises Conflict.
        """
        if not self._offer_tokens.recognise(scope, request.token):
            raise InvalidMessage("no offer of this batch has that token.")
        try:
            blinded = self._voprf.BlindedInput.deserialize(bytes.fromhex(request.blinded))
        except ValueError:
            raise InvalidMessage("the blinded element is no element of the group.") from None
        # Recorded before it is evaluated: a crash in between loses a token, and never gives two.
        if self._issued.first(scope, request.token, request.blinded) != request.blinded:
            raise Conflict("this offer already has its token: one offer, one report.")
        return IssuedToken(self._evaluator(scope).evaluate(blinded).serialize().hex())

    def accepts(self, scope: str, token: str) -> bool:
        """Whether a report's token was issued for this batch."""
        if len(token) != TOKEN_DIGITS:
            return False
        raw = bytes.fromhex(token)
        expected: bytes = self._evaluator(scope).evaluate_known_input(raw[:NONCE_BYTES])
        return hmac.compare_digest(raw[NONCE_BYTES:], expected)

    def _evaluator(self, scope: str) -> Any:
        evaluator = self._evaluators.get(scope)
        if evaluator is None:
            info = sha256(scope.encode()).digest()
            evaluator = self._evaluators.setdefault(scope, self._voprf.Evaluator.from_seed(self._seed, info))
        return evaluator


class IssueRecord(Protocol):
    """Remembers which element was evaluated for which offer. It must last as long as the keys do."""

    def first(self, scope: str, token: str, blinded: str) -> str:
        """The first element that was recorded for this scope and token: ``blinded``, unless there was an earlier one."""


class InMemory:
    """A record in memory, for keys in memory: both end with the process, so nothing is issued twice under one key."""

    def __init__(self) -> None:
        self._elements: dict[tuple[str, str], str] = {}

    def first(self, scope: str, token: str, blinded: str) -> str:
        return self._elements.setdefault((scope, token), blinded)  # atomic, also between threads


class OnDisk:
    """A record in a ledger, one row per offer, for a seed that is stored. The row is durable before the token is made."""

    def __init__(self, rows: MailLedger) -> None:
        self._rows = rows

    def first(self, scope: str, token: str, blinded: str) -> str:
        """The first element that was recorded for this offer: ``blinded``, unless there was an earlier one. Durable when this
        returns.
        """
        if self._rows.add(scope, token, blinded, token):
            return blinded
        ((_, recorded),) = self._rows.reports(scope, token)  # a group of one
        return recorded


class _OfferTokens:
    """Tokens of offers that carry their own authentication, so that no table of them is needed."""

    def __init__(self, seed: bytes) -> None:
        self._key = hmac.digest(seed, b"offers", sha256)

    def make(self, scope: str) -> str:
        random = os.urandom(_RANDOM_BYTES)
        return (random + self._tag(scope, random)).hex()

    def recognise(self, scope: str, token: str) -> bool:
        if len(token) != 2 * (_RANDOM_BYTES + _TAG_BYTES):
            return False
        raw = bytes.fromhex(token)
        return hmac.compare_digest(raw[_RANDOM_BYTES:], self._tag(scope, raw[:_RANDOM_BYTES]))

    def _tag(self, scope: str, random: bytes) -> bytes:
        return hmac.digest(self._key, random + scope.encode(), sha256)[:_TAG_BYTES]


def _checked_seed(seed: bytes | None) -> bytes:
    seed = os.urandom(SEED_BYTES) if seed is None else seed
    if not isinstance(seed, bytes) or len(seed) != SEED_BYTES:
        raise InvalidParameter(f"a seed must be {SEED_BYTES} random bytes, kept secret.")
    return seed
