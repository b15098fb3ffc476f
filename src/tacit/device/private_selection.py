"""Private selection on the device: choose one item of an offer by private scores, show it, and report exactly what was shown.

    choice = selection.choose(offer, "shop", None)
    impression = selection.shown(choice)

``choose`` has one order that is both private and exact: look for a stored choice, check the expiry, compute the price from public
data, claim the token, check consent, charge, score every candidate, draw, write. Every refusal follows from public data: a
mechanism and its cost depend on the policy and the public scores alone.

Proof: docs/proofs/private-selection.md.
"""

import json
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.device.limits import GREEDY, server_name
from tacit.device.profile import DeviceState
from tacit.device.wire import read_json
from tacit.errors import InvalidInput, InvalidParameter, TacitError, UnknownName
from tacit.guarantees import ONE_PROFILE, Guarantee, Release, nothing, pure
from tacit.ledger import SECOND, Consent, Display, DisplayState, Settlement
from tacit.mechanisms import (
    SYSTEM_NOISE,
    ClippedScores,
    Envelope,
    ExponentialMechanism,
    LaplaceNoisyMax,
    Noise,
    Peeling,
    PermuteAndFlip,
    RandomisedResponse,
    ReplayedNoise,
    ScaledScores,
    TopResponse,
)
from tacit.mechanisms.noise import unprotected
from tacit.mechanisms.scores import candidate_scores
from tacit.mechanisms.selection import PublicChoice
from tacit.messages import values
from tacit.messages.private_selection import (
    Bounding,
    Candidate,
    Engagement,
    Impression,
    Offer,
    Policy,
    Rule,
    ShuffledReport,
)
from tacit.models.items import Items
from tacit.models.scorers import Scorer

MOST_BYTES = 1 << 24  # of an offer: 10,000 candidates with the longest of names fit
# Seconds. A display is kept until a day after its offer expires, and no server may decide how long that is.
MOST_AHEAD = 31 * 24 * 3600
# A cheaper offer, unless it is free, is answered publicly: charges are kept for good, and a server must not flood the ledger.
LEAST_EPSILON = 1e-3
_LARGEST = 1e300  # a larger private score counts as missing: the difference of two such scores overflows
_TIDY_EVERY = 3600 * SECOND
_PROOF = "private-selection"

Mechanism: TypeAlias = TopResponse | Envelope | ExponentialMechanism | PermuteAndFlip | LaplaceNoisyMax


@dataclass(frozen=True, slots=True)
class Choice:
    """The items to show for an offer, written before anything is shown, without the reason.

    ``policy`` is the policy that was applied: a function of public data.
    """

    server: str
    token: str
    items: tuple[str, ...]  # one for each slot
    expires: int  # seconds since 1970
    policy: Policy
    consented: bool
    batch: str | None = None  # if the report is to be shuffled
    group: str | None = None
    report_token: str | None = None

    @property
    def item(self) -> str:
        """The item of the first slot."""
        return self.items[0]

    def impression(self) -> Impression:
        """The report of a choice that is not shuffled."""
        if self.batch is not None:
            raise InvalidParameter("this offer's report is shuffled and must not name its token: use shuffled_report.")
        return Impression.from_json({"version": 1, "token": self.token, "items": list(self.items)})

    def shuffled(self) -> ShuffledReport:
        """The report of a choice that is shuffled. Nothing in it identifies this offer."""
        if self.batch is None or self.group is None or self.report_token is None:
            raise InvalidParameter("a shuffled report needs an offer of a batch and a token of its own.")
        written = {"batch": self.batch, "group": self.group, "item": self.item, "token": self.report_token}
        return ShuffledReport.from_json({"version": 1} | written)

    def with_token(self, report_token: str | None) -> "Choice":
        """The same choice with the blind token that its shuffled report will carry."""
        return replace(self, report_token=report_token)

    def extra(self) -> bytes:
        """The content that the display stores in addition to the items."""
        stored = [self.policy.to_json(), self.consented, self.batch, self.group, self.report_token]
        return json.dumps(stored, separators=(",", ":")).encode()

    @classmethod
    def of(cls, display: Display) -> "Choice":
        """The choice that a display stores."""
        policy, consented, *rest = json.loads(display.extra)
        stored = (display.server, display.token, display.items, display.expires)
        return cls(*stored, Policy.from_json(policy), consented, *rest)

    def __repr__(self) -> str:
        return f"Choice({len(self.items)} of {self.policy.m})"  # a log with both token and item would undo shuffling


class PrivateScorer(Protocol):
    """A model of how much the user would like some items, from their features and anything else that the device knows.

    It gives one number for each item, on the scale of the public scores: with bids the probability of a click, otherwise the
    item's quality. The device multiplies it by the bid. Items that the user has seen or blocked may get a lower number, and
    nothing else: such an item keeps its least probability, so nobody can tell. An item without a finite number (NaN, None,
    infinity) counts with its public score.
    """

    def __call__(self, features: NDArray[np.float64], items: tuple[str, ...], /) -> ArrayLike: ...


class DevicePrivateSelection:
    """Choices, reports and clicks of one device: ``Device`` says what each method promises.

    ``scorer`` is None if the device has no private model to choose by.
    """

    def __init__(self, state: DeviceState, scorer: PrivateScorer | None) -> None:
        self._state, self._scorer = state, scorer
        self._engaged: set[tuple[str, str]] = set()  # clicks with a final answer
        self._report_tokens: dict[tuple[str, str], str] = {}
        self._tidied = 0

    def choose(self, offer: object, server: str, report_token: str | None) -> Choice | None:
        """The choice to show.

        None (no fill) for an offer that is malformed, has expired or expires too late, or has a policy that no mechanism can
        follow; and for a token that another call has claimed without writing a choice.
        """
        state, displays = self._state, self._state.displays
        server, offer = server_name(server), read_offer(offer)
        if report_token is not None:
            values.hexadecimal(report_token, "the token of a shuffled report", least=32, most=400)
        now = state.clock()
        if not 0 <= now - self._tidied < _TIDY_EVERY:  # otherwise servers would decide how many rows the file keeps
            self._tidied = now
            displays.forget()
        if offer is None:
            return None
        # Stored? A repetition reads nothing private: neither its time nor its outcome depends on private data.
        stored = displays.find(server, offer.token)
        if stored is not None:
            return Choice.of(stored)
        # Expired?
        if not 0 < offer.expires * SECOND - now <= MOST_AHEAD * SECOND:
            return None
        # The price, from public data. This also builds everything that the draw will need.
        public = tuple(candidate.public_score for candidate in offer.candidates)
        try:
            guarantee = guarantee_of(offer.policy, public)
        except (TacitError, ArithmeticError, ValueError):
            return None
        # Claim. Only the first call for a token, in any thread or process, may write what is shown: if a second one could write
        # while the first is scoring, the time that scoring takes would decide which of the two is shown. If the first call dies,
        # nothing is shown for this token. Otherwise it may have written its choice meanwhile.
        if not displays.claim(server, offer.token, offer.expires):
            stored = displays.find(server, offer.token)
            return None if stored is None else Choice.of(stored)
        # Consent, and charge. Without both the choice is made from public data.
        consented = displays.consent_state().granted
        applied, scores = offer.policy.without_cost(), None
        if consented and self._is_allowed(offer.policy, guarantee):
            if guarantee.epsilon == 0.0:
                applied = offer.policy
            elif (scorer := self._scorer) is not None:
                # A batch is charged once for all tokens of its offers: the bound for shuffled reports holds for one report
                # of each user, so further offers of the batch are answered publicly.
                kind, key = "choice", offer.token
                if offer.batch is not None:
                    kind, key = "batch", sha256(offer.batch.id.encode()).hexdigest()[:32]
                receipt = state.budget.charge_selection(server, kind, key, state.promise(guarantee))
                if receipt is not None and receipt.fresh:
                    # Score.
                    names, applied = offer.items, offer.policy
                    scores = private_scores(offer.candidates, lambda: scorer(state.features(), names))
                elif receipt is not None and offer.batch is None:
                    return None  # the charge has outlived its display: a second draw for it would be a second answer
        # Draw, and write.
        items = Impression.from_release(select(applied, scores, public, state.noise), offer).items
        batch, group = (None, None) if offer.batch is None else (offer.batch.id, offer.group_under(applied))
        choice = Choice(server, offer.token, items, offer.expires, applied, consented, batch, group, report_token)
        return Choice.of(displays.choose(server, offer.token, items, offer.expires, choice.extra()))

    def shown(self, choice: Choice) -> Impression:
        if not isinstance(choice, Choice):
            raise InvalidParameter("shown takes a Choice. If device.choose(offer) gave None, show nothing.")
        choice.impression()  # raises for a choice whose report is shuffled
        return Choice.of(self._state.displays.mark_shown(choice.server, choice.token)).impression()

    def shuffled_report(self, choice: Choice, token: str | None) -> ShuffledReport:
        stored = Choice.of(self._state.displays.mark_shown(choice.server, choice.token))
        return self._with_token(stored, token).shuffled()

    def pending(self, server: str) -> list[Impression]:
        return [choice.impression() for choice in self._unreported(server) if choice.batch is None]

    def pending_reports(self, server: str) -> list[ShuffledReport]:
        return [choice.shuffled() for choice in self._unshuffled(server) if choice.report_token is not None]

    def settled(self, report: Choice | Impression | ShuffledReport | Engagement, outcome: str, server: str) -> None:
        if not isinstance(report, Choice | Impression | ShuffledReport | Engagement):
            raise InvalidParameter("settled takes a Choice, an Impression, a ShuffledReport or an Engagement.")
        server = report.server if isinstance(report, Choice) else server_name(server)
        try:
            Settlement(outcome)  # every answer of a ledger is final; after any other answer the report is sent again
        except ValueError:
            raise InvalidParameter(f"a final answer is one of {', '.join(Settlement)}.") from None
        if isinstance(report, Engagement):
            self._engaged.add((server, report.token))
            return
        token = report.token
        if isinstance(report, ShuffledReport):  # its token is the blind one, not the offer's
            waiting = self._unshuffled(server)
            token = next((choice.token for choice in waiting if choice.report_token == report.token), "")
        if token:
            with suppress(UnknownName):  # the display was forgotten: its offer expired more than a day ago
                self._state.displays.mark_reported(server, token)

    def consent(self, granted: bool) -> Consent:
        """Records consent or its revocation. A revocation first wipes the profile, even if the file cannot be written."""
        if not granted:
            self._state.profile.wipe()
        return self._state.displays.consent(granted)

    def note_click(self, choice: Choice) -> None:
        self._state.obey_revocation()  # otherwise this click would be wiped with the earlier ones
        self._state.profile.click(choice.server, choice.token)

    def clicks_due(self, server: str) -> list[Engagement]:
        state, server = self._state, server_name(server)
        now, window = state.clock(), state.limits.click_window
        displays = state.displays.shown(server) if self._reports_clicks() else []
        choices = [choice for choice in map(Choice.of, displays) if _has_click(choice)]
        due = [choice.token for choice in choices if now >= (choice.expires + window) * SECOND]
        state.obey_revocation()
        bits = [
            self._click(server, token, state.profile.clicked(server, token))
            for token in due
            if (server, token) not in self._engaged
        ]
        return [bit for bit in bits if bit is not None]

    def clicked(self, shown: Choice | Impression, clicked: bool, server: str) -> Engagement | None:
        if type(clicked) is not bool:
            raise InvalidParameter("clicked must be True or False.")
        return self._click(shown.server if isinstance(shown, Choice) else server_name(server), shown.token, clicked)

    def _click(self, server: str, token: str, clicked: bool) -> Engagement | None:
        """The bit of a display: charged and drawn the first time, and the same bit after that, even if ``clicked`` differs.

        None without a display that was shown under consent, or if nothing is left of the budget. Both follow from public data.
        """
        state, epsilon = self._state, self._state.limits.click_epsilon
        display = state.displays.find(server, token)
        if display is None or display.state is DisplayState.CHOSEN or not _has_click(Choice.of(display)):
            return None
        if epsilon is None or not self._reports_clicks():
            return None
        mechanism, release_id = RandomisedResponse(2, epsilon), f"click {token}"
        receipt = state.budget.charge_selection(server, "click", token, state.promise(mechanism.guarantee))
        subject = state.budget.server_subject(server)
        if receipt is None:
            kept = state.ledger.kept(subject, release_id)  # it may have been drawn when there was room
        else:
            kept = state.ledger.awaited(subject, release_id, receipt)
            if kept is None:
                release = mechanism.release(int(clicked), state.noise)
                bit = Engagement.from_release(release, token, mechanism.guarantee.epsilon)
                kept = state.ledger.keep(subject, release_id, f"{bit.bit} {bit.epsilon!r}".encode())
        if kept is None:
            return None
        bit_text, epsilon_text = kept.decode().split(" ")  # the epsilon of the draw, which may differ from today's
        return Engagement.from_json(
            {"version": 1, "token": token, "bit": int(bit_text), "epsilon": float(epsilon_text)}
        )

    def _reports_clicks(self) -> bool:
        return self._state.limits.click_epsilon is not None and self._state.displays.consent_state().granted

    def _is_allowed(self, policy: Policy, guarantee: Guarantee) -> bool:
        """Whether the owner allows this policy, however much of the budget is left."""
        limits = self._state.limits
        if policy.rule not in limits.rules:
            return False
        if guarantee.promises_nothing:
            return limits.non_private
        return guarantee.epsilon == 0.0 or LEAST_EPSILON <= guarantee.epsilon <= limits.most_epsilon

    def _unreported(self, server: str) -> list[Choice]:
        self._state.displays.forget()
        return [Choice.of(display) for display in self._state.displays.pending(server_name(server))]

    def _unshuffled(self, server: str) -> list[Choice]:
        return [self._with_token(choice, None) for choice in self._unreported(server) if choice.batch is not None]

    def _with_token(self, choice: Choice, token: str | None) -> Choice:
        """The choice with its first report token. A token passed to ``choose`` is on the disk, a later one in memory."""
        key = (choice.server, choice.token)
        first = choice.report_token or self._report_tokens.get(key) or token
        if first is not None:
            self._report_tokens.setdefault(key, first)
        return choice.with_token(self._report_tokens.get(key))


def _has_click(choice: Choice) -> bool:
    """Whether clicks are reported: only for choices under consent, and not for shuffled reports, which must not be linked."""
    return choice.consented and choice.batch is None


def read_offer(offer: object) -> Offer | None:
    """The offer, or None if it is malformed. A server can cause no fill this way, but never an error."""
    if isinstance(offer, Offer):
        return offer
    try:
        if isinstance(offer, (str, bytes)):
            if len(offer) > MOST_BYTES:
                return None
            offer = read_json(offer)
        return Offer.from_json(offer)
    except (TacitError, TypeError, ValueError, RecursionError):
        return None


def private_scores(candidates: Sequence[Candidate], quality: Callable[[], ArrayLike]) -> NDArray[np.float64]:
    """bid * quality of every candidate; its public score if that is not a number. Never raises.

    An error, or an item left out, would be visible from outside, and so answer a question that the server may have crafted.
    Therefore everything that the model raises ends here, even what is not an ``Exception``: the panic of a compiled model, a
    cancelled task, an exit. A keyboard interrupt ends here too, since a model can raise that as well: press it again.
    """
    public = np.array([candidate.public_score for candidate in candidates])
    bids = np.array([candidate.bid_micros / 1_000_000 for candidate in candidates])
    try:
        with np.errstate(all="ignore"):
            qualities = np.asarray(quality())
            if qualities.shape != public.shape or qualities.dtype.kind not in "biufO":
                return public
            scores = bids * qualities.astype(np.float64)
            return np.where(np.abs(scores) <= _LARGEST, scores, public)  # the comparison is False for NaN
    except BaseException:  # a private model may raise anything
        return public


def store_scorer(items: Items, scorer: Scorer) -> PrivateScorer:
    """The store's own model at the user's features: its utilities are the quality of items, on the scale the server fitted.

    With bids the model must give probabilities of clicks. An item that the store does not know has no number.
    """

    def quality(features: NDArray[np.float64], names: tuple[str, ...]) -> NDArray[np.float64]:
        qualities = np.full(len(names), np.nan)
        codes = [code_of_name(items, name) for name in names]
        positions = [position for position, code in enumerate(codes) if code is not None]
        if positions:
            table = np.array([codes[position] for position in positions], dtype=np.int64)
            qualities[positions] = scorer.score(features[None, :], table)[0]
        return qualities

    return quality


def code_of_name(items: Items, name: str) -> int | None:
    """The code of an item by its id as a text, as offers name it; None if the id is unknown. Titles are not ids."""
    try:
        if items.ids.dtype.kind not in "iu":
            return items.code(name)
        number = int(name)
        return items.code(number) if str(number) == name else None
    except (UnknownName, ValueError, OverflowError):
        return None


@np.errstate(all="ignore")  # a caller's setting would turn an underflow, which is private, into an error
def select(
    policy: Policy, scores: ArrayLike | None, public: Sequence[float], noise: Noise = SYSTEM_NOISE
) -> Release[tuple[int, ...]]:
    """The positions of the items to show, one for each slot. A policy without cost ignores ``scores``, which may be None."""
    mechanism = mechanism_of(policy, public)
    if mechanism is not None:
        release: Release[Any] = mechanism.release(_row(policy, scores), noise)  # one position, or one for each slot
        return release.map(lambda chosen: tuple(int(position) for position in np.atleast_1d(chosen)))
    if policy.rule is Rule.GREEDY and policy.m > 1:
        order = np.argsort(-_row(policy, scores), kind="stable")
        chosen = tuple(int(position) for position in order[: policy.slots])
        return unprotected(chosen, guarantee_of(policy, public), noise)
    # without private scores: uniform, or the publicly best, which is also the only one if nothing else is offered
    uniform = policy.rule is Rule.UNIFORM or (policy.rule is Rule.RR and policy.m > 1)
    return PublicChoice(policy.m, policy.slots, uniform=uniform).release(noise)


@np.errstate(all="ignore")
def probabilities(policy: Policy, scores: ArrayLike, public: Sequence[float]) -> NDArray[np.float64]:
    """The probability of each candidate to be shown in the one slot, given its private scores."""
    if policy.slots != 1:
        raise InvalidParameter("with several slots the law is over orders of items: ask for one slot.")
    mechanism, row = mechanism_of(policy, public), _row(policy, scores)
    if mechanism is not None:
        return mechanism.pmf(row)
    if policy.rule is Rule.UNIFORM or (policy.rule is Rule.RR and policy.m > 1):
        return np.full(policy.m, 1.0 / policy.m)
    law = np.zeros(policy.m)
    law[int(row.argmax()) if policy.rule is Rule.GREEDY else 0] = 1.0
    return law


def guarantee_of(policy: Policy, public: Sequence[float]) -> Guarantee:
    """The guarantee of one selection, computed from the mechanism. No number of an offer is trusted."""
    mechanism = mechanism_of(policy, public)
    if mechanism is not None:
        return mechanism.guarantee
    if policy.rule is Rule.GREEDY and policy.m > 1:
        return nothing(ONE_PROFILE, GREEDY, proof=_PROOF)
    return pure(0.0, ONE_PROFILE, proof=_PROOF)


def mechanism_of(policy: Policy, public: Sequence[float]) -> Mechanism | Peeling | None:
    """The mechanism that chooses by private scores; None if private scores have no influence, or if the policy has no noise."""
    if len(public) != policy.m:
        raise InvalidParameter(f"the policy is for {policy.m} candidates, not {len(public)}.")
    scores = tuple(map(float, public))
    if not all(map(math.isfinite, scores)):
        raise InvalidParameter("public scores must be finite numbers.")
    return _build_mechanism(policy, scores)


@lru_cache(maxsize=64)  # of public values: servers repeat their offers, and calibration takes time
@np.errstate(all="ignore")
def _build_mechanism(policy: Policy, public: tuple[float, ...]) -> Mechanism | Peeling | None:
    if policy.rule in (Rule.PUBLIC, Rule.UNIFORM, Rule.GREEDY) or policy.cost == 0.0:
        return None
    single = _build_single(policy, public)
    mechanism = single if policy.slots == 1 or isinstance(single, Envelope) else Peeling(single, policy.slots)
    mechanism.release(public, ReplayedNoise(0))  # if it cannot draw it fails here, on public numbers, before any charge
    return mechanism


def _build_single(policy: Policy, public: tuple[float, ...]) -> Mechanism:
    """The mechanism for one slot."""
    if policy.rule is Rule.RR:
        return TopResponse(policy.m, policy.d, policy.epsilon)
    if policy.rule is Rule.ENVELOPE:
        return Envelope(policy.floors or (), policy.epsilon)
    source: ScaledScores | ClippedScores
    if policy.bounding is Bounding.CLIPPED and policy.width is not None:
        source = ClippedScores(public, policy.width)
    else:
        source = ScaledScores(policy.m)
    if policy.rule is Rule.LAPLACE:
        return LaplaceNoisyMax(source, policy.epsilon)
    if policy.rule is Rule.GUMBEL:
        return ExponentialMechanism(source, policy.epsilon, calibrated=True)
    return PermuteAndFlip(source, policy.epsilon, calibrated=True)


def _row(policy: Policy, scores: ArrayLike | None) -> NDArray[np.float64]:
    try:
        row = candidate_scores(scores)  # type: ignore[arg-type]
    except InvalidInput:
        row = np.empty(0)
    if row.shape != (policy.m,):
        raise InvalidInput("expected one private score for each candidate.")
    return row
