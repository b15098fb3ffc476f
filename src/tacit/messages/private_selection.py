"""The messages of private selection, between device, shuffler and server.

device   -> server    OfferRequest    a public context, and whether the user consents
server   -> device    Offer           candidates, public scores, a policy, a token: all public
device   -> server    Impression      token and items: exactly those that were shown
device   -> server    TokenRequest    for offers of a batch: a blinded element
server   -> device    IssuedToken     the evaluated element, with a proof
device   -> shuffler  ShuffledReport  item, group and an unlinkable token
shuffler -> server    Batch           the reports of one group, in the order of their tokens
device   -> server    Engagement      a click, as a randomised bit
"""

import math
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from itertools import pairwise
from json import dumps
from struct import pack
from typing import Annotated, Any, ClassVar, TypeAlias

from msgspec import Meta, Struct

from tacit.errors import InvalidMessage, MissingExtra
from tacit.guarantees import Release
from tacit.messages.codec import (
    Form,
    Message,
    Named,
    Positive,
    Real,
    ReleaseOnly,
    Wire,
    characters,
    digits,
    make,
    read,
    value_of,
)
from tacit.messages.values import text

__all__ = [
    "MOST_CANDIDATES",
    "MOST_EPSILON",
    "Batch",
    "BatchTerms",
    "Bounding",
    "Candidate",
    "Engagement",
    "Impression",
    "Offer",
    "OfferRequest",
    "Policy",
    "Rule",
    "ShuffledReport",
]

MOST_EPSILON = 40.0  # beyond it a sampler flips once in 10^17 draws: such a policy should promise nothing openly
MOST_CANDIDATES = 10_000
MOST_SLOTS = 100
MOST_MICROS = 10**15
MOST_SCORE = 1e15
MOST_SECONDS = 2_900_000 * 86_400
MOST_ITEM = 128  # characters: as many as a ledger takes
MOST_REPORTS = 10**6
FLOOR_BITS = 32  # the floors of an envelope are whole numbers of 2^-32

# Blind tokens. The sizes are those of VOPRF(ristretto255, SHA-512), RFC 9497.
PRIMITIVE = "VOPRF(ristretto255, SHA-512) of RFC 9497"
NONCE_BYTES = 32
OUTPUT_BYTES = 64
ELEMENT_DIGITS = 2 * 32
KEY_DIGITS = 2 * 32
PROOF_DIGITS = 2 * 64
TOKEN_DIGITS = 2 * (NONCE_BYTES + OUTPUT_BYTES)

ItemName: TypeAlias = Annotated[str, Meta(min_length=1, max_length=MOST_ITEM)]  # printable as well: `item_name`
Micros: TypeAlias = Annotated[int, Meta(ge=0, le=MOST_MICROS)]  # millionths of a unit of the currency
Token: TypeAlias = Annotated[str, digits(32)]
ReportToken: TypeAlias = Annotated[str, digits(32, 400)]
BatchId: TypeAlias = Annotated[str, characters(1, 100)]


class Rule(StrEnum):
    """How an item is chosen. `public` and `uniform` use nothing private, `greedy` promises nothing, the others cost epsilon."""

    PUBLIC = "public"  # the publicly best
    UNIFORM = "uniform"  # any candidate, all with the same probability: the server's own exploration
    GREEDY = "greedy"  # the privately best: promises nothing
    RR = "rr"  # randomised response: the d privately best are each e^epsilon times as likely as any other
    GUMBEL = "gumbel"  # the exponential mechanism
    PF = "pf"  # permute-and-flip
    LAPLACE = "laplace"  # noisy max with Laplace noise
    ENVELOPE = "envelope"  # public floors, each raised up to e^epsilon times for the privately best


NOISY = frozenset({Rule.GUMBEL, Rule.PF, Rule.LAPLACE})  # they add noise to scores, so scores must be bounded
FREE = frozenset({Rule.PUBLIC, Rule.UNIFORM})


class Bounding(StrEnum):
    """How private scores are bounded before noise is added."""

    NONE = "none"
    SCALED = "scaled"  # (s - min) / (max - min)
    CLIPPED = "clipped"  # to the public score +- width/2


@dataclass(frozen=True, slots=True)
class Policy(Message):
    """How a device chooses among the candidates of an offer: a function of public data only.

    The offer has ``m`` candidates, the publicly best first. The device shows ``slots`` of them, one after the other, for epsilon
    in all. It does not trust an offer: it computes the cost of the policy itself (``cost``) and applies its own limits.
    """

    form: ClassVar[Form] = Form(
        "a policy", version=1, order=("rule", "epsilon", "m", "d", "slots", "bounding", "width", "floors")
    )

    rule: Annotated[Rule, Named("id")]
    m: Annotated[int, Meta(ge=1, le=MOST_CANDIDATES)]
    epsilon: Annotated[float, Meta(ge=0, le=MOST_EPSILON)] = 0.0  # nats
    d: Annotated[int, Meta(ge=1, le=MOST_CANDIDATES)] = 1
    slots: Annotated[int, Meta(ge=1, le=MOST_SLOTS)] = 1
    bounding: Bounding = Bounding.NONE
    width: Real | None = None  # of the boxes of clipped scores, the full width
    floors: (
        Annotated[
            tuple[Annotated[int, Meta(ge=1, le=1 << FLOOR_BITS)], ...], Meta(min_length=1, max_length=MOST_CANDIDATES)
        ]
        | None
    ) = None  # of an envelope, one for each candidate, in 2^-32

    def _check(self) -> None:
        """Raises InvalidMessage if two fields contradict each other."""
        if max(self.d, self.slots) > self.m:
            raise InvalidMessage("a policy has at most m slots, and a d of at most m.")
        free = self.rule in FREE or self.rule is Rule.GREEDY
        if free != (self.epsilon == 0.0):
            raise InvalidMessage("epsilon must be 0 for public, uniform and greedy, and above 0 for every other rule.")
        if self.d > 1 and (self.rule is not Rule.RR or self.slots > 1):
            raise InvalidMessage("only rr with one slot has a d above 1.")
        if (self.rule in NOISY) != (self.bounding is not Bounding.NONE):
            raise InvalidMessage("gumbel, pf and laplace need scores that are scaled or clipped, and only they do.")
        if (self.bounding is Bounding.CLIPPED) != (self.width is not None):
            raise InvalidMessage("clipped scores have a width, and only they do.")
        if self.width is not None and not self.width > 0.0:
            raise InvalidMessage("the width of clipped scores must be above 0.")
        if (self.rule is Rule.ENVELOPE) != (self.floors is not None):
            raise InvalidMessage("an envelope has floors, and only an envelope does.")
        if self.floors is None:
            return
        if len(self.floors) != self.m or self.slots != 1:
            raise InvalidMessage("an envelope has one slot, and one floor for each candidate.")
        total = sum(self.floors)
        if total > 1 << FLOOR_BITS or total * math.exp(self.epsilon) < 1 << FLOOR_BITS:
            raise InvalidMessage("the floors of an envelope must add up to at most 1, and to at least e^-epsilon.")

    @property
    def cost(self) -> float:
        """The epsilon of one selection, from the policy alone: infinite if nothing is promised."""
        if self.rule is Rule.GREEDY:
            return math.inf if self.m > 1 else 0.0
        if self.rule in FREE or self.m == 1 or (self.rule is Rule.RR and self.d == self.m):
            return 0.0  # the choice does not depend on anything private
        return self.epsilon

    def without_cost(self) -> "Policy":
        """The policy that a device applies instead if a limit forbids this one: the public ranking."""
        return Policy(Rule.PUBLIC, self.m, slots=self.slots)


@dataclass(frozen=True, slots=True)
class OfferRequest(Message):
    """A device asks for an offer: a public context, and whether the user consents. Its size does not depend on consent."""

    form: ClassVar[Form] = Form("a request for an offer", version=1)

    context: Annotated[str, characters()] = ""
    consent: Annotated[bool, Wire(Annotated[int, Meta(ge=0, le=1)], bool, int)] = False


@dataclass(frozen=True, slots=True)
class Candidate(Message):
    """An item that may be shown, its owner's bid for a click in micro-units, and its score without private data.

    A public score is the bid times the public probability of a click, in units of money. In a recommendation without money it is
    the item's public quality and the bid is 1,000,000. Private scores are on the same scale.
    """

    form: ClassVar[Form] = Form("a candidate", order=("item", "bid_micros", "public_score"))

    item: ItemName
    public_score: Annotated[float, Meta(ge=-MOST_SCORE, le=MOST_SCORE)]
    bid_micros: Annotated[Micros, Named("bid")] = 1_000_000

    def _check(self) -> None:
        """Raises InvalidMessage if the item's name is not printable."""
        item_name(self.item, "$.item")


@dataclass(frozen=True, slots=True)
class BatchTerms(Message):
    """For shuffled reports: the batch, the price of each candidate in it, and the public key of its tokens.

    Prices stay on the server in every other offer. In a batch each item has one price, and the group of a report covers it.
    """

    form: ClassVar[Form] = Form("a batch")

    id: BatchId
    prices: tuple[Micros, ...]  # of an impression of each candidate, in millionths of the currency
    key: Annotated[str, digits(0, 200)] = ""  # empty if tokens are not blind


@dataclass(frozen=True)
class Offer(Message):
    """Candidates with public scores, in the server's order; the policy to choose by; a token to report under.

    Nothing in it is private. A device trusts no number of it: it validates the offer and computes the cost itself.
    """

    form: ClassVar[Form] = Form("an offer", version=1)

    token: Token = field(repr=False)
    expires: Annotated[int, Meta(ge=0, le=MOST_SECONDS)]  # seconds since 1970
    policy: Policy
    candidates: Annotated[tuple[Candidate, ...], Meta(min_length=1, max_length=MOST_CANDIDATES)] = field(repr=False)
    batch: BatchTerms | None = None

    def _check(self) -> None:
        """Raises InvalidMessage if the parts of the offer do not fit together."""
        if self.policy.m != len(self.candidates):
            raise InvalidMessage(f"an offer has 1 to {MOST_CANDIDATES:,} candidates, as many as its policy states.")
        if len({candidate.item for candidate in self.candidates}) < len(self.candidates):
            raise InvalidMessage("an offer names every item once.")
        if any(second.public_score > first.public_score for first, second in pairwise(self.candidates)):
            raise InvalidMessage("the candidates of an offer must be in falling order of their public scores.")
        if self.batch is not None:
            if len(self.batch.prices) != len(self.candidates):
                raise InvalidMessage("the terms of a batch have one price for each candidate.")
            if self.policy.slots != 1:
                raise InvalidMessage("a shuffled report names one item, so its offer has one slot.")

    @property
    def items(self) -> tuple[str, ...]:
        """The candidates' items, in the order of their public scores."""
        return tuple(candidate.item for candidate in self.candidates)

    def group_under(self, applied: Policy) -> str:
        """The group of a shuffled report: a digest of the applied policy and of everything its randomiser depends on."""
        if self.batch is None:
            raise InvalidMessage("only offers of a batch have groups.")
        view = [applied.to_json(), [candidate.to_json() for candidate in self.candidates], self.batch.to_json()]
        canonical = dumps(_with_float_bits(view), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return sha256(canonical.encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Impression(Message, metaclass=ReleaseOnly):
    """These items of the offer with this token were shown, one in each slot. It holds no score, rank, probability or time."""

    form: ClassVar[Form] = Form("an impression", version=1)

    token: Token = field(repr=False)
    items: Annotated[
        tuple[ItemName, ...], Meta(min_length=1, max_length=MOST_SLOTS, extra_json_schema={"uniqueItems": True})
    ] = field(repr=False)

    def _check(self) -> None:
        """Raises InvalidMessage if an item is not printable, or named twice."""
        for item in self.items:
            item_name(item, "$.items")
        if len(set(self.items)) < len(self.items):
            raise InvalidMessage("an impression names every item once.")

    @classmethod
    def from_release(cls, release: Release[tuple[int, ...]], offer: Offer) -> "Impression":
        """The message of a release: indices of candidates."""
        return make(cls, offer.token, tuple(offer.candidates[index].item for index in value_of(release)))


@dataclass(frozen=True, slots=True)
class TokenRequest(Message):
    """Asks for a blind token: a blinded element for the offer with this token.

    A device sends it before it chooses anything, and for every offer of a batch. To everybody but the device the element is a
    random point.
    """

    form: ClassVar[Form] = Form("a request for a token", version=1)

    token: Token
    blinded: Annotated[str, digits(ELEMENT_DIGITS)]


@dataclass(frozen=True, slots=True)
class IssuedToken(Message):
    """The element evaluated with the batch's secret key: the proof of that, then the element, in hexadecimal digits.

    The token of a report is the device's nonce and the function's output at it. The server has seen neither before the report
    arrives.
    """

    form: ClassVar[Form] = Form("an issued token", version=1)

    evaluated: Annotated[str, digits(PROOF_DIGITS + ELEMENT_DIGITS)]


@dataclass(frozen=True, slots=True)
class ShuffledReport(Message, metaclass=ReleaseOnly):
    """Item, batch and group, and a token that makes the report count once. With a blind token nothing links it to the offer."""

    form: ClassVar[Form] = Form("a shuffled report", version=1)

    batch: BatchId
    group: Token
    item: ItemName = field(repr=False)
    token: ReportToken = field(repr=False)

    def _check(self) -> None:
        """Raises InvalidMessage if the item's name is not printable."""
        item_name(self.item, "$.item")

    @classmethod
    def from_release(
        cls, release: Release[tuple[int, ...]], offer: Offer, applied: Policy, token: str
    ) -> "ShuffledReport":
        """The message of a release: the index of one candidate, chosen under the policy ``applied``."""
        if offer.batch is None:
            raise InvalidMessage("a shuffled report needs an offer of a batch.")
        (index,) = value_of(release)
        return make(cls, offer.batch.id, offer.group_under(applied), offer.candidates[index].item, token)


class _Report(Struct, forbid_unknown_fields=True):
    item: ItemName
    token: ReportToken


@dataclass(frozen=True, slots=True)
class Batch(Message):
    """All reports of one group, in the order of their tokens, which does not depend on senders or times."""

    form: ClassVar[Form] = Form("a batch", version=1)

    id: BatchId
    group: Token
    reports: Annotated[
        tuple[tuple[str, str], ...],  # (token, item), ascending
        Wire(
            Annotated[tuple[_Report, ...], Meta(max_length=MOST_REPORTS)],
            lambda sent: tuple((report.token, report.item) for report in sent),
            lambda reports: [{"item": item, "token": token} for token, item in reports],
        ),
    ] = field(repr=False)

    def _check(self) -> None:
        """Raises InvalidMessage if a report is malformed, or the order is wrong."""
        if len(self.reports) > MOST_REPORTS:
            raise InvalidMessage(f"a batch has at most {MOST_REPORTS:,} reports.")
        for token, item in self.reports:
            read(token, ReportToken, "a batch", "$.reports.token")
            item_name(item, "$.reports.item")
        if any(second <= first for (first, _), (second, _) in pairwise(self.reports)):
            raise InvalidMessage("the reports of a batch must be in rising order of their tokens, each token once.")


@dataclass(frozen=True, slots=True)
class Engagement(Message, metaclass=ReleaseOnly):
    """Whether the item shown for this token was clicked, as a bit that the device flipped at random.

    ``epsilon`` is public and says how often a bit is flipped. Count bits of different epsilons apart.
    """

    form: ClassVar[Form] = Form("an engagement", version=1)

    token: Token = field(repr=False)
    bit: Annotated[int, Meta(ge=0, le=1)]
    epsilon: Positive  # nats

    @classmethod
    def from_release(cls, release: Release[int], token: str, epsilon: float) -> "Engagement":
        """The message of a release at ``epsilon``, in nats.

        Raises InvalidMessage if the release has another epsilon. A release that promises nothing has none, and takes yours.
        """
        if not release.guarantee.promises_nothing and release.guarantee.epsilon != epsilon:
            raise InvalidMessage("the epsilon of an engagement is that of its release.")
        return make(cls, token, value_of(release), epsilon)


def item_name(value: object, path: str) -> str:
    """``value``, if it is the name of an item that a ledger accepts: every item that can be offered can be billed."""
    item = text(value, path, least=1, most=MOST_ITEM)
    if not item.isprintable():
        raise InvalidMessage(f"expected a text without line breaks or control characters at {path}.")
    return item


def import_ristretto() -> Any:
    """The module that computes blind tokens (`PRIMITIVE`). Raises MissingExtra if voprf is not installed."""
    try:
        from voprf import ristretto
    except ImportError:
        raise MissingExtra("blind tokens need the package voprf: pip install 'tacit[tokens]'.") from None
    return ristretto


def _with_float_bits(value: Any) -> Any:
    """``value`` with each float as the digits of its eight bytes, because languages write the same number in different ways."""
    if isinstance(value, float):
        return pack(">d", value + 0.0).hex()  # 0.0 also for -0.0
    if isinstance(value, dict):
        return {name: _with_float_bits(inner) for name, inner in value.items()}
    return [_with_float_bits(inner) for inner in value] if isinstance(value, list) else value
