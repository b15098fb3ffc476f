"""Multi-selection on the device: one noisy signal per slot leaves, a slate comes back, and the device picks from it.

    signal = selection.ask(eta=0.1)     # stored? room in the budget? features, charge, draw, keep
    selection.pick(reply)               # at the true features; nothing leaves

A stored signal is called a memo. A slot is a part of the calendar, and each slot has one signal: the time of a fresh signal then
says nothing about the user. Drawing one "because the features have moved" would.

Proof: docs/proofs/multi-selection.md.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from tacit.checks import whole
from tacit.device.limits import OVERALL, SIGNALS, Room, Slots, slot_of
from tacit.device.profile import DeviceState
from tacit.errors import BudgetExhausted, Conflict, InvalidMessage, InvalidParameter, UnknownName
from tacit.guarantees import Guarantee, Neighbours, anywhere, metric, within
from tacit.guarantees.arithmetic import shown_up
from tacit.ledger import Budget, Statement, Terms, price
from tacit.ledger.budgets import MEASURES, allowance, shown
from tacit.mechanisms import Noise, VectorLaplace
from tacit.messages.multi_selection import (
    GRID_BITS,
    LEAST_ETA,
    MOST_ETA,
    Eta,
    ModelKind,
    Reply,
    Request,
    Signal,
    exact_eta,
)
from tacit.models.features import FeatureSpace, GenreProfile, moved_by_one_rating, version_of
from tacit.models.items import Items
from tacit.models.multi_selection import LinearMap, PrincipalComponents, cluster_diameters
from tacit.models.scorers import Scorer

CLUSTER = 5  # look-alikes in one neighbourhood
QUANTILES = (0.25, 0.5, 0.75)
_PLACES = 10**8  # eta_for gives a decimal of at most eight places
_LEAST_RADIUS = 2.0**-20  # one step of the grid: points that are nearer to each other are one point
_SPARE = 1.0 + 2.0**-40  # shares are floats, so a distance between them may be off in its last digits
_LOST = "a lost memo may have spent the whole budget of its period"  # in the ledger's file: this text never changes
_PRIVATE = "readings follow from a private profile and cannot be written, copied or sent: show them to the user."

Estimate = Callable[[NDArray[np.float64]], NDArray[Any]]


class DeviceMultiSelection:
    """The signals of one device, and its picks: ``Device`` says what each method promises.

    Without ``terms`` it has no budget: it picks, but cannot ask.
    """

    def __init__(self, state: DeviceState, slots: Slots, terms: Terms | None, scorer: Scorer | None) -> None:
        self._state, self._slots, self._terms, self._scorer = state, slots, terms, scorer
        self._version = version_of(state.space)
        self._subject = f"{SIGNALS}{slots.refresh} {slots.per_period}"  # with the slots: they never change either
        if terms is None:
            return
        try:
            self._require_first()
            state.ledger.enrol_many([self._subject], terms)
            self._require_first()  # if two processes enrol different slots at once, the first ones stand
        except Conflict:
            raise Conflict(
                "the device in this file has another budget, other slots (refresh, per_period), another number of features, or "
                "other noise. Terms never change: open the file with the settings it was made with."
            ) from None

    def ask(self, eta: Eta) -> Signal:
        state, exact, budget = self._state, exact_eta(eta), self._require_terms().budgets[0]
        mechanism = mechanism_of(state.space, exact)
        guarantee = state.promise(mechanism.guarantee)
        kind = f"{self._version} {exact.numerator}/{exact.denominator}"
        release_id = f"{self._slots.at(state.clock())} {kind}"
        memo = state.ledger.kept(self._subject, release_id)
        if memo is not None:  # before the profile is read: neither time nor error of a repetition depends on it
            return Signal.from_bytes(memo)
        signals, overall = state.budget.room(
            [(self._subject, guarantee), (OVERALL, state.budget.overall_guarantee(guarantee))]
        )
        if signals is Room.NEVER:
            least = float(eta_for(budget))
            raise InvalidParameter(
                f"a signal with eta = {exact} never fits into '{budget}': ask with an eta of at least {least}."
            )
        if overall is Room.NEVER:
            raise InvalidParameter(
                f"a signal with eta = {exact} never fits into the overall budget: ask with a larger eta."
            )
        # If the features are invalid, this fails before anything is charged. Without room they are not read, unless a crash
        # prevented the draw after this slot was charged: then `release` calls `draw`.
        obeyed = state.obey_revocation()
        features = state.features() if signals is overall is Room.FITS else None

        def draw() -> bytes:
            # Since the features were read there was a charge, and perhaps a wait for another process: consent may be gone.
            current = features
            if current is None or state.obey_revocation() != obeyed:
                current = state.features()
            state.budget.charge_signal_overall(release_id, guarantee)
            return Signal.from_release(mechanism.release(current, state.noise), exact).to_bytes()

        try:
            if overall is Room.FITS:
                return Signal.from_bytes(state.ledger.release(self._subject, release_id, guarantee, draw))
        except BudgetExhausted:
            pass
        with closing(state.ledger.stored(self._subject)) as memos:  # newest first, of any slot: they were paid for
            for older in memos:
                if older.release_id.partition(" ")[2] == kind:
                    return Signal.from_bytes(older.content)
        return Signal.nothing(state.space.dimension, exact, mechanism.grid_bits)

    def request(self, k: int, t: int, eta: Eta) -> Request:
        empty = Request(Signal.nothing(self._state.space.dimension, exact_eta(eta)), k, t)  # checks k and t first
        return replace(empty, signal=self.ask(eta))

    def pick(self, reply: Reply, t: int) -> tuple[int | str, ...]:
        state = self._state
        codes = codes_of(reply, state.items)
        estimate = estimator(reply, codes, state.space.dimension, self._scorer)
        count = whole("t", t, least=1)
        state.obey_revocation()  # here an unreadable ledger is an error; below, no error may leave
        estimates = estimates_at(state.features, estimate, len(codes))
        return tuple(state.items.id(codes[position]) for position in best(estimates, count))

    def readings(
        self, eta: Eta, population: NDArray[Any] | None, genres: int | None, rng: np.random.Generator | None
    ) -> "Readings":
        state, exact = self._state, exact_eta(eta)
        guarantee = state.promise(mechanism_of(state.space, exact).guarantee)
        rng = np.random.default_rng(0) if rng is None else rng
        return readings_of(
            exact, guarantee, state.space, state.ratings(), genres=genres, population=population, rng=rng
        )

    def statement(self) -> Statement:
        self._require_terms()
        return self._state.ledger.statement(self._subject)

    def spend_rest(self) -> None:
        """Charges what is left of this period, which is the most that a lost file can have spent. A repetition adds nothing.

        The same holds if the file is an old copy, even one with a memo of this slot: a later memo of the slot, with another eta or
        other features, may be missing. The memos in the file are still sent, and cost nothing.
        """
        if self._terms is None:
            return
        (budget,), terms = self._terms.budgets, self._terms
        statement = self.statement()
        while (left := statement.windows[0].left.amount) > 0:
            epsilon = float(shown(left, MEASURES[terms.accounting][1]))
            while price(_lost(epsilon, terms), terms).amount > left:
                # Billions with nine decimals do not fit a float. The remainder is too small for a signal.
                epsilon = math.nextafter(epsilon, 0.0)
            try:
                period = slot_of(statement.at, budget.per)
                self._state.ledger.charge(self._subject, f"reinstalled {period}", _lost(epsilon, terms))
            except Conflict:  # this period is marked already
                return
            except BudgetExhausted:  # another process spent some of it meanwhile
                statement = self.statement()
                continue
            return

    def _require_terms(self) -> Terms:
        if self._terms is None:
            raise InvalidParameter("signals need a budget: Device(..., budget=Budget(epsilon=10, per='month')).")
        return self._terms

    def _require_first(self) -> None:
        subjects = [subject for subject in self._state.ledger.subjects() if subject.startswith(SIGNALS)]
        if subjects[:1] not in ([], [self._subject]):
            raise Conflict("the device in this file has other slots.")


def terms_of(space: FeatureSpace, budget: Budget, slots: Slots, noise: Noise) -> Terms:
    """The terms of a device's signals: ``budget`` is epsilon per unit of L1 distance, in each period.

    Raises InvalidParameter for slots that are longer than the period, and for a budget that the ledger would round.
    """
    slots.require_within(budget.per)
    rounding = mechanism_of(space, MOST_ETA).guarantee.rounding  # of the grid: the same for every eta
    unprotected = () if noise.caveat is None else (noise.caveat,)
    terms = Terms.of(budget, Neighbours.features("L1"), unprotected=unprotected, rounding=rounding)
    if price(_lost(budget.epsilon, terms), terms).amount != allowance(budget, terms).amount:
        raise InvalidParameter("the epsilon of a device's budget must have at most nine decimals.")
    return terms


def _lost(epsilon: float, terms: Terms) -> Guarantee:
    return metric(epsilon, rounding=terms.rounding, proof="multi-selection", assumes=frozenset({_LOST}))


def eta_for(budget: Budget, asks: int = 1) -> Fraction:
    """The smallest eta, to eight decimals, at which ``asks`` signals fit into one period: asks / eta <= epsilon."""
    asks = whole("asks", asks, least=1)
    terms = Terms.of(budget, Neighbours.features("L1"), rounding=1.0)
    allowed = allowance(budget, terms).amount
    exact = max(LEAST_ETA, Fraction(asks) / Fraction(repr(budget.epsilon)))
    steps = math.ceil(exact * _PLACES)
    while Fraction(steps, _PLACES) <= MOST_ETA:
        eta = Fraction(steps, _PLACES)
        # The ledger rounds up every charge by itself: the sum may exceed the budget although asks / eta does not.
        if asks * price(VectorLaplace(1, eta, grid_bits=0).guarantee, terms).amount <= allowed:
            return eta
        steps += 1
    raise InvalidParameter(f"{asks} signals do not fit into '{budget}' even with eta = {MOST_ETA}: ask less often.")


def mechanism_of(space: FeatureSpace, eta: Fraction) -> VectorLaplace:
    """The mechanism that draws a signal: noise of scale eta, exactly, on every feature."""
    return VectorLaplace(space.dimension, eta, space.low, space.high, GRID_BITS)


def codes_of(reply: Reply, items: Items) -> list[int]:
    """The codes of a slate's items. Raises InvalidMessage for an item that this device does not know."""
    if not isinstance(reply, Reply):
        raise InvalidParameter("a device picks from a server's Reply: device.pick(server.answer(signal)).")
    try:
        return [items.code_of_number(number) for number in reply.items]
    except UnknownName:
        raise InvalidMessage(
            "the slate has an item that is not among this device's: load the server's items."
        ) from None


def estimator(reply: Reply, codes: list[int], dimension: int, scorer: Scorer | None) -> Estimate:
    """The function that estimates the slate's items at given features. Every error is raised here, before a feature is read."""
    if reply.dimension != dimension:
        raise InvalidMessage(f"the reply's local model is for {reply.dimension} features; this device has {dimension}.")
    if reply.kind is ModelKind.NETWORK:
        if scorer is None:
            raise InvalidMessage("the reply leaves the scoring to the device: give it the server's model (scorer=...).")
        table = np.array(codes, dtype=np.int64)
        with np.errstate(all="ignore"):
            scorer.score(np.zeros((1, dimension)), table)  # a failure here (a missing extra) is the same for every user
        return lambda features: scorer.score(features[None, :], table)[0]
    model = reply.model
    if isinstance(model, PrincipalComponents):
        # Solve once, as a linear map. A failure then cannot depend on the user's features.
        try:
            with np.errstate(all="ignore"):
                model = model.as_map()
        except np.linalg.LinAlgError:
            raise InvalidMessage("the reply's principal components cannot be solved.") from None
        if not np.isfinite(model.matrix).all():
            raise InvalidMessage("the reply's principal components give no finite estimates.")
    if isinstance(model, LinearMap):
        return model.estimate
    return lambda features: -np.arange(len(codes), dtype=np.float64)


def estimates_at(features: Callable[[], NDArray[np.float64]], estimate: Estimate, count: int) -> NDArray[np.float64]:
    """``count`` estimates at the true features; NaN for all of them if they cannot be computed. Never raises.

    A server could craft a model, or a feature space, that fails for some features only. An error would reveal which: so there
    is no error, and the slate keeps its own order.
    """
    try:
        with np.errstate(all="ignore"):
            estimates = np.asarray(estimate(features()), dtype=np.float64)
    except Exception:  # a server's model may raise anything
        estimates = np.empty(0)
    return estimates if estimates.shape == (count,) else np.full(count, np.nan)


def best(estimates: NDArray[Any], t: int) -> list[int]:
    """The positions of the t largest, largest first; equal ones in the slate's order, NaN last."""
    values = np.nan_to_num(np.asarray(estimates, dtype=np.float64), nan=-np.inf, posinf=np.inf, neginf=-np.inf)
    return [int(position) for position in np.argsort(-values, kind="stable")[:t]]


@dataclass(frozen=True)
class OneRating:
    """The most that a signal may tell about one rating of this profile. Private, because it follows from the profile's counts.

    ``added``: a new rating of an item with at most ``genres`` genres. ``removed``: the user's rating that weighs most. ``moved``:
    the same, from liked to disliked or back. None if the user has no such rating.
    """

    genres: int
    added: Guarantee
    removed: Guarantee | None
    moved: Guarantee | None

    def __repr__(self) -> str:
        return f"OneRating(genres={self.genres}, private)"

    def __reduce_ex__(self, _: object) -> NoReturn:
        raise InvalidParameter(_PRIVATE)


@dataclass(frozen=True)
class Neighbourhood:
    """The guarantee among look-alikes: at least a share ``quantile`` of clusters of 5 has a diameter of at most ``radius``."""

    quantile: float
    radius: float  # L1 distance of features
    guarantee: Guarantee

    def __str__(self) -> str:
        share, radius = f"{self.quantile:.0%} of clusters", shown_up(self.radius, 3)
        return f"among {CLUSTER} look-alikes within {radius} ({share}): {_shown(self.guarantee)}"


@dataclass(frozen=True)
class Readings:
    """The guarantee of one signal in plain numbers, read at several distances.

    Epsilon per unit of distance says little to a person. Each reading states the distance it is read at. The reading for one
    rating uses this user's own counts: show it to the user only.
    """

    eta: Fraction  # L1 distance for one nat of loss
    signal: Guarantee  # epsilon per unit of L1 distance
    one_rating: OneRating | None  # None if features are not made of counts
    neighbourhood: tuple[Neighbourhood, ...]  # empty without a population
    anywhere: Guarantee  # this user against any other

    def __str__(self) -> str:
        lines = [f"one signal, eta = {self.eta}: {self.signal}"]
        if self.one_rating is not None:
            named = {"added": self.one_rating.added, "removed": self.one_rating.removed, "moved": self.one_rating.moved}
            lines += [
                f"  one rating {name}: {_shown(reading)}" for name, reading in named.items() if reading is not None
            ]
        lines += [f"  {cluster}" for cluster in self.neighbourhood]
        return "\n".join([*lines, f"  anybody: {_shown(self.anywhere)}"])

    def __reduce_ex__(self, _: object) -> NoReturn:
        raise InvalidParameter(_PRIVATE)


def readings_of(
    eta: Fraction,
    guarantee: Guarantee,
    space: FeatureSpace,
    ratings: tuple[NDArray[Any], NDArray[Any]],
    *,
    genres: int | None = None,
    population: NDArray[Any] | None = None,
    rng: np.random.Generator,
) -> Readings:
    """The readings of one signal for a user with these ratings, among a public population."""
    clusters: Sequence[Neighbourhood] = ()
    if population is not None:
        diameters = cluster_diameters(population, CLUSTER, rng=rng)
        # The diameter of an actual cluster, without interpolation: at least the stated share of clusters lies within.
        radii = np.quantile(diameters, QUANTILES, method="inverted_cdf").tolist()
        clusters = [
            Neighbourhood(quantile, radius, _within(guarantee, radius))
            for quantile, radius in zip(QUANTILES, radii, strict=True)
        ]
    rating = one_rating(guarantee, space, *ratings, genres=genres) if isinstance(space, GenreProfile) else None
    return Readings(eta, guarantee, rating, tuple(clusters), anywhere(guarantee, space.diameter))


def one_rating(
    guarantee: Guarantee, space: GenreProfile, items: NDArray[Any], values: NDArray[Any], *, genres: int | None = None
) -> OneRating:
    """The reading for one rating: 2g/(N + g) in each block that a rating of an item with g genres touches."""
    most = space.most_genres if genres is None else whole("genres", genres, least=1)
    blocks = space.counts(np.array([0, len(items)]), items, values)[0].reshape(2, -1).sum(axis=1)
    sizes = space.flags[items].sum(axis=1)
    disliked = np.where(np.asarray(values) >= space.liked_from, 0, 1)
    removed, moved = [], []
    for size, block in zip(sizes.tolist(), disliked.tolist(), strict=True):
        if size <= most:
            distance = _moved(blocks[block] - size, size)  # N is counted without the item
            removed.append(distance)
            moved.append(distance + _moved(blocks[1 - block], size))
    added = max(_moved(count, size) for count in blocks for size in range(most + 1))
    return OneRating(
        most,
        _within(guarantee, added),
        _within(guarantee, max(removed)) if removed else None,
        _within(guarantee, max(moved)) if moved else None,
    )


def _moved(count: float, size: int) -> float:
    return moved_by_one_rating(count, size) if size else 0.0  # an item without genres moves nothing


def _within(guarantee: Guarantee, radius: float) -> Guarantee:
    return within(guarantee, max(radius, _LEAST_RADIUS) * _SPARE)


def _shown(guarantee: Guarantee) -> str:
    return "no guarantee" if guarantee.promises_nothing else f"epsilon = {shown_up(guarantee.epsilon, 3)}"
